"""The two readings of an old implementation: from its source, and by running it.

The second runs the fork's code in a separate process, and is cached under a digest of everything it depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from porter.aten.declarations import MPS_KEY
from porter.aten.meta import TypeRule, read_type_rules
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import ServedFunction, find_served, find_stubs_behind, is_shared
from porter.core import cache, codec, dtypes
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.mpsgraph.agreement import compare_readings
from porter.mpsgraph.graph import Call, Case, Graph, NotRecorded, Recording, graph_lines, nodes
from porter.mpsgraph.operations import by_op
from porter.mpsgraph.source_reader.read_graph import read_graph
from porter.recording.program_readings import describe_programs
from porter.verdict import client
from porter.verdict.evidence import digest_old_code, key
from porter.verdict.messages import RecordRequest
from porter.verdict.result import HOST, VerifyTarget

NEWEST = ""


_Recordings = tuple[Recording, ...]


def get_recordings(
    checkout: Checkout, base: str, macos: str = NEWEST, run: bool = True, progress: Progress = ignore
) -> tuple[Recording, ...] | None:
    """The recordings of an operator's overloads as on a macOS release; None if not cached and `run` is false.

    Raises PTR136 to PTR138, and what `request_recordings` raises.
    """
    text = cache.get(_find_file(checkout, base, macos))
    if text is not None:
        cached: _Recordings = codec.decode(text, _Recordings)
        return cached
    if not run:
        return None
    request = RecordRequest(checkout.root.resolve(), find_target(checkout, base), macos, earlier=checkout.earlier)
    return keep_recordings(checkout, base, client.request_recordings(request, progress), macos)


def keep_recordings(checkout: Checkout, base: str, recorded: _Recordings, macos: str = NEWEST) -> _Recordings:
    """Caches the recordings of an operator, and returns them."""
    cache.put(_find_file(checkout, base, macos), codec.encode(recorded, _Recordings))
    return recorded


def _find_file(checkout: Checkout, base: str, macos: str) -> Path:
    return key(digest_old_code(checkout), "recordings", base, macos)


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
        recorded: _Recordings = () if text is None else codec.decode(text, _Recordings)
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
            target = find_target(checkout, row.function.base)
            yield from describe_programs(checkout, target, each.name, macos, cost, progress)


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
