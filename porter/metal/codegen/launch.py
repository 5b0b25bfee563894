"""The host code that launches kernels, as the fork's own host files have it.

Source: ATen/native/mps/OperationUtils.h (`mtl_setArgs`, `mtl_dispatch1DJob`), ATen/mps/MPSProfiler.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from porter.languages.identifiers import find_words, is_word
from porter.loops.expressions import Buffer, Expr, Loop, Op, walk
from porter.loops.host_values import Given, HostValue, Named, Scalar, substitute
from porter.loops.optional import find_flag_of
from porter.loops.program import ArgumentBuffer, ResultBuffer, SymbolicProgram, Temporary
from porter.metal.codegen.checks import (
    find_given,
    list_converted,
    write_aliases,
    write_conversion_of,
    write_required_checks,
    write_type_check,
    write_type_checks,
)
from porter.metal.codegen.elements import ACCUMULATE_TYPE, write_typed
from porter.metal.codegen.host_code import INDEX_TYPE, Block, Encode, Launch, Line, Node, declare, run_on_stream
from porter.metal.codegen.host_values import ANY, OPERAND, Names, list_chosen, list_headers, write_fits, write_value
from porter.metal.codegen.kept_code import is_call
from porter.metal.codegen.kernel import NativeKernel, name_temporary
from porter.metal.codegen.reduced import (
    REDUCED,
    StridedArgument,
    find_strided,
    is_uniform,
    list_passed,
    list_reduced,
    write_dims,
    write_strides,
)
from porter.metal.codegen.result_types import (
    Conversion,
    find_conversion,
    find_fixed_results,
    find_long_of_bools,
    write_conversion,
)
from porter.metal.codegen.scan import ScanNest, write_scan_dispatch
from porter.metal.codegen.schedule import ROW_HEADER, ROW_VARIABLES, Family, RowLaunch
from porter.metal.codegen.slice_launch import HEADERS as SLICE_HEADERS
from porter.metal.codegen.slice_launch import LARGEST, SlicedRows, write_combination, write_dispatch, write_threads
from porter.metal.expression import Binding, Printed

PROFILER = "ATen/mps/MPSProfiler.h"
INDEX_MATH = "ATen/native/CanUse32BitIndexMath.h"
DIMS = "ATen/core/DimVector.h"
REDUCE_UTILS = "ATen/native/ReduceOpsUtils.h"
_PASSED = ("int", "SymInt", "float")  # the types of arguments that a kernel is passed as they are


def write_launch(
    program: SymbolicProgram,
    kernels: Sequence[NativeKernel],
    rows: Sequence[HostValue],
    names: Names,
    has_long: bool,
) -> Launch:
    """Launches the kernels of a program, in order. Raises PTR371 and PTR372.

    With `has_long`, a case of the function has 64-bit integers.
    """
    numbers = tuple(dict.fromkeys(number for kernel in kernels for number in kernel.numbers))
    prefixes = {kernel.name: _name_prefix(program, at, kernel, names) for at, kernel in enumerate(kernels)}
    is_sliced_alone = sum(bool(kernel.partials) for kernel in kernels) == 1
    writer = _Writer(program, names, numbers, has_long, prefixes, is_sliced_alone, locals={**names.code.locals})
    fixed = {result: f"ScalarType::{dtype.aten}" for result, dtype in find_fixed_results(program, kernels, names)}
    chosen = {result: writer.name_type(result) for result in find_long_of_bools(program, kernels, names)}
    writer = replace(writer, stored={**fixed, **chosen}, chosen=frozenset(chosen))
    conversion = find_conversion(program, kernels, names)
    if conversion:
        writer = replace(writer, conversion=conversion)
    strides = find_strided(program)
    if strides:
        writer = replace(writer, taken=tuple(n for n in writer.taken if n.value not in list_reduced(program)))
    nodes = [*writer.required(), *writer.flags(kernels), *writer.tensors(kernels), *writer.strides()]
    if strides:  # the length of a row is among these, else among the numbers
        nodes += [*writer.threads(kernels, rows), *writer.numbers(kernels)]
    else:
        nodes += [*writer.numbers(kernels), *writer.threads(kernels, rows)]
    nodes += [*writer.encode(kernels, rows), *writer.copy_back(kernels)]
    headers = {PROFILER, INDEX_MATH}.union(*(list_headers(each.value) for each in writer.taken))
    headers |= {DIMS, REDUCE_UTILS} if strides or is_uniform(program) else set()
    headers |= {ACCUMULATE_TYPE} if any(each.scalars.is_wide and each.scalars.numbers for each in kernels) else set()
    headers |= {ROW_HEADER} if any(each.schedule.family is Family.KEPT_ROWS for each in kernels) else set()
    headers |= set(SLICE_HEADERS) if any(each.partials for each in kernels) else set()
    headers |= {ROW_HEADER} if any(map(writer.rounds_groups, kernels)) else set()
    return Launch(tuple(nodes), frozenset(headers.union(*(list_headers(each) for each in rows))))


def list_looked_up(program: SymbolicProgram) -> set[str]:
    """The tensors that kernels read only where elements of another allow it, at an index that is such an element.

    One without elements is to be launched on too: a loss that ignores all targets reads nothing of no classes. It gets
    memory, as there is none to bind.
    """
    roots = [root for store in program.stores for root in (store.value, store.place)]
    tests = [each.args[0] for each in walk(*roots) if _asks_elements(each)]
    always = walk(*roots, *tests, enters=lambda each: each.args and not _asks_elements(each))
    return set(_list_gathered(program, walk(*roots))) - set(_list_gathered(program, always))


def _asks_elements(value: Expr) -> bool:
    return value.op is Op.SELECT and any(each.op in (Op.LOAD, Op.READ_INDEX) for each in walk(value.args[0]))


def _list_gathered(program: SymbolicProgram, values: Iterable[Expr]) -> Iterator[str]:
    for value in values:
        role = program.roles.get(value.attribute) if isinstance(value.attribute, Buffer) else None
        is_gathered = any(each.op is Op.READ_INDEX for each in walk(*value.args))
        if value.op is Op.LOAD and isinstance(role, ArgumentBuffer) and is_gathered:
            yield role.name


@dataclass(frozen=True)
class _Writer:
    program: SymbolicProgram
    names: Names
    taken: tuple[Named, ...]
    has_long: bool
    prefixes: Mapping[str, str]  # of the variables of kernels, by their names
    is_sliced_alone: bool  # whether only one kernel has slices of rows
    conversion: Conversion | None = None
    stored: Mapping[str, str] = field(default_factory=dict)  # the types of results that may be given in others
    locals: dict[str, str] = field(default_factory=dict)  # the function's variables, and those for numbers, by values
    chosen: frozenset[str] = frozenset()  # those of them whose type depends on the one that is given

    def required(self) -> Iterator[Node]:
        """Checks of optional tensors that kernels read in every call."""
        yield from map(Line, write_required_checks(self.program, self.names, self._value))

    def flags(self, kernels: Sequence[NativeKernel]) -> Iterator[Node]:
        """Variables for whether tensors are given, and results asked for."""
        tensors = [*self._read(kernels), *self._written(kernels)]
        found = [each for tensor in tensors if (each := find_flag_of(self.program, tensor))]
        for flag in dict.fromkeys(found):
            name, value = self._number(flag), self._value(flag.value)
            if name != value:
                yield declare(name, value, "bool")

    def _flag(self, tensor: str) -> str:
        """The variable that says whether a tensor is given; nothing for one that always is."""
        flag = find_flag_of(self.program, tensor)
        return self._number(flag) if flag else ""

    def _spare(self) -> str:
        """What is bound in the place of a tensor that kernels do not access: of their own type, if there is such."""
        names = [role.name for role in self.program.roles.values() if isinstance(role, ArgumentBuffer)]
        always = [name for name in names if not self._flag(name)]
        return self._given(min(always, key=lambda name: name != self.program.key))

    def _variable(self, tensor: str) -> str:
        return self.names.variable(tensor)

    def _plain(self, tensor: str) -> str:
        """The name of a tensor's contiguous form."""
        return self._name_form(tensor, ("contiguous", "dense", "whole"))

    def _name_form(self, tensor: str, suffixes: Sequence[str]) -> str:
        variable = "_".join(find_words(self._variable(tensor))).strip("_")
        names = (f"{word}_{suffix}" for word in (_shorten(variable), variable) for suffix in suffixes)
        return next(filter(self.names.is_free, names))

    def name_type(self, result: str) -> str:
        """The variable for the type that kernels store a result in."""
        return self._name_form(result, ("type", "stored_type"))

    def _given(self, tensor: str) -> str:
        """A tensor that kernels read, in the form that they do."""
        strided = find_strided(self.program)
        return self._tensor(tensor) if strided and strided.name == tensor else self._plain(tensor)

    def _read(self, kernels: Sequence[NativeKernel]) -> list[str]:
        """The tensors that kernels read, by their names in the schema."""
        roles = [self.program.roles[buffer] for kernel in kernels for buffer in kernel.buffers]
        return list(dict.fromkeys(role.name for role in roles if isinstance(role, ArgumentBuffer)))

    def _written(self, kernels: Sequence[NativeKernel]) -> list[str]:
        roles = [self.program.roles[buffer] for kernel in kernels for buffer in kernel.buffers]
        return list(dict.fromkeys(f"result{role.index}" for role in roles if isinstance(role, ResultBuffer)))

    def _may_differ(self, result: str) -> bool:
        """Whether a result may not be as kernels write it: of another type, or of other strides than contiguous ones.

        It has these if it is allocated here without others. Nor do they matter for one that is written by its strides.
        """
        if result in self.stored or is_uniform(self.program):
            return not is_uniform(self.program)
        return not self.names.code.allocates(self._variable(result))

    def tensors(self, kernels: Sequence[NativeKernel]) -> Iterator[Node]:
        strided, looked_up = find_strided(self.program), list_looked_up(self.program)
        for tensor in sorted(self._read(kernels), key=lambda each: bool(self._flag(each))):
            if self._is_converted(tensor):
                yield from self._convert()
            if strided is None or tensor != strided.name:
                member = f"{self._tensor(tensor)}." if self._is_converted(tensor) else self.names.member(tensor)
                if tensor in list_converted(self.program, kernels):
                    member += f"{write_conversion_of(self.program, tensor, self.names)}."
                flag, value = self._flag(tensor), f"{member}contiguous()"
                if tensor in looked_up:
                    value = f"{member}numel() == 0 ? at::empty({{1}}, {member}options()) : {value}"
                    value = f"({value})" if flag else value
                yield declare(self._plain(tensor), f"{flag} ? {value} : {self._spare()}" if flag else value)
        converted = self.conversion.tensor if self.conversion else ""
        yield from write_type_checks(self.program, kernels, self.names, self._given, self._flag, converted)
        given = set(find_given(self.program, kernels, self.names)) if self.conversion is None else set()
        for result in self._written(kernels):
            if result in given:
                yield write_type_check(self.program.key, result, self.names)
            if self._may_differ(result):
                variable, flag = self._variable(result), self._flag(result)
                test = f"!{flag} ? {self._spare()} : " if flag else ""
                type_ = self.stored.get(result, "")
                if result in self.chosen:
                    yield declare(type_, f"{variable}.scalar_type() == kBool ? kLong : {variable}.scalar_type()")
                fresh = f"at::empty({variable}.sizes(), {variable}.options(){f'.dtype({type_})' if type_ else ''})"
                alone = write_aliases(self.program, kernels, result, self.names, self._given) if result in given else ""
                alike = f" && {variable}.scalar_type() == {type_}" if type_ else ""
                whole = f"{variable}.is_contiguous(){alike}{alone}"
                yield declare(self._plain(result), f"{test}{whole} ? {variable} : {fresh}")
        for buffer in dict.fromkeys(buffer for kernel in kernels for buffer in kernel.buffers):
            role = self.program.roles[buffer]
            if isinstance(role, Temporary):
                like = self._variable(self.program.key)
                type_ = f"ScalarType::{role.dtype.aten}"
                size = write_value(role.size, self.names)
                yield declare(
                    name_temporary(self.program, buffer), f"at::empty({{{size}}}, {like}.options().dtype({type_}))"
                )

    def _is_converted(self, tensor: str) -> bool:
        return self.conversion is not None and self.conversion.tensor == tensor

    def _convert(self) -> Iterator[Node]:
        """A variable for the tensor that becomes of the result's type."""
        assert self.conversion is not None
        tensor, result = self._variable(self.conversion.tensor), self._variable(self.conversion.result)
        name, code = self._tensor(self.conversion.tensor), self.names.code
        yield from write_conversion(self.conversion, name, tensor, result, code)

    def strides(self) -> Iterator[Node]:
        """Variables for the dimensions of a tensor that is read by its strides, kept and reduced; or of the result."""
        if is_uniform(self.program):
            yield write_dims(self._tensor("result0"))
        if role := find_strided(self.program):
            yield from write_strides(role, self._tensor(role.name), self.names)

    def numbers(self, kernels: Sequence[NativeKernel]) -> Iterator[Node]:
        """Variables for the numbers that kernels take and that the function has no variable for."""
        typed = frozenset[Named]().union(*(kernel.scalars.numbers for kernel in kernels))
        for number in (each for each in self.taken if not isinstance(each.value, Given) and each not in typed):
            name, value = self._number(number), self._value(number.value)
            if name != value:
                is_float = isinstance(number.example, float)
                if not is_float and is_call(value):
                    self.locals[value] = name
                yield declare(name, value, "float" if is_float else "int64_t")

    def _pass_numbers(self, kernel: NativeKernel) -> list[str]:
        """The numbers that a kernel takes, in the types that it takes them in."""
        key, scalars = self._tensor(self.program.key), kernel.scalars
        return [
            write_typed(each, key, scalars.is_wide, self.names) if each in scalars.numbers else self._number(each)
            for each in kernel.numbers
        ]

    def _number(self, number: Named) -> str:
        """The variable of a number: one that the function has, if it has one of that value."""
        if find_strided(self.program) and number.value in list_reduced(self.program):
            return REDUCED
        text = self._value(number.value)
        is_variable = is_word(text)
        if is_variable and (not isinstance(number.value, Scalar) or self.names.types[number.value.name] in _PASSED):
            return text
        return number.name if self.names.is_free(number.name) else f"{number.name}_value"

    def _value(self, value: HostValue, level: int = ANY) -> str:
        """A value as C++, with the function's own variables for what they have."""
        counts = list_reduced(self.program) if find_strided(self.program) else []
        variables = {**self.names.variables, REDUCED: REDUCED} if counts else self.names.variables
        names = replace(self.names, variables=variables, locals=self.locals)
        return write_value(substitute(value, dict.fromkeys(counts, Scalar(REDUCED))), names, level)

    def threads(self, kernels: Sequence[NativeKernel], rows: Sequence[HostValue]) -> Iterator[Node]:
        """Variables for the threads of rows that slices are taken of."""
        for i, (kernel, count) in enumerate(zip(kernels, rows, strict=True)):
            if kernel.partials:
                sliced = self._slice(kernel, count)
                if self._may_lack_rows(i):  # threads are shared by rows
                    sliced = replace(sliced, rows=f"std::max<int64_t>({sliced.rows}, 1)")
                yield from write_threads(sliced)

    def _slice(self, kernel: NativeKernel, rows: HostValue) -> SlicedRows:
        written = [each for each in kernel.buffers if isinstance(self.program.roles[each], ResultBuffer | Temporary)]
        adjacent = "kept.sizes[0] >= 32 && kept.strides[0] < reduced.strides[0]" if find_strided(self.program) else ""
        types = {each.name: self._typed(each.tensor) for each in kernel.elements.parameters}
        length, spare = self._multiply(kernel.length), self._buffer(written[0]).operand
        prefix = "" if self.is_sliced_alone and self.names.is_free("threads") else self.prefixes[kernel.name]
        return SlicedRows(kernel, prefix, self._value(rows), length, adjacent, spare, types)

    def encode(self, kernels: Sequence[NativeKernel], rows: Sequence[HostValue]) -> Iterator[Node]:
        if self.names.is_free("stream"):
            yield Line("MPSStream* stream = getCurrentMPSStream();", "stream")
        yield declare(INDEX_TYPE, f'{self._all_fit(kernels)} ? "int" : "long"', "std::string")
        for kernel, count in zip(kernels, rows, strict=True):
            if kernel.schedule.family is Family.KEPT_ROWS:
                yield from self._launch_rows(kernel, count).declare()
            elif kernel.schedule.family is Family.STRIDED_SLICES:
                strided = find_strided(self.program)
                assert strided is not None
                counted = f"count_neighbors({self._tensor(strided.name)}, kept, reduced)"
                value = f'{INDEX_TYPE} == "int" ? {counted} : {kernel.schedule.any_row}'
                yield declare(self._count(kernel), value, helper="count_neighbors")
        encoded = list[Node]()
        for i, (kernel, count) in enumerate(zip(kernels, rows, strict=True)):
            nodes, guards = tuple(self._encode_one(kernel, count, i)), self._guards(i)
            encoded += (Block(f"if ({guards}) {{", nodes),) if guards else nodes
        yield run_on_stream(encoded)

    def _count(self, kernel: NativeKernel) -> str:
        """The variable for the count that an instance of a kernel is chosen by."""
        return f"{self._prefix_threads(kernel)}count"

    def _prefix_threads(self, kernel: NativeKernel) -> str:
        """What the variables for the threads of a kernel begin with, of which the function has none."""
        prefix = self.prefixes[kernel.name]
        return prefix if all(self.names.is_free(f"{prefix}{each}") for each in ROW_VARIABLES) else f"{prefix}row_"

    def _launch_rows(self, kernel: NativeKernel, rows: HostValue) -> RowLaunch:
        inner = self._number(kernel.inner) if kernel.inner else ""
        length, prefix = self._multiply(kernel.length), self._prefix_threads(kernel)
        launch = RowLaunch(kernel.schedule, prefix, self._value(rows), length, inner)
        if kernel.alignment is None:
            return launch
        offsets = (f"{self._buffer(each).operand}.storage_offset()" for each in kernel.buffers)
        steps = (str(step) if isinstance(step, int) else self._number(step) for step in kernel.alignment.multiples)
        units = tuple(map(self._number, kernel.alignment.units))
        return replace(launch, units=units, multiples=tuple(dict.fromkeys((length, *steps, *offsets))))

    def _guards(self, at: int) -> str:
        """The condition under which a kernel has anything to store; nothing of one that always has."""
        stores = self.program.nests[at].nest.stores
        flags = list(dict.fromkeys(self._number(each.guard) for each in stores if each.guard))
        guarded = " || ".join(flags) if all(each.guard for each in stores) else ""
        if not self._may_lack_rows(at):
            return guarded
        has_rows = f"{self._value(self.program.nests[at].rows, OPERAND)} > 0"
        either = f"({guarded})" if len(flags) > 1 else guarded
        return f"{either} && {has_rows}" if guarded else has_rows

    def _may_lack_rows(self, at: int) -> bool:
        """Whether a kernel may have no rows where the function launches others: these are of other rows, for results
        that there are in any case.
        """
        results = {buffer for buffer, role in self.program.roles.items() if isinstance(role, ResultBuffer)}
        writing = [each for each in self.program.nests if any(store.buffer in results for store in each.nest.stores)]
        return self.program.nests[at] in writing and len({each.rows for each in writing}) > 1

    def _all_fit(self, kernels: Sequence[NativeKernel]) -> str:
        written = [self._tensor(each) for each in self._written(kernels)]
        read = [self._given(each) if self._flag(each) else self._tensor(each) for each in self._read(kernels)]
        tensors = (*written, *read)
        # The last turn of a row in registers may start beyond the row's end.
        has_turns = any(kernel.is_scan or kernel.schedule.family is Family.KEPT_ROWS for kernel in kernels)
        largest = LARGEST if any(each.partials for each in kernels) else "1 << 30" if has_turns else ""
        typed = frozenset[Named]().union(*(kernel.scalars.numbers for kernel in kernels))
        chosen = list_chosen([each for each in self.taken if each not in typed], self.names.types)
        return write_fits(tensors, [self._number(each) for each in chosen], largest)

    def _tensor(self, tensor: str) -> str:
        """A tensor as an argument of a call, in the type that kernels read it in."""
        if self._is_converted(tensor):
            return self._name_form(tensor, ("cast", "as_result"))
        return f"{'*' if self.names.member(tensor).endswith('->') else ''}{self._variable(tensor)}"

    def _typed(self, tensor: str) -> str:
        """A tensor of the type that a kernel is instantiated for."""
        return self._plain(tensor) if tensor in self.chosen else self._tensor(tensor)

    def _encode_one(self, kernel: NativeKernel, rows: HostValue, at: int) -> Iterator[Node]:
        *words, last = f"{self.prefixes[kernel.name]}PSO".split("_")
        first, *rest = (*words, "")
        pso = f"{first}{''.join(word.title() for word in rest)}{last}"
        types = (f"scalarToMetalTypeString({self._typed(each.tensor)})" for each in kernel.elements.parameters)
        inputs = tuple(self._given(each) for each in self._read([kernel]))
        strides = list_passed(self.program)
        arguments = [*(self._buffer(each).text for each in kernel.buffers), *strides, *self._pass_numbers(kernel)]
        sliced = self._slice(kernel, rows) if kernel.combination else None
        if sliced and kernel.combination:
            count = len(kernel.combination.buffers)
            arguments[count:count] = sliced.partials
            arguments.append(f"{sliced.threads}.slices")
        if kernel.is_map:
            dispatch = [f"mtl_dispatch1DJob(computeEncoder, {pso}, {self._value(rows)});"]
        elif kernel.schedule.family is Family.KEPT_ROWS:
            dispatch = list(self._launch_rows(kernel, rows).dispatch(pso))
        elif sliced:
            dispatch = [write_dispatch(sliced, pso)]
        elif kernel.is_scan:
            inner, prefix = self._number(kernel.inner) if kernel.inner else "", self._prefix_threads(kernel)
            nest, [result] = self.program.nests[at], self._written([kernel])
            read = map(self._given, self._read([kernel]))
            aliases = (f"{self._tensor(result)}.is_alias_of({tensor})" for tensor in read)
            whole = " || ".join(aliases) if isinstance(nest, ScanNest) and nest.may_split else ""
            length = self._multiply(kernel.length)
            dispatch = list(write_scan_dispatch(pso, self._value(rows), length, inner, prefix, whole))
        else:
            dispatch = list(self._dispatch_rows(kernel, self._value(rows), pso))
        if kernel.schedule.family is Family.KEPT_ROWS:
            counts = self._launch_rows(kernel, rows).variables
        else:
            counts = (self._count(kernel),) if kernel.schedule.counts else ()
        names = (*types, INDEX_TYPE, *(f"std::to_string({count})" for count in counts))
        lines = tuple(map(Line, dispatch))
        yield Encode(kernel.name, names, pso, inputs, tuple(arguments), lines, is_first=at == 0)
        if sliced and kernel.combination:
            written = [self._buffer(each).text for each in kernel.combination.buffers]
            yield write_combination(sliced, written, self._pass_numbers(kernel.combination))

    def rounds_groups(self, kernel: NativeKernel) -> bool:
        """Whether a kernel has as many simdgroups as its row has elements for."""
        is_apart = kernel.is_map or kernel.schedule.family is Family.KEPT_ROWS or kernel.combination is not None
        return kernel.uses_reductions and not is_apart and (not self.has_long or kernel.is_scan)

    def _dispatch_rows(self, kernel: NativeKernel, count: str, pso: str) -> Iterator[str]:
        group = "simdgroup_size" if not kernel.uses_reductions else "group_size"
        name = f"{self.prefixes[kernel.name]}{group}"
        if kernel.uses_reductions:
            length = self._multiply(kernel.length)
            if not is_word(length):
                value, length = length, f"{self.prefixes[kernel.name]}row_length"
                yield f"const int64_t {length} = {value};"
            most = f"[{pso} maxTotalThreadsPerThreadgroup]"
            if self.rounds_groups(kernel):
                yield f"const auto {name} = std::min<NSUInteger>({most}, at::ceil_div<int64_t>({length}, 32) * 32);"
            else:
                yield "// one simdgroup or all: lanes that combine 64-bit integers read from each other"
                yield f"const NSUInteger {name} = {length} <= 32 ? 32 : {most};"
        else:
            yield f"constexpr NSUInteger {name} = 32;"
        yield f"[computeEncoder dispatchThreadgroups:MTLSizeMake({count}, 1, 1)"
        yield f"threadsPerThreadgroup:MTLSizeMake({name}, 1, 1)];"

    def _multiply(self, loops: Sequence[Loop]) -> str:
        texts = [self._number(each.number) if each.number else str(each.size) for each in loops]
        return " * ".join(texts)

    def _buffer(self, buffer: Buffer) -> Printed:
        match self.program.roles[buffer]:
            case StridedArgument(name):
                return Printed(self._tensor(name))
            case ArgumentBuffer(name):
                return Printed(self._plain(name))
            case ResultBuffer(index):
                result = f"result{index}"
                if self._may_differ(result):
                    return Printed(self._plain(result))
                flag, variable = self._flag(result), self._variable(result)
                if not flag:
                    return Printed(variable)
                return Printed(f"{flag} ? {variable} : {self._spare()}", Binding.CONDITION)
        return Printed(name_temporary(self.program, buffer))

    def copy_back(self, kernels: Sequence[NativeKernel]) -> Iterator[Node]:
        for result in self._written(kernels):
            if self._may_differ(result):
                yield self._copy(result)
        changed = {store.buffer for store in self.program.stores}
        for tensor in self._read(kernels):
            if any(self.program.roles[each] == ArgumentBuffer(tensor) for each in changed):
                yield self._copy(tensor)

    def _copy(self, tensor: str) -> Block:
        """Copies what kernels wrote to a tensor that they did not write to itself."""
        given = f"{flag} && " if (flag := self._flag(tensor)) else ""
        head = f"if ({given}!{self._plain(tensor)}.is_same({self._tensor(tensor)})) {{"
        return Block(head, (Line(f"{self.names.member(tensor)}copy_({self._plain(tensor)});"),))


def _shorten(variable: str) -> str:
    """A variable's name without what only tells it from the argument that it was made of, as `input_t` of `input`."""
    return variable.strip("_").removesuffix("_t").removesuffix("_opt")


def _name_prefix(program: SymbolicProgram, at: int, kernel: NativeKernel, names: Names) -> str:
    """What the variables of a kernel begin with: nothing for one alone, else what it stores, as its name ends with."""
    if len(program.nests) == 1:
        return ""
    roles = (program.roles[store.buffer] for store in program.nests[at].nest.stores)
    results = [_shorten(names.variable(f"result{role.index}")) for role in roles if isinstance(role, ResultBuffer)]
    return "_".join((*(results or [kernel.name.rpartition("_")[2]]), ""))
