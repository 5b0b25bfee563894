"""The attributes of a compute function's input arguments, as the Metal specification's table has them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Attribute:
    """One input attribute. `lanes` is how many dimensions its value has; a kernel may name fewer of them."""

    name: str
    lanes: int

    @property
    def type(self) -> str:
        """The Metal type of the argument unless a kernel says otherwise."""
        return "uint3" if self.lanes == 3 else "uint"

    @property
    def types(self) -> tuple[str, ...]:
        """Every type that Metal accepts."""
        sizes = ("", "2", "3") if self.lanes == 3 else ("",)
        return tuple(f"{base}{size}" for base in ("uint", "ushort") for size in sizes)


ATTRIBUTES: Mapping[str, Attribute] = {
    name: Attribute(name, lanes)
    for name, lanes in (
        ("dispatch_quadgroups_per_threadgroup", 1),
        ("dispatch_simdgroups_per_threadgroup", 1),
        ("dispatch_threads_per_threadgroup", 3),
        ("grid_origin", 3),
        ("grid_size", 3),
        ("quadgroup_index_in_threadgroup", 1),
        ("quadgroups_per_threadgroup", 1),
        ("simdgroup_index_in_threadgroup", 1),
        ("simdgroups_per_threadgroup", 1),
        ("thread_execution_width", 1),
        ("thread_index_in_quadgroup", 1),
        ("thread_index_in_simdgroup", 1),
        ("thread_index_in_threadgroup", 1),
        ("thread_position_in_grid", 3),
        ("thread_position_in_threadgroup", 3),
        ("threadgroup_position_in_grid", 3),
        ("threadgroups_per_grid", 3),
        ("threads_per_grid", 3),
        ("threads_per_simdgroup", 1),
        ("threads_per_threadgroup", 3),
    )
}
_LIKE_ONE = re.compile(r"(?:thread|threads|threadgroup|simdgroups?|quadgroups?|dispatch)_(?:\w+_)?(?:in|per)_\w+")


def resembles_attribute(word: str) -> bool:
    """Whether `word` is built like the name of an attribute: `thread_position_in_gird`."""
    return _LIKE_ONE.fullmatch(word) is not None


def nearest_attributes(word: str) -> tuple[str, ...]:
    """The names of attributes that `word` may have meant, best first."""
    return tuple(difflib.get_close_matches(word, ATTRIBUTES, n=2, cutoff=0.6))
