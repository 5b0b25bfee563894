"""Programs with other sizes for their numbers, equal in their own calls, that also hold in calls of other ranks.

The number of rows may be a size of one tensor or all elements of another; only one of them is there in every call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    here, there = _evaluate_all((*sizes, *atoms), own), _evaluate_all((*sizes, *atoms), others)
    choices = [list(islice(_list_equal(each, atoms, here, there), _MOST)) for each in sizes]
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


_Evaluated = Mapping[HostValue, tuple[Number | None, ...]]


def _evaluate_all(values: Iterable[HostValue], calls: Sequence[Arguments]) -> _Evaluated:
    """What each value is in every call; None where it is nothing there."""
    return {value: tuple(evaluate(value, call) for call in calls) for value in dict.fromkeys(values)}


def _list_equal(
    size: HostValue, atoms: Sequence[HostValue], here: _Evaluated, there: _Evaluated
) -> Iterator[HostValue]:
    """What equals a size in its calls: one of those that are equal in other calls too, itself first."""
    known: set[tuple[Number | None, ...]] = set()
    for atom in (size, *atoms):
        values = there[atom]
        if None not in values and values not in known and here[atom] == here[size]:
            known.add(values)
            yield atom
