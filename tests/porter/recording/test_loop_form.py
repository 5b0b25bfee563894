"""Loop form as `porter explain` prints it."""

from __future__ import annotations

import torch
from expecttest import assert_expected_inline

from aten_overlay.apple.mpsgraph.objects import Ref
from porter.recording.record import describe_loop_form
from tests.porter.recording.graphs import GraphBuilder


def form(builder: GraphBuilder, *results: Ref, **inputs: torch.Tensor) -> str:
    run = builder.run(*results)
    feeds = dict(zip(run.feeds, (tensor.data_ptr() for tensor in inputs.values()), strict=True))
    found = describe_loop_form([type(run)(run.graph, feeds, run.values, run.results)], inputs)
    return "\n".join((found.shapes, *found.lines))


def test_softmax_of_halves_along_a_middle_dimension() -> None:
    builder, x = GraphBuilder(), torch.randn(3, 4, 5).half()
    made = builder.send("softMaxWithTensor:axis", builder.feed(x), 1)
    assert_expected_inline(
        form(builder, made, self=x),
        """\
self (3, 4, 5)
row-wise, for i0 < 3, i2 < 5:
  max0 = max, with NaN for r1_0 < 4 of float(self[i0 * 20 + r1_0 * 5 + i2])
  sum0 = sum for r2_0 < 4 of exponent(float(self[i0 * 20 + r2_0 * 5 + i2]) - max0)
  for i1 < 4:
    out0[i0 * 20 + i1 * 5 + i2] = exponent(float(self[i0 * 20 + i1 * 5 + i2]) - max0) / sum0""",
    )


def test_layer_norm_with_its_statistics() -> None:
    builder, x = GraphBuilder(), torch.randn(3, 4, 5)
    fed = builder.feed(x)
    mean = builder.send("meanOfTensor:axes", fed, [2])
    variance = builder.send("varianceOfTensor:axes", fed, [2])
    selector = "normalizationWithTensor:meanTensor:varianceTensor:gammaTensor:betaTensor:epsilon"
    made = builder.send(selector, fed, mean, variance, None, None, 1e-5)
    assert_expected_inline(
        form(builder, made, mean, variance, input=x),
        """\
input (3, 4, 5)
row-wise, for i0 < 12:
  sum0 = sum for r1_0 < 5 of input[i0 * 5 + r1_0]
  out0[i0] = sum0 / 5
  sum1 = sum for r2_0 < 5 of square(input[i0 * 5 + r2_0] - (sum0 / 5))
  out1[i0] = sum1 / 5
  for i2 < 5:
    out2[i0 * 5 + i2] = (input[i0 * 5 + i2] - (sum0 / 5)) * reciprocalSquareRoot((sum1 / 5) + 1e-05)""",
    )


def test_a_padded_read_stays_behind_its_condition() -> None:
    builder, x = GraphBuilder(), torch.randn(4, 6)
    selector = "padTensor:withPaddingMode:leftPadding:rightPadding:constantValue"
    made = builder.send(selector, builder.feed(x), 0, [1, 0], [1, 3], 2.0)
    assert_expected_inline(
        form(builder, made, self=x),
        """\
self (4, 6)
map, for i0 < 6, i1 < 9:
  out0[i0 * 9 + i1] = (((0 < i0) && (i0 < 5)) && (i1 < 6)) ? self[min(max(i0 - 1, 0), 3) * 6 + min(i1, 5)] : 2""",
    )


def test_a_value_used_twice_is_bound() -> None:
    builder, x = GraphBuilder(), torch.randn(4, 6)
    value = builder.send("exponentWithTensor", builder.feed(x))
    made = builder.send("multiplicationWithPrimaryTensor:secondaryTensor", value, value)
    assert_expected_inline(
        form(builder, made, self=x),
        """\
self (4, 6)
map, for i0 < 24:
  t0 = exponent(self[i0])
  out0[i0] = t0 * t0""",
    )


def test_a_graph_without_loop_form_is_a_line_with_its_code() -> None:
    builder, x = GraphBuilder(), torch.randn(4, 6)
    made = builder.send("sortWithTensor:axis", builder.feed(x), 1)
    assert_expected_inline(
        form(builder, made, self=x),
        """\
self (4, 6)
PTR345 the operation `sortWithTensor:axis` has no loop form""",
    )
