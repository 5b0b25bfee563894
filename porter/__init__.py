"""Moves PyTorch operators from MPSGraph to native Metal."""

__version__ = "0.1.0"
