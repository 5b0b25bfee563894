"""A functor as a value, and its MSL text in the style of its file (the functor dialect of c10/metal/indexing.h)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from porter.core.dtypes import Kind
from porter.languages.identifiers import rename_identifiers
from porter.languages.patterns import find_code

# The trait of numbers that are no vectors; complex numbers are vectors in Metal.
SCALAR_TRAIT = "is_scalar_floating_point_v"
USES_C10 = "using namespace c10::metal;"
_OF_C10 = re.compile(r"(?<![\w:])(?=(?:is_complex_v|is_scalar_\w+_v|opmath_t)\b)")
REAL = (Kind.FLOATING, Kind.INTEGRAL, Kind.BOOL)


@dataclass(frozen=True)
class Body:
    """The computation for one kind of element: MSL statements over the parameters, ending with a return.

    `result` is the return type: `T`, `float` or `bool`. `origin` is its source, for reports. With `rounds`, T has to be
    the element's type, which numbers or results of operations are rounded to: with opmath it is float.
    """

    statements: tuple[str, ...]
    result: str
    origin: str
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
    source: str
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
    frozenset({Kind.FLOATING}): "is_floating_point_v<T>",
    frozenset({Kind.INTEGRAL}): "is_integral_v<T>",
    frozenset({Kind.INTEGRAL, Kind.BOOL}): "is_integral_v<T>",
    frozenset({Kind.COMPLEX}): "is_complex_v<T>",
    frozenset({Kind.FLOATING, Kind.COMPLEX}): "!is_integral_v<T>",
    frozenset({Kind.INTEGRAL, Kind.COMPLEX}): "!is_floating_point_v<T>",
    frozenset({Kind.INTEGRAL, Kind.BOOL, Kind.COMPLEX}): "!is_floating_point_v<T>",
    frozenset(REAL): "!is_complex_v<T>",
    frozenset({Kind.FLOATING, Kind.INTEGRAL}): "!is_complex_v<T>",
}


def _constraint(kinds: Sequence[Kind], served: set[Kind], style: FunctorStyle) -> str:
    """Returns the trait that selects these kinds, or "" if the functor has no others (bool has its own overload)."""
    others = served - set(kinds) - {Kind.BOOL}
    if not others:
        return ""
    trait = _TRAITS.get(frozenset(kinds)) or _any_of(kinds)
    if Kind.COMPLEX in served and style.scalar_traits:
        return trait.replace("is_floating", "is_scalar_floating").replace("is_integral", "is_scalar_integral")
    return trait


def _any_of(kinds: Sequence[Kind]) -> str:
    """Returns a combined trait for kinds without a common one. The trait of integers includes bool."""
    single = [_TRAITS[frozenset({kind})] for kind in kinds if kind is not Kind.BOOL]
    return " || ".join(single)
