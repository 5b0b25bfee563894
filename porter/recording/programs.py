"""Records an operator at sizes of porter's own and finds its programs: loop nests with expressions for numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, combinations, islice, product
from math import prod

import torch

from porter.core.dtypes import DType, Kind
from porter.core.errors import PorterError, explained
from porter.loops.building import build_program, transfer_program
from porter.loops.fit import MIN_CALLS
from porter.loops.optional import is_explained, join_flags
from porter.loops.program import Programs, SymbolicProgram, list_loaded
from porter.metal.forms import Computation, FormProgram
from porter.mpsgraph.conditions import UNKNOWN
from porter.recording.call_programs import read_call_arguments
from porter.recording.calls import OpCall, spent
from porter.recording.cases import find_distinguishing_conditions, split_calls
from porter.recording.conversions import find_required_sizes, keep_nan, with_conversions
from porter.recording.forms import find_form
from porter.recording.joining import (
    Case,
    Observed,
    find_difference,
    join,
    join_cases,
    join_changed,
    join_parts,
    leave_out,
    observe,
)
from porter.recording.probe_calls import ProbeCall
from porter.recording.record import find_opinfos
from porter.recording.running import MORE_STEPS, Near, UnexplainedCalls, read_runs, run_calls, run_with_type
from porter.recording.runs import RecordedRun
from porter.recording.varied_calls import ask_alone, list_optional

_ENOUGH = 8  # calls of a case
_TRIED = 40  # calls, to find these
_MAX_DEPTH = 2  # splits of a group of calls


def record_programs(base: str, through: Sequence[str] = (), overloads: Sequence[str] = ()) -> tuple[Computation, ...]:
    """The programs of every overload of an operator that OpInfo samples call. Its host code must be loaded.

    Also of those of `overloads` that take the result's type besides what another one takes.
    """
    from porter.verdict.suite.dispatched import check_gradients

    check_gradients()
    found: dict[str, list[RecordedRun]] = {}
    origins: dict[int, ProbeCall] = {}
    lost = UnexplainedCalls()
    for ran, origin in run_calls(find_opinfos(base, through), base, lost):
        found.setdefault(ran.call.name, []).append(ran)
        if origin is not None:
            origins[id(ran)] = origin
    plain: dict[int, RecordedRun] = {}
    for ran, source in run_with_type(list(chain.from_iterable(found.values())), set(overloads) - found.keys(), lost):
        found.setdefault(ran.call.name, []).append(ran)
        plain[id(ran)] = source
    made: list[Computation] = [
        _find_form_or_programs(name, runs, Near(origins, plain, spent() + MORE_STEPS, lost), lost)
        for name, runs in sorted(found.items())
    ]  # each with steps of its own
    made += [_refuse_all(name, lost) for name in sorted(lost.found.keys() - found.keys())]
    made = [with_conversions(each, found.get(each.name, ())) if isinstance(each, Programs) else each for each in made]
    return tuple(replace(each, lost=lost.list_of(each.name)) for each in made)


def _refuse_all(name: str, lost: UnexplainedCalls) -> Programs:
    """What is known of an overload all of whose calls raise."""
    why = lost.list_of(name)[0].why
    error = explained("PTR419", f"every call of {name} raises: {why}")
    return Programs(name, (), (error,))


def _find_form_or_programs(name: str, runs: Sequence[RecordedRun], more: Near, lost: UnexplainedCalls) -> Computation:
    """The form of an overload, at any sizes; else programs."""
    form = find_form(runs)
    if form is None:
        return find_programs(name, runs, more.run_near, lost, more.run_again)
    calls = tuple(read_call_arguments(run.call, run.made) for run in runs)
    return FormProgram(name, form, calls, sizes=find_required_sizes([runs]))


More = Callable[[RecordedRun], Iterable[RecordedRun]]  # calls like one


def find_programs(
    name: str,
    runs: Iterable[RecordedRun],
    more: More = lambda ran: (),
    lost: UnexplainedCalls | None = None,
    run: Run | None = None,
) -> Programs:
    """The cases of an overload; the most general program first, which others are tried with.

    A case of few calls gets those of `more` that are like its own. Calls of one element that no case computes are
    `lost`. By `run`, calls without optional tensors are tried that all calls of a case give, and calls of a case with
    as many dimensions as others have.
    """
    lost = UnexplainedCalls() if lost is None else lost
    observed, left = read_runs(runs, lost)
    cases: list[Case] = []
    failed = _add_cases(cases, name, observed, more)
    if run:
        failed += _add_cases(cases, name, read_runs(run_at_other_types(cases, run), UnexplainedCalls())[0], more)
    cases, dropped = _drop_single(join_cases(cases))
    if run:
        for case in cases:
            cover_ranks(case, cases, run)
    failed = [each for each in failed if not join(cases, each[0]) and not leave_out(cases, each[0])]
    ranks = {rank for case in cases for rank in _list_ranks(case.calls)}
    for group, why in failed:
        if _is_beside(group, ranks):
            lost.add_all(name, (each.program.arguments for each in group), why.what)
    lost.add_all(name, (call for case in dropped for call in case.program.calls), "its graph is one of single elements")
    failed = [each for each in failed if not _is_beside(each[0], ranks)]
    for case in cases:
        required = cover_left_out(case, run) if run else ()
        case.program = join_flags(replace(case.program, required=required))
    cases = join_cases(cases)  # what leaves out tensors that a case needs no more
    for case in cases:
        case.program = keep_nan(case.program, [call.ran for call in case.calls])
    left += [error for _, error in failed]
    unexplained = [each for group, _ in failed for each in group]
    programs = [_with_conditions(case, cases, unexplained) for case in cases]
    if cases and all(UNKNOWN in each.when for each in programs):
        apart = [replace(case, calls=_list_own(case, cases)) for case in cases]
        programs = [_with_conditions(case, apart, unexplained) for case in apart]
    sizes = find_required_sizes([call.ran for call in case.calls] for case in cases if run)
    return Programs(name, tuple(programs), tuple({(each.code, each.what): each for each in left}.values()), sizes=sizes)


def _add_cases(
    cases: list[Case], name: str, observed: Sequence[Observed], more: More
) -> list[tuple[list[Observed], PorterError]]:
    """Extends cases by calls, and adds cases of the rest; the calls that have none, and why."""
    failed: list[tuple[list[Observed], PorterError]] = []
    # The calls of each element type and structure.
    groups: dict[tuple[DType, str], list[Observed]] = {}
    for each in observed:
        groups.setdefault((each.program.dtype, each.program.structure), []).append(each)
    for group in sorted(groups.values(), key=_count_numbers, reverse=True):
        if join_parts(cases, group):  # tensors are left out of the cases that come of all
            continue
        try:
            made = _transfer(cases, group)
            cases += [made] if made else _make_cases(name, _find_more(group, more), more)
        except PorterError as error:
            failed.append((group, error))
    return failed


def _find_more(group: list[Observed], more: More) -> list[Observed]:
    """The calls of a group; if these are few, with others of their structure."""
    found = {repr(each.program.arguments): each for each in group}
    if len(found) >= MIN_CALLS:
        return group
    first = group[0].program
    runs = islice(chain.from_iterable(more(each.ran) for each in group), _TRIED)
    for each in (observed for ran in runs for observed in read_runs((ran,), UnexplainedCalls())[0]):
        if (each.program.dtype, each.program.structure) == (first.dtype, first.structure):
            found.setdefault(repr(each.program.arguments), each)
        if len(found) >= _ENOUGH:
            break
    return list(found.values())


def _drop_single(cases: list[Case]) -> tuple[list[Case], list[Case]]:
    """The cases without those of one element alone, if others are of these types: theirs compute such calls too.

    With those that are dropped.
    """
    known = {dtype for case in cases if not all(map(_is_single, case.calls)) for dtype in case.program.dtypes}

    def is_dropped(case: Case) -> bool:
        return all(map(_is_single, case.calls)) and known.issuperset(case.program.dtypes)

    return [case for case in cases if not is_dropped(case)], [case for case in cases if is_dropped(case)]


def _without_single(calls: Sequence[Observed]) -> list[Observed]:
    """The calls of more than one element, if there are some: of one, many cases compute the same."""
    return [each for each in calls if not _is_single(each)] or list(calls)


def _is_single(observed: Observed) -> bool:
    """Whether no tensor argument and no result has more than one element."""
    return all(prod(each.shape) == 1 for each in observed.program.arguments.tensors.values())


def _list_ranks(calls: Sequence[Observed]) -> set[int]:
    """The most dimensions of a tensor, in calls."""
    return {max(len(each.shape) for each in call.program.arguments.tensors.values()) for call in calls}


def _is_beside(group: Sequence[Observed], ranks: set[int]) -> bool:
    """Whether calls that no case computes are of one element, or of dimensions that no case has, which a port refuses.

    Those of one element other cases compute too, though not as the graph does.
    """
    return all(map(_is_single, group)) or (bool(ranks) and ranks.isdisjoint(_list_ranks(group)))


def _make_cases(name: str, group: list[Observed], more: More, depth: int = _MAX_DEPTH) -> list[Case]:
    """The case of a group of calls; or those of calls with a flag, a string or an option, and of calls without.

    Raises PTR363, PTR364 and PTR366.
    """
    try:
        # The case of a group of calls. Raises PTR363, PTR364 and PTR366.
        program, values = build_program(name, [each.program for each in group])
        difference = find_difference(program, group)
        if difference is not None:
            what = f"a program of {name} differs from the calls that it was found from: {difference}"
            raise explained("PTR366", what)
        return [Case(program, values, group)]
    except PorterError as error:
        if error.code != "PTR363" or not depth:
            raise
        for halves in split_calls(group, [each.program.facts for each in group]):
            with suppress(PorterError):
                return [case for half in halves for case in _make_cases(name, _find_more(half, more), more, depth - 1)]
        raise


def _transfer(cases: Sequence[Case], group: list[Observed]) -> Case | None:
    """The case of calls with the numbers of another element type's program."""
    for case in cases:
        program = transfer_program(case.program, case.values, [each.program for each in group])
        if program is not None and find_difference(program, group) is None:
            return Case(program, case.values, group)
    return None


def _count_numbers(group: Sequence[Observed]) -> tuple[bool, int, int]:
    """The order in which programs are found: those of many calls first, then those of many numbers."""
    first = group[0].program
    return len(group) > 4, len(first.numbers), len(group)


def _list_own(case: Case, cases: Sequence[Case]) -> list[Observed]:
    """The calls of a case that no other one computes too, as several do where a size is 1: either may be chosen."""
    beside = [other for other in cases if other is not case]
    return [
        each
        for each in case.calls
        if not any(
            each.program.dtype in other.program.dtypes and find_difference(other.program, [each]) is None
            for other in beside
        )
    ]


def _with_conditions(case: Case, cases: Sequence[Case], unexplained: Sequence[Observed]) -> SymbolicProgram:
    """The program with the conditions that choose it among cases of the same element types."""
    beside_it = (each for other in cases if other is not case for each in _without_single(other.calls))
    others = [*unexplained, *beside_it]
    beside = [each.program.facts for each in others if each.program.dtype in case.program.dtypes]
    facts = [each.program.facts for each in _without_single(case.calls)]
    when = find_distinguishing_conditions(facts, beside) if beside else ()
    return replace(case.program, when=(*when, *case.program.when))


# Extends the cases of an overload by calls that samples do not make: without tensors, of other ranks and types. Steps
# may end before every choice of tensors is recorded at every type: a case of the rest would seem to need none.


Run = Callable[[OpCall], Iterable[RecordedRun]]  # the run of a call; none of one that raises
_TRIED_CALLS = 2  # calls of a case that tensors are left out of
_MOST = 3  # tensors of which all choices are left out; of more, one or two at once
_TRIED_OF_RANK = 3  # calls of the same dimensions
_MOST_RANKS = 3  # choices of dimensions
_STEPS = 400_000  # with what is read of the calls meanwhile
_TRIED_OF_CASE = 6  # calls of another case


def cover_left_out(case: Case, run: Run) -> tuple[str, ...]:
    """Extends a case by calls without tensors that its calls give; the tensors without which calls raise.

    A call is also tried with each of its results alone: host code may need a tensor for those that belong to it.
    A tensor is not among them if no program computes a call without it.
    """
    tensors = list(_list_unexplained(case))
    required = set(tensors)
    counts = range(1, len(tensors) + 1 if len(tensors) <= _MOST else 3)
    choices = list(chain.from_iterable(combinations(tensors, count) for count in counts))
    for call, left_out in product(_pick_calls(case), choices):
        made = call.with_arguments(dict.fromkeys(left_out))
        if not all(_cover(case, run, each) for each in (made, *ask_alone(made))):
            required.difference_update(left_out)
    return tuple(each for each in _list_unexplained(case) if each in required)


def _list_unexplained(case: Case) -> Iterator[str]:
    """The optional tensors that kernels read, and that all calls give which ask for what is computed from them."""
    read = list_loaded(case.program)
    for name in dict.fromkeys(name for each in case.calls for name in list_optional(each.ran.call)):
        if name in read and not is_explained(case.program, name):
            yield name


def _pick_calls(case: Case) -> list[OpCall]:
    """Calls that differ in their tensors, those of the most first; of each choice the one of the most numbers.

    Any number seems to stand for a tensor that NaN or zero is multiplied by.
    """
    found: dict[tuple[str, ...], OpCall] = {}
    for each in sorted(case.calls, key=lambda each: (-len(each.program.arguments.tensors), _share_others(each.ran))):
        found.setdefault(tuple(each.program.arguments.tensors), each.ran.call)
    return list(found.values())[:_TRIED_CALLS]


def _share_others(ran: RecordedRun) -> float:
    """The share of elements of results that are NaN, infinite or zero."""
    elements = torch.cat([each.detach().cpu().flatten().double() for each in ran.results])
    others = ~elements.isfinite() | (elements == 0)
    return float(others.double().mean()) if elements.numel() else 1.0


def _cover(case: Case, run: Run, call: OpCall) -> bool:
    """Whether a call raises, or the case computes it."""
    try:
        return all(leave_out([case], [observe(ran)]) for ran in run(call) if ran.tells_results)
    except PorterError:
        return False


Ranks = tuple[tuple[str, int], ...]


def cover_ranks(case: Case, cases: Sequence[Case], run: Run) -> None:
    """Extends a case by calls with the tensors of other cases, and its own numbers and flags, which it computes too."""
    known = {_describe_ranks(each.ran.call) for each in case.calls}
    beside: dict[Ranks, list[Observed]] = {}
    for each in (each for other in cases if other is not case for each in other.calls):
        if each.program.dtype == case.calls[0].program.dtype and _describe_ranks(each.ran.call) not in known:
            beside.setdefault(_describe_ranks(each.ran.call), []).append(each)
    for others in islice(beside.values(), _MOST_RANKS):
        found: dict[str, list[Observed]] = {}
        for each in _run_with_tensors(case, others[:_TRIED_OF_RANK], run):
            found.setdefault(each.program.structure, []).append(each)
        for group in found.values():
            if not join([case], group):
                join_changed([case], group)


def _run_with_tensors(case: Case, others: Sequence[Observed], run: Run) -> Iterator[Observed]:
    """The calls of a case's arguments with tensors of others, as far as they do not raise and have a program."""
    own = case.calls[0].ran.call
    for other in (each.ran.call for each in others):
        for ran in run(_take_tensors(own, other)) if own.tensors().keys() == other.tensors().keys() else ():
            with suppress(PorterError):
                yield observe(ran)


def _take_tensors(own: OpCall, other: OpCall) -> OpCall:
    """A call with the tensors and lists of another."""
    kept = (bool, int, float, complex, str, torch.dtype, type(None))
    changed = {name: value for name, value in own.arguments.items() if isinstance(value, kept)}
    return other.with_arguments(changed)


def _describe_ranks(call: OpCall) -> Ranks:
    return tuple((name, tensor.ndim) for name, tensor in call.tensors().items())


def run_at_other_types(cases: Sequence[Case], run: Run) -> Iterator[RecordedRun]:
    """Runs calls of other cases at the floating types of cases that lack their tensors, each once."""
    seen: set[tuple[int, DType]] = set()
    until = spent() + _STEPS
    for case in cases:
        for dtype in (each for each in case.program.dtypes if each.kind is Kind.FLOATING):
            for call in _list_with_more(case, dtype, cases):
                if (id(call), dtype) not in seen and spent() < until:
                    seen.add((id(call), dtype))
                    yield from run(_cast(call, dtype))


def _list_with_more(case: Case, dtype: DType, cases: Sequence[Case]) -> Iterator[OpCall]:
    """Calls of other cases and floating types with a tensor that a case's calls of one type do not give."""
    own = [each.ran.call for each in case.calls if each.program.dtype == dtype]
    given = {name for call in own for name in list_optional(call)}
    for other in (each for each in cases if own and each is not case):
        types = ((each.ran.call, each.program.dtype) for each in other.calls)
        calls = (call for call, type_ in types if type_.kind is Kind.FLOATING and type_ != dtype)
        yield from islice((call for call in calls if not given.issuperset(list_optional(call))), _TRIED_OF_CASE)


def _cast(call: OpCall, dtype: DType) -> OpCall:
    """A call with its floating tensors in another type."""
    type_ = getattr(torch, dtype.torch)
    tensors = {name: value for name, value in call.arguments.items() if isinstance(value, torch.Tensor)}
    floating = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    return call.with_arguments({name: tensor.detach().to(type_) for name, tensor in floating.items()})
