"""Cases of recorded calls, and which calls join the case of others: those that its program computes too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from porter.core.dtypes import BOOL
from porter.core.errors import PorterError
from porter.loops.building import CallProgram, Values, list_alternatives
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest
from porter.loops.program import ArgumentBuffer, ResultBuffer, Role, SymbolicProgram
from porter.metal.loop_spelling import copies
from porter.mpsgraph.graph import Value
from porter.recording.call_programs import read_call_program
from porter.recording.expanded import expand_arguments
from porter.recording.flags import order_cases, split_by_flags
from porter.recording.left_out import compute_left_out
from porter.recording.loop_values import TooManyTurns
from porter.recording.program_check import check_program
from porter.recording.record import RecordedRun
from porter.verdict.errors import raising_porter_errors

_SIZE = re.compile(r"\.size\(-?\d")
_SIZES = (".sizes()", ".numel()")
_CHECKED = 6  # calls that a program of their own structure is compared with
_JOINED = 48  # calls that another case's program is tried with


@dataclass(frozen=True)
class Observed:
    """A call that ran, and its loop nests."""

    ran: RecordedRun
    program: CallProgram

    @cached_property
    def facts(self) -> dict[str, Value]:
        """What may choose a case: no sizes, which every call has its own of."""
        facts = self.program.facts
        return {name: value for name, value in facts.items() if not _SIZE.search(name) and not name.endswith(_SIZES)}


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


def join(cases: Sequence[Case], group: list[Observed]) -> bool:
    """Adds calls to the first case whose program computes them, also at another element type."""
    first = group[0].program
    for case in cases:
        has_type = (
            _returns_bools(first)  # whose two values the calls have
            or first.dtype in case.program.dtypes
            or first.structure == case.calls[0].program.structure
            or _moves_elements(case.program)
        )
        writes = [each.nest for each in case.program.nests], case.program.roles
        if (
            has_type
            and _list_written(*writes) == _list_written(first.nests, first.roles)
            and find_difference(case.program, group, _JOINED) is None
        ):
            dtypes = tuple(dict.fromkeys((*case.program.dtypes, first.dtype)))
            calls = (*case.program.calls, *(each.program.arguments for each in group))
            case.program = replace(case.program, dtypes=dtypes, calls=calls)
            case.calls = [*case.calls, *group]
            return True
    return False


def join_parts(cases: Sequence[Case], group: list[Observed]) -> bool:
    """Adds calls to the cases of their own flags, perhaps with other expressions for numbers; all of them or none."""
    if not cases:
        return False
    before = [(case.program, case.values, case.calls) for case in cases]
    known = [[each.facts for each in case.calls] for case in cases]
    facts = [each.facts for each in group]
    for part in split_by_flags(facts, known):
        calls, ordered = [group[i] for i in part], [cases[i] for i in order_cases(facts[part[0]], known)]
        if not any(join([case], calls) or join_changed([case], calls) for case in ordered):
            for case, (program, values, own) in zip(cases, before, strict=True):
                case.program, case.values, case.calls = program, values, own
            return False
    return True


def join_changed(cases: Sequence[Case], group: list[Observed]) -> bool:
    """Adds calls to the first case that computes them if its numbers are other expressions of its own calls."""
    first = group[0].program
    for case in cases:
        own = [each.program for each in case.calls if each.program.structure == case.calls[0].program.structure]
        if first.dtype not in case.program.dtypes:
            continue
        writes = [each.nest for each in case.program.nests], case.program.roles
        if _list_written(*writes) != _list_written(first.nests, first.roles):
            continue
        others = [each.program.arguments for each in group]
        for program, values in list_alternatives(case.program, case.values, own, others):
            if find_difference(program, group, _JOINED) is None and find_difference(program, case.calls) is None:
                calls = (*case.program.calls, *others)
                case.program = replace(program, dtypes=case.program.dtypes, calls=calls)
                case.values = values
                case.calls = [*case.calls, *group]
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
                case.program = replace(made, calls=(*made.calls, *(each.program.arguments for each in group)))
                case.calls = [*case.calls, *group]
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


def _moves_elements(program: SymbolicProgram) -> bool:
    """Whether nothing is computed of elements, which can be of any type then."""
    return all(copies(store) for each in program.nests for store in each.nest.stores)


def join_cases(cases: list[Case]) -> list[Case]:
    """The cases without those whose calls one of more calls computes too: it may be found later."""
    found: list[Case] = []
    for case in sorted(cases, key=_count_tensors, reverse=True):
        if not join(found, case.calls) and not leave_out(found, case.calls):
            found.append(case)
    return found


def _count_tensors(case: Case) -> tuple[int, int]:
    return len(case.program.example.tensors), len(case.calls)


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
