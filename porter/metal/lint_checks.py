"""The checks of the Metal lint. Each takes the code of a source and yields offending tokens with the reason."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from porter.languages.directives import parse_condition
from porter.languages.identifiers import contains_identifier
from porter.languages.lexer import Token, TokenKind
from porter.languages.liveness import ASSIGNMENTS
from porter.languages.source import Function, Source


def names(text: str) -> frozenset[str]:
    """Returns the set of words in `text`."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Unit:
    """The code of a Metal source, without code compiled for the host only, and its functions."""

    source: Source
    code: tuple[Token, ...]

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The function definitions compiled for Metal."""
        starts = {t.start for t in self.code}
        return tuple(f for f in self.source.functions() if f.start in starts)

    @cached_property
    def starts(self) -> list[int]:
        """The start of each token of `code`."""
        return [t.start for t in self.code]

    def within(self, start: int, end: int) -> tuple[Token, ...]:
        """Returns the tokens between two offsets."""
        return self.code[bisect_left(self.starts, start) : bisect_left(self.starts, end)]


Objection = Iterator[tuple[Token, str]]

_SPACES = frozenset(
    ("device", "constant", "thread", "threadgroup", "threadgroup_imageblock", "ray_data", "object_data")
)
_NO_TYPES = {"double": "float", "wchar_t": "ushort", "char16_t": "ushort", "char32_t": "uint"}
_NO_WORDS = names("""throw try catch new delete virtual dynamic_cast typeid goto thread_local asm""")
_LIBC = names(
    """printf fprintf puts abort exit assert malloc calloc realloc free memcpy memmove memset memcmp strlen
    strcmp strcpy rand srand expf exp2f logf log2f log10f log1pf expm1f powf sqrtf cbrtf fabsf fmaxf fminf
    fmodf floorf ceilf roundf truncf rintf sinf cosf tanf asinf acosf atanf atan2f sinhf coshf tanhf erff
    erfcf tgammaf lgammaf hypotf copysignf"""
)
_NOT_IN_METAL = names("""erf erfc erfinv expm1 log1p lgamma tgamma cbrt hypot remainder remquo""")
_ATTRIBUTES = names(
    """kernel vertex fragment visible intersection object mesh stitchable host_name buffer texture sampler
    threadgroup id function_constant max_total_threads_per_threadgroup required_threads_per_threadgroup
    stage_in user flat position thread_position_in_grid thread_position_in_threadgroup
    thread_index_in_threadgroup thread_index_in_simdgroup thread_index_in_quadgroup
    threadgroup_position_in_grid threads_per_grid threads_per_threadgroup threads_per_simdgroup
    threadgroups_per_grid thread_execution_width simdgroup_index_in_threadgroup simdgroups_per_threadgroup
    quadgroup_index_in_threadgroup quadgroups_per_threadgroup dispatch_threads_per_threadgroup
    dispatch_simdgroups_per_threadgroup dispatch_quadgroups_per_threadgroup grid_origin grid_size
    dispatch_threads_per_grid maybe_unused nodiscard noreturn fallthrough deprecated likely unlikely
    always_inline raster_order_group payload color clang unroll"""
)


def metal_code(source: Source) -> Iterator[Token]:
    """Returns the tokens compiled if `__METAL__` is defined. Other conditions are taken to hold either way."""
    active: list[bool | None] = []
    for token in source.tokens:
        if token.kind is TokenKind.DIRECTIVE:
            if condition := parse_condition(token):
                _step(active, condition[0], condition[1].strip())
        elif token.kind not in (TokenKind.SPACE, TokenKind.COMMENT) and False not in active:
            yield token


def _step(active: list[bool | None], word: str, condition: str) -> None:
    """Updates `active`, which has for each open `#if` whether its branch is compiled, or None if unknown."""
    if word in ("if", "ifdef", "ifndef"):
        known = re.fullmatch(r"(?:defined\s*\(?\s*)?__METAL__\s*\)?|!\s*defined\s*\(?\s*__METAL__\s*\)?", condition)
        negative = word == "ifndef" or condition.startswith("!")
        active.append(not negative if known else None)
    elif word == "endif" and active:
        active.pop()
    elif active and active[-1] is not None:
        active[-1] = not active[-1] if word == "else" else None


def _previous(code: tuple[Token, ...], at: int) -> str:
    return code[at - 1].text if at else ""


def _next(code: tuple[Token, ...], at: int) -> str:
    return code[at + 1].text if at + 1 < len(code) else ""


def find_qualifier(code: tuple[Token, ...], at: int) -> str:
    """Returns the qualifier of the name at token `at`: `c10::metal`, `::`, or "" for an unqualified name."""
    parts: list[str] = []
    while at >= 1 and code[at - 1].text == "::":
        parts.append("::")
        at -= 1
        if (
            at >= 1
            and code[at - 1].kind is TokenKind.IDENTIFIER
            and code[at - 1].text not in ("return", "void", "kernel")
        ):
            parts.append(code[at - 1].text)
            at -= 1
    return "".join(reversed(parts))


def types(unit: Unit) -> Objection:
    for at, token in enumerate(unit.code):
        if token.text in _NO_TYPES and token.kind is TokenKind.IDENTIFIER:
            yield token, f"Metal has no `{token.text}`: use `{_NO_TYPES[token.text]}`"
        if token.text == "long" and _next(unit.code, at) in ("long", "double"):
            yield token, f"Metal has no `long {_next(unit.code, at)}`"


def literals(unit: Unit) -> Objection:
    for token in unit.code:
        decimal = (
            token.kind is TokenKind.NUMBER
            and not token.text.lower().startswith("0x")
            and not set(".eE").isdisjoint(token.text)
        )
        if decimal and token.text[-1] in "lL":
            yield token, f"`{token.text}` is a long double literal: write `{token.text[:-1]}f`"


def unsupported_words(unit: Unit) -> Objection:
    for at, token in enumerate(unit.code):
        deleted = token.text == "delete" and _previous(unit.code, at) == "="  # a function, which Metal's may be
        if token.kind is TokenKind.IDENTIFIER and token.text in _NO_WORDS and not deleted:
            yield token, f"Metal does not support `{token.text}`"


def standard_library(unit: Unit) -> Objection:
    for at, token in enumerate(unit.code):
        if token.text == "std" and _next(unit.code, at) == "::":
            yield token, "the C++ standard library is not there: use `metal::`"


def c_library(unit: Unit) -> Objection:
    own = {f.name for f in unit.functions} | set(_declared(unit.code))
    for at, token in enumerate(unit.code):
        called = (
            token.kind is TokenKind.IDENTIFIER
            and _next(unit.code, at) == "("
            and _previous(unit.code, at) not in (".", "->")
        )
        qualifier = find_qualifier(unit.code, at)
        if called and token.text in _LIBC and token.text not in own and qualifier in ("", "::"):
            yield token, f"`{token.text}` is of the C library: use the function of `metal::`"
        metal = qualifier.endswith("metal::") or qualifier.endswith("precise::") or qualifier.endswith("fast::")
        if called and token.text in _NOT_IN_METAL and metal and "c10::" not in qualifier and token.text not in own:
            yield token, f"`metal::{token.text}` does not exist: use `c10::metal::{token.text}` where the fork has it"


def _declared(code: tuple[Token, ...]) -> Iterator[str]:
    """Returns the names between a type and a bracket: those that this source declares."""
    for at, token in enumerate(code):
        typed = at and code[at - 1].kind is TokenKind.IDENTIFIER and code[at - 1].text not in ("return", "else", "case")
        if typed and token.kind is TokenKind.IDENTIFIER and _next(code, at) == "(":
            yield token.text


@dataclass(frozen=True)
class Parameter:
    tokens: tuple[Token, ...]

    @property
    def name(self) -> str:
        """The parameter's name, or "" if it is unnamed."""
        plain = self.tokens
        for at, token in enumerate(self.tokens):
            if token.text == "[":
                plain = self.tokens[:at]
                break
        return plain[-1].text if len(plain) > 1 and plain[-1].kind is TokenKind.IDENTIFIER else ""

    @cached_property
    def indirections(self) -> int:
        """The number of `*` and `&` outside brackets."""
        depth = count = 0
        for token in self.tokens:
            depth += token.text in ("(", "[", "<")
            depth -= {"]": 1, ")": 1, ">": 1, ">>": 2}.get(token.text, 0)
            count += depth == 0 and token.text in ("*", "&")
        return count

    @property
    def space(self) -> str:
        """The address space in its type, or ""."""
        return next((t.text for t in self.tokens if t.text in _SPACES), "")


def parameters(unit: Unit, function: Function) -> list[Parameter]:
    start = unit.source.text.index(function.params, function.start) if function.params else function.start
    found: list[list[Token]] = [[]]
    depth = 0
    for token in unit.within(start, start + len(function.params)):
        depth += token.text in ("(", "[", "<", "{")
        depth -= {"]": 1, ")": 1, ">": 1, ">>": 2, "}": 1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return [Parameter(tuple(tokens)) for tokens in found if tokens]


def is_kernel(function: Function) -> bool:
    head = function.signature[: function.name_start - function.start]  # attributes in it may have brackets
    return contains_identifier(head, "kernel") or "[[kernel]]" in function.signature


def address_spaces(unit: Unit) -> Objection:
    for function in unit.functions:
        for parameter in parameters(unit, function):
            if parameter.indirections and not parameter.space:
                name = parameter.name or "parameter"
                yield (
                    parameter.tokens[0],
                    f"`{name}` of `{function.name}` needs an address space: `thread`, `device` or `constant`",
                )


def kernel_parameters(unit: Unit) -> Objection:
    for function in filter(is_kernel, unit.functions):
        if not contains_identifier(function.signature, "void"):
            token = unit.within(function.start, function.end)[0]
            yield token, f"kernel `{function.name}` must return void"
        for parameter in parameters(unit, function):
            text = " ".join(t.text for t in parameter.tokens)
            if not parameter.indirections and "[ [" not in text:
                yield (
                    parameter.tokens[0],
                    f"`{parameter.name}` of kernel `{function.name}` is neither a buffer nor has an attribute",
                )
            if "[ [ buffer" in text and parameter.space not in ("device", "constant", ""):
                yield parameter.tokens[0], f"[[buffer]] cannot be in `{parameter.space}` memory"
            if "[ [ threadgroup (" in text and parameter.space != "threadgroup":
                yield parameter.tokens[0], f"[[threadgroup]] needs `threadgroup` memory, not `{parameter.space}`"


def mismatches(unit: Unit) -> Objection:
    # The address spaces of the parameters ("" for none) of each function with a single definition
    counts = Counter(f.name for f in unit.functions)
    once = (f for f in unit.functions if counts[f.name] == 1)
    signatures = {f.name: [p.space if p.indirections else "" for p in parameters(unit, f)] for f in once}
    for function in unit.functions:
        body = unit.within(function.body_start, function.body_end)
        pointers = [(p.name, p.space) for p in parameters(unit, function) if p.name and p.indirections and p.space]
        pointers += _local_pointers(body)
        several = Counter(name for name, _ in pointers)
        spaces = {name: space for name, space in pointers if several[name] == 1}  # others are hidden in a block
        for at, token in enumerate(body):
            space = spaces.get(token.text)
            if space is None or _previous(body, at) in (".", "->", "::"):
                continue
            if space == "constant" and is_written(body, at):
                yield token, f"`{token.text}` is `constant`: it cannot be written"
            cast = _cast_space(body, at)
            if cast and cast != space:
                yield token, f"`{token.text}` is in `{space}` memory, not `{cast}`"
            expected = _argument_space(body, at, signatures)
            if expected and expected != space:
                yield token, f"`{token.text}` is in `{space}` memory; what it is passed to wants `{expected}`"


def _local_pointers(body: tuple[Token, ...]) -> Iterator[tuple[str, str]]:
    """The arrays and pointers that statements of a body declare with an address space: names, with their spaces.

    Left out are names that the body declares again, in a block, a lambda or a class.
    """
    declared = Counter(token.text for at, token in enumerate(body) if _is_declared(body, at))
    for at, token in enumerate(body):
        if token.text not in _SPACES or _previous(body, at) not in (";", "{", "}", "const"):
            continue
        depth = stars = 0
        for k in range(at + 1, len(body)):
            text, name = body[k].text, body[k - 1].text
            if depth == 0 and text in ("[", "=", ";", "(", ",", ")", "{"):
                is_array = text == "[" and not stars and token.text != "constant"
                if (is_array or (stars and text in ("=", ";"))) and declared[name] == 1:
                    yield name, token.text
                break
            depth += (text == "<") - {">": 1, ">>": 2}.get(text, 0)
            stars += depth == 0 and text == "*"


def _is_declared(body: tuple[Token, ...], at: int) -> bool:
    """Whether a name stands behind a type, or behind what may be one: `x * y` counts."""
    before = at - 2 if _previous(body, at) in ("*", "&") else at - 1
    if before < 0 or body[before].text == "return":
        return False
    return body[before].kind is TokenKind.IDENTIFIER or body[before].text == ">"


def is_written(body: tuple[Token, ...], at: int) -> bool:
    if _next(body, at) == "[":
        depth = 0
        for k in range(at + 1, len(body)):
            depth += (body[k].text == "[") - (body[k].text == "]")
            if depth == 0:
                return _next(body, k) in ASSIGNMENTS
    starred = at >= 2 and body[at - 1].text == "*" and body[at - 2].text in (";", "{", "}")
    return starred and _next(body, at) in ASSIGNMENTS


def _cast_space(body: tuple[Token, ...], at: int) -> str:
    """Returns the address space in a cast directly around token `at`, or before it: `(device float*)x`."""
    if spaced := _space_before(body, at):
        return spaced
    if at < 4 or body[at - 1].text != "(" or body[at - 2].text != ">" or _next(body, at) != ")":
        return ""
    for k in range(at - 3, max(at - 14, -1), -1):
        if body[k].text in ("static_cast", "reinterpret_cast"):
            return next((t.text for t in body[k:at] if t.text in _SPACES), "")
    return ""


def _space_before(body: tuple[Token, ...], at: int) -> str:
    """Returns the address space of the pointer in the parentheses before token `at`, or "".

    A name that is indexed or called next is not what is cast.
    """
    if at < 4 or body[at - 1].text != ")" or body[at - 2].text != "*" or _next(body, at) in ("[", "(", ".", "->"):
        return ""
    opening = next((k for k in range(at - 3, max(at - 12, -1), -1) if body[k].text in ("(", ")", ";")), at)
    words = [t.text for t in body[opening + 1 : at - 2]] if body[opening].text == "(" else []
    return next((word for word in words if word in _SPACES), "")


def _argument_space(body: tuple[Token, ...], at: int, signatures: dict[str, list[str]]) -> str:
    """Returns the address space that a function expects, if token `at` is one of its arguments."""
    if _previous(body, at) not in ("(", ",") or _next(body, at) not in (")", ","):
        return ""
    depth = index = 0
    for k in range(at - 1, 0, -1):
        text = body[k].text
        depth += (text in (")", "]", "}")) - (text in ("[", "{"))
        if text == "," and depth == 0:
            index += 1
        if text == "(":
            if depth == 0:
                expected = signatures.get(body[k - 1].text, []) if _previous(body, k - 1) not in (".", "->") else []
                return expected[index] if index < len(expected) else ""
            depth -= 1
        if text in (";", "{") and depth <= 0:
            return ""
    return ""


def recursion(unit: Unit) -> Objection:
    counts = Counter(f.name for f in unit.functions)
    plain = {f.name: f for f in unit.functions if counts[f.name] == 1 and "template" not in f.signature.split("(")[0]}
    calls: dict[str, set[str]] = {}
    for name, function in plain.items():
        body = unit.within(function.body_start, function.body_end)
        calls[name] = {
            t.text
            for at, t in enumerate(body)
            if t.text in plain and _next(body, at) == "(" and _previous(body, at) not in (".", "->", "::")
        }
    for name, function in plain.items():
        if name in _reachable(calls, name):
            yield unit.within(function.start, function.end)[0], f"`{name}` calls itself: Metal has no recursion"


def _reachable(calls: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    frontier = list(calls.get(start, ()))
    while frontier:
        name = frontier.pop()
        if name not in seen:
            seen.add(name)
            frontier.extend(calls.get(name, ()))
    return seen


def attributes(unit: Unit) -> Objection:
    for at, token in enumerate(unit.code):
        inside = (
            at >= 2
            and token.kind is TokenKind.IDENTIFIER
            and unit.code[at - 1].text == "["
            and unit.code[at - 2].text == "["
        )
        if inside and token.text not in _ATTRIBUTES and unit.code[at - 2].end == unit.code[at - 1].start:
            yield token, f"`[[{token.text}]]` is no attribute of Metal"


_NAN_AWARE = ("isnan", "isunordered", "is_integral", "is_integral_v")


def lost_nans(unit: Unit) -> Objection:
    for function in unit.functions:
        whole = unit.within(function.start, function.end)
        if function.name != "operator()" and "operator()" not in function.signature.replace(" ", ""):
            continue
        if any(t.text in _NAN_AWARE for t in whole):
            continue
        for at, token in enumerate(whole):
            chooses = token.text in ("max", "min") and _next(whole, at) == "(" and _next(whole, at + 1) != ")"
            if chooses and "c10::" not in find_qualifier(whole, at):
                yield token, f"`{token.text}` drops a NaN: use `c10::metal::{token.text}`"
