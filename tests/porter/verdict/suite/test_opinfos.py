"""The samples that tests of layouts take."""

from unittest import TestCase

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos, watching

PADS = "nn.functional.pad.reflect"


@pytest.mark.parametrize(("base", "padded"), [("reflection_pad1d", 1), ("reflection_pad3d", 3)])
def test_samples_of_several_operators_are_those_of_the_one_under_test(base: str, padded: int) -> None:
    op = next(each for each in op_db if each.full_name == PADS)
    found = OpInfos(Context(bases=(base,), through=(PADS,))).pick_samples(op, torch.float32)
    assert {len((*each.args, *each.kwargs.values())[0]) // 2 for each in found} == {padded}


def test_samples_of_lists_of_tensors_have_dimensions() -> None:
    op = next(each for each in op_db if each.name == "cat")
    found = OpInfos(Context(bases=("cat",))).pick_samples(op, torch.float32)
    assert found and all(tensor.ndim > 1 and tensor.numel() for each in found for tensor in each.input)


def test_samples_are_the_same_whatever_test_asks_first() -> None:
    op = next(each for each in op_db if each.name == "atan2")
    asked = list[torch.Tensor]()

    def ask() -> None:
        drawn = OpInfos(Context(bases=("atan2",))).samples(op, torch.float32, requires_grad=True)
        asked.append(drawn[0].input)

    class Suite(TestCase):  # torch seeds a sample with the name of the test that it finds above the call
        def test_output_grad_match(self) -> None:
            ask()

        def test_what_comes_before(self) -> None:
            ask()

    for name in ("test_output_grad_match", "test_what_comes_before"):
        Suite(name).debug()
    one, other = asked
    assert torch.equal(one, other)


def test_calls_of_others_draw_where_dropout_does() -> None:
    name = "nn.functional.scaled_dot_product_attention"
    [op] = [each for each in op_db if each.full_name == name]
    drawn = []
    for sample in op.sample_inputs("cpu", torch.float32):
        for context in (Context(through=(name,)), Context()):
            state = torch.random.get_rng_state()
            with watching(op, context) as draws:
                op(sample.input, *sample.args, **sample.kwargs)
            assert torch.equal(state, torch.random.get_rng_state())  # OpInfos put it back
            assert draws.drawn == (bool(context.through) and sample.kwargs["dropout_p"] > 0)
            drawn.append(draws.drawn)
    assert {True, False} == set(drawn)
