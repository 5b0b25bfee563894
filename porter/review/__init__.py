"""Reads a change to an MPS backend as a reviewer does: rules over what differs between two snapshots of a fork.

Needs neither torch nor a compiler. Each rule is a function in `rules/`, with cases of what it reports and accepts.
"""
