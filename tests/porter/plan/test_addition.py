"""Operators that MPS lacks: what is planned for them, and which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.lacking import Family, find_lacks
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS
from porter.plan.addition import plan_addition
from porter.workflows.status import missing
from tests.porter.plan.lacking import make_fork


@pytest.fixture
def fork(tmp_path: Path) -> Checkout:
    return make_fork(tmp_path / "fork")


def added(diff: str) -> str:
    return "\n".join(line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++"))


def test_heaviside_gets_its_kernel_and_joins_the_shared_entry(fork: Checkout) -> None:
    assert_expected_inline(
        added(plan_addition(fork, "heaviside").changes.diff()),
        """\

struct heaviside_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return a == 0 ? b : static_cast<T>(a > 0);
  }
};
REGISTER_FLOAT_BINARY_OP(heaviside);
REGISTER_INTEGER_BINARY_OP(heaviside);
REGISTER_BINARY_OP(heaviside, bool, bool);

static void heaviside_mps_kernel(TensorIteratorBase& iter) {
  lib.exec_binary_kernel(iter, "heaviside");
}
REGISTER_DISPATCH(heaviside_stub, &heaviside_mps_kernel)
    CPU, CUDA, MPS: heaviside_out""",
    )


def test_loops_tables_and_overloads_come_with_the_kernel(fork: Checkout) -> None:
    text = added(plan_addition(fork, "wave").changes.diff())
    assert_expected_inline(
        text[: text.index("REGISTER")],
        """\

template <typename T>
inline T polynomial(T x, const T A[], uint len) {
  T result = 0;
  for (uint i = 0; i <= len; i++) {
    result = result * x + A[i];
  }
  return result;
}

template <typename T>
inline T wave_forward(T x, long n) {
  constexpr T A[3] = {
      0.5f,
      -1.25E0f,
      2.0f,
  };
  T p = T(1.0f);
  for (long k = 1; k <= n; k++) {
    p = p + x * T(0.25f);
  }
  return p * polynomial(x, A, 2);
}

struct wave_functor {
  template <typename T>
  inline enable_if_t<is_floating_point_v<T>, T> operator()(const T x) {
    return static_cast<T>(
        wave_forward(static_cast<float>(x), static_cast<long>(3.0f)));
  }
  template <typename T>
  inline enable_if_t<is_integral_v<T>, float> operator()(const T x) {
    return wave_forward(static_cast<float>(x), static_cast<long>(3.0f));
  }
};

""",
    )


def test_a_function_that_two_operators_call_is_written_once(fork: Checkout) -> None:
    first = plan_addition(fork, "wave")
    second = plan_addition(fork.layer(first.changes.apply()), "ripple")
    [functor] = second.functors
    assert "inline T polynomial(" in first.changes.diff()
    text = fork.layer(first.changes.apply()).layer(second.changes.apply()).read(functor.file)
    assert text.count("inline T polynomial(") == text.count("inline T wave_forward(") == 1
    assert text.count("wave_forward(static_cast<float>(x), ") == 4


def test_what_is_added_is_there_the_second_time(fork: Checkout) -> None:
    after = fork.layer(plan_addition(fork, "heaviside").changes.apply())
    with pytest.raises(PorterError) as raised:
        plan_addition(after, "heaviside")
    assert raised.value.code == "PTR311"


@pytest.mark.parametrize(
    ("op", "code", "what"),
    [
        ("no_such_op", "PTR012", "there is no operator named no_such_op"),
        ("atan2", "PTR311", "MPS has atan2 already"),
        ("most_common", "PTR310", "most_common needs a kernel of the row-wise family: its CPU code calls no stub"),
        ("distances", "PTR313", "distances is composite, and computes with most_common: most_common needs a kernel"),
        ("folded", "PTR313", "folded is composite: it computes with other operators"),
        ("cuda_only", "PTR312", "cuda_only has no CPU kernel to read"),
    ],
)
def test_an_operator_that_cannot_be_added_is_refused(fork: Checkout, op: str, code: str, what: str) -> None:
    with pytest.raises(PorterError) as raised:
        plan_addition(fork, op)
    assert raised.value.code == code
    assert raised.value.what.startswith(what)


def test_what_mps_lacks_is_listed_with_its_family_and_what_prevents_it(fork: Checkout) -> None:
    families = {each.name: each.family for each in find_lacks(fork)}
    assert families == {
        "heaviside": Family.ELEMENTWISE,
        "wave": Family.ELEMENTWISE,
        "ripple": Family.ELEMENTWISE,
        "most_common": Family.ROW_WISE,
    }
    found = {each.name: each.reason.code if each.reason else "" for each in missing(fork, ("*e",))}
    assert found == {"heaviside": "", "wave": "", "ripple": ""}


def test_what_prevents_it_may_show_in_its_kernel_alone(fork: Checkout) -> None:
    kernels = fork.root / CPU_KERNELS / "StepsKernel.cpp"
    loop = "cpu_kernel(iter, [](scalar_t x) { return wave_forward(x, scalar_t{2}); });"
    assert loop in kernels.read_text()
    kernels.write_text(kernels.read_text().replace(loop, "iter.for_each([&](char** data, int64_t n) { *data = 0; });"))
    [found] = missing(Checkout(fork.root, "test"), ("ripple",))
    assert found.reason and found.reason.code == "PTR094"
