"""What the C++ functions, constants and types of ATen's kernels are in the Metal shading language.

Sources: Metal Shading Language Specification, "Math Functions", "Common Functions", "Relational Functions", "Numeric
Limits"; c10/util/{TypeSafeSignMath,copysign,MathConstants}.h; ATen/NumericUtils.h.
"""

from __future__ import annotations

import re
from functools import lru_cache

from porter.core.checkout import Checkout
from porter.core.dtypes import ALL, DOUBLE, FLOAT, INT, DType, Kind
from porter.core.layout import METAL_HEADERS
from porter.mpsgraph.operations import CppFunction

NAMESPACES = frozenset(("", "std", "at", "c10", "native", "at::native", "c10::cuda::compat"))

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

# Metal has no double: a kernel that computes in it does so in float.
TYPES = {
    **{dtype.cpp: dtype.metal for dtype in ALL},
    DOUBLE.cpp: FLOAT.metal,
    "int": INT.metal,
    "auto": "auto",
}

# vml::vNAME computes std::NAME, but for these.
VECTOR_MATH = {"round": "nearbyint", "i0": "calc_i0", "erfinv": "calc_erfinv"}

# A form over the real and the imaginary part, which are real numbers.
_OF_PARTS = re.compile(r"\]\.[xy]\b")
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


def form_for(function: CppFunction, dtype: DType, library: tuple[frozenset[str], frozenset[str]]) -> str:
    """The form for an argument's type, empty if there is none or the checkout lacks the function it calls."""
    if dtype.kind is Kind.COMPLEX:
        form = function.complex
    else:
        form = function.floating if dtype.kind is Kind.FLOATING else function.integral
    needed = re.search(r"c10::metal::(\w+)", form)
    if needed is None:
        return form
    takes_complex = dtype.kind is Kind.COMPLEX and not _OF_PARTS.search(form)
    return form if needed.group(1) in library[takes_complex] else ""


def filled(form: str, arguments: list[str]) -> str:
    """A form with its arguments in place: `{0}` as they stand, `[0]` in parentheses unless it is a single operand."""
    text = form
    for index, argument in enumerate(arguments):
        simple = re.fullmatch(r"[\w:.]+(?:\([^()]*\))?", argument) is not None
        text = text.replace(f"{{{index}}}", argument).replace(f"[{index}]", argument if simple else f"({argument})")
    return text
