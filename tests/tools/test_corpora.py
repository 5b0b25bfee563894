"""A folder of kernels, right and wrong: each gets the outcome that is its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

from aten_overlay.metal.build import QUICK, Options, compile_kernels
from corpora import Compiled, Outcome, _call_each, _compile_all, try_file

SOURCE = """#include <metal_stdlib>
constant int count [[function_constant(0)]];
kernel void fine(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = count; }
kernel void stray(device long* x [[buffer(0)]]) { *(device int*)(x[1] & 7) = 1; }
kernel void small(device long* x [[buffer(0)]], uint n [[threads_per_grid]]) { if (x[1] < long(n)) *(device int*)nullptr = 1; }
kernel void halved(device int* x [[buffer(0)]]) { if (x[0] / 2 != 2 || x[1] / 2 != 2) *(device int*)nullptr = 1; }
kernel void drawn(metal::texture2d<float, metal::access::write> t [[texture(1)]], metal::sampler s [[sampler(0)]]) {
  t.write(float4(1), uint2(0));
}
struct Block { device float* values [[id(0)]]; metal::texture2d<float> image [[id(1)]]; };
kernel void pointing(constant Block& block [[buffer(0)]]) { block.values[0] = block.image.read(uint2(0)).x; }
kernel void wrong(device float* x [[buffer(0)]]) { x[0] = missing; }
kernel void four(device int* x [[buffer(0)]]) { metal::array<int, count - 3> y; x[0] = y.size(); }
"""


def test_each_kernel_has_its_outcome(tmp_path: Path) -> None:
    file = tmp_path / "some.metal"
    file.write_text(SOURCE)
    outcomes = {o.name: o for o in try_file(file, Options(), 1, 60).outcomes}
    assert {n: (o.compiled, o.called) for n, o in outcomes.items()} == {
        "fine": (True, True),
        "stray": (True, False),
        "small": (True, True),
        "halved": (True, True),
        "drawn": (True, True),
        "pointing": (True, True),
        "wrong": (False, False),
        "four": (True, True),
    }
    assert outcomes["stray"].error.startswith("crashed")
    assert "undeclared identifier 'missing'" in outcomes["wrong"].error


def test_a_file_that_cannot_be_read_is_one_outcome(tmp_path: Path) -> None:
    file = tmp_path / "some.metal"
    file.write_text("#include <nowhere.h>\n")
    (outcome,) = try_file(file, Options(), 1, 60).outcomes
    assert "file not found" in outcome.error


def test_macros_are_defined_as_asked(tmp_path: Path) -> None:
    file = tmp_path / "some.metal"
    file.write_text("kernel void f(device int* x [[buffer(0)]]) { x[0] = COUNT; }\n")
    (outcome,) = try_file(file, Options(defines=("COUNT=3",)), 1, 60).outcomes
    assert outcome.called


def test_functions_of_a_linked_file_are_called_and_its_kernels_are_its_own(tmp_path: Path) -> None:
    caller, called = tmp_path / "caller.metal", tmp_path / "called.metal"
    caller.write_text("int twice(int);\nkernel void f(device int* x [[buffer(0)]]) { x[0] = twice(x[1]); }\n")
    called.write_text("int twice(int x) { return 2 * x; }\nkernel void g(device int* x [[buffer(0)]]) { x[0] = 1; }\n")
    (alone,) = try_file(caller, Options(), 1, 60).outcomes
    assert "PTR348" in alone.error
    for file, name in ((caller, "f"), (called, "g")):
        (outcome,) = try_file(file, Options(), 1, 60, [called]).outcomes
        assert (outcome.name, outcome.called) == (name, True), outcome.error


def test_what_only_the_optimizer_drops_is_called_in_the_end(tmp_path: Path) -> None:
    """A value read through a null pointer and never used, as sort kernels without indices have it."""
    file = tmp_path / "some.metal"
    steps = " ".join(f"a = a * {i} ^ x[a & 7];" for i in range(25))
    file.write_text(f"""
int take(const threadgroup int* places, thread int& place, int a, device int* x) {{ {steps} place = places[a]; return a; }}
int choose(device int* x, const threadgroup int* places) {{
  int place;
  return take(places, place, 0, x) + take(places, place, 1, x);
}}
kernel void sort(device int* x [[buffer(0)]]) {{ x[0] = choose(x, nullptr); }}
""")
    path = compile_kernels(file, ["sort"], Options(optimization=QUICK))
    (quick,) = _call_each([(Outcome("sort", True, False), path)], 60)
    assert not quick.called, "what is tested needs a crash"
    (outcome,) = try_file(file, Options(optimization=QUICK), 1, 60).outcomes
    assert outcome.called


def test_why_the_second_try_failed_is_said(tmp_path: Path) -> None:
    file = tmp_path / "some.metal"
    file.write_text("kernel void stray(device int* x [[buffer(0)]]) { *(device int*)(x[1] & 7) = 1; }\n")
    with patch("corpora._compile_all", side_effect=_lose_optimized):
        (outcome,) = try_file(file, Options(optimization=QUICK), 1, 60).outcomes
    assert outcome.error.endswith("; crashed while compiling, or took too long with every optimization")


def _lose_optimized(
    path: Path, options: Options, sample: int, link: Sequence[Path] = (), only: frozenset[str] = frozenset()
) -> Iterator[Compiled]:
    if options.optimization != QUICK:
        os.abort()
    yield from _compile_all(path, options, sample, link, only)
