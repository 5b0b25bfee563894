"""The host code that launches kernels, as the fork's own host files have it.

Source: ATen/native/mps/OperationUtils.h (`mtl_setArgs`, `mtl_dispatch1DJob`), ATen/mps/MPSProfiler.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from porter.loops.expressions import Loop
from porter.loops.host_values import HostValue, Named
from porter.loops.program import ArgumentBuffer, ResultBuffer, SymbolicProgram, Temporary
from porter.metal.native.host_values import Names, list_headers, write_value
from porter.metal.native.kernel import NativeKernel

PROFILER = "ATen/mps/MPSProfiler.h"
INDEX_MATH = "ATen/native/CanUse32BitIndexMath.h"
_LOCAL = re.compile(r"^\s*(?:const\s+)?(?:int64_t|auto)\s+(\w+)\s*=\s*([^;]+);", re.M)
_CONTIGUOUS = re.compile(r"=\s*at::(?:empty|zeros)\(|CONTIGUOUS|MemoryFormat::Contiguous")


@dataclass(frozen=True)
class Launch:
    """Statements of host code, and the headers that they need beside OperationUtils.h."""

    text: str
    headers: frozenset[str]


def write_launch(
    program: SymbolicProgram, kernels: Sequence[NativeKernel], rows: Sequence[HostValue], names: Names, body: str
) -> Launch:
    """Launches the kernels of a program, in order; `body` is the rest of the function. Raises PTR371 and PTR372."""
    writer = _Writer(program, names, body, tuple(dict.fromkeys(n for kernel in kernels for n in kernel.numbers)))
    lines = [*writer.tensors(kernels), *writer.numbers(), *writer.encode(kernels, rows), *writer.copy_back(kernels)]
    headers = {PROFILER, INDEX_MATH}.union(*(list_headers(each.value) for each in writer.taken))
    return Launch("\n".join(lines), frozenset(headers.union(*(list_headers(each) for each in rows))))


@dataclass(frozen=True)
class _Writer:
    program: SymbolicProgram
    names: Names
    body: str
    taken: tuple[Named, ...]

    def _is_free(self, name: str) -> bool:
        return re.search(rf"\b{name}\b", self.body) is None and name not in self.names.variables.values()

    def _variable(self, tensor: str) -> str:
        return self.names.variable(tensor)

    def _plain(self, tensor: str) -> str:
        """The name of a tensor's contiguous form."""
        variable = re.sub(r"\W+", "_", self._variable(tensor)).strip("_")
        return next(name for name in (f"{variable}_", f"{variable}_c", f"{variable}_contiguous") if self._is_free(name))

    def _read(self, kernels: Sequence[NativeKernel]) -> list[str]:
        """The tensors that kernels read, by their names in the schema."""
        roles = [self.program.roles[buffer] for kernel in kernels for buffer in kernel.buffers]
        return list(dict.fromkeys(role.name for role in roles if isinstance(role, ArgumentBuffer)))

    def _written(self, kernels: Sequence[NativeKernel]) -> list[str]:
        roles = [self.program.roles[buffer] for kernel in kernels for buffer in kernel.buffers]
        return list(dict.fromkeys(f"result{role.index}" for role in roles if isinstance(role, ResultBuffer)))

    def _may_be_strided(self, result: str) -> bool:
        """Whether a result may have other strides than contiguous ones: not if it is allocated here without them."""
        variable = self._variable(result)
        made = re.search(rf"\bauto {variable}\b[^;]*;|\bTensor {variable}\b[^;]*;", self.body)
        return made is None or not _CONTIGUOUS.search(made[0])

    def tensors(self, kernels: Sequence[NativeKernel]) -> Iterator[str]:
        for tensor in self._read(kernels):
            yield f"const auto {self._plain(tensor)} = {self.names.member(tensor)}contiguous();"
        for result in self._written(kernels):
            if self._may_be_strided(result):
                variable = self._variable(result)
                fresh = f"at::empty({variable}.sizes(), {variable}.options())"
                yield f"const auto {self._plain(result)} = {variable}.is_contiguous() ? {variable} : {fresh};"
        for buffer in dict.fromkeys(buffer for kernel in kernels for buffer in kernel.buffers):
            role = self.program.roles[buffer]
            if isinstance(role, Temporary):
                like = self._variable(self.program.key)
                type_ = f"ScalarType::{role.dtype.aten}"
                size = write_value(role.size, self.names)
                yield f"const auto partial{buffer.node} = at::empty({{{size}}}, {like}.options().dtype({type_}));"

    def numbers(self) -> Iterator[str]:
        """Variables for the numbers that kernels take and that the function has no variable for."""
        for number in self.taken:
            if self._number(number) == number.name and number.name not in self.names.variables.values():
                type_ = "float" if isinstance(number.example, float) else "int64_t"
                yield f"const {type_} {number.name} = {write_value(number.value, self.names)};"

    def _number(self, number: Named) -> str:
        """The variable of a number: one that the function has, if it has one of that value."""
        text = write_value(number.value, self.names)
        known = {value.strip(): name for name, value in _LOCAL.findall(self.body)}
        return text if re.fullmatch(r"\w+", text) else known.get(text, number.name)

    def encode(self, kernels: Sequence[NativeKernel], rows: Sequence[HostValue]) -> Iterator[str]:
        if self._is_free("stream"):
            yield "MPSStream* stream = getCurrentMPSStream();"
        yield f'const std::string index_type = {self._all_fit(kernels)} ? "int" : "long";'
        yield "dispatch_sync_with_rethrow(stream->queue(), ^() {"
        yield "@autoreleasepool {"
        yield "auto computeEncoder = stream->commandEncoder();"
        for i, (kernel, count) in enumerate(zip(kernels, rows, strict=True)):
            yield from self._encode_one(kernel, count, "PSO" if len(kernels) == 1 else f"{_camel(kernel.name)}PSO", i)
        yield "}"
        yield "});"

    def _all_fit(self, kernels: Sequence[NativeKernel]) -> str:
        tensors = [self._tensor(each) for each in (*self._written(kernels), *self._read(kernels))]
        return " && ".join(f"canUse32BitIndexMath({each})" for each in dict.fromkeys(tensors))

    def _tensor(self, tensor: str) -> str:
        """A tensor as an argument of a call."""
        return f"{'*' if self.names.member(tensor).endswith('->') else ''}{self._variable(tensor)}"

    def _encode_one(self, kernel: NativeKernel, rows: HostValue, pso: str, at: int) -> Iterator[str]:
        types = [f"scalarToMetalTypeString({self._tensor(each.tensor)})" for each in kernel.elements.parameters]
        name = f'"{kernel.name}_" + ' + ' + "_" + '.join([*types, "index_type"])
        inputs = ", ".join(self._plain(each) for each in self._read([kernel]))
        yield f"auto {pso} = lib.getPipelineStateForFunc({name});"
        if at == 0:
            yield "// this function call is a no-op if MPS Profiler is not enabled"
        yield f'getMPSProfiler().beginProfileKernel({pso}, "{kernel.name}", {{{inputs}}});'
        yield f"[computeEncoder setComputePipelineState:{pso}];"
        arguments = [*map(self._buffer, kernel.buffers), *map(self._number, kernel.numbers)]
        yield f"mtl_setArgs(computeEncoder, {', '.join(arguments)});"
        count = write_value(rows, self.names)
        if kernel.is_map:
            yield f"mtl_dispatch1DJob(computeEncoder, {pso}, {count});"
        else:
            yield from self._dispatch_rows(kernel, count, pso)
        yield f"getMPSProfiler().endProfileKernel({pso});"

    def _dispatch_rows(self, kernel: NativeKernel, count: str, pso: str) -> Iterator[str]:
        group = "simdgroup_size" if not kernel.uses_reductions else "group_size"
        name = group if pso == "PSO" else f"{kernel.name}_{group}"
        if kernel.uses_reductions:
            length = self._product(kernel.length)
            if not re.fullmatch(r"\w+", length):
                yield f"const int64_t row_length = {length};"
                length = "row_length"
            simdgroups = f"({length} / 32 + 1) * 32"
            yield f"const auto {name} = std::min<NSUInteger>([{pso} maxTotalThreadsPerThreadgroup], {simdgroups});"
        else:
            yield f"constexpr NSUInteger {name} = 32;"
        yield f"[computeEncoder dispatchThreadgroups:MTLSizeMake({count}, 1, 1)"
        yield f"threadsPerThreadgroup:MTLSizeMake({name}, 1, 1)];"

    def _product(self, loops: Sequence[Loop]) -> str:
        texts = [self._number(each.number) if each.number else str(each.size) for each in loops]
        return " * ".join(texts)

    def _buffer(self, buffer: object) -> str:
        match self.program.roles[buffer]:  # type: ignore[index]
            case ArgumentBuffer(name):
                return self._plain(name)
            case ResultBuffer(index):
                result = f"result{index}"
                return self._plain(result) if self._may_be_strided(result) else self._variable(result)
        return f"partial{buffer.node}"  # type: ignore[attr-defined]

    def copy_back(self, kernels: Sequence[NativeKernel]) -> Iterator[str]:
        for result in self._written(kernels):
            if self._may_be_strided(result):
                yield f"if (!{self._plain(result)}.is_same({self._variable(result)})) {{"
                yield f"{self._variable(result)}.copy_({self._plain(result)});"
                yield "}"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.title() for each in rest)
