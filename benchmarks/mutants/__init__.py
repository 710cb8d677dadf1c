"""Broken copies of the reference allocator, one change each, and what finds out about them.

The mutants are data, in the TOML files beside this one. A row names the one place that is changed, and by layer what
must notice: rules of the linter under `static`, tests under the other layers.
"""
