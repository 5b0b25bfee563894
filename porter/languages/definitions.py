"""Finds definitions in ATen's sources, those that file-local macros expand to as well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from porter.core.edits import line_of
from porter.core.errors import Place, PorterError
from porter.languages import brackets
from porter.languages.brackets import too_deep
from porter.languages.cpp import Function, ParseError, TooDeep
from porter.languages.cpp_parser import parse_function
from porter.languages.directives import Macro, expand, expand_uses, parse_condition, parse_macro
from porter.languages.identifiers import in_word
from porter.languages.lexer import Token, TokenKind, directives, lex, strip_comments
from porter.languages.source import Function as Located
from porter.languages.source import Source, parse_source

_USE = re.compile(r"^[ \t]*([A-Z_]\w*)\(([^(){};\n]*(?:\n[^(){};]*)?)\)[ \t]*;?[ \t]*(?://[^\n]*)?\r?$", re.M)
_TYPE_ENDS = ("*", "&", ">", "]", ")", "/")  # of attributes and comments too
_NEAR = 200  # characters
_CONSTANT = re.compile(r"^[ \t]*#[ \t]*(?:el)?if\b.*\b[01]\b", re.M)  # maybe among other words
_TEMPLATE = re.compile(r"template\s*<")
_BEHIND = re.compile(r"(?:\s|__\w+|noexcept|const|//[^\n]*)*")  # what may stand between parameters and body


@dataclass(frozen=True)
class Definition:
    """The text of a C++ definition: from the file, or expanded from the use of a macro at `place`."""

    path: str
    text: str
    place: Place
    templates: tuple[str, ...] = ()
    expanded: bool = False

    def line_of(self, offset: int) -> Place:
        """Returns the place of an offset into `text`; for expanded text, the place of the macro use."""
        if self.expanded:
            return self.place
        return Place(self.path, self.place.line + self.text.count("\n", 0, offset))


@lru_cache(maxsize=256)
def find_macros(text: str) -> dict[str, Macro]:
    """Returns the macros a file defines. The first of two definitions wins: the second is for mobile builds."""
    found: dict[str, Macro] = {}
    for directive in directives(text):
        macro = parse_macro(directive)
        if macro:
            found.setdefault(macro.name, macro)
    return found


def expand_use(text: str, macro: Macro, arguments: Sequence[str]) -> str:
    """Expands a use of a macro, and in the result the file's other function-like macros, except variadic ones."""
    usable = {name: each for name, each in find_macros(text).items() if each.params and "..." not in each.params}
    return expand_uses(expand(macro, arguments), usable)


@lru_cache(maxsize=256)
def find_macro_uses(path: str, text: str) -> tuple[tuple[Macro, list[str], Place], ...]:
    """Returns the file-scope uses of function-like macros that the file defines."""
    return tuple(_find_macro_uses(path, text))


def _find_macro_uses(path: str, text: str) -> Iterator[tuple[Macro, list[str], Place]]:
    macros = find_macros(text)
    for match in _USE.finditer(text):
        macro = macros.get(match.group(1))
        arguments = [a.strip() for a in match.group(2).split(",")]
        if macro and len(arguments) == len(macro.params or ()):
            yield macro, arguments, Place(path, line_of(text, match.start(1)))


@lru_cache(maxsize=32768)
def find_definitions(path: str, text: str, name: str, wrapper: str = "") -> tuple[Definition, ...]:
    """Returns the functions of a name that a file defines, expanded macros included.

    With a wrapper macro (`TORCH_IMPL_FUNC`), those that it is around; its arguments are the name. A name that ends with
    `<` is that of specializations too.
    """
    found = list(_find_in(path, text, parse_source, name, wrapper))
    for macro, arguments, place in find_macro_uses(path, text):
        if any(argument and argument in name for argument in arguments):
            made = _find_in(path, expand_use(text, macro, arguments), Source.parse, name, wrapper)
            found += [Definition(path, f.text, place, f.templates, expanded=True) for f in made]
    return tuple(found)


def _find_in(
    path: str, text: str, parse: Callable[[str, str], Source], name: str, wrapper: str
) -> Iterator[Definition]:
    """The definitions in a text as it stands. A plain search is many times faster than to lex what has none."""
    bare = name.removesuffix("<")
    if not _may_define(text, bare, wrapper):
        return
    source = _read(path, text, parse)
    for function in source.functions_by_name.get(bare, ()) if name == bare else source.functions():
        named = function.name == bare or function.name.startswith(name)
        if named and (function.wrapper or "") == wrapper and _is_plain(source, function):
            yield _cut(source, function)


def _may_define(text: str, name: str, wrapper: str) -> bool:
    """Whether a name stands where a function is declared: between a word and a bracket, or in the brackets of a macro.

    What is in a comment may be taken for one. A file is lexed in vain then.
    """
    first = name.partition(",")[0]
    at = text.find(first) if first and wrapper in text else -1
    while at >= 0:
        end, before = at + len(first), text[max(at - _NEAR, 0) : at]
        last = before.rstrip()
        if wrapper:
            may = last.endswith("(") and last[:-1].rstrip().endswith(wrapper)
        else:
            is_word = last != before and in_word(last[-1:] or " ") and not last.endswith("return")
            is_called = text[end : end + _NEAR].lstrip()[:1] in ("(", "<")
            may = (is_word or last.endswith(_TYPE_ENDS)) and is_called and "//" not in before.rpartition("\n")[2]
        if may:
            return True
        at = text.find(first, end)
    return False


def _read(path: str, text: str, parse: Callable[[str, str], Source]) -> Source:
    """A file, with the first branch of every condition where only that makes its brackets pair; else nothing."""
    source = parse(path, text)
    if not source.is_readable:
        source = Source.parse(path, keep_first_branches(text))
    return source if source.is_readable else Source.parse(path, "")


def _is_plain(source: Source, function: Located) -> bool:
    """Whether a function is no member that is defined outside of its class, and has neither initializers nor `->`."""
    before = source.text[function.start : function.name_start].rstrip()
    behind = source.text[function.params_end : function.body_start]
    return (
        (function.wrapper is not None or bool(before)) and not before.endswith("::") and bool(_BEHIND.fullmatch(behind))
    )


def _cut(source: Source, function: Located) -> Definition:
    text, start = source.text, function.start
    templates: tuple[str, ...] = ()
    if _TEMPLATE.match(text, start):
        opener = text.index("<", start)
        behind = brackets.find_closing_end(text, opener, brackets.ANGLES)
        templates = tuple(filter(None, split_parameters(text[opener + 1 : behind - 1]))) or ("",)
        start = source.code[source.index_of(behind)].start
    return Definition(source.path, text[start : function.end], Place(source.path, line_of(text, start)), templates)


def split_parameters(parameters: str) -> list[str]:
    """Splits a parameter list at its top-level commas, each part on one line."""
    return [" ".join(part.split()) for part in brackets.split_at_commas(parameters, "<>()")]


def parse_definition(found: Definition) -> Function:
    """Parses a definition as a function. Raises PTR070 if it is not one."""
    outcome = _parse_definition(found)
    if isinstance(outcome, PorterError):
        raise outcome.with_traceback(None)
    return outcome


@lru_cache(maxsize=4096)
def _parse_definition(found: Definition) -> Function | PorterError:
    """The function, or the error: it is asked for once for each element type, and a damaged one can be long."""
    try:
        return parse_function(found.path, found.text, found.templates)
    except TooDeep as error:
        return too_deep(found.line_of(error.start))
    except (ParseError, IndexError):
        return PorterError(
            "PTR070", "cannot parse this function", found.place, "Check that its brackets match, or port it by hand."
        )


def flatten(source: Source, text: str) -> str:
    """Returns the text with one branch of every `#if`, and every use of the file's macros expanded on one line."""
    return _flatten(text, source.function_macros)


@lru_cache(maxsize=1024)
def _flatten(text: str, defined: tuple[Macro, ...]) -> str:
    return expand_uses(keep_first_branches(text), {macro.name: macro for macro in defined}, keep_lines=True)


def drop_dead_branches(text: str) -> str:
    """The text without what a number leaves out: what is behind `#if 0`, or behind the `#else` of an `#if 1`."""
    return _keep_branches(text, is_first_alone=False) if _CONSTANT.search(text) else text


def keep_first_branches(text: str) -> str:
    """Keeps the first branch of every `#if` and the second of `#ifndef`: SDK guards have the newest one first. What
    a number leaves out is no branch.
    """
    return _keep_branches(text, is_first_alone=True) if "#" in text else text


def _keep_branches(text: str, is_first_alone: bool) -> str:
    out: list[str] = []
    taking, decided = [True], [True]
    for token in lex(text):
        condition = parse_condition(token) if token.kind is TokenKind.DIRECTIVE else None
        if condition is None:
            out.append(token.text if all(taking) else _blank(token))
            continue
        word, number = condition[0], strip_comments(condition[1]).strip("() \t\r\n")
        if word in ("if", "ifdef", "ifndef"):
            taking.append(False)
            decided.append(False)
        if word == "endif" and len(taking) > 1:
            taking.pop()
            decided.pop()
        elif len(taking) > 1:
            is_constant = word in ("if", "elif") and number in ("0", "1")
            may = number == "1" if is_constant else word != "ifndef" or not is_first_alone
            taking[-1] = may and not decided[-1]
            decided[-1] |= may and (is_constant or is_first_alone)
        out.append(_blank(token))
    return "".join(out)


def _blank(token: Token) -> str:
    return "\n" * token.text.count("\n")
