"""CPU kernels, written for the test in ATen's idioms, as Metal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.dtypes import BOOL, BY_METAL, FLOAT2
from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS, NATIVE_FUNCTIONS
from porter.cpu.kernels import CpuKernel, Lambda, read_cpu_kernel

METAL = """
namespace c10 {
namespace metal {
template <typename T>
inline float erf(T x) { return x; }
inline float log1p(float x) { return x; }
inline float2 log1p(float2 x) { return x; }
template <typename T>
inline T max(T a, T b) { return a; }
template <typename T>
inline T wave(T x) { return x; }
template <typename T, typename U>
inline T mul(const T x, const U y) { return x * y; }
template <typename T, typename U>
inline T div(const T x, const U y) { return x / y; }
template <typename T>
inline T conj(T a) { return a; }
template <>
inline float2 conj(float2 a) { return a; }
}
}
"""

MATH = """
template <typename T>
inline T soft_impl(T v) {
  return std::abs(v) + T(1);
}
template <typename T>
inline typename std::enable_if_t<std::is_integral_v<T>, T>
steps(T a, T b) {
  while (b != 0) {
    T c = a % b;
    a = b;
    b = c;
  }
  return a;
}
template <typename TYPE>
inline TYPE flip_impl(TYPE z) { return z; }
template<>
inline c10::complex<float> flip_impl <c10::complex<float>> (c10::complex<float> z) {
  return c10::complex<float>(z.real(), -z.imag());
}
"""

KERNELS = """
#include <ATen/native/Twist.h>
namespace {
using namespace vec;

#if !defined(C10_MOBILE)
#define _AT_DISPATCH_OWN(TYPE, NAME, ...) \\
  AT_DISPATCH_V2(TYPE, NAME, AT_WRAP(__VA_ARGS__), kHalf, kBool, AT_EXPAND(AT_FLOAT8_TYPES), \\
  AT_EXPAND(AT_INTEGRAL_TYPES))
#else
#define _AT_DISPATCH_OWN(TYPE, NAME, ...) AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, __VA_ARGS__)
#endif

void twist_kernel(TensorIteratorBase& iter) {
  const auto dtype = iter.common_dtype();
  if (dtype == ScalarType::Bool) {
    cpu_kernel(iter, [=](bool a, bool b) -> bool { return a && b; });
  } else if (isIntegralType(dtype, /*includeBool=*/false)) {
    AT_DISPATCH_INTEGRAL_TYPES(dtype, "twist_cpu", [&]() {
      cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
        TORCH_CHECK(b != 0, "ZeroDivisionError");
        scalar_t r = a % b;
        if ((r != 0) && (c10::is_negative(r) != c10::is_negative(b))) {
          r += b;
        }
        return r;
      });
    });
  } else if (iter.is_scalar(2) && at::isReducedFloatingType(dtype)) {
    never_read(iter);
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, dtype, "twist_cpu", [&]() {
      const Vectorized<scalar_t> ones(scalar_t(1));
      cpu_kernel_vec(
          iter,
          [=](scalar_t a, scalar_t b) __ubsan_ignore_undefined__ -> scalar_t {
            if (a != a || b != b) {
              return std::numeric_limits<scalar_t>::quiet_NaN();
            } else {
              return std::max(a, b) * static_cast<scalar_t>(0.5);
            }
          },
          [=](Vectorized<scalar_t> a, Vectorized<scalar_t> b) {
            auto [x, y] = halves(a, b);
            return x * ones;
          });
    });
  }
}

void level_kernel(TensorIteratorBase& iter) {
  _AT_DISPATCH_OWN(iter.common_dtype(), "level_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> bool { return a <= b; });
  });
}

void bend_kernel(TensorIteratorBase& iter, const Scalar& eps_scalar) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "bend_cpu", [&]() {
    const scalar_t eps = eps_scalar.to<scalar_t>();
    const Vectorized<scalar_t> unused(eps);
    if (eps < scalar_t(0)) {
      cpu_kernel_vec(iter, [](scalar_t x) { return std::log(x); }, [](Vectorized<scalar_t> x) { return x.log(); });
    } else {
      const scalar_t hi = scalar_t(1) - eps;
      cpu_kernel_vec(
          iter,
          [hi](scalar_t v) {
            v = v > hi ? hi : v;
            return v / (scalar_t(1) - v);
          },
          [](Vectorized<scalar_t> x) { return x; });
    }
  });
}

void fold_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX(iter.common_dtype(), "fold_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t { return soft_impl(a) * std::erf(b); });
  });
}

void step_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_INTEGRAL_TYPES(iter.common_dtype(), "step_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t { return steps(a, b); });
  });
}

void wave_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "wave_cpu", [&]() {
    using opmath_t = at::opmath_type<scalar_t>;
    cpu_kernel(iter, [](scalar_t a) -> scalar_t { return calc_wave(opmath_t{a} * c10::pi<opmath_t>); });
  });
}

void mix_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(iter.common_dtype(), "mix_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t { return flip_impl(a) * std::conj(scalar_t(1) - b * b); });
  });
}

void zero_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(iter.common_dtype(), "zero_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> bool { return a == b || !a || bool(b); });
  });
}

void odd_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "odd_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a) -> scalar_t {
      return mystery(a);
    });
  });
}

void strange_kernel(TensorIteratorBase& iter) {
  launch_threads(17);
}

void raw_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "raw_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a) -> scalar_t { return reinterpret_cast<uint32_t&>(a); });
  });
}

#define IMPLEMENT(op)                                              \\
  static void op##_kernel(TensorIteratorBase& iter) {              \\
    AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(kBFloat16, kHalf, iter.dtype(), #op "_vml_cpu", [&]() { \\
      iter.for_each([&](char** data_, const int64_t* strides, int64_t n) { vml::v##op(data_[0], data_[1], n); }, \\
      2048); \\
    });                                                            \\
    iter.cast_outputs();                                           \\
  }
#define IMPLEMENT_AND_REGISTER(op) \\
  IMPLEMENT(op)                    \\
  ALSO_REGISTER_AVX512_DISPATCH(op##_stub, &CPU_CAPABILITY::op##_kernel)
IMPLEMENT_AND_REGISTER(log1p)
IMPLEMENT_AND_REGISTER(round)
void grow_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(iter.common_dtype(), "grow", [&] {
    cpu_kernel(iter, [](scalar_t a) -> scalar_t { return a / (scalar_t(1) + std::exp(-a)); });
  });
}

void pick_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "pick", [&] {
    cpu_kernel(iter, [](bool which, scalar_t a, scalar_t b) -> scalar_t { return which ? a : b; });
  });
}

void quiet_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES(iter.common_dtype(), "quiet", [&] {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
      if (a != a || b != b) {
        return std::numeric_limits<scalar_t>::quiet_NaN();
      }
      return std::min(a, b);
    });
  });
}

void clip_kernel(TensorIteratorBase& iter, bool up) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "clip_cpu", [&]() {
    const scalar_t low(0.5f);
    scalar_t high(2);
    if (up) {
      high = scalar_t(4);
    }
    cpu_kernel(iter, [=](scalar_t a, scalar_t b) -> scalar_t { return std::min(std::max(a + b, low), b) * high; });
  });
}

} // namespace

REGISTER_DISPATCH(twist_stub, &twist_kernel)
ALSO_REGISTER_AVX512_DISPATCH(level_stub, &CPU_CAPABILITY::level_kernel)
REGISTER_DISPATCH(
    bend_stub,
    &bend_kernel)
REGISTER_DISPATCH(fold_stub, &fold_kernel)
REGISTER_DISPATCH(step_stub, &step_kernel)
REGISTER_DISPATCH(wave_stub, &wave_kernel)
REGISTER_DISPATCH(mix_stub, &mix_kernel)
REGISTER_DISPATCH(clip_stub, &clip_kernel)
REGISTER_DISPATCH(zero_stub, &zero_kernel)
REGISTER_DISPATCH(odd_stub, &odd_kernel)
REGISTER_DISPATCH(quiet_stub, &quiet_kernel)
REGISTER_DISPATCH(grow_stub, &grow_kernel)
REGISTER_DISPATCH(pick_stub, &pick_kernel)
REGISTER_DISPATCH(strange_stub, &strange_kernel)
REGISTER_DISPATCH(raw_stub, &raw_kernel)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    for path, text in {
        NATIVE_FUNCTIONS: "[]\n",
        f"{CPU_KERNELS}/TwistKernel.cpp": KERNELS,
        "aten/src/ATen/native/Math.h": MATH,
        "c10/metal/special_math.h": METAL,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return Checkout(tmp_path, "test")


def describe(kernel: CpuKernel) -> str:
    return "\n".join([f"{kernel.stub}: {' '.join(map(str, kernel.dtypes))}", *map(describe_lambda, kernel.lambdas)])


def describe_lambda(one: Lambda) -> str:
    arguments = ", ".join([*one.params, *(f"{s.type} {s.name} from {s.source}" for s in one.scalars)])
    marks = " opmath" * one.opmath + f" raises unless {one.checks}" * bool(one.checks)
    body = one.body if one.is_block else f"return {one.body};"
    return "\n".join([f"[{' '.join(map(str, one.dtypes))}] ({arguments}) -> {one.result}{marks}", body, *one.helpers])


def test_each_branch_on_the_type_gives_its_lambda(checkout: Checkout) -> None:
    assert_expected_inline(
        describe(read_cpu_kernel(checkout, "twist_stub")),
        """\
twist_stub: float half bfloat long int short uchar char bool
[float half bfloat] (a, b) -> T
if (a != a || b != b) {
  return metal::numeric_limits<T>::quiet_NaN();
}
return (a < b ? b : a) * T(0.5f);
[long int short uchar char] (a, b) -> T raises unless ('b != 0',)
T r = a % b;
if ((r != 0) && ((r < 0) != (b < 0))) {
  r += b;
}
return r;
[bool] (a, b) -> bool
return a && b;""",
    )


def test_a_files_own_dispatch_macro_is_looked_through(checkout: Checkout) -> None:
    assert_expected_inline(
        describe(read_cpu_kernel(checkout, "level_stub", lambda _: BOOL)),
        """\
level_stub: half long int short uchar char bool
[half long int short uchar char bool] (a, b) -> bool
return a <= b;""",
    )


def test_branches_on_a_scalar_stay_in_the_kernel(checkout: Checkout) -> None:
    assert_expected_inline(
        describe(read_cpu_kernel(checkout, "bend_stub")),
        """\
bend_stub: float
[float] (x, T eps from eps_scalar) -> T
if (eps < T(0)) {
  return static_cast<T>(precise::log(x));
}
T hi = T(1) - eps;
T x_ = x;
x_ = x_ > hi ? hi : x_;
return x_ / (T(1) - x_);""",
    )


def test_helpers_are_inlined_translated_or_taken_from_c10_metal(checkout: Checkout) -> None:
    found = [describe(read_cpu_kernel(checkout, name)) for name in ("fold_stub", "step_stub", "wave_stub")]
    assert_expected_inline(
        "\n".join(found),
        """\
fold_stub: float long int short uchar char float2
[float] (a, b) -> T
return static_cast<T>((metal::abs(a) + T(1)) * c10::metal::erf(b));
step_stub: long int short uchar char
[long int short uchar char] (a, b) -> T
return steps(a, b);
template <typename T>
inline T steps(T a, T b) {
  while (b != 0) {
    T c = a % b;
    a = b;
    b = c;
  }
  return a;
}
wave_stub: float half bfloat
[float half bfloat] (a) -> T
return static_cast<T>(c10::metal::wave(static_cast<c10::metal::opmath_t<T>>(a) * M_PI_F));""",
    )


def test_complex_arithmetic_never_becomes_elementwise(checkout: Checkout) -> None:
    found = [
        describe(read_cpu_kernel(checkout, "mix_stub")),
        describe(read_cpu_kernel(checkout, "zero_stub", lambda _: BOOL)),
    ]
    assert_expected_inline(
        "\n".join(found),
        """\
mix_stub: float2
[float2] (a, b) -> T
return c10::metal::mul(T(a.x, -a.y), c10::metal::conj(T(1, 0) - c10::metal::mul(b, b)));
zero_stub: float2
[float2] (a, b) -> bool
return metal::all(a == b) || !metal::any(a != T(0)) || metal::any(b != T(0));""",
    )


def test_constants_are_used_in_place_and_need_no_nan_check(checkout: Checkout) -> None:
    assert_expected_inline(
        describe(read_cpu_kernel(checkout, "clip_stub")),
        """\
clip_stub: float
[float] (a, b, bool up from up) -> T
T high = 2;
if (up) {
  high = T(4);
}
return (b < c10::metal::max(a + b, static_cast<T>(0.5f)) ? b : c10::metal::max(a + b, static_cast<T>(0.5f))) * high;""",
    )


def test_functions_of_complex_numbers_are_taken_from_the_table(checkout: Checkout) -> None:
    kernel = read_cpu_kernel(checkout, "grow_stub")
    [only] = kernel.lambdas
    assert (kernel.dtypes, kernel.untranslated) == ((FLOAT2,), ())
    assert only.body == "T(complex_div(float2(a), float2(T(1, 0) + T(complex_exp(float2(-a))))))"
    assert re.findall(r"inline float2 (\w+)\(", "".join(only.helpers)) == ["complex_exp", "complex_div"]


def test_a_test_for_nan_is_left_out_for_integers(checkout: Checkout) -> None:
    floats, integers = read_cpu_kernel(checkout, "quiet_stub").lambdas
    assert floats.body.startswith("if (a != a || b != b) {")
    assert integers.body == "b < a ? b : a"


def test_a_condition_beside_the_elements_is_taken_in_their_type(checkout: Checkout) -> None:
    [chosen] = read_cpu_kernel(checkout, "pick_stub").lambdas
    assert (chosen.body, chosen.chooses) == ("which ? a : b", True)


def test_elements_of_different_types_are_refused(checkout: Checkout) -> None:
    text = checkout.read(f"{CPU_KERNELS}/TwistKernel.cpp").replace("bool which, scalar_t a", "scalar_t a, bool which")
    kernel = read_cpu_kernel(checkout.layer({f"{CPU_KERNELS}/TwistKernel.cpp": text}), "pick_stub")
    assert kernel.lambdas == ()
    [refused] = kernel.untranslated
    assert (refused.error.code, "different types: T, bool, T" in refused.error.what) == ("PTR078", True)


def test_vector_math_made_by_a_macro(checkout: Checkout) -> None:
    found = [describe(read_cpu_kernel(checkout, name)) for name in ("log1p_stub", "round_stub")]
    assert_expected_inline(
        "\n".join(found),
        """\
log1p_stub: float half bfloat float2
[float half bfloat] (a) -> T
return static_cast<T>(c10::metal::log1p(a));
[float2] (a) -> T
return c10::metal::log1p(a);
round_stub: float half bfloat float2
[float half bfloat] (a) -> T
return metal::rint(a);""",
    )


@pytest.mark.parametrize(
    ("stub", "code", "says", "line"),
    [
        ("odd_stub", "PTR080", "mystery", 110),
        ("raw_stub", "PTR080", "reinterpret_cast", 121),
        ("strange_stub", "PTR078", "launch_threads", 116),
    ],
)
def test_code_without_a_metal_form_is_named_with_its_line(
    checkout: Checkout, stub: str, code: str, says: str, line: int
) -> None:
    (failure,) = read_cpu_kernel(checkout, stub).untranslated
    assert (failure.error.code, failure.error.place.line if failure.error.place else 0) == (code, line)
    assert says in failure.error.what


def test_a_stub_without_a_cpu_kernel_is_refused(checkout: Checkout) -> None:
    with pytest.raises(PorterError) as caught:
        read_cpu_kernel(checkout, "absent_stub")
    assert caught.value.code == "PTR077"


def test_a_missing_library_function_is_refused_not_guessed(checkout: Checkout) -> None:
    (checkout.root / "c10/metal/special_math.h").write_text("")
    kernel = read_cpu_kernel(checkout, "log1p_stub")
    assert kernel.find_lambda(BY_METAL["float"]) is None
    assert {failure.error.code for failure in kernel.untranslated} == {"PTR080"}
