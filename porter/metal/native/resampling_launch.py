"""The host code that launches a kernel which resamples.

Source: ATen/native/UpSample.h (`compute_scales_value`, `area_pixel_compute_scale`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from porter.languages.statements import name_tokens
from porter.loops.resampling import Resampling
from porter.metal.native.coordinate_kernel import RESULT, Argument, MapKernel
from porter.metal.native.host_values import Names
from porter.metal.native.launch import INDEX_MATH, PROFILER, Launch

_SCALES = "ATen/native/UpSample.h"
_LEADING = 2  # dimensions that are not resampled


def write_resampling_launch(found: Resampling, kernel: MapKernel, names: Names, body: str) -> Launch:
    """Launches a kernel; `body` is the rest of the function."""
    writer = _Writer(found, kernel, names, body)
    return Launch("\n".join((*writer.ratios(), *writer.encode())), frozenset((PROFILER, INDEX_MATH, _SCALES)))


@dataclass(frozen=True)
class _Writer:
    found: Resampling
    kernel: MapKernel
    names: Names
    body: str

    def _tensor(self, tensor: str) -> str:
        return self.names.variable(tensor)

    def ratios(self) -> Iterator[str]:
        """How many elements of the smaller tensor each of the larger one stands for, in each dimension."""
        small, large = self.found.source, RESULT
        if self.found.is_gradient:
            small, large = large, small
        count = len(self.found.scales)
        yield f"const std::array<float, {count}> ratios{{"
        for d, scale in enumerate(self.found.scales, _LEADING):
            sizes = f"{self._tensor(small)}.size({d}), {self._tensor(large)}.size({d})"
            given = self.names.variable(scale)
            end = "};" if d == count + 1 else ","
            if self.found.corners:
                flag = self.names.variable(self.found.corners)
                yield f"at::native::area_pixel_compute_scale<float>({sizes}, {flag}, {given}){end}"
            else:
                yield f"compute_scales_value<float>({given}, {sizes}){end}"

    def _argument(self, argument: Argument) -> str:
        tensor = self._tensor(argument.tensor) if argument.tensor else ""
        values = {
            "tensor": tensor, "sizes": f"{tensor}.sizes()", "strides": f"{tensor}.strides()", "ratios": "ratios",
            "flag": tensor,
        }  # fmt: skip
        return values[argument.kind]

    def encode(self) -> Iterator[str]:
        result, source = self._tensor(RESULT), self._tensor(self.found.source)
        if "stream" not in {token.text for token in name_tokens(self.body)}:
            yield "MPSStream* stream = getCurrentMPSStream();"
        fit = f"canUse32BitIndexMath({result}) && canUse32BitIndexMath({source})"
        yield f'const std::string index_type = {fit} ? "int" : "long";'
        yield "dispatch_sync_with_rethrow(stream->queue(), ^() {"
        yield "@autoreleasepool {"
        yield "auto computeEncoder = stream->commandEncoder();"
        name = f'"{self.kernel.name}_" + scalarToMetalTypeString({result}) + "_" + index_type'
        yield f"auto PSO = lib.getPipelineStateForFunc({name});"
        yield "// this function call is a no-op if MPS Profiler is not enabled"
        yield f'getMPSProfiler().beginProfileKernel(PSO, "{self.kernel.name}", {{{source}}});'
        yield "[computeEncoder setComputePipelineState:PSO];"
        yield f"mtl_setArgs(computeEncoder, {', '.join(map(self._argument, self.kernel.arguments))});"
        yield f"mtl_dispatch1DJob(computeEncoder, PSO, {result}.numel());"
        yield "getMPSProfiler().endProfileKernel(PSO);"
        yield "}"
        yield "});"
