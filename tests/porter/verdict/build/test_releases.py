"""Files of a fork that do not fit each other are named before what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from porter.core.errors import Place, PorterError
from porter.core.layout import DEVICE, KERNELS, METAL_HEADERS, MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.build.releases import find_release_faults, tell_misfit
from porter.verdict.build.tree import Tree, materialise
from porter.verdict.result import VerifyTarget

HOST, HEADER, SHARED = f"{OPERATIONS}/Turn.mm", f"{OPERATIONS}/Turn.h", f"{MPS}/OperationUtils.mm"
KERNEL = f"{KERNELS}/Turn.metal"
UNDECLARED = "the host code does not compile: use of undeclared identifier 'turned_elsewhere'"


# Headers of a class and of much else: a row, too, is called as a member is that the class lost.
OTHERS = {
    f"{DEVICE}/Turned.h": "class Turned {\n  void turn();\n};\n",
    "aten/src/ATen/Numbers.h": "double turned_number(double);\n",
    NATIVE_FUNCTIONS: "- func: fill(Tensor self) -> Tensor\n",
}
USING = """#include <ATen/ops/turned_native.h>
void turn() {
  turned_elsewhere(turn_by(1));
  stream.fill(turned_number(1));
}
"""


def make(folder: Path, before: Mapping[str, str], edits: Mapping[str, str] | None = None) -> Tree:
    for path, text in {NATIVE_FUNCTIONS: "", **before}.items():
        (folder / "fork" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "fork" / path).write_text(text)
    return materialise(folder / "fork", edits or {}, folder / "cache")


def tell(tree: Tree, errors: str) -> PorterError:
    return tell_misfit(tree, HOST, PorterError("PTR166", errors, Place(HOST, 3)))


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (UNDECLARED, "it uses `turned_elsewhere`, which neither this fork nor torch "),
        ("no member named 'turned_elsewhere' in namespace 'at'", "it uses `turned_elsewhere`, which neither "),
        ("no member named 'fill' in 'at::mps::Turned'", "it uses `fill`, which neither "),
        ("'ATen/ops/turned_native.h' file not found", "it includes `ATen/ops/turned_native.h`, which neither "),
        (
            "call to 'turn_by' is ambiguous",
            f"it calls `turn_by` otherwise than {HEADER[len('aten/src/') :]} declares it",
        ),
        ("no matching function for call to 'turn_by'", "it calls `turn_by` otherwise than "),
    ],
)
def test_a_host_file_of_another_release_is_named_before_what_the_compiler_says(
    errors: str, said: str, tmp_path: Path
) -> None:
    misfit = tell(make(tmp_path, {HOST: USING, HEADER: "void turn_by(int degrees);\n", **OTHERS}), errors)
    assert (misfit.code, misfit.place) == ("PTR169", Place(HOST, 3))
    first, second = misfit.what.split("\n")
    assert first.startswith("this host file does not fit the headers: ") and said in first
    assert second == errors


def test_what_is_declared_or_new_keeps_its_error(tmp_path: Path) -> None:
    header = {HEADER: "int turned_elsewhere();\n"}
    declared = make(tmp_path / "header", {HOST: USING, **header})
    by_rows = make(tmp_path / "rows", {HOST: USING, NATIVE_FUNCTIONS: "    MPS: turned_elsewhere\n"})
    gone = make(tmp_path / "gone", {HOST: USING, **header}, {HEADER: "\n"})
    new = make(tmp_path / "new", {HOST: ""}, {HOST: USING})
    lost = make(tmp_path / "lost", {HOST: f"static int turned_elsewhere();\n{USING}"}, {HOST: USING})
    assert [tell(tree, UNDECLARED).code for tree in (declared, by_rows, gone, new, lost)] == ["PTR166"] * 5
    assert tell(declared, "expected ';'").what == "expected ';'"
    assert tell(declared, "no matching function for call to 'turned_number'").code == "PTR166", (
        "no header of the backend's"
    )
    kept = make(tmp_path / "kept", {HOST: USING}, {HOST: f"// A port.\n{USING}"})
    assert tell(kept, UNDECLARED).code == "PTR169", "the port edits the file, and not what is wrong with it"


LAUNCHER = """void MetalShaderLibrary::exec_turn_kernel(Iterator& iter, const std::string& name) {
  mtl_dispatch1DJob(encoder, state, iter.numel());
}
"""
METAL = """#include <metal_stdlib>
using namespace metal;
kernel void turn_dense_float(device float* out, uint at [[thread_position_in_grid]]) {
  out[at] = 0;
}
kernel void turn_strided_float(device float* out, uint3 at [[thread_position_in_grid]]) {
  out[at.x + at.y + at.z] = 0;
}
"""
LAUNCH = 'static void turn_kernel(Iterator& iter) {\n  lib.exec_turn_kernel(iter, "turn");\n}\n'
TARGET = VerifyTarget("turn", kernels=("turn",))
RAN = ("turn_dense_float", "turn_strided_float")


def make_native(folder: Path, launcher: str = LAUNCHER) -> Tree:
    return make(folder, {HOST: LAUNCH, SHARED: launcher, KERNEL: METAL, f"{METAL_HEADERS}/utils.h": ""})


def test_kernels_that_are_asked_for_and_nowhere_are_told(tmp_path: Path) -> None:
    asked = [f"RuntimeError: Failed to create function state object for: turn_{of}" for of in ("half", "dense_float")]
    [fault] = find_release_faults(make_native(tmp_path), TARGET, asked, ())
    assert fault.place == KERNEL
    assert fault.what == (
        "PTR169 exec_turn_kernel asks for kernel `turn_half`, which no kernel file has: host code and kernels do not fit"
    )


def test_a_grid_of_fewer_dimensions_than_a_kernel_goes_over_is_told(tmp_path: Path) -> None:
    another = VerifyTarget("other", kernels=("other",))  # an operator whose code runs these kernels too
    [fault] = find_release_faults(make_native(tmp_path / "one"), another, [], RAN)
    assert fault.place == f"{SHARED}:1"
    assert fault.what == (
        "PTR169 exec_turn_kernel launches `turn_strided_float` over 1 dimension, and the kernel goes over 3: "
        "they do not fit"
    )
    fits = LAUNCHER.replace("}\n", "  mtl_dispatch3DJob(encoder, state, x, y, z);\n}\n")
    by_threads = LAUNCHER.replace("}\n", "  [encoder dispatchThreads:size threadsPerThreadgroup:group];\n}\n")
    for name, launcher in (("fits", fits), ("threads", by_threads)):
        assert find_release_faults(make_native(tmp_path / name, launcher), TARGET, [], RAN) == ()
    assert find_release_faults(make_native(tmp_path / "dense"), TARGET, [], RAN[:1]) == ()
