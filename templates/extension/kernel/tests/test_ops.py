"""The kernels on the mps device, and their references on the CPU: add the calls that matter to you."""

import pytest
import torch

import $name
from $name import ops

WITH_REFERENCE = $with_reference


@pytest.mark.parametrize("name", $name.__all__)
def test_the_operator_is_registered(name):
    schema = str(getattr(torch.ops.$name, name).default._schema)
    assert schema.startswith(f"$name::{name}(Tensor[] inputs, ")
    assert isinstance(getattr($name, name), ops.MetalKernel)


@pytest.mark.parametrize("name", $name.__all__)
def test_the_operator_runs_where_it_should(name):
    op = f"$name::{name}"
    if torch.backends.mps.is_available():
        assert torch._C._dispatch_has_kernel_for_dispatch_key(op, "MPS")
    assert torch._C._dispatch_has_kernel_for_dispatch_key(op, "CPU") == (name in WITH_REFERENCE)


@pytest.mark.parametrize("name", $name.__all__)
def test_a_missing_input_is_refused(name):
    kernel = getattr($name, name)
    with pytest.raises(ValueError, match="inputs"):
        kernel([None] * (len(kernel.inputs) + 1))
