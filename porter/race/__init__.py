"""Races: the launches of a fork's host code, recorded on this host, replayed and timed on an NVIDIA GPU.

`launches` runs with the device and records; `replay` compiles to PTX and times. Both are programs of their own, which
`porter bench` starts; `calls` is what they share.
"""
