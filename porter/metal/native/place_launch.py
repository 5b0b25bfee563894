"""The host code for the coordinates of nonzero elements: counts of threadgroups, their sums, coordinates.

Source: ATen/native/mps/OperationUtils.h (`mtl_setArgs`), ATen/ceil_div.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from porter.languages.statements import name_tokens
from porter.loops.places import NonzeroPlaces
from porter.metal.native.host_values import Names
from porter.metal.native.launch import INDEX_MATH, PROFILER, Launch
from porter.metal.native.order_launch import CEIL_DIV
from porter.metal.native.place_kernel import MOST_THREADS, PlaceKernels


def write_place_launch(found: NonzeroPlaces, kernels: PlaceKernels, names: Names, body: str) -> Launch:
    """Launches the kernels on the variables of a function."""
    source, result = names.variable(found.source), names.variable("result0")
    known = {token.text for token in name_tokens(body)}
    lines = list(_write_lines(source, result, kernels.name, "stream" in known))
    return Launch("\n".join(lines), frozenset((PROFILER, INDEX_MATH, CEIL_DIV)))


def _write_lines(source: str, result: str, name: str, has_stream: bool) -> Iterator[str]:
    if not has_stream:
        yield "MPSStream* stream = getCurrentMPSStream();"
    fit = f"canUse32BitIndexMath({source}) && canUse32BitIndexMath({result})"
    yield f'const auto type = scalarToMetalTypeString({source}) + ({fit} ? "_int" : "_long");'
    yield f'auto countPSO = lib.getPipelineStateForFunc("{name}_count_" + type);'
    yield f'auto PSO = lib.getPipelineStateForFunc("{name}_" + type);'
    yield (
        f"const auto group_size = std::min<int64_t>({MOST_THREADS}, "
        "std::min([countPSO maxTotalThreadsPerThreadgroup], [PSO maxTotalThreadsPerThreadgroup]));"
    )
    yield f"const auto groups = at::ceil_div({source}.numel(), group_size);"
    yield f"const auto counts = {source}.new_empty({{groups}}, {source}.options().dtype(kInt));"
    shared = f"{source}, {source}.sizes(), {source}.strides(), {source}.dim(), {source}.numel()"
    yield from _encode("countPSO", f"{name}_count", source, f"counts, {shared}")
    yield "const auto ends = counts.cumsum(0, kInt);"
    yield from _encode("PSO", name, source, f"{result}, ends, {shared}, {result}.strides()")


def _encode(pso: str, name: str, source: str, arguments: str) -> Iterator[str]:
    yield "dispatch_sync_with_rethrow(stream->queue(), ^() {"
    yield "@autoreleasepool {"
    yield "auto computeEncoder = stream->commandEncoder();"
    yield "// this function call is a no-op if MPS Profiler is not enabled"
    yield f'getMPSProfiler().beginProfileKernel({pso}, "{name}", {{{source}}});'
    yield f"[computeEncoder setComputePipelineState:{pso}];"
    yield f"mtl_setArgs(computeEncoder, {arguments});"
    yield "[computeEncoder dispatchThreadgroups:MTLSizeMake(groups, 1, 1)"
    yield "threadsPerThreadgroup:MTLSizeMake(group_size, 1, 1)];"
    yield f"getMPSProfiler().endProfileKernel({pso});"
    yield "}"
    yield "});"
