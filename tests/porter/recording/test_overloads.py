"""Calls of an overload that no sample makes, after those of one that samples make."""

from __future__ import annotations

import pytest
import torch

from porter.recording.calls import OpCall
from porter.recording.varied_calls import adapt_call, adapt_with_type

X = torch.tensor([0.5, -1.0])
ATEN = torch.ops.aten


def made(overload: torch._ops.OpOverload, **arguments: object) -> OpCall:
    return OpCall(overload, arguments)


def alike(call: OpCall, name: str) -> OpCall:
    found = adapt_call(call, name)
    assert found is not None
    return found


def test_a_tensor_is_replaced_by_a_number_of_its_category() -> None:
    for tensor, number in ((X, 0.43), (torch.tensor([1, 2]), 11), (torch.tensor([True]), True)):
        found = alike(made(ATEN.eq.Tensor, self=tensor, other=tensor), "eq.Scalar")
        assert found.name == "eq.Scalar"
        assert (found.arguments["other"], type(found.arguments["other"])) == (number, type(number))


def test_in_place_writes_to_a_copy() -> None:
    found = alike(made(ATEN.relu.default, self=X), "relu_")
    assert torch.equal(found.run(), torch.tensor([0.5, 0.0]))
    assert torch.equal(X, torch.tensor([0.5, -1.0]))


def test_results_have_memory_of_their_own() -> None:
    found = alike(made(ATEN.max.dim, self=X, dim=0, keepdim=False), "max.dim_max")
    assert [t.dtype for t in (found.arguments["max"], found.arguments["max_values"])] == [torch.float32, torch.int64]
    assert list(found.tensors()) == ["self"]
    assert found.run()[0].item() == 0.5


def test_an_output_is_passed_only_once() -> None:
    call = made(ATEN.eye.m, n=2, m=3, dtype=torch.float32, layout=None, device=torch.device("cpu"), pin_memory=None)
    found = alike(call, "eye.m_out")
    assert found.arguments.keys() == {"n", "m", "out"}
    assert found.run().shape == (2, 3)


@pytest.mark.parametrize(
    "name", ["eq.Tensor", "eq.no_such", "no_such_operator", "lerp.Scalar", "clamp.Tensor", "sum.dim_IntList"]
)
def test_what_takes_other_arguments_is_another_call(name: str) -> None:
    assert adapt_call(made(ATEN.eq.Tensor, self=X, other=X), name) is None


def test_a_number_is_no_tensor() -> None:
    assert adapt_call(made(ATEN.eq.Scalar, self=X, other=1.0), "eq.Tensor") is None


def test_a_refused_call_gives_no_results_to_overwrite() -> None:
    call = made(ATEN.mm.default, self=X.reshape(1, 2), mat2=X.reshape(1, 2))
    assert adapt_call(call, "mm.out") is None


def test_a_result_type_is_that_of_the_first_tensor() -> None:
    given = made(torch.ops.aten.norm.ScalarOpt_dim, self=torch.rand(2, 3), p=2, dim=[0], keepdim=True)
    adapted = adapt_with_type(given, "norm.ScalarOpt_dim_dtype")
    assert adapted is not None and adapted.arguments == {**given.arguments, "dtype": torch.float32}
    assert adapted.run().shape == (1, 3)
    assert adapt_with_type(given, "norm.ScalarOpt_dim") is None
    assert adapt_with_type(given, "norm.ScalarOpt_dtype") is None
