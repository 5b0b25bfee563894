"""The host code that launches a kernel which pools windows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from porter.languages.brackets import split_at_commas
from porter.languages.statements import name_tokens
from porter.loops.windows import Window
from porter.metal.native.coordinate_kernel import RESULT, Argument, MapKernel
from porter.metal.native.coordinate_launch import CONTEXT
from porter.metal.native.host_values import Names
from porter.metal.native.launch import INDEX_MATH, PROFILER, Launch
from porter.metal.native.type_agreement import write_agreement
from porter.metal.native.window_kernel import find_threads


def write_window_launch(found: Window, kernel: MapKernel, names: Names, body: str) -> Launch:
    """Launches a kernel; `body` is the rest of the function."""
    writer = _Writer(found, kernel, names, body)
    context = (CONTEXT,) if found.adds else ()
    lines = (*writer.prepare(), *writer.encode())
    return Launch("\n".join(lines), frozenset((PROFILER, INDEX_MATH, *context)), writer.start())


@dataclass(frozen=True)
class _Writer:
    found: Window
    kernel: MapKernel
    names: Names
    body: str

    def start(self) -> str:
        """The statement that gives the result what it has where nothing is added."""
        return f"{self.names.variable(RESULT)}.zero_();" if self.found.adds else ""

    def prepare(self) -> Iterator[str]:
        """What has to hold of types, what the result has where nothing is added, and strides that may be left out."""
        if self.found.gradient:
            source = self.names.variable(self.found.source)
            yield from write_agreement(self.names.variable(self.found.gradient), source, self.body)
        if self.found.adds:
            yield f'at::globalContext().alertNotDeterministic("{self.kernel.name}_mps");'
            yield self.start()
        if self._list(self.found.stride) is None:
            stride = self.names.variable(self.found.stride)
            listed = zip(self._list(self.found.size) or (), (f"{stride}[0]", f"{stride}.back()"), strict=True)
            either = ", ".join(f"{stride}.empty() ? {size} : {step}" for size, step in listed)
            yield f"const std::array<int64_t, 2> window_stride{{{either}}};"

    def _list(self, argument: str) -> tuple[str, ...] | None:
        """The elements of a list: variables of the function, or known to be there; None if it may be empty."""
        variable = self.names.variable(argument)
        if variable.startswith("{"):
            return tuple(split_at_commas(variable[1:-1]))
        declared = [
            re.findall(rf"\bint (\w+) = [^;]*\b{variable}\[{k}\]\)?;", self.body) for k in range(2)
        ]  # both with what they are where the list has fewer elements
        if all(len(each) == 1 for each in declared):
            return declared[0][0], declared[1][0]
        return None if argument == self.found.stride else (f"{variable}[0]", f"{variable}.back()")

    def _argument(self, argument: Argument) -> str:
        if argument.kind == "list":
            listed = self._list(argument.tensor)
            return f"std::array<int64_t, 2>{{{', '.join(listed)}}}" if listed else "window_stride"
        variable = self.names.variable(argument.tensor)
        values = {
            "tensor": variable, "sizes": f"{variable}.sizes()", "strides": f"{variable}.strides()",
            "rank": f"{variable}.dim()", "flag": variable, "number": f"{variable}.value_or(0)",
        }  # fmt: skip
        return values[argument.kind]

    def encode(self) -> Iterator[str]:
        if "stream" not in {token.text for token in name_tokens(self.body)}:
            yield "MPSStream* stream = getCurrentMPSStream();"
        tensors = [each.tensor for each in self.kernel.arguments if each.kind == "tensor"]
        fit = " && ".join(f"canUse32BitIndexMath({self.names.variable(each)})" for each in tensors)
        yield f'const std::string index_type = {fit} ? "int" : "long";'
        yield "dispatch_sync_with_rethrow(stream->queue(), ^() {"
        yield "@autoreleasepool {"
        yield "auto computeEncoder = stream->commandEncoder();"
        key = self.names.variable(self.found.source)
        name = f'"{self.kernel.name}_" + scalarToMetalTypeString({key}) + "_" + index_type'
        yield f"auto PSO = lib.getPipelineStateForFunc({name});"
        yield "// this function call is a no-op if MPS Profiler is not enabled"
        read = ", ".join(self.names.variable(each) for each in tensors if not each.startswith("result"))
        yield f'getMPSProfiler().beginProfileKernel(PSO, "{self.kernel.name}", {{{read}}});'
        yield "[computeEncoder setComputePipelineState:PSO];"
        yield f"mtl_setArgs(computeEncoder, {', '.join(map(self._argument, self.kernel.arguments))});"
        yield f"mtl_dispatch1DJob(computeEncoder, PSO, {self.names.variable(find_threads(self.found))}.numel());"
        yield "getMPSProfiler().endProfileKernel(PSO);"
        yield "}"
        yield "});"
