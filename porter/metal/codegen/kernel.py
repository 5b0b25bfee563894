"""The Metal text of a symbolic nest: a template over element types and the width of indices, and its instances."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.languages.identifiers import contains_identifier
from porter.loops.expressions import Buffer, Expr, Loop, Reduction, ReductionKind, find_reductions, walk
from porter.loops.fusion import LoopNest, Shape
from porter.loops.host_values import Named
from porter.loops.program import ArgumentBuffer, ResultBuffer, SymbolicNest, SymbolicProgram, Temporary
from porter.metal.codegen.canonicalize import find_moments
from porter.metal.codegen.elements import NO_SCALARS, Complex, Elements, TypedScalars, find_typed, read_elements
from porter.metal.codegen.kept_rows import (
    Alignment,
    KeptRows,
    Pass,
    find_adjacent,
    find_alignment,
    find_kept,
    write_kept,
)
from porter.metal.codegen.reduced import DIMENSIONS, find_strided, is_uniform, place_uniform
from porter.metal.codegen.scan import ScanNest, write_scan
from porter.metal.codegen.schedule import COUNT, NEIGHBORS, PLAIN, Family, Schedule, choose_schedule
from porter.metal.codegen.slices import (
    FUNCTIONS,
    LANE,
    POSITIONS,
    ROW,
    ROW_IN_GROUP,
    ROW_POSITIONS,
    SIMD_LANE,
    SLICES,
    WIDTH,
    Partial,
    may_slice,
    name_buffers,
    share_lanes,
    write_combination,
    write_slices,
)
from porter.metal.codegen.slices import INDEX as COMBINED_INDEX
from porter.metal.loop_spelling import COMPLEX_CAST, STATIC_CAST, Spelling, name_loops, runs_alone, write_nan
from porter.metal.loop_text import write_nest

# The sizes and strides of the dimensions that are kept and of those that are reduced, and how many there are of each.
STRIDES = (
    "constant long* kept_sizes", "constant long* kept_strides", "constant long* reduced_sizes",
    "constant long* reduced_strides", "constant uint2& ndim",
)  # fmt: skip
INDICES = ("int", "long")  # the widths of indices
_INDEX = "index_t"
_TRUTHS = (ReductionKind.ANY, ReductionKind.ALL)
# The simd functions of reductions: Metal Shading Language Specification, section 6.9 (SIMD-group functions).
_SIMD_FUNCTIONS: Mapping[ReductionKind, str] = {
    ReductionKind.SUM: "simd_sum", ReductionKind.MAX_NAN: "simd_max", ReductionKind.MIN_NAN: "simd_min",
    ReductionKind.ANY: "simd_any", ReductionKind.ALL: "simd_all",
}  # fmt: skip
_SIMD_SIZE = 4  # of the largest integers that simd functions take
_SIMDGROUP = "c10::metal::simdgroup_size"
# What the names of a schema are in kernels.
_USUAL = {"self": "input", "out": "output", "result": "output"}


@dataclass(frozen=True)
class KernelStyle:
    """What a fork has for kernels: whether threadgroup functions reduce, and whether bfloat needs a newer Metal.

    And what the function that launches them does with complex numbers, and whether the fork combines moments.
    """

    threadgroup_reductions: bool
    guards_bfloat: bool
    complex_numbers: Complex = Complex.UNKNOWN
    welford: bool = False
    complex_cast: str = COMPLEX_CAST  # what converts to element types that may be complex


@dataclass(frozen=True)
class NativeKernel:
    """A kernel: `buffers` and `numbers` are its arguments in order. `is_map` kernels have a thread for each row.

    Its text is the `template`, and the `registration` that instantiates it.
    """

    name: str
    template: str
    registration: str
    buffers: tuple[Buffer, ...]
    numbers: tuple[Named, ...]
    elements: Elements
    is_map: bool
    length: tuple[Loop, ...]  # the loops of the longest reduction or column
    schedule: Schedule
    uses_reductions: bool
    is_scan: bool = False
    partials: tuple[Partial, ...] = ()  # what threadgroups store of slices, which `combination` combines
    combination: NativeKernel | None = None
    scalars: TypedScalars = NO_SCALARS  # of the numbers
    inner: Named | None = None  # how many neighboring rows are adjacent in memory
    alignment: Alignment | None = None  # of rows whose neighbors are read at once

    @property
    def entries(self) -> dict[str, int]:
        """The names that host code appends types to, and how many; with that of the kernel which combines slices."""
        combined = {self.combination.name: len(self.combination.elements.parameters)} if self.combination else {}
        return {self.name: len(self.elements.parameters) + 1 + len(self.schedule.parameters)} | combined

    @property
    def source(self) -> str:
        """The text, with that of the kernel which combines slices."""
        text = f"{self.template}{self.registration}"
        return f"{text}\n{self.combination.source}" if self.combination else text


def write_kernel(
    program: SymbolicProgram, symbolic: SymbolicNest, name: str, outputs: Mapping[int, str], style: KernelStyle
) -> NativeKernel:
    """A kernel of a program; `outputs` are the names of results. Raises PTR345 and PTR373."""
    nest = symbolic.nest
    written = [store.buffer for store in nest.stores]
    buffers = (*written, *(each for each in nest.reads() if each not in written))
    elements = read_elements(program, buffers, style.complex_numbers)
    names = _name_buffers(program, buffers, outputs)
    numbers = tuple(find_numbers(nest))
    scalars = find_typed(nest, elements)
    shared: list[str] = []
    strided = find_strided(program)
    spelling = replace(_spell(elements, names, style, shared), scalars=scalars.numbers)
    if scalars.numbers:
        spelling = replace(spelling, value=partial(scalars.spell_value, elements))
    is_scan = isinstance(symbolic, ScanNest)
    is_map = not is_scan and (nest.shape is Shape.MAP or runs_alone(nest, spelling))
    moments = find_moments(nest) if style.welford else []
    is_sliced = not is_scan and may_slice(nest, moments, spelling)
    has_rows = not is_map and not is_sliced and not is_scan and style.threadgroup_reductions and not elements.has_long
    kept = find_kept(nest, spelling) if has_rows else None
    family = _find_family(is_map, is_sliced, strided is not None, kept)
    alignment = find_alignment(nest, kept) if kept and not is_uniform(program) else None
    schedule = choose_schedule(family, kept.count if kept else 1, NEIGHBORS if alignment else 1)
    if is_sliced or kept:
        shares = not kept or kept.inner is not None
        spelling = share_lanes(_spell(elements, names, style, shared, LANE, WIDTH), shares)
        spelling = replace(spelling, lane=LANE, width=WIDTH) if kept else spelling
    if strided:
        spelling = replace(spelling, place=_place_strided)
    loops = name_loops(nest, not is_map, {*names.values(), *(number.name for number in numbers)})
    if isinstance(symbolic, ScanNest) and len(nest.rows) == 1:
        loops |= {symbolic.along: "column"}
    spelling = replace(spelling, loops=loops)
    uniform = is_uniform(program)
    if uniform:
        spelling = replace(spelling, stored=place_uniform)
    partials: tuple[Partial, ...] = ()
    if isinstance(symbolic, ScanNest):
        body = write_scan(symbolic, spelling)
    elif is_sliced:
        body, partials = write_slices(nest, moments, spelling, schedule)
    elif kept:
        body = write_kept(nest, kept, spelling, schedule)
    else:
        one_a_thread = replace(spelling, row=f"{_INDEX}(tid)", lane="lane", width="32", join_extreme=None)
        body = write_nest(nest, one_a_thread if is_map else spelling)
    arguments = [*_buffer_arguments(buffers, written, elements, names)]
    arguments[len(written) : len(written)] = [
        f"device {each.type}* {buffer}" for each, buffer in name_buffers(partials).items()
    ]
    if strided:
        input_ = next(names[buffer] for buffer in buffers if program.roles[buffer] is strided)
        # behind the variable of the row
        body.insert(len(nest.rows), f"{input_} += strided_offset(row, kept_sizes, kept_strides, ndim.x);")
        arguments += STRIDES
    arguments += DIMENSIONS if uniform else ()
    arguments += (_number_argument(each, scalars) for each in numbers)
    arguments += [f"constant uint& {SLICES}"] if partials else []
    arguments += (
        POSITIONS
        if is_sliced
        else ROW_POSITIONS
        if kept
        else symbolic.positions
        if isinstance(symbolic, ScanNest)
        else _positions(is_map, style.threadgroup_reductions)
    )
    text = _write_template(name, elements, arguments, [*shared, *body], (_INDEX,), schedule)
    uses = register(name, elements, arguments, style, schedule=schedule)
    length = (symbolic.along,) if isinstance(symbolic, ScanNest) else _find_longest(nest)
    has_groups = bool(shared) or is_scan
    made = NativeKernel(name, text, uses, buffers, numbers, elements, is_map, length, schedule, has_groups, is_scan)
    inner = kept.inner if kept else None
    if isinstance(symbolic, ScanNest):
        inner = find_adjacent(nest, [Pass(symbolic.along, (nest.stores[0].value,))])
    made = replace(made, scalars=scalars, inner=inner, alignment=alignment)
    if not partials:
        return made
    return replace(made, partials=partials, combination=_write_combination(made, nest, partials, names, style))


def _find_family(is_map: bool, is_sliced: bool, is_strided: bool, kept: KeptRows | None) -> Family:
    if kept:
        return Family.KEPT_ROWS
    if is_sliced:
        return Family.STRIDED_SLICES if is_strided else Family.SLICES
    return Family.MAP if is_map else Family.ROWS


def _write_template(
    name: str,
    elements: Elements,
    arguments: Sequence[str],
    body: Sequence[str],
    others: Sequence[str] = (),
    schedule: Schedule = PLAIN,
) -> str:
    """A kernel as a template, if it has any parameters: types of elements, `others`, and the count of a schedule."""
    parameters = [f"typename {each}" for each in (*(each.name for each in elements.parameters), *others)]
    parameters += [f"int {each}" for each in schedule.parameters]
    head = f"template <{', '.join(parameters)}>\n" if parameters else ""
    lines = "".join(f"  {line}\n" for line in body)
    return f"{head}kernel void {name}({', '.join(arguments)}) {{\n{lines}}}\n\n"


def _write_combination(
    kernel: NativeKernel, nest: LoopNest, partials: Sequence[Partial], names: Mapping[Buffer, str], style: KernelStyle
) -> NativeKernel:
    """The kernel that combines what threadgroups stored of slices: a template over the types that it mentions."""
    name = f"{kernel.name}_combine"
    width = _SIMDGROUP if style.threadgroup_reductions else "32"
    spelling = _spell(kernel.elements, names, style, [], "lane", width, has_simdgroup=True)
    others = {*names.values(), *(number.name for number in kernel.numbers)}
    spelling = replace(spelling, index=COMBINED_INDEX, loops=name_loops(nest, True, others))
    body = write_combination(nest, partials, spelling)
    counts = [each.moments.mean.args[1] for each in partials if each.moments]
    needed = {
        *find_numbers(nest, {expr for each in partials for expr in each.bound}),
        *(each.attribute for each in walk(*counts)),
    }
    numbers = [each for each in kernel.numbers if each in needed]
    written = [store.buffer for store in nest.stores]
    arguments = [*_buffer_arguments(written, written, kernel.elements, names)]
    arguments += [f"constant {each.type}* {buffer}" for each, buffer in name_buffers(partials).items()]
    arguments += [_number_argument(each, NO_SCALARS, COMBINED_INDEX) for each in numbers]
    arguments += [f"constant uint& {SLICES}", *([ROW] if nest.rows else []), SIMD_LANE]
    elements = _choose_parameters(kernel.elements, " ".join((*arguments, *body)))
    text = _write_template(name, elements, arguments, body)
    uses = register(name, elements, arguments, style, has_index=False) if elements.parameters else ""
    return NativeKernel(name, text, uses, tuple(written), tuple(numbers), elements, False, (), PLAIN, True)


def _choose_parameters(elements: Elements, text: str) -> Elements:
    """The element types with those parameters that a text mentions."""
    chosen = [i for i, each in enumerate(elements.parameters) if contains_identifier(text, each.name)]
    instances = dict.fromkeys(tuple(instance[i] for i in chosen) for instance in elements.instances)
    return replace(elements, parameters=tuple(elements.parameters[i] for i in chosen), instances=tuple(instances))


def _place_strided(_buffer: Buffer, index: str) -> str:
    return f"strided_offset({index}, reduced_sizes, reduced_strides, {COUNT} ? 1 : ndim.y)"


def find_numbers(nest: LoopNest, bound: Collection[Expr] = ()) -> Iterator[Named]:
    """The numbers that a nest takes, in the order of first use, each once; none for values that are `bound`."""
    seen: dict[Named, None] = {}
    for loop in nest.rows[1:]:
        _note(loop, seen)
    for store in nest.stores:
        if store.guard is not None:
            seen[store.guard] = None
        for loop in store.loops:
            if loop not in nest.rows:
                _note(loop, seen)
        values = walk(store.value, store.place, enters=lambda each: each.args if each not in bound else ())
        for each in (each for each in values if each not in bound):
            for loop in each.attribute.loops if isinstance(each.attribute, Reduction) else ():
                _note(loop, seen)
            if isinstance(each.attribute, Named):
                seen[each.attribute] = None
    yield from seen


def _note(loop: Loop, seen: dict[Named, None]) -> None:
    if loop.number is not None:
        seen[loop.number] = None


def name_temporary(program: SymbolicProgram, buffer: Buffer) -> str:
    """What kernels and host code call memory between kernels."""
    temporaries = [each for each, role in program.roles.items() if isinstance(role, Temporary)]
    return "partial" if len(temporaries) == 1 else f"partial{temporaries.index(buffer) + 1}"


def _name_buffers(program: SymbolicProgram, buffers: Sequence[Buffer], outputs: Mapping[int, str]) -> dict[Buffer, str]:
    names: dict[Buffer, str] = {}
    for buffer in buffers:
        match program.roles[buffer]:
            case ArgumentBuffer(name):
                wanted = name.replace("[", "_").replace("]", "")
            case ResultBuffer(index):
                wanted = outputs[index].removesuffix("_t")
                wanted = "output" if wanted in ("", "self") else wanted
            case _:
                wanted = name_temporary(program, buffer)
        usual = _USUAL.get(wanted, wanted.rstrip("_"))
        names[buffer] = usual if usual not in names.values() else f"{wanted}_{len(names)}"
    return names


def _spell(
    elements: Elements,
    names: Mapping[Buffer, str],
    style: KernelStyle,
    shared: list[str],
    lane: str = "tid",
    width: str = "group_size",
    has_simdgroup: bool = False,
) -> Spelling:
    """The words of a kernel for whose rows threadgroups combine reductions, or simdgroups alone."""

    def join(kind: ReductionKind, dtype: DType, name: str, type_: str) -> tuple[str, ...] | None:
        if not style.threadgroup_reductions:
            is_wide = any(each[0].kind is Kind.INTEGRAL and each[0].size > _SIMD_SIZE for each in elements.instances)
            plain = None if is_wide and kind not in _TRUTHS else join_simdgroup(kind, dtype, name, type_)
            if plain:
                return plain
        if kind not in FUNCTIONS or (dtype.kind is Kind.BOOL and kind not in _TRUTHS):
            return None
        return (reduce(kind, name, type_, name),)

    def reduce(kind: ReductionKind, name: str, type_: str, value: str) -> str:
        own_part = f" + {ROW_IN_GROUP}" if lane == LANE else ""  # a threadgroup has several rows of one simdgroup each
        if not style.threadgroup_reductions:
            return f"{name} = c10::metal::simdgroup_{FUNCTIONS[kind]}({value});"
        if has_simdgroup:
            return f"{name} = c10::metal::simd_{FUNCTIONS[kind]}({value});"
        declared = f"threadgroup {type_} shared_{name}[{_SIMDGROUP}];"
        if declared not in shared and name:
            shared.append(declared)
        return f"{name} = c10::metal::threadgroup_{FUNCTIONS[kind]}(shared_{name}{own_part}, {value}, {lane}, {width});"

    def join_extreme(kind: ReductionKind, name: str, index: str, extreme: str, type_: str) -> tuple[str, ...]:
        over = ReductionKind.MAX_NAN if kind is ReductionKind.ARG_MAX else ReductionKind.MIN_NAN
        found = f"{extreme} == row_{extreme}"
        if elements.has_floating:
            found = f"{found} || {write_nan(extreme, spelling)}"
        value = f"{found} ? {name} : ::metal::numeric_limits<{index}>::max()"
        return (
            f"const {type_} {reduce(over, f'row_{extreme}', type_, extreme)}",
            reduce(ReductionKind.MIN_NAN, name, index, value),
            f"{extreme} = row_{extreme};",
        )

    spelling = Spelling(
        buffers=names,
        elements=elements.types,
        value=elements.value,
        join=join,
        index=_INDEX,
        row="group",
        lane=lane,
        width=width if style.threadgroup_reductions else "32",
        join_extreme=join_extreme,
        has_complex=elements.has_complex,
        cast=style.complex_cast if elements.has_complex else STATIC_CAST,
        is_mixed=elements.has_floating and not elements.all_floating,
        widen=elements.widen,
    )
    return spelling


def _positions(is_map: bool, has_groups: bool) -> list[str]:
    if is_map:
        return ["uint tid [[thread_position_in_grid]]"]
    lanes = ["uint group [[threadgroup_position_in_grid]]", "uint tid [[thread_position_in_threadgroup]]"]
    return [*lanes, "uint group_size [[threads_per_threadgroup]]"] if has_groups else lanes


def _buffer_arguments(
    buffers: Sequence[Buffer], written: Sequence[Buffer], elements: Elements, names: Mapping[Buffer, str]
) -> Iterator[str]:
    for buffer in buffers:
        space = "device" if buffer in written else "constant"
        yield f"{space} {elements.types[buffer]}* {names[buffer]}"


def _number_argument(number: Named, scalars: TypedScalars, index: str = _INDEX) -> str:
    type_ = {bool: "bool", float: "float"}.get(type(number.example), index)
    type_ = scalars.type if number in scalars.numbers else type_
    return f"constant {type_}& {number.name}"


def register(
    name: str,
    elements: Elements,
    arguments: Sequence[str],
    style: KernelStyle,
    has_index: bool = True,
    schedule: Schedule = PLAIN,
) -> str:
    """The macro that instantiates a kernel for one choice of types and what its index allows, and its uses."""
    macro = f"REGISTER_{name.upper()}"
    types = [f"DTYPE{i or ''}" for i, _ in enumerate(elements.parameters)]
    counts = ("COUNT", "WIDTH")[: len(schedule.parameters)]
    chosen = (*types, *(("INDEX",) if has_index else ()), *counts)
    made = "\n".join(arguments)
    for old, new in zip((*(each.name for each in elements.parameters), _INDEX), (*types, "INDEX"), strict=True):
        made = re.sub(rf"\b{old}(>*)([*&]) ", rf"{new}\1 \2 ", made)
    spelled = '"'.join(f'_" #{each} ' for each in chosen)
    inner, listed = f"{macro}_" if has_index else macro, made.replace("\n", ", ")
    text = (
        f"#define {inner}({', '.join(chosen)}) \\\n"
        f'  template [[host_name("{name}{spelled.rstrip()})]] kernel void {name}<{", ".join(chosen)}>({listed})\n\n'
    )
    if has_index:
        both = "; \\\n  ".join(f"{inner}({', '.join((*types, index))})" for index in list_indices(schedule))
        text += f"#define {macro}({', '.join(types)}) \\\n  {both}\n\n"
    plain = [each for each in elements.instances if dtypes.BFLOAT not in each or not style.guards_bfloat]
    text += "".join(f"{macro}({', '.join(dtype.metal for dtype in each)});\n" for each in plain)
    guarded = [each for each in elements.instances if each not in plain]
    if guarded:
        uses = "".join(f"{macro}({', '.join(dtype.metal for dtype in each)});\n" for each in guarded)
        text += f"#if __METAL_VERSION__ >= 310\n{uses}#endif\n"
    return text


def list_indices(schedule: Schedule) -> list[str]:
    """The widths of indices that a kernel is instantiated for, each with its counts."""
    if not schedule.counts:
        return list(INDICES)
    instances = [", ".join(map(str, each)) for each in schedule.list_instances()]
    return [*(f"{INDICES[0]}, {each}" for each in instances), f"{INDICES[1]}, {instances[0]}"]


def _find_longest(nest: LoopNest) -> tuple[Loop, ...]:
    """The loops that the threads of a row share: those of its first reduction, else of its first column."""
    reductions: list[Expr] = [each for store in nest.stores for each in find_reductions(store.value)]
    if reductions:
        return reductions[0].reduction.loops
    return tuple(each for each in nest.stores[0].loops if each not in nest.rows)


def join_simdgroup(kind: ReductionKind, dtype: DType, name: str, _type: str) -> tuple[str, ...] | None:
    """How the lanes of a simdgroup combine what each has reduced; None where no simd function does."""
    if kind not in _SIMD_FUNCTIONS or dtype.size > _SIMD_SIZE:
        return None
    joined = f"{_SIMD_FUNCTIONS[kind]}({name})"
    keeps_nan = kind in (ReductionKind.MAX_NAN, ReductionKind.MIN_NAN) and dtype.kind is Kind.FLOATING
    return (f"{name} = {f'simd_any(isnan({name})) ? NAN : {joined}' if keeps_nan else joined};",)
