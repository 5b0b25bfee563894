"""Helpers that bodies may call without declaring them. A kernel's source holds those that it names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("prelude")
# The file that declares each name, in the order that sources hold them.
_FILES: Mapping[str, tuple[str, ...]] = {
    "names.metal": ("float16_t", "bfloat16_t"),
    "ceildiv.metal": ("ceildiv",),
    "elem_to_loc.metal": ("elem_to_loc",),
    "tensor.metal": ("porter_tensor",),
}


def helpers(words: Collection[str]) -> str:
    """The text of every helper that is among `words`."""
    return "".join(_read(file) for file, names in _FILES.items() if any(name in words for name in names))


@lru_cache
def _read(file: str) -> str:
    return (_FOLDER / file).read_text() + "\n"
