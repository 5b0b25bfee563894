"""Calls of MPS code that a port removes become calls of the operator."""

from __future__ import annotations

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.native_functions import NativeFunctions
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.plan import Draft
from porter.plan.removal import Gone, redirect_calls

ROWS = """\
- func: turned.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA, MPS: turned_out

- func: turned_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CPU, CUDA, MPS: turned_
"""
FILE = f"{OPERATIONS}/Others.mm"
HOST = """\
#include <ATen/ops/other_native.h>
#include <ATen/ops/turned_native.h>

namespace at::native {
// turned_out_mps(self, out) was here
static void turned_out_mps_of_mine(const Tensor& self) {}

static Tensor& run(const Tensor& self, const Tensor& out) {
  TORCH_CHECK(self.defined(), "turned_out_mps(self, out)");
  turned_mps_(self);
  return native::turned_out_mps(self.view({1, 2}), const_cast<Tensor&>(out));
}
} // namespace at::native
"""


def redirected(folder: Path, host: str) -> str:
    for path, text in {NATIVE_FUNCTIONS: ROWS, FILE: host}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    fork = Checkout(folder, "test")
    rows = NativeFunctions.read(fork).by_name
    gone = (Gone("turned_out_mps", rows["turned.out"]), Gone("turned_mps_", rows["turned_"]))
    return Draft(fork).apply(redirect_calls(fork, gone)).fork.read(FILE)


def test_calls_are_of_the_operator_and_names_in_text_stay(tmp_path: Path) -> None:
    assert_expected_inline(
        redirected(tmp_path, HOST),
        """\
#include <ATen/ops/other_native.h>
#include <ATen/ops/turned.h>

namespace at::native {
// turned_out_mps(self, out) was here
static void turned_out_mps_of_mine(const Tensor& self) {}

static Tensor& run(const Tensor& self, const Tensor& out) {
  TORCH_CHECK(self.defined(), "turned_out_mps(self, out)");
  self.turned_();
  return at::turned_out(const_cast<Tensor&>(out), self.view({1, 2}));
}
} // namespace at::native
""",
    )


def test_a_call_by_its_name_from_the_root_keeps_what_stands_before_it(tmp_path: Path) -> None:
    made = redirected(tmp_path, HOST.replace("return native::turned", "return ::at::native::turned"))
    assert "  return at::turned_out(const_cast<Tensor&>(out), self.view({1, 2}));" in made


def test_the_header_of_an_implementation_that_is_needed_stays(tmp_path: Path) -> None:
    made = redirected(tmp_path, HOST.replace("mine(const Tensor& self) {}", "mine(Tensor& self) { turned_(self); }"))
    assert "#include <ATen/ops/turned_native.h>\n" in made and "#include <ATen/ops/turned.h>\n" in made


def test_a_call_with_other_arguments_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PorterError) as raised:
        redirected(tmp_path, HOST.replace("turned_mps_(self)", "turned_mps_(self, 2)"))
    assert raised.value.code == "PTR362" and str(raised.value.place) == f"{FILE}:10"
