"""What host code reaches and launches, read from small files written for the test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from natives import find_launching_operators
from porter.aten.implementations import (
    Language,
    find_implementation,
    find_language,
    find_registration,
    launches_kernel,
    read_reachable_text,
)
from porter.core.checkout import Checkout
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.native import native_target

HEADER = "#include <ATen/native/mps/operations/Fold.h>\n"
FILES = {
    f"{OPERATIONS}/Bend.mm": HEADER
    + """\
void bend_out_mps(const Tensor& self, const Tensor& out) {
  mps::fold_impl(self, out);
}
Tensor bend_mps(const Scalar& self) {
  return bend_mps(wrapped(self));
}
Tensor bend_mps(const Tensor& self) {
  bend_out_mps(self, at::empty_like(self));
}
void twist_mps(const Tensor& self) {
  auto graph = make_graph();
}
""",
    f"{OPERATIONS}/Fold.h": "void fold_impl(const Tensor& self, const Tensor& out);\n",
    f"{OPERATIONS}/Fold.mm": HEADER
    + """\
static MetalShaderLibrary lib(R"METAL(
kernel void crease_all(device float* out [[buffer(0)]]) {}
)METAL");
void launch(const Tensor& self, const std::string& name) {
  [encoder setComputePipelineState:lib.getPipelineStateForFunc(name)];
}
void fold_impl(const Tensor& self, const Tensor& out) {
  launch(self, "crease_all");
}
void spin_kernel_mps(TensorIteratorBase& iter) {
  launch(iter.input(), "spin");
}
REGISTER_MPS_DISPATCH(spin_stub, &spin_kernel_mps)
""",
    f"{OPERATIONS}/Other.mm": "MPSGraph* make_graph() {\n  return mpsGraph;\n}\n",
    f"{KERNELS}/Spin.metal": '[[host_name("spin_float")]] kernel void spin(device float* out [[buffer(0)]]) {}\n',
    "aten/src/ATen/native/Spin.cpp": """\
static void spin_impl(Tensor& out, spin_fn& given) {
  given(out.device().type(), out);
}
Tensor spin(const Tensor& self) {
  Tensor out = self.clone();
  spin_impl(out, spin_stub);
  return out;
}
""",
    NATIVE_FUNCTIONS: """\
- func: bend.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: bend_out
    MPS: bend_out_mps

- func: spin(Tensor self) -> Tensor
  dispatch:
    CPU, MPS: spin

- func: twist(Tensor self) -> Tensor
  dispatch:
    MPS: twist_mps
""",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    _write(tmp_path, FILES)
    return Checkout(tmp_path, "test")


def _write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_calls_are_followed_into_the_file_beside_an_included_header(checkout: Checkout) -> None:
    texts = list(read_reachable_text(checkout, f"{OPERATIONS}/Bend.mm", "bend_out_mps(self, out);"))
    assert [text.partition("(")[0] for text in texts] == [
        "bend_out_mps",
        "void bend_out_mps",
        "void fold_impl",
        "void launch",
    ]


def test_every_overload_is_reached_and_a_file_not_included_is_not(checkout: Checkout) -> None:
    assert find_language(checkout, find_implementation(checkout, "bend_mps")) is Language.METAL
    twist = find_implementation(checkout, "twist_mps")
    assert find_language(checkout, twist) is Language.OTHER
    assert not launches_kernel(checkout, twist)


def test_a_stub_may_be_registered_for_mps_by_name(checkout: Checkout) -> None:
    found = find_registration(checkout, "spin_stub")
    assert found and found.symbol == "spin_kernel_mps"


def test_a_native_operator_is_found_through_a_stub_that_is_handed_on(checkout: Checkout) -> None:
    assert find_launching_operators(checkout) == ("bend", "spin")
    target = native_target(checkout, "spin")
    assert (target.stubs, target.kernels, target.as_is) == (("spin_stub",), ("spin",), True)


def test_kernels_in_strings_of_host_code_are_named(checkout: Checkout) -> None:
    held = FILES[f"{OPERATIONS}/Fold.mm"].replace("fold_impl", "bend_out_mps")
    (checkout.root / OPERATIONS / "Bend.mm").write_text(held)
    assert native_target(checkout, "bend").kernels == ("crease_all",)
