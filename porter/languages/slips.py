"""What a slip of the pen makes of Metal: small changes of operators, constants, casts, order and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from porter.languages.brackets import find_closing_end, split_at_commas


@dataclass(frozen=True)
class Slip:
    """The text between two offsets, replaced; `kind` says what slipped."""

    kind: str
    start: int
    end: int
    new: str


SlipTable: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]

# What is written, and what it becomes. Spaces keep templates, pointers and includes out of reach.
METAL: SlipTable = {
    "operator": {
        r"(?<=\S) \+ ": (" - ", " * "),
        r"(?<=[\w)\]]) - ": (" + ",),
        r" \* ": (" + ", " / "),
        r" / ": (" * ",),
        r" % ": (" / ",),
        r" -= ": (" += ",),
        r"(?<=[(,?:] )-(?=\w)|(?<=[(])-(?=\w)|(?<=return )-(?=\w)": ("",),
    },
    "condition": {
        r" == ": (" != ", " < "),
        r" != ": (" == ",),
        r" < (?!.*=)": (" <= ", " > "),
        r" > ": (" >= ", " < "),
        r" <= ": (" < ",),
        r" >= ": (" > ", " <= "),
        r" && ": (" || ",),
        r" \|\| ": (" && ",),
        r"(?<=[( ])!(?=\w)": ("",),
    },
    "constant": {
        r"(?<![\w.])0(?![\w.])": ("1", "-1"),
        r"(?<![\w.])1(?![\w.])": ("0", "2"),
        r"(?<![\w.])0\.0f": ("1.0f", "1e-30f"),
        r"(?<![\w.])1\.0f": ("0.0f", "1.0000001f", "2.0f"),
        r"(?<![\w.])0\.5f": ("0.25f", "0.50001f", "1.0f"),
        r"(?<![\w.])(\d)(?=\.\d{6,})": ("9",),
        r"(?<![\w.])(\d\.\d)\d(?=\d{5,})": (r"\g<1>0", r"\g<1>5"),
        r"(?<=[\w)] )([<>]=?) ([2-9])(?![\w.])": (r"\1 1", r"\1 20"),
        r"\bM_LN2_F\b": ("M_LN10_F", "1.0f"),
        r"::infinity\(\)": ("::max()", "::quiet_NaN()"),
        r"\bINFINITY\b": ("NAN", "0.0f"),
        r"\bNAN\b": ("0",),
        r"::lowest\(\)": ("::max()", "::min()"),
        r"(?<=<T>)::max\(\)": ("::lowest()",),
        r"\b(?:T\d?|index_t|long)\(([01])\)": (r"(1 - \1)",),
    },
    "cast": {
        r"static_cast<float>\(": ("static_cast<half>(", "static_cast<int>(", "("),
        r"static_cast<T>\(": ("static_cast<half>(", "static_cast<int>(", "-static_cast<T>("),
        r"static_cast<om_t>\(": ("static_cast<int>(", "("),
        r"om_t\((\w+)\)": (r"T(\1)", r"half(\1)", r"-om_t(\1)"),
        r"static_cast<c10::metal::opmath_t<T>>\(": ("static_cast<T>(", "static_cast<half>("),
        r"float2\((\w+)\)": (r"half2(\1)", r"float2(\1).yx"),
        r"float\((\w+)\)": (r"half(\1)",),
    },
    "dtype": {
        r"\bfloat (?=\w+ =)": ("half ", "int "),
        r"\bfloat2 (?=\w+ =)": ("half2 ",),
        r"c10::metal::opmath_t<(T\d?)>": (r"\1",),
        r"\bsum_t<(T\d?)>": (r"\1",),
        r"\b(?:index_t|long|uint) (?=\w+ =)": ("ushort ",),
        r"\b(?:index_t|long)\((?=\w)": ("ushort(",),
        r"\bopmath_t<T>;": ("T;",),
        r", float> operator": (", half> operator", ", T> operator", ", int> operator"),
        r", T> operator": (", float> operator", ", half> operator"),
        r", bool> operator": (", T> operator",),
        r"\binline T operator": ("inline float operator",),
        r"is_(scalar_)?floating_point_v": (r"is_\1integral_v",),
        r"is_(scalar_)?integral_v": (r"is_\1floating_point_v",),
        r"!is_complex_v": ("is_complex_v",),
    },
    "function": {
        r"::cos\(": ("::sin(",),
        r"::sin\(": ("::cos(",),
        r"::exp\(": ("::exp2(", "::log("),
        r"::exp2\(": ("::exp(",),
        r"::log\(": ("::log2(", "::exp("),
        r"::log1p\(": ("::erf(",),
        r"::erf\(": ("::log1p(",),
        r"::rsqrt\(": ("::sqrt(",),
        r"::sqrt\(": ("::rsqrt(",),
        r"::ceil\(": ("::floor(", "::trunc(", "::rint("),
        r"::floor\(": ("::ceil(", "::trunc(", "::rint("),
        r"::copysign\(": ("::max(", "::fmod("),
        r"::max\(": ("::min(",),
        r"::min\(": ("::max(",),
        r"::f?abs\(": ("::sign(", "("),
        r"::isinf\(": ("::isnan(",),
        r"::isunordered\(": ("::isgreater(",),
        r"::fmod\(": ("::remainder(", "::max("),
        r"::remainder\(": ("::fmod(",),
        r"::floor_divide\(": ("::div(",),
        r"::hypot\(": ("::max(",),
        r"::mul\(": ("::div(",),
        r"::div\(": ("::mul(",),
        r"::signbit\(": ("::isnan(",),
        r"::atan2\(": ("::fmod(",),
        r"\ball\(": ("any(",),
        r"complex_sqrt\(": ("(",),
        r"complex_log1p\(": ("(",),
    },
    "part": {r"\.x\b": (".y",), r"\.y\b": (".x",)},
    "precision": {r"\breturn ([^;{}]+);": (r"return (\1) * 1.00001f;", r"return (\1) + 1;", r"return -(\1);")},
}
_WORD = re.compile(r"(?<![\w.:<])[a-z]\w*_?(?![\w(:<>])")
_DECLARED = re.compile(
    r"\b(?:const )?(?:float2?|half|auto|T\d?|A|bool|index_t|u?int|long|c10::metal::opmath_t<T>|om_t) (\w+_?)(?=[,;) ])"
)


def slip_in_metal(code: str) -> Iterator[Slip]:
    """The slips of Metal functions: those of the table, order, branches, names and lines."""
    yield from slip_by_table(METAL, code)
    yield from slip_in_arguments(code)
    # Conditions that always or never hold
    for test in re.finditer(r"\bif (?=\()", code):
        end = find_closing_end(code, test.end())
        yield from (Slip("condition", test.end(), end, new) for new in ("(true)", "(false)"))
    for choice in re.finditer(r"(?<=[(=,] )?((?:[\w:.]+\([^()]*\)|[\w.]+)(?: (?:[<>]=?|[=!]=) [\w.]+)?)\s+\? ", code):
        yield from (Slip("condition", choice.start(1), choice.end(1), new) for new in ("true", "false"))
    yield from _names(code)
    # Statements and blocks left out
    for line in re.finditer(r"^ +(?!const |return |float |auto |using )\w[^\n;{}]*;\n", code, re.M):
        yield Slip("line", line.start(), line.end(), "")
    for block in re.finditer(r"^ +if \(", code, re.M):
        opener = code.find("{", find_closing_end(code, block.end() - 1))
        yield Slip("line", block.start(), find_closing_end(code, opener), "")


def slip_by_table(table: SlipTable, code: str) -> Iterator[Slip]:
    for kind, rules in table.items():
        for pattern, replacements in rules.items():
            for match in re.finditer(pattern, code, re.M):
                yield from (Slip(kind, match.start(), match.end(), match.expand(new)) for new in replacements)


def slip_in_arguments(code: str) -> Iterator[Slip]:
    """Two arguments of a call in the other order; those of a check are words of a message."""
    for call in re.finditer(r"\b(?!if|return|for|while)\w+(?:<[\w:<>]*>)?\(", code):
        end = find_closing_end(code, call.end() - 1)
        inside = code[call.end() : end - 1]
        parts = split_at_commas(inside)
        if len(parts) < 2 or call[0].startswith("TORCH_") or re.match(r"const |thread ", inside.strip()):
            continue
        for i in range(len(parts) - 1):
            swapped = [*parts[:i], parts[i + 1], parts[i], *parts[i + 2 :]]
            yield Slip("argument order", call.end(), end - 1, ", ".join(swapped))


def _names(code: str) -> Iterator[Slip]:
    """One variable in place of another that the same function declares before."""
    for function in _functions(code):
        body = code[slice(*function)]
        declared = [(match.end(), match[1]) for match in _DECLARED.finditer(body)]
        names = {name for _, name in declared}
        opened = body.index("{")
        for word in _WORD.finditer(body, opened):
            before = [name for at, name in declared if at < word.start() and name != word[0]]
            rest = body[word.end() :]
            if word[0] not in names or (word.end(), word[0]) in declared or not before or rest.startswith(" ="):
                continue
            start, end = function[0] + word.start(), function[0] + word.end()
            yield from (Slip("name", start, end, other) for other in dict.fromkeys((before[0], before[-1])))


def _functions(code: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(r"^ *(?:template|inline|static)[^;{}]*\)\s*\{", code, re.M):
        yield match.start(), find_closing_end(code, match.end() - 1)
