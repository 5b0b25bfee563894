"""A stub of several scalars, on a copy of the embedded fork that was given one: they come in a struct."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS, KERNEL_LIBRARY, KERNELS, NATIVE, NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.plan import Plan
from porter.plan.planner import plan_operator
from porter.verdict.verify import target_of, verify

ROWS = """
- func: softplus.out(Tensor self, Scalar beta=1, Scalar threshold=20, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  device_check: NoCheck   # TensorIterator
  python_module: nn
  dispatch:
    CPU, CUDA: softplus_out
    MPS: softplus_out_mps

- func: softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor
  structured_delegate: softplus.out
  device_check: NoCheck   # TensorIterator
  python_module: nn
"""
HEADER = """#pragma once

#include <ATen/native/DispatchStub.h>
#include <c10/core/Scalar.h>

namespace at {
struct TensorIteratorBase;
}

namespace at::native {

using softplus_fn = void (*)(TensorIteratorBase&, const c10::Scalar&, const c10::Scalar&);
DECLARE_DISPATCH(softplus_fn, softplus_stub)

} // namespace at::native
"""
SHARED = """#include <ATen/native/Activation.h>

namespace at::meta {
TORCH_META_FUNC(softplus)(const Tensor& self, const Scalar& beta, const Scalar& threshold) {
  build_unary_op(maybe_get_output(), self);
}
} // namespace at::meta

namespace at::native {
TORCH_IMPL_FUNC(softplus_out)(const Tensor& self, const Scalar& beta, const Scalar& threshold, const Tensor& result) {
  softplus_stub(device_type(), *this, beta, threshold);
}
} // namespace at::native
"""
CPU = """#include <ATen/native/Activation.h>

namespace at::native {
namespace {
void softplus_kernel(TensorIteratorBase& iter, const Scalar& beta_, const Scalar& threshold_) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, iter.dtype(), "softplus_cpu", [&]() {
    using opmath_t = at::opmath_type<scalar_t>;
    const auto beta = beta_.to<opmath_t>();
    const auto low = -threshold_.to<opmath_t>();
    cpu_kernel(iter, [=](scalar_t a) -> scalar_t {
      return -(opmath_t(a) * beta) < low ? a : scalar_t(std::log1p(std::exp(opmath_t(a) * beta)) / beta);
    });
  });
}
} // namespace

REGISTER_DISPATCH(softplus_stub, &softplus_kernel)
} // namespace at::native
"""
OLD = """#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/softplus_native.h>

namespace at::native {
TORCH_IMPL_FUNC(softplus_out_mps)(const Tensor& self, const Scalar& beta, const Scalar& threshold, const Tensor& result) {
  mps::runMPSGraph(self, beta, threshold, result);
}
} // namespace at::native
"""


@pytest.fixture
def fork(tmp_path: Path) -> Checkout:
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    return add_operator(tmp_path)


def add_operator(root: Path) -> Checkout:
    """Gives a copy of the embedded fork an operator with several scalars."""
    rows = root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    for path, text in (
        (f"{NATIVE}/Activation.h", HEADER),
        (f"{NATIVE}/Activation.cpp", SHARED),
        (f"{CPU_KERNELS}/Activation.cpp", CPU),
        (f"{OPERATIONS}/Activation.mm", OLD),
    ):
        (root / path).write_text(text)
    return Checkout(root, "test")


def added(plan: Plan, file: str) -> str:
    lines = plan.changes.diff().partition(f"+++ b/{file}\n")[2].partition("\ndiff --git")[0].splitlines()
    return "\n".join(line[1:] for line in lines if line.startswith("+"))


def test_the_scalars_come_in_a_struct_of_a_header_that_both_sides_include(fork: Checkout) -> None:
    plan = plan_operator(fork, "softplus")
    assert plan.complete
    assert_expected_inline(
        added(plan, f"{KERNELS}/UnaryKernel.h"),
        """\
#pragma once

template <typename T>
struct SoftplusParams {
  T beta;
  T threshold;
};""",
    )
    assert_expected_inline(
        added(plan, f"{KERNELS}/UnaryKernel.metal"),
        """\
#include <ATen/native/mps/kernels/UnaryKernel.h>

typedef SoftplusParams<float> SoftplusParams_float;

struct softplus_functor {
  template <typename T, typename A>
  inline T operator()(const T x, const A params) {
    const float x_ = static_cast<float>(x);
    auto low = -params.threshold;
    const float value = x_ * params.beta;
    return -value < low
        ? x
        : static_cast<T>(c10::metal::log1p(precise::exp(value)) / params.beta);
  }
};

REGISTER_UNARY_ALPHA_OP(softplus, float, SoftplusParams_float, float);
REGISTER_UNARY_ALPHA_OP(softplus, half, SoftplusParams_float, half);
REGISTER_UNARY_ALPHA_OP(softplus, bfloat, SoftplusParams_float, bfloat);""",
    )
    assert_expected_inline(
        added(plan, f"{OPERATIONS}/UnaryKernel.mm"),
        """\
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/native/Activation.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/native/mps/kernels/UnaryKernel.h>
#include <fmt/format.h>

static void softplus_kernel_mps(TensorIteratorBase& iter, const Scalar& beta, const Scalar& threshold) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "softplus_mps", [&]() {
    using opmath_t = at::opmath_type<scalar_t>;
    const SoftplusParams<opmath_t> params{beta.to<opmath_t>(), threshold.to<opmath_t>()};
    lib.exec_unary_kernel_with_params(
        iter,
        "softplus",
        params,
        fmt::format("SoftplusParams_{}", mps::scalarToMetalTypeString(at::toOpMathType(iter.common_dtype()))));
  });
}
REGISTER_DISPATCH(softplus_stub, softplus_kernel_mps)""",
    )


def test_a_second_struct_joins_the_header(fork: Checkout) -> None:
    held = f"{KERNELS}/UnaryKernel.h"
    (fork.root / held).write_text("#pragma once\n\nstruct Other {};\n")
    text = plan_operator(Checkout(fork.root, "test"), "softplus").changes.apply()[held]
    assert text.startswith("#pragma once\n\nstruct Other {};\n\ntemplate <typename T>\nstruct SoftplusParams {\n")


def test_a_fork_without_the_launcher_is_refused(fork: Checkout) -> None:
    header = fork.root / KERNEL_LIBRARY
    header.write_text(header.read_text().replace("exec_unary_kernel_with_params", "exec_unary_kernel_raw"))
    with pytest.raises(PorterError, match="declares no exec_unary_kernel_with_params") as refused:
        plan_operator(Checkout(fork.root, "test"), "softplus")
    assert refused.value.code == "PTR091"


def test_a_scalar_that_is_no_number_is_refused(fork: Checkout) -> None:
    replace_in(fork, f"{NATIVE}/Activation.h", "const c10::Scalar&)", "std::string_view)")
    with pytest.raises(PorterError, match="softplus_stub takes a std::string_view") as refused:
        plan_operator(Checkout(fork.root, "test"), "softplus")
    assert refused.value.code == "PTR018"


def test_an_optional_number_comes_with_its_presence(fork: Checkout) -> None:
    kernels = f"{CPU_KERNELS}/Activation.cpp"
    replace_in(fork, f"{NATIVE}/Activation.h", "const c10::Scalar&)", "std::optional<double>)")
    replace_in(fork, kernels, "const Scalar& threshold_", "std::optional<double> threshold")
    replace_in(
        fork,
        kernels,
        "const auto low = -threshold_.to<opmath_t>();",
        "const opmath_t low = threshold.has_value() ? -threshold.value() : opmath_t(threshold.value_or(-20.));",
    )
    plan = plan_operator(Checkout(fork.root, "test"), "softplus")
    struct, metal = (added(plan, f"{KERNELS}/UnaryKernel.{ending}") for ending in ("h", "metal"))
    host = added(plan, f"{OPERATIONS}/UnaryKernel.mm")
    assert_expected_inline(
        struct.partition("template")[2],
        """\
 <typename T>
struct SoftplusParams {
  T beta;
  T threshold;
  bool has_threshold;
};""",
    )
    assert_expected_inline(
        metal[metal.index("operator()") : metal.index("  }\n};")],
        """\
operator()(const T x, const A params) {
    const float x_ = static_cast<float>(x);
    float low = params.has_threshold
        ? -static_cast<T>(params.threshold)
        : static_cast<float>(
              params.has_threshold ? static_cast<T>(params.threshold) : -20.0f);
    const float value = x_ * params.beta;
    return -value < low
        ? x
        : static_cast<T>(c10::metal::log1p(precise::exp(value)) / params.beta);
""",
    )
    assert_expected_inline(
        host[host.index("static void") : host.index("    lib.")],
        """\
static void softplus_kernel_mps(TensorIteratorBase& iter, const Scalar& beta, std::optional<double> threshold) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "softplus_mps", [&]() {
    using opmath_t = at::opmath_type<c10::scalar_value_type<scalar_t>::type>;
    const SoftplusParams<opmath_t> params{
        beta.to<opmath_t>(), static_cast<opmath_t>(threshold.value_or(0)), threshold.has_value()};
""",
    )


def replace_in(fork: Checkout, path: str, old: str, new: str) -> None:
    text = (fork.root / path).read_text()
    assert old in text
    (fork.root / path).write_text(text.replace(old, new))


def test_it_is_right_on_the_device(fork: Checkout) -> None:
    plan = plan_operator(fork, "softplus")
    verdict = verify(fork.root, plan.changes.apply(), target_of(plan, "softplus"))
    assert verdict.ok and verdict.kernel_calls > 50, verdict.failures
    text = plan.changes.apply()
    metal = f"{KERNELS}/UnaryKernel.metal"
    swapped = {**text, metal: text[metal].replace("params.threshold", "params.beta")}
    assert (
        swapped != text
        and not verify(fork.root, swapped, target_of(plan, "softplus"), "test_edge_values or test_output_match").ok
    )
