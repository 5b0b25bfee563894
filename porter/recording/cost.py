"""What loop nests cost: the bytes that they read and write, pass by pass, beside what the call cannot do without.

A pass goes over elements once: the body of a reduction, or what stores. Within one, an element that several turns read
counts once, as neighbors share it through the cache; each further pass counts it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from porter.core import dtypes
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.loops.expressions import Buffer, Expr, Loop, Op, ReductionKind, find_reductions, order_loops, walk
from porter.loops.fusion import LoopNest, Shape
from porter.loops.graph import ConcreteGraph, list_tensors
from porter.loops.host_values import Arguments
from porter.loops.program import Programs, ResultBuffer, SymbolicNest, SymbolicProgram
from porter.metal.codegen.canonicalize import TYPE as MOMENTS
from porter.metal.codegen.canonicalize import find_moments, prepare
from porter.metal.codegen.kernel import KernelStyle, NativeKernel, write_kernel
from porter.metal.codegen.slice_launch import LEAST_ELEMENTS
from porter.metal.codegen.slices import Partial
from porter.metal.forms.form import Form, count_bytes
from porter.metal.loop_spelling import VALUES_OF

LIMIT = 1.5  # what a port may move, by the least that it has to
_MOMENTS_SIZE = 16
_EXTREMES = (ReductionKind.MAX, ReductionKind.MIN, *VALUES_OF.values())


@dataclass(frozen=True)
class KernelCost:
    """The cost of one kernel: `rows` are its threads if it is a map, else its threadgroups.

    `turns` are those of all loops, `reads` the bytes that its passes read of each buffer, `written` what it stores.
    """

    shape: Shape
    rows: int
    turns: int
    reads: Mapping[Buffer, tuple[int, ...]]
    written: int


@dataclass(frozen=True)
class Cost:
    """The cost of a call's kernels; `least` is its arguments' elements that they need, and its results, once each."""

    kernels: tuple[KernelCost, ...]
    least: int

    @property
    def moved(self) -> int:
        """The bytes read and written."""
        return sum(sum(map(sum, each.reads.values())) + each.written for each in self.kernels)

    @property
    def ratio(self) -> float:
        """`moved` by `least`; 1 for a call that needs nothing."""
        return self.moved / self.least if self.least else 1.0


def count_cost(nests: Sequence[LoopNest], sizes: Mapping[Buffer, int], together: Collection[Expr] = ()) -> Cost:
    """The cost of nests at known sizes; `sizes` are the elements of buffers that no nest writes, where known.

    The reductions of `together` are made in the pass of others, over the same elements. An address or a condition that
    depends on elements counts as the worst case. Raises PTR346 for too many turns.
    """
    written = {store.buffer: store for nest in nests for store in nest.stores}
    needed: dict[Buffer, list[_Read]] = defaultdict(list)
    kernels = []
    for nest in nests:
        reads: dict[Buffer, tuple[int, ...]] = {}
        passes = [each for each in _list_passes(nest) if each.reduction not in together]
        for passed in passes:
            for buffer, found in _read_in_pass(passed, sizes).items():
                reads[buffer] = (*reads.get(buffer, ()), found.bytes)
                needed[buffer].append(found)
        turns = sum(prod(loop.size for loop in passed.scope) for passed in passes)
        stored = sum(store.size * store.dtype.size for store in nest.stores)
        kernels.append(KernelCost(nest.shape, prod(loop.size for loop in nest.rows), turns, reads, stored))
    inputs = sum(_join(found).bytes for buffer, found in needed.items() if buffer not in written)
    results = [store for buffer, store in written.items() if not buffer.is_temporary and buffer not in needed]
    return Cost(tuple(kernels), inputs + sum(store.size * store.dtype.size for store in results))


@dataclass(frozen=True)
class _Pass:
    """Roots that the same turns evaluate: those of `scope`."""

    roots: tuple[Expr, ...]
    scope: tuple[Loop, ...]
    reduction: Expr | None = None


@dataclass(frozen=True)
class _Read:
    """The elements of a buffer that are read; `others` more have addresses that only a run knows."""

    places: frozenset[int]
    others: int
    dtype: DType
    size: int | None

    @property
    def bytes(self) -> int:
        count = len(self.places) + self.others
        return (count if self.size is None else min(count, self.size)) * self.dtype.size


def _join(reads: Sequence[_Read]) -> _Read:
    places = frozenset().union(*(each.places for each in reads))
    return _Read(places, max(each.others for each in reads), reads[0].dtype, reads[0].size)


def _list_passes(nest: LoopNest) -> list[_Pass]:
    """Each reduction, and the elements of each store; a map's stores are one pass."""
    reductions = dict.fromkeys(each for store in nest.stores for each in find_reductions(store.value))
    found = [_Pass(each.args, (*order_loops(each.loops), *each.reduction.loops), each) for each in reductions]
    if nest.shape is Shape.MAP:
        return [_Pass(tuple(store.value for store in nest.stores), nest.rows)]
    return found + [_Pass((store.value,), store.loops) for store in nest.stores]


def _read_in_pass(passed: _Pass, sizes: Mapping[Buffer, int]) -> dict[Buffer, _Read]:
    found: dict[Buffer, list[_Read]] = defaultdict(list)
    for load, guards in _find_loads(passed.roots):
        buffer = load.attribute
        assert isinstance(buffer, Buffer) and load.dtype is not None
        size = sizes.get(buffer)
        if _is_known(load.args[0]):
            found[buffer].append(_Read(_find_places(load.args[0], guards), 0, load.dtype, size))
        else:
            turns = prod(loop.size for loop in passed.scope if loop in load.loops)
            found[buffer].append(_Read(frozenset(), turns, load.dtype, size))
    return {buffer: _join(reads) for buffer, reads in found.items()}


_Guards = frozenset[tuple[Expr, bool]]  # conditions on indices, and whether they hold where an element is read


def _find_loads(roots: Sequence[Expr]) -> Iterator[tuple[Expr, _Guards]]:
    """The loads of a pass, those in its reductions left out, with the conditions that hold on all ways to them."""
    guards: dict[Expr, _Guards] = dict.fromkeys(roots, frozenset())
    for each in reversed(list(walk(*roots))):
        if each not in guards:  # within a reduction
            continue
        if each.op is Op.LOAD:
            yield each, guards[each]
        if each.op is Op.REDUCE:
            continue
        for i, arg in enumerate(each.args):
            known = guards[each]
            if each.op is Op.SELECT and i and _is_known(each.args[0]):
                known |= {(each.args[0], i == 1)}
            guards[arg] = guards[arg] & known if arg in guards else known


def _is_known(expr: Expr) -> bool:
    """Whether an index or a condition depends on no element and no number of the call."""
    return all(each.op is not Op.LOAD for each in walk(expr))


def _find_places(place: Expr, guards: _Guards) -> frozenset[int]:
    import torch  # not with the module: plans ask it for what needs no torch, which takes seconds to import

    from porter.recording.evaluation import evaluate_expression

    loops = order_loops(place.loops.union(*(condition.loops for condition, _ in guards)))
    holds = torch.ones([loop.size for loop in loops], dtype=torch.bool)
    for condition, expected in guards:
        holds &= evaluate_expression(condition, {}, loops) == expected
    found: torch.Tensor = evaluate_expression(place, {}, loops)[holds]
    return frozenset(found.unique().tolist())


def form_cost_lines(form: Form, call: Arguments) -> Iterator[str]:
    """As `cost_lines`, of the kernels of a form; none where it does not say what they cost."""
    if costs := tuple(form.count_costs(call)):
        names = dict.fromkeys(chain.from_iterable(kernel.reads for kernel in costs))
        buffers = {name: Buffer(i, is_temporary=name not in call.tensors) for i, name in enumerate(names)}
        needed = [name for name in call.tensors if name in names or name.startswith("result")]
        kernels = (
            KernelCost(
                Shape.REDUCTION, kernel.rows, kernel.turns,
                {buffers[name]: read for name, read in kernel.reads.items()}, kernel.written,
            )
            for kernel in costs
        )  # fmt: skip
        cost = Cost(tuple(kernels), sum(count_bytes(call, name) for name in needed))
        yield from cost_lines(cost, {buffer: name for name, buffer in buffers.items()})


def count_graph_bytes(graph: ConcreteGraph) -> tuple[int, int]:
    """How many operations a graph runs, and the bytes if each reads its operands and writes its results."""
    count = moved = 0
    for node in graph.nodes:
        operands = list_tensors(node.arguments)
        if operands and node.results:
            count += 1
            read = (graph.result(each) for each in operands if graph.nodes[each.node].results)
            moved += sum(each.size * each.dtype.size for each in (*read, *node.results))
    return count, moved


def cost_lines(cost: Cost, names: Mapping[Buffer, str]) -> Iterator[str]:
    """A line for each kernel, one with the sum, and why it is over the limit if it is."""
    for each in cost.kernels:
        read = sum(map(sum, each.reads.values()))
        unit = "threads" if each.shape is Shape.MAP else "rows"
        text = f"{each.shape.value}: {each.rows} {unit}, {each.turns} turns"
        yield f"{text}, {read} bytes read, {each.written} written"
    yield f"{cost.moved} bytes moved, {cost.ratio:.2f} times the {cost.least} of inputs and results"
    if cost.ratio > LIMIT:
        yield from _reasons(cost, names)


def _reasons(cost: Cost, names: Mapping[Buffer, str]) -> Iterator[str]:
    for each in cost.kernels:
        for buffer, passes in each.reads.items():
            if len(passes) > 1:
                yield f"{names[buffer]} is read in {len(passes)} passes of the {each.shape.value} kernel"
    for buffer in dict.fromkeys(buffer for each in cost.kernels for buffer in each.reads):
        readers = sum(buffer in each.reads for each in cost.kernels)
        if buffer.is_temporary:
            yield f"{names[buffer]} is written by one kernel and read by {readers} more"
        elif readers > 1:
            yield f"{names[buffer]} is read by {readers} kernels"


def slice_lines(style: KernelStyle, program: SymbolicProgram) -> Iterator[str]:
    """A line for each kernel of a program that threadgroups may share the rows of, with what that adds at most."""
    try:
        [made] = prepare(Programs(program.name, (program,))).cases
        results = (role.index for role in made.roles.values() if isinstance(role, ResultBuffer))
        outputs = {index: f"output{index}" for index in results}
        for nest in made.nests:
            kernel = write_kernel(made, nest, "kernel", outputs, style)
            if kernel.partials:
                read = sum(_list_read(nest).values())
                kept = sum(_find_size(each, kernel) for each in kernel.partials)
                ratio = 1 + 2 * kept / (LEAST_ELEMENTS * read)
                yield f"long rows: 2 launches, {ratio:.2f} times the bytes at most, with what is stored of slices"
    except PorterError as error:
        yield f"{error.code} {error.what}"


def list_together(style: KernelStyle, nests: Sequence[LoopNest]) -> Iterator[Expr]:
    """The reductions that kernels make in a pass of others: extreme values with their indices, and moments."""
    for nest in nests if style.threadgroup_reductions else ():
        if style.welford:
            yield from (each.squares for each in find_moments(nest))
        found = [each for store in nest.stores for each in find_reductions(store.value)]
        indexed = {(each.args[0], each.reduction.loops) for each in found if each.reduction.kind in VALUES_OF}
        extreme = (each for each in found if each.reduction.kind in _EXTREMES)
        yield from (each for each in extreme if (each.args[0], each.reduction.loops) in indexed)


def _list_read(nest: SymbolicNest) -> dict[Buffer, int]:
    """The bytes of an element of each buffer that is read."""
    values = chain.from_iterable(walk(store.value) for store in nest.nest.stores)
    loads = (each for each in values if each.op is Op.LOAD and each.dtype is not None)
    return {each.attribute: each.dtype.size for each in loads if isinstance(each.attribute, Buffer) and each.dtype}


def _find_size(partial: Partial, kernel: NativeKernel) -> int:
    """The bytes of what is stored of a slice."""
    if partial.type == MOMENTS:
        return _MOMENTS_SIZE
    known = next((each for each in dtypes.ALL if each.metal == partial.type), None)
    names = [each.name for each in kernel.elements.parameters]
    at = next((i for i, name in enumerate(names) if partial.type.endswith(f"<{name}>")), 0)
    return (known or kernel.elements.instances[0][at].opmath).size
