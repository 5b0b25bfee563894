"""OpInfos of operators that make a tensor of numbers."""

from __future__ import annotations

import pytest
import torch

from porter.verdict.suite.made_factories import make_factory_opinfo
from porter.verdict.suite.made_opinfos import list_opinfos


def test_samples_are_of_all_numbers_that_the_cpu_takes() -> None:
    op = make_factory_opinfo("range")
    assert op is not None
    assert op.op == torch.ops.aten.range.step
    assert {torch.float32, torch.bfloat16, torch.int64, torch.uint8} <= set(op.dtypes)
    assert torch.bool not in op.dtypes
    for dtype in (torch.float32, torch.int64):
        samples = list(op.sample_inputs("cpu", dtype))
        made = [op(each.input, *each.args, **each.kwargs) for each in samples]
        assert all(each.dtype == dtype and 0 < each.numel() <= 1000 for each in made)
        for at in range(3):  # a number that is the same in all samples may be taken for a constant
            assert len({(each.input, *each.args)[at] for each in samples}) > 3
        assert min(each.args[1] for each in samples) < 0 < max(each.args[1] for each in samples)


def test_one_that_draws_gets_the_generator_of_the_device() -> None:
    op = make_factory_opinfo("randperm")
    assert op is not None and op.op == torch.ops.aten.randperm.generator
    assert {torch.float16, torch.int64, torch.uint8} <= set(op.dtypes)
    samples = list(op.sample_inputs("cpu", torch.int32))
    assert {each.kwargs["generator"] for each in samples} == {None} and {each.input for each in samples} == {
        1,
        2,
        7,
        12,
    }


@pytest.mark.parametrize("base", ["cat", "zeros_like", "full", "no_such_operator", "fill_"])
def test_operators_of_tensors_and_lists_have_none(base: str) -> None:
    assert make_factory_opinfo(base) is None


def test_they_stand_for_those_that_torch_lacks() -> None:
    assert [op.name for op in list_opinfos(("range",), (), ())] == ["range"]
    assert [op.name for op in list_opinfos(("range",), ("atan2",), ())] == ["atan2"]
