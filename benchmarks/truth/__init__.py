"""How often the linter is right on sites of released packages that people labelled by reading the code."""
