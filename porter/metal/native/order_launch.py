"""The host code that sorts rows: a kernel for blocks, one for each doubling of the runs, one for what is kept.

Source: ATen/native/mps/OperationUtils.h (`mtl_setArgs`), ATen/ceil_div.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from porter.languages.statements import name_tokens
from porter.loops.orders import Kept, RowOrder
from porter.metal.native.host_values import Names
from porter.metal.native.launch import INDEX_MATH, PROFILER, Launch
from porter.metal.native.order_kernel import BLOCKS, MEDIAN, MERGE, MOST_THREADS, OrderKernels, name_kernel
from porter.metal.native.own_variables import mark_theirs, rename_own

CEIL_DIV = "ATen/ceil_div.h"
_OWN = ("input", "run_values", "run_indices", "row_size", "type", "width", "kept_values", "kept_indices", "blocks")


def write_order_launch(found: RowOrder, kernels: OrderKernels, names: Names, body: str) -> Launch:
    """Launches the kernels on the variables of a function."""
    writer = _Writer(found, kernels, names, body)
    lines = "\n".join([*writer.start(), *writer.encode()])
    return Launch(rename_own(lines, _OWN, names, body), frozenset((PROFILER, INDEX_MATH, CEIL_DIV)))


@dataclass(frozen=True)
class _Writer:
    found: RowOrder
    kernels: OrderKernels
    names: Names
    body: str

    @property
    def _picks(self) -> bool:
        return self.found.kept is Kept.MEDIAN

    def _variable(self, name: str) -> str:
        return mark_theirs(self.names.variable(name))

    def _dim(self) -> str:
        """The dimension, by the variable that the function wrapped it in."""
        dim = self.names.variable(self.found.dim)
        found = re.search(rf"\b(\w+) = (?:at::)?maybe_wrap_dim\({dim},", self.body)
        return mark_theirs(found[1] if found else dim)

    def start(self) -> Iterator[str]:
        source, values = self._variable(self.found.source), self._variable("result0")
        indices = self._variable("result1") if self.found.places else ""
        rows = f"{source}.movedim({self._dim()}, -1)" if self.found.dim else f"{source}.flatten()"
        yield f"const auto input = {rows};"
        for name, result in (("kept_values", values), ("kept_indices", indices)):
            yield f"const auto {name} = {self._move(result) if result else self._make(values)};"
        yield "const int64_t row_size = input.size(-1);"
        fit = " && ".join(f"canUse32BitIndexMath({each})" for each in ("input", "kept_values", "kept_indices"))
        yield f'const auto type = scalarToMetalTypeString(input) + ({fit} ? "_int" : "_long");'
        if "stream" not in {token.text for token in name_tokens(self.body)}:
            yield "MPSStream* stream = getCurrentMPSStream();"

    def _make(self, values: str) -> str:
        return f"{values}.new_empty({{1}}, {values}.options().dtype(kLong))"

    def _move(self, result: str) -> str:
        """A result with what is kept of each row in the last dimension."""
        if not self.found.dim:
            return f"{result}.unsqueeze(-1)" if self._picks else result
        moved = f"{result}.movedim({self._dim()}, -1)"
        source = self._variable(self.found.source)
        return f"{result}.dim() < {source}.dim() ? {result}.unsqueeze(-1) : {moved}" if self._picks else moved

    def _descending(self) -> str:
        how = self.found.descending
        return self._variable(how) if isinstance(how, str) else str(how).lower()

    def encode(self) -> Iterator[str]:
        name = self.kernels.name
        temporary = {each: f"kept_{each}.new_empty(input.sizes())" for each in ("values", "indices")}
        yield "dispatch_sync_with_rethrow(stream->queue(), ^() {"
        yield "@autoreleasepool {"
        yield "auto computeEncoder = stream->commandEncoder();"
        yield f'auto blocksPSO = lib.getPipelineStateForFunc("{name_kernel(name, BLOCKS)}_" + type);'
        yield f'auto mergePSO = lib.getPipelineStateForFunc("{name_kernel(name, MERGE)}_" + type);'
        yield f"const auto most = std::min<int64_t>({MOST_THREADS}, [blocksPSO maxTotalThreadsPerThreadgroup]);"
        yield "int64_t width = 1;"
        yield "while (width < row_size && 2 * width <= most) {"
        yield "width *= 2;"
        yield "}"
        for each, made in temporary.items():
            yield f"Tensor run_{each} = {made if self._picks else f'width < row_size ? {made} : kept_{each}'};"
        yield "// this function call is a no-op if MPS Profiler is not enabled"
        yield f'getMPSProfiler().beginProfileKernel(blocksPSO, "{name}", {{input}});'
        yield "[computeEncoder setComputePipelineState:blocksPSO];"
        yield (
            "mtl_setArgs(computeEncoder, run_values, run_indices, input, input.sizes(), input.strides(), "
            f"run_values.strides(), run_indices.strides(), input.dim(), run_values.size(-1), {self._descending()});"
        )
        yield "const auto blocks = input.numel() / row_size * at::ceil_div(row_size, width);"
        yield "[computeEncoder dispatchThreadgroups:MTLSizeMake(blocks, 1, 1)"
        yield "threadsPerThreadgroup:MTLSizeMake(width, 1, 1)];"
        yield from self._merge(temporary)
        yield from self._pick()
        yield "getMPSProfiler().endProfileKernel(blocksPSO);"
        yield "}"
        yield "});"

    def _merge(self, temporary: dict[str, str]) -> Iterator[str]:
        yield "for (; width < row_size; width *= 2) {"
        for each, made in temporary.items():
            merged = made if self._picks else f"2 * width < row_size ? {made} : kept_{each}"
            yield f"const auto merged_{each} = {merged};"
        yield "[computeEncoder setComputePipelineState:mergePSO];"
        yield (
            "mtl_setArgs(computeEncoder, merged_values, merged_indices, run_values, run_indices, input.sizes(), "
            "merged_values.strides(), merged_indices.strides(), input.dim(), merged_values.size(-1), "
            f"{self._descending()}, width);"
        )
        yield "mtl_dispatch1DJob(computeEncoder, mergePSO, input.numel());"
        yield from (f"run_{each} = merged_{each};" for each in temporary)
        yield "}"

    def _pick(self) -> Iterator[str]:
        if not self._picks:
            return
        name = name_kernel(self.kernels.name, MEDIAN)
        yield f'auto medianPSO = lib.getPipelineStateForFunc("{name}_" + type);'
        yield "[computeEncoder setComputePipelineState:medianPSO];"
        yield (
            "mtl_setArgs(computeEncoder, kept_values, kept_indices, run_values, run_indices, input.sizes(), "
            "kept_values.strides(), kept_indices.strides(), input.dim());"
        )
        yield "mtl_dispatch1DJob(computeEncoder, medianPSO, input.numel() / row_size);"
