r"""Tests of native Metal operators that no OpInfo reaches, for `tools/natives.py`:

python tools/natives.py FORK _fused_adam,_fused_adamw,_fused_sgd --sanitize all \
    --tests $PWD/tools/beyond_opinfo/fused_optimizers.py
"""

from __future__ import annotations

import unittest
from itertools import product

import torch

SHAPES = ((3,), (17, 5), (2, 3, 4), (1030,))


class FusedOptimizers(unittest.TestCase):
    """Three steps of each fused optimizer on the device, and of the plain one on the CPU."""

    def compare(self, kind: type[torch.optim.Optimizer], dtype: torch.dtype, **options: object) -> None:
        torch.manual_seed(1)
        start = [torch.randn(shape) for shape in SHAPES]
        slopes = [[torch.randn(shape) for shape in SHAPES] for _ in range(3)]
        found = []
        for device, fused in (("mps", True), ("cpu", False)):
            kept = dtype if device == "mps" else torch.float32
            parameters = [value.to(kept).to(device).requires_grad_() for value in start]
            optimizer = kind(parameters, fused=fused, lr=0.01, **options)  # type: ignore[call-arg, arg-type]
            for each in slopes:
                for parameter, slope in zip(parameters, each, strict=True):
                    parameter.grad = slope.to(kept).to(device)
                optimizer.step()
            found.append([parameter.detach().cpu().float() for parameter in parameters])
        tolerance = 1e-5 if dtype == torch.float32 else 2e-2
        torch.testing.assert_close(*found, rtol=tolerance, atol=tolerance)

    def test_adam(self) -> None:
        kinds = (torch.optim.Adam, torch.optim.AdamW)
        dtypes = (torch.float32, torch.float16, torch.bfloat16)
        for kind, dtype, amsgrad in product(kinds, dtypes, (False, True)):
            with self.subTest(kind=kind.__name__, dtype=dtype, amsgrad=amsgrad):
                self.compare(kind, dtype, amsgrad=amsgrad, eps=1e-2)  # the default is 0 in half

    def test_sgd(self) -> None:
        for dtype, momentum in product((torch.float32, torch.float16, torch.bfloat16), (0.0, 0.9)):
            with self.subTest(dtype=dtype, momentum=momentum):
                self.compare(torch.optim.SGD, dtype, momentum=momentum)
