r"""Tests of native Metal kernels that OpInfo's element types and sizes do not reach, for `tools/natives.py`:

python tools/natives.py FORK polar,special_zeta,linalg_cross,_fused_adam,_fused_adamw,im2col,_index_put_impl,\
masked_fill,cholesky,_convert_weight_to_int4pack,_weight_int4pack_mm,_weight_int8pack_mm,repeat_interleave,\
special_spherical_bessel_j0,round,unfold_backward,upsample_bicubic2d_backward,_upsample_bilinear2d_aa \
    --sanitize all --tests $PWD/tools/beyond_opinfo/other_types.py
"""

from __future__ import annotations

import unittest
from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

HALF, BFLOAT, FLOAT = torch.float16, torch.bfloat16, torch.float32
TOLERANCE = {FLOAT: 1e-4, HALF: 1e-2, BFLOAT: 4e-2}


class OtherTypes(unittest.TestCase):
    """Each operator on the device against the CPU, in wider types there."""

    def compare(
        self, function: Callable[..., Tensor], *inputs: Tensor, wide: torch.dtype | None = torch.float64
    ) -> None:
        found = function(*(x.to("mps") for x in inputs)).cpu()
        kept = [x.to(wide) if wide else x for x in inputs]
        tolerance = TOLERANCE.get(inputs[0].dtype, 0.0)
        expected = function(*kept).to(found.dtype)
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)

    def test_polar(self) -> None:
        for shape in ((9,), (9, 1)):
            self.compare(torch.polar, torch.rand(shape, dtype=HALF), torch.randn(9, dtype=HALF))

    def test_zeta(self) -> None:
        for dtype, shape in product((HALF, BFLOAT), ((17,), (17, 1))):
            self.compare(torch.special.zeta, torch.rand(shape).to(dtype) + 2, torch.rand(17).to(dtype) + 1)

    def test_bessel(self) -> None:
        for dtype in (HALF, BFLOAT):
            self.compare(torch.special.spherical_bessel_j0, torch.randn(65).to(dtype))

    def test_round_to_decimals(self) -> None:
        self.compare(lambda x: torch.round(x, decimals=1), torch.randn(65, dtype=HALF), wide=None)

    def test_cross_of_bools(self) -> None:
        x, y = torch.rand(4, 3) > 0.5, torch.rand(4, 3) > 0.5
        found = torch.linalg.cross(x.to("mps"), y.to("mps")).cpu()
        expected = torch.linalg.cross(x.int(), y.int()) != 0
        self.assertTrue(torch.equal(found, expected))

    def test_columns_of_complex_halves(self) -> None:
        x = torch.randn(2, 3, 6, 5, dtype=torch.complex32)
        found = torch.nn.functional.unfold(x.to("mps"), 2).cpu()
        torch.testing.assert_close(found, torch.nn.functional.unfold(x.to(torch.complex64), 2).to(torch.complex32))

    def test_repeats_of_whole_numbers(self) -> None:
        self.compare(torch.repeat_interleave, torch.tensor([2, 0, 3, 1], dtype=torch.int32), wide=None)

    def test_unfold_backward(self) -> None:
        x = torch.randn(3, 5, 2).to(BFLOAT)
        self.compare(lambda x: torch.ops.aten.unfold_backward(x, [3, 6], 1, 2, 1), x)

    def test_interpolation(self) -> None:
        for dtype in (HALF, BFLOAT):
            x = torch.randn(1, 2, 9, 8).to(dtype)
            self.compare(lambda x: torch.ops.aten._upsample_bilinear2d_aa(x, [4, 5], False, None, None), x)
        x = torch.randn(1, 2, 9, 8).to(BFLOAT)
        self.compare(
            lambda x: torch.ops.aten.upsample_bicubic2d_backward(x, [9, 8], [1, 2, 4, 5], False, None, None), x
        )

    def test_cholesky(self) -> None:
        x = torch.randn(70, 70)
        self.compare(torch.ops.aten.cholesky, x @ x.T + 70 * torch.eye(70))

    def test_index_put_in_order(self) -> None:
        torch.use_deterministic_algorithms(True)
        try:
            for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
                x, at = torch.zeros(9, dtype=dtype), torch.tensor([1, 5, 1, 0])
                values = torch.arange(4, dtype=dtype)
                found = x.to("mps").index_put((at.to("mps"),), values.to("mps"))
                self.assertEqual(found.cpu().tolist(), x.index_put((at,), values).tolist())
        finally:
            torch.use_deterministic_algorithms(False)

    def test_masked_fill_of_strided(self) -> None:
        for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
            x, mask = torch.zeros(6, 5, dtype=dtype), torch.rand(5, 6) > 0.5
            view = x.to("mps").t()[:, ::2]
            view.masked_fill_(mask.to("mps")[:, ::2], 3)
            self.assertEqual(view.cpu().tolist(), x.t()[:, ::2].masked_fill(mask[:, ::2], 3).tolist())


class QuantizedProducts(unittest.TestCase):
    """Products with packed weights, against the same with the weights unpacked."""

    def test_four_bits(self) -> None:
        rows, inner = 32, 256
        for group, dtype in product((32, 64, 128, 256), (FLOAT, HALF, BFLOAT)):
            with self.subTest(group=group, dtype=dtype):
                numbers = torch.randint(0, 16, (rows, inner), dtype=torch.int32)
                pairs = (numbers[:, ::2] << 4 | numbers[:, 1::2]).to(torch.uint8)
                packed = torch.ops.aten._convert_weight_to_int4pack(pairs.to("mps"), 8)
                scales = torch.rand(inner // group, rows, 2).to(dtype)
                x = torch.randn(3, inner).to(dtype)
                found = torch.ops.aten._weight_int4pack_mm(x.to("mps"), packed, group, scales.to("mps")).cpu()
                scale, zero = (scales.float()[..., i].repeat_interleave(group, 0).t() for i in (0, 1))
                expected = x.float() @ ((numbers - 8) * scale + zero).t()
                torch.testing.assert_close(found.float(), expected, rtol=TOLERANCE[dtype], atol=60 * TOLERANCE[dtype])

    def test_eight_bits(self) -> None:
        for dtype in (FLOAT, HALF, BFLOAT):
            with self.subTest(dtype=dtype):
                self.multiply(20, dtype)

    def test_eight_bits_times_a_vector(self) -> None:
        self.multiply(1, FLOAT)

    def test_eight_bits_times_a_vector_of_halves(self) -> None:
        self.multiply(1, HALF)

    def test_eight_bits_times_a_vector_of_bfloats(self) -> None:
        self.multiply(1, BFLOAT)

    def test_eight_bits_of_half_a_block(self) -> None:
        self.multiply(20, FLOAT, rows=32)

    def multiply(self, count: int, dtype: torch.dtype, rows: int = 64) -> None:
        x, weights = torch.randn(count, 64).to(dtype), torch.randint(-99, 99, (rows, 64), dtype=torch.int8)
        scales = torch.rand(rows).to(dtype) / 99
        found = torch.ops.aten._weight_int8pack_mm(x.to("mps"), weights.to("mps"), scales.to("mps")).cpu()
        expected = x.float() @ weights.float().t() * scales.float()
        torch.testing.assert_close(found.float(), expected, rtol=TOLERANCE[dtype], atol=20 * TOLERANCE[dtype])


class StepsInOtherTypes(unittest.TestCase):
    """Fused optimizers whose number of steps is kept in half or bfloat16."""

    def test_adam(self) -> None:
        kinds = (torch._fused_adam_, torch._fused_adamw_)
        types = ((FLOAT, HALF), (FLOAT, BFLOAT), (HALF, HALF), (BFLOAT, BFLOAT))
        for step, (dtype, kept), amsgrad in product(kinds, types, (False, True)):
            with self.subTest(step=step, dtype=dtype, kept=kept, amsgrad=amsgrad):
                found = self.run_step(step, "mps", dtype, kept, amsgrad)
                expected = self.run_step(step, "cpu", FLOAT, FLOAT, amsgrad)
                torch.testing.assert_close(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])

    def run_step(
        self, step: Callable[..., None], device: str, dtype: torch.dtype, kept: torch.dtype, amsgrad: bool
    ) -> Tensor:
        torch.manual_seed(1)
        parameter, slope = (torch.randn(33).to(dtype).to(device) for _ in range(2))
        memories = [torch.zeros(33, dtype=dtype, device=device) for _ in range(3)]
        steps = torch.ones((), dtype=kept, device=device)
        options = {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-2, "maximize": False}
        largest = [memories[2]] if amsgrad else []
        step([parameter], [slope], [memories[0]], [memories[1]], largest, [steps], amsgrad=amsgrad, **options)
        return parameter.cpu().float()
