"""The catalogue: one file per defect."""
