"""Rewrites Metal source into C++ for a target: keywords and attributes go, kernels get an entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, isnan

from aten_overlay.errors import OverlayError
from aten_overlay.metal.source.declarations import Entry, FunctionConstant, Instance, Unit, find_name
from aten_overlay.metal.source.lexer import Source, is_attribute, skip_angles
from aten_overlay.metal.source.overloads import Overloads, find_renamings
from aten_overlay.metal.source.reach import find_needed, find_reached, find_waiting, is_variable
from aten_overlay.metal.source.spaces import ERASED, find_duplicates
from aten_overlay.metal.source.swizzles import AS_VECTOR, find_deduced, find_nested, find_templates
from aten_overlay.metal.source.syntax import Declaration, constructor_qualifiers
from aten_overlay.metal.source.table import Row, Value, clean, make_row
from aten_overlay.metal.source.targets import Target
from aten_overlay.metal.source.unions import find_assignments

_INLINED = "__attribute__((always_inline))"  # into the loop over threads, which can then be vectorized
# In Metal these are float. Clang's option for that is lost when a template is instantiated.
_UNSUFFIXED = re.compile(
    r"((\d[\d']*\.[\d']*|\.[\d']+)([eE][+-]?\d+)?|\d[\d']*[eE][+-]?\d+|0[xX][\da-fA-F.]+[pP][+-]?\d+)$"
)
# Suffixes that the compiler does not take.
_SUFFIXED = re.compile(r"(?P<digits>(?:\d[\d']*\.?[\d']*|\.[\d']+)(?:[eE][+-]?\d+)?)(?P<suffix>bf|BF|H)$")
_TYPES = {"bf": "bfloat", "BF": "bfloat", "H": "half"}
_SIZES = frozenset(("uint", "ushort", "size_t", "short", "uchar", "uint32_t", "uint16_t"))
_MARKER = re.compile(r"^[ \t]*#(?:line)?[ \t]*\d[^\n]*", re.MULTILINE)
# What is left of `#pragma unroll (MACRO(...))` cannot be read: macros are gone. How far to unroll is a hint anyhow.
_UNROLL = re.compile(r"^([ \t]*#[ \t]*pragma[ \t]+)(?:unroll\b|clang[ \t]+loop[ \t]+unroll)[^\n]*[(][^\d)][^\n]*", re.M)


@dataclass(frozen=True)
class Edit:
    """Replaces characters [start, end) of the preprocessed text."""

    start: int
    end: int
    text: str


def generate(
    unit: Unit,
    names: Iterable[str],
    constants: Mapping[int | str, Value],
    target: Target,
    checked: bool = False,
    one_by_one: bool = False,
    asks_ahead: bool = True,
) -> str:
    """The C++ for `target` of what the kernels `names` need of `unit`, with their entries.

    `constants` gives function constants values, by index or name; `checked` announces threadgroup variables; threads
    run `one_by_one` if so asked; without `asks_ahead`, memory is read when it is used.
    Raises PTR103, PTR104, PTR105 or PTR109.
    """
    source = unit.source
    asked = [next(i for i in unit.instances if i.host_name == name) for name in names]
    values = {c.name: constants.get(c.index, constants.get(c.name)) for c in unit.constants}
    _require_values(unit, asked, values)
    rows = [make_row(unit, instance, values, one_by_one, asks_ahead) for instance in asked]
    renamed = [_rename_overloaded(unit, row) for row in rows]
    rows = [row for row, _ in renamed]
    needed = find_needed(unit, asked)
    kept = {id(e.declaration) for e in needed}
    removed = [e.declaration for e in unit.entries if id(e.declaration) not in kept]
    duplicates, overloads = find_duplicates(unit, _with_members(unit, kept))
    repeated, edits = _overload_edits(unit, needed, overloads, duplicates)
    edits += [_removal(source, d) for d in (*removed, *repeated)]
    edits += _constructor_edits(unit, kept)
    templates = find_templates(unit)
    for declaration in _with_members(unit, kept):
        edits += _size_edits(source, declaration)
    for entry in needed:
        ends = (source.ends[i] for i in find_deduced(source, entry.declaration, templates))
        edits += [Edit(end, end, AS_VECTOR) for end in ends]
        edits += [Edit(at, at, text) for at, text in find_assignments(source, entry.declaration)]
    nested = find_nested(source, [entry.declaration for entry in needed])
    edits += [Edit(source.starts[first], source.ends[last], made) for first, last, made in nested]
    for entry in needed:
        edits += _keyword_edits(source, entry.declaration, values, checked, target.threadgroup)
    edits += _inlining_edits(unit, kept, {id(d) for d in repeated})
    edits += [_constant_edit(source, c, values[c.name]) for c in unit.constants if id(c.declaration) in kept]
    edits += _kernel_edits(unit, needed, rows, target)
    edits += [edit for _, edit in renamed if edit]
    body = _UNROLL.sub(r"\1unroll", apply(source.text, edits))
    return target.write_prologue(rows) + body + target.write_table(unit, rows, values)


def apply(text: str, edits: list[Edit]) -> str:
    """`text` with the edits made. One that lies inside another, larger one is dropped."""
    pieces, at = [], 0
    for edit in sorted(edits, key=lambda e: (e.start, e.start != e.end, -e.end)):
        if edit.start < at:
            continue
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join(pieces) + text[at:]


def _require_values(unit: Unit, asked: list[Instance], values: Mapping[str, Value | None]) -> None:
    if not any(value is None for value in values.values()):
        return
    for instance in asked:
        reached = find_reached(unit, instance)
        missing = [c for c in unit.constants if values[c.name] is None and c.name in reached]
        if missing and "is_function_constant_defined" not in reached:
            raise OverlayError(
                "PTR105",
                f"kernel `{instance.host_name}` needs function constant `{missing[0].name}` ({missing[0].index})",
                unit.source.place(missing[0].declaration.start),
                "Set it when you create the function.",
            )


def _rename_overloaded(unit: Unit, row: Row) -> tuple[Row, Edit | None]:
    """The row of a kernel whose name functions have too: with a name of its own, which its address can be taken by."""
    source, declaration, name = unit.source, row.instance.declaration, row.instance.short_name
    others = (e for e in unit.entries if e.declaration is not declaration and name in (e.names or ()))
    if row.instance.parameters >= 0 or declaration.body < 0 or all(e.declaration.body < 0 for e in others):
        return row, None
    own = f"pm_kernel_{name}"
    at, _ = find_name(source, declaration)
    function = row.instance.function.removesuffix(name) + own
    edit = Edit(source.starts[at], source.ends[at], own)
    return replace(row, instance=replace(row.instance, function=function)), edit


def _overload_edits(
    unit: Unit, needed: list[Entry], overloads: list[Overloads], duplicates: list[Declaration]
) -> tuple[list[Declaration], list[Edit]]:
    """The declarations to remove, and new names for overloads by address space that do different things."""
    source, repeated, edits = unit.source, list(duplicates), []
    for each in overloads:
        renamed = find_renamings(unit, (e.declaration for e in needed), each)
        if renamed is not None:
            own = {i for i, _ in renamed}
            repeated = [d for d in repeated if own.isdisjoint(range(d.start, max(d.body, d.start)))]
            repeated += each.repeated
            edits += [Edit(source.starts[i], source.ends[i], name) for i, name in renamed]
    return repeated, edits


def _with_members(unit: Unit, kept: set[int]) -> Iterator[Declaration]:
    """The declarations kept, and their members."""
    classes: set[int] = set()
    for declaration in unit.declarations:
        if id(declaration) in kept or declaration.outer in classes:
            classes.add(declaration.start)
            yield declaration


def _keyword_edits(
    source: Source, declaration: Declaration, values: Mapping[str, Value | None], checked: bool, threadgroup: str
) -> Iterator[Edit]:
    tokens, starts, ends = source.tokens, source.starts, source.ends
    i = declaration.start
    while i < declaration.end:
        token = tokens[i]
        if token == "[" and is_attribute(source, i):
            inlined = _INLINED if "kernel" in tokens[i : source.match[i]] else ""
            yield Edit(
                starts[i], ends[source.match[i]], inlined + _blank(source.text[starts[i] : ends[source.match[i]]])
            )
            i = source.match[i] + 1
            continue
        if token == "constant":
            yield Edit(starts[i], ends[i], "const")
        elif token == "threadgroup" and is_variable(source, i):
            yield Edit(starts[i], ends[i], threadgroup)
            if checked:
                yield from _announce_edits(source, i)
        elif token == "coherent" and tokens[i + 1] in ("(", *ERASED):
            yield Edit(starts[i], ends[source.match[i + 1]] if tokens[i + 1] == "(" else ends[i], "")
        elif token in ERASED:
            yield Edit(starts[i], ends[i], _INLINED if token == "kernel" else "")
        elif source.kinds[i] == "number" and _UNSUFFIXED.match(token):
            yield Edit(ends[i], ends[i], "f")
        elif source.kinds[i] == "number" and (found := _SUFFIXED.match(token)):
            yield Edit(starts[i], ends[i], f"{_TYPES[found['suffix']]}({_as_float(found['digits'])})")
        elif token == "is_function_constant_defined":
            defined = values.get(tokens[i + 2]) is not None
            first = i - 2 if tokens[i - 1] == "::" else i
            yield Edit(starts[first], ends[source.match[i + 1]], "true" if defined else "false")
        i += 1


def _as_float(digits: str) -> str:
    return f"{digits}f" if _UNSUFFIXED.match(digits) else f"{digits}.0f"


def _constructor_edits(unit: Unit, kept: set[int]) -> Iterator[Edit]:
    """Removes the address spaces for which constructors are declared."""
    source = unit.source
    for declaration in _with_members(unit, kept):
        for i in constructor_qualifiers(source, declaration):
            if source.tokens[i] in (*ERASED, "constant"):
                yield Edit(source.starts[i], source.ends[i], "")


def _size_edits(source: Source, declaration: Declaration) -> Iterator[Edit]:
    """Makes an int of a template's parameter that is a vector's size: a size of another type would not be deduced."""
    tokens, start = source.tokens, declaration.start
    if tokens[start] != "template" or tokens[start + 1] != "<":
        return
    end = skip_angles(source, start + 1, declaration.end)
    for i in range(start + 2, end):
        if (
            tokens[i] in _SIZES
            and source.kinds[i + 1] == "name"
            and _is_vector_size(source, tokens[i + 1], end, declaration)
        ):
            yield Edit(source.starts[i], source.ends[i], "int")


def _is_vector_size(source: Source, name: str, start: int, declaration: Declaration) -> bool:
    tokens = source.tokens
    for i in range(start, declaration.end):
        if tokens[i] == "vec" and tokens[i + 1] == "<":
            end = skip_angles(source, i + 1, declaration.end)
            if tokens[end - 3 : end - 1] == [",", name]:
                return True
    return False


def _announce_edits(source: Source, i: int) -> Iterator[Edit]:
    """After the declaration at i, tells the runtime where its variables are."""
    names, j, depth = [], i + 1, 0
    while source.tokens[j] != ";":
        token = source.tokens[j]
        depth += (token == "<") - (token == ">")
        if source.kinds[j] == "name" and depth == 0 and source.tokens[j + 1] in ("[", ",", ";", "="):
            names.append(token)
        j = source.match[j] + 1 if token in ("(", "[", "{") else j + 1
    calls = "".join(f" pm_threadgroup_variable(&{name}, sizeof({name}));" for name in names)
    yield Edit(source.ends[j], source.ends[j], calls)


def _inlining_edits(unit: Unit, kept: set[int], repeated: set[int]) -> Iterator[Edit]:
    """Inlines functions in which a thread may wait, as Metal inlines all, so that a kernel's code is one function.

    Those `repeated` are removed.
    """
    source = unit.source
    waiting = find_waiting(unit)
    for declaration in _with_members(unit, kept):
        body = range(declaration.body, declaration.end)
        if id(declaration) in repeated or declaration.body < 0 or source.match[declaration.body] + 1 != declaration.end:
            continue
        if "(" not in source.tokens[declaration.start : declaration.body]:
            continue
        if any(source.kinds[i] == "name" and source.tokens[i] in waiting for i in body):
            i = declaration.start
            while source.tokens[i] == "template" and source.tokens[i + 1] == "<":
                i = skip_angles(source, i + 1, declaration.end)
            yield Edit(source.starts[i], source.starts[i], f"{_INLINED} ")


def _removal(source: Source, declaration: Declaration) -> Edit:
    start, end = source.starts[declaration.start], source.ends[declaration.end - 1]
    return Edit(start, end, _blank(source.text[start:end]))


def _blank(text: str) -> str:
    """The newlines and line markers of `text`, so that what follows keeps its line."""
    if "#" not in text:
        return "\n" * text.count("\n")
    return "\n".join(m.group() if (m := _MARKER.match(line)) else "" for line in text.split("\n"))


def _constant_edit(source: Source, constant: FunctionConstant, value: Value | None) -> Edit:
    removal = _removal(source, constant.declaration)
    numbers = (0 if value is None else value,) if not isinstance(value, tuple) else value
    literals = ", ".join(map(_literal, numbers))
    return Edit(removal.start, removal.end, f"constexpr {constant.type} {constant.name} = {constant.type}({literals});")


def _literal(number: float) -> str:
    """A number as C++ reads it: it has no literal of infinities and of what is no number."""
    if isinstance(number, float) and not isfinite(number):
        return '__builtin_nan("")' if isnan(number) else f"{'-' * (number < 0)}__builtin_inf()"
    return str(number).lower() if isinstance(number, bool) else repr(number)


def _kernel_edits(unit: Unit, needed: list[Entry], rows: list[Row], target: Target) -> Iterator[Edit]:
    source = unit.source
    plain = {id(k.declaration) for k in unit.kernels if not k.template}
    for entry in needed:
        if id(entry.declaration) in plain:
            start = source.starts[entry.declaration.start]
            yield Edit(start, start, "inline ")
    for number, row in enumerate(rows):
        yield from _row_edits(source, row, number, partial(target.write_entry, row, number))


def _row_edits(source: Source, row: Row, number: int, write_entry: Callable[[str], str]) -> Iterator[Edit]:
    instance, declaration = row.instance, row.instance.declaration
    own_type = f"decltype(&{clean(instance.function)})"
    if instance.parameters < 0 and declaration.body >= 0:
        end = source.ends[declaration.end - 1]
        yield Edit(end, end, f" {write_entry(own_type)}")
        return
    if instance.parameters < 0:
        removal = _removal(source, declaration)
        yield Edit(removal.start, removal.end, write_entry(own_type) + removal.text)
        return
    start, parameters = source.starts[declaration.start], source.starts[instance.parameters]
    yield Edit(start, parameters, _blank(source.text[start:parameters]) + f"using pm_signature_{number} = void (*)")
    close, end = source.ends[source.match[instance.parameters]], source.ends[declaration.end - 1]
    entry = write_entry(f"pm_signature_{number}")
    yield Edit(close, end, f"; {entry}{_blank(source.text[close:end])}")
