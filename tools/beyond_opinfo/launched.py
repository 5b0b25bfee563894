"""Native Metal kernels that no host code launches here, launched as it would, for `tools/natives.py`:

python tools/natives.py FORK polar --sanitize all --tests $PWD/tools/beyond_opinfo/launched.py

Kernels for tensors past 2^32 bytes, which no test can hold; for types and names that their host code refuses or
misspells; those for which it binds too few bytes; those that macOS older than 14 needs; and RMSNorm.metal, which the
CPU's rms_norm calls on a Mac.
"""

from __future__ import annotations

import unittest
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.utils._cpp_embed_headers import embed_headers

from aten_overlay.device import load

HALF, BFLOAT, FLOAT = torch.float16, torch.bfloat16, torch.float32
NAMES = {FLOAT: "float", HALF: "half", BFLOAT: "bfloat"}
TOLERANCE = {FLOAT: 1e-4, HALF: 1e-2, BFLOAT: 4e-2}
WHOLE = {
    torch.int8: "char", torch.uint8: "uchar", torch.int16: "short", torch.int32: "int", torch.int64: "long",
}  # fmt: skip
BITS = {torch.int8: 8, torch.int16: 16, torch.int32: 32, torch.int64: 64}
KERNELS = "aten/src/ATen/native/mps/kernels"


def compile_file(name: str) -> Any:
    """The library of a `.metal` file of the fork, with the fork's own headers: torch would take its wheel's."""
    device = load.started()
    assert device is not None
    return torch.mps.compile_shader(embed_headers(str(device.fork / KERNELS / name), [device.fork]))


def on_device(values: object, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.tensor(values, dtype=dtype, device="mps")


class Launched(unittest.TestCase):
    """Each kernel against torch on the CPU."""

    def assert_close(self, found: Tensor, expected: Tensor, tolerance: float) -> None:
        torch.testing.assert_close(found.cpu().float(), expected.float(), rtol=tolerance, atol=tolerance)

    def test_norms_of_rows(self) -> None:
        library = compile_file("RMSNorm.metal")
        for (width, looped), dtype in product(((130, ""), (4500, "looped_")), NAMES):
            x, weight = torch.randn(3, width).to(dtype), torch.randn(width).to(dtype)
            out = torch.empty(3, width, dtype=dtype, device="mps")
            getattr(library, f"rms_norm_{looped}{NAMES[dtype]}")(
                x.to("mps"), weight.to("mps"), out, 1e-5, width, 1,
                threads=3 * 1024, group_size=1024, arg_casts={4: "int32", 5: "int32"},
            )  # fmt: skip
            expected = torch.nn.functional.rms_norm(x.float(), (width,), weight.float(), 1e-5)
            self.assert_close(out, expected, TOLERANCE[dtype])

    def test_products_of_matrices(self) -> None:
        library = compile_file("LinearAlgebra.metal")
        for dtype in NAMES:
            x, y = torch.randn(17, 9).to(dtype), torch.randn(9, 19).to(dtype)
            out = torch.empty(17, 19, dtype=dtype, device="mps")
            strides, sizes = on_device([9, 1, 19, 1, 19, 1]), on_device([17, 9, 19, 0], torch.int32)
            kernel = getattr(library, f"matmul_{NAMES[dtype]}")
            kernel(x.to("mps"), y.to("mps"), out, strides, sizes, threads=(32, 32), group_size=(16, 16))
            self.assert_close(out, x.float() @ y.float(), TOLERANCE[dtype])

    def test_products_of_matrices_of_whole_numbers(self) -> None:
        library = compile_file("LinearAlgebra.metal")
        for dtype, name in WHOLE.items():
            x, y = torch.randint(0, 4, (17, 9), dtype=dtype), torch.randint(0, 4, (9, 19), dtype=dtype)
            out = torch.empty(17, 19, dtype=dtype, device="mps")
            strides, sizes = on_device([9, 1, 19, 1, 19, 1]), on_device([17, 9, 19, 0], torch.int32)
            kernel = getattr(library, f"matmul_{name}")
            kernel(x.to("mps"), y.to("mps"), out, strides, sizes, threads=(32, 32), group_size=(16, 16))
            self.assertTrue(torch.equal(out.cpu(), x @ y), name)

    def test_resampled_rows(self) -> None:
        library = compile_file("UpSample.metal")
        for dtype in NAMES:
            x, out = torch.randn(2, 3, 5).to(dtype), torch.empty(2, 3, 8, dtype=dtype, device="mps")
            strides, sizes = on_device([15, 5, 1, 0]), on_device([2, 3, 5, 0])
            kernel = getattr(library, f"upsample_linear1d_{NAMES[dtype]}")
            kernel(
                x.to("mps"), out, strides, on_device([24, 8, 1, 0]), sizes, on_device([2, 3, 8, 0]),
                on_device([5 / 8, 0], torch.float32), on_device([0], torch.bool), threads=8,
            )  # fmt: skip
            expected = torch.nn.functional.interpolate(x.float(), size=8, mode="linear")
            self.assert_close(out, expected, TOLERANCE[dtype])

    def test_complex_numbers(self) -> None:
        binary = compile_file("BinaryKernel.metal")
        for dtype, size in ((FLOAT, 4), (HALF, 2)):
            x, y = torch.randn(33, 2).to(dtype), torch.randn(33, 2).to(dtype)
            out, offsets = torch.empty(33, 2, dtype=dtype, device="mps"), torch.arange(33).view(-1, 1) * 2 * size
            kernel = getattr(binary, f"complex_mul_{NAMES[dtype]}")
            kernel(x.to("mps"), y.to("mps"), out, offsets.expand(33, 4).int().to("mps"), threads=33)
            expected = torch.view_as_complex(x.float()) * torch.view_as_complex(y.float())
            self.assert_close(out, torch.view_as_real(expected), TOLERANCE[dtype])
        length, angle = torch.rand(33).to(HALF), torch.randn(33).to(HALF)
        out = torch.empty(33, 2, dtype=HALF, device="mps")
        binary.polar_dense_half(length.to("mps"), angle.to("mps"), out, threads=33)
        self.assert_close(out, torch.view_as_real(torch.polar(length.float(), angle.float())), TOLERANCE[HALF])

    def test_complex_functions_of_halves(self) -> None:
        library = compile_file("UnaryKernel.metal")
        x = torch.randn(33, 2).to(HALF)
        out = torch.empty(33, 2, dtype=HALF, device="mps")
        library.sinc_complex_half_half(out, x.to("mps"), threads=33)
        expected = torch.sinc(torch.view_as_complex(x.double())).to(torch.complex64)
        self.assert_close(out, torch.view_as_real(expected), 2e-2)

    def test_complex_functions_of_whole_numbers(self) -> None:
        """Registered for `short`, by mistake: of 0 and 1 the results are whole."""
        library = compile_file("UnaryKernel.metal")
        x = torch.tensor([[0, 0], [1, 0]], dtype=torch.int16)
        for name, expected in (("exp", [[1, 0], [2, 0]]), ("sqrt", [[0, 0], [1, 0]]), ("tanh", [[0, 0], [0, 0]])):
            out = torch.full((2, 2), 99, dtype=torch.int16, device="mps")
            getattr(library, f"{name}_complex_short_short")(out, x.to("mps"), threads=2)
            self.assertEqual(out.cpu().tolist(), expected, name)

    def test_histogram_of_halves(self) -> None:
        library = compile_file("HistogramKernel.metal")
        x, edges = torch.rand(40).to(HALF), torch.linspace(0, 1, 5).to(HALF)
        out = torch.zeros(40, 4, dtype=HALF, device="mps")
        no, ends = on_device([0], torch.uint8), (edges[:1].to("mps"), edges[-1:].to("mps"))
        library.histogramdd_half(
            x.to("mps"), x.to("mps"), out, torch.arange(40, dtype=torch.int32).to("mps"), 1, edges.to("mps"),
            on_device([5]), *ends, on_device([4, 1]), no, no, threads=40,
        )  # fmt: skip
        self.assert_close(out.sum(0), torch.histogram(x.float(), edges.float()).hist, 0)

    def test_offsets_past_four_gigabytes(self) -> None:
        library = compile_file("Indexing.metal")
        strides, shape = on_device([[4, 8, 12], [40, 80, 120]], torch.int32), on_device([5, 3], torch.int32)
        offsets = torch.zeros(15, 4, dtype=torch.int64, device="mps")
        library.kernel_index_offsets_64(strides, offsets, shape, 2, threads=15, arg_casts={3: "int32"})
        at = torch.arange(15).view(-1, 1)
        expected = at % 5 * torch.tensor([4, 8, 12]) + at // 5 * torch.tensor([40, 80, 120])
        self.assertTrue(torch.equal(offsets.cpu()[:, :3], expected))

    def test_indices_past_four_gigabytes(self) -> None:
        library = compile_file("Indexing.metal")
        rows = torch.tensor([3, 0, -1, 5])
        for dtype, bits in BITS.items():
            x, count = torch.arange(9, dtype=dtype), torch.arange(4).view(-1, 1)
            size = bits // 8
            picked = torch.zeros(4, dtype=dtype, device="mps")
            self.index(library, f"index_select_{bits}bit", rows, count * torch.tensor([size, 0, 8]), x, picked)
            self.assertEqual(picked.cpu().tolist(), x[rows].tolist())
            for serial in ("", "serial_"):
                put = torch.zeros(9, dtype=dtype, device="mps")
                self.index(
                    library, f"index_put_{serial}{bits}bit", rows, count * torch.tensor([0, size, 8]), x[:4], put
                )
                expected = torch.zeros(9, dtype=dtype).index_put((rows,), x[:4])
                self.assertEqual(put.cpu().tolist(), expected.tolist())

    def test_sums_past_four_gigabytes(self) -> None:
        library = compile_file("Indexing.metal")
        rows = torch.tensor([3, 0, -1, 3])
        for dtype, name in ((FLOAT, "float"), (torch.int32, "int")):
            x, sums = torch.arange(4).to(dtype), torch.zeros(9, dtype=dtype, device="mps")
            offsets = torch.arange(4).view(-1, 1) * torch.tensor([0, 4, 8])
            self.index(library, f"index_put_accumulate_32bit_{name}", rows, offsets, x, sums)
            expected = torch.zeros(9, dtype=dtype).index_put((rows,), x, accumulate=True)
            self.assertEqual(sums.cpu().tolist(), expected.tolist())

    def index(self, library: Any, name: str, rows: Tensor, offsets: Tensor, x: Tensor, out: Tensor) -> None:
        """Launches a kernel for four indices into nine elements."""
        four = torch.nn.functional.pad(offsets, (0, 1)).to("mps")
        size = out.element_size() if "put" in name else x.element_size()
        more, count = ((on_device([4], torch.int32),), 1) if "serial" in name else ((), 4)
        getattr(library, f"{name}_idx64")(
            [rows.to("mps")], on_device([9]), on_device([size]), four, x.to("mps"), out, 1, *more,
            threads=count, arg_casts={6: "int32"},
        )  # fmt: skip
