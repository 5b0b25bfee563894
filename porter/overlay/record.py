"""The second reading of an old implementation: run it over its OpInfo samples, and tell the graph that it builds.

Exact where the source evaluator only understands: branches are taken for real, and every number is what the code made
of its arguments. What the runs do not tell is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from porter import dtypes
from porter.dtypes import DType
from porter.errors import PorterError
from porter.mpsgraph.graph import Case, Expr, Graph, Untold, Value
from porter.mpsgraph.leaves import leaves, skeleton, with_leaves
from porter.mpsgraph.recording import Left, Recording, Seen
from porter.overlay import host
from porter.overlay.recording.branches import told_apart
from porter.overlay.recording.expressions import expression
from porter.overlay.recording.recovery import recovered

if TYPE_CHECKING:
    import torch

    from aten_overlay.apple.mpsgraph.recorder import Run
    from porter.overlay.recording.calls import Made


@dataclass(frozen=True)
class Observed:
    """One call that was recorded."""

    dtype: DType
    arguments: Mapping[str, Value]
    expr: Expr


@dataclass
class _Readings:
    """The calls of an overload as one way of reading them has them, and those it cannot read."""

    observed: list[Observed] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)


def record(base: str, through: Sequence[str] = ()) -> tuple[Recording, ...]:
    """The recordings of every overload of an operator that OpInfo samples call and that runs graphs.

    The OpInfos are those of its name, and those of the full names `through`. Its host code must have been loaded.
    Raises PTR136 when no sample calls it.
    """
    from porter.overlay.recording import calls

    made: dict[str, list[tuple[DType, Made]]] = {}
    for dtype in dtypes.ALL:
        for op in _opinfos(base, through):
            for call in calls.sampled(op, base, dtype):
                made.setdefault(call.name, []).append((dtype, call))
    if not made:
        raise PorterError("PTR136", f"no OpInfo sample calls {base}", hint="The source's reading stands alone.")
    return tuple(_recording(name, found) for name, found in sorted(made.items()))


def _opinfos(base: str, through: Sequence[str]) -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if base in (op.name, op.aten_name) or op.full_name in through]


def _recording(name: str, made: Sequence[tuple[DType, Made]]) -> Recording:
    """Element by element where every graph allows it, else with every operation there is."""
    readings = min(_both_ways(made), key=lambda each: len(each.left))
    tensors, scalars = _parameters(made[0][1])
    cases, taken = _cases(readings.observed)
    seen = {repr((o.dtype, sorted(o.arguments.items()))): (o, taken[id(o)]) for o in readings.observed}
    return Recording(
        name,
        Graph(tensors, scalars, cases),
        tuple(Seen(o.dtype, o.arguments, case) for o, case in seen.values()),
        tuple(dict.fromkeys(readings.left)),
        tuple(_notes(cases)),
    )


def _both_ways(made: Sequence[tuple[DType, Made]]) -> tuple[_Readings, _Readings]:
    """Every call element by element, and with every operation."""
    from porter.overlay.recording import calls

    plain, whole = _Readings(), _Readings()
    for dtype, found in groupby(made, key=lambda pair: pair[0]):
        kept = calls.diverse([call for _, call in found])
        for call in (*calls.varied(kept[0], dtype), *kept[1:]):
            try:
                ran = _ran(call)
            except Exception as error:  # whatever the fork's code or torch raises is its refusal
                if call is kept[0]:
                    for each in (plain, whole):
                        each.left.append(Left(dtype, _code(error), _first_line(error)))
                continue
            for each, elementwise in ((plain, True), (whole, False)):
                try:
                    each.observed.append(Observed(dtype, calls.values(call), ran.expression(elementwise)))
                except PorterError as error:
                    each.left.append(Left(dtype, error.code, error.what))
    return plain, whole


@dataclass(frozen=True)
class _Ran:
    """A call and the graphs that it ran; its tensors stay alive, so that an address names one."""

    call: Made
    runs: tuple[Run, ...]
    results: tuple[torch.Tensor, ...]
    others: bool

    def expression(self, elementwise: bool) -> Expr:
        """What the call computes. Raises PTR135."""
        if self.others:
            raise PorterError("PTR135", "the call runs other kernels beside its graphs", hint="Read its parts apart.")
        return expression(self.runs, self.call.tensors(), self.results, elementwise)


def _ran(call: Made) -> _Ran:
    """Runs one call. Raises what it raises."""
    import torch
    from torch.utils import _pytree as pytree

    runs: list[Run] = []
    recorder = host.recorder()
    before = _other_kernels()
    recorder.ran = runs.append
    try:
        result = call.run()
    finally:
        recorder.ran = None
    results = tuple(v for v in pytree.tree_leaves(result) if isinstance(v, torch.Tensor))
    return _Ran(call, tuple(runs), results, _other_kernels() > before)


def _other_kernels() -> int:
    return sum(host.kernel_calls().values()) + sum(host.fallbacks().values())


def _cases(observed: Sequence[Observed]) -> tuple[tuple[Case, ...], dict[int, int]]:
    """The cases of all calls, and which one each call took, by its id."""
    cases: list[Case] = []
    taken: dict[int, int] = {}
    for dtype, found in groupby(observed, key=lambda each: each.dtype):
        groups = _alike(list(found))
        for group in groups:
            others = [o.arguments for other in groups if other is not group for o in other]
            when = told_apart([o.arguments for o in group], others) if others else ()
            taken |= {id(o): len(cases) for o in group}
            cases.append(Case(dtype, when, _recovered(group)))
    return tuple(cases), taken


def _alike(observed: Sequence[Observed]) -> list[list[Observed]]:
    groups: dict[str, list[Observed]] = {}
    for each in observed:
        groups.setdefault(skeleton(each.expr), []).append(each)
    return sorted(groups.values(), key=len, reverse=True)


def _recovered(group: Sequence[Observed]) -> Expr:
    columns = zip(*(leaves(each.expr) for each in group), strict=True)
    arguments = [each.arguments for each in group]
    return with_leaves(group[0].expr, (recovered(column, arguments) for column in columns))


def _notes(cases: Sequence[Case]) -> Iterator[str]:
    untold = [leaf for case in cases for leaf in _untold(case.expr)]
    if untold:
        yield f"{len(untold)} numbers (`?`) are no function of the arguments that was tried"


def _untold(expr: Expr) -> Iterator[Untold]:
    if isinstance(expr, Untold):
        yield expr
    for part in (*getattr(expr, "args", ()), *((expr.arg,) if hasattr(expr, "arg") else ())):
        yield from _untold(part)


def _parameters(call: Made) -> tuple[tuple[str, ...], tuple[str, ...]]:
    tensors = tuple(call.tensors())
    named = {name.split("[")[0] for name in tensors}
    others = (a.name for a in call.overload._schema.arguments if a.name not in named)
    return tensors, tuple(others)


def _code(error: Exception) -> str:
    """The code that an error of the stand-in tells, else that of a refusal by the fork's own code."""
    first = str(error).split(" ", 1)[0]
    return first if first.startswith("PTR") else "refused"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
