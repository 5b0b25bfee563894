"""Loops that an index walks backwards."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from porter.core.dtypes import INT
from porter.loops.expressions import Buffer, Expr, Loop, load
from porter.loops.fusion import LoopNest, Store, reverse_loops
from porter.loops.indices import add, loop, multiply
from porter.loops.lowering import as_loop
from porter.loops.numbers import Use, list_numbers
from tests.porter.loops.turns import compute

FED, MADE = Buffer(1), Buffer(2)


def nest_of(loops: list[Loop], place: Expr, index: Expr) -> LoopNest:
    store = Store(MADE, INT, 1, tuple(loops), place, load(FED, index, INT))
    return LoopNest((store,), tuple(loops))


def walked(nest: LoopNest) -> list[int]:
    """The index that is read in every turn."""
    [store] = nest.stores
    turns = product(*(range(each.size) for each in store.loops))
    return [compute(store.value.args[0], dict(zip(store.loops, turn, strict=True))) for turn in turns]


@given(st.lists(st.tuples(st.integers(2, 5), st.booleans()), min_size=1, max_size=4), st.integers(-3, 3))
def test_the_same_elements_are_read(dims: list[tuple[int, bool]], moved: int) -> None:
    stride = 1
    terms: list[Expr] = []
    loops: list[Loop] = []
    for i, (size, is_reversed) in reversed(list(enumerate(dims))):
        index = loop(f"i{i}", size)
        loops.insert(0, as_loop(index))
        turned = add(multiply(index, -1), size - 1) if is_reversed else index
        terms.append(multiply(turned, stride))
        stride *= size
    nest = nest_of(loops, add(*terms), add(*terms, moved))
    assert walked(reverse_loops(nest)) == walked(nest)


def test_the_parts_of_a_constant_are_numbers_of_their_own() -> None:
    i, j = loop("i0", 3), loop("i1", 5)
    flat = add(multiply(add(multiply(i, -1), 2), 5), add(multiply(j, -1), 4))
    nest = nest_of([as_loop(i), as_loop(j)], flat, flat)
    made = reverse_loops(nest)
    assert 14 in {each.value for each in list_numbers((nest,))}
    assert {each.value for each in list_numbers((made,)) if each.use is Use.INDEX} == {2, 4, 5, -1}


def test_a_sum_whose_constant_is_too_small_stays() -> None:
    i, k = loop("i0", 3), loop("i1", 5)
    nest = nest_of([as_loop(i), as_loop(k)], i, add(i, multiply(k, -1), 3))
    assert reverse_loops(nest) == nest
