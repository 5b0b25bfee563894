"""What the C++ functions and constants of ATen's kernels are in the Metal shading language: one row per function.

Sources: Metal Shading Language Specification, "Math Functions", "Common Functions", "Relational Functions", "Numeric
Limits"; c10/util/{TypeSafeSignMath,copysign,MathConstants}.h; ATen/NumericUtils.h.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from porter.core.checkout import Checkout
from porter.core.dtypes import DType, Kind

METAL_HEADERS = "c10/metal"


@dataclass(frozen=True)
class MathFunction:
    """A C++ function and its forms for floating, integral (bool too) and complex arguments; empty: there is none.

    In a form `{0}` is an argument as it stands, `[0]` one in parentheses unless it is a single operand. A form that
    calls `c10::metal::` needs the checkout to declare that function. `exact`: the result is never rounded.
    `result` is `float` (rounded to the element type when stored), `same`, `bool` or `real`. `quiet` names the row that
    is the same where the last argument is a number as written, which is no NaN.
    """

    name: str
    floating: str = ""
    integral: str = ""
    complex: str = ""
    exact: bool = False
    result: str = "float"
    quiet: str = ""


def _precise(*names: str) -> tuple[MathFunction, ...]:
    return tuple(MathFunction(name, f"precise::{name}({{0}})") for name in names)


def _library(*names: str) -> tuple[MathFunction, ...]:
    """Functions that MSL lacks: c10::metal has them, in some checkouts for complex numbers too."""
    return tuple(MathFunction(n, f"c10::metal::{n}({{0}})", "", f"c10::metal::{n}({{0}})") for n in names)


# C++ takes integers to double here: an integer power is powi.
_FLOAT_POW = "precise::pow(static_cast<float>({0}), static_cast<float>({1}))"

# A NaN stays where it is the first argument, and is lost where it is the second.
_LARGER, _SMALLER = "([0] < [1] ? [1] : [0])", "([1] < [0] ? [1] : [0])"

_ROWS = (
    *_precise("exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan"),
    *_precise("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *_library("log1p", "erf", "erfc", "erfinv", "sinc"),
    MathFunction("expm1", "c10::metal::expm1f({0})"),
    MathFunction("lgamma", "c10::metal::log_gamma({0})"),
    MathFunction("tgamma", "c10::metal::gamma({0})"),
    MathFunction("hypot", "c10::metal::hypot({0}, {1})"),
    MathFunction("atan2", "precise::atan2({0}, {1})"),
    MathFunction("pow", "precise::pow({0}, {1})", _FLOAT_POW, "c10::metal::pow({0}, {1})"),
    MathFunction("powi", "", "c10::metal::pow({0}, {1})", result="same"),
    MathFunction("fmod", "metal::fmod({0}, {1})"),
    MathFunction("nextafter", "metal::nextafter({0}, {1})", exact=True),
    MathFunction("copysign", "metal::copysign({0}, {1})", exact=True),
    MathFunction("C10_COMPAT_COPYSIGN", "metal::copysign({0}, {1})", exact=True),
    MathFunction("fmax", "metal::fmax({0}, {1})", exact=True),
    MathFunction("fmin", "metal::fmin({0}, {1})", exact=True),
    MathFunction("abs", "metal::abs({0})", "metal::abs({0})", "", exact=True, result="same"),
    MathFunction("fabs", "metal::fabs({0})", exact=True, result="same"),
    MathFunction("ceil", "metal::ceil({0})", "{0}", exact=True, result="same"),
    MathFunction("floor", "metal::floor({0})", "{0}", exact=True, result="same"),
    MathFunction("trunc", "metal::trunc({0})", "{0}", exact=True, result="same"),
    MathFunction("nearbyint", "metal::rint({0})", "{0}", exact=True, result="same"),
    MathFunction("rint", "metal::rint({0})", "{0}", exact=True, result="same"),
    MathFunction("round", "metal::round({0})", "{0}", exact=True, result="same"),
    MathFunction("max", _LARGER, _LARGER, exact=True, result="same", quiet="metal max"),
    MathFunction("min", _SMALLER, _SMALLER, exact=True, result="same", quiet="metal min"),
    MathFunction("metal max", "c10::metal::max({0}, {1})", exact=True, result="same"),
    MathFunction("metal min", "c10::metal::min({0}, {1})", exact=True, result="same"),
    MathFunction("isnan", "metal::isnan({0})", "false", "metal::any(metal::isnan({0}))", exact=True, result="bool"),
    MathFunction("_isnan", "metal::isnan({0})", "false", "metal::any(metal::isnan({0}))", exact=True, result="bool"),
    MathFunction("isinf", "metal::isinf({0})", "false", exact=True, result="bool"),
    MathFunction("_isinf", "metal::isinf({0})", "false", exact=True, result="bool"),
    MathFunction("isfinite", "metal::isfinite({0})", "true", exact=True, result="bool"),
    MathFunction("signbit", "metal::signbit({0})", exact=True, result="bool"),
    MathFunction("is_negative", "([0] < 0)", "([0] < 0)", exact=True, result="bool"),
    MathFunction("signs_differ", "(([0] < 0) != ([1] < 0))", "(([0] < 0) != ([1] < 0))", exact=True, result="bool"),
    MathFunction("conj", "{0}", "{0}", "c10::metal::conj({0})", exact=True, result="same"),
    MathFunction("arg", "", "", "precise::atan2([0].y, [0].x)", result="real"),
)
FUNCTIONS = {row.name: row for row in _ROWS}
NAMESPACES = frozenset(("", "std", "at", "c10", "native", "at::native", "c10::cuda::compat"))
COMPLEX_ABS = MathFunction("abs", "", "", "c10::metal::hypot([0].x, [0].y)", result="real")

CONSTANTS = {
    "NAN": ("NAN", "float"),
    "INFINITY": ("INFINITY", "float"),
    "CHAR_BIT": ("8", "int"),
    "M_PI": ("M_PI_F", "float"),
    "c10::pi": ("M_PI_F", "float"),
    "c10::e": ("M_E_F", "float"),
    "c10::ln_2": ("M_LN2_F", "float"),
    "c10::ln_10": ("M_LN10_F", "float"),
    "c10::sqrt_2": ("M_SQRT2_F", "float"),
    "c10::frac_sqrt_2": ("M_SQRT1_2_F", "float"),
    "true": ("true", "bool"),
    "false": ("false", "bool"),
}
LIMITS = frozenset(("infinity", "quiet_NaN", "max", "min", "lowest", "epsilon"))
TRAITS = {"std::is_signed_v": "metal::is_signed_v", "std::is_unsigned_v": "metal::is_unsigned_v"}

TYPES = {
    "float": "float",
    "double": "float",
    "bool": "bool",
    "int": "int",
    "int8_t": "char",
    "int16_t": "short",
    "int32_t": "int",
    "int64_t": "long",
    "uint8_t": "uchar",
    "auto": "auto",
    "Half": "half",
    "BFloat16": "bfloat",
    "c10::complex<float>": "float2",
    "c10::complex<Half>": "half2",
}

# vml::vNAME computes std::NAME, but for these.
VECTOR_MATH = {"round": "nearbyint", "i0": "calc_i0", "erfinv": "calc_erfinv"}

_DECLARED = re.compile(r"^(?:inline|constexpr)\b[^;{}()=]*?\b(\w+)\s*\(|^[\w:<>, ]+>\s+(\w+)\s*\(", re.M)


@lru_cache(maxsize=8)
def _declared(headers: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    names, complex_names = set(), set()
    for text in headers:
        for match in _DECLARED.finditer(text):
            name = match.group(1) or match.group(2)
            names.add(name)
            head = text[
                max(text.rfind("template", 0, match.start()), text.rfind("}", 0, match.start()), 0) : match.end() + 40
            ]
            if re.search(r"\bfloat2\b|(?<!!)(?<!!c10::metal::)\bis_complex_v<", head):
                complex_names.add(name)
    return frozenset(names), frozenset(complex_names)


def library_of(checkout: Checkout) -> tuple[frozenset[str], frozenset[str]]:
    """The functions that the checkout's own c10/metal headers define: all, and those with a complex overload."""
    paths = checkout.list(METAL_HEADERS, ".h")
    return _declared(tuple(checkout.read(path) for path in paths))


def form_for(row: MathFunction, dtype: DType, library: tuple[frozenset[str], frozenset[str]]) -> str:
    """The row's form for an argument's type, empty if there is none or the checkout lacks the function it calls."""
    if dtype.kind is Kind.COMPLEX:
        form = COMPLEX_ABS.complex if row.name == "abs" else row.complex
    else:
        form = row.floating if dtype.kind is Kind.FLOATING else row.integral
    needed = re.search(r"c10::metal::(\w+)", form)
    if needed is None:
        return form
    takes_complex = dtype.kind is Kind.COMPLEX and row.name not in ("abs",)
    return form if needed.group(1) in library[takes_complex] else ""


def filled(form: str, arguments: list[str]) -> str:
    """A form with its arguments in place."""
    text = form
    for index, argument in enumerate(arguments):
        simple = re.fullmatch(r"[\w:.]+(?:\([^()]*\))?", argument) is not None
        text = text.replace(f"{{{index}}}", argument).replace(f"[{index}]", argument if simple else f"({argument})")
    return text
