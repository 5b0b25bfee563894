"""Translates the functions that a CPU kernel calls, unless c10::metal has one of the same name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from porter.aten.metal_functions import Library
from porter.core.checkout import Checkout
from porter.core.dtypes import BOOL, BY_CPP, FLOAT, FLOAT2, LONG, UCHAR, DType, Kind
from porter.core.layout import INCLUDE_ROOTS
from porter.cpu.loops import ScalarFunction
from porter.cpu.scalar_body import translate_body
from porter.cpu.translator import ARRAY, OPMATH, Translator, TypedText
from porter.languages import cpp
from porter.languages.cpp_parser import parse_expression
from porter.languages.definitions import Definition, find_definitions, parse_definition
from porter.languages.directives import read_includes
from porter.languages.identifiers import find_called
from porter.mpsgraph.operations import find_called_helpers, find_written_form, helpers

_WITH_FUNCTIONS = ("ATen/native/", "ATen/NumericUtils", "c10/util/")
# Headers that the vector headers include for every kernel file.
_EVERYWHERE = ("ATen/native/Math.h", "ATen/native/cpu/zmath.h")
_PREFIX = "calc_"
_TYPENAME = re.compile(r"(?:typename|class)\s+(\w+)\s*(?:=|$)")
_CLASS = re.compile(
    r"(!?)\s*(?:std::is_(integral|floating_point)_v|c10::is_(complex|reduced_floating_point)(?:_v)?)\s*<\s*\w+\s*>"
)
_CONSTANT = r"^(?:(?:static|inline)\s+)*(?:constexpr|const)\s+(?:double|float|auto)\s+{name}\s*=([^;]+);"
_REDUCED = "reduced_floating_point"
_DEPTH = 4
# Before the name of a function that c10::metal has too: kernel files use that namespace.
_OWN = "aten_"


@dataclass
class Helpers:
    """Looks up the functions that a kernel file calls. `translated` has those translated so far, by name.

    With `own`, a function of c10::metal does not replace one that the fork defines for the CPU.
    """

    checkout: Checkout
    path: str
    library: Library
    own: bool = False
    translated: dict[str, str] = field(default_factory=dict)
    depth: int = 0

    def translate_call(self, translator: Translator, name: cpp.Name, arguments: list[TypedText]) -> TypedText | None:
        """Translates the call of a function that is not in the tables, or returns None."""
        takes_complex = any(translator.is_complex(a) for a in arguments)
        bare = name.last.removeprefix(_PREFIX)
        mine = self._find_own(translator, name, arguments) if self.own and not takes_complex else None
        if mine is not None:
            return self._follow(translator, mine, arguments, translator.dtype.real)
        if self.library.has(bare, takes_complex) and translator.dtype.kind in (Kind.FLOATING, Kind.COMPLEX):
            translator.roundings += 1
            kind = translator.dtype.metal if takes_complex else "float"
            joined = ", ".join(a.text for a in arguments)
            return TypedText(f"c10::metal::{bare}({joined})", "T" if takes_complex else kind)
        if bare in helpers() and not takes_complex:
            self.translated |= {each: helpers()[each] for each in (*find_called_helpers(helpers()[bare]), bare)}
            return TypedText(f"{bare}({', '.join(a.text for a in arguments)})", "float")
        complex_name = bare if bare in helpers() else f"complex_{bare}"
        alone = takes_complex and len(arguments) == 1
        written = helpers().get(complex_name) if takes_complex and (alone or bare in helpers()) else None
        dtype = translator.dtype if takes_complex else translator.dtype.real
        types = [translator.concrete(a.type) for a in arguments]
        found = None if written else self._find_definition(name.last, types, dtype)
        if alone and found is None:
            written = written or _write_complex(bare)
        if written:
            self.translated |= {name: helpers()[name] for name in find_called_helpers(written)}
            self.translated[complex_name] = written
            given = ", ".join(f"float2({each.text})" for each in arguments)
            return TypedText(f"T({complex_name}({given}))", "T")
        return self._follow(translator, found, arguments, dtype)

    def _find_own(self, translator: Translator, name: cpp.Name, arguments: list[TypedText]) -> Definition | None:
        types = [translator.concrete(a.type) for a in arguments]
        return self._find_definition(name.last, types, translator.dtype.real) if self.depth < _DEPTH else None

    def _follow(
        self, translator: Translator, found: Definition | None, arguments: list[TypedText], dtype: DType
    ) -> TypedText | None:
        """Translates a function that the fork defines for the CPU, if there is one."""
        if found is None or self.depth >= _DEPTH:
            return None
        self.depth += 1
        try:
            return self._translate(translator, found, arguments, dtype)
        finally:
            self.depth -= 1

    def find_constant(self, name: str) -> cpp.Expr | None:
        """Returns the value of a constant that the file, or a header it includes, defines, or None."""
        for path in (self.path, *find_headers(self.checkout, self.path)):
            text = self.checkout.read(path)
            match = re.search(_CONSTANT.format(name=re.escape(name)), text, re.M) if name in text else None
            if match:
                return parse_expression(path, match[1].strip())
        return None

    def find_scalar_function(self, call: cpp.Call) -> ScalarFunction | None:
        """Returns the function template whose instance a call passes on, as a loop is given `f<scalar_t>`, or None."""
        named = (each for each in call.arguments if isinstance(each, cpp.Name) and each.arguments)
        for name in named:
            for path in (self.path, *find_headers(self.checkout, self.path)):
                for found in find_definitions(path, self.checkout.read(path), name.last):
                    if "Vectorized" not in found.text[: found.text.index("{")]:
                        return _make_scalar_function(found, name, (self.checkout, path))
        return None

    def used_in(self, text: str) -> tuple[str, ...]:
        """Returns the translated functions that a text needs, callees first."""
        needed: dict[str, str] = {}
        pending = [text]
        while pending:
            current = pending.pop()
            for name, source in self.translated.items():
                if name not in needed and name in find_called(current) and source is not current:
                    needed[name] = source
                    pending.append(source)
        return tuple(source for name, source in self.translated.items() if name in needed)

    def _find_definition(self, name: str, given: Sequence[DType], dtype: DType) -> Definition | None:
        for path in (self.path, *find_headers(self.checkout, self.path)):
            found = find_definitions(path, self.checkout.read(path), f"{name}<")
            fitting = [one for one in found if _fits(one, len(given), dtype)]
            if fitting:
                return min(fitting, key=lambda one: (_count_conversions(one, given), _rank_overload(one, dtype)))
        return None

    def _translate(
        self, translator: Translator, found: Definition, arguments: list[TypedText], dtype: DType
    ) -> TypedText:
        """Inlines a function of one expression; translates any other to a function template (another for complex).

        Its arguments are of `dtype`: that of the kernel, or of the parts of its complex numbers.
        """
        function = parse_definition(found)
        inner = Translator(dtype, found.line_of, self.library, self.translate_call, find_constant=self.find_constant)
        for template in function.templates:
            words = _TYPENAME.findall(template)
            inner.aliases.update(dict.fromkeys(words, part_type(function, dtype)))
        inline = _find_single_expression(function)
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            kind = inner.type(parameter.type, function.start)
            kind = "T" if kind == "float" and argument.type in ("T", OPMATH) else kind
            passed = argument.within_operators() if inline else TypedText(parameter.name, kind)
            inner.names[parameter.name] = replace(passed, type=kind)
        returns = inner.type(_read_return_type(function.returns), 0)
        if inline:
            value = inner.expression(inline)
            translator.roundings += inner.roundings
            kind = dtype.metal if value.type == "T" and dtype != translator.dtype else value.type
            return replace(value.within_operators(), type=kind)
        lines, result = translate_body(inner, function.body, returns)
        translator.roundings += inner.roundings
        translator.checks += inner.checks
        parameters = ", ".join(_declare(inner.names[p.name].type, p.name) for p in function.parameters)
        prefix = "complex_" if dtype.kind is Kind.COMPLEX else _OWN if self.library.has(function.name, False) else ""
        name = f"{prefix}{function.name}"
        head = f"template <typename T>\ninline {result} {name}({parameters}) {{"
        self.translated[name] = "\n".join([head, *(f"  {line}" for line in lines), "}"])
        kind = dtype.metal if result == "T" and dtype != translator.dtype else result
        return TypedText(f"{name}({', '.join(a.text for a in arguments)})", kind)


def _make_scalar_function(found: Definition, name: cpp.Name, library: tuple[Checkout, str]) -> ScalarFunction:
    function = parse_definition(found)
    returns = _read_return_type(function.returns)
    body = cpp.LambdaExpr(function.parameters, returns, function.body, function.start)
    types = (template.split()[-1] for template in function.templates)
    return ScalarFunction(body, found, dict(zip(types, name.arguments, strict=False)), library)


def _write_complex(name: str) -> str | None:
    """Returns the function of a complex number that the table of operations defines, or None."""
    form = find_written_form(name, Kind.COMPLEX)
    if form is None or len(form.arguments) != 1 or form.type != FLOAT2.metal:
        return None
    *before, value = form.text.strip().split(";\n")
    lines = (*(f"  {' '.join(line.split())};" for line in before), f"  return {' '.join(value.split())};")
    return "\n".join((f"inline {form.type} complex_{name}({form.type} {form.arguments[0]}) {{", *lines, "}"))


def find_headers(checkout: Checkout, path: str) -> list[str]:
    """Returns the headers of the checkout in which functions that a kernel file calls may be defined."""
    return [path for path in _list_included(checkout.read(path)) if checkout.exists(path)]


@lru_cache(maxsize=256)
def _list_included(text: str) -> tuple[str, ...]:
    """Where the checkout has the headers that a kernel file includes."""
    included = (include.path for include in read_includes(text) if include.path.endswith((".h", ".cuh")))
    names = (*(path for path in included if path.startswith(_WITH_FUNCTIONS)), *_EVERYWHERE)
    return tuple(
        root + name[len(prefix) :]
        for name in names
        for prefix, root in INCLUDE_ROOTS.items()
        if name.startswith(prefix)
    )


def part_type(function: cpp.Function, dtype: DType) -> str:
    """Returns the value of a template parameter: a complex number's part type if the function takes `complex<T>`."""
    if any("complex<" in parameter.type for parameter in function.parameters):
        return dtype.real.metal
    return "T"


def _declare(kind: str, name: str) -> str:
    """Returns a parameter of a function in Metal; an array's values are constants."""
    return f"const {kind.removesuffix(ARRAY)} {name}{ARRAY}" if kind.endswith(ARRAY) else f"{kind} {name}"


def _count_conversions(found: Definition, given: Sequence[DType]) -> int:
    """Returns how many of a call's numbers an overload would convert between integers and others."""
    types = [BY_CPP.get(parameter.type) for parameter in parse_definition(found).parameters]
    pairs = zip(types, given, strict=True)
    return sum(
        (type_ is not None and type_.kind is Kind.INTEGRAL) != (each.kind is Kind.INTEGRAL) for type_, each in pairs
    )


def _rank_overload(found: Definition, dtype: DType) -> int:
    """Ranks overloads as C++ prefers them: for complex numbers those that name complex, else the general template."""
    head = parse_definition(found).parameters[0].type if parse_definition(found).parameters else ""
    if dtype.kind is Kind.COMPLEX:
        return 0 if "complex" in head else 1
    return 0 if found.templates and found.templates != ("",) else 1


def _find_single_expression(function: cpp.Function) -> cpp.Expr | None:
    """Returns the expression of a function that only returns one, or None."""
    statements = function.body.statements
    if len(statements) == 1 and isinstance(statements[0], cpp.Return):
        return statements[0].value
    return None


def _read_return_type(written: str) -> str:
    """Returns the return type without specifiers, and the type of an `enable_if_t<condition, type>`."""
    bare = re.sub(
        r"\[\[\w+\]\]|\bC10_\w+|\b\w*HOST_DEVICE\b|\b__\w+\b|\b(?:inline|constexpr|static)\b", "", written
    ).strip()
    enabled = re.fullmatch(r"(?:std::)?enable_if_t<.*,\s*([\w:]+)>", bare)
    return enabled.group(1) if enabled else bare


def _fits(found: Definition, arity: int, dtype: DType) -> bool:
    """Whether C++ could choose an overload for arguments of this type."""
    head = found.text[: found.text.index("{")]
    if "Vectorized" in head:
        return False
    function = parse_definition(found)
    if len(function.parameters) != arity:
        return False
    conditions = _CLASS.findall(" ".join(function.templates) + function.returns)
    kinds = {"integral": Kind.INTEGRAL, "floating_point": Kind.FLOATING, "complex": Kind.COMPLEX}
    for negated, first, second in conditions:
        holds = dtype.is_reduced if second == _REDUCED else dtype.kind is kinds[first or second]
        if holds == bool(negated):
            return False
    generic = {word for template in function.templates for word in _TYPENAME.findall(template)}
    return all(_takes(p.type.rstrip("&"), generic, dtype) for p in function.parameters[:1])


def _takes(written: str, generic: set[str], dtype: DType) -> bool:
    if written in generic:
        return True
    if "complex" in written:
        named = re.search(r"complex<([\w:]+)>", written)
        taken = named is not None and (named.group(1) in generic or named.group(1).endswith(dtype.real.cpp))
        return dtype.kind is Kind.COMPLEX and taken
    if written == FLOAT.cpp:
        return dtype.kind is Kind.FLOATING
    return BY_CPP.get(written) == dtype and dtype in (UCHAR, BOOL, LONG)
