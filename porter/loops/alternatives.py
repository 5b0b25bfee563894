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


def list_alternatives(
    program: SymbolicProgram, values: Values, calls: Sequence[CallProgram], others: Sequence[Arguments]
) -> Iterator[tuple[SymbolicProgram, Values]]:
    """The program with every choice of sizes that can be evaluated in other calls, and are not the same there."""
    sizes = list(dict.fromkeys(size for each in values if each is not None for size in _list_sizes(each)))
    own = [call.arguments for call in calls]
    atoms = [each for each in list_atoms(own) if isinstance(each, (Size, SizeProduct))]
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
    size: HostValue, atoms: Sequence[HostValue], calls: Sequence[Arguments], others: Sequence[Arguments]
) -> Iterator[HostValue]:
    """What equals a size in its calls: one of those that are equal in other calls too, itself first."""
    expected = [evaluate(size, call) for call in calls]
    known: set[tuple[Number, ...]] = set()
    for atom in (size, *atoms):
        there = [each for call in others if (each := evaluate(atom, call)) is not None]
        is_new = len(there) == len(others) and tuple(there) not in known
        if is_new and [evaluate(atom, call) for call in calls] == expected:
            known.add(tuple(there))
            yield atom
