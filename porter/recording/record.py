"""The second reading of an old implementation: runs it over its OpInfo samples and records the graphs it builds.

Branches are really taken, and numbers are computed by the code itself. What the runs cannot show is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from porter.core import dtypes
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.mpsgraph.graph import CallSummary, Case, Expr, Graph, LoopForm, NotRecorded, Recording
from porter.recording.cases import RecordedCall, build_cases, find_unknown_numbers
from porter.recording.effort import counting_graphs
from porter.recording.expressions import build_expression
from porter.recording.flow import check_flow
from porter.recording.loop_form import describe_loop_form
from porter.verdict.backends import host
from porter.verdict.errors import raising_porter_errors

_CODE = re.compile(r"(PTR\d{3}):? ")

if TYPE_CHECKING:
    import torch

    from aten_overlay.apple.mpsgraph.recorder import GraphRun
    from porter.recording.calls import OpCall


@dataclass
class _Readings:
    """The calls of an overload that one way of reading can read, and those it cannot."""

    observed: list[RecordedCall] = field(default_factory=list)
    left: list[NotRecorded] = field(default_factory=list)
    loop_form: LoopForm | None = None


_Calls = list[tuple[DType, "OpCall"]]  # ordered by type


def record(base: str, through: Sequence[str] = (), overloads: Sequence[str] = ()) -> tuple[Recording, ...]:
    """Records every overload of an operator that OpInfo samples call, and those of `overloads` that take the same
    arguments.

    Uses the OpInfos named for the operator and those with the full names `through`. Its host code must be loaded.
    Raises PTR136 if no sample calls it.
    """
    from porter.recording import calls
    from porter.verdict.suite.dispatched import check_gradients

    check_gradients()
    made: dict[str, _Calls] = {}
    for dtype in dtypes.ALL:
        for op in find_opinfos(base, through):
            for call in calls.capture_calls(op, base, dtype):
                made.setdefault(call.name, []).append((dtype, call))
    if not made:
        raise PorterError("PTR136", f"no OpInfo sample calls {base}", hint="Only the source reading is available.")
    tried = {name: _vary_calls(found) for name, found in made.items()}
    alike = {name: _adapt_calls(list(tried.values()), name) for name in overloads if name not in tried}
    return tuple(_recording(name, found) for name, found in sorted((tried | alike).items()) if found)


def _vary_calls(made: _Calls) -> _Calls:
    """A few calls of each dtype, and variations of the first."""
    from porter.recording import calls

    found: _Calls = []
    for dtype, group in groupby(made, key=lambda pair: pair[0]):
        kept = calls.pick_diverse_calls([call for _, call in group])
        found += [(dtype, call) for call in (*calls.vary_arguments(kept[0], dtype), *kept[1:])]
    return found


def _adapt_calls(tried: Sequence[_Calls], name: str) -> _Calls:
    """Calls of an overload that no sample calls, adapted from the first one with matching arguments.

    The shape of out= tensors depends on the arguments, so calls with out= are not varied.
    """
    from porter.recording.overloads import adapt_call

    for each in tried:
        found = [(dtype, made) for dtype, call in each if (made := adapt_call(call, name))]
        if found:
            return found if found[0][1].out_names() else _vary_calls(found)
    return []


def find_opinfos(base: str, through: Sequence[str]) -> list[Any]:
    from porter.verdict.suite.made_opinfos import list_opinfos

    return list_opinfos((base,), through, ())


def _recording(name: str, made: _Calls) -> Recording:
    """Records elementwise if every graph allows it, else with all operations."""
    plain, whole = _read_both_ways(made)
    readings = plain if plain.observed and len(plain.left) <= len(whole.left) else whole
    tensors, scalars = _parameters(made[0][1])
    cases, taken = build_cases(readings.observed)
    calls = zip(readings.observed, taken, strict=True)
    seen = {repr((each.dtype, sorted(each.arguments.items()))): (each, case) for each, case in calls}
    return Recording(
        name,
        Graph(tensors, scalars, cases),
        tuple(CallSummary(each.dtype, each.arguments, case) for each, case in seen.values()),
        tuple(dict.fromkeys(readings.left)),
        tuple(_notes(cases)),
        plain.loop_form,
    )


def _read_both_ways(made: _Calls) -> tuple[_Readings, _Readings]:
    """Reads every call elementwise, and with all operations."""
    from porter.recording.calls import read_arguments

    plain, whole = _Readings(), _Readings()
    begun: set[DType] = set()
    for dtype, call in made:
        is_first = dtype not in begun
        begun.add(dtype)
        try:
            ran = run_call(call)
        except Exception as error:  # the fork's code or torch may raise anything
            if is_first:  # a varied call may have invalid arguments
                for each in (plain, whole):
                    each.left.append(NotRecorded(dtype, _find_code(error), _first_line(error)))
            continue
        plain.loop_form = plain.loop_form or describe_loop_form(ran.runs, call.tensors())
        for each, elementwise in ((plain, True), (whole, False)):
            try:
                with raising_porter_errors():
                    found = ran.build_expression(elementwise)
                each.observed.append(RecordedCall(dtype, read_arguments(call), found))
            except PorterError as error:
                each.left.append(NotRecorded(dtype, error.code, error.what))
    return plain, whole


@dataclass(frozen=True)
class RecordedRun:
    """A call and the graphs it ran. Keeps its tensors alive, so that addresses stay unique.

    `given` are copies of its tensors from before the call. One that is seen with arguments expanded has the shapes that
    these have of their own, and the run as it was `before`.
    """

    call: OpCall
    given: Mapping[str, torch.Tensor]
    runs: tuple[GraphRun, ...]
    results: tuple[torch.Tensor, ...]
    others: bool
    places: tuple[int, ...] = ()  # of the results among all that the operator has; empty if all are there
    own_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    before: RecordedRun | None = None

    @property
    def made(self) -> dict[int, torch.Tensor]:
        """The results by their places, without those that the call does not ask for."""
        return dict(zip(self.places or range(len(self.results)), self.results, strict=True))

    @property
    def tells_results(self) -> bool:
        """Whether the call has a result, or writes to an argument: its graph may run for a mask that asks for none."""
        return bool(self.results) or self.call.overload._schema.is_mutable

    def build_expression(self, elementwise: bool) -> Expr:
        """The expression that the call computes. Raises PTR135."""
        inputs = self.call.tensors()
        if self.others:
            before = {tensor.data_ptr(): self.given[name] for name, tensor in inputs.items()}
            check_flow(self.runs, before, self.results)
        return build_expression(self.runs, inputs, self.given, self.results, elementwise)


def run_call(call: OpCall) -> RecordedRun:
    """Runs one call and records its graphs. Raises what the call raises."""
    import torch
    from torch.utils import _pytree as pytree

    runs: list[GraphRun] = []
    given = {name: tensor.detach().cpu() for name, tensor in call.tensors().items()}
    before = _other_kernels()
    with counting_graphs(runs):
        result = call.run()
    leaves = [v for v in pytree.tree_leaves(result) if v is None or isinstance(v, torch.Tensor)]
    made = {i: each for i, each in enumerate(leaves) if each is not None}
    return RecordedRun(call, given, tuple(runs), tuple(made.values()), _other_kernels() > before, tuple(made))


def _other_kernels() -> int:
    return sum(host.kernel_calls().values()) + sum(host.fallbacks().values())


def _notes(cases: Sequence[Case]) -> Iterator[str]:
    count = sum(1 for case in cases for _ in find_unknown_numbers(case.expr))
    if count:
        yield f"{count} numbers (`?`) match no known function of the arguments"


def _parameters(call: OpCall) -> tuple[tuple[str, ...], tuple[str, ...]]:
    tensors = tuple(call.tensors())
    named = {name.split("[")[0] for name in tensors}
    others = (a.name for a in call.overload._schema.arguments if a.name not in named)
    return tensors, tuple(others)


def _find_code(error: Exception) -> str:
    """The code of an error of the stand-in, or `refused` for the fork's own."""
    found = _CODE.match(str(error))
    return found[1] if found else "refused"


def _first_line(error: Exception) -> str:
    """The first line of the message, without its code."""
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return _CODE.sub("", first)[:200]
