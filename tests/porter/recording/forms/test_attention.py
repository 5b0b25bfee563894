"""Whether an operator is attention is found from what its calls return."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import torch

from porter.core.dtypes import FLOAT
from porter.loops.host_values import Arguments, TensorValue
from porter.metal.forms.contraction import Attention
from porter.recording.calls import OpCall
from porter.recording.forms.algebra import attend, find_attention
from porter.recording.runs import RecordedRun

OPERATOR = torch.ops.aten._scaled_dot_product_attention_math_for_mps.default
TWIN = torch.ops.aten._scaled_dot_product_attention_math.default
FORM = Attention("query", "key", "value", "attn_mask", "is_causal", "scale", "enable_gqa", dtypes=(FLOAT,))
SIZES = ((2, 3, 4, 5, 6), (1, 2, 7, 4, 3), (3, 1, 2, 6, 8))  # batches, heads, queries, keys, elements
LEAST = ("hidden", False, 0.25)
KINDS = (("", False, None), ("", True, None), ("added", False, None), ("added", False, 0.3), LEAST)


def list_calls(wrong: bool = False) -> Iterator[RecordedRun]:
    """Calls with each kind of mask, and without; of a query that sees no key, a graph has no number."""
    for (batches, heads, queries, keys, size), (kind, is_causal, scale) in product(SIZES, KINDS):
        query, key = (torch.randn(batches, heads, length, size) for length in (queries, keys))
        value = torch.randn(batches, heads, keys, size + 1)
        mask = torch.randn(queries, keys)
        if kind == "hidden":
            mask[0] = -torch.inf
        tensors: dict[str, Any] = {"query": query, "key": key, "value": value}
        tensors |= {"attn_mask": mask} if kind else {}
        call = OpCall(OPERATOR, {"attn_mask": None, "dropout_mask": None, **tensors, "is_causal": is_causal,
                                 "dropout_p": 0.0, "scale": scale, "enable_gqa": False})  # fmt: skip
        results = [each.float() for each in attend(FORM, tensors, call.arguments)]
        if kind == "hidden":
            for result in results:
                result[..., 0, :] = torch.nan
        yield RecordedRun(call, tensors, (), tuple(each + wrong for each in results), False)


def test_attention_is_found() -> None:
    """Where a graph gives no numbers, what the CPU makes of the operator's twin counts."""
    assert find_attention(list(list_calls())) == FORM
    assert find_attention(list(list_calls(wrong=True))) is None


@pytest.mark.parametrize("scale", [None, 0.3])
def test_what_is_computed_is_what_the_cpu_does(scale: float | None) -> None:
    for run in list_calls():
        tensors, is_causal = run.given, run.call.arguments["is_causal"]
        mask = tensors.get("attn_mask")
        names = ("query", "key", "value")
        mask = mask.double() if mask is not None else None
        expected = TWIN(*(tensors[name].double() for name in names), mask, 0.0, is_causal, scale=scale)
        computed = attend(FORM, tensors, {"is_causal": is_causal, "scale": scale, "enable_gqa": False})
        torch.testing.assert_close(computed, expected)


def test_what_is_printed() -> None:
    assert list(FORM.describe()) == [
        "scores[i, j] = scale * (sum over e of query[i, e] * key[j, e]) + attn_mask[i, j]",
        "result1[i, j] = softmax over j of scores[i, j], of j up to i where is_causal",
        "result0[i, e] = sum over j of result1[i, j] * value[j, e]",
        "of the last two dimensions",
        "with as many heads of query for each of key and value where enable_gqa",
    ]


def test_what_kernels_read_and_write() -> None:
    shapes: dict[str, tuple[int, ...]] = {"query": (2, 3, 40, 8), "key": (2, 3, 70, 8), "value": (2, 3, 70, 16)}
    shapes |= {"attn_mask": (40, 70), "result0": (2, 3, 40, 16), "result1": (2, 3, 40, 70)}
    call = Arguments({name: TensorValue(shape, FLOAT) for name, shape in shapes.items()}, {})
    scores, weights, sums = FORM.count_costs(call)
    assert (scores.turns, sums.turns) == (2 * 3 * 40 * 70 * 8, 2 * 3 * 40 * 70 * 16)
    assert weights.reads == {"result1": (weights.written,) * 3, "attn_mask": (40 * 70 * 4,)}
    assert weights.written == scores.written == 2 * 3 * 40 * 70 * 4
    assert sums.written == 2 * 3 * 40 * 16 * 4


def test_heads_that_share_keys() -> None:
    query, key, value = torch.randn(2, 6, 4, 5), torch.randn(2, 3, 7, 5), torch.randn(2, 2, 7, 4)
    tensors = {"query": query, "key": key, "value": value}
    computed = attend(FORM, tensors, {"is_causal": False, "scale": None, "enable_gqa": True})
    whole = {"query": query, "key": key.repeat_interleave(2, 1), "value": value.repeat_interleave(3, 1)}
    torch.testing.assert_close(computed, attend(FORM, whole, {"is_causal": False, "scale": None, "enable_gqa": False}))
