"""What the guard sees in packages that people use, against what the linter reports of the statements that ran there."""
