"""The launch table of a compiled library: each kernel's description and entry point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aten_overlay.errors import OverlayError
from aten_overlay.metal.source.arguments import Argument
from aten_overlay.metal.source.declarations import (
    Instance,
    Kernel,
    Unit,
    find_definition,
    kernel_arguments,
    thread_limit,
)
from aten_overlay.metal.source.expressions import NotConstant, evaluate
from aten_overlay.metal.source.lexer import Source
from aten_overlay.metal.source.reach import shares_state, synchronizes
from aten_overlay.metal.source.spaces import ERASED
from aten_overlay.metal.source.syntax import Declaration

Value = bool | int | float | tuple[int | float, ...]  # several of a vector
ABSENT = "absent"
UNGROUPED = frozenset(
    ("buffer", "texture", "sampler", ABSENT, "thread_position_in_grid", "threads_per_grid", "grid_size", "grid_origin",
     "threads_per_simdgroup")
)  # fmt: skip
_FIRST = {"texture": "PM_FIRST_TEXTURE", "sampler": "PM_FIRST_SAMPLER"}
_COUNTS = {"buffer": 0, "texture": 32, "sampler": 160}
_ENDS = {"texture": 160, "sampler": 176}
_VALUE_TYPES = ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "bfloat")


@dataclass(frozen=True)
class Row:
    """A kernel of the table, worked out: `arguments` has those of false conditions as ABSENT, `streams` the names of
    buffers to ask of memory ahead of time."""

    instance: Instance
    kernel: Kernel
    arguments: tuple[Argument, ...]
    synchronizes: bool
    shares: bool
    limit: int
    streams: frozenset[str] = frozenset()


def make_row(
    unit: Unit,
    instance: Instance,
    values: Mapping[str, Value | None],
    one_by_one: bool = False,
    asks_ahead: bool = True,
) -> Row:
    """The row of a kernel, given the function constants' values; its threads run `one_by_one` if so asked. It
    `asks_ahead` for memory where that may help.

    Raises PTR103 or PTR109.
    """
    kernel = find_definition(unit, instance)
    arguments = tuple(_choose(unit, a, values) for a in kernel_arguments(unit, kernel))
    limit = thread_limit(unit, kernel, instance)
    waits, shares = (one_by_one or each(unit, instance) for each in (synchronizes, shares_state))
    streams = find_streams(unit.source, kernel.declaration, arguments) if asks_ahead and not waits else frozenset()
    return Row(instance, kernel, arguments, waits, shares, limit, streams)


def _choose(unit: Unit, argument: Argument, values: Mapping[str, Value | None]) -> Argument:
    start, end = argument.only_if
    if not end:
        return argument

    def lookup(name: str) -> int | None:
        if name in values:
            value = values[name]
            return None if value is None or isinstance(value, tuple) else int(value)
        first, last = unit.values.get(name, (0, 0))
        return _condition(unit, first, last) if last else None

    def _condition(unit: Unit, first: int, last: int) -> int:
        tokens = list(unit.source.tokens[first:last])
        while "is_function_constant_defined" in tokens:
            at = tokens.index("is_function_constant_defined")
            tokens[at : at + 4] = ["0" if values.get(tokens[at + 2]) is None else "1"]
        return evaluate(tokens, lambda name: (lookup(name) or 0) if name in values else lookup(name))

    try:
        exists = _condition(unit, start, end)
    except NotConstant:
        raise OverlayError(
            "PTR103",
            f"whether parameter `{argument.name}` exists depends on more than function constants",
            unit.source.place(start),
            "Use a function constant, or a constant computed from some.",
        ) from None
    return argument if exists else Argument(argument.name, ABSENT, 0, argument.type)


def write_prologue(rows: list[Row]) -> str:
    """What comes before the source: a Spec of each kernel's parameters."""
    lines = [
        'extern "C" __attribute__((visibility("hidden"))) const char pm_image_begin __asm__("__ehdr_start");',
        'extern "C" __attribute__((visibility("hidden"))) const char pm_image_end __asm__("_end");',
        'extern "C" __attribute__((weak, visibility("hidden"))) const unsigned pm_updates = 0;',  # or 1: see updates.py
    ]
    written: dict[str, int] = {}
    for number, row in enumerate(rows):
        parameters = "".join(_write_parameter(row, argument) for argument in row.arguments)
        if row.shares:
            lines.append(f"PM_SHARES({number})")
        buffers = max((_last_binding(a) for a in row.arguments if a.kind in _COUNTS), default=0)
        members = (
            "static constexpr pm::parameter parameters[] = "
            f"{{{parameters}{{pm::attribute::grid_origin, 0, nullptr}}}}; "
            f"static constexpr unsigned count = {len(row.arguments)}, buffers = {buffers};"
        )
        known = written.setdefault(members, number)
        spec = f"pm_spec_{number}"
        lines.append(f"struct {spec} {{ {members} }};" if known == number else f"using {spec} = pm_spec_{known};")
    return "\n".join(lines) + "\n"


def _last_binding(argument: Argument) -> int:
    """One more than the last binding of an argument, or than there are of its kind for an array, whose size is known to
    the compiler."""
    if "array <" in argument.type and argument.kind in _ENDS:
        return _ENDS[argument.kind]
    return _COUNTS[argument.kind] + argument.index + 1


def _write_parameter(row: Row, argument: Argument) -> str:
    streamed = ", true" if argument.name in row.streams else ""
    first = _FIRST.get(argument.kind)
    index = f"{first} + {argument.index}" if first else str(argument.index)
    return f'{{pm::attribute::{argument.kind}, {index}, "{argument.name}"{streamed}}}, '


def write_entry(row: Row, number: int, signature: str, flags: str) -> str:
    """The function that makes a kernel's entry. It is placed where the kernel's own names are visible."""
    sync = "true" if row.synchronizes else "false"
    function = clean(row.instance.function)
    source = f"PM_LANE_SOURCE({number}, PM_TYPE({signature}), PM_TYPE(&{function})) " if row.shares else ""
    size = f"pm_static_bytes_{number}" if row.shares else "0"
    return (
        f"{source}static pm_kernel pm_make_{number}() {{ using Spec = ::pm_spec_{number}; using S = {signature}; "
        f"constexpr S function = &{function}; "
        f"static const pm_entry entry = {{{_write_forms(row, number)}, &pm_image_begin, &pm_image_end, {flags}, "
        f"pm::described<Spec, S>::narrow, &pm_updates}}; "
        f'return {{"{row.instance.host_name}", pm::described<Spec, S>::arguments(), pm::described<Spec, S>::count, '
        f"{sync}, {size}, {row.limit}, reinterpret_cast<int (*)(const pm_launch*)>(&pm_run), &entry}}; }}"
    )


def _write_forms(row: Row, number: int) -> str:
    """The functions that enter a kernel: those of a lane and of lanes in lockstep, of rows, of threadgroups."""
    if row.synchronizes:
        lanes = f"&pm_lane_source_{number}, &pm_lockstep_{number}" if row.shares else "nullptr, nullptr"
        return f"{lanes}, nullptr, nullptr"
    if any(a.kind not in UNGROUPED for a in row.arguments):
        return "nullptr, nullptr, nullptr, &pm::kernel<Spec, S, function>::groups"
    return "nullptr, nullptr, &pm::kernel<Spec, S, function>::rows, nullptr"


def clean(text: str) -> str:
    """A function's name and template arguments without what only Metal knows."""
    words = (w for w in text.split(" ") if w not in ERASED)
    return " ".join("const" if w == "constant" else w for w in words)


def write_table(unit: Unit, rows: list[Row], values: Mapping[str, Value | None]) -> str:
    """What comes after the source: the table itself, made when the library is loaded.

    Made by the first call that asks, it would need a guard of libstdc++, which takes longer to link with than all else.
    """
    makers = []
    for number, row in enumerate(rows):
        scope = "".join(f"{name}::" for name in row.instance.declaration.scope)
        makers.append(f"::{scope}pm_make_{number}()")
    constants = []
    for c in unit.constants:
        kind = f"PM_{c.type.upper()}" if c.type in _VALUE_TYPES else "PM_OTHER"
        constants.append(f'{{"{c.name}", {c.index}, {kind}, {int(values[c.name] is not None)}}}')
    return (
        f'\n#line 1 "launch table"\n'
        f"static const pm_function_constant pm_constants[] = {{{', '.join([*constants, '{nullptr, 0, 0, 0}'])}}};\n"
        f'extern "C" __attribute__((visibility("default"))) const pm_library* pm_library_() __asm__("pm_library");\n'
        f"static const pm_kernel pm_kernels[] = {{{', '.join(makers) or '{}'}}};\n"
        f"const pm_library* pm_library_() {{\n"
        f"  static const pm_library library = {{PM_ABI_VERSION, {len(makers)}, pm_kernels, {len(constants)}, "
        f"pm_constants}};\n"
        f"  return &library;\n}}\n"
    )


_POSITION = "thread_position_in_grid"


def find_streams(source: Source, declaration: Declaration, arguments: Iterable[Argument]) -> frozenset[str]:
    """The names of the buffers subscripted by the thread's position, or by a variable that begins as it.

    What they need next can be asked of memory ahead of time. A buffer missed or found by mistake changes no result.
    """
    given = tuple(arguments)
    position = next((a for a in given if a.kind == _POSITION and a.name), None)
    if position is None or declaration.body < 0:
        return frozenset()
    is_vector = position.type.rstrip()[-1:].isdigit()
    index = (position.name, ".", "x") if is_vector else (position.name,)
    forms = {index, *((name,) for name in _copies(source, declaration, index))}
    buffers = {a.name for a in given if a.kind == "buffer"}
    return frozenset(
        source.tokens[i]
        for i in range(declaration.body, declaration.end - 1)
        if source.tokens[i] in buffers
        and source.tokens[i + 1] == "["
        and tuple(source.tokens[i + 2 : source.match[i + 1]]) in forms
    )


def _copies(source: Source, declaration: Declaration, index: tuple[str, ...]) -> Iterable[str]:
    """The names in `NAME = index;`."""
    tokens, length = source.tokens, len(index)
    for i in range(declaration.body + 1, declaration.end - length - 1):
        if tokens[i] == "=" and tuple(tokens[i + 1 : i + 1 + length]) == index and tokens[i + 1 + length] == ";":
            yield tokens[i - 1]
