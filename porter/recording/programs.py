"""Records an operator at sizes of porter's own and finds its programs: loop nests with expressions for numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import prod
from time import process_time

from porter.aten.condition import Condition
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.loops.alternatives import list_alternatives
from porter.loops.building import CallProgram, Values, build_program, transfer_program
from porter.loops.expressions import Buffer
from porter.loops.fit import MIN_CALLS
from porter.loops.fusion import LoopNest
from porter.loops.optional import join_flags
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, Role, SymbolicProgram
from porter.metal.loop_spelling import copies
from porter.mpsgraph.graph import Value
from porter.recording.branches import find_distinguishing_conditions, split_calls
from porter.recording.call_programs import read_call_program
from porter.recording.coordinates import find_map
from porter.recording.flags import order_cases, split_by_flags
from porter.recording.left_out import compute_left_out
from porter.recording.loop_values import TooManyTurns
from porter.recording.orders import find_order
from porter.recording.own_calls import OwnCall
from porter.recording.places import find_places
from porter.recording.program_check import check_program
from porter.recording.record import RecordedRun, find_opinfos
from porter.recording.resampling import find_resampling
from porter.recording.running import MORE_SECONDS, Near, run_calls, run_with_type
from porter.recording.windows import find_window
from porter.verdict.errors import raising_porter_errors

_SIZE = re.compile(r"\.size\(-?\d")
_SIZES = (".sizes()", ".numel()")
_ENOUGH = 8  # calls of a case
_TRIED = 40  # calls, to find these
_MAX_DEPTH = 2  # splits of a group of calls
_CHECKED = 6  # calls that a program of their own structure is compared with
_JOINED = 48  # calls that another case's program is tried with


@dataclass(frozen=True)
class _Observed:
    """A call that ran, and its loop nests."""

    ran: RecordedRun
    program: CallProgram


def record_programs(base: str, through: Sequence[str] = (), overloads: Sequence[str] = ()) -> tuple[Programs, ...]:
    """The programs of every overload of an operator that OpInfo samples call. Its host code must be loaded.

    Also of those of `overloads` that take the result's type besides what another one takes.
    """
    from porter.verdict.suite.dispatched import check_gradients

    check_gradients()
    found: dict[str, list[RecordedRun]] = {}
    origins: dict[int, OwnCall] = {}
    for ran, origin in run_calls(find_opinfos(base, through), base):
        found.setdefault(ran.call.name, []).append(ran)
        if origin is not None:
            origins[id(ran)] = origin
    found |= run_with_type([ran.call for runs in found.values() for ran in runs], set(overloads) - found.keys())
    more = Near(origins, process_time() + MORE_SECONDS)
    return tuple(_find_map_or_programs(name, runs, more) for name, runs in sorted(found.items()))


def _find_map_or_programs(name: str, runs: Sequence[RecordedRun], more: Near) -> Programs:
    """What an overload moves, resamples, pools, sorts or places, at any sizes; programs only where it does not."""
    if found := find_map(runs) or find_resampling(runs) or find_window(runs):
        return Programs(name, (), (), found)
    if order := find_order(runs):
        return Programs(name, (), order=order)
    if places := find_places(runs):
        return Programs(name, (), places=places)
    return find_programs(name, runs, more.run_near)


@dataclass
class _Case:
    """A program, what its numbers are, and the calls that it computes."""

    program: SymbolicProgram
    values: Values
    calls: list[_Observed]


More = Callable[[RecordedRun], Iterable[RecordedRun]]  # calls like one


def find_programs(name: str, runs: Iterable[RecordedRun], more: More = lambda ran: ()) -> Programs:
    """The cases of an overload; the most general program first, which others are tried with.

    A case of few calls gets those of `more` that are like its own.
    """
    observed, left = _read_runs(runs)
    cases: list[_Case] = []
    failed: list[tuple[list[_Observed], PorterError]] = []
    for group in sorted(_group(observed), key=_count_numbers, reverse=True):
        if _join_parts(cases, group) or _leave_out(cases, group):
            continue
        try:
            made = _transfer(cases, group)
            cases += [made] if made else _make_cases(name, _find_more(group, more), more)
        except PorterError as error:
            if not all(map(_is_single, group)):  # calls of one element are run, not recorded
                failed.append((group, error))
    cases = _drop_single(_join_cases(cases))
    failed = [each for each in failed if not _join(cases, each[0]) and not _leave_out(cases, each[0])]
    for case in cases:
        case.program = join_flags(case.program)
    left += [error for _, error in failed]
    unexplained = [each for group, _ in failed for each in group]
    programs = tuple(_with_conditions(case, cases, unexplained) for case in cases)
    return Programs(name, programs, tuple({(each.code, each.what): each for each in left}.values()))


def _find_more(group: list[_Observed], more: More) -> list[_Observed]:
    """The calls of a group; if these are few, with others of their structure."""
    found = {repr(each.program.arguments): each for each in group}
    if len(found) >= MIN_CALLS:
        return group
    first = group[0].program
    runs = islice(chain.from_iterable(more(each.ran) for each in group), _TRIED)
    for each in (observed for ran in runs for observed in _read_runs((ran,))[0]):
        if (each.program.dtype, each.program.structure) == (first.dtype, first.structure):
            found.setdefault(repr(each.program.arguments), each)
        if len(found) >= _ENOUGH:
            break
    return list(found.values())


def _drop_single(cases: list[_Case]) -> list[_Case]:
    """The cases without those of one element alone, if others are of these types: theirs compute such calls too."""
    known = {dtype for case in cases if not all(map(_is_single, case.calls)) for dtype in case.program.dtypes}
    return [case for case in cases if not all(map(_is_single, case.calls)) or not known.issuperset(case.program.dtypes)]


def _without_single(calls: Sequence[_Observed]) -> list[_Observed]:
    """The calls of more than one element, if there are some: of one, many cases compute the same."""
    return [each for each in calls if not _is_single(each)] or list(calls)


def _is_single(observed: _Observed) -> bool:
    """Whether the first tensor argument has one element."""
    return prod(observed.program.arguments.tensors[observed.program.key].shape) == 1


def _read_runs(runs: Iterable[RecordedRun]) -> tuple[list[_Observed], list[PorterError]]:
    """The loop nests of calls, and why others have none."""
    observed: list[_Observed] = []
    left: list[PorterError] = []
    for ran in runs:
        if not ran.runs:  # host code answers this call: it returns before it builds a graph
            continue
        try:
            observed.append(_Observed(ran, read_call_program(ran)))
        except PorterError as error:
            if not _has_one_element(ran):
                left.append(error)
    return observed, left


def _has_one_element(ran: RecordedRun) -> bool:
    return all(tensor.numel() == 1 for tensor in ran.call.tensors().values())


def _make_cases(name: str, group: list[_Observed], more: More, depth: int = _MAX_DEPTH) -> list[_Case]:
    """The case of a group of calls; or those of calls with a flag, a string or an option, and of calls without.

    Raises PTR363, PTR364 and PTR366.
    """
    try:
        return [_make_case(name, group)]
    except PorterError as error:
        if error.code != "PTR363" or not depth:
            raise
        for halves in split_calls(group, [_list_facts(each) for each in group]):
            with suppress(PorterError):
                return [case for half in halves for case in _make_cases(name, _find_more(half, more), more, depth - 1)]
        raise


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
        has_type = (
            first.dtype in case.program.dtypes
            or first.structure == case.calls[0].program.structure
            or _moves_elements(case.program)
        )
        writes = [each.nest for each in case.program.nests], case.program.roles
        if (
            has_type
            and _list_written(*writes) == _list_written(first.nests, first.roles)
            and _find_difference(case.program, group, _JOINED) is None
        ):
            dtypes = tuple(dict.fromkeys((*case.program.dtypes, first.dtype)))
            calls = (*case.program.calls, *(each.program.arguments for each in group))
            case.program = replace(case.program, dtypes=dtypes, calls=calls)
            case.calls = [*case.calls, *group]
            return True
    return False


def _join_parts(cases: Sequence[_Case], group: list[_Observed]) -> bool:
    """Adds calls to the cases of their own flags, perhaps with other expressions for numbers; all of them or none."""
    if not cases:
        return False
    before = [(case.program, case.values, case.calls) for case in cases]
    known = [[_list_facts(each) for each in case.calls] for case in cases]
    facts = [_list_facts(each) for each in group]
    for part in split_by_flags(facts, known):
        calls, ordered = [group[i] for i in part], [cases[i] for i in order_cases(facts[part[0]], known)]
        if not any(_join([case], calls) or _join_changed([case], calls) for case in ordered):
            for case, (program, values, own) in zip(cases, before, strict=True):
                case.program, case.values, case.calls = program, values, own
            return False
    return True


def _join_changed(cases: Sequence[_Case], group: list[_Observed]) -> bool:
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
            if _find_difference(program, group, _JOINED) is None and _find_difference(program, case.calls) is None:
                calls = (*case.program.calls, *others)
                case.program = replace(program, dtypes=case.program.dtypes, calls=calls)
                case.values = values
                case.calls = [*case.calls, *group]
                return True
    return False


def _leave_out(cases: Sequence[_Case], group: list[_Observed]) -> bool:
    """Adds calls to the first case whose program computes them too where tensors are left out."""
    first = group[0].program
    for case in cases:
        if first.dtype in case.program.dtypes:
            call = first.arguments
            made = compute_left_out(case.program, call, lambda each: _find_difference(each, group) is not None)
            if made is not None:
                case.program = replace(made, calls=(*made.calls, *(each.program.arguments for each in group)))
                case.calls = [*case.calls, *group]
                return True
    return False


def _list_written(nests: Iterable[LoopNest], roles: Mapping[Buffer, Role]) -> set[Role]:
    """The memory of the call that kernels write."""
    written = {roles[store.buffer] for nest in nests for store in nest.stores}
    return {each for each in written if isinstance(each, (ArgumentBuffer, ResultBuffer))}


def _moves_elements(program: SymbolicProgram) -> bool:
    """Whether nothing is computed of elements, which can be of any type then."""
    return all(copies(store) for each in program.nests for store in each.nest.stores)


def _join_cases(cases: list[_Case]) -> list[_Case]:
    """The cases without those whose calls one of more calls computes too: it may be found later."""
    found: list[_Case] = []
    for case in sorted(cases, key=_count_tensors, reverse=True):
        if not _join(found, case.calls) and not _leave_out(found, case.calls):
            found.append(case)
    return found


def _count_tensors(case: _Case) -> tuple[int, int]:
    return len(case.program.example.tensors), len(case.calls)


def _find_difference(program: SymbolicProgram, group: Sequence[_Observed], count: int = _CHECKED) -> str | None:
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


def _count_elements(observed: _Observed) -> int:
    return sum(tensor.numel() for tensor in observed.ran.call.tensors().values())


def _with_conditions(case: _Case, cases: Sequence[_Case], unexplained: Sequence[_Observed]) -> SymbolicProgram:
    """The program with the conditions that choose it among cases of the same element types."""
    beside_it = (each for other in cases if other is not case for each in _without_single(other.calls))
    others = [*unexplained, *beside_it]
    beside = [_list_facts(each) for each in others if each.program.dtype in case.program.dtypes]
    facts = [_list_facts(each) for each in _without_single(case.calls)]
    when: tuple[Condition, ...] = find_distinguishing_conditions(facts, beside) if beside else ()
    return replace(case.program, when=(*when, *case.program.when))


def _list_facts(observed: _Observed) -> dict[str, Value]:
    """What may choose a case: no sizes, which every call has its own of."""
    facts = observed.program.facts
    return {name: value for name, value in facts.items() if not _SIZE.search(name) and not name.endswith(_SIZES)}
