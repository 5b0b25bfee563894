"""Functions that the kernels and the host code of ports share: a file gets each once, before its first use."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def read_helper(name: str) -> str:
    """The text of a helper, by the name of its file, with an empty line that sets it apart from other code.

    That of host code stands before, as an anchor precedes it; that of a kernel stands behind.
    """
    text = (Path(__file__).parent / name).read_text()
    return f"{text}\n" if name.endswith(".metal") else f"\n{text}"
