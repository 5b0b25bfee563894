"""The checks of a port, in the form of PyTorch's own device-type tests."""
