"""Writes a translated body as a person would: no cast, parenthesis or expression twice.

Nothing here changes what a body computes. Where every number is a float, in the bodies of floating elements, a cast to
float says nothing; elsewhere casts stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from porter.core.dtypes import Kind
from porter.cpu.translator import OPMATH
from porter.languages.brackets import ALL, ROUND, find_closing_end, has_outside, is_balanced, split_at_commas
from porter.languages.identifiers import contains_identifier, in_word, is_word, rename_identifiers
from porter.languages.patterns import match_code, replace_code
from porter.metal.expression import split_return, uncast_return
from porter.metal.functor import Body, FunctorSpec
from porter.metal.params import PARAMETER

_CAST = re.compile(r"static_cast<float>\(|(?<![\w<:])float\(")
_NUMBER = re.compile(r"(-?)(\d+)(\.\d*)?(e[+-]?\d+)?f?")
_LOCAL = re.compile(r"(?P<indent>\s*)(?:const )?(?P<type>float|auto|bool) (?P<name>\w+) = (?P<value>.*);")
_FLOAT_CONSTANT = re.compile(r"M_\w+_F|INFINITY|NAN")
# Functions of floats with a result that is no float.
_TESTS = re.compile(r"::(is\w+|signbit|any|all)$")
_TWICE = 12


@dataclass(frozen=True)
class Arguments:
    """What a body names: `elements` are of the element's type, `floats` are float already; `cast` makes a float."""

    elements: tuple[str, ...]
    floats: frozenset[str]
    cast: Callable[[str], str]


def tidy_body(body: Body, kind: Kind, spec: FunctorSpec) -> Body:
    """Returns the body without needless text."""
    fields = spec.struct.fields if spec.struct and spec.struct.opmath else ()
    floats = frozenset(f"{PARAMETER}.{each.name}" for each in fields if not each.is_bool)
    lines = list(body.statements)
    if kind is Kind.FLOATING:
        names = spec.params if spec.struct else spec.arguments
        lines = tidy_float(lines, Arguments(names, floats, spec.as_float))
    if kind is Kind.COMPLEX:
        lines = tidy_complex(lines, spec.params, body.result)
    if body.result == "bool":
        lines = [re.sub(r"return static_cast<bool>\((!\w+)\);", r"return \1;", line) for line in lines]
    return replace(body, statements=tuple(_strip_all(_name_repeated(lines, floats))))


def specialize_helpers(bodies: Mapping[Kind, Body]) -> dict[Kind, Body]:
    """Returns the bodies with helpers of floats where no body calls them with another type."""
    others = {helper for body in bodies.values() if not _computes_in_float(body) for helper in body.helpers}
    return {
        kind: replace(body, helpers=tuple(h if h in others else specialize_helper(h) for h in body.helpers))
        for kind, body in bodies.items()
    }


def _computes_in_float(body: Body) -> bool:
    """Whether a body names the element's type only to cast its result to it, or calls another overload."""
    text = "\n".join(body.statements).replace("return static_cast<T>(", "")
    return body.result in ("T", "float") and not contains_identifier(text, "T") and "float" in text


def tidy_float(lines: list[str], arguments: Arguments) -> list[str]:
    """Returns the lines of a computation in float: arguments are cast once, and nothing else is."""
    lines = [_write_casts(line.replace(OPMATH, "float"), arguments) for line in lines]
    lines = _name_casts(lines, arguments)
    while True:
        floats = arguments.floats | set(_find_floats(lines, arguments))
        fewer = _name_casts([_drop_casts(line, floats) for line in lines], arguments)
        if fewer == lines:
            return lines
        lines = fewer


def specialize_helper(text: str) -> str:
    """Returns a helper template that is only called with floats as a function of floats."""
    head, brace, rest = text.partition("{\n")
    match = match_code(head, "template <typename T> inline $result $name($$parameters)")
    parameters = [each.rpartition(" ") for each in split_at_commas(match["parameters"])] if match else []
    if match is None or not {type_.removeprefix("const ") for type_, _, _ in parameters} <= {"T", OPMATH, "float"}:
        return text
    names = [name for _, _, name in parameters]
    body = rename_identifiers(rest.replace(OPMATH, "float"), {"T": "float"}).removesuffix("\n}").split("\n")
    body = tidy_float(body, Arguments((), frozenset(names), "static_cast<float>({})".format))
    body, names = _drop_copies(body, names)
    result = "float" if match["result"] == "T" else match["result"]
    if result == "float":
        body = [uncast_return(line, "float") for line in body]
    inside = "\n".join(_strip_all(_name_repeated(body, frozenset(names))))
    return f"inline {result} {match['name']}({', '.join(f'float {each}' for each in names)}) {brace}{inside}\n}}"


def _drop_copies(lines: list[str], names: list[str]) -> tuple[list[str], list[str]]:
    """Gives a parameter the name of the local that it is only copied to."""
    for at, name in enumerate(names):
        copies = [line for line in lines if match_code(line, f"float $copy = {name};", f"const float $copy = {name};")]
        if len(copies) == 1 and _count(name, lines) == 1:
            lines = [line for line in lines if line != copies[0]]
            names = [*names[:at], copies[0].split()[-3], *names[at + 1 :]]
    return lines, names


def _write_casts(line: str, arguments: Arguments) -> str:
    """Writes casts of arguments in the file's style, and casts of numbers as numbers of type float."""
    for name in arguments.elements:
        line = replace_code(line, arguments.cast(name), f"static_cast<float>({name})", f"float({name})")
    for start, end, inner in _list_casts(line):
        number = _NUMBER.fullmatch(inner)
        if number:
            text = f"{number[1]}{number[2]}{number[3] or ('' if number[4] else '.0')}{number[4] or ''}f"
            text = f"({text})" if number[1] and line[:start].endswith("-") else text  # -- counts down
            return _write_casts(line[:start] + text + line[end:], arguments)
    return line


def _list_casts(line: str) -> Iterator[tuple[int, int, str]]:
    """Yields the start and end of each cast to float, and what it casts."""
    for match in _CAST.finditer(line):
        end = find_closing_end(line, match.end() - 1, ROUND)
        yield match.start(), end, line[match.end() : end - 1]


def _list_outer_casts(line: str) -> Iterator[tuple[int, int, str]]:
    """Yields the casts that no other one contains."""
    last = 0
    for start, end, inner in _list_casts(line):
        if start >= last:
            yield start, end, inner
            last = end


def _name_casts(lines: list[str], arguments: Arguments) -> list[str]:
    """Names the arguments that are cast if one is cast more than once; otherwise they are cast in their place."""
    names: dict[str, str] = {}
    for name in arguments.elements:
        cast = arguments.cast(name)
        named = [m for line in lines if (m := _LOCAL.fullmatch(line)) and m["value"] == cast and not m["indent"]]
        for match in (m for m in named if not _is_assigned(m["name"], lines)):
            lines = [line for line in lines if line != match[0]]
            lines = [rename_identifiers(line, {match["name"]: cast}) for line in lines]
            if match["name"][1:] != "0" and match["name"].rstrip("f") != f"{name}_":
                names[name] = match["name"]
    counts = {name: sum(line.count(arguments.cast(name)) for line in lines) for name in arguments.elements}
    if max(counts.values(), default=0) < 2:
        return lines
    locals_ = list[str]()
    for name in (name for name in arguments.elements if counts[name]):
        local = _make_free(names.get(name, f"{name}_".replace(".", "_")), lines)
        lines = [line.replace(arguments.cast(name), local) for line in lines]
        locals_.append(f"const float {local} = {arguments.cast(name)};")
    return [*locals_, *lines]


def _is_assigned(name: str, lines: list[str]) -> bool:
    return any(re.search(rf"(?<![\w.] )(?<![\w.]){name} [-+*/]?= ", line) for line in lines)


def _find_floats(lines: list[str], arguments: Arguments) -> Iterator[str]:
    """Yields the locals that are floats."""
    known = set(arguments.floats)
    for line in lines:
        match = _LOCAL.fullmatch(line)
        if match and (match["type"] == "float" or (match["type"] == "auto" and _is_float(match["value"], known))):
            known.add(match["name"])
            yield match["name"]


def _is_float(text: str, floats: Collection[str]) -> bool:
    """Whether an expression is of type float, as all that it computes with is."""
    for start, end, _ in reversed(list(_list_outer_casts(text))):
        text = f"{text[:start]}NAN{text[end:]}"
    if not set("<>?!=%&|").isdisjoint(text):
        return False
    found = re.findall(r"(?<![\w.])([A-Za-z_][\w:.]*)(\()?", text)
    variables, called = ([name for name, opener in found if bool(opener) is call] for call in (False, True))
    if any("::" not in name or _TESTS.search(name) for name in called):
        return False
    known = all(name in floats or _FLOAT_CONSTANT.fullmatch(name) for name in variables)
    return known and bool(found)


def _drop_casts(line: str, floats: Collection[str]) -> str:
    """Removes casts to float of what is a float."""
    for start, end, inner in _list_casts(line):
        if _is_float(inner, floats):
            single = is_word(inner.replace(".", "_")) or _is_call(inner)
            return _drop_casts(line[:start] + (inner if single else f"({inner})") + line[end:], floats)
    return line


def _is_call(text: str) -> bool:
    name, opener, _ = text.partition("(")
    is_named = opener != "" and is_word(name.replace(":", "_"))
    return is_named and find_closing_end(text, len(name), ROUND) == len(text)


def _name_repeated(lines: list[str], floats: Collection[str]) -> list[str]:
    """Names a part in parentheses that a statement has more than once."""
    for at, line in enumerate(lines):
        if not re.match(r"\s*(?:return |(?:const )?\w+ \w+ = )", line):
            continue
        groups = [
            line[m.start() : find_closing_end(line, m.start(), ROUND)] for m in re.finditer(r"(?<![\w>])\(", line)
        ]
        long = [group for group in groups if len(group) > _TWICE and " " in group and line.count(group) > 1]
        if long:
            group = max(long, key=len)
            name = _make_free("value", lines)
            kind = "float" if _is_float(group, [*floats, *_names_of_floats(lines)]) else "auto"
            indent = line[: len(line) - len(line.lstrip())]
            named = f"{indent}const {kind} {name} = {_strip_outer(group)};"
            return _name_repeated([*lines[:at], named, _put(name, group, line), *lines[at + 1 :]], floats)
    return lines


def _put(name: str, group: str, line: str) -> str:
    """Puts a name where a group is: an operand, or all the arguments of a call."""
    parts = line.split(group)
    texts = (f"({name})" if part.endswith(">") or in_word(part[-1:]) else name for part in parts[:-1])
    return "".join(f"{part}{text}" for part, text in zip(parts, texts, strict=False)) + parts[-1]


def _names_of_floats(lines: list[str]) -> list[str]:
    return [m["name"] for line in lines if (m := _LOCAL.fullmatch(line)) and m["type"] == "float"]


def _strip_all(lines: list[str]) -> list[str]:
    return [_strip_line(line) for line in lines]


def _strip_line(line: str) -> str:
    """Removes parentheses that change nothing: doubled ones, and those around a call, a condition or one side of it."""
    for match in re.finditer(r"(?<![\w>\])])\(", line):
        start, end = match.start(), find_closing_end(line, match.start(), ROUND)
        inner, before, after = line[start + 1 : end - 1], line[:start], line[end:]
        if not inner or not is_balanced(inner, ALL) or has_outside(inner, ",") or _needs(before, inner, after):
            continue
        return _strip_line(before + inner + after)
    return line


def _needs(before: str, inner: str, after: str) -> bool:
    """Whether what is in parentheses needs them between these texts."""
    opens = before.endswith(("(", ", ", "return ", " = "))
    if _is_call(inner) or is_word(inner.replace(".", "_")):
        return before.endswith(("if ", "while ", "for ", "switch "))
    if opens and after.startswith((")", ",", ";")):
        return False
    looser = r"[?=](?!=)|[<>!=]=|&&|\|\|| [&|^] "  # what binds no tighter than a comparison
    plain = not re.search(looser, inner.replace("static_cast<", "").replace("::", ""))
    arithmetic = plain and " < " not in inner and " > " not in inner
    if opens and after.startswith(tuple(f" {operator} " for operator in ("<", ">", "<=", ">=", "==", "!="))):
        return not arithmetic
    if before.endswith((" ? ", " : ")) and after.startswith((")", ";", " : ")):
        return has_outside(inner, "?")
    if opens and after.startswith(" ? "):
        return has_outside(inner, "?")
    return True


def _strip_outer(text: str) -> str:
    inner = text[1:-1]
    return inner if text.startswith("(") and is_balanced(inner) else text


def _count(name: str, lines: list[str]) -> int:
    return sum(len(re.findall(rf"(?<![\w.]){re.escape(name)}\b", line)) for line in lines)


def _make_free(name: str, lines: list[str]) -> str:
    while _count(name, lines):
        name += "f" if name.endswith("_") else "_"  # two underscores are the compiler's
    return name


_WIDE = re.compile(r"(?<![\w<:])float2\(")


def tidy_complex(lines: list[str], params: Collection[str], result: str) -> list[str]:
    """Returns the lines with each element cast at most once."""
    text = "\n".join(lines)
    if result == "T" and re.search(r"(?<![\w<:])float2\((?:T\(|-)", text) and not contains_identifier(text, "A"):
        return _compute_wide(text, params)
    for name in params:
        cast = f"float2({name})"
        if text.count(cast) > 1:
            local = "z" if len(params) == 1 and not contains_identifier(text, "z") else f"{name}_"
            text = f"const float2 {local} = {cast};\n{text.replace(cast, local)}"
    return text.split("\n")


def _compute_wide(text: str, params: Collection[str]) -> list[str]:
    """Returns the statements computed in float2, and their result cast back."""
    text = rename_identifiers(text, {"T": "float2"})
    for name in params:
        text = rename_identifiers(text, {name: f"{name}_"})
    lines = [_return_element(_drop_wide(line)) for line in text.split("\n")]
    return [*(f"const float2 {name}_ = float2({name});" for name in params), *lines]


def _drop_wide(line: str) -> str:
    """Removes conversions to float2 of what is one."""
    for match in _WIDE.finditer(line):
        end = find_closing_end(line, match.end() - 1, ROUND)
        inner = line[match.end() : end - 1]
        if has_outside(inner, ",") or _NUMBER.fullmatch(inner):
            continue
        return _drop_wide(line[: match.start()] + f"({inner})" + line[end:])
    return line


def _return_element(line: str) -> str:
    indent, value = split_return(line)
    inner = value[1:-1] if value.startswith("(") and is_balanced(value[1:-1], ALL) else value
    return f"{indent}return T({inner});" if value else line


# c10::metal's, whose namespace kernel files use: float for floating elements, at least int for integers.
_WIDER = "opmath_t<T>"


def share_bodies(bodies: Mapping[Kind, Body], spec: FunctorSpec) -> dict[Kind, Body]:
    """Returns the bodies, that of floating elements for integers too if both compute the same in their opmath type."""
    floating, integral = bodies.get(Kind.FLOATING), bodies.get(Kind.INTEGRAL)
    if floating is None or integral is None or not (floating.result == integral.result == "T"):
        return dict(bodies)
    if "::" in "".join(_plain(floating, spec)) or _plain(floating, spec) != _plain(integral, spec):
        return dict(bodies)
    if floating.statements == integral.statements:
        return dict(bodies)
    cast = re.escape(spec.as_float("{}")).replace(r"\{\}", r"([\w.]+)")
    lines = (re.sub(cast, rf"static_cast<{_WIDER}>(\1)", line) for line in floating.statements)
    shared = replace(floating, statements=tuple(line.replace("const float ", f"const {_WIDER} ") for line in lines))
    same = {kind: shared for kind, body in bodies.items() if body.statements == integral.statements}
    return {**bodies, **same, Kind.FLOATING: shared}


def _plain(body: Body, spec: FunctorSpec) -> tuple[str, ...]:
    """Returns the statements without the type that they compute in."""
    text = "\n".join(body.statements)
    for name in (*spec.params, *spec.scalars):
        text = text.replace(spec.as_float(name), name).replace(f"static_cast<T>({name})", name)
        local = re.search(rf"const float (\w+) = {name};\n", text)
        if local:
            text = rename_identifiers(text.replace(local[0], "", 1), {local[1]: name})
    return tuple(uncast_return(line, "T") for line in text.split("\n"))
