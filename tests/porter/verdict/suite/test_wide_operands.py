"""Limits between the sizes of a call's tensors, and the calls that have them."""

from __future__ import annotations

import torch

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.overloads import call_overload
from porter.verdict.suite.wide_operands import find_limits, list_wide_operands, measure
from tests.porter.verdict.suite.variations.shown import find_op


def test_a_limit_stands_between_tensors_of_far_different_sizes() -> None:
    small, larger, large = torch.zeros(3), torch.zeros(5), torch.zeros(300)
    assert list(find_limits([small, large, larger])) == [(measure(larger) + 1, (1,))]
    assert not list(find_limits([large, large[:100].clone()]))
    assert measure(large) == 299 * 4 and measure(torch.zeros(4, 4)[:, ::2]) == (3 * 4 + 2) * 4


def test_a_copy_of_another_type_is_beyond_the_limit_too() -> None:
    for tensor in (torch.zeros(40, dtype=torch.int64), torch.zeros(40)):
        for limit, _ in find_limits([torch.zeros(2), tensor]):
            assert measure(tensor.to(torch.int8)) >= limit


def list_beyond(base: str, name: str) -> set[tuple[str, ...]]:
    """For each call, which of its tensors are beyond the limit."""
    op = find_op(name)
    opinfos = OpInfos(Context(bases=(base,), through=(op.full_name,)))
    beyond = set()
    for limit, (_, sample) in list_wide_operands(opinfos, op, torch.float32):
        result = call_overload(sample.input, *sample.args, **sample.kwargs)
        tensors = {"input": sample.input, "other": sample.args[0] if sample.args else None, "result": result}
        beyond.add(
            tuple(
                key
                for key, tensor in tensors.items()
                if isinstance(tensor, torch.Tensor) and (tensor.numel() >= limit or measure(tensor) > limit)
            )
        )
    return beyond


def test_each_operand_is_alone_beyond_a_limit_where_sizes_allow_it() -> None:
    assert {("input",), ("other",)} <= list_beyond("mm", "mm")
    assert list_beyond("var", "var") == {("input",)}
    assert ("input",) in list_beyond("avg_pool2d", "nn.functional.avg_pool2d")


def test_lists_of_tensors_have_no_limit() -> None:
    assert not list_beyond("cat", "cat")
