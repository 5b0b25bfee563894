"""Which tensors a kernel stores, and which stores share one: from a lowered graph to loop nests.

All is fused at first: every result is one expression of the feeds. What cannot be computed so is stored on the way:
a reduction that depends on the loop of another, reductions of one kernel that disagree on the loops they depend on
(its rows), and the operands of an expression that grew too large. Constants that results are made of are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import count
from math import prod

from porter.core.dtypes import DType
from porter.loops.expressions import (
    Buffer,
    Expr,
    Loop,
    Op,
    Reduction,
    find_buffers,
    find_reductions,
    intern,
    load,
    order_loops,
    substitute,
    walk,
)
from porter.loops.graph import ConcreteGraph, Node, Tensor, list_tensors
from porter.loops.host_values import Named
from porter.loops.indices import divide, flatten, integer, loop, modulo
from porter.loops.lowering import Lowering, as_loop, needs_no_table, rebuild, refuse, refuse_complex

_MAX_EXPRESSIONS = 500  # of one store
_MAX_BUFFERS = 24


def compute_constants(graph: ConcreteGraph) -> ConcreteGraph:
    """The graph without the elements of constants that results are, where operations on other constants make them."""
    computed = {each for tensor in graph.results for each in _list_computed(graph, tensor)}
    return replace(graph, nodes=tuple(_forget(node, i, computed) for i, node in enumerate(graph.nodes)))


def _list_computed(graph: ConcreteGraph, tensor: Tensor) -> Iterator[Tensor]:
    """A constant whose elements differ, and those that it is computed from."""
    node, result = graph.nodes[tensor.node], graph.result(tensor)
    operands = list_tensors(node.arguments)
    if tensor in graph.feeds or not result.elements or not operands or needs_no_table(node, result):
        return
    yield tensor
    for each in operands:
        yield from _list_computed(graph, each)


def _forget(node: Node, at: int, computed: set[Tensor]) -> Node:
    results = tuple(
        replace(each, elements=None) if Tensor(at, i) in computed else each for i, each in enumerate(node.results)
    )
    return replace(node, results=results)


class Shape(Enum):
    """How the threads of a kernel share its loops."""

    MAP = "map"  # a thread for each element
    REDUCTION = "reduction"  # all results have one element for each row
    ROWS = "row-wise"  # reductions over rows, and results that have elements within them


@dataclass(frozen=True)
class Store:
    """A result or a temporary of `size` elements: in each turn of its loops, the one at `place` becomes `value`.

    With a `guard`, only where that number is true.
    """

    buffer: Buffer
    dtype: DType
    size: int
    loops: tuple[Loop, ...]  # outermost first
    place: Expr
    value: Expr
    guard: Named | None = None

    @property
    def row_loops(self) -> tuple[Loop, ...]:
        """The loops that its reductions depend on."""
        needed = frozenset().union(*(each.loops for each in find_reductions(self.value)))
        return tuple(each for each in self.loops if each in needed)


@dataclass(frozen=True)
class LoopNest:
    """What one kernel computes: stores that share the row loops `rows`; without reductions, all loops."""

    stores: tuple[Store, ...]
    rows: tuple[Loop, ...]

    @property
    def shape(self) -> Shape:
        if not any(find_reductions(store.value) for store in self.stores):
            return Shape.MAP
        return Shape.REDUCTION if all(store.loops == self.rows for store in self.stores) else Shape.ROWS

    def reads(self) -> list[Buffer]:
        return find_buffers(*(store.value for store in self.stores))


def fuse(graph: ConcreteGraph) -> tuple[LoopNest, ...]:
    """The loop nests that compute a graph's results, in an order that they can run in. Raises PTR345."""
    lowering = Lowering(compute_constants(graph))
    asked = [tensor for tensor in graph.results if tensor not in graph.feeds]
    while True:
        stores = _store_all(lowering, asked)
        large = _find_large(lowering, stores)
        if large is None:
            break
        lowering.store(large)
    return tuple(_merge(_order(_split(stores))))


def _store_all(lowering: Lowering, asked: Sequence[Tensor]) -> list[Store]:
    """A store for every tensor asked for, and for every stored one that they read."""
    made: dict[Tensor, Store] = {}
    pending = list(asked)
    while pending:
        tensor = pending.pop()
        if tensor in made or tensor in lowering.graph.feeds or (_is_table(lowering, tensor) and tensor not in asked):
            continue
        result = lowering.graph.result(tensor)
        indices = tuple(loop(f"i{d}", size) for d, size in enumerate(result.shape))
        loops = tuple(as_loop(each) for each in indices if each.op is Op.LOOP)
        place, value = flatten(indices, result.shape), lowering.define(tensor, indices)
        refuse_complex(value)
        made[tensor] = Store(Buffer(tensor.node, tensor.output), result.dtype, result.size, loops, place, value)
        pending += [Tensor(each.node, each.output) for each in find_buffers(made[tensor].value)]
    return list(made.values())


def _is_table(lowering: Lowering, tensor: Tensor) -> bool:
    return lowering.graph.result(tensor).elements is not None


def _find_large(lowering: Lowering, stores: Iterable[Store]) -> Tensor | None:
    """A tensor to store since an expression that inlines it is too large; None if no expression is."""
    for store in stores:
        size = sum(1 for _ in walk(store.value))
        if size > _MAX_EXPRESSIONS or len(find_buffers(store.value)) > _MAX_BUFFERS:
            inlined = _find_inlined(lowering, Tensor(store.buffer.node, store.buffer.output))
            if inlined:
                return inlined[len(inlined) // 2]
            if len(find_buffers(store.value)) > _MAX_BUFFERS:
                raise refuse(f"a kernel of more than {_MAX_BUFFERS} buffers")
    return None


def _find_inlined(lowering: Lowering, tensor: Tensor) -> list[Tensor]:
    """The tensors of more than one element that a store computes on the way, nearest first."""
    found: dict[Tensor, None] = {}
    pending = [tensor]
    while pending:
        node = lowering.graph.nodes[pending.pop(0).node]
        for each in list_tensors(node.arguments):
            known = each in found or each in lowering.stored or not lowering.graph.nodes[each.node].results
            if not known and lowering.graph.result(each).elements is None and lowering.graph.result(each).size > 1:
                found[each] = None
                pending.append(each)
    return list(found)


def _split(stores: Sequence[Store]) -> list[Store]:
    """Stores whose reductions all depend on the same loops of the store, and on no other's."""
    numbers = count()
    made: list[Store] = []
    pending = list(stores)
    while pending:
        store = pending.pop()
        offender = _find_offender(store)
        if offender is None:
            made.append(store)
            continue
        temporary, stored = _make_temporary(offender, next(numbers))
        pending += [temporary, replace(store, value=_replace(store.value, offender, stored))]
    return made


def _find_offender(store: Store) -> Expr | None:
    """The first reduction that this store's kernel cannot have as it is."""
    own = frozenset(store.loops)
    found = find_reductions(store.value)
    for each in found:
        if each.loops - own:
            return each
    rows = frozenset().union(*(each.loops for each in found))
    return next((each for each in found if each.loops != rows), None)


def _make_temporary(value: Expr, number: int) -> tuple[Store, Expr]:
    """A store of a reduction over the loops that it depends on, and the element to read in the reduction's place."""
    assert value.dtype is not None
    loops = order_loops(value.loops)
    named = {each: loop(f"i{d}", each.size) for d, each in enumerate(loops)}
    shape = tuple(each.size for each in loops)
    buffer, place = Buffer(number, is_temporary=True), flatten(list(named.values()), shape)
    own = tuple(map(as_loop, named.values()))
    store = Store(buffer, value.dtype, prod(shape), own, place, substitute(value, named, rebuild))
    return store, load(buffer, flatten([loop(each.name, each.size) for each in loops], shape), value.dtype)


def _replace(root: Expr, old: Expr, new: Expr) -> Expr:
    made: dict[Expr, Expr] = {}
    for each in walk(root):
        made[each] = new if each is old else rebuild_if_changed(each, made)
    return made[root]


def rebuild_if_changed(expr: Expr, made: dict[Expr, Expr]) -> Expr:
    args = [made[arg] for arg in expr.args]
    return expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else rebuild(expr, args)


def _order(stores: Sequence[Store]) -> list[Store]:
    """Stores after those that they read."""
    by_buffer = {store.buffer: store for store in stores}
    made: dict[Buffer, Store] = {}
    stack = [(store, False) for store in sorted(stores, key=_key, reverse=True)]
    while stack:
        store, is_done = stack.pop()
        if is_done:
            made[store.buffer] = store
        elif store.buffer not in made:
            stack.append((store, True))
            stack += [(by_buffer[each], False) for each in find_buffers(store.value) if each in by_buffer]
    return list(made.values())


def _key(store: Store) -> tuple[bool, int, int]:
    return store.buffer.is_temporary, store.buffer.node, store.buffer.output


def _merge(stores: Sequence[Store]) -> list[LoopNest]:
    """Loop nests of stores over the same elements, or the same rows, none of which reads what another writes."""
    made: list[LoopNest] = []
    for store in stores:
        at = _find_nest(made, store)
        if at is None:
            made.append(LoopNest((store,), store.row_loops if find_reductions(store.value) else store.loops))
        else:
            nest = made[at]
            # The store with the nest's names of the row loops
            rows = store.loops if not find_reductions(store.value) else store.row_loops
            names = {old: loop(new.name, new.size) for old, new in zip(rows, nest.rows, strict=True)}
            used = {each.name for each in nest.rows}
            others = [each for each in store.loops if each not in names]
            names |= {each: loop(f"{each.name}'" if each.name in used else each.name, each.size) for each in others}
            made[at] = replace(nest, stores=(*nest.stores, change_loops(store, names)))
    return made


def _find_nest(nests: Sequence[LoopNest], store: Store) -> int | None:
    """The last loop nest that a store can join, if what it reads is written by then."""
    reads = set(find_buffers(store.value))
    for at in reversed(range(len(nests))):
        nest = nests[at]
        if _has_same_rows(nest, store) and len({*nest.reads(), *reads}) + len(nest.stores) < _MAX_BUFFERS:
            return at
        if any(written.buffer in reads for written in nest.stores):
            return None
    return None


def _has_same_rows(nest: LoopNest, store: Store) -> bool:
    """Whether a store has the loops of a nest, in whatever dimensions."""
    if any(written.buffer in find_buffers(store.value) for written in nest.stores):
        return False
    is_map = not find_reductions(store.value)
    if is_map != (nest.shape is Shape.MAP) and not (_is_number(store) or all(map(_is_number, nest.stores))):
        return False
    rows = store.loops if is_map else store.row_loops
    return [each.size for each in rows] == [each.size for each in nest.rows]


def _is_number(store: Store) -> bool:
    """Whether a store is of one number, which any kernel of one row can write."""
    return not store.loops and store.value.op is Op.NUMBER


def change_loops(store: Store, changes: Mapping[Loop, Expr]) -> Store:
    """The store with its loops renamed."""
    loops = tuple(as_loop(changes.get(each, loop(each.name, each.size))) for each in store.loops)
    place, value = (substitute(each, changes, rebuild) for each in (store.place, store.value))
    return replace(store, loops=loops, place=place, value=value)


# Joins neighboring loops that walk memory as one, which frees most kernels of the rank of their tensors.
#
# Loops that an index walks backwards are written as such: `(n - 1 - i) * k` for `i * -k + (n - 1) * k`. The constant of
# a flat index that walks several dimensions backwards is a sum of products of sizes: its parts are numbers of their
# own.


Exprs = tuple[Expr, ...]


def coalesce(nest: LoopNest) -> LoopNest:
    """The loop nest with as few loops as address the same elements without division."""
    stores = [replace(store, value=_coalesce_reductions(store.value)) for store in nest.stores]
    rows, stores = _join_rows(nest.rows, stores)
    return LoopNest(tuple(_join_columns(store, rows) for store in stores), rows)


def _coalesce_reductions(root: Expr) -> Expr:
    made: dict[Expr, Expr] = {}
    for each in walk(root):
        new = rebuild_if_changed(each, made)
        made[each] = _coalesce_reduction(new) if new.op is Op.REDUCE else new
    return made[root]


def _coalesce_reduction(expr: Expr) -> Expr:
    loops, operands = _join_all(expr.reduction.loops, expr.args)
    if loops == expr.reduction.loops:
        return expr
    return intern(Op.REDUCE, operands, expr.dtype, Reduction(expr.reduction.kind, loops))


def _join_all(loops: tuple[Loop, ...], exprs: Exprs) -> tuple[tuple[Loop, ...], Exprs]:
    """Joins every pair of neighbors that can be; a joined loop has the name of its outer one."""
    at = 0
    while at + 1 < len(loops):
        joined = _join(loops[at], loops[at + 1], exprs)
        if joined is None:
            at += 1
        else:
            made, exprs = joined
            loops = (*loops[:at], made, *loops[at + 2 :])
            at = max(at - 1, 0)
    return loops, exprs


def _join(outer: Loop, inner: Loop, exprs: Exprs) -> tuple[Loop, Exprs] | None:
    """Expressions with one loop for two neighbors; None if an index would have to divide it."""
    joined = loop(outer.name, outer.size * inner.size)
    changes = {outer: divide(joined, inner.size), inner: modulo(joined, inner.size)}
    made = tuple(substitute(each, changes, rebuild) for each in exprs)
    divided = (each.loops for each in walk(*made) if each.op in (Op.QUOTIENT, Op.REMAINDER))
    return None if any(as_loop(joined) in loops for loops in divided) else (as_loop(joined), made)


def _join_rows(rows: tuple[Loop, ...], stores: Sequence[Store]) -> tuple[tuple[Loop, ...], list[Store]]:
    """Joins the row loops, which all stores share and which must be neighbors in each."""
    exprs = tuple(each for store in stores for each in (store.place, store.value))
    made, exprs = _join_all(rows, exprs)
    pairs = zip(exprs[::2], exprs[1::2], strict=True)
    columns = [tuple(each for each in store.loops if each not in rows) for store in stores]
    return made, [
        replace(store, loops=(*made, *own), place=place, value=value)
        for store, own, (place, value) in zip(stores, columns, pairs, strict=True)
    ]


def _join_columns(store: Store, rows: tuple[Loop, ...]) -> Store:
    """Joins a store's other loops."""
    columns = tuple(each for each in store.loops if each not in rows)
    made, (place, value) = _join_all(columns, (store.place, store.value))
    return replace(store, loops=(*rows, *made), place=place, value=value)


def reverse_loops(nest: LoopNest) -> LoopNest:
    """The loop nest with such loops reversed; nothing else is simplified."""
    roots = [each for store in nest.stores for each in (store.place, store.value)]
    made: dict[Expr, Expr] = {}
    for each in walk(*roots):
        args = [made[arg] for arg in each.args]
        made[each] = _reverse(args) if each.op is Op.SUM else intern(each.op, args, each.dtype, each.attribute)

    def change(store: Store) -> Store:
        return replace(store, place=made[store.place], value=made[store.value])

    return LoopNest(tuple(map(change, nest.stores)), nest.rows)


def _reverse(terms: Sequence[Expr]) -> Expr:
    """The sum of terms; with those that go backwards reversed, if its constant allows for all of them."""
    constant = terms[-1].integer or 0
    backward = {term: found for term in terms if (found := _find_backward(term))}
    rest = constant - sum((loop.size - 1) * stride for loop, stride in backward.values())
    if not backward or rest < 0:
        return intern(Op.SUM, terms)
    kept = terms if terms[-1].integer is None else terms[:-1]
    made = [_make_reversed(*backward[each]) if each in backward else each for each in kept]
    made += [integer(rest)] if rest else []
    return made[0] if len(made) == 1 else intern(Op.SUM, made)


def _find_backward(term: Expr) -> tuple[Loop, int] | None:
    """The loop of a term that falls as it turns, and by how much."""
    if term.op is not Op.PRODUCT or not isinstance(term.args[0].attribute, Loop):
        return None
    stride = term.args[1].integer
    return (term.args[0].attribute, -stride) if stride is not None and stride < 0 else None


def _make_reversed(loop: Loop, stride: int) -> Expr:
    falling = intern(Op.PRODUCT, (intern(Op.LOOP, (), None, loop), integer(-1)))
    from_end = intern(Op.SUM, (falling, integer(loop.size - 1)))
    return from_end if stride == 1 else intern(Op.PRODUCT, (from_end, integer(stride)))
