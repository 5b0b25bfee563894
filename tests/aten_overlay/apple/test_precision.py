"""A recorded graph in double precision: rounding goes away, and nothing else does."""

from __future__ import annotations

import torch

from aten_overlay.apple.mpsgraph.objects import Ref, Value
from aten_overlay.apple.mpsgraph.precision import AS_WRITTEN, IN_DOUBLE, KEEPING_NAN, LARGER, SMALLER, Precision
from aten_overlay.apple.mpsgraph.recorder import PLACEHOLDER, Node, RecordedGraph, evaluate
from aten_overlay.apple.mpsgraph.types import MPS

X, SCALE, PRODUCT, SUM = (Ref(i, 0) for i in range(4))
HALF, SINGLE = MPS[torch.float16], MPS[torch.float32]
VALUES = torch.linspace(0.1, 3.0, 300).to(torch.float16)


def graph(scale: float, *last: tuple[str, tuple[Value, ...]]) -> RecordedGraph:
    """The sum of the products of a placeholder and a number, all in halves, and what comes last."""
    operations: tuple[tuple[str, tuple[Value, ...]], ...] = (
        (PLACEHOLDER, ([300], HALF)),
        ("constantWithScalar:dataType", (scale, HALF)),
        ("multiplicationWithPrimaryTensor:secondaryTensor", (X, SCALE)),
        ("reductionSumWithTensor:axis", (PRODUCT, 0)),
        *last,
    )
    return RecordedGraph([Node(selector, arguments, (None,), (torch.float16,)) for selector, arguments in operations])


def run(recorded: RecordedGraph, target: Ref, precision: Precision) -> torch.Tensor:
    return evaluate(recorded, target, {X: precision.convert(VALUES)}, precision)


def test_half_rounding_disappears_in_double() -> None:
    exact = VALUES.double().sum() * 0.1
    rounded, doubled = run(graph(0.1), SUM, AS_WRITTEN), run(graph(0.1), SUM, IN_DOUBLE)
    assert rounded.dtype is torch.float16 and doubled.dtype is torch.float64
    assert not torch.allclose(rounded.double().squeeze(), exact, rtol=1e-6)
    torch.testing.assert_close(doubled.squeeze(), exact, rtol=1e-6, atol=0.0)


def test_a_wrong_constant_stays_wrong() -> None:
    exact = VALUES.double().sum() * 0.1
    assert not torch.allclose(run(graph(0.101), SUM, IN_DOUBLE).squeeze(), exact, rtol=1e-3)


def test_only_casts_to_integers_round() -> None:
    cast = ("castTensor:toType", (SUM, HALF))
    assert run(graph(0.1, cast), Ref(4, 0), IN_DOUBLE).dtype is torch.float64
    torch.testing.assert_close(
        run(graph(0.1, cast), Ref(4, 0), IN_DOUBLE), run(graph(0.1), SUM, IN_DOUBLE).float().double()
    )
    whole = ("castTensor:toType", (SUM, MPS[torch.int32]))
    assert run(graph(0.1, whole), Ref(4, 0), IN_DOUBLE).dtype is torch.int32


def test_integers_that_go_through_floats_are_rounded() -> None:
    cast = RecordedGraph(
        [Node(PLACEHOLDER, ([1], MPS[torch.int32]), (None,), ()), Node("castTensor:toType", (X, SINGLE), (None,), ())]
    )
    large = torch.tensor([2**31 - 2], dtype=torch.int32)
    found = [float(evaluate(cast, Ref(1, 0), {X: large}, each)) for each in (SMALLER, AS_WRITTEN, LARGER, IN_DOUBLE)]
    assert found[0] < found[1] == 2.0**31 < found[2] and found[3] == 2**31 - 2


def test_bytes_keep_their_type() -> None:
    data = ("constantWithData:shape:dataType", (VALUES.numpy().tobytes(), [300], HALF))
    made = run(graph(0.1, data), Ref(4, 0), IN_DOUBLE)
    assert made.dtype is torch.float64
    assert torch.equal(made, VALUES.double())


def test_rounding_bounds_are_tight() -> None:
    cast = ("castTensor:toType", (SUM, MPS[torch.int32]))
    exact = float(VALUES.double().sum())
    scale = 40 / exact  # the sum is 40 but for rounding
    found = [int(run(graph(scale, cast), Ref(4, 0), each)) for each in (SMALLER, LARGER)]
    assert found == [39, 40]
    found = [int(run(graph(40.5 / exact, cast), Ref(4, 0), each)) for each in (SMALLER, LARGER)]
    assert found == [40, 40]


def test_exact_values_stay_exact() -> None:
    whole = ("floorWithTensor", (X,))
    for each in (SMALLER, LARGER):
        operations = RecordedGraph([Node(PLACEHOLDER, ([2], HALF), (None,), ()), Node(*whole, (None,), ())])
        made = evaluate(operations, Ref(1, 0), {X: torch.tensor([3.0, -4.0]).half()}, each)
        assert made.tolist() == [3.0, -4.0]


def test_maxima_and_minima_may_keep_nan() -> None:
    nan, two = torch.tensor([torch.nan, 1.0]), torch.tensor([2.0, 2.0])
    for operation, lost in (
        (("reductionMaximumWithTensor:axis", (X, 0)), [1.0]),
        (("reductionMinimumWithTensor:axes", (X, [0])), [1.0]),
        (("maximumWithPrimaryTensor:secondaryTensor", (X, Ref(1, 0))), [2.0, 2.0]),
        (("minimumWithPrimaryTensor:secondaryTensor", (X, Ref(1, 0))), [2.0, 1.0]),
    ):
        feeds = [Node(PLACEHOLDER, ([2], SINGLE), (None,), ()) for _ in range(2)]
        recorded = RecordedGraph([*feeds, Node(operation[0], operation[1], (None,), ())])
        written, kept = (
            evaluate(recorded, Ref(2, 0), {X: nan, Ref(1, 0): two}, each) for each in (AS_WRITTEN, KEEPING_NAN)
        )
        assert written.tolist() == lost
        assert kept[0].isnan() and kept[1:].tolist() == lost[1:]
