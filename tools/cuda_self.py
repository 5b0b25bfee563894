"""Checks on an NVIDIA GPU what launches promise: streams, graphs, torch.compile, gradients, sizes past 32 bits.

    python tools/cuda_self.py [--compile]

One line a check. `--compile` only compiles the kernels to PTX, into the cache. Ends with 1 where a check fails.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import replace

import torch

from aten_overlay.cuda.compile import PLAIN, compile_kernels
from porter.kernels import MetalKernel, compile_shader, differentiate
from porter.kernels.cuda import compiling_ahead
from shared.arguments import parser

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void scale(device float* x [[buffer(0)]], constant float& k [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  x[i] *= k;
}
kernel void gather(device float* out [[buffer(0)]], device const float* x [[buffer(1)]],
                   constant long* index [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  out[i] = x[index[i]];
}
kernel void increment(device uchar* x [[buffer(0)]], constant ulong& start [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
  x[start + i] += 1;
}
kernel void place(device uint* out [[buffer(0)]], uint3 at [[thread_position_in_grid]],
                  uint3 size [[threads_per_grid]]) {
  out[(at.z * size.y + at.y) * size.x + at.x] = (at.z * size.y + at.y) * size.x + at.x;
}
kernel void shift(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  y[i] = x[i] + 1;
}
"""


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * y


SIN_TIMES = MetalKernel(
    "sin_times", ["x", "y"], ["out"], "uint i = thread_position_in_grid.x; out[i] = sin(x[i]) * y[i];",
    reference=reference, vjp=differentiate(reference),
)  # fmt: skip
TWICE = MetalKernel("twice", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = 2 * x[i];")
SHADERS = compile_shader(SOURCE)


def check_a_graph_replays_with_new_values() -> None:
    x, out = torch.arange(8.0, device="cuda"), torch.zeros(3, device="cuda")

    def step() -> None:
        SHADERS.scale(x, 2.0)
        SHADERS.gather(out, x, [1, 3, 5], threads=3)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            step()
    for _ in range(2):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out.cpu(), 8 * torch.tensor([1.0, 3.0, 5.0]))


def twice(x: torch.Tensor) -> torch.Tensor:
    """A call of a MetalKernel, which repeats what the first one prepared."""
    return TWICE([x], grid=(1000, 1, 1), output_shapes=[(1000,)], output_dtypes=[torch.float32])[0]


def check_a_graph_of_repeated_calls_replays_with_new_values() -> None:
    x = torch.arange(1000.0, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        twice(twice(x))
        assert len(TWICE._repetitions) == 1
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            out = twice(twice(twice(x)))
    for start in (3.0, -7.0):
        x.copy_(torch.arange(1000.0) + start)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out.cpu(), 8 * (torch.arange(1000.0) + start))


def check_launches_are_in_the_current_stream() -> None:
    x = torch.ones(1 << 24, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(20):
            x.add_(1)
            SHADERS.scale(x, 0.5)
    torch.cuda.current_stream().wait_stream(stream)
    assert torch.equal(x, torch.ones_like(x))


def check_a_reference_may_be_a_tensor_of_the_device() -> None:
    x = torch.arange(5.0, device="cuda")
    SHADERS.scale(x, torch.tensor(3.0, device="cuda"))
    assert torch.equal(x.cpu(), 3 * torch.arange(5.0))


def check_overlapping_buffers_are_right() -> None:
    x = torch.arange(1024.0, device="cuda")
    SHADERS.shift(x, x)
    assert torch.equal(x.cpu(), torch.arange(1024.0) + 1)


def check_a_kernel_compiles_without_a_break() -> None:
    x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    compiled = torch.compile(lambda a, b: SIN_TIMES.run(a + 1, b) * 2, fullgraph=True)
    torch.testing.assert_close(compiled(x, y), reference(x + 1, y) * 2)


def check_gradients_are_those_of_the_reference() -> None:
    x, y = (torch.randn(1000, device="cuda", requires_grad=True) for _ in range(2))
    result = SIN_TIMES.run(x, y)
    assert isinstance(result, torch.Tensor)
    found = torch.autograd.grad(result.sum(), (x, y))
    wanted = torch.autograd.grad(reference(x, y).sum(), (x, y))
    torch.testing.assert_close(found, wanted)


def check_a_tensor_of_twelve_gibibytes() -> None:
    size, count = 3 << 32, 1 << 20
    x = torch.zeros(size, dtype=torch.uint8, device="cuda")
    SHADERS.increment(x, size - count, threads=count)
    assert int(x[-count:].sum(dtype=torch.int64)) == count
    assert int(x.view(torch.int64).count_nonzero()) == count // 8


def check_a_grid_of_three_times_two_to_the_thirty() -> None:
    x = torch.zeros(3 << 30, dtype=torch.uint8, device="cuda")
    SHADERS.increment(x, 0, threads=3 << 30)
    assert bool((x == 1).all())


def check_many_blocks_in_y_and_z() -> None:
    for size in ((3, 70001, 2), (2, 3, 70001), (5, 1, 200003), (33, 7, 5)):
        out = torch.zeros(size[0] * size[1] * size[2], dtype=torch.int32, device="cuda")
        SHADERS.place(out, threads=list(size), group_size=[4, 1, 1] if size[0] < 33 else [8, 4, 2])
        assert torch.equal(out, torch.arange(out.numel(), dtype=torch.int32, device="cuda")), size


CHECKS: tuple[Callable[[], None], ...] = tuple(value for name, value in globals().items() if name.startswith("check_"))


def compile_all() -> None:
    compile_kernels(SOURCE)
    compile_kernels(SOURCE, ["scale"], cuda=replace(PLAIN, passing=((1, 0),)))
    with compiling_ahead():
        SIN_TIMES.run(torch.zeros(1000), torch.zeros(1000))
        twice(torch.zeros(1000))


def main() -> int:
    given = parser(__doc__)
    given.add_argument("--compile", action="store_true", help="only compile to PTX")
    if given.parse_args().compile:
        compile_all()
        return 0
    failed = 0
    for check in CHECKS:
        try:
            check()
            print(f"ok    {check.__name__}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAIL  {check.__name__}: {type(error).__name__} {str(error)[:300]}", flush=True)
            traceback.print_exc()
        torch.cuda.empty_cache()
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} checks")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
