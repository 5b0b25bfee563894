"""By which of their dimensions arguments are expanded."""

from __future__ import annotations

import pytest

from porter.core.dtypes import FLOAT
from porter.core.errors import PorterError
from porter.loops.host_values import Arguments, TensorValue
from porter.loops.program import count_own_dims, list_own_dims

Shape = tuple[int, ...]


def call(result: Shape, **expanded: tuple[Shape, Shape]) -> Arguments:
    """A call of arguments of their own shapes, and of those that they are expanded to."""
    given = {name: TensorValue(shape, FLOAT, own) for name, (own, shape) in expanded.items()}
    return Arguments({**given, "result0": TensorValue(result, FLOAT)}, {})


@pytest.mark.parametrize(
    ("own", "shape", "result", "counts"),
    [
        ((1, 3, 7), (4, 3, 7), (4, 3, 5), (1, 2)),
        ((5, 7), (4, 5, 7), (4, 3, 5), (2,)),
        ((4, 3, 7), (4, 3, 7), (4, 3, 5), (1, 2, 3)),
        ((1, 5), (4, 5), (4, 5), (0, 1)),
        ((3, 7), (4, 3, 7), (4, 3), ()),
        ((5, 7), (5, 7), (3, 5), (2,)),
        ((), (), (), (0,)),
        ((2, 7), (4, 3, 7), (4, 5, 2), ()),
    ],
)
def test_dimensions_that_may_be_an_arguments_own(own: Shape, shape: Shape, result: Shape, counts: Shape) -> None:
    assert list_own_dims(own, shape, result) == counts


def test_arguments_have_as_many_dimensions_of_their_own() -> None:
    a = call((4, 3, 5), x1=((4, 3, 7), (4, 3, 7)), x2=((4, 5, 7), (4, 5, 7)))
    b = call((6, 2, 8), x1=((1, 2, 3), (6, 2, 3)), x2=((6, 8, 3), (6, 8, 3)))
    assert count_own_dims([a, b]) == {"x1": 2, "x2": 2}
    assert count_own_dims([call((4, 3), x1=((1, 3), (4, 3)))]) == {"x1": 0}


def test_each_has_its_own_where_no_number_does_for_all() -> None:
    apart = call((4, 3, 5), x1=((8, 6, 7), (4, 6, 7)), x2=((5,), (4, 3, 5)))
    assert count_own_dims([apart]) == {"x1": 2, "x2": 0}


def test_calls_without_a_batch_have_all_dimensions_of_their_own() -> None:
    flat = call((3, 5), x1=((3, 7), (3, 7)), x2=((5, 7), (5, 7)))
    batch = call((4, 2, 6), x1=((4, 2, 8), (4, 2, 8)), x2=((4, 6, 8), (4, 6, 8)))
    assert count_own_dims([flat, batch]) == {"x1": 2, "x2": 2}


def test_what_the_result_says_nothing_of_is_not_expanded() -> None:
    made = call((4, 3, 5), x1=((1, 3, 7), (4, 3, 7)), x3=((2, 6, 5), (2, 6, 5)))
    assert count_own_dims([made]) == {"x1": 1}


def test_calls_that_disagree_are_refused() -> None:
    a, b = call((4, 3), x1=((1, 3), (4, 3))), call((4, 3), x1=((1, 9), (4, 9)))
    assert count_own_dims([a, b]) == {"x1": 1}
    c = call((4, 3), x1=((9,), (4, 3)))
    with pytest.raises(PorterError, match="differ between recorded calls"):
        count_own_dims([b, c])


def test_a_call_that_expands_nothing_says_nothing_but_by_its_shape() -> None:
    plain = Arguments({"x1": TensorValue((4, 3), FLOAT), "result0": TensorValue((4, 3), FLOAT)}, {})
    assert count_own_dims([plain]) == {}
    assert count_own_dims([plain, call((4, 3), x1=((1, 9), (4, 9)))]) == {"x1": 1}
