"""A stub that writes several results, on a copy of the embedded fork that was given one."""

from __future__ import annotations

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS, KERNELS, OPERATIONS
from porter.plan.addition import plan_addition
from porter.plan.plan import Plan
from porter.verdict.verify import target_of, verify
from tests.porter.plan.made_stub import copy_fork

ROWS = """
- func: frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)
  dispatch:
    CompositeExplicitAutograd: frexp
  tags: pointwise

- func: frexp.Tensor_out(Tensor self, *, Tensor(a!) mantissa, Tensor(b!) exponent) -> (Tensor(a!) mantissa, Tensor(b!) exponent)
  dispatch:
    CPU, CUDA: frexp_out
  tags: pointwise
"""
SHARED = """#include <ATen/native/UnaryOps.h>
namespace at::native {
DEFINE_DISPATCH(frexp_stub);
std::tuple<Tensor&, Tensor&> frexp_out(const Tensor& self, Tensor& mantissa, Tensor& exponent) {
  auto iter = TensorIteratorConfig()
    .add_output(mantissa)
    .add_output(exponent)
    .add_const_input(self)
    .check_all_same_dtype(false)
    .build();
  frexp_stub(iter.device_type(), iter);
  return std::tuple<Tensor&, Tensor&>(mantissa, exponent);
}
} // namespace at::native
"""
KERNEL = """#include <ATen/native/cpu/Loops.h>
namespace at::native {
static void frexp_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, iter.dtype(), "frexp_cpu", [&]() {
    cpu_kernel_multiple_outputs(iter, [](scalar_t a) -> std::tuple<scalar_t, int32_t> {
      int32_t exponent;
      scalar_t mantissa = std::frexp(a, &exponent);
      return std::tuple<scalar_t, int32_t>(mantissa, exponent);
    });
  });
}
REGISTER_DISPATCH(frexp_stub, &frexp_kernel)
} // namespace at::native
"""
DECLARED = "DECLARE_DISPATCH(unary_fn, frexp_stub)\n"
METAL, HOST = f"{KERNELS}/UnaryKernel.metal", f"{OPERATIONS}/UnaryKernel.mm"


@pytest.fixture
def fork(tmp_path: Path) -> Checkout:
    return copy_fork(tmp_path, ROWS, DECLARED, SHARED, KERNEL)


@pytest.fixture
def plan(fork: Checkout) -> Plan:
    return plan_addition(fork, "frexp")


def find(text: str, *words: str) -> list[str]:
    return [line for line in text.splitlines() if all(word in line for word in words)]


def test_each_result_has_a_functor(plan: Plan) -> None:
    text = plan.changes.apply()[METAL]
    start = text.index("struct frexp_mantissa")
    end = text.index("};\n", text.index("struct frexp_exponent")) + 2
    assert_expected_inline(
        "\n".join((text[start:end], *find(text, "REGISTER", "frexp"))),
        """\
struct frexp_mantissa_functor {
  template <typename T>
  inline T operator()(const T x) {
    int exponent;
    float mantissa = metal::frexp(static_cast<float>(x), exponent);
    return static_cast<T>(mantissa);
  }
};

struct frexp_exponent_functor {
  template <typename T>
  inline int operator()(const T x) {
    int exponent;
    T mantissa = metal::frexp(x, exponent);
    return exponent;
  }
};
REGISTER_UNARY_OP(frexp_mantissa, float, float);
REGISTER_UNARY_OP(frexp_mantissa, half, half);
REGISTER_UNARY_OP(frexp_mantissa, bfloat, bfloat);
REGISTER_UNARY_OP(frexp_exponent, float, int);
REGISTER_UNARY_OP(frexp_exponent, half, int);
REGISTER_UNARY_OP(frexp_exponent, bfloat, int);""",
    )


def test_the_host_function_launches_one_after_the_other(plan: Plan) -> None:
    text = plan.changes.apply()[HOST]
    start = text.index("static void frexp")
    assert_expected_inline(
        text[start : text.index("}\n", start) + 1],
        """\
static void frexp_kernel_mps(TensorIteratorBase& iter) {
  auto results = split_results(iter);
  lib.exec_unary_kernel(results[0], "frexp_mantissa");
  lib.exec_unary_kernel(results[1], "frexp_exponent");
}""",
    )
    assert text.index("split_results(TensorIteratorBase& iter) {") < start
    assert {"#include <ATen/MemoryOverlap.h>", "#include <c10/util/irange.h>"} <= set(text.splitlines())


def test_its_results_are_right_on_the_device(fork: Checkout, plan: Plan) -> None:
    text, target = plan.changes.apply(), target_of(plan, "frexp")
    verdict = verify(fork.root, text, target)
    assert verdict.ok and verdict.kernel_calls > 40, verdict.failures
    matches, overlaps = "test_output_match_frexp_mps_float32", "test_overlap_frexp_mps_float32"
    for right, wrong, test in (
        ('results[1], "frexp_exponent"', 'results[0], "frexp_mantissa"', matches),
        ("config.add_owned_const_input(input);", "config.add_owned_const_input(input.abs());", matches),
        ("inputs[at] = iter.input(at).clone();", "inputs[at] = iter.input(at);", overlaps),
    ):
        planted = {**text, HOST: text[HOST].replace(right, wrong)}
        failures = verify(fork.root, planted, target, test).failures
        assert planted != text and any(failure.test.endswith(test) for failure in failures), failures


def test_a_kernel_that_is_no_such_loop_is_refused(fork: Checkout) -> None:
    kernel = fork.root / CPU_KERNELS / "MadeKernel.cpp"
    kernel.write_text(KERNEL.replace("cpu_kernel_multiple_outputs", "cpu_serial_kernel"))
    with pytest.raises(PorterError) as refused:
        plan_addition(Checkout(fork.root, "test"), "frexp")
    assert refused.value.code == "PTR018"
    assert "has 2 results, but a functor has one" in refused.value.what
