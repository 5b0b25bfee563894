"""Bit-fields, by the names that clang gives to what it makes of an access to one ("bf.load", "bf.clear", "bf.set")."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aten_overlay.metal.passes.ir import LOCAL, NotUnderstood, functions
from aten_overlay.metal.sanitizer.layouts import Layouts
from aten_overlay.metal.sanitizer.objects import Object, Objects

ACCESS = "%bf.load"
_LOAD = re.compile(rf"^  (%bf\.load\d*) = load (?:volatile )?i\d+, ptr ({LOCAL.pattern}), .*$", re.M)
_CLEARED = re.compile(r"^  (%bf\.clear\d*) = and i\d+ (%bf\.load\d*), ", re.M)
_SET = re.compile(r"^  %bf\.set\d* = or i\d+ (%bf\.clear\d*), ", re.M)


def find_bit_fields(module: str, layouts: Layouts) -> frozenset[tuple[str, int]]:
    """Types, and the bytes of them at which words of bit-fields start, of those that the module accesses."""
    texts = (module[start:end] for start, end, _ in functions(module))
    return frozenset(found for text in texts if ACCESS in text for found in _find_words(text, layouts))


def mark_kept(function: str, mark: str) -> str:
    """`function` with the loads marked whose other bit-fields a store leaves as they are."""
    cleared = dict(_CLEARED.findall(function))
    kept = {cleared[name] for name in _SET.findall(function) if name in cleared}
    return _LOAD.sub(lambda load: f"{load[0]}, {mark}" if load[1] in kept else load[0], function)


def _find_words(function: str, layouts: Layouts) -> Iterator[tuple[str, int]]:
    objects = Objects.read(function, layouts)
    for _, address in _LOAD.findall(function):
        try:
            found = objects.find(address)
            while found:
                yield found.kind, found.offset
                inner = dict(layouts.members(found.kind)).get(found.offset, "")
                found = Object(inner) if layouts.members(inner) else None
        except NotUnderstood:
            continue
