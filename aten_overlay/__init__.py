"""Apple's side on Linux: Metal, Apple's frameworks and the mps device over the installed torch wheel."""
