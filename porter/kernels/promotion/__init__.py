"""Reads a checked kernel of a script as a promotion: what an operator of a fork is written from."""
