"""The host code for distinct values: elements are sorted if need be, marked where they differ, ranked, and taken.

Source: ATen/native/mps/OperationUtils.h (`mtl_setArgs`), ATen/ceil_div.h, c10/util/accumulate.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from porter.core.errors import PorterError
from porter.languages.statements import name_tokens
from porter.loops.distinct import DistinctValues
from porter.metal.native.distinct_kernel import (
    ENDS,
    MARKS,
    MOST_THREADS,
    RANKS,
    DistinctKernels,
    name_kernel,
    order_elements,
)
from porter.metal.native.host_values import ACCUMULATE, WRAP_DIM, Names
from porter.metal.native.launch import INDEX_MATH, PROFILER, Launch
from porter.metal.native.order_launch import CEIL_DIV, write_order_launch
from porter.metal.native.own_variables import mark_theirs, rename_own

_OWN = (
    "slices", "slice_size", "type", "elements", "places", "marks", "group_size", "groups", "group_counts",
    "group_ends", "starts", "marksPSO", "endsPSO", "ranksPSO", "PSO",
)  # fmt: skip
# A tensor of one number, and that number read as how many there are.
_NUMBER = re.compile(
    r"\bTensor (?P<name>\w+) = at::empty\(\{1\}, (?:(?:at::)?ScalarType::Int|(?:at::)?kInt)\b[^;]*;"
    r"(?=.*\b(?P=name)\.item<int64_t>\(\) \+ 1\b)",
    re.S,
)


def write_distinct_launch(found: DistinctValues, kernels: DistinctKernels, names: Names, body: str) -> Launch:
    """Launches the kernels on the variables of a function. Raises PTR371 if none is the place of the last value."""
    last = _NUMBER.search(body)
    if last is None:
        what = "the host code reads from no tensor how many values there are"
        raise PorterError("PTR371", what, hint="See docs/errors/PTR371.md.")
    writer = _Writer(found, kernels, names, body, last["name"])
    lines = [*writer.start(), *writer.sort(), *writer.prepare(), *writer.encode()]
    text = rename_own("\n".join(lines), _OWN, names, body)
    headers = (PROFILER, INDEX_MATH, CEIL_DIV, *((ACCUMULATE, WRAP_DIM) if found.dim else ()))
    return Launch(text, frozenset(headers))


def name_contiguous(found: DistinctValues, names: Names, body: str) -> Names:
    """The names with a variable that has the elements of the source without gaps, if host code has one."""
    source = names.variable(found.source)
    made = re.search(rf"\b(\w+) = {source}\.contiguous\(\);", body)
    return replace(names, variables={**names.variables, found.source: made[1]}) if made else names


@dataclass(frozen=True)
class _Writer:
    found: DistinctValues
    kernels: DistinctKernels
    names: Names
    body: str
    last: str  # the variable for the place of the last value

    @property
    def _source(self) -> str:
        return self._variable(self.found.source)

    @property
    def _elements(self) -> str:
        return "elements" if self.found.is_sorted else self._source

    def _variable(self, name: str) -> str:
        return mark_theirs(self.names.variable(name))

    def start(self) -> Iterator[str]:
        source = self._source
        if f"{self.names.variable(self.found.source)} = " not in self.body:
            yield f"TORCH_INTERNAL_ASSERT({source}.is_contiguous());"
        yield f"const int64_t slices = {self._choose(f'{source}.size({{dim}})', f'{source}.numel()')};"
        after = f"c10::multiply_integers({source}.sizes().slice({{dim}} + 1))"
        yield f"const int64_t slice_size = {self._choose(after, '1')};"
        index = f'canUse32BitIndexMath({source}) ? "_int" : "_long"'
        yield f"const auto type = scalarToMetalTypeString({source}) + ({index});"
        if "stream" not in {token.text for token in name_tokens(self.body)}:
            yield "MPSStream* stream = getCurrentMPSStream();"

    def _choose(self, along: str, flat: str) -> str:
        """One value for a call with a dimension, one for others."""
        if not self.found.dim:
            return flat
        variable = self.names.variable(self.found.dim)
        is_optional = f"{variable}.has_value()" in self.body or self.names.types[self.found.dim] == "int?"
        value = f"{variable}.value()" if is_optional else variable
        wrapped = re.search(rf"\b(\w+) = [^;]*\bmaybe_wrap_dim\({re.escape(value)},", self.body)
        dim = mark_theirs(wrapped[1]) if wrapped else f"maybe_wrap_dim({mark_theirs(value)}, {self._source}.dim())"
        made = along.format(dim=dim)
        return f"{mark_theirs(variable)}.has_value() ? {made} : {flat}" if is_optional else made

    def sort(self) -> Iterator[str]:
        """Sorts the elements, which says where each was."""
        if self.kernels.order is None:
            return
        source = self._source
        yield f"const auto elements = {source}.new_empty({{slices}});"
        yield f"const auto places = {source}.new_empty({{slices}}, {source}.options().dtype(kLong));"
        variables = {self.found.source: self.names.variable(self.found.source)}
        variables |= {"result0": "elements", "result1": "places"}
        known = "\n".join((self.body, *_OWN, "stream"))
        names = replace(self.names, variables=variables)
        yield write_order_launch(order_elements(self.found), self.kernels.order, names, known).text

    def prepare(self) -> Iterator[str]:
        source, name = self._source, self.kernels.name
        yield f'auto marksPSO = lib.getPipelineStateForFunc("{name_kernel(name, MARKS)}_" + type);'
        for stage in (ENDS, RANKS):
            yield f'auto {stage}PSO = lib.getPipelineStateForFunc("{name_kernel(name, stage)}");'
        yield f'auto PSO = lib.getPipelineStateForFunc("{name}_" + type);'
        yield (
            f"const auto group_size = std::min<int64_t>({MOST_THREADS}, "
            "std::min([endsPSO maxTotalThreadsPerThreadgroup], [ranksPSO maxTotalThreadsPerThreadgroup]));"
        )
        yield "const auto groups = at::ceil_div(slices, group_size);"
        for each, size in (("marks", "slices"), ("group_counts", "groups")):
            yield f"const auto {each} = {source}.new_zeros({{{size}}}, {source}.options().dtype(kInt));"
        for each, size in (("group_ends", "groups"), ("starts", "slices")):
            yield f"const auto {each} = {source}.new_empty({{{size}}}, {source}.options().dtype(kLong));"

    def encode(self) -> Iterator[str]:
        output, inverse, counts = (self._variable(f"result{i}") for i in range(3))
        has_inverse, has_counts = self._variable(self.found.inverse), self._variable(self.found.counts)
        elements, last = self._elements, mark_theirs(self.last)
        places = "places, " if self.found.is_sorted else ""
        threads = f"{elements}.numel()"
        yield "dispatch_sync_with_rethrow(stream->queue(), ^() {"
        yield "@autoreleasepool {"
        yield "auto computeEncoder = stream->commandEncoder();"
        yield "// this function call is a no-op if MPS Profiler is not enabled"
        yield f'getMPSProfiler().beginProfileKernel(PSO, "{self.kernels.name}", {{{elements}}});'
        yield from _set("marksPSO", f"marks, group_counts, {elements}, slices, slice_size, group_size")
        yield f"mtl_dispatch1DJob(computeEncoder, marksPSO, {threads});"
        yield from _set("endsPSO", f"group_ends, {last}, group_counts, groups")
        yield from _dispatch("1")
        ranked = f"starts, {inverse}, marks, group_ends, {places}slices, {has_inverse}"
        yield from _set("ranksPSO", ranked)
        yield from _dispatch("groups")
        yield from _set("PSO", f"{output}, {counts}, {elements}, starts, {last}, slices, slice_size, {has_counts}")
        yield f"mtl_dispatch1DJob(computeEncoder, PSO, {threads});"
        yield "getMPSProfiler().endProfileKernel(PSO);"
        yield "}"
        yield "});"


def _set(pso: str, arguments: str) -> Iterator[str]:
    yield f"[computeEncoder setComputePipelineState:{pso}];"
    yield f"mtl_setArgs(computeEncoder, {arguments});"


def _dispatch(groups: str) -> Iterator[str]:
    yield f"[computeEncoder dispatchThreadgroups:MTLSizeMake({groups}, 1, 1)"
    yield "threadsPerThreadgroup:MTLSizeMake(group_size, 1, 1)];"
