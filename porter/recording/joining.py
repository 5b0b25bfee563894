"""Cases of recorded calls, and which calls join the case of others: those that its program computes too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from porter.core.dtypes import BOOL
from porter.core.errors import PorterError
from porter.loops.building import CallProgram, Values, list_alternatives
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest
from porter.loops.host_values import Arguments
from porter.loops.optional import NEUTRAL, allow_left_out, is_explained, list_left_out, list_read, list_readers
from porter.loops.program import ArgumentBuffer, ResultBuffer, Role, SymbolicProgram, list_loaded
from porter.metal.loop_spelling import copies
from porter.mpsgraph.graph import Value
from porter.recording.call_programs import read_call_program
from porter.recording.concrete import expand_arguments
from porter.recording.evaluation import TooManyTurns, check_program
from porter.recording.runs import RecordedRun
from porter.verdict.errors import raising_porter_errors

Facts = Mapping[str, Value]
_MAX_READ = 3  # tensors that a call leaves out, to find numbers for
_CHECKED = 6  # calls that a program of their own structure is compared with
_JOINED = 48  # calls that another case's program is tried with


def split_by_flags(group: Sequence[Facts], cases: Sequence[Sequence[Facts]]) -> list[list[int]]:
    """The places of calls that agree in every fact which all calls of a case share, and by which cases differ."""
    flags = _list_flags(cases)
    parts: dict[str, list[int]] = {}
    for i, facts in enumerate(group):
        parts.setdefault(repr([facts.get(name) for name in flags]), []).append(i)
    return list(parts.values())


def order_cases(call: Facts, cases: Sequence[Sequence[Facts]]) -> list[int]:
    """The places of cases, those first that share most of the flags of a call: arguments, then what these are like."""
    flags = _list_flags(cases)
    shared = [[name for name in flags if case[0].get(name) == call.get(name)] for case in cases]
    return sorted(range(len(cases)), key=lambda i: (-sum(map(str.isidentifier, shared[i])), -len(shared[i])))


def _list_flags(cases: Sequence[Sequence[Facts]]) -> list[str]:
    names = dict.fromkeys(name for case in cases for name in case[0])
    return [name for name in names if _is_flag(name, cases)]


def _is_flag(name: str, cases: Sequence[Sequence[Facts]]) -> bool:
    """Whether the calls of each case agree in a fact, and those of all cases do not."""
    firsts = [repr(case[0].get(name)) for case in cases]
    if len(set(firsts)) == 1:
        return False
    return all(repr(facts.get(name)) == first for case, first in zip(cases, firsts, strict=True) for facts in case)


def compute_left_out(
    program: SymbolicProgram, call: Arguments, differs: Callable[[SymbolicProgram], bool]
) -> SymbolicProgram | None:
    """The program that computes a call too which leaves tensors out; None if there is none, or if several do.

    `differs` is whether a program differs from the call. Where the other values are huge, NaN or none, any number
    seems to stand for a tensor. Of one that nothing which the call asks for is computed from, any does, until a call
    tells which.
    """
    missing = list_left_out(program, call)
    if not missing:
        return None
    loaded = list_loaded(program).intersection(missing)
    unsettled = [name for name in missing if name in loaded and not is_explained(program, name)]
    read = dict.fromkeys((*list_read(program, missing), *unsettled))
    needed = [name for name in read if not list_readers(program, name).isdisjoint(call.tensors)]
    if len(needed) > _MAX_READ:
        return None
    found = None
    for numbers in product(NEUTRAL, repeat=len(needed)):
        neutral = {**dict.fromkeys(read, NEUTRAL[0]), **dict(zip(needed, numbers, strict=True))}
        made = allow_left_out(program, missing, neutral)
        if not differs(made):
            if found is not None:
                return None
            found = made
    return found


@dataclass(frozen=True)
class Observed:
    """A call that ran, and its loop nests."""

    ran: RecordedRun
    program: CallProgram


def observe(ran: RecordedRun) -> Observed:
    """The loop nests of a call, with the arguments expanded that its graphs expand. Raises as `read_call_program`."""
    ran = expand_arguments(ran)
    return Observed(ran, read_call_program(ran))


@dataclass
class Case:
    """A program, what its numbers are, and the calls that it computes."""

    program: SymbolicProgram
    values: Values
    calls: list[Observed]

    def take(self, group: Sequence[Observed], program: SymbolicProgram) -> None:
        """Adds calls, which a program computes too that takes the place of the case's."""
        calls = (*self.program.calls, *(observed.program.arguments for observed in group))
        self.program, self.calls = replace(program, calls=calls), [*self.calls, *group]

    def writes_as(self, call: CallProgram) -> bool:
        """Whether its kernels write what those of a call do: the same arguments and results."""
        nests = [each.nest for each in self.program.nests]
        return _list_written(nests, self.program.roles) == _list_written(call.nests, call.roles)


def join(cases: Sequence[Case], group: list[Observed]) -> bool:
    """Adds calls to the first case whose program computes them, also at another element type."""
    first = group[0].program
    for case in cases:
        has_type = (
            _returns_bools(first)  # whose two values the calls have
            or first.dtype in case.program.dtypes
            or first.structure == case.calls[0].program.structure
            or all(copies(store) for each in case.program.nests for store in each.nest.stores)  # of any type
        )
        if has_type and case.writes_as(first) and find_difference(case.program, group, _JOINED) is None:
            dtypes = tuple(dict.fromkeys((*case.program.dtypes, first.dtype)))
            case.take(group, replace(case.program, dtypes=dtypes))
            return True
    return False


def join_parts(cases: Sequence[Case], group: list[Observed]) -> bool:
    """Adds calls to the cases of their own flags, perhaps with other expressions for numbers; all of them or none."""
    if not cases:
        return False
    before = [replace(case) for case in cases]
    known = [[each.program.facts for each in case.calls] for case in cases]
    facts = [each.program.facts for each in group]
    for part in split_by_flags(facts, known):
        calls, ordered = [group[i] for i in part], [cases[i] for i in order_cases(facts[part[0]], known)]
        if not any(join([case], calls) or join_changed([case], calls) for case in ordered):
            for case, kept in zip(cases, before, strict=True):
                case.program, case.values, case.calls = kept.program, kept.values, kept.calls
            return False
    return True


def join_changed(cases: Sequence[Case], group: list[Observed]) -> bool:
    """Adds calls to the first case that computes them if its numbers are other expressions of its own calls."""
    first = group[0].program
    for case in cases:
        own = [each.program for each in case.calls if each.program.structure == case.calls[0].program.structure]
        if first.dtype not in case.program.dtypes or not case.writes_as(first):
            continue
        others = [each.program.arguments for each in group]
        for program, values in list_alternatives(case.program, case.values, own, others):
            if find_difference(program, group, _JOINED) is None and find_difference(program, case.calls) is None:
                case.take(group, replace(program, dtypes=case.program.dtypes))
                case.values = values
                return True
    return False


def leave_out(cases: Sequence[Case], group: list[Observed]) -> bool:
    """Adds calls to the first case whose program computes them too where tensors are left out."""
    first = group[0].program
    for case in cases:
        if first.dtype in case.program.dtypes:
            call = first.arguments
            made = compute_left_out(case.program, call, lambda each: find_difference(each, group) is not None)
            if made is not None:
                case.take(group, made)
                return True
    return False


def _list_written(nests: Iterable[LoopNest], roles: Mapping[Buffer, Role]) -> set[Role]:
    """The memory of the call that kernels write."""
    written = {roles[store.buffer] for nest in nests for store in nest.stores}
    return {each for each in written if isinstance(each, (ArgumentBuffer, ResultBuffer))}


def _returns_bools(program: CallProgram) -> bool:
    """Whether a call takes bools and returns some of them, with what else it returns."""
    result = program.arguments.tensors.get("result0")
    return program.dtype is BOOL and result is not None and result.dtype is BOOL


def join_cases(cases: list[Case]) -> list[Case]:
    """The cases without those whose calls one of more calls computes too: it may be found later."""
    found: list[Case] = []
    for case in sorted(cases, key=lambda case: (len(case.program.example.tensors), len(case.calls)), reverse=True):
        if not join(found, case.calls) and not leave_out(found, case.calls):
            found.append(case)
    return found


def find_difference(program: SymbolicProgram, group: Sequence[Observed], count: int = _CHECKED) -> str | None:
    """How a program differs from some of the calls; None if it does not. One of them at least is compared."""
    for i, each in enumerate(sorted(group, key=_count_elements)[:: max(1, len(group) // count)]):
        try:
            with raising_porter_errors():
                found = check_program(program, each.ran)
        except TooManyTurns as error:
            if i:  # the smaller ones agree
                return None
            return error.what
        except PorterError as error:
            return error.what
        except (RuntimeError, IndexError, KeyError) as error:  # torch rejects an empty or missing operand
            return str(error)
        if found:
            return found
    return None


def _count_elements(observed: Observed) -> int:
    return sum(tensor.numel() for tensor in observed.ran.call.tensors().values())
