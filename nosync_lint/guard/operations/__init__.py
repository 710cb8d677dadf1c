"""What is known of the operations of torch's dispatcher: which of them wait, when, and by which row of the model."""
