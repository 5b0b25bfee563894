"""What the CPU requires of the sizes of tensors, and the old code does not ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from porter.loops.host_values import describe
from porter.recording.calls import OpCall
from porter.recording.conversions import Run, find_required_sizes
from porter.recording.runs import RecordedRun


def recorded(*calls: OpCall) -> list[RecordedRun]:
    return [RecordedRun(call, {}, (), (), others=False) for call in calls]


def list_padded() -> Iterator[OpCall]:
    """Gradients of pads by six numbers, of batches and of single ones."""
    for batch, shape, padding in (
        ((), (2, 3, 4, 5), (1, 2, 1, 0, 2, 3)), ((3,), (2, 4, 3, 6), (0, 1, 2, 2, 1, 0)),
        ((), (3, 5, 6, 4), (2, 0, 0, 3, 1, 1)), ((4,), (3, 6, 5, 7), (3, 1, 1, 0, 0, 2)),
        ((2,), (5, 3, 7, 4), (1, 1, 0, 2, 3, 0)),
    ):  # fmt: skip
        padded = torch.rand(*batch, *shape)
        grad = torch.rand_like(torch.nn.functional.pad(padded, padding, "replicate"))
        yield OpCall(
            torch.ops.aten.replication_pad3d_backward.default,
            {"grad_output": grad, "self": padded, "padding": list(padding)},
        )


def list_losses(reduction: int) -> Iterator[OpCall]:
    for batch, classes, height, width in ((2, 3, 4, 5), (3, 4, 6, 7), (5, 2, 3, 4)):
        target = torch.zeros(batch, height, width, dtype=torch.int64)
        grad = torch.rand(batch, height, width) if not reduction else torch.rand(())
        yield OpCall(
            torch.ops.aten.nll_loss2d_backward.default,
            {
                "grad_output": grad, "self": torch.rand(batch, classes, height, width), "target": target,
                "weight": None, "reduction": reduction, "ignore_index": -100, "total_weight": torch.tensor(1.0),
            },
        )  # fmt: skip


def accept(call: OpCall) -> None:
    pass


def run(call: OpCall) -> object:
    return call.run()


def refuse(call: OpCall) -> object:
    raise RuntimeError("other words")


def told(calls: Iterator[OpCall], run: Run) -> dict[str, str]:
    sizes = find_required_sizes([recorded(*calls)], run)
    return {describe(each.actual): f"{describe(each.value)}{f', {each.why}' if each.why else ''}" for each in sizes}


def test_a_gradient_has_the_sizes_that_its_padding_makes() -> None:
    required = told(list_padded(), accept)
    assert required["grad_output.size(-1)"] == "(self.size(-1) + padding[0]) + padding[1]"
    assert required["grad_output.size(-2)"] == "(self.size(-2) + padding[2]) + padding[3]"
    assert required["grad_output.size(-3)"] == "(self.size(-3) + padding[4]) + padding[5]"


def test_the_gradient_of_each_loss_has_the_sizes_of_the_target() -> None:
    required = told(list_losses(0), accept)
    assert {name: value for name, value in required.items() if name.startswith("grad_output")} == {
        "grad_output.dim()": "target.dim()",
        "grad_output.size(-1)": "target.size(-1)",
        "grad_output.size(-2)": "target.size(-2)",
        "grad_output.size(-3)": "target.size(-3)",
    }
    assert not any(name.startswith("grad_output") for name in told(list_losses(2), accept))


def test_what_the_old_code_refuses_in_the_words_of_the_cpu_needs_no_check() -> None:
    assert told(list_losses(0), run) == {}
    assert told(list_losses(0), refuse)["grad_output.size(-1)"] == "target.size(-1), other words"


@pytest.mark.parametrize("op", [torch.ops.aten.mul.Tensor, torch.ops.aten.take.default])
def test_sizes_that_the_cpu_expands_or_does_not_look_at_are_not_required(op: torch._ops.OpOverload) -> None:
    second = op._schema.arguments[1].name
    shapes = ((3, 4), (5, 6), (4, 7))
    dtype = torch.int64 if second == "index" else torch.float32
    calls = (OpCall(op, {"self": torch.rand(each), second: torch.ones(each, dtype=dtype)}) for each in shapes)
    assert told(calls, accept) == {}


def test_the_old_code_is_asked_once_for_cases_that_agree() -> None:
    asked: list[OpCall] = []
    once = find_required_sizes([recorded(*list_losses(0))], asked.append)
    count = len(asked)
    cases = [recorded(*list_losses(reduction)) for reduction in (0, 2, 0)]
    several = find_required_sizes(cases, asked.append)
    assert set(once) <= set(several) and len(asked) == count + 3 * len(several)


def test_what_the_cpu_refuses_of_a_type_says_nothing_of_sizes() -> None:
    complex_ = (call.with_arguments({"self": call.arguments["self"].to(torch.complex64)}) for call in list_losses(0))
    assert told(complex_, accept) == {}
