"""Without an mps device kernels can be made, traced and run on the CPU; a launch says what is missing."""

from __future__ import annotations

import pytest
import torch

from porter.core.errors import PorterError
from porter.kernels import MetalKernel

BODY = "uint i = thread_position_in_grid.x; out[i] = 2 * x[i];"


def test_a_launch_says_that_there_is_no_device() -> None:
    kernel = MetalKernel("twice", ["x"], ["out"], BODY)
    with pytest.raises(PorterError, match=r"PTR220 kernel `twice` .*\n.*python -m aten_overlay"):
        kernel(inputs=[2.0], grid=(1, 1, 1), output_shapes=[(1,)], output_dtypes=[torch.float32])


def test_the_reference_runs_on_the_cpu_and_the_source_is_there() -> None:
    kernel = MetalKernel("twice", ["x"], ["out"], BODY, reference=lambda x: 2 * x)
    assert torch.equal(torch.as_tensor(kernel.run(torch.arange(3.0))), torch.tensor([0.0, 2.0, 4.0]))
    assert "out[i] = 2 * x[i];" in kernel.source
