"""Registrations that wait until an operator is asked for."""

from __future__ import annotations

from expecttest import assert_expected_inline

from porter.verdict.build.switches import SWITCHES, add_switches

GENERATED = """\
#include <ATen/ops/erf_native.h>

namespace at {
namespace {
at::Tensor wrapper(const at::Tensor& self) { return self; }
TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("erf",
  TORCH_FN(wrapper));
  m.impl("erf_", TORCH_FN(wrapper));
  m.impl("atan2.out", TORCH_FN(wrapper));
  m.impl("erf_functional", TORCH_FN(wrapper));
}
} // anonymous namespace
} // namespace at
"""


def test_each_row_is_registered_for_its_operator_alone() -> None:
    assert_expected_inline(
        add_switches(GENERATED, ["erf", "atan2"]),
        """\
#include <ATen/ops/erf_native.h>

#include <string>
#include <torch/library.h>
bool porter_add_rows(void (*)(torch::Library&, const std::string&));
namespace at {
namespace {
at::Tensor wrapper(const at::Tensor& self) { return self; }
void porter_rows_0(torch::Library& m, const std::string& base);
const bool porter_rows_0_added = ::porter_add_rows(&porter_rows_0);
void porter_rows_0(torch::Library& m, const std::string& base) {
  if (base == "erf") m.impl("erf",
  TORCH_FN(wrapper));
  if (base == "erf") m.impl("erf_", TORCH_FN(wrapper));
  if (base == "atan2") m.impl("atan2.out", TORCH_FN(wrapper));
  if (base == "erf") m.impl("erf_functional", TORCH_FN(wrapper));
}
} // anonymous namespace
} // namespace at
""",
    )


def test_every_block_has_a_function_of_its_own() -> None:
    twice = add_switches(GENERATED + GENERATED.partition("\n\n")[2], ["erf", "atan2"])
    assert "porter_rows_0" in twice and "porter_rows_1" in twice
    assert "TORCH_LIBRARY_IMPL" not in twice


def test_the_declaration_is_that_of_the_definition() -> None:
    declared = "bool porter_add_rows(void (*)(torch::Library&, const std::string&));"
    assert declared in SWITCHES and declared in add_switches(GENERATED, ["erf"])
