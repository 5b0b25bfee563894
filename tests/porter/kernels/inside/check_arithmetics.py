"""`porter kernel check --arithmetic`: what Apple's compiler may make of a script's floating-point operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.core.progress import Step
from porter.workflows.kernel import check_script

# A mask as products: fast math may factor it, and the one is lost beside 1e10.
SCRIPT = """
import torch
from porter.kernels.script import Kind, Layout, Script, Stage

library = torch.mps.compile_shader('''
kernel void masked(device const float* a, device const float* m, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = BODY;
}
''')

def run(a, m):
    out = torch.empty_like(a)
    library.masked(a, m, out)
    return out

SCRIPT = Script(
    "masks", Kind.ELEMENTWISE, (Stage("masked", run, lambda a, m: torch.where(m == 1, a, -1e10), ("a", "m")),),
    lambda case: {"a": case.uniform(*case.size, low=1, high=2), "m": case.uniform(*case.size, low=1, high=1)},
    ((64,),), (), dtypes=(torch.float32,), layouts=(Layout.DENSE,),
)
"""


def ignore(_step: Step) -> None:
    pass


FAILING = "64-float32-dense, fast arithmetic"


@pytest.mark.parametrize(
    ("body", "failing", "cause"),
    [
        ("a[i] * m[i] + -1e10f * (1.0f - m[i])", [FAILING], "`masked`: depends on how sums and products are grouped"),
        ("metal::isinf(1 / (1 - m[i])) ? a[i] : -1e10f", [FAILING], "PTR298 `masked` depends on infinity or NaN"),
        ("a[i] * metal::tanh(50 * m[i])", [FAILING], "`masked`: right with exact functions"),
        ("a[i] * metal::precise::tanh(50 * m[i])", [], ""),
        ("m[i] == 1 ? a[i] : -1e10f", [], ""),
    ],
)
def test_fast_math_is_among_all_arithmetics(body: str, failing: list[str], cause: str, tmp_path: Path) -> None:
    path = tmp_path / "masks.py"
    path.write_text(SCRIPT.replace("BODY", body))
    results = [result for result in check_script(path, ignore, arithmetic="all") if not result.ok]
    assert [result.case for result in results] == failing
    assert all(result.cause.startswith(cause) for result in results)


# Adds its row to each element of a product, whose place in a tile the kernel asks for or assumes.
TILES = """
import torch
from porter.kernels.script import Kind, Layout, Script, Stage

library = torch.mps.compile_shader('''
#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;
kernel void add_rows(device half* a, device float* c, uint lane [[thread_index_in_simdgroup]]) {
  auto A = tensor(a, dextents<int, 2>(16, 16));
  auto C = tensor(c, dextents<int, 2>(16, 16));
  constexpr auto descriptor = matmul2d_descriptor(16, 16, 16);
  matmul2d<descriptor, execution_simdgroup> product;
  auto sum = product.get_destination_cooperative_tensor<decltype(A), decltype(A), float>();
  product.run(A, A, sum);
  for (int i = 0; i < sum.get_capacity(); ++i) sum[i] += float(PLACE);
  sum.store(C);
}
''')

def run(a):
    c = torch.empty(16, 16, device="mps")
    library.add_rows(a, c, threads=32)
    return c

def reference(a):
    return (a.double() @ a.double() + torch.arange(16)[:, None]).float()

SCRIPT = Script(
    "tiles", Kind.ROW_WISE, (Stage("add_rows", run, reference, ("a",)),), lambda case: {"a": case.normal(*case.size).half()},
    ((16, 16),), (), dtypes=(torch.float32,), layouts=(Layout.DENSE,),
)
"""


@pytest.mark.parametrize(
    ("place", "failing"),
    [
        ("int(lane >> 2 & 4) + int(lane >> 1 & 3) + i / 4 * 8", ["16x16-float32-dense, tiles of macOS 26.0"]),
        ("sum.get_multidimensional_index(i)[1]", []),
    ],
)
def test_both_orders_of_tiles_are_checked(place: str, failing: list[str], tmp_path: Path) -> None:
    path = tmp_path / "tiles.py"
    path.write_text(TILES.replace("PLACE", place))
    assert [result.case for result in check_script(path, ignore) if not result.ok] == failing
