"""Results of graphs in memory of another shape."""

import pytest

from porter.core.dtypes import FLOAT
from porter.loops.graph import ConcreteGraph, Node, Result, Tensor
from porter.recording.concrete import fit_results, fits


def graph(shape: tuple[int, ...]) -> ConcreteGraph:
    return ConcreteGraph((Node("identityWithTensor", (), (Result(shape, FLOAT),)),), frozenset(), (Tensor(0),))


@pytest.mark.parametrize(
    ("room", "shape", "is_fitting"),
    [
        ((2, 3), (4, 3), True),
        ((2, 3), (2, 3), False),
        ((2, 3), (2, 2), False),
        ((2, 3), (), True),
        ((2, 3), (1,), True),
        ((6,), (2, 3), False),
        ((1, 1), (), False),
    ],
)
def test_what_is_cut_or_expanded(room: tuple[int, ...], shape: tuple[int, ...], is_fitting: bool) -> None:
    assert fits(room, shape) is is_fitting


@pytest.mark.parametrize(
    ("shape", "selector"), [((4, 3), "sliceTensor:starts:ends:strides"), ((), "broadcastTensor:toShape")]
)
def test_a_result_gets_the_shape_of_its_memory(shape: tuple[int, ...], selector: str) -> None:
    made = fit_results(graph(shape), {Tensor(0): (2, 3)})
    assert made.results == (Tensor(1),) and made.result(Tensor(1)) == Result((2, 3), FLOAT)
    assert made.nodes[1].selector == selector and made.nodes[1].arguments[0] == Tensor(0)
