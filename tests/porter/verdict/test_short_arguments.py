"""Launches that lack bytes of an argument: which of them go on, and what is told of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from aten_overlay.metal.build import Options
from porter.core.layout import KERNELS, MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.build.tree import Tree, materialise, metal_include
from porter.verdict.result import ForkFinding
from porter.verdict.short_arguments import ShortArgument, ShortArguments

FILE, SHARED, OWN = f"{KERNELS}/Turn.metal", f"{MPS}/OperationUtils.mm", f"{OPERATIONS}/Turn.mm"
KERNEL = """#include <metal_stdlib>
using namespace metal;
kernel void turn(device float* out, constant uint3& sizes, constant uint4& types, uint at [[thread_position_in_grid]]) {
  out[at] = sizes.x + types.w;
}
"""
LAUNCH = "// Runs kernels.\nvoid Library::exec_turn(int x) {\n  bind(x);\n}\n"
ASKED = ShortArgument("turn", "sizes", 1, 16, 12, "at::native::mps::Library::exec_turn(int)")


def make(folder: Path, edits: Mapping[str, str] | None = None) -> ShortArguments:
    before = {NATIVE_FUNCTIONS: "", FILE: KERNEL, SHARED: LAUNCH, OWN: "void turn_out_mps(int x) {\n  bind(x);\n}\n"}
    for path, text in before.items():
        (folder / "fork" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "fork" / path).write_text(text)
    tree: Tree = materialise(folder / "fork", edits or {}, folder / "cache")
    return ShortArguments(tree, Options(metal_include(tree.root)))


def test_padding_may_lack_and_is_told_once(tmp_path: Path) -> None:
    found = make(tmp_path)
    assert found.allows(ASKED) and found.allows(ASKED)
    assert found.list_findings() == (
        ForkFinding(
            "PTR126 exec_turn binds 12 bytes for argument `sizes` (buffer 1) of kernel `turn`, which takes 16: only "
            "padding lacks, but Metal's API validation refuses it",
            f"{SHARED}:2",
        ),
    )


@pytest.mark.parametrize(
    "asked",
    [
        replace(ASKED, argument="types"),  # an element of a uint4 is none
        replace(ASKED, bound=8),
        replace(ASKED, kernel="another"),
        replace(ASKED, function=""),
        replace(ASKED, function="at::native::elsewhere(int)"),
        replace(ASKED, function="at::native::turn_out_mps(int)"),  # the operator's own code
    ],
)
def test_all_else_is_refused(asked: ShortArgument, tmp_path: Path) -> None:
    found = make(tmp_path)
    assert not found.allows(asked) and found.list_findings() == ()


def test_a_port_touches_what_it_writes(tmp_path: Path) -> None:
    own = replace(ASKED, function="at::native::turn_out_mps(int)")
    beside = make(tmp_path / "beside", {SHARED: f"// A comment.\n{LAUNCH}"})
    assert beside.allows(ASKED) and beside.allows(own)  # a plan for another operator
    assert not make(tmp_path / "function", {SHARED: LAUNCH.replace("bind(x)", "bind(2)")}).allows(ASKED)
    assert not make(tmp_path / "own", {OWN: "void turn_out_mps(int x) {\n  bind(3);\n}\n"}).allows(own)
    assert not make(
        tmp_path / "kernel", {FILE: f"{KERNEL}{KERNEL[KERNEL.index('kernel') :].replace('turn', 'back')}"}
    ).allows(ASKED)
    text = KERNEL.replace("sizes.x +", "sizes.y +")
    assert make(tmp_path / "body", {FILE: text}).allows(ASKED)
