"""The samples that tests of layouts take."""

from unittest import TestCase

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos, watching
from porter.verdict.suite.variations.choice import choose_samples

PADS = "nn.functional.pad.reflect"


@pytest.mark.parametrize(("base", "padded"), [("reflection_pad1d", 1), ("reflection_pad3d", 3)])
def test_samples_of_several_operators_are_those_of_the_one_under_test(base: str, padded: int) -> None:
    op = next(each for each in op_db if each.full_name == PADS)
    found = OpInfos(Context(bases=(base,), through=(PADS,))).pick_samples(op, torch.float32)
    assert {len((*each.args, *each.kwargs.values())[0]) // 2 for each in found} == {padded}


@pytest.mark.parametrize(
    ("base", "name", "ranks"),
    [
        ("nll_loss2d_forward", "nn.functional.nll_loss", {4}),
        ("nll_loss2d_backward", "nn.functional.nll_loss", {4}),
        ("reflection_pad1d_backward", PADS, {2, 3}),
        ("reflection_pad3d_backward", PADS, {4, 5}),
    ],
)
def test_samples_that_are_varied_reach_the_operator_under_test(base: str, name: str, ranks: set[int]) -> None:
    op = next(each for each in op_db if each.full_name == name)
    is_backward = base.endswith("backward")
    forward, backward = ((), (name,)) if is_backward else ((name,), ())
    opinfos = OpInfos(Context(bases=(base,), through=forward, through_backward=backward))
    reaching = opinfos.reaching_samples(op, torch.float32, is_backward)
    assert {sample.input.ndim for sample in reaching} <= ranks and reaching
    assert len(reaching) < len(opinfos.samples(op, torch.float32, is_backward))
    chosen = choose_samples(opinfos, op, torch.float32, 4, is_backward)
    assert chosen and {sample.input.ndim for sample in chosen} <= ranks


def test_where_no_sample_is_known_to_reach_the_operator_all_are_varied() -> None:
    op = next(each for each in op_db if each.full_name == PADS)
    opinfos = OpInfos(Context(bases=("nothing",), through=(PADS,)))
    assert len(opinfos.reaching_samples(op, torch.float32)) == len(opinfos.samples(op, torch.float32))


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
