"""A functor: its specification, its body from ATen's CPU lambda, and its MSL text (c10/metal/indexing.h)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from porter.aten.meta import TypeRule
from porter.aten.metal_functions import Library, MetalFunction
from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.cpu.kernels import CpuKernel, Lambda, ScalarArgument
from porter.cpu.translator import OPMATH
from porter.languages.brackets import is_balanced
from porter.languages.identifiers import contains_identifier, rename_identifiers
from porter.languages.patterns import find_code
from porter.metal.expression import split_return, uncast_return
from porter.metal.params import PARAMETER, ParamsStruct
from porter.mpsgraph.graph import Graph
from porter.mpsgraph.operations import find_headers


class Source(Enum):
    """ANY: all of them, CUDA's last and only where the CPU's cannot be translated. CUDA: the CUDA kernel first."""

    ANY = "any"
    CUDA = "cuda"


# The trait of numbers that are no vectors; complex numbers are vectors in Metal.
SCALAR_TRAIT = "is_scalar_floating_point_v"
USES_C10 = "using namespace c10::metal;"
_OF_C10 = re.compile(r"(?<![\w:])(?=(?:is_complex_v|is_scalar_\w+_v|opmath_t)\b)")
REAL = (Kind.FLOATING, Kind.INTEGRAL, Kind.BOOL)


@dataclass(frozen=True)
class Provenance:
    """Where code is from: `what` it was, whose it is (a device's kernel, or `LIBRARY`), and what was changed of it.

    A formula of porter's is in a `file`, which nobody who reviews the code can look up.
    """

    what: str
    owner: str = ""
    file: str = ""
    changes: tuple[str, ...] = ()

    def changed(self, how: str) -> Provenance:
        """The same with one more change."""
        return replace(self, changes=(*self.changes, how))

    @property
    def for_reviewers(self) -> str:
        """The words without the file."""
        return ", ".join((self.what, *self.changes))

    def __str__(self) -> str:
        return ", ".join((f"{self.what} ({self.file})" if self.file else self.what, *self.changes))


@dataclass(frozen=True)
class Body:
    """The computation for one kind of element: MSL statements over the parameters, ending with a return.

    `result` is the return type: `T`, `float` or `bool`. `origin` is its source, for reports. With `rounds`, T has to be
    the element's type, which numbers or results of operations are rounded to: with opmath it is float.
    """

    statements: tuple[str, ...]
    result: str
    origin: Provenance
    helpers: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    rounds: bool = False


@dataclass(frozen=True)
class Overload:
    """An `operator()` and its kinds of element."""

    kinds: tuple[Kind, ...]
    body: Body


@dataclass(frozen=True)
class Origin:
    """The source of the body for some kinds of element: the candidate at `index`, from 0, of `count`.

    The candidates are those of the first of `kinds`; the others use the same one.
    """

    kinds: tuple[Kind, ...]
    source: Provenance
    index: int
    count: int


@dataclass(frozen=True)
class Functor:
    """`struct <name>_functor` with its overloads in the order floating, integral, bool, complex."""

    name: str
    params: tuple[str, ...]
    scalars: tuple[tuple[str, str], ...]
    overloads: tuple[Overload, ...]
    origins: tuple[Origin, ...]

    @property
    def headers(self) -> tuple[str, ...]:
        """The c10/metal headers that the bodies need."""
        return tuple(dict.fromkeys(h for overload in self.overloads for h in overload.body.headers))

    @property
    def helpers(self) -> tuple[str, ...]:
        """The helper functions that the bodies call, to be defined once before the functor."""
        return tuple(dict.fromkeys(h for overload in self.overloads for h in overload.body.helpers))


@dataclass(frozen=True)
class FunctorStyle:
    """How a kernel file writes functors: parameter names by arity, the position of the constraint, and whether names
    of c10::metal are qualified.
    """

    unary: str
    binary: tuple[str, str]
    constraint_in_result: bool
    scalar_traits: bool
    cast: str
    qualifies: bool = False

    @staticmethod
    def of(text: str) -> FunctorStyle:
        """Reads the style of a file's functors; upstream's style if it has none."""
        operands = [
            [code["name"] for code in find_code(params, "const $type $name")] for params in _OPERATOR.findall(text)
        ]
        unary = Counter(names[0] for names in operands if len(names) == 1)
        binary = Counter((names[0], names[1]) for names in operands if len(names) == 2)
        return FunctorStyle(
            unary=unary.most_common(1)[0][0] if unary else "x",
            binary=binary.most_common(1)[0][0] if binary else ("a", "b"),
            constraint_in_result=len(re.findall(r"inline\s+(?:::metal::)?enable_if_t<", text))
            > len(re.findall(r"typename\s+T,\s*(?:::metal::)?enable_if_t<", text)),
            scalar_traits=SCALAR_TRAIT in text,
            cast="static_cast<float>"
            if text.count("static_cast<float>(") > len(_FLOAT_CAST.findall(text))
            else "float",
        )

    def params(self, arity: int) -> tuple[str, ...]:
        """Returns the names of the element parameters."""
        names = {1: (self.unary,), 2: self.binary}
        return names.get(arity, tuple("abcdefgh"[:arity]))


_FLOAT_CAST = re.compile(r"float\((?<![\w<]float\()")  # what stands before is looked at last: far fewer places
_OPERATOR = re.compile(r"operator\(\)\(([^{};]*)\)\s*\{")


def merge_overloads(bodies: Iterable[tuple[Kind, Body]]) -> tuple[Overload, ...]:
    """Returns one overload per different body. Kinds with the same body share it."""
    overloads: list[Overload] = []
    for kind, body in bodies:
        for at, known in enumerate(overloads):
            if known.body.statements == body.statements and _serves_both(kind, known.body.result, body.result):
                overloads[at] = Overload((*known.kinds, kind), known.body)
                break
        else:
            overloads.append(Overload((kind,), body))
    return tuple(overloads)


def _serves_both(kind: Kind, known: str, result: str) -> bool:
    """Whether one overload can have both result types: for bool, `T` is bool."""
    return known == result or (kind is Kind.BOOL and (known, result) == ("T", "bool"))


def functor_text(functor: Functor, style: FunctorStyle) -> str:
    """Returns the text of the struct, to be formatted with the fork's clang-format."""
    blocks = [_operator(overload, functor, style) for overload in functor.overloads]
    text = f"struct {functor.name}_functor {{\n" + "".join(blocks) + "};\n"
    return _OF_C10.sub("c10::metal::", text) if style.qualifies else text


def _operator(overload: Overload, functor: Functor, style: FunctorStyle) -> str:
    served = {kind for each in functor.overloads for kind in each.kinds}
    statements = "\n".join(f"    {line}" for line in overload.body.statements)
    if overload.kinds == (Kind.BOOL,):
        head = "  template <typename A>\n" if functor.scalars else ""
        params = ", ".join(_params(functor, "bool"))
        result = "bool" if overload.body.result == "T" else overload.body.result
        text = rename_identifiers(statements, {"T": "bool"})
        return f"{head}  inline {result} operator()({params}) {{\n{text}\n  }}\n"
    constraint = _constraint(overload.kinds, served, style)
    names = "typename T, typename A" if functor.scalars else "typename T"
    template, result = _write_head(constraint, overload.body.result, style, names)
    params = ", ".join(_params(functor, "T"))
    return f"  {template}\n  inline {result} operator()({params}) {{\n{statements}\n  }}\n"


def _params(functor: Functor, element: str) -> Sequence[str]:
    return [
        *(f"const {element} {name}" for name in functor.params),
        *(f"const {t} {name}" for t, name in functor.scalars),
    ]


def _write_head(constraint: str, result: str, style: FunctorStyle, names: str) -> tuple[str, str]:
    if not constraint:
        return f"template <{names}>", result
    if style.constraint_in_result:
        return f"template <{names}>", f"enable_if_t<{constraint}, {result}>"
    return f"template <{names}, enable_if_t<{constraint}, bool> = true>", result


_TRAITS = {
    frozenset({Kind.FLOATING}): "is_{scalar}floating_point_v<T>",
    frozenset({Kind.INTEGRAL}): "is_{scalar}integral_v<T>",
    frozenset({Kind.INTEGRAL, Kind.BOOL}): "is_{scalar}integral_v<T>",
    frozenset({Kind.COMPLEX}): "is_complex_v<T>",
    frozenset({Kind.FLOATING, Kind.COMPLEX}): "!is_{scalar}integral_v<T>",
    frozenset({Kind.INTEGRAL, Kind.COMPLEX}): "!is_{scalar}floating_point_v<T>",
    frozenset({Kind.INTEGRAL, Kind.BOOL, Kind.COMPLEX}): "!is_{scalar}floating_point_v<T>",
    frozenset(REAL): "!is_complex_v<T>",
    frozenset({Kind.FLOATING, Kind.INTEGRAL}): "!is_complex_v<T>",
}


def _constraint(kinds: Sequence[Kind], served: set[Kind], style: FunctorStyle) -> str:
    """Returns the trait that selects these kinds, or "" if the functor has no others (bool has its own overload)."""
    others = served - set(kinds) - {Kind.BOOL}
    if not others:
        return ""
    # The trait of integers includes bool.
    single = (_TRAITS[frozenset({kind})] for kind in kinds if kind is not Kind.BOOL)
    trait = _TRAITS.get(frozenset(kinds)) or " || ".join(single)
    return trait.format(scalar="scalar_" if Kind.COMPLEX in served and style.scalar_traits else "")


@dataclass(frozen=True)
class FunctorSpec:
    """What a functor has to compute. `names` are the functions it may correspond to, its own name first.

    Several scalars come in a `struct`. `cuda` is the kernel of CUDA, if it is needed. What `keeps` dtypes takes those
    that the old graph took and the CPU does not, too.
    """

    names: tuple[str, ...]
    inputs: tuple[str, ...]
    scalars: tuple[str, ...]
    rule: TypeRule
    cpu: CpuKernel
    graph: Graph | None
    library: Library
    style: FunctorStyle
    struct: ParamsStruct | None = None
    cuda: CpuKernel | None = None
    source: Source = Source.ANY
    keeps: bool = False

    @property
    def params(self) -> tuple[str, ...]:
        return self.style.params(len(self.inputs))

    @property
    def given(self) -> tuple[str, ...]:
        """The scalars as the functor's body spells them."""
        return tuple(f"{PARAMETER}.{name}" for name in self.scalars) if self.struct else self.scalars

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the functor computes with, as its body spells it: elements, then scalars."""
        return (*self.params, *self.given)

    def find_function(self, kind: Kind) -> MetalFunction | None:
        """Returns the function of the fork's headers that computes this for a kind of element, or None."""
        found = (self.library.find(name, len(self.arguments), kind) for name in self.names)
        return next((function for function in found if function), None)

    def result(self, dtype: DType) -> DType | None:
        return self.rule.result(dtype)

    @property
    def served(self) -> tuple[DType, ...]:
        """The dtypes that both the CPU and Metal support, and halves wherever the CPU has float; and those kept.

        Complex half only if the old path supports it too.
        """
        return tuple(dtype for dtype in dtypes.ALL if self._serves(dtype) or dtype in self.kept)

    @property
    def kept(self) -> tuple[DType, ...]:
        """The integers of the old graph that the CPU does not support: they are computed in float, as floats are."""
        has_others = any(dtype.kind is Kind.INTEGRAL and self._serves(dtype) for dtype in dtypes.ALL)
        return () if has_others else tuple(dtype for dtype in self._list_dropped() if dtype.kind is Kind.INTEGRAL)

    @property
    def given_up(self) -> tuple[DType, ...]:
        """The dtypes of the old graph that are not kept: no source defines the functor for them."""
        return tuple(dtype for dtype in self._list_dropped() if dtype not in (*self.kept, dtypes.BOOL))

    def _list_dropped(self) -> Iterator[DType]:
        for dtype in dtypes.ALL if self.keeps and self.graph else ():
            if not self._serves(dtype) and self.result(dtype) == dtype and self.graph and self.graph.of(dtype):
                yield dtype

    def _serves(self, dtype: DType) -> bool:
        if self.result(dtype) is None:
            return False
        if dtype is dtypes.HALF2 and self.result(dtype) is dtypes.HALF:
            return False
        if dtype is dtypes.HALF2 and dtypes.FLOAT2 in self.cpu.dtypes:
            return dtype in self.cpu.dtypes or bool(self.graph and self.graph.of(dtype))
        if dtype.is_reduced and dtypes.FLOAT in self.cpu.dtypes:
            return True
        return self.rule.compute(dtype) in self.cpu.dtypes

    def as_float(self, name: str) -> str:
        """Returns a parameter cast to float, in the style of the kernel file."""
        return f"{self.style.cast}({name})" if self.style.cast else f"float({name})"


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
    origin = Provenance(f"ATen's {kernel.device} kernel ({found.place})", kernel.device)
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
