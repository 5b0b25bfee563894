"""Programs with other sizes for their numbers, equal in their own calls, that also hold in calls of other ranks.

The number of rows may be a size of one tensor or all elements of another; only one of them is there in every call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from porter.loops.atoms import list_atoms
from porter.loops.building import CallProgram, Values, rebuild_program
from porter.loops.host_values import Arguments, Binary, HostValue, Number, Size, SizeProduct, evaluate, substitute
from porter.loops.program import SymbolicProgram

_MOST = 4  # expressions of a size
_TRIED = 16  # programs
_ASKED = 8  # own calls that have what may equal a size, which all are compared in then


def list_alternatives(
    program: SymbolicProgram, values: Values, calls: Sequence[CallProgram], others: Sequence[Arguments]
) -> Iterator[tuple[SymbolicProgram, Values]]:
    """The program with every choice of sizes that can be evaluated in other calls, and are not the same there."""
    sizes = list(dict.fromkeys(size for each in values if each is not None for size in _list_sizes(each)))
    own = [call.arguments for call in calls]
    atoms = [each for each in list_atoms(own[:_ASKED]) if isinstance(each, (Size, SizeProduct))]
    choices = [list(islice(_list_equal(each, atoms, own, others), _MOST)) for each in sizes]
    for chosen in islice(product(*choices), _TRIED):
        changes = dict(zip(sizes, chosen, strict=True))
        made = [substitute(each, changes) if each is not None else None for each in values]
        if made != list(values):
            yield rebuild_program(program, calls, made), made


def _list_sizes(value: HostValue) -> Iterator[HostValue]:
    if isinstance(value, Binary):
        yield from (*_list_sizes(value.left), *_list_sizes(value.right))
    elif isinstance(value, (Size, SizeProduct)):
        yield value


def _list_equal(
    size: HostValue, atoms: Sequence[HostValue], own: Sequence[Arguments], others: Sequence[Arguments]
) -> Iterator[HostValue]:
    """What equals a size in its own calls: one of those that are equal in other calls too, itself first."""
    here = [evaluate(size, call) for call in own]
    known: set[tuple[Number | None, ...]] = set()
    for atom in (size, *(each for each in atoms if each != size)):
        if all(evaluate(atom, call) == value for call, value in zip(own, here, strict=True)):
            there = tuple(evaluate(atom, call) for call in others)
            if None not in there and there not in known:
                known.add(there)
                yield atom
