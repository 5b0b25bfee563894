"""Watches what kernels do to memory and to each other: which checks there are, and what they add to compiled code."""
