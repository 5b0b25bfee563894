"""The host code that copies each tensor of a list to its part of the result.

Source: ATen/native/TensorShape.cpp (`cat_out_cpu`: a tensor without elements is left out).
"""

from __future__ import annotations

from collections.abc import Iterator

from porter.languages.statements import name_tokens
from porter.loops.concatenation import Concatenation
from porter.metal.native.concatenation_kernel import PART, SOURCE
from porter.metal.native.coordinate_kernel import RESULT, Argument, MapKernel
from porter.metal.native.host_values import Names
from porter.metal.native.launch import INDEX_MATH, PROFILER, Launch


def write_concatenation_launch(found: Concatenation, kernel: MapKernel, names: Names, body: str) -> Launch:
    """Launches a kernel for each tensor; `body` is the rest of the function."""
    lines = [*_write_parts(found, names, body), *_encode(kernel), "}"]
    return Launch("\n".join(lines), frozenset((PROFILER, INDEX_MATH)))


def _write_parts(found: Concatenation, names: Names, body: str) -> Iterator[str]:
    """The loop over the tensors, each in the result's type, and the part of the result that it goes to."""
    result, dim = names.variable(RESULT), names.variable(found.dim)
    if "stream" not in {token.text for token in name_tokens(body)}:
        yield "MPSStream* stream = getCurrentMPSStream();"
    yield "int64_t start = 0;"
    yield f"for (const Tensor& tensor : {names.variable(found.sources)}) {{"
    yield from ("if (tensor.numel() == 0) {", "continue;", "}")
    yield f"const auto {SOURCE} = tensor.to({result}.scalar_type());"
    yield f"const auto {PART} = {result}.narrow({dim}, start, tensor.size({dim}));"
    yield f"start += tensor.size({dim});"


def _encode(kernel: MapKernel) -> Iterator[str]:
    fit = f"canUse32BitIndexMath({PART}) && canUse32BitIndexMath({SOURCE})"
    yield f'const std::string index_type = {fit} ? "int" : "long";'
    yield "dispatch_sync_with_rethrow(stream->queue(), ^() {"
    yield "@autoreleasepool {"
    yield "auto computeEncoder = stream->commandEncoder();"
    name = f'"{kernel.name}_" + scalarToMetalTypeString({PART}) + "_" + index_type'
    yield f"auto PSO = lib.getPipelineStateForFunc({name});"
    yield "// this function call is a no-op if MPS Profiler is not enabled"
    yield f'getMPSProfiler().beginProfileKernel(PSO, "{kernel.name}", {{{SOURCE}}});'
    yield "[computeEncoder setComputePipelineState:PSO];"
    yield f"mtl_setArgs(computeEncoder, {', '.join(map(_write_argument, kernel.arguments))});"
    yield f"mtl_dispatch1DJob(computeEncoder, PSO, {SOURCE}.numel());"
    yield "getMPSProfiler().endProfileKernel(PSO);"
    yield "}"
    yield "});"


def _write_argument(argument: Argument) -> str:
    member = {"tensor": "", "sizes": ".sizes()", "strides": ".strides()", "rank": ".dim()"}
    return f"{argument.tensor}{member[argument.kind]}"
