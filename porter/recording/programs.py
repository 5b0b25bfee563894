"""Records an operator at sizes of porter's own and finds its programs: loop nests with expressions for numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from porter.aten.condition import Condition
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.loops.building import CallProgram, build_program
from porter.loops.program import Programs, SymbolicProgram
from porter.recording.branches import find_distinguishing_conditions
from porter.recording.call_programs import read_call_program
from porter.recording.own_calls import capture_own_calls
from porter.recording.program_check import check_program
from porter.recording.record import RecordedRun, find_opinfos, run_call
from porter.verdict.errors import raising_porter_errors

SECONDS = 25.0  # to record one operator
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


def _find_programs(name: str, overload: _Overload) -> Programs:
    """The cases of an overload; the most general program first, which others are tried with."""
    groups = sorted(_group(overload.observed), key=_count_numbers, reverse=True)
    made: list[tuple[SymbolicProgram, list[_Observed]]] = []
    left = list(overload.left)
    unexplained: list[list[_Observed]] = []
    for group in groups:
        if _join(made, group):
            continue
        try:
            program = build_program(name, [each.program for each in group])
            if (difference := _find_difference(program, group)) is not None:
                what = f"a program of {name} differs from the calls that it was found from: {difference}"
                raise PorterError("PTR366", what, hint="See docs/errors/PTR366.md.")
            made.append((program, group))
        except PorterError as error:
            left.append(error)
            unexplained.append(group)
    cases = tuple(_with_conditions(made, i, unexplained) for i in range(len(made)))
    return Programs(name, cases, tuple({(each.code, each.what): each for each in left}.values()))


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


def _join(made: list[tuple[SymbolicProgram, list[_Observed]]], group: list[_Observed]) -> bool:
    """Adds calls to the first case whose program computes them, also at another element type."""
    for i, (program, others) in enumerate(made):
        first, other = group[0].program, others[0].program
        has_type = first.dtype in program.dtypes or first.structure == other.structure
        if has_type and _find_difference(program, group) is None:
            dtypes = tuple(dict.fromkeys((*program.dtypes, first.dtype)))
            calls = (*program.calls, *(each.program.arguments for each in group))
            made[i] = replace(program, dtypes=dtypes, calls=calls), [*others, *group]
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


def _with_conditions(
    made: Sequence[tuple[SymbolicProgram, list[_Observed]]], at: int, unexplained: Sequence[list[_Observed]]
) -> SymbolicProgram:
    """The program with the conditions that choose it among cases of the same element types."""
    program, group = made[at]
    others = [calls for i, (_, calls) in enumerate(made) if i != at] + list(unexplained)
    beside = [each.program.facts for calls in others for each in calls if each.program.dtype in program.dtypes]
    facts = [each.program.facts for each in group]
    when: tuple[Condition, ...] = find_distinguishing_conditions(facts, beside) if beside else ()
    return replace(program, when=(*when, *program.when))
