"""Translates ATen's CPU lambda to a functor body, with the kernel file's parameter names."""

from __future__ import annotations

import re
from collections.abc import Callable

from porter.core import dtypes
from porter.core.dtypes import Kind
from porter.cpu.kernels import CpuKernel, Lambda, ScalarArgument
from porter.cpu.translator import OPMATH
from porter.languages.brackets import is_balanced
from porter.languages.identifiers import contains_identifier, rename_identifiers
from porter.metal.expression import split_return, uncast_return
from porter.metal.functor import Body
from porter.metal.functor_spec import FunctorSpec
from porter.metal.params import PARAMETER
from porter.mpsgraph.operations import find_headers

# A number that another type has otherwise.
_LIMIT = re.compile(r"numeric_limits<T>::(?:max|min|lowest|epsilon)\b")
_CAST_NUMBER = re.compile(r"(?<![\w<:])(?:static_cast<T>|T)\((?P<number>[\d.]+(?:e[+-]?\d+)?)f?\)")
# The numbers that a half can hold: what lies beyond rounds to zero or to infinity (IEEE 754, round to nearest).
_HALF_NUMBERS = (2.0**-25, 65520.0)


def find_lambda(kernel: CpuKernel, kind: Kind) -> Lambda | None:
    """Returns the lambda for a kind of element, for the most telling of its types."""
    order = {
        Kind.FLOATING: (dtypes.HALF, dtypes.BFLOAT, dtypes.FLOAT),
        Kind.INTEGRAL: (dtypes.LONG, dtypes.INT, dtypes.UCHAR),
        Kind.BOOL: (dtypes.BOOL,),
        Kind.COMPLEX: (dtypes.FLOAT2,),
    }
    return next((found for dtype in order[kind] if (found := kernel.find_lambda(dtype))), None)


def rounds_halves(source: Lambda) -> bool:
    """Whether a lambda's operations on halves can be rounded one by one in Metal, as the CPU does it."""
    return not (source.helpers or "precise::" in source.body or "metal::" in source.body)


def translate_lambda(
    found: Lambda, spec: FunctorSpec, kind: Kind, result: str, kernel: CpuKernel | None = None, as_it_is: bool = False
) -> Body:
    """Translates a lambda of ATen's kernel, the CPU's if none is given. It is computed in float if halves need it, but
    not `as_it_is`: then they are rounded after each operation, as the CPU does it."""
    kernel = kernel or spec.cpu
    in_float = (
        not as_it_is
        and kind is Kind.FLOATING
        and result == "T"
        and (found.opmath or found.helpers or "precise::" in found.body or "metal::" in found.body)
        and "float a0" not in found.body
        and not (found.is_block and "opmath_t<T>" in found.body)
        and not _LIMIT.search(found.body)
    )
    rounds = kind is Kind.FLOATING and not in_float
    names = dict(zip(found.params, spec.params, strict=True))
    names |= {p: _make_free_name(f"{p}_", found.body) for p in spec.params if p not in found.params and p not in names}
    names |= {each.name: _find_scalar(spec, each, rounds, kernel) for each in found.scalars if spec.scalars}
    lines = tuple(rename_identifiers(line, names) for line in found.body.split("\n"))
    if not found.is_block:
        lines = (f"return {lines[0] if len(lines) == 1 else ' '.join(lines)};",)
    if in_float:
        lines = _compute_in(lines, spec, "float", spec.as_float)
    # A complex scalar is passed in opmath type: in T, a half one would be rounded.
    if kind is Kind.COMPLEX and not spec.struct and any("opmath_t" not in each.type for each in found.scalars):
        lines = _compute_in(lines, spec, "A", "static_cast<A>({})".format)
    elif kind is Kind.COMPLEX and found.opmath and result == "T":
        lines = _compute_in(lines, spec, dtypes.FLOAT2.metal, f"{dtypes.FLOAT2.metal}({{}})".format)
    if kind is Kind.COMPLEX and result == "float":
        lines = tuple(_take_real_part(line) for line in lines)
    origin = f"ATen's {kernel.device} kernel ({found.place})"
    rounded = as_it_is or (in_float and any("float(T(" in line for line in lines))
    return Body(lines, result, origin, found.helpers, find_headers(found.body), rounded)


def _find_scalar(spec: FunctorSpec, scalar: ScalarArgument, rounds: bool, kernel: CpuKernel) -> str:
    """Returns what the functor's body calls a scalar of the lambda, rounded to the element type if that is its type."""
    given = spec.given[kernel.parameters.index(scalar.source) if spec.struct else 0]
    if scalar.is_presence:
        return f"{PARAMETER}.has_{given.removeprefix(f'{PARAMETER}.')}"
    wider = spec.struct is None or spec.struct.opmath
    return f"static_cast<T>({given})" if rounds and wider and scalar.type == "T" else given


def _compute_in(lines: tuple[str, ...], spec: FunctorSpec, wider: str, cast: Callable[[str], str]) -> tuple[str, ...]:
    """Rewrites statements over T to compute in a wider type: casts the parameters to it, and the result back."""
    text = "\n".join(lines)
    rounded = _make_free_name("T_", text)
    if wider == dtypes.FLOAT.metal:
        text = _CAST_NUMBER.sub(lambda match: _keep_rounding(match, rounded), text)
    text = re.sub(r"return static_cast<T>\((.*)\);", lambda m: f"return {m[1]};" if is_balanced(m[1]) else m[0], text)
    text = _plain_numbers(rename_identifiers(text, {"T": wider}))
    single = len(lines) == 1
    params = spec.params if spec.struct or wider != "float" else spec.arguments
    if single:
        text = rename_identifiers(text, {name: cast(name) for name in params})
        text = text.replace(f"static_cast<{OPMATH.replace('T', 'float')}>", "static_cast<float>")
        for each in map(cast, params):
            text = text.replace(f"static_cast<float>({each})", each).replace(f"float({each})", each)
    else:
        locals_ = {name: _make_free_name(f"{name}_", text) for name in params}
        text = rename_identifiers(text, locals_)
        for local in locals_.values():
            text = text.replace(f"{wider}({local})", local)
        text = "\n".join([*(f"const {wider} {new} = {cast(old)};" for old, new in locals_.items()), text])
    text = re.sub(r"return (.*);", lambda m: f"return static_cast<T>({m[1]});", text)
    return tuple(rename_identifiers(text, {rounded: "T"}).split("\n"))


def _keep_rounding(match: re.Match[str], element: str) -> str:
    """The cast of a number to the element's type, as a float: kept where a half has zero or infinity for the number.

    BCELoss bounds a divisor by `scalar_t(1e-12)` (aten/src/ATen/native/Loss.cpp), which is no bound in halves.
    """
    smallest, largest = _HALF_NUMBERS
    number = float(match["number"])
    return match[0] if number == 0 or smallest < number < largest else f"float({element}({match['number']}f))"


def _take_real_part(line: str) -> str:
    """Makes the line return only the real part of its complex result, as ATen does."""
    indent, value = split_return(line)
    real = value.removesuffix(", 0)").removesuffix(", 0.0f)").removeprefix("T(")
    whole = value in (f"T({real}, 0)", f"T({real}, 0.0f)") and is_balanced(real)
    return f"{indent}return {real if whole else f'({value}).x'};" if value else line


def _plain_numbers(text: str) -> str:
    """Rewrites `float(1)` as `1.0f`."""
    return re.sub(r"\bfloat\((\d+)(\.\d+f)?\)", lambda number: number[1] + (number[2] or ".0f"), text)


def _make_free_name(name: str, text: str) -> str:
    """Returns the name, lengthened until it does not occur in the text."""
    while contains_identifier(text, name):
        name += "f"
    return name


def promote_body(floating: Body, spec: FunctorSpec) -> Body:
    """Returns the body for integers with a float result: casts elements to float, and the result not back.

    A long one is not repeated but called.
    """
    casts = {name: spec.as_float(name) for name in spec.params}
    if len(floating.statements) > 1:
        scalars = (PARAMETER,) if spec.struct else spec.scalars
        called = f"return operator()({', '.join((*casts.values(), *scalars))});"
        return Body((called,), "float", floating.origin, floating.helpers, floating.headers)
    lines = tuple(uncast_return(line, "T") for line in floating.statements)
    if not any(cast in line for cast in casts.values() for line in lines):
        lines = tuple(rename_identifiers(line, casts) for line in lines)
    lines = tuple(_plain_numbers(rename_identifiers(line, {"T": "float"})) for line in lines)
    return Body(lines, "float", floating.origin, floating.helpers, floating.headers)
