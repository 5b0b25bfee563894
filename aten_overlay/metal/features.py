"""What some families of Apple's GPUs lack, in the compiled code of a kernel: found there, and refused at its line.

A source names more than its kernels use: overloads for `bfloat` stand in headers of kernels of floats. What a kernel
does use is compiled for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from aten_overlay.errors import OverlayError, Place
from aten_overlay.metal.family import REFUSED, Feature, select
from aten_overlay.metal.passes.ir import GLOBAL, functions
from aten_overlay.metal.source.declarations import Instance, Unit, find_definition
from aten_overlay.metal.source.reach import find_reached

_ROOTS = ("@pm_library", "@llvm.global_ctors")  # the table of kernels is made when the library is loaded
_VARIABLE = re.compile(rf"^({GLOBAL.pattern}) = (.*)$", re.MULTILINE)


def refuse_lacking(module: str, unit: Unit, instances: Iterable[Instance]) -> None:
    """Raises PTR276 for a feature that a module, LLVM IR of some kernels, has and the family asked for lacks."""
    family = select()
    if family is None or not family.lacks:
        return
    names = " ".join(_list_reached(module))
    for feature in family.lacks:
        if feature.mangled in names:
            what = f"family {family.name} has no {feature.what}"
            place = _find_place(unit, instances, feature)
            raise OverlayError(REFUSED, what, place, f"{feature.instead}, or name another family.")


def _list_reached(module: str) -> Iterator[str]:
    """The functions and variables that the library of a module needs."""
    refers = {name: module[start:end] for start, end, name in functions(module)}
    refers |= {match[1]: match[2] for match in _VARIABLE.finditer(module)}
    seen, frontier = {*_ROOTS}, [*_ROOTS]
    while frontier:
        name = frontier.pop()
        yield name
        new = {*GLOBAL.findall(refers.get(name, ""))} - seen
        seen |= new
        frontier += new


def _find_place(unit: Unit, instances: Iterable[Instance], feature: Feature) -> Place:
    """Where kernels first name a feature, or what they are called with it; their first line where none does."""
    source, chosen = unit.source, list(instances)
    reached = set().union(*(find_reached(unit, instance) for instance in chosen))
    declared = [declaration for i in chosen for declaration in (i.declaration, find_definition(unit, i).declaration)]
    needed = [entry.declaration for entry in unit.entries if entry.names and not reached.isdisjoint(entry.names)]
    for declaration in (*declared, *needed):
        for at in range(declaration.start, declaration.end):
            if re.fullmatch(feature.words, source.tokens[at]):
                return source.place(at)
    return source.place(declared[-1].start)
