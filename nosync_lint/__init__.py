"""Finds hidden host-device synchronisations in PyTorch code before it runs."""

__version__ = "0.1.0"
