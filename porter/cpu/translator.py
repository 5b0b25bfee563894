"""Translates C++ expressions of a CPU kernel to Metal, for one element type. Unknown names are errors, never guesses.

Types are Metal spellings; `T` is the kernel's element type, `float` also stands for what a math function returns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from porter.aten.branches import show
from porter.aten.metal_functions import Library
from porter.core.dtypes import ALL, BY_METAL, DOUBLE, FLOAT, INT, LONG, DType, Kind
from porter.core.errors import Place, PorterError
from porter.languages import cpp
from porter.languages.brackets import has_outside, strip_parentheses
from porter.languages.identifiers import is_word
from porter.mpsgraph.operations import CppFunction, by_cpp_name, operations

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
_PART = ("c10::scalar_value_type<", ">::type")
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


OPMATH = "c10::metal::opmath_t<T>"
ARRAY = "[]"
_TRANSPARENT = frozenset(("C10_UNLIKELY", "C10_LIKELY"))
_COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))
_ARITHMETIC = frozenset(("+", "-", "*", "/"))
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")
_FLOATING = re.compile(r"((?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?)[fFlL]?")
_DOUBLE = re.compile(r"0?\.\d+")
_NUMBER_TYPES = frozenset(("T", FLOAT.metal, INT.metal))  # in which a literal is a number that may be inlined

# Translates the call of a function that is not in the tables; returns its text and type, or None.
FallbackCall = Callable[["Translator", cpp.Name, list["TypedText"]], "TypedText | None"]


class Binding(IntEnum):
    """How tightly the loosest operator of a piece of Metal binds, outside of its brackets."""

    OPERATION = 0  # several operands
    UNARY = 1  # an operator before an operand
    OPERAND = 2  # a name, a number, a call, an element, what is in brackets


@dataclass(frozen=True)
class TypedText:
    """A piece of Metal and its type; `is_number` if it is a literal, its negative, or one that is converted."""

    text: str
    type: str
    binding: Binding = field(default=Binding.OPERAND, compare=False)
    is_number: bool = field(default=False, compare=False)

    @property
    def operand(self) -> str:
        """The text as the operand of any operator."""
        return self.text if self.binding is Binding.OPERAND else f"({self.text})"

    def within_operators(self) -> TypedText:
        """The same in brackets, if it has operators between operands."""
        return self if self.binding > Binding.OPERATION else replace(self, text=self.operand, binding=Binding.OPERAND)


def fill_form(form: str, arguments: Sequence[TypedText], type_: str) -> TypedText:
    """Fills the arguments into a form: `{0}` unchanged, `[0]` in parentheses unless it is a single operand."""
    text = form
    for index, argument in enumerate(arguments):
        text = text.replace(f"{{{index}}}", argument.text).replace(f"[{index}]", argument.operand)
    return TypedText(text, type_, Binding.OPERATION if has_outside(form, " ") else Binding.OPERAND)


@dataclass
class Translator:
    """The names and types in scope while a kernel is translated for `dtype`.

    `roundings` counts the operations that round to the element type. `refused` are locals without a Metal equivalent,
    an error only where an element uses them; `find_constant` finds the value of a constant of the file. `written` are
    locals whose address is passed on, which functions of Metal take by reference.
    """

    dtype: DType
    place: Callable[[int], Place]
    library: Library
    fallback: FallbackCall
    aliases: dict[str, str] = field(default_factory=dict)
    names: dict[str, TypedText] = field(default_factory=dict)
    checks: list[str] = field(default_factory=list)
    refused: dict[str, PorterError] = field(default_factory=dict)
    find_constant: Callable[[str], cpp.Expr | None] = field(default=lambda _name: None)
    roundings: int = 0
    written: set[str] = field(default_factory=set)

    def refuse(self, what: str, start: int) -> PorterError:
        """Returns the error for code without a Metal equivalent."""
        return PorterError(
            "PTR079",
            f"{what} has no Metal equivalent",
            self.place(start),
            "Write the functor by hand, or add the construct to porter's tables.",
        )

    def type(self, written: str, start: int) -> str:
        """Returns the Metal spelling of a C++ type."""
        bare = re.sub(r"\bconst\b|[&]|\[\[\w+\]\]", "", written).strip()
        bare = re.sub(r"\b(?:at|c10|std)::(Half|BFloat16|u?int\d+_t)\b", r"\1", bare)
        if bare in self.aliases:
            return self.aliases[bare]
        if bare.endswith(ARRAY):
            return f"{self.type(bare.removesuffix(ARRAY), start)}{ARRAY}"
        wrapped = re.fullmatch(
            r"(?:(?:at::)?opmath_type|reduced_fp_to_float_t)<(.+)>|(?:std::)?make_(un)?signed_t<(.+)>", bare
        )
        accumulated = re.fullmatch(r"(?:at::)?acc_type<(.+?), ?(?:true|false|/\*.*)>", bare)
        if accumulated:
            return self._accumulate(self.type(accumulated.group(1), start))
        if wrapped and wrapped.group(1):
            inner = self.type(wrapped.group(1), start)
            return OPMATH if inner == "T" else inner
        if wrapped:
            return f"metal::make_{wrapped.group(2) or ''}signed_t<{self.type(wrapped.group(3), start)}>"
        part = bare.removeprefix("typename ").removeprefix(_PART[0]).removesuffix(_PART[1])
        if bare.removeprefix("typename ") == part.join(_PART):
            inner = self.type(part, start)
            return self.concrete(inner).real.metal if self.concrete(inner).kind is Kind.COMPLEX else inner
        if bare.startswith("c10::complex<") and bare[len("c10::complex<") : -1] in self.aliases and bare not in TYPES:
            return "T"
        if bare not in TYPES:
            raise self.refuse(f"the type {written}", start)
        spelled = TYPES[bare]
        return "T" if spelled == self.dtype.metal and spelled not in ("float", "bool", "int") else spelled

    def _accumulate(self, kind: str) -> str:
        """Returns what ATen/AccumulateType.h has for a type: opmath, or 64 bits for integers."""
        if self.concrete(kind).kind in (Kind.INTEGRAL, Kind.BOOL):
            return "T" if self.dtype == LONG else LONG.metal
        return OPMATH if kind == "T" else kind

    def concrete(self, kind: str) -> DType:
        """Returns the element type of a Metal spelling."""
        if kind in ("T", "auto"):
            return self.dtype
        if kind == OPMATH:
            return FLOAT if self.dtype.kind is Kind.FLOATING else self.dtype
        return BY_METAL.get(kind, INT)

    def is_complex(self, value: TypedText) -> bool:
        """Whether a value has a real and an imaginary part."""
        return self.concrete(value.type).kind is Kind.COMPLEX

    def expression(self, value: cpp.Expr) -> TypedText:
        """Translates an expression. Raises PTR079 or PTR080."""
        method = getattr(self, f"_{type(value).__name__.lower()}", None)
        if method is None:
            raise self.refuse(f"'{show(value)}'", value.start)
        typed: TypedText = method(value)
        return typed

    def _paren(self, value: cpp.Paren) -> TypedText:
        inner = self.expression(value.value)
        return TypedText(f"({inner.text})", inner.type)

    def _literal(self, value: cpp.Literal) -> TypedText:
        whole, broken = _INTEGER.fullmatch(value.text), _FLOATING.fullmatch(value.text)
        if whole:
            return TypedText(whole.group(1), "int", is_number=True)
        if not broken or abs(float(broken.group(1))) > 3.4e38:
            raise self.refuse(f"the literal {value.text}", value.start)
        digits = broken.group(1) + ("0" if broken.group(1).endswith(".") else "")
        # A half rounds what has a negative exponent to zero, of which a maximum is not the one that the CPU has.
        return TypedText(f"{digits}f", "float", is_number="-" not in digits)

    def _name(self, value: cpp.Name) -> TypedText:
        if value.path in self.names:
            return self.names[value.path]
        if value.path in self.refused:
            raise self.refused[value.path]
        if value.path in CONSTANTS:
            text, kind = CONSTANTS[value.path]
            return TypedText(text, kind, Binding.UNARY if text.startswith("-") else Binding.OPERAND)
        if value.path in TRAITS:
            return TypedText(f"{TRAITS[value.path]}<{self.type(value.arguments[0], value.start)}>", "bool")
        constant = self.find_constant(value.path)
        if constant is not None:
            return self.expression(constant).within_operators()
        raise self.refuse(f"the name {value.path}", value.start)

    def _index(self, value: cpp.Index) -> TypedText:
        owner, index = self.expression(value.value), self.expression(value.index)
        if not owner.type.endswith(ARRAY):
            raise self.refuse(f"'{show(value)}'", value.start)
        return TypedText(f"{owner.text}[{index.text}]", owner.type.removesuffix(ARRAY))

    def _unary(self, value: cpp.Unary) -> TypedText:
        inner = self.expression(value.value)
        if value.op == "&" and isinstance(value.value, cpp.Name):
            self.written.add(inner.text)
            return inner
        if value.op == "!":
            return TypedText(f"!{self.truth(inner).text}", "bool", Binding.UNARY)
        if value.op not in ("-", "+", "~") or (value.op == "~" and self.is_complex(inner)):
            raise self.refuse(f"'{show(value)}'", value.start)
        text = inner.operand if inner.text.startswith(value.op) else inner.text
        is_number = inner.is_number and inner.binding is Binding.OPERAND and value.op == "-"
        return TypedText(value.op + text, "int" if inner.type == "bool" else inner.type, Binding.UNARY, is_number)

    def truth(self, value: TypedText) -> TypedText:
        """Returns a value as a condition. A complex number is true unless both parts are zero."""
        if self.is_complex(value):
            return TypedText(f"metal::any({value.text} != {value.type}(0))", "bool")
        return replace(value, type="bool")

    def _binary(self, value: cpp.Binary) -> TypedText:
        left, right = self.expression(value.left), self.expression(value.right)
        if value.op in ("&&", "||"):
            return self._connect(value.op, self.truth(left), self.truth(right))
        if self.is_complex(left) or self.is_complex(right):
            return self._complex(value, left, right)
        if value.op == "!=" and left == right and self.concrete(left.type).kind in (Kind.INTEGRAL, Kind.BOOL):
            return TypedText("false", "bool")  # of floats, it is a test for NaN
        if value.op in _COMPARISONS:
            return TypedText(f"{left.text} {value.op} {right.text}", "bool", Binding.OPERATION)
        kind = self.common_type(left.type, right.type)
        if value.op in _ARITHMETIC and kind == "T" and self.dtype.kind is Kind.FLOATING:
            self.roundings += 1
        return TypedText(f"{left.text} {value.op} {right.text}", kind, Binding.OPERATION)

    def _connect(self, op: str, left: TypedText, right: TypedText) -> TypedText:
        """Returns a conjunction or disjunction, without an operand that changes nothing."""
        decides, neutral = ("false", "true") if op == "&&" else ("true", "false")
        if decides in (left.text, right.text):
            return TypedText(decides, "bool")
        if neutral in (left.text, right.text):
            return left if right.text == neutral else right
        return TypedText(f"{left.text} {op} {right.text}", "bool", Binding.OPERATION)

    def _complex(self, value: cpp.Binary, left: TypedText, right: TypedText) -> TypedText:
        if value.op in ("==", "!="):
            every = "all" if value.op == "==" else "any"
            return TypedText(f"metal::{every}({left.text} {value.op} {right.text})", "bool")
        both = self.is_complex(left) and self.is_complex(right)
        kind = left.type if self.is_complex(left) else right.type
        if value.op in ("+", "-"):
            sides = [v.text if self.is_complex(v) else f"{kind}({v.text}, 0)" for v in (left, right)]
            return TypedText(f"{sides[0]} {value.op} {sides[1]}", kind, Binding.OPERATION)
        if value.op == "*" and not both:
            return TypedText(f"{left.text} * {right.text}", kind, Binding.OPERATION)
        if not self.is_complex(right):
            return TypedText(f"{left.text} / {right.text}", kind, Binding.OPERATION)
        if not self.is_complex(left):
            left = TypedText(f"{kind}({left.text}, 0)", kind)
        operands = [TypedText(strip_parentheses(each.text), each.type) for each in (left, right)]
        quotient = self.fallback(self, cpp.Name("complex_div"), operands) if value.op == "/" else None
        if quotient:  # c10::metal::div divides by zero otherwise than c10::complex
            return quotient
        if value.op != "*" or not self.library.has("mul", of_complex=False):
            raise self.refuse(f"the complex operation '{show(value)}'", value.start)
        return TypedText(f"c10::metal::mul({operands[0].text}, {operands[1].text})", kind)

    def common_type(self, left: str, right: str) -> str:
        """Returns the result type of an arithmetic operation."""
        if left == right:
            return left
        for kind in ("float", OPMATH, "T", "auto"):
            if kind in (left, right):
                floats = self.concrete(kind).kind is Kind.FLOATING
                return kind if kind != "T" or floats or {left, right} <= {"T", "int", "bool"} else right
        return left if self.concrete(left).size >= self.concrete(right).size else right

    def _ternary(self, value: cpp.Ternary) -> TypedText:
        test = self.truth(self.expression(value.test)).text
        yes, no = self.expression(value.yes), self.expression(value.no)
        kind = self.common_type(yes.type, no.type)
        return TypedText(f"{test} ? {yes.text} : {no.text}", kind, Binding.OPERATION)

    def _cast(self, value: cpp.Cast) -> TypedText:
        return self._convert(self.type(value.type, value.start), self.expression(value.value))

    def cast(self, kind: str, value: TypedText) -> TypedText:
        """Converts a value to a type. A real number becomes the real part of a complex one."""
        if kind in (value.type, "auto"):
            return value
        if kind == "bool" and self.is_complex(value):
            return self.truth(value)
        if self.concrete(kind).kind is Kind.COMPLEX and not self.is_complex(value):
            return TypedText(f"{kind}({value.text}, 0)", kind)
        if kind == FLOAT.metal and value.text.isdecimal():
            return TypedText(f"{value.text}.0f", kind, is_number=True)
        is_number = value.is_number and kind == "T"
        return TypedText(f"static_cast<{kind}>({strip_parentheses(value.text)})", kind, is_number=is_number)

    def _member(self, value: cpp.Member) -> TypedText:
        raise self.refuse(f"'{show(value)}'", value.start)

    def _call(self, value: cpp.Call) -> TypedText:
        if isinstance(value.function, cpp.Member):
            return self._part(value, value.function)
        if not isinstance(value.function, cpp.Name):
            raise self.refuse(f"'{show(value)}'", value.start)
        name = value.function
        if name.path in _TRANSPARENT and len(value.arguments) == 1:
            return self.expression(value.arguments[0])
        if name.path == "sizeof" and len(value.arguments) == 1:
            return TypedText(f"sizeof({self.type(show(value.arguments[0]), value.start)})", "int")
        if f"{name.path}_v" in TRAITS and not value.arguments:
            return self._name(cpp.Name(f"{name.path}_v", name.arguments, name.start))
        limit = self._limit(name)
        if limit:
            return limit
        if self._names_type(name):
            return self._construct(show(name), value)
        arguments = [self.expression(argument) for argument in value.arguments]
        known = (
            self._of_product(name, value) or self._from_table(name, arguments) or self.fallback(self, name, arguments)
        )
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

    def _construct(self, written: str, value: cpp.Call) -> TypedText:
        kind = self.type(written, value.start)
        arguments = [self.expression(argument) for argument in value.arguments]
        if len(arguments) == 1:
            return self._convert(kind, arguments[0])
        if self.concrete(kind).kind is not Kind.COMPLEX or len(arguments) != 2:
            raise self.refuse(f"'{show(value)}'", value.start)
        return TypedText(f"{kind}({arguments[0].text}, {arguments[1].text})", kind)

    def _convert(self, kind: str, value: TypedText) -> TypedText:
        """Converts a value: short ones as `T(1)`, longer ones with a static_cast."""
        short = is_word(value.text.replace(".", "_")) and kind != OPMATH and not self.is_complex(value)
        if short and kind != value.type and self.concrete(kind).kind is not Kind.COMPLEX:
            return TypedText(f"{kind}({value.text})", kind, is_number=value.is_number and kind in _NUMBER_TYPES)
        return self.cast(kind, value)

    def _limit(self, name: cpp.Name) -> TypedText | None:
        owner, _, member = name.path.rpartition("::")
        if owner != "std::numeric_limits" or member not in LIMITS:
            return None
        kind = self.type(name.arguments[0], name.start)
        return TypedText(f"metal::numeric_limits<{kind}>::{member}()", kind)

    def _part(self, value: cpp.Call, function: cpp.Member) -> TypedText:
        owner = self.expression(function.value)
        part = {"real": "x", "imag": "y"}.get(function.name)
        if part is None or value.arguments or not self.is_complex(owner):
            raise self.refuse(f"'{show(value)}'", value.start)
        return TypedText(f"{owner.text}.{part}", self.concrete(owner.type).real.metal)

    def _from_table(self, name: cpp.Name, arguments: list[TypedText]) -> TypedText | None:
        row = by_cpp_name().get(get_plain_name(name.last))
        if row is None or name.path.rpartition("::")[0] not in NAMESPACES or not arguments:
            return None
        kind = arguments[0].type
        for argument in arguments[1:]:
            kind = self.common_type(kind, argument.type)
        function, concrete = row.cpp, self.concrete(kind)
        if function.quiet and arguments[-1].is_number:
            quiet = operations()[function.quiet].cpp
            function = quiet if find_form(quiet, concrete, self.library) else function
        form = find_form(function, concrete, self.library)
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
        return fill_form(form, arguments, results[result])

    def _of_product(self, name: cpp.Name, value: cpp.Call) -> TypedText | None:
        """Translates a function of a product with a double, which C++ computes in double, if small products matter."""
        row = by_cpp_name().get(get_plain_name(name.last))
        product = value.arguments[0] if len(value.arguments) == 1 else None
        if row is None or not row.cpp.of_product or not isinstance(product, cpp.Binary) or product.op != "*":
            return None
        if not isinstance(product.left, cpp.Literal) or not _DOUBLE.fullmatch(product.left.text):
            return None
        operands = [self.expression(product.left), self.expression(product.right)]
        is_real = all(self.concrete(each.type).kind is Kind.FLOATING for each in operands)
        return self.fallback(self, cpp.Name(row.cpp.of_product), operands) if is_real else None

    def test(self, value: cpp.Expr) -> str:
        """Translates a condition."""
        return self.truth(self.expression(value)).text
