"""An NVIDIA GPU as a target of the front end: threadgroup storage, and the entries of a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from aten_overlay.errors import OverlayError
from aten_overlay.metal.source.arguments import Argument
from aten_overlay.metal.source.declarations import Unit
from aten_overlay.metal.source.table import ABSENT, UNGROUPED, Row, Value, clean
from aten_overlay.metal.source.targets import COMMON_FLAGS, Target

GRID, FLAT, SEVERAL = "grid", "flat", "several"
FORMS = (GRID, FLAT, SEVERAL)
INFO = "pm_info_"  # of kernel n: what module.py reads back
_BY_ITS_KIND = -1  # of an argument: a pointer as it is, a reference by value
_FLAGS = ("-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", *COMMON_FLAGS)
_FOUND = {GRID: "if (!t.find()) return;", FLAT: "if (!t.find_flat()) return;"}


@dataclass(frozen=True)
class CudaOptions:
    """How to compile for a GPU.

    `arch` is the oldest that the code runs on; `fast` takes Metal's fast math, `tensor_cores` those for simdgroup
    matrices of 16 bits; `forms` are the entries that a kernel gets, of FORMS; `threads` are those of a threadgroup, if
    known; `passing` has for buffers the bytes that are passed by value in their place, or 0 for a pointer; `lines`
    tells tools of lines in the source; `scheduled` takes the order of threadgroups from the host, and notes barriers
    that threads miss (pm/cuda/schedule.h): with the form "grid" alone.
    """

    arch: str = "sm_80"
    fast: bool = False
    tensor_cores: bool = False
    forms: tuple[str, ...] = FORMS
    threads: int = 0
    passing: tuple[tuple[int, int], ...] = ()
    lines: bool = False
    scheduled: bool = False


DEFAULT = CudaOptions()


def make_target(names: Sequence[str], options: CudaOptions) -> Target:
    """The target of a module with kernels `names`."""
    entry = partial(_write_entry, symbols=name_symbols(names), options=options)
    return Target("cuda", "PM_SHARED", _FLAGS, _write_nothing_before, entry, _write_nothing_after)


def name_symbols(names: Sequence[str]) -> tuple[str, ...]:
    """An identifier for each kernel, of which no two are the same."""
    symbols: list[str] = []
    for number, name in enumerate(names):
        plain = re.sub(r"\W", "_", name)
        symbols.append(plain if plain not in symbols else f"{plain}_{number}")
    return tuple(symbols)


def stands_alone(row: Row) -> bool:
    """Whether a thread of the kernel may run several of the grid's positions: they share nothing, and do not ask where
    in a threadgroup they are; and whether that may help, because neighbors read or write neighboring elements."""
    return bool(row.streams) and not row.shares and all(a.kind in UNGROUPED for a in row.arguments)


def _write_nothing_before(_: list[Row]) -> str:
    return ""


def _write_nothing_after(_: Unit, __: list[Row], ___: Mapping[str, Value | None]) -> str:
    return ""


def _write_entry(row: Row, number: int, signature: str, symbols: Sequence[str], options: CudaOptions) -> str:
    """The entries of a kernel in each form, and what is read back of it. Raises PTR381."""
    _refuse_textures(row)
    s = f"pm_s_{number}"
    passing = dict(options.passing)
    limit = min(options.threads or row.limit, row.limit)  # one threadgroup has all registers, if it needs them
    call = f"constexpr {s} f = &{clean(row.instance.function)};"
    text = f"using {s} = {signature}; {_write_info(row, number, s)}"
    for form in options.forms:
        if form == SEVERAL and not stands_alone(row):
            continue
        parameters = "".join(_write_parameter(a, i, s, passing, form) for i, a in enumerate(row.arguments))
        given = ", ".join(_write_given(a, i, s, passing, form) for i, a in enumerate(row.arguments))
        body = _write_several(given, number) if form == SEVERAL else f"{_FOUND[form]} f({given});"
        text += (
            f' extern "C" __attribute__((global, launch_bounds({limit}, 1))) void {symbols[number]}__{form}('
            f"const __attribute__((grid_constant)) pm::dims d{parameters}) {{ {call} pm::place t(d); {body} }}"
        )
    return text


def _refuse_textures(row: Row) -> None:
    for argument in row.arguments:
        if argument.kind in ("texture", "sampler"):
            what = f"kernel `{row.instance.host_name}` has {argument.kind} `{argument.name}`: an NVIDIA GPU has none"
            raise OverlayError("PTR381", what, hint="Run it on the host, or read a buffer instead.")


def _write_info(row: Row, number: int, s: str) -> str:
    """An array of the positions that a thread may have, and three numbers of each argument that is bound."""
    streamed = [
        f"pm::positions_of<pm::argument<{s}, {i}>>()" for i, a in enumerate(row.arguments) if a.name in row.streams
    ]
    positions = "1u"
    for each in streamed if stands_alone(row) else ():
        positions = f"pm::larger({each}, {positions})"
    numbers = [
        f"pm::{what}<pm::argument<{s}, {i}>>"
        for i, a in enumerate(row.arguments)
        if a.kind in ("buffer", "threadgroup")
        for what in ("element_size", "element_alignment", "is_writable")
    ]
    return (
        f"constexpr unsigned pm_positions_{number} = {positions}; "
        f'extern "C" __attribute__((device, used)) const unsigned {INFO}{number}[] = '
        f"{{{', '.join([f'pm_positions_{number}', *numbers])}}};"
    )


def _bytes(argument: Argument, passing: Mapping[int, int]) -> int:
    return passing.get(argument.index, _BY_ITS_KIND)


def _write_parameter(argument: Argument, i: int, s: str, passing: Mapping[int, int], form: str) -> str:
    if argument.kind == "threadgroup":
        return f", unsigned p{i}"
    if argument.kind != "buffer":
        return ""
    size = _bytes(argument, passing)
    kind = f"pm::passed<pm::argument<{s}, {i}>, {size}>::type"
    is_pointer = "*" in argument.type and size <= 0
    restrict = " __restrict__" if form == SEVERAL and is_pointer else ""
    return f", const __attribute__((grid_constant)) {kind}{restrict} p{i}"


def _write_given(argument: Argument, i: int, s: str, passing: Mapping[int, int], form: str) -> str:
    kind = f"pm::argument<{s}, {i}>"
    if argument.kind == "buffer":
        give = "template give_aligned<16>" if form == SEVERAL else "give"
        return f"pm::passed<{kind}, {_bytes(argument, passing)}>::{give}(p{i})"
    if argument.kind == "threadgroup":
        return f"pm::in_threadgroup<{kind}>(p{i})"
    if argument.kind == ABSENT:
        return f"pm::none<{kind}>::make()"
    return f"pm::position<pm::attribute::{argument.kind}, pm::position_type<{s}, {i}>>(t)"


def _write_several(given: str, number: int) -> str:
    """A thread's positions: without a test of each, but at the end of the grid."""
    count = f"pm_positions_{number}"
    return (
        f"const unsigned first = t.find_first({count}), last = d.grid[0]; if (first >= last) return; "
        f'if (last - first >= {count}) {{ _Pragma("unroll") for (unsigned k = 0; k < {count}; ++k) '
        f"{{ t.position[0] = first + k; f({given}); }} }} "
        f'else {{ _Pragma("nounroll") for (unsigned x = first; x < last; ++x) {{ t.position[0] = x; f({given}); }} }}'
    )
