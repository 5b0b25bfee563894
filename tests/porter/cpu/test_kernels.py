"""CPU kernels, written for the test in ATen's idioms, as Metal."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.dtypes import BOOL, BY_METAL, FLOAT2
from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS, NATIVE_FUNCTIONS
from porter.cpu.kernels import CpuKernel, Lambda, read_cpu_kernel


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / NATIVE_FUNCTIONS).parent.mkdir(parents=True)
    (tmp_path / NATIVE_FUNCTIONS).write_text("[]\n")
    for path, idioms in {
        f"{CPU_KERNELS}/TwistKernel.cpp": "idioms.cpp",
        "aten/src/ATen/native/Math.h": "idioms_math.h",
        "c10/metal/special_math.h": "idioms_metal.h",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(__file__).parent / idioms, tmp_path / path)
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
