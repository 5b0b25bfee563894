"""Rewrites Metal source into C++ for the host: keywords and attributes go, kernels get an entry in a launch table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from aten_overlay.errors import OverlayError
from aten_overlay.metal.arguments import BOUND, split_parameters
from aten_overlay.metal.declarations import Declaration, FunctionConstant, Instance, Kernel, Unit
from aten_overlay.metal.lexer import Source, is_attribute, skip_angles

Value = bool | int | float

_ERASED = frozenset(("device", "thread", "threadgroup", "kernel", "ray_data", "object_data", "threadgroup_imageblock"))
_UNGROUPED = frozenset(
    ("buffer", "thread_position_in_grid", "threads_per_grid", "grid_size", "grid_origin", "threads_per_simdgroup")
)
_INLINED = "__attribute__((always_inline))"  # into the loop over threads, which can then be vectorized
# In Metal these are float. Clang's option for that is lost when a template is instantiated.
_UNSUFFIXED = re.compile(
    r"((\d[\d']*\.[\d']*|\.[\d']+)([eE][+-]?\d+)?|\d[\d']*[eE][+-]?\d+|0[xX][\da-fA-F.]+[pP][+-]?\d+)$"
)
_MARKER = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
SYNCHRONIZING = re.compile(
    r"(threadgroup_barrier|simdgroup_(barrier|load|store|multiply|multiply_accumulate|matrix|float8x8|half8x8|bfloat8x8)|make_filled_simdgroup_matrix"
    r"|simd_(sum|product|min|max|and|or|xor|any|all|ballot|is_first|active_threads_mask|broadcast\w*|shuffle\w*|prefix\w*)"
    r"|quad_(sum|product|min|max|and|or|xor|any|all|ballot|broadcast\w*|shuffle\w*|prefix\w*))$"
)
_VALUE_TYPES = ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "bfloat")


@dataclass(frozen=True)
class Edit:
    """Replaces characters [start, end) of the preprocessed text."""

    start: int
    end: int
    text: str


def generate(unit: Unit, names: Iterable[str], constants: Mapping[int | str, Value], flags: str, checked: bool) -> str:
    """The C++ of `unit` with the kernels `names` in its table.

    `constants` gives function constants values, by index or name; `flags` is a C++ expression of `pm_compiled` bits.
    Raises PTR103, PTR104 or PTR105.
    """
    asked = [_instance(unit, name) for name in names]
    values = {c.name: _value(c, constants) for c in unit.constants}
    _require_values(unit, asked, values)
    edits = list(_keyword_edits(unit, values, checked))
    edits += _duplicate_edits(unit)
    edits += _inlining_edits(unit)
    edits += [_constant_edit(unit.source, c, values[c.name]) for c in unit.constants]
    chosen = {id(i): n for n, i in enumerate(asked)}
    for instance in unit.instances:
        edits += _instance_edits(unit, instance, chosen.get(id(instance), -1), flags)
    edits += _unnamed_instance_edits(unit)
    body = apply(unit.source.text, edits)
    return _write_prologue(unit, asked) + body + _write_table(unit, asked, values)


def apply(text: str, edits: list[Edit]) -> str:
    """`text` with the edits made. One that lies inside another, larger one is dropped."""
    pieces, at = [], 0
    for edit in sorted(edits, key=lambda e: (e.start, e.start != e.end, -e.end)):
        if edit.start < at:
            continue
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join(pieces) + text[at:]


def synchronizes(unit: Unit, instance: Instance) -> bool:
    """Whether a barrier or simdgroup function can be reached from the kernel, by the names it refers to."""
    return any(SYNCHRONIZING.match(name) for name in _find_reached(unit, instance))


def shares_state(unit: Unit, instance: Instance) -> bool:
    """Whether threads of a threadgroup interact: they synchronize, or share variables."""
    return synchronizes(unit, instance) or _has_variables(unit.source, find_definition(unit, instance).declaration)


def _has_variables(source: Source, declaration: Declaration) -> bool:
    body = range(max(declaration.body, declaration.start), declaration.end)
    return any(source.tokens[i] == "threadgroup" and _is_variable(source, i) for i in body)


def find_definition(unit: Unit, instance: Instance) -> Kernel:
    """The definition an instance was made from. Raises PTR103 when there is none or overloads leave it open."""
    source = unit.source
    found = [k for k in unit.kernels if k.name == instance.short_name]
    if instance.parameters < 0:
        found = [k for k in found if k.declaration is instance.declaration] or found
    elif len(found) > 1:
        count = len(split_parameters(source, instance.parameters + 1, source.match[instance.parameters]))
        found = [k for k in found if len(k.arguments) == count]
    shapes = {tuple((a.kind, a.index) for a in k.arguments) for k in found}
    if len(shapes) != 1:
        why = "has no definition" if not found else "has several definitions whose arguments differ"
        raise OverlayError(
            "PTR103",
            f"kernel `{instance.short_name}` {why}",
            source.place(instance.declaration.start),
            "Define it once.",
        )
    return found[0]


def _instance(unit: Unit, name: str) -> Instance:
    return next(i for i in unit.instances if i.host_name == name)


def _find_reached(unit: Unit, instance: Instance) -> set[str]:
    start = {instance.short_name, *re.findall(r"\w+", instance.function)}
    seen: set[str] = set()
    frontier = list(start)
    while frontier:
        name = frontier.pop()
        if name not in seen:
            seen.add(name)
            frontier.extend(unit.references.get(name, ()))
    return seen


def _value(constant: FunctionConstant, values: Mapping[int | str, Value]) -> Value | None:
    return values.get(constant.index, values.get(constant.name))


def _require_values(unit: Unit, asked: list[Instance], values: Mapping[str, Value | None]) -> None:
    for instance in asked:
        reached = _find_reached(unit, instance)
        missing = [c for c in unit.constants if values[c.name] is None and c.name in reached]
        if missing and "is_function_constant_defined" not in reached:
            raise OverlayError(
                "PTR105",
                f"kernel `{instance.host_name}` needs function constant `{missing[0].name}` ({missing[0].index})",
                unit.source.place(missing[0].declaration.start),
                "Set it when you create the function.",
            )


def _keyword_edits(unit: Unit, values: Mapping[str, Value | None], checked: bool) -> Iterator[Edit]:
    source = unit.source
    tokens, starts, ends = source.tokens, source.starts, source.ends
    i = 0
    while i < len(tokens):
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
        elif token == "threadgroup" and _is_variable(source, i):
            yield Edit(starts[i], ends[i], "static thread_local")
            if checked:
                yield from _announce_edits(source, i)
        elif token in _ERASED:
            yield Edit(starts[i], ends[i], _INLINED if token == "kernel" else "")
        elif source.kinds[i] == "number" and _UNSUFFIXED.match(token):
            yield Edit(ends[i], ends[i], "f")
        elif token == "is_function_constant_defined":
            defined = values.get(tokens[i + 2]) is not None
            yield Edit(starts[i], ends[source.match[i + 1]], "true" if defined else "false")
        i += 1


def _is_variable(source: Source, i: int) -> bool:
    """Whether the `threadgroup` at token i declares a variable of its own, not a pointer or reference to one."""
    if i and source.tokens[i - 1] not in (";", "{", "}", "const", "volatile", "alignas"):
        return False
    j = i + 1
    while source.tokens[j] not in (";", "="):
        if source.tokens[j] in ("*", "&"):
            return False
        if source.tokens[j] == ")" or source.tokens[j] == "}":
            return False
        j = source.match[j] + 1 if source.tokens[j] in ("(", "[", "{") else j + 1
    return True


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


def _normal(source: Source, start: int, end: int) -> list[str]:
    result: list[str] = []
    i = start
    while i < end:
        token = source.tokens[i]
        if is_attribute(source, i):
            i = source.match[i] + 1
            continue
        if token == "constant":
            token = "const"
        if token not in _ERASED and not (token == "const" and result[-1:] == ["const"]):
            result.append(token)
        i += 1
    return result


def _duplicate_edits(unit: Unit) -> list[Edit]:
    """Blanks functions that were distinguished by address space alone. Raises PTR104 when they differ otherwise."""
    source, seen, edits, enclosing = unit.source, {}, [], _find_enclosing(unit)
    for declaration in unit.declarations:
        if declaration.body < 0 or source.match[declaration.body] + 1 != declaration.end:
            continue
        head = tuple(_normal(source, declaration.start, declaration.body))
        if "(" not in head:
            continue
        key = (declaration.scope, declaration.in_class and enclosing[declaration.start], head)
        body = _normal(source, declaration.body, declaration.end)
        if key not in seen:
            seen[key] = body
        elif seen[key] != body:
            raise OverlayError(
                "PTR104",
                "this overload differs from an earlier one in its body, not just in address space",
                source.place(declaration.start),
                "The host has a single address space: give the two different names.",
            )
        else:
            edits.append(_removal(source, declaration))
    return edits


def _inlining_edits(unit: Unit) -> Iterator[Edit]:
    """Inlines functions in which a thread may wait, as Metal inlines all, so that a kernel's code is one function."""
    source = unit.source
    waiting = _find_waiting(unit)
    for declaration in unit.declarations:
        body = range(declaration.body, declaration.end)
        if declaration.body < 0 or source.match[declaration.body] + 1 != declaration.end:
            continue
        if "(" not in source.tokens[declaration.start : declaration.body]:
            continue
        if any(source.kinds[i] == "name" and source.tokens[i] in waiting for i in body):
            i = declaration.start
            while source.tokens[i] == "template" and source.tokens[i + 1] == "<":
                i = skip_angles(source, i + 1, declaration.end)
            yield Edit(source.starts[i], source.starts[i], f"{_INLINED} ")


def _find_waiting(unit: Unit) -> set[str]:
    """The names from which a barrier or simdgroup function can be reached, with those functions' own."""
    found = {name for names in unit.references.values() for name in names if SYNCHRONIZING.match(name)}
    while more := {name for name, names in unit.references.items() if names & found} - found:
        found |= more
    return found


def _find_enclosing(unit: Unit) -> dict[int, int]:
    """For the start of every declaration, that of the innermost one whose body it is in, or -1."""
    found: dict[int, int] = {}
    around: list[Declaration] = []
    for declaration in sorted(unit.declarations, key=lambda each: (each.start, -each.end)):
        while around and around[-1].end < declaration.end:
            around.pop()
        inner = (each.start for each in reversed(around) if each.body < declaration.start)
        found.setdefault(declaration.start, next(inner, -1))
        if declaration.body >= 0:
            around.append(declaration)
    return found


def _removal(source: Source, declaration: Declaration) -> Edit:
    start, end = source.starts[declaration.start], source.ends[declaration.end - 1]
    return Edit(start, end, _blank(source.text[start:end]))


def _blank(text: str) -> str:
    """The newlines and line markers of `text`, so that what follows keeps its line."""
    return "\n".join(m.group() if (m := _MARKER.match(line)) else "" for line in text.split("\n"))


def _constant_edit(source: Source, constant: FunctionConstant, value: Value | None) -> Edit:
    removal = _removal(source, constant.declaration)
    literal = "0" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return Edit(removal.start, removal.end, f"constexpr {constant.type} {constant.name} = {constant.type}({literal});")


def _instance_edits(unit: Unit, instance: Instance, number: int, flags: str) -> Iterator[Edit]:
    source, declaration = unit.source, instance.declaration
    if instance.parameters < 0 and declaration.body >= 0:
        start = source.starts[declaration.start]
        yield Edit(start, start, "inline ")
        if number >= 0:
            end = source.ends[declaration.end - 1]
            yield Edit(end, end, f" {_entry(unit, instance, number, f'decltype(&{instance.function})', flags)}")
        return
    if number < 0:
        yield _removal(source, declaration)
        return
    if instance.parameters < 0:
        removal = _removal(source, declaration)
        text = _entry(unit, instance, number, f"decltype(&{_clean(instance.function)})", flags)
        yield Edit(removal.start, removal.end, text + removal.text)
        return
    start, parameters = source.starts[declaration.start], source.starts[instance.parameters]
    yield Edit(start, parameters, _blank(source.text[start:parameters]) + f"using pm_signature_{number} = void (*)")
    close, end = source.ends[source.match[instance.parameters]], source.ends[declaration.end - 1]
    yield Edit(
        close,
        end,
        "; " + _entry(unit, instance, number, f"pm_signature_{number}", flags) + _blank(source.text[close:end]),
    )


def _unnamed_instance_edits(unit: Unit) -> Iterator[Edit]:
    """Removes explicit instantiations of kernels without a host name, which nothing can request."""
    named = {id(i.declaration) for i in unit.instances}
    source = unit.source
    kernels = {k.name for k in unit.kernels}
    for declaration in unit.declarations:
        explicit = source.tokens[declaration.start] == "template" and source.tokens[declaration.start + 1] != "<"
        if (
            explicit
            and id(declaration) not in named
            and kernels.intersection(source.tokens[declaration.start : declaration.end])
        ):
            yield _removal(source, declaration)


def _entry(unit: Unit, instance: Instance, number: int, signature: str, flags: str) -> str:
    kernel = find_definition(unit, instance)
    sync = "true" if synchronizes(unit, instance) else "false"
    image = "&pm_image_begin, &pm_image_end"
    shared = shares_state(unit, instance)
    source = f"PM_LANE_SOURCE({number}, PM_TYPE({signature}), PM_TYPE(&{_clean(instance.function)})) " if shared else ""
    forms, size = "nullptr, nullptr", "0"
    if shared:
        forms, size = f"&pm_lane_source_{number}, &pm_lockstep_{number}", f"pm_static_bytes_{number}"
    return (
        f"{source}static pm_kernel pm_make_{number}() {{ using Spec = ::pm_spec_{number}; using S = {signature}; "
        f"constexpr S function = &{_clean(instance.function)}; "
        f"static const pm_entry entry = pm::entry<Spec, S, function, {sync}>({image}, {flags}, {forms}); "
        f'return {{"{instance.host_name}", pm::kernel<Spec, S, function>::arguments(), {_bound(kernel)}, {sync}, '
        f"{size}, {kernel.max_threads}, reinterpret_cast<int (*)(const pm_launch*)>(&pm_run), &entry}}; }}"
    )


def _clean(text: str) -> str:
    """A function's name and template arguments without what only Metal knows."""
    words = (w for w in text.split(" ") if w not in _ERASED)
    return " ".join("const" if w == "constant" else w for w in words)


def _bound(kernel: Kernel) -> int:
    return sum(a.kind in BOUND for a in kernel.arguments)


def _write_prologue(unit: Unit, asked: list[Instance]) -> str:
    lines = [
        'extern "C" __attribute__((visibility("hidden"))) const char pm_image_begin __asm__("__ehdr_start");',
        'extern "C" __attribute__((visibility("hidden"))) const char pm_image_end __asm__("_end");',
    ]
    for number, instance in enumerate(asked):
        kernel = find_definition(unit, instance)
        rows = "".join(f'{{pm::attribute::{a.kind}, {a.index}, "{a.name}"}}, ' for a in kernel.arguments)
        if shares_state(unit, instance):
            lines.append(f"PM_SHARES({number})")
        buffers = max((a.index + 1 for a in kernel.arguments if a.kind == "buffer"), default=0)
        grouped = str(any(a.kind not in _UNGROUPED for a in kernel.arguments)).lower()
        lines.append(
            f"struct pm_spec_{number} {{ static constexpr pm::parameter parameters[] = "
            f"{{{rows}{{pm::attribute::grid_origin, 0, nullptr}}}}; "
            f"static constexpr unsigned count = {len(kernel.arguments)}, buffers = {buffers}; "
            f"static constexpr bool grouped = {grouped}; }};"
        )
    return "\n".join(lines) + "\n"


def _write_table(unit: Unit, asked: list[Instance], values: Mapping[str, Value | None]) -> str:
    makers = []
    for number, instance in enumerate(asked):
        scope = "".join(f"{name}::" for name in instance.declaration.scope)
        makers.append(f"::{scope}pm_make_{number}()")
    rows = []
    for c in unit.constants:
        kind = f"PM_{c.type.upper()}" if c.type in _VALUE_TYPES else "PM_OTHER"
        rows.append(f'{{"{c.name}", {c.index}, {kind}, {int(values[c.name] is not None)}}}')
    return (
        f'\n#line 1 "launch table"\n'
        f"static const pm_function_constant pm_constants[] = {{{', '.join([*rows, '{nullptr, 0, 0, 0}'])}}};\n"
        f'extern "C" __attribute__((visibility("default"))) const pm_library* pm_library_() __asm__("pm_library");\n'
        f"const pm_library* pm_library_() {{\n"
        f"  static const pm_kernel kernels[] = {{{', '.join(makers) or '{}'}}};\n"
        f"  static const pm_library library = {{PM_ABI_VERSION, {len(makers)}, kernels, {len(rows)}, pm_constants}};\n"
        f"  return &library;\n}}\n"
    )
