"""The two readings of an old implementation: from its source, and by running it.

The second runs the fork's code in a separate process, at the sizes of OpInfo samples for graphs and at sizes of
porter's own for programs. Both are cached under a digest of everything they depend on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from porter.aten.declarations import MPS_KEY, TENSOR_OPTIONS
from porter.aten.meta import TypeRule, read_type_rules
from porter.aten.native_functions import NativeFunction, NativeFunctions
from porter.aten.operator import ServedFunction, find_served, find_stubs_behind, is_shared
from porter.core import cache, dtypes
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.loops.host_values import Arguments
from porter.loops.printing import name_memory, program_lines
from porter.loops.program import ArgumentBuffer, Role, SymbolicProgram, Table, instantiate, no_graph
from porter.metal.forms import Computation, FormProgram, decode_computations
from porter.mpsgraph.agreement import compare_readings
from porter.mpsgraph.graph import Call, Case, Graph, NotRecorded, Recording, decode_recordings, graph_lines, nodes
from porter.mpsgraph.operations import by_op
from porter.mpsgraph.source_reader.read_graph import read_graph
from porter.plan.recorded.files import read_style
from porter.recording.cost import cost_lines, count_cost, form_cost_lines, list_together, slice_lines
from porter.verdict import client
from porter.verdict.client import digest_old_code, key
from porter.verdict.messages import RecordRequest
from porter.verdict.result import HOST, VerifyTarget

NEWEST = ""


def get_programs(
    checkout: Checkout, base: str, macos: str = NEWEST, run: bool = True, progress: Progress = ignore
) -> tuple[Computation, ...] | None:
    """The programs of an operator's overloads; None if not cached and `run` is false.

    Raises PTR137, PTR138, and what building the old code raises.
    """
    text = _get_text(checkout, base, macos, True, run, progress)
    return None if text is None else decode_computations(text)


def get_recordings(
    checkout: Checkout, base: str, macos: str = NEWEST, run: bool = True, progress: Progress = ignore
) -> tuple[Recording, ...] | None:
    """The recordings of an operator's overloads as on a macOS release; None if not cached and `run` is false.

    Raises PTR136 to PTR138, and what `request_recording` raises.
    """
    text = _get_text(checkout, base, macos, False, run, progress)
    return None if text is None else decode_recordings(text)


def _get_text(
    checkout: Checkout, base: str, macos: str, of_programs: bool, run: bool, progress: Progress
) -> str | None:
    text = cache.get(_find_file(checkout, base, macos, of_programs))
    if text is not None or not run:
        return text
    request = make_request(checkout, base, macos, of_programs)
    try:
        return keep_recording(checkout, request, client.request_recording(request, progress))
    except PorterError as error:
        keep_failure(checkout, request, error)
        raise


def make_request(checkout: Checkout, base: str, macos: str = NEWEST, of_programs: bool = False) -> RecordRequest:
    """Asks for the recordings of an operator; with `of_programs`, for its programs."""
    target = find_target(checkout, base)
    return RecordRequest(checkout.root.resolve(), target, macos, of_programs=of_programs, earlier=checkout.earlier)


def keep_recording(checkout: Checkout, request: RecordRequest, text: str) -> str:
    """Caches the answer to a request, and returns it."""
    cache.put(_find_file(checkout, request.target.base, request.macos, request.of_programs), text)
    return text


def keep_failure(checkout: Checkout, request: RecordRequest, error: PorterError) -> None:
    """Caches why a request had no answer, for what may not ask again; a cache that refuses it has none."""
    file = _find_file(checkout, request.target.base, request.macos, request.of_programs)
    with suppress(OSError):  # the caller raises the recording's own error
        cache.put(_find_failure(file), f"{error.code} {error.what.partition(chr(10))[0].rstrip(':')}")


def _find_failure(file: Path) -> Path:
    return file.with_name(f"failed-{file.name}")


def _find_file(checkout: Checkout, base: str, macos: str, of_programs: bool) -> Path:
    return key(digest_old_code(checkout), "programs" if of_programs else "recordings", base, macos)


def describe_programs(
    checkout: Checkout, base: str, overload: str, macos: str, cost: bool = False, progress: Progress = ignore
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the programs of an overload as titles and lines, with `cost` theirs too, and why calls have none."""
    try:
        found = get_programs(checkout, base, macos, progress=progress) or ()
    except PorterError as error:
        yield "program", (str(error),)
        return
    for each in found:
        if each.name != overload:
            continue
        if isinstance(each, FormProgram):
            yield f"{each.form.TITLE} of {each.name}", tuple(each.form.describe())
            if cost and each.calls and (lines := tuple(form_cost_lines(each.form, _find_largest(each.calls)))):
                yield _title_cost(each.name, _find_largest(each.calls)), lines
            continue
        for program in each.cases:
            types = ", ".join(dtype.metal for dtype in program.dtypes)
            title = f"program of {program.name}, from {len(program.calls)} calls, {program.key} of {types}"
            yield title, tuple(program_lines(program))
            if cost:
                yield _describe_cost(checkout, program)
        if each.left:
            yield f"no program of {overload}", tuple(f"{error.code} {error.what}" for error in each.left)


def _describe_cost(checkout: Checkout, program: SymbolicProgram) -> tuple[str, tuple[str, ...]]:
    """What the largest recorded call costs."""
    call = _find_largest(program.calls)
    title = _title_cost(program.name, call)
    sizes = {buffer: size for buffer, role in program.roles.items() if (size := _size(role, call)) is not None}
    try:
        nests = instantiate([each.nest for each in program.nests], call)
        found = count_cost(nests, sizes, set(list_together(read_style(checkout), nests)))
    except PorterError as error:
        return title, (f"{error.code} {error.what}",)
    return title, (*cost_lines(found, name_memory(program)), *slice_lines(read_style(checkout), program))


def _find_largest(calls: Sequence[Arguments]) -> Arguments:
    return max(calls, key=lambda call: sum(math.prod(value.shape) for value in call.tensors.values()))


def _title_cost(name: str, call: Arguments) -> str:
    return f"cost of a call of {name}, for {', '.join(f'{name} {value.shape}' for name, value in call.tensors.items())}"


def _size(role: Role, call: Arguments) -> int | None:
    match role:
        case ArgumentBuffer(name):
            return math.prod(call.tensors[name].shape)
        case Table(elements):
            return len(elements)
    return None


def find_target(checkout: Checkout, base: str) -> VerifyTarget:
    rows = [
        row for entry in NativeFunctions.read(checkout).find_overloads(base) if (row := find_served(checkout, entry))
    ]
    stubs = tuple(dict.fromkeys(stub for row in rows for stub in find_stubs_behind(checkout, row)))
    return VerifyTarget(base, tuple(find_recorded_overloads(checkout, rows)), stubs=stubs)


def find_recorded_overloads(checkout: Checkout, rows: Iterable[ServedFunction]) -> Iterator[str]:
    """The overload to call to record each row: the function that delegates to it, or its own."""
    for row in rows:
        family = NativeFunctions.read(checkout).find_overloads(row.function.base)
        functional = (
            e.name for e in family if e.delegate == row.function.name and not e.name.split(".")[0].endswith("_")
        )
        yield next(functional, row.function.name)


def read_source_graph(checkout: Checkout, row: ServedFunction) -> Graph:
    """The graph read from the source of a row's implementation, with result dtypes by the row's type rule.

    Raises what `porter.mpsgraph.source_reader.read_graph.read_graph` raises.
    """
    assert row.implementation is not None
    family = NativeFunctions.read(checkout).find_overloads(row.function.name)
    names = [e.name for e in family if e.delegate == row.function.name and not e.name.split(".")[0].endswith("_")]
    line = row.function.entry_for("CPU")
    try:
        rules = read_type_rules(
            checkout, (*names, row.function.name.removesuffix(".out"))[0], line.kernel if line else None
        )
    except PorterError:
        return read_graph(checkout, row.implementation, row.function, lambda dtype: dtype)
    graphs = [_read_under_rule(checkout, row, rule) for rule in rules]
    cases = (
        case for graph, rule in zip(graphs, rules, strict=True) for case in graph.cases if _is_reachable(case, rule)
    )
    return replace(graphs[0], cases=tuple(sorted(dict.fromkeys(cases), key=lambda case: dtypes.ALL.index(case.dtype))))


def _read_under_rule(checkout: Checkout, row: ServedFunction, rule: TypeRule) -> Graph:
    assert row.implementation is not None
    return read_graph(checkout, row.implementation, row.function, lambda dtype: rule.result(dtype) or dtype)


def _is_reachable(case: Case, rule: TypeRule) -> bool:
    """Whether a case is possible under a type rule: none of their conditions contradict."""
    ruled = {condition.text.lstrip("*"): condition.holds for condition in rule.when}
    return all(ruled.get(condition.text, condition.holds) is condition.holds for condition in case.when)


def get_row_recordings(
    checkout: Checkout, row: ServedFunction, macos: str = NEWEST, run: bool = True, progress: Progress = ignore
) -> tuple[Recording, ...]:
    """The recordings of the overloads that a row serves. Raises as `get_recordings` does."""
    found = get_recordings(checkout, row.function.base, macos, run, progress)
    return tuple(each for each in found or () if is_recording_of(checkout, each, row))


def get_recorded_graph(checkout: Checkout, row: ServedFunction, run: bool, progress: Progress = ignore) -> Graph | None:
    """The recorded graph of a row; None if there is none, in which case `explain` gives the reason."""
    try:
        found = get_row_recordings(checkout, row, run=run, progress=progress)
    except PorterError:
        return None
    return next((each.graph for each in found if each.graph.cases), None)


def list_readings(checkout: Checkout, rows: Sequence[ServedFunction]) -> Iterator[str]:
    """Yields the available readings of each MPSGraph row: `source`, `run` (if cached), both or none."""
    try:
        evidence = digest_old_code(checkout)
    except PorterError:  # without torch nothing is cached
        evidence = ""
    for row in rows:
        found = ["source"] if _is_read(checkout, row) else []
        text = cache.get(key(evidence, "recordings", row.function.base, NEWEST))
        recorded = () if text is None else decode_recordings(text)
        if any(each.graph.cases and is_recording_of(checkout, each, row) for each in recorded):
            found.append("run")
        yield " and ".join(found)


def _is_read(checkout: Checkout, row: ServedFunction) -> bool:
    try:
        return bool(read_source_graph(checkout, row).cases)
    except PorterError:
        return False


def describe_recordings(
    checkout: Checkout,
    row: ServedFunction,
    source: Graph | None,
    macos: str,
    cost: bool = False,
    progress: Progress = ignore,
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the recorded graphs of a row as titles and lines: unread calls, notes, and agreement with the source.

    With `cost`, also what the kernels of its loop form and of its programs cost.
    """
    try:
        found = get_row_recordings(checkout, row, macos, progress=progress)
    except PorterError as error:
        yield "graph, recorded", (str(error),)
        return
    if not found:
        yield "graph, recorded", (f"PTR136 no OpInfo sample calls {row.function.name}",)
    for each in found:
        calls = f"recorded from {len(each.seen)} calls" if each.seen else "not recorded from any call"
        lines = [*graph_lines(each.graph), *_left_lines(each.left), *(f"note: {note}" for note in each.notes)]
        if source is not None and each.seen and not macos:
            lines.append(str(compare_readings(source, each, is_shared(row.entry))))
        yield f"graph, {calls} of {each.name} (backend {HOST}, macOS {macos or 'newest'})", tuple(lines)
        if each.loop_form and each.loop_form.lines:
            yield f"loop form of one call of {each.name}, for {each.loop_form.shapes}", each.loop_form.lines
            if cost:
                yield "cost of this call", each.loop_form.cost
        if not _is_elementwise(each.graph):
            yield from describe_programs(checkout, row.function.base, each.name, macos, cost, progress)


def _is_elementwise(graph: Graph) -> bool:
    """Whether every operation is in the table of elementwise ones."""
    table = by_op()
    found = (each for case in graph.cases for each in nodes(case.expr) if isinstance(each, Call))
    return bool(graph.cases) and all(each.op in table for each in found)


def _left_lines(left: Iterable[NotRecorded]) -> Iterator[str]:
    """Why calls gave no graph: types with the same reason share a line."""
    groups: dict[str, list[str]] = {}
    for each in left:
        groups.setdefault(f"{each.code}: {each.reason}", []).append(each.dtype.metal)
    yield from (f"{', '.join(names)}: {told}" for told, names in groups.items())


def is_recording_of(checkout: Checkout, recording: Recording, row: ServedFunction) -> bool:
    """Whether a row serves the recorded overload: directly, as its delegate, or as its out= variant."""
    entry = NativeFunctions.read(checkout).by_name.get(recording.name)
    if entry is None or row.function.name in (entry.name, entry.delegate):
        return entry is not None
    out = f"{entry.name}_out" if "." in entry.name else f"{entry.name}.out"
    return row.function.name == out and entry.delegate is None and entry.entry_for(MPS_KEY) is None


def get_row_programs(checkout: Checkout, row: ServedFunction, run: bool, progress: Progress = ignore) -> Computation:
    """The programs of the overload that a row serves.

    Raises PTR375 if no call has one, PTR395 if none are kept and nothing may `run`, and as `get_programs` does.
    """
    found = get_programs(checkout, row.function.base, run=run, progress=progress)
    if found is None:
        raise _lack_runs(checkout, row.function.base)
    functions = NativeFunctions.read(checkout).by_name
    serving = [each for each in found if serves(checkout, each.name, row)]
    serving.sort(key=lambda each: not each.calls)  # those of which calls are known first
    own = [each for each in serving if row.function.name in (each.name, functions[each.name].delegate)]
    if not serving:
        raise no_graph(row.function.name, row.function.place)
    return (own or serving)[0]


def _lack_runs(checkout: Checkout, base: str) -> PorterError:
    """PTR395, with why: the last recording failed, or what is kept is of another state, or there was none."""
    file = _find_file(checkout, base, NEWEST, of_programs=True)
    failure = cache.get(_find_failure(file))
    why = f": its recording failed with {failure}" if failure else ""
    if not failure and cache.has_other(file):
        why = " of this state: the checkout, porter or its Python environment has changed since it was recorded"
    hint = "Without --no-verify, or --no-record of explain, its old code runs and is recorded."
    return PorterError("PTR395", f"no runs of {base} are kept{why}", hint=hint)


def serves(checkout: Checkout, overload: str, row: ServedFunction) -> bool:
    """Whether a row serves calls of an overload: directly, as its delegate, or as its out= variant."""
    function = NativeFunctions.read(checkout).by_name.get(overload)
    if function is None or row.function.name in (overload, function.delegate):
        return function is not None
    return function.delegate is None and _is_out_of(row.function, function)


def _is_out_of(row: NativeFunction, function: NativeFunction) -> bool:
    """Whether a row is the out= variant of a function, which takes what it writes too, or its in-place variant."""
    if [each.name for each in row.arguments] == [each.name for each in function.arguments]:
        return row.name.partition(".")[::2] == (f"{function.base}_", function.name.partition(".")[2])
    taken = [(each.name, each.type) for each in row.arguments if "!" not in each.type]
    is_family = row.base == function.base and len(taken) < len(row.arguments)
    return is_family and taken == [
        (each.name, each.type) for each in function.arguments if each.name not in TENSOR_OPTIONS
    ]
