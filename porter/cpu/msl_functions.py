"""The Metal equivalents of the C++ functions, constants and types in ATen's kernels.

Sources: Metal Shading Language Specification, "Math Functions", "Common Functions", "Relational Functions", "Numeric
Limits"; c10/util/{TypeSafeSignMath,copysign,MathConstants}.h; ATen/NumericUtils.h.
"""

from __future__ import annotations

import re

from porter.aten.metal_functions import Library
from porter.core.dtypes import ALL, DOUBLE, FLOAT, INT, DType, Kind
from porter.languages.brackets import ROUND, find_closing_end
from porter.mpsgraph.operations import CppFunction, by_cpp_name

NAMESPACES = frozenset(("", "std", "at", "c10", "native", "at::native", "c10::cuda::compat"))

CONSTANTS = {
    "NAN": ("NAN", "float"),
    "INFINITY": ("INFINITY", "float"),
    "POS_INFINITY": ("INFINITY", "float"),
    "NEG_INFINITY": ("-INFINITY", "float"),
    "CHAR_BIT": ("8", "int"),
    "M_PI": ("M_PI_F", "float"),
    "M_SQRT2": ("M_SQRT2_F", "float"),
    "M_SQRT1_2": ("M_SQRT1_2_F", "float"),
    "M_2_SQRTPI": ("M_2_SQRTPI_F", "float"),
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

# CUDA's fast functions of float, which Metal computes as it does the function they approximate.
_FAST = re.compile(r"__(exp|log|log2|log10|pow|sin|cos|tan)f")


def get_plain_name(name: str) -> str:
    """Returns the function behind a name that says its type: `exp` for `expf`, and for CUDA's `__expf`."""
    fast = _FAST.fullmatch(name)
    if fast:
        return fast[1]
    return name if name in by_cpp_name() else name.removesuffix("f")


# Metal has no double: kernels that compute in double use float instead. Sizes are those of a kernel's own arrays.
TYPES = {
    **{dtype.cpp: dtype.metal for dtype in ALL},
    DOUBLE.cpp: FLOAT.metal,
    "int": INT.metal,
    "size_t": "uint",
    "auto": "auto",
}

# vml::vNAME computes std::NAME, with these exceptions.
VECTOR_MATH = {"round": "nearbyint", "i0": "calc_i0", "erfinv": "calc_erfinv"}

# A form of the real and imaginary parts, which are real numbers.
_OF_PARTS = re.compile(r"\]\.[xy]\b")


def find_form(function: CppFunction, dtype: DType, library: Library) -> str:
    """Returns the form for an argument type; empty if there is none, or if the checkout lacks the function."""
    if dtype.kind is Kind.COMPLEX:
        form = function.complex
    else:
        form = function.floating if dtype.kind is Kind.FLOATING else function.integral
    needed = re.search(r"c10::metal::(\w+)", form)
    if needed is None:
        return form
    takes_complex = dtype.kind is Kind.COMPLEX and not _OF_PARTS.search(form)
    return form if library.has(needed.group(1), takes_complex) else ""


def _is_operand(text: str) -> bool:
    """Whether a text is a name, a call or in parentheses."""
    opener = re.match(r"[\w:.]*(?:<\w+>)?(\(|\Z)", text)
    return opener is not None and (not opener[1] or find_closing_end(text, opener.start(1), ROUND) == len(text))


def fill_form(form: str, arguments: list[str]) -> str:
    """Fills the arguments into a form: `{0}` unchanged, `[0]` in parentheses unless it is a single operand."""
    text = form
    for index, argument in enumerate(arguments):
        simple = _is_operand(argument)
        text = text.replace(f"{{{index}}}", argument).replace(f"[{index}]", argument if simple else f"({argument})")
    return text
