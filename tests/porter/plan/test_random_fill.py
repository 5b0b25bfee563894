"""A stub that draws random numbers, on a copy of the embedded fork that was given one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import INDEXING, KERNELS, OPERATIONS, RANDOM
from porter.metal.distributions import distributions
from porter.plan.addition import plan_addition
from porter.plan.plan import Plan
from porter.verdict.result import NO_TEST
from porter.verdict.verify import target_of, verify
from tests.porter.plan.made_stub import copy_fork

ROWS = """
- func: uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)
  variants: method
  tags: nondeterministic_seeded
  dispatch:
    CPU, CUDA: uniform_

- func: normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)
  variants: method
  tags: nondeterministic_seeded
  dispatch:
    CPU, CUDA: normal_

- func: binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor
  dispatch:
    CPU, CUDA: binomial
"""
SHARED = """#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/UnaryOps.h>
namespace at::native {
DEFINE_DISPATCH(uniform_stub);

template<typename RNG>
struct UniformStub {
  void operator()(TensorIteratorBase& iter, double from, double to, std::optional<Generator> gen) {
    uniform_stub(iter.device_type(), iter, from, to, gen);
  }
};

Tensor& uniform_(Tensor& self, double from, double to, std::optional<Generator> gen) {
  return at::native::templates::uniform_impl_<UniformStub, Generator>(self, from, to, std::move(gen));
}

DEFINE_DISPATCH(normal_stub);

template<typename RNG>
struct NormalStub {
  void operator()(Tensor& self, double mean, double std, std::optional<Generator> gen) {
    normal_stub(self.device().type(), self, mean, std, gen);
  }
};

Tensor& normal_(Tensor& self, double mean, double std, std::optional<Generator> gen) {
  return at::native::templates::normal_impl_<NormalStub, Generator>(self, mean, std, std::move(gen));
}
} // namespace at::native
"""
KERNEL = """namespace at::native {
void uniform_kernel(TensorIteratorBase& iter, double from, double to, std::optional<Generator> gen) {
  templates::cpu::uniform_kernel(iter, from, to, check_generator<CPUGeneratorImpl>(gen));
}
void normal_kernel(const TensorBase& self, double mean, double std, std::optional<Generator> gen) {
  templates::cpu::normal_kernel(self, mean, std, check_generator<CPUGeneratorImpl>(gen));
}
REGISTER_DISPATCH(uniform_stub, &uniform_kernel)
REGISTER_DISPATCH(normal_stub, &normal_kernel)
} // namespace at::native
"""
DECLARED = (
    "DECLARE_DISPATCH(void(*)(TensorIteratorBase&, const double, const double, std::optional<Generator>), "
    "uniform_stub)\n"
    "DECLARE_DISPATCH(void(*)(const TensorBase&, const double, const double, std::optional<Generator>), normal_stub)\n"
)
METAL, HOST = f"{KERNELS}/RandomKernel.metal", f"{OPERATIONS}/RandomKernel.mm"


@pytest.fixture
def fork(tmp_path: Path) -> Checkout:
    made = copy_fork(tmp_path, ROWS, DECLARED, SHARED, KERNEL)
    shutil.copy(Path(__file__).parents[1] / "philox" / RANDOM, made.root / RANDOM)
    return made


@pytest.fixture
def plan(fork: Checkout) -> Plan:
    return plan_addition(fork, "uniform_")


def test_the_row_joins_and_the_table_has_the_functor(plan: Plan) -> None:
    assert [(entry.name, str(entry.after)) for entry in plan.entries] == [("uniform_", "CPU, CUDA, MPS: uniform_")]
    text = plan.changes.apply()[METAL]
    assert_expected_inline(
        text[text.index("struct uniform") :],
        """\
struct uniform_functor {
  template <typename T>
  inline float operator()(const uint4 words, constant float* params) {
    return params[0] + draw_uniform<T>(words.x) * (params[1] - params[0]);
  }
};

REGISTER_RANDOM_OP(uniform, float, float);
REGISTER_RANDOM_OP(uniform, half, float);
REGISTER_RANDOM_OP(uniform, bfloat, float);
""",
    )


def test_the_host_function_passes_the_generator_on(plan: Plan) -> None:
    text = plan.changes.apply()[HOST]
    assert_expected_inline(
        text[text.index("static void uniform") :],
        """\
static void uniform_mps_kernel(TensorIteratorBase& iter,
                               const double from,
                               const double to,
                               std::optional<Generator> generator) {
  TORCH_CHECK_TYPE(isFloatingType(iter.dtype()), "uniform on MPS fills no ", iter.dtype());
  fill_random(
      iter.output(), "uniform", generator, std::array<float, 2>{static_cast<float>(from), static_cast<float>(to)});
}

REGISTER_DISPATCH(uniform_stub, &uniform_mps_kernel)

} // namespace at::native
""",
    )


def test_its_numbers_are_right_on_the_device(fork: Checkout, plan: Plan) -> None:
    verdict = verify(fork.root, plan.changes.apply(), target_of(plan, "uniform"))
    assert verdict.ok and verdict.kernel_calls > 20, verdict.failures


@pytest.mark.parametrize(
    ("path", "right", "wrong", "why"),
    [
        (
            METAL,
            "params[0] + draw_uniform<T>(words.x)",
            "params[0] + 0 * draw_uniform<T>(words.x)",
            "distributions are",
        ),
        (METAL, "params[0] + draw", "params[0] + 0.1f + draw", "distributions are"),
        (METAL, "state[1] + index", "state[1] + index / 2", "values follow from those 1 elements away"),
        (HOST, "philox->get_offset() + count", "philox->get_offset() + 1", "a later call: "),
        (HOST, "philox->get_offset() + count", "philox->get_offset()", "a later call: 1.00 of the values follow"),
        (HOST, "philox->current_seed()", "5", "another seed: 1.00 of the values follow"),
        (HOST, "output.copy_(values);", "", "a view gets other numbers"),
    ],
)
def test_a_fault_fails_its_verdict(fork: Checkout, plan: Plan, path: str, right: str, wrong: str, why: str) -> None:
    text = plan.changes.apply()
    planted = {**text, path: text[path].replace(right, wrong)}
    assert planted != text
    verdict = verify(fork.root, planted, target_of(plan, "uniform"), "float32")
    assert why in "\n".join(each.reason for each in verdict.failures)


def test_a_type_is_refused_as_one_and_not_for_want_of_a_kernel(fork: Checkout) -> None:
    plan = plan_addition(fork, "normal_")
    text, target = plan.changes.apply(), target_of(plan, "normal")
    check = "TORCH_CHECK_TYPE(isFloatingType(self.scalar_type())"
    assert check in text[HOST]
    refused = verify(fork.root, text, target, "refused_types")
    # What is refused calls no kernel, which a verdict of this test alone says.
    assert refused.passed and {failure.test for failure in refused.failures} <= {NO_TEST}
    planted = {**text, HOST: text[HOST].replace(check, "TORCH_CHECK_TYPE(true")}
    told = "\n".join(each.reason for each in verify(fork.root, planted, target, "refused_types").failures)
    assert "normal_fill_long_long" in told


def test_bools_are_refused_by_a_distribution_of_whole_numbers(fork: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    row = distributions()["normal_stub"]
    for types, refused in (("all", True), ("all_and_bool", False)):
        monkeypatch.setitem(distributions(), "normal_stub", replace(row, types=types))
        text = plan_addition(fork, "normal_").changes.apply()[HOST]
        assert ("TORCH_CHECK_TYPE(self.scalar_type() != kBool" in text) == refused


def test_a_fork_without_the_functor_dialect_gets_it_too(fork: Checkout) -> None:
    older = fork.read(INDEXING).replace("#define REGISTER_BINARY_OP", "#define OLD_BINARY_OP")
    assert plan_addition(fork.layer({INDEXING: older}), "uniform_").complete


def test_a_fork_without_philox_is_refused(fork: Checkout) -> None:
    (fork.root / RANDOM).unlink()
    with pytest.raises(PorterError) as refused:
        plan_addition(Checkout(fork.root, "test"), "uniform_")
    assert refused.value.code == "PTR351"


def test_an_operator_of_no_known_distribution_needs_another_kernel(fork: Checkout) -> None:
    with pytest.raises(PorterError) as refused:
        plan_addition(fork, "binomial")
    assert "needs a kernel of the random family" in refused.value.what
