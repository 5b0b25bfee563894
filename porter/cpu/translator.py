"""C++ expressions and statements of a CPU kernel, for one element type, as Metal: checked name by name, never guessed.

Types are Metal spellings; `T` is the kernel's element type, `float` also stands for what a math function returns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from porter.aten.metal_functions import Library
from porter.aten.walk import show
from porter.core.dtypes import BY_METAL, FLOAT, INT, DType, Kind
from porter.core.errors import Place, PorterError
from porter.cpu.msl_functions import CONSTANTS, LIMITS, NAMESPACES, TRAITS, TYPES, filled, form_for
from porter.languages import cpp
from porter.languages.brackets import unwrapped
from porter.mpsgraph.operations import by_cpp_name, operations

OPMATH = "c10::metal::opmath_t<T>"
_TRANSPARENT = frozenset(("C10_UNLIKELY", "C10_LIKELY"))
_COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))
_ARITHMETIC = frozenset(("+", "-", "*", "/"))
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")
_FLOATING = re.compile(r"((?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?)[fFlL]?")

# How a call of a function that the tables do not know is answered: text and type, or None.
Unknown = Callable[["Translator", cpp.Name, list["Typed"]], "Typed | None"]


_NUMBER = re.compile(r"-?[\d.][\w.]*(?<!\.)|(?:T|float|int|static_cast<T>)\(-?[\d.][\w.]*\)")


def is_number(text: str) -> bool:
    """Whether a piece of Metal is a number as written."""
    return _NUMBER.fullmatch(text) is not None


@dataclass(frozen=True)
class Typed:
    """A piece of Metal and its type."""

    text: str
    type: str


@dataclass
class Translator:
    """Names and types in scope while a kernel is translated for `dtype`; counts what rounds to the element type."""

    dtype: DType
    place: Callable[[int], Place]
    library: Library
    unknown: Unknown
    aliases: dict[str, str] = field(default_factory=dict)
    names: dict[str, Typed] = field(default_factory=dict)
    checks: list[str] = field(default_factory=list)
    roundings: int = 0

    def refuse(self, what: str, start: int) -> PorterError:
        """The error for something that has no Metal form here."""
        return PorterError(
            "PTR079",
            f"{what} has no Metal equivalent",
            self.place(start),
            "Write the functor by hand, or add the construct to porter's tables.",
        )

    def type(self, written: str, start: int) -> str:
        """The Metal spelling of a C++ type."""
        bare = re.sub(r"\bconst\b|[&]|\[\[\w+\]\]", "", written).strip()
        bare = re.sub(r"\b(?:at|c10|std)::(Half|BFloat16|u?int\d+_t)\b", r"\1", bare)
        if bare in self.aliases:
            return self.aliases[bare]
        wrapped = re.fullmatch(r"(?:at::)?opmath_type<(.+)>|(?:std::)?make_(un)?signed_t<(.+)>", bare)
        if wrapped and wrapped.group(1):
            inner = self.type(wrapped.group(1), start)
            return OPMATH if inner == "T" else inner
        if wrapped:
            return f"metal::make_{wrapped.group(2) or ''}signed_t<{self.type(wrapped.group(3), start)}>"
        if bare.startswith("c10::complex<") and bare[len("c10::complex<") : -1] in self.aliases and bare not in TYPES:
            return "T"
        if bare not in TYPES:
            raise self.refuse(f"the type {written}", start)
        spelled = TYPES[bare]
        return "T" if spelled == self.dtype.metal and spelled not in ("float", "bool", "int") else spelled

    def concrete(self, kind: str) -> DType:
        """The element type behind a Metal spelling."""
        if kind in ("T", "auto"):
            return self.dtype
        if kind == OPMATH:
            return FLOAT if self.dtype.kind is Kind.FLOATING else self.dtype
        return BY_METAL.get(kind, INT)

    def is_complex(self, value: Typed) -> bool:
        """Whether a value has a real and an imaginary part."""
        return self.concrete(value.type).kind is Kind.COMPLEX

    def expression(self, value: cpp.Expr) -> Typed:
        """An expression as Metal. Raises PTR079 or PTR080."""
        method = getattr(self, f"_{type(value).__name__.lower()}", None)
        if method is None:
            raise self.refuse(f"'{show(value)}'", value.start)
        typed: Typed = method(value)
        return typed

    def _paren(self, value: cpp.Paren) -> Typed:
        inner = self.expression(value.value)
        return Typed(f"({inner.text})", inner.type)

    def _literal(self, value: cpp.Literal) -> Typed:
        whole, broken = _INTEGER.fullmatch(value.text), _FLOATING.fullmatch(value.text)
        if whole:
            return Typed(whole.group(1), "int")
        if not broken or abs(float(broken.group(1))) > 3.4e38:
            raise self.refuse(f"the literal {value.text}", value.start)
        digits = broken.group(1) + ("0" if broken.group(1).endswith(".") else "")
        return Typed(f"{digits}f", "float")

    def _name(self, value: cpp.Name) -> Typed:
        if value.path in self.names:
            return self.names[value.path]
        if value.path in CONSTANTS:
            return Typed(*CONSTANTS[value.path])
        if value.path in TRAITS:
            return Typed(f"{TRAITS[value.path]}<{self.type(value.arguments[0], value.start)}>", "bool")
        raise self.refuse(f"the name {value.path}", value.start)

    def _unary(self, value: cpp.Unary) -> Typed:
        inner = self.expression(value.value)
        if value.op == "!":
            return Typed(f"!{self.truth(inner)}", "bool")
        if value.op not in ("-", "+", "~") or (value.op == "~" and self.is_complex(inner)):
            raise self.refuse(f"'{show(value)}'", value.start)
        text = f"({inner.text})" if inner.text.startswith(value.op) else inner.text
        return Typed(value.op + text, "int" if inner.type == "bool" else inner.type)

    def truth(self, value: Typed) -> str:
        """A value where C++ wants a condition: a complex number is true unless both its parts are zero."""
        return f"metal::any({value.text} != {value.type}(0))" if self.is_complex(value) else value.text

    def _binary(self, value: cpp.Binary) -> Typed:
        left, right = self.expression(value.left), self.expression(value.right)
        if value.op in ("&&", "||"):
            return Typed(f"{self.truth(left)} {value.op} {self.truth(right)}", "bool")
        if self.is_complex(left) or self.is_complex(right):
            return self._complex(value, left, right)
        if value.op in _COMPARISONS:
            return Typed(f"{left.text} {value.op} {right.text}", "bool")
        kind = self.joined(left.type, right.type)
        if value.op in _ARITHMETIC and kind == "T" and self.dtype.kind is Kind.FLOATING:
            self.roundings += 1
        return Typed(f"{left.text} {value.op} {right.text}", kind)

    def _complex(self, value: cpp.Binary, left: Typed, right: Typed) -> Typed:
        if value.op in ("==", "!="):
            every = "all" if value.op == "==" else "any"
            return Typed(f"metal::{every}({left.text} {value.op} {right.text})", "bool")
        both = self.is_complex(left) and self.is_complex(right)
        kind = left.type if self.is_complex(left) else right.type
        if value.op in ("+", "-"):
            sides = [v.text if self.is_complex(v) else f"{kind}({v.text}, 0)" for v in (left, right)]
            return Typed(f"{sides[0]} {value.op} {sides[1]}", kind)
        if value.op == "*" and not both:
            return Typed(f"{left.text} * {right.text}", kind)
        function = {"*": "mul", "/": "div"}.get(value.op, "")
        if not self.library.has(function, of_complex=False):
            raise self.refuse(f"the complex operation '{show(value)}'", value.start)
        if not self.is_complex(left):
            left = Typed(f"{kind}({left.text}, 0)", kind)
        if not self.is_complex(right):
            return Typed(f"{left.text} / {right.text}", kind)
        return Typed(f"c10::metal::{function}({unwrapped(left.text)}, {unwrapped(right.text)})", kind)

    def joined(self, left: str, right: str) -> str:
        """The type of an arithmetic operation."""
        if left == right:
            return left
        for kind in ("float", OPMATH, "T", "auto"):
            if kind in (left, right):
                floats = self.concrete(kind).kind is Kind.FLOATING
                return kind if kind != "T" or floats or {left, right} <= {"T", "int", "bool"} else right
        return left if self.concrete(left).size >= self.concrete(right).size else right

    def _ternary(self, value: cpp.Ternary) -> Typed:
        test = self.truth(self.expression(value.test))
        yes, no = self.expression(value.yes), self.expression(value.no)
        kind = self.joined(yes.type, no.type)
        return Typed(f"{test} ? {yes.text} : {no.text}", kind)

    def _cast(self, value: cpp.Cast) -> Typed:
        return self._converted(self.type(value.type, value.start), self.expression(value.value))

    def cast(self, kind: str, value: Typed) -> Typed:
        """A value converted to a type; a real number becomes the real part of a complex one."""
        if kind in (value.type, "auto"):
            return value
        if kind == "bool" and self.is_complex(value):
            return Typed(self.truth(value), kind)
        if self.concrete(kind).kind is Kind.COMPLEX and not self.is_complex(value):
            return Typed(f"{kind}({value.text}, 0)", kind)
        return Typed(f"static_cast<{kind}>({value.text})", kind)

    def _member(self, value: cpp.Member) -> Typed:
        raise self.refuse(f"'{show(value)}'", value.start)

    def _call(self, value: cpp.Call) -> Typed:
        if isinstance(value.function, cpp.Member):
            return self._part(value, value.function)
        if not isinstance(value.function, cpp.Name):
            raise self.refuse(f"'{show(value)}'", value.start)
        name = value.function
        if name.path in _TRANSPARENT and len(value.arguments) == 1:
            return self.expression(value.arguments[0])
        if name.path == "sizeof" and len(value.arguments) == 1:
            return Typed(f"sizeof({self.type(show(value.arguments[0]), value.start)})", "int")
        limit = self._limit(name)
        if limit:
            return limit
        if self._names_type(name):
            return self._constructed(show(name), value)
        arguments = [self.expression(argument) for argument in value.arguments]
        known = self._from_table(name, arguments) or self.unknown(self, name, arguments)
        if known is None:
            raise PorterError(
                "PTR080",
                f"no Metal equivalent of {name.path} is known for {self.dtype}",
                self.place(name.start),
                "Add the function to c10/metal, or write the functor by hand.",
            )
        return known

    def _names_type(self, name: cpp.Name) -> bool:
        text = show(name)
        if name.path == "c10::complex":
            return True
        return text in self.aliases or re.sub(r"^(?:at|c10)::(?=Half|BFloat16)", "", text) in TYPES

    def _constructed(self, written: str, value: cpp.Call) -> Typed:
        kind = self.type(written, value.start)
        arguments = [self.expression(argument) for argument in value.arguments]
        if len(arguments) == 1:
            return self._converted(kind, arguments[0])
        if self.concrete(kind).kind is not Kind.COMPLEX or len(arguments) != 2:
            raise self.refuse(f"'{show(value)}'", value.start)
        return Typed(f"{kind}({arguments[0].text}, {arguments[1].text})", kind)

    def _converted(self, kind: str, value: Typed) -> Typed:
        """`T(1)` keeps its look; anything longer reads better as a static_cast."""
        short = re.fullmatch(r"[\w.]+", value.text) and kind != OPMATH and not self.is_complex(value)
        if short and kind != value.type and self.concrete(kind).kind is not Kind.COMPLEX:
            return Typed(f"{kind}({value.text})", kind)
        return self.cast(kind, value)

    def _limit(self, name: cpp.Name) -> Typed | None:
        owner, _, member = name.path.rpartition("::")
        if owner != "std::numeric_limits" or member not in LIMITS:
            return None
        kind = self.type(name.arguments[0], name.start)
        return Typed(f"metal::numeric_limits<{kind}>::{member}()", kind)

    def _part(self, value: cpp.Call, function: cpp.Member) -> Typed:
        owner = self.expression(function.value)
        part = {"real": "x", "imag": "y"}.get(function.name)
        if part is None or value.arguments or not self.is_complex(owner):
            raise self.refuse(f"'{show(value)}'", value.start)
        return Typed(f"{owner.text}.{part}", self.concrete(owner.type).real.metal)

    def _from_table(self, name: cpp.Name, arguments: list[Typed]) -> Typed | None:
        row = by_cpp_name().get(name.last)
        if row is None or name.path.rpartition("::")[0] not in NAMESPACES or not arguments:
            return None
        kind = arguments[0].type
        for argument in arguments[1:]:
            kind = self.joined(kind, argument.type)
        function, concrete = row.cpp, self.concrete(kind)
        if function.quiet and is_number(arguments[-1].text):
            quiet = operations()[function.quiet].cpp
            function = quiet if form_for(quiet, concrete, self.library) else function
        form = form_for(function, concrete, self.library)
        if not form:
            return None
        self.roundings += 0 if function.exact else 1
        real, is_complex = concrete.real.metal, concrete.kind is Kind.COMPLEX
        results = {
            "bool": "bool",
            "same": kind,
            "real": real,
            "float": kind if is_complex else "float",
        }
        result = (is_complex and function.complex_result) or function.result
        return Typed(filled(form, [a.text for a in arguments]), results[result])

    def test(self, value: cpp.Expr) -> str:
        """A condition."""
        return self.truth(self.expression(value))
