"""When host code has returned already where there are no elements."""

from __future__ import annotations

from dataclasses import replace

from porter.core.dtypes import FLOAT
from porter.loops.host_values import Arguments, TensorValue
from porter.loops.program import Programs
from porter.plan.recorded.returns import list_counted
from tests.porter.plan.recorded.fork import shares, turned


def with_tensors(**shapes: tuple[int, ...]) -> Programs:
    """The program of a kernel over rows with calls of other tensors."""
    [case] = shares().cases
    call = Arguments({name: TensorValue(shape, FLOAT) for name, shape in shapes.items()}, {})
    return Programs("shares", (replace(case, calls=(call,)),))


def test_the_elements_of_a_map_are_counted() -> None:
    assert list_counted(turned()) == {"result0"}


def test_a_tensor_alone_has_as_many_elements_as_results_of_its_sizes() -> None:
    assert list_counted(shares()) == {"self"}
    assert list_counted(with_tensors(self=(6, 7), result0=(6, 7), result1=(6, 7))) == {"self"}
    assert list_counted(with_tensors(self=(6, 7), result0=(6,))) == set()


def test_of_several_tensors_one_may_be_broadcast() -> None:
    assert list_counted(with_tensors(self=(6, 7), other=(6, 7), result0=(6, 7))) == set()
