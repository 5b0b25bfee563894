"""Records an operator at sizes of porter's own and finds its programs: loop nests with expressions for numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from porter.aten.condition import Condition
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.loops.building import CallProgram, Values, build_program, transfer_program
from porter.loops.program import Programs, SymbolicProgram
from porter.mpsgraph.graph import Value
from porter.recording.branches import find_distinguishing_conditions
from porter.recording.call_programs import read_call_program
from porter.recording.own_calls import capture_own_calls
from porter.recording.program_check import check_program
from porter.recording.record import RecordedRun, find_opinfos, run_call
from porter.verdict.errors import raising_porter_errors

SECONDS = 25.0  # to record one operator
_SIZES = (".sizes()", ".numel()")
_CHECKED = 6  # calls that another case's program is tried with


@dataclass(frozen=True)
class _Observed:
    """A call that ran, and its loop nests."""

    ran: RecordedRun
    program: CallProgram


@dataclass
class _Overload:
    """The calls of an overload, and why others have no loop nests."""

    observed: list[_Observed]
    left: list[PorterError]


def record_programs(base: str, through: Sequence[str] = ()) -> tuple[Programs, ...]:
    """The programs of every overload of an operator that OpInfo samples call. Its host code must be loaded."""
    from porter.verdict.suite.dispatched import check_gradients

    check_gradients()
    found: dict[str, _Overload] = {}
    for name, made in _record_calls(find_opinfos(base, through), base):
        overload = found.setdefault(name, _Overload([], []))
        if isinstance(made, PorterError):
            overload.left.append(made)
        else:
            overload.observed.append(made)
    return tuple(_find_programs(name, each) for name, each in sorted(found.items()))


def _record_calls(ops: Sequence[Any], base: str) -> Iterator[tuple[str, _Observed | PorterError]]:
    """Runs calls of all OpInfos, until time is up."""
    deadline = monotonic() + SECONDS
    for i, op in enumerate(ops):
        until = monotonic() + (deadline - monotonic()) / (len(ops) - i)
        for _, call in capture_own_calls(op, base, until - monotonic()):
            if monotonic() > until:
                break
            try:
                with raising_porter_errors():
                    ran = run_call(call)
                    yield call.name, _Observed(ran, read_call_program(ran))
            except PorterError as error:
                yield call.name, error
            except Exception:  # the fork's code rejects what the CPU accepts
                continue


@dataclass
class _Case:
    """A program, what its numbers are, and the calls that it computes."""

    program: SymbolicProgram
    values: Values
    calls: list[_Observed]


def _find_programs(name: str, overload: _Overload) -> Programs:
    """The cases of an overload; the most general program first, which others are tried with."""
    groups = sorted(_group(overload.observed), key=_count_numbers, reverse=True)
    cases: list[_Case] = []
    left = list(overload.left)
    unexplained: list[_Observed] = []
    for group in groups:
        if _join(cases, group):
            continue
        try:
            cases.append(_transfer(cases, group) or _make_case(name, group))
        except PorterError as error:
            left.append(error)
            unexplained += group
    programs = tuple(_with_conditions(case, cases, unexplained) for case in cases)
    return Programs(name, programs, tuple({(each.code, each.what): each for each in left}.values()))


def _make_case(name: str, group: list[_Observed]) -> _Case:
    """The case of a group of calls. Raises PTR363, PTR364 and PTR366."""
    program, values = build_program(name, [each.program for each in group])
    difference = _find_difference(program, group)
    if difference is not None:
        what = f"a program of {name} differs from the calls that it was found from: {difference}"
        raise PorterError("PTR366", what, hint="See docs/errors/PTR366.md.")
    return _Case(program, values, group)


def _transfer(cases: Sequence[_Case], group: list[_Observed]) -> _Case | None:
    """The case of calls with the numbers of another element type's program."""
    for case in cases:
        program = transfer_program(case.program, case.values, [each.program for each in group])
        if program is not None and _find_difference(program, group) is None:
            return _Case(program, case.values, group)
    return None


def _group(observed: Iterable[_Observed]) -> list[list[_Observed]]:
    """The calls of each element type and structure."""
    groups: dict[tuple[DType, str], list[_Observed]] = {}
    for each in observed:
        groups.setdefault((each.program.dtype, each.program.structure), []).append(each)
    return list(groups.values())


def _count_numbers(group: Sequence[_Observed]) -> tuple[bool, int, int]:
    """The order in which programs are found: those of many calls first, then those of many numbers."""
    first = group[0].program
    return len(group) > 4, len(first.numbers), len(group)


def _join(cases: Sequence[_Case], group: list[_Observed]) -> bool:
    """Adds calls to the first case whose program computes them, also at another element type."""
    first = group[0].program
    for case in cases:
        has_type = first.dtype in case.program.dtypes or first.structure == case.calls[0].program.structure
        if has_type and _find_difference(case.program, group) is None:
            dtypes = tuple(dict.fromkeys((*case.program.dtypes, first.dtype)))
            calls = (*case.program.calls, *(each.program.arguments for each in group))
            case.program = replace(case.program, dtypes=dtypes, calls=calls)
            case.calls = [*case.calls, *group]
            return True
    return False


def _find_difference(program: SymbolicProgram, group: Sequence[_Observed]) -> str | None:
    """How a program differs from some of the calls; None if it does not."""
    for each in group[:: max(1, len(group) // _CHECKED)]:
        try:
            with raising_porter_errors():
                found = check_program(program, each.ran)
        except PorterError as error:
            return error.what
        except (RuntimeError, IndexError, KeyError) as error:  # torch rejects an empty or missing operand
            return str(error)
        if found:
            return found
    return None


def _with_conditions(case: _Case, cases: Sequence[_Case], unexplained: Sequence[_Observed]) -> SymbolicProgram:
    """The program with the conditions that choose it among cases of the same element types."""
    others = [*unexplained, *(each for other in cases if other is not case for each in other.calls)]
    beside = [_list_facts(each) for each in others if each.program.dtype in case.program.dtypes]
    facts = [_list_facts(each) for each in case.calls]
    when: tuple[Condition, ...] = find_distinguishing_conditions(facts, beside) if beside else ()
    return replace(case.program, when=(*when, *case.program.when))


def _list_facts(observed: _Observed) -> dict[str, Value]:
    """What may choose a case: no sizes, which every call has its own of."""
    facts = observed.program.facts
    return {name: value for name, value in facts.items() if ".size(" not in name and not name.endswith(_SIZES)}
