"""Reads what a script computes around its kernel, by running it on sizes that are not known yet."""
