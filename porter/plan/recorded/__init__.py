"""Ports of rows that keep their function for MPS: its graph becomes kernels, what it checks and allocates stays."""
