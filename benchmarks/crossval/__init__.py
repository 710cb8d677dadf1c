"""The linter against the guard: the samples run on the simulated device, compared statement by statement."""
