"""The host code that launches the kernel of a coordinate map.

Source: ATen/native/mps/OperationUtils.h (`mtl_setArgs`, `getMPSScalar`), ATen/native/NonEmptyUtils.h, ATen/Context.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from porter.languages.statements import name_tokens
from porter.loops.coordinates import INDEXED, CoordinateMap, Rule, Way
from porter.metal.native.coordinate_kernel import RESULT, Argument, MapKernel, find_walked, name_tensor
from porter.metal.native.host_values import NON_EMPTY, WRAP_DIM, Names, write_given
from porter.metal.native.launch import DIMS, INDEX_MATH, PROFILER, REDUCE_UTILS, Launch
from porter.metal.native.type_agreement import write_agreement

CONTEXT, OP_MATH = "ATen/Context.h", "ATen/OpMathType.h"
_AVERAGED = "averaged"  # the variable of a source that may be divided
_SUMS = "sums"  # of a result whose elements are of 16 bits, in 32


def write_map_launch(
    found: CoordinateMap, kernel: MapKernel, names: Names, views: Mapping[str, str], body: str
) -> Launch:
    """Launches a kernel; `views` are variables that have the elements of a tensor in the shape that is walked."""
    writer = _Writer(found, kernel, names, views, body)
    lines = [*writer.prepare(), *writer.numbers(), *writer.encode()]
    return Launch("\n".join(lines), frozenset(writer.headers()), writer.start())


@dataclass(frozen=True)
class _Writer:
    found: CoordinateMap
    kernel: MapKernel
    names: Names
    views: Mapping[str, str]
    body: str

    def headers(self) -> Iterator[str]:
        yield from (PROFILER, INDEX_MATH)
        if self.found.way is Way.ADD:
            yield CONTEXT
        if self._sums():
            yield OP_MATH
        if self.found.rule in INDEXED:
            yield NON_EMPTY
            if not self._is_wrapped():
                yield WRAP_DIM
        if self.found.rule is Rule.REVERSED:
            yield REDUCE_UTILS
        elif self.found.rule in (Rule.PADDED, Rule.CLAMPED, Rule.REFLECTED):
            yield DIMS

    def _tensor(self, tensor: str) -> str:
        if self.found.averaged and tensor == self.found.source:
            return _AVERAGED
        if tensor == RESULT and self._sums():
            return self._sums()
        found = self.views.get(tensor) or self.names.variable(tensor)
        return f"{found}_" if self._is_converted(tensor) else found

    def _is_converted(self, tensor: str) -> bool:
        """Whether a tensor is a value to write, which may be of another type than the result."""
        return self.found.writes and tensor in self.views and tensor == self.found.source

    def _sums(self) -> str:
        """The variable that kernels add to, or combine in, instead of the result; nothing if they do so in that."""
        is_narrow = any(each[0].opmath != each[0] for each in self.kernel.elements.instances)
        name = _SUMS if self._is_free(_SUMS) else f"{_SUMS}_"
        return name if self.found.way in (Way.ADD, Way.COMBINE) and is_narrow else ""

    def _is_free(self, name: str) -> bool:
        return name not in {token.text for token in name_tokens(self.body)}

    def _is_wrapped(self) -> bool:
        """Whether the function has set the dimension to one that is not negative."""
        dim = self.names.variable(self.found.argument)
        return re.search(rf"\b{dim} = (?:at::)?maybe_wrap_dim\({dim},", self.body) is not None

    def start(self) -> str:
        """The statement that gives the result what it has where nothing is written, if the function has not."""
        found, result = self.found, self.names.variable(RESULT)
        if found.writes and not found.start:
            return "" if self._is_zeroed() else f"{result}.zero_();"
        source = self.names.variable(found.start) if found.start else result
        return f"{result}.copy_({source});" if source != result else ""

    def prepare(self) -> Iterator[str]:
        """What the result has where nothing is written, and what is written in its type."""
        found, result = self.found, self.names.variable(RESULT)
        if self._is_converted(found.source):
            expanded = self.views[found.source]
            yield f"const auto {self._tensor(found.source)} = {expanded}.to({result}.scalar_type());"
        elif found.rule is not Rule.BIN and found.source and (found.source != "self" or result in self.names.given):
            yield from write_agreement(self.names.variable(found.source), result, self.body)  # others have self's type
        if found.rule is Rule.BIN:
            yield from self._start_bins()
        elif found.way is Way.ADD:
            yield f'at::globalContext().alertNotDeterministic("{self.kernel.name}_mps");'
        if found.averaged:
            yield from self._average()
        if start := self.start():
            yield start
        if self._sums():
            yield f"const auto {self._sums()} = {result}.to(toOpMathType({result}.scalar_type()));"

    def _start_bins(self) -> Iterator[str]:
        """The order in which elements are counted does not matter, that in which they are added up may."""
        given = write_given(self.found.source, self.names)
        if self._is_free(self._flag()):
            yield f"const bool {self._flag()} = {given};"
        yield f"if ({self._flag()}) {{"
        yield f'at::globalContext().alertNotDeterministic("{self.kernel.name}_mps");'
        yield "}"

    def _average(self) -> Iterator[str]:
        """A variable for the source, divided by how many of its rows have the same index if the flag says so."""
        source, index = self.names.variable(self.found.source), self.names.variable(self.found.index)
        yield f"Tensor {_AVERAGED} = {source};"
        yield f"if ({self.names.variable(self.found.averaged)} && {source}.numel() > 0) {{"
        yield f"const auto rows = {index}.flatten();"
        yield f"const auto counts = rows.bincount({{}}, {self.names.variable(RESULT)}.size(0)).index_select(0, rows);"
        divided = f"{source}.reshape({{rows.numel(), -1}}).div(counts.unsqueeze(-1))"
        yield f"{_AVERAGED} = {divided}.view({source}.sizes());"
        yield "}"

    def _flag(self) -> str:
        """The variable for whether the source is given: the function's own, if it has one."""
        given = re.escape(write_given(self.found.source, self.names))
        own = re.search(rf"\bbool (\w+) = {given};", self.body)
        return own[1] if own else f"has_{name_tensor(self.found.source)}"

    def _is_zeroed(self) -> bool:
        """Whether the function, or its caller, makes the result of zeros."""
        result = re.escape(self.names.variable(RESULT))
        values = re.findall(rf"\b{result} = (\S+)", f"{self.names.before}{self.body}")
        return bool(values) and all(each.startswith("at::zeros") for each in values)

    def numbers(self) -> Iterator[str]:
        """Variables for what the kernel takes and the function has no variable for."""
        kinds = {each.kind for each in self.kernel.arguments}
        rank = f"{self._tensor(find_walked(self.found))}.dim()"
        argument = self.names.variable(self.found.argument) if self.found.argument else ""
        if "dim" in kinds and not self._is_wrapped():
            yield f"const int64_t wrapped_dim = maybe_wrap_dim({argument}, {rank});"
        if "reversed" in kinds:
            mask = f"make_dim_mask({argument}, {rank}, /*allow_empty_dims=*/true)"
            yield f"const uint64_t reversed = {mask}.to_ullong();"
        if "padding" in kinds:
            yield f"DimVector left_padding({rank}, 0);"
            yield f"for (const auto i : c10::irange({argument}.size() / 2)) {{"
            yield f"left_padding[{rank} - 1 - i] = {argument}[2 * i];"
            yield "}"

    def _argument(self, argument: Argument) -> str:
        tensor = self._tensor(argument.tensor) if argument.tensor else ""
        dim = self._dim() if self.found.rule in INDEXED else ""
        values = {
            "tensor": tensor, "sizes": f"{tensor}.sizes()", "strides": f"{tensor}.strides()", "rank": f"{tensor}.dim()",
            "size": f"ensure_nonempty_size({tensor}, {dim})", "stride": f"ensure_nonempty_stride({tensor}, {dim})",
            "rows": f"{tensor}.size(0)", "index stride": f"ensure_nonempty_stride({tensor}, 0)", "dim": dim,
            "reversed": "reversed", "padding": "left_padding",
            "multiplies": f'{self._variable(self.found.combine)} == "multiply"', "first stride": f"{tensor}.stride(0)",
            "number": tensor, "value": self._scalar(self.found.value), "factor": self._scalar(self.found.factor),
        }  # fmt: skip
        if self.found.rule is Rule.BIN:
            flag, spare = self._flag(), self._tensor(self.found.index)
            given = self.names.member(self.found.source)
            whole = f"{tensor}.value()" if given.endswith("->") else tensor
            values |= {"flag": flag, "optional tensor": f"{flag} ? {whole} : {spare}"}
            values |= {"optional stride": f"{flag} ? {given}stride(0) : 0"}
        return values[argument.kind]

    def _variable(self, name: str) -> str:
        return self.names.variable(name) if name else ""

    def _scalar(self, name: str) -> str:
        return f"getMPSScalar({self._variable(name)}, {self.names.variable(RESULT)}.scalar_type())"

    def _dim(self) -> str:
        return self.names.variable(self.found.argument) if self._is_wrapped() else "wrapped_dim"

    def encode(self) -> Iterator[str]:
        if self._is_free("stream"):
            yield "MPSStream* stream = getCurrentMPSStream();"
        read = [each.tensor for each in self.kernel.arguments if each.kind == "tensor"]
        fit = " && ".join([*(f"canUse32BitIndexMath({self._tensor(each)})" for each in read), *self._optional_fits()])
        yield f'const std::string index_type = {fit} ? "int" : "long";'
        guarded = self._may_write_nothing()
        if guarded:
            yield f"if ({self._tensor(find_walked(self.found))}.numel() > 0) {{"
        yield "dispatch_sync_with_rethrow(stream->queue(), ^() {"
        yield "@autoreleasepool {"
        yield "auto computeEncoder = stream->commandEncoder();"
        keys = [each.tensor for each in self.kernel.elements.parameters]
        named = [self.names.variable(each) if each == RESULT else self._tensor(each) for each in keys]
        types = [f"scalarToMetalTypeString({each})" for each in named]
        name = f'"{self.kernel.name}_" + ' + ' + "_" + '.join([*types, "index_type"])
        yield f"auto PSO = lib.getPipelineStateForFunc({name});"
        yield "// this function call is a no-op if MPS Profiler is not enabled"
        inputs = ", ".join(self._tensor(each) for each in read if each != RESULT)
        yield f'getMPSProfiler().beginProfileKernel(PSO, "{self.kernel.name}", {{{inputs}}});'
        yield "[computeEncoder setComputePipelineState:PSO];"
        yield f"mtl_setArgs(computeEncoder, {', '.join(map(self._argument, self.kernel.arguments))});"
        yield f"mtl_dispatch1DJob(computeEncoder, PSO, {self._count()});"
        yield "getMPSProfiler().endProfileKernel(PSO);"
        yield "}"
        yield "});"
        if guarded:
            yield "}"
        if sums := self._sums():
            result = self.names.variable(RESULT)
            yield f"if (!{sums}.is_same({result})) {{"
            yield f"{result}.copy_({sums});"
            yield "}"

    def _optional_fits(self) -> Iterator[str]:
        """Whether the offsets of a source fit that may be left out."""
        for each in (each for each in self.kernel.arguments if each.kind == "optional tensor"):
            source = self._tensor(each.tensor)
            given = f"{source}.value()" if source in self.names.optional else source
            yield f"(!{self._flag()} || canUse32BitIndexMath({given}))"

    def _may_write_nothing(self) -> bool:
        """Whether there may be results and nothing to write to them, which the function does not ask."""
        tensors = [self.names.variable(each) for each in (self.found.index, self.found.source) if each]
        known = f"{self.names.before}{self.body}"
        return self.found.writes and not any(f"{each}.numel() == 0" in known for each in tensors)

    def _count(self) -> str:
        walked = self._tensor(find_walked(self.found))
        if self.found.way is Way.COMBINE:
            return f"{walked}.numel() / ensure_nonempty_size({walked}, {self._dim()})"
        return f"{walked}.numel()"
