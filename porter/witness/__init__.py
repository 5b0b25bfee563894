"""Apple as a witness: launches of kernels recorded on the host, replayed on a Mac, and what came of them compared.

`replay` is also the script for the Mac: it needs Python and torch alone.
"""
