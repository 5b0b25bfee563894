"""Results that are the elements of a tensor at other coordinates: flips, pads, gathers, scatters.

A thread for each element, or for four that are read in a row, finds its offset in each tensor by its coordinates. A
kernel computes the same for any number of dimensions, any strides and any sizes, which programs of loop form, one for
each number of dimensions, do not.
Source: ATen/native/mps/OperationUtils.h (`getMPSScalar`), ATen/native/NonEmptyUtils.h, ATen/Context.h.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.metal.codegen.checks import write_agreement
from porter.metal.codegen.elements import KEY
from porter.metal.codegen.host_code import Launch, Node, as_nodes
from porter.metal.codegen.host_values import NON_EMPTY, WRAP_DIM
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.launch import DIMS, REDUCE_UTILS
from porter.metal.codegen.schedule import PLACES
from porter.metal.forms.form import (
    CONTEXT,
    HEADERS,
    LARGEST_ROWS,
    RESULT,
    Argument,
    Form,
    FormKernels,
    LaunchWriter,
    Site,
    count_row_threads,
    launch_one,
    name_tensor,
    write_one_kernel,
    write_place,
)
from porter.metal.forms.sums import (
    INDEXED_AT,
    OP_MATH,
    SUM,
    add_to,
    copy_sums,
    find_sum,
    guard_empty,
    list_indexed_elements,
    name_sums,
    write_alert,
    write_index_pointer,
    write_sums,
    write_zeros,
)

# What host code passes of a tensor and a dimension, by what an argument is.
_PASSED = {
    "size": "ensure_nonempty_size({}, {})", "stride": "ensure_nonempty_stride({}, {})", "rows": "{}.size(0)",
    "index stride": "ensure_nonempty_stride({}, 0)", "dim": "{1}", "reversed": "reversed", "padding": "left_padding",
}  # fmt: skip
_AVERAGED = "averaged"  # the variable of a source that may be divided
_WIDTH = "width"  # the variable for how many places the result has along the dimension of an index


class IndexRule(Enum):
    """What the coordinate `i` of one tensor is in the same dimension of the other, which has `n` elements there."""

    REVERSED = "n - 1 - i in the dimensions of {argument}"
    REPEATED = "i % n"
    PADDED = "i - {argument}, where that is inside"
    CLAMPED = "i - {argument}, clamped to 0 and n - 1"
    REFLECTED = "i - {argument}, reflected at 0 and n - 1"
    POSITION = "{index}[i] in the dimension {argument}"
    ELEMENT = "the element of {index} in the dimension {argument}"
    ROW = "the element of {index} in the first dimension, for the whole row"  # index has the leading dimensions


class AccessMode(Enum):
    """Whether results are read from other coordinates, or put or added there."""

    READ = "="
    PUT = "is put to"
    ADD = "is added to"
    COMBINE = "is added or multiplied, in order"  # by an argument


INDEXED = (IndexRule.POSITION, IndexRule.ELEMENT)  # along a dimension
_PADS = (IndexRule.PADDED, IndexRule.CLAMPED, IndexRule.REFLECTED)
_POSITION = "d == dim ? long(index[i * index_stride]) : i"
# The coordinate in the padded tensor, by `i`, the pad before it and the tensor's last coordinate.
_PADDED_AT = {
    IndexRule.PADDED: "{i} - {pad}",
    IndexRule.CLAMPED: "clamp({i} - {pad}, index_t(0), {last})",
    IndexRule.REFLECTED: "{last} - abs({last} - abs({i} - {pad}))",
}
_IN_LOOP = {"i": "i", "pad": "index_t(padding[d])", "last": "index_t({to}_sizes[d]) - 1"}  # over dimensions
_AT = {
    IndexRule.REVERSED: ("const index_t at = reversed >> d & 1 ? index_t(sizes[d]) - 1 - i : i;",),
    IndexRule.REPEATED: ("const index_t at = i % index_t({to}_sizes[d]);",),
    IndexRule.PADDED: (f"const index_t at = {_PADDED_AT[IndexRule.PADDED].format(**_IN_LOOP)};",),
    IndexRule.CLAMPED: (f"const index_t at = {_PADDED_AT[IndexRule.CLAMPED].format(**_IN_LOOP)};",),
    IndexRule.REFLECTED: (
        f"const index_t last = {_IN_LOOP['last']};",
        f"const index_t at = {_PADDED_AT[IndexRule.REFLECTED].format(**_IN_LOOP | {'last': 'last'})};",
    ),
    IndexRule.POSITION: (f"const long at = {_POSITION};",),
}
_ROWS = 2  # that a thread of a pad has places of: with one, a pad of 16-bit elements took 1.5 times as long


@dataclass(frozen=True)
class IndexMap(Form):
    """What the elements of a result are.

    Elements are those of the tensor `source`, or the number `value`, which is also what is read outside of the source.
    What is not written stays as in the tensor `start`, or is zero. Elements are multiplied by the number `factor`.
    What has the number `skipped` as its index is not written. If the flag `averaged` is true, an element is divided by
    the number of those with its index.
    `index_dtypes` are the types of the tensor `index`, whose elements below zero count from the end if it `wraps`.
    """

    TITLE: ClassVar[str] = "coordinates"
    ANY_RANK: ClassVar[bool] = True

    rule: IndexRule
    mode: AccessMode
    argument: str = ""  # the list of dimensions or of pads, or the dimension
    index: str = ""
    source: str = ""
    value: str = ""
    start: str = ""
    factor: str = ""
    combine: str = ""
    dtypes: tuple[DType, ...] = ()
    index_dtypes: tuple[DType, ...] = ()
    wraps: bool = False
    skipped: str = ""
    averaged: str = ""

    @property
    def writes(self) -> bool:
        """Whether threads go over what is put or added, and not over the result."""
        return self.mode is not AccessMode.READ

    @property
    def has_rows(self) -> bool:
        """Whether a thread has several places that it reads, of a row of pads or along the dimension of an index."""
        return self.rule in (*_PADS, *INDEXED) and not self.writes

    @property
    def is_looked_up(self) -> bool:
        """Whether elements are read where an index says."""
        return self.rule in INDEXED and not self.writes

    @property
    def walked(self) -> str:
        """The tensor whose coordinates the threads have."""
        if not self.writes:
            return RESULT
        return self.index if self.rule is IndexRule.ELEMENT else self.source

    def describe(self) -> Iterator[str]:
        index = f"{self.index} (from the end below 0)" if self.wraps else self.index
        at = self.rule.value.format(argument=self.argument, index=index)
        element = self.source or self.value
        if not self.writes:
            yield f"output[i, ...] = {element}[...], at {at}"
            return
        start = self.start or "zeros"
        unless = f", unless that is {self.skipped}" if self.skipped else ""
        share = f", divided by how many go there if {self.averaged}" if self.averaged else ""
        yield f"output = {start}; each element of {element} {self.mode.value} output[...], at {at}{unless}{share}"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        """Those of recorded kinds with atomic functions where a kernel needs them, else all."""
        if self.mode is not AccessMode.ADD:
            refuses_complex = refuses_complex or self.mode is AccessMode.COMBINE
            return [dtype for dtype in dtypes.ALL if not refuses_complex or dtype.kind is not Kind.COMPLEX]
        kinds, atomic = {dtype.kind for dtype in self.dtypes}, read_atomic()
        kinds |= {Kind.COMPLEX} if Kind.FLOATING in kinds else set()
        kinds -= {Kind.COMPLEX} if refuses_complex else set()
        return [dtype for dtype in dtypes.ALL if dtype.kind in kinds and find_sum(dtype).metal in atomic]

    def list_counted(self) -> tuple[str, ...]:
        return (self.index or self.source,) if self.writes else ()

    def list_moved(self) -> tuple[str, ...]:
        return self.source, self.start

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_indexed_elements(self.index, instances, self.index_dtypes)
        return write_one_kernel(name, elements, _list_arguments(self), _write_body(self), style)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        writer = _Writer(self, kernels, site)
        lines = [*writer.prepare(), *writer.numbers(), *writer.encode()]
        return Launch(as_nodes(lines), frozenset(writer.headers()), writer.start())


def _to(form: IndexMap) -> str:
    """The tensor whose coordinates follow from those of a thread."""
    return RESULT if form.writes else form.source


def _list_arguments(form: IndexMap) -> Iterator[Argument]:
    source, to = name_tensor(form.source), name_tensor(_to(form))
    written = {AccessMode.ADD: f"c10::metal::AtomicType_t<{SUM}>", AccessMode.COMBINE: SUM}.get(form.mode, KEY)
    yield Argument(f"device {written}* output", "tensor", RESULT)
    if form.source:
        yield Argument(f"constant {KEY}* {source}", "tensor", form.source)
    if form.index:
        yield Argument(f"{write_index_pointer(form.index_dtypes)} index", "tensor", form.index)
    walked = form.walked
    yield Argument("constant long* sizes", "sizes", walked)
    if form.rule not in (IndexRule.REVERSED, IndexRule.ELEMENT, IndexRule.ROW) and not form.is_looked_up:
        yield Argument(f"constant long* {to}_sizes", "sizes", _to(form))
    yield Argument("constant long* output_strides", "strides", RESULT)
    if form.source:
        yield Argument(f"constant long* {source}_strides", "strides", form.source)
    if form.rule is IndexRule.ELEMENT:
        yield Argument("constant long* index_strides", "strides", form.index)
    if form.rule is IndexRule.ELEMENT or form.is_looked_up:
        yield Argument(f"constant index_t& {to}_size", "size", _to(form))
        yield Argument(f"constant index_t& {to}_stride", "stride", _to(form))
    if form.rule is IndexRule.POSITION:
        yield Argument("constant index_t& index_stride", "index stride", form.index)
    if form.rule is IndexRule.ROW:
        yield Argument("constant long* index_strides", "strides", form.index)
        yield Argument(f"constant index_t& {to}_size", "rows", _to(form))
    yield Argument("constant long& ndim", "rank", walked)
    if form.rule is IndexRule.ROW:
        yield Argument("constant long& index_ndim", "rank", form.index)
    if form.rule in INDEXED:
        yield Argument("constant long& dim", "dim")
    if form.mode is AccessMode.COMBINE:
        yield Argument("constant index_t& index_size", "size", form.index)
        yield Argument("constant index_t& index_stride", "stride", form.index)
        if form.source:
            yield Argument(f"constant index_t& {source}_stride", "stride", form.source)
        yield Argument("constant bool& multiplies", "multiplies")
    if form.rule is IndexRule.REVERSED:
        yield Argument("constant ulong& reversed", "reversed")
    if form.rule in _PADS:
        yield Argument("constant long* padding", "padding")
    if form.value:
        yield Argument(f"constant {KEY}& value", "value")
    if form.factor:
        yield Argument(f"constant {KEY}& {form.factor}", "factor")
    if form.skipped:
        yield Argument(f"constant long& {form.skipped}", "number", form.skipped)


def _write_body(form: IndexMap) -> Iterator[str]:
    if form.rule is IndexRule.ROW:
        yield from _write_rows(form)
        return
    if form.has_rows:
        yield from _write_looked_up(form) if form.is_looked_up else _write_places(form)
        return
    source, to = name_tensor(form.source), name_tensor(_to(form))
    tensors = ["output", *([source] if source else []), *(["index"] if form.rule is IndexRule.ELEMENT else [])]
    inside = form.rule in (IndexRule.PADDED, *INDEXED) and form.rule is not IndexRule.ELEMENT
    yield "index_t rest = tid;"
    yield from (f"index_t {each}_offset = 0;" for each in tensors)
    if inside:
        yield "bool is_inside = true;"
    yield "for (long d = ndim - 1; d >= 0; d--) {"
    if form.mode is AccessMode.COMBINE:  # a thread for each row along the dimension
        yield "  if (d == dim) {"
        yield "    continue;"
        yield "  }"
    yield "  const index_t i = rest % index_t(sizes[d]);"
    yield "  rest /= index_t(sizes[d]);"
    for line in _write_at(form):
        yield f"  {line.format(to=to)}"
    if inside:
        yield f"  is_inside = is_inside && at >= 0 && at < index_t({to}_sizes[d]);"
    for tensor in tensors:
        moved = INDEXED_AT if form.rule is IndexRule.POSITION else "at"
        at = moved if tensor == to and form.rule is not IndexRule.ELEMENT else "i"
        line = f"{tensor}_offset += {at} * index_t({tensor}_strides[d]);"
        if tensor == to and form.rule is IndexRule.ELEMENT and form.mode is not AccessMode.COMBINE:
            yield "  if (d != dim) {"
            yield f"    {line}"
            yield "  }"
        else:
            yield f"  {line}"
    yield "}"
    yield from _write_end(form, source, to, inside)


def _write_at(form: IndexMap) -> Sequence[str]:
    """The coordinate of the other tensor in a dimension, as `at`."""
    lines = _AT.get(form.rule, ())
    if form.rule is not IndexRule.POSITION or not form.wraps:
        return lines
    counted = "const long at = counted < 0 ? counted + index_t({to}_sizes[d]) : counted;"
    return (f"const long counted = {_POSITION};", counted)


def _write_end(form: IndexMap, source: str, to: str, inside: bool) -> Iterator[str]:
    """What is done with the element at the offsets."""
    element = f"{source}[{source}_offset]" if source else "value"
    if form.mode is AccessMode.COMBINE:
        yield from _write_combined(form, source)
        return
    is_element = form.rule is IndexRule.ELEMENT
    if is_element:
        yield from _read_index(form, "index[index_offset]", f"{to}_size")
    offset = f"output_offset + {INDEXED_AT} * output_stride" if is_element else "output_offset"
    value = f"c10::metal::mul({element}, {form.factor})" if form.factor else element
    if form.mode is AccessMode.ADD or form.factor:
        value = f"static_cast<{SUM if form.mode is AccessMode.ADD else KEY}>({value})"
    write = add_to(offset, value) if form.mode is AccessMode.ADD else f"output[{offset}] = {value};"
    if inside or is_element:
        test = f"at >= 0 && at < {to}_size" if is_element else "is_inside"
        yield from (f"if ({test}) {{", f"  {write}", "}")
    else:
        yield write


def _read_index(form: IndexMap, element: str, size: str) -> Iterator[str]:
    """An element of the index, as `at`."""
    if form.wraps:
        yield f"const long counted = {element};"
        yield f"const long at = counted < 0 ? counted + {size} : counted;"
    else:
        yield f"const long at = {element};"


def _write_rows(form: IndexMap) -> Iterator[str]:
    """An element goes to its place in the row that the index of its leading coordinates names."""
    source = name_tensor(form.source)
    yield "index_t rest = tid;"
    yield from (f"index_t {each}_offset = 0;" for each in ("output", source, "index"))
    yield "for (long d = ndim - 1; d >= 0; d--) {"
    yield "  const index_t i = rest % index_t(sizes[d]);"
    yield "  rest /= index_t(sizes[d]);"
    yield f"  {source}_offset += i * index_t({source}_strides[d]);"
    yield "  if (d < index_ndim) {"
    yield "    index_offset += i * index_t(index_strides[d]);"
    yield "  } else {"
    yield "    output_offset += i * index_t(output_strides[d - index_ndim + 1]);"
    yield "  }"
    yield "}"
    unless = f" && at != {form.skipped}" if form.skipped else ""
    yield "const long at = index[index_offset];"
    yield f"if (at >= 0 && at < output_size{unless}) {{"
    yield f"  output_offset += {INDEXED_AT} * index_t(output_strides[0]);"
    element = f"static_cast<{SUM}>({source}[{source}_offset])"
    yield f"  {add_to('output_offset', element)}"
    yield "}"


def _write_places(form: IndexMap) -> Iterator[str]:
    """Several places of a few rows, whose other coordinates are found once. A tensor of one dimension has one row.

    All are read before one is written, and so is what is known of a dimension: for all that a compiler knows, what is
    written could be what is read next.
    """
    source = name_tensor(form.source)
    at, inside = [line.format(to=source) for line in _AT[form.rule]], form.rule is IndexRule.PADDED
    yield "const bool has_rows = ndim > 1;"
    yield "const index_t columns = sizes[ndim - 1], rows = has_rows ? sizes[ndim - 2] : 1;"
    yield f"const index_t turns = (columns + {PLACES - 1}) / {PLACES}, steps = (rows + {_ROWS - 1}) / {_ROWS};"
    yield "const index_t first = tid % turns, first_row = tid / turns % steps;"
    yield "index_t rest = tid / turns / steps;"
    if inside:
        yield "bool is_inside = true;"
    yield "for (long d = ndim - 3; d >= 0; d--) {"
    yield "  const index_t i = rest % index_t(sizes[d]);"
    yield "  rest /= index_t(sizes[d]);"
    yield from (f"  {line}" for line in at)
    if inside:
        yield f"  is_inside = is_inside && at >= 0 && at < index_t({source}_sizes[d]);"
    yield "  output += i * index_t(output_strides[d]);"
    yield f"  {source} += at * index_t({source}_strides[d]);"
    yield "}"
    yield f"const index_t left = padding[ndim - 1], width = {source}_sizes[ndim - 1];"
    yield f"const index_t top = has_rows ? padding[ndim - 2] : 0, height = has_rows ? {source}_sizes[ndim - 2] : 1;"
    for tensor in ("output", source):
        yield f"const index_t {tensor}_step = {tensor}_strides[ndim - 1];"
        yield f"const index_t {tensor}_row_step = has_rows ? {tensor}_strides[ndim - 2] : 0;"
    row_at, column_at = (
        _PADDED_AT[form.rule].format(i=i, pad=pad, last=f"{size} - 1")
        for i, pad, size in (("row", "top", "height"), ("i", "left", "width"))
    )
    yield f"{KEY} elements[{_ROWS * PLACES}];"
    yield from _begin_places()
    yield f"    const index_t row_at = {row_at}, at = {column_at};"
    value = f"{source}[row_at * {source}_row_step + at * {source}_step]"
    if inside:
        yield "    const bool is_read = is_inside && row_at >= 0 && row_at < height && at >= 0 && at < width;"
        value = f"is_read ? {value} : {'value' if form.value else f'{KEY}(0)'}"
    yield f"    elements[{PLACES} * k + e] = {value};"
    yield from ("  }", "}")
    yield from _begin_places()
    yield f"    output[row * output_row_step + i * output_step] = elements[{PLACES} * k + e];"
    yield from ("  }", "}")


def _begin_places() -> Iterator[str]:
    """Loops over the places of a thread; beyond the last row, those of the first again."""
    yield f"for (index_t k = 0; k < {_ROWS}; k++) {{"
    yield "  const index_t row = first_row + (first_row + k * steps < rows ? k * steps : 0);"
    yield f"  for (index_t e = 0; e < {PLACES}; e++) {{"
    yield f"    {write_place('i')}"


def _write_looked_up(form: IndexMap) -> Iterator[str]:
    """Several places along the dimension of the index, whose other coordinates are found once.

    All are read before one is written: what is written could be what is read next, for all that a compiler knows.
    Tensors without dimensions have no strides, and a thread no second place.
    """
    source, is_element = name_tensor(form.source), form.rule is IndexRule.ELEMENT
    place = "  const index_t i = e * turns < width - first ? e * turns : 0;"
    yield f"index_t first = 0, width = ndim ? sizes[dim] : 1, turns = (width - 1) / {PLACES} + 1;"
    yield "for (index_t d = ndim, rest = tid; d-- > 0;) {"
    yield "  const index_t size = d == dim ? turns : index_t(sizes[d]), i = rest % size;"
    yield "  rest /= size;"
    yield "  first = d == dim ? i : first;"
    yield "  output += i * index_t(output_strides[d]);"
    if is_element:
        yield "  index += i * index_t(index_strides[d]);"
    yield f"  {source} += d == dim ? 0 : i * index_t({source}_strides[d]);"
    yield "}"
    index = "i > 0 ? i * index_t(index_strides[dim]) : 0" if is_element else "(first + i) * index_stride"
    yield f"{KEY} elements[{PLACES}];"
    yield f"for (index_t e = 0; e < {PLACES}; e++) {{"
    yield place
    yield from (f"  {line}" for line in _read_index(form, f"index[{index}]", f"{source}_size"))
    outside = "value" if form.value else f"{KEY}(0)"
    yield f"  elements[e] = at >= 0 && at < {source}_size ? {source}[at * {source}_stride] : {outside};"
    yield "}"
    yield f"for (index_t e = 0; e < {PLACES}; e++) {{"
    yield place
    yield "  output[i > 0 ? i * index_t(output_strides[dim]) : 0] = elements[e];"
    yield "}"


def _write_combined(form: IndexMap, source: str) -> Iterator[str]:
    """The elements of a row one after the other: two of them may go to one place, which no atomic can multiply."""
    element = f"{source}[{source}_offset + j * {source}_stride]" if source else "value"
    yield "for (index_t j = 0; j < index_size; j++) {"
    yield from (f"  {line}" for line in _read_index(form, "index[index_offset + j * index_stride]", "output_size"))
    yield "  if (at >= 0 && at < output_size) {"
    yield f"    const {SUM} element = static_cast<{SUM}>({element});"
    yield f"    device {SUM}& combined = output[output_offset + {INDEXED_AT} * output_stride];"
    yield f"    combined = static_cast<{SUM}>(multiplies ? combined * element : combined + element);"
    yield "  }"
    yield "}"


class _Writer(LaunchWriter[IndexMap]):
    def headers(self) -> Iterator[str]:
        yield from HEADERS
        if self.form.mode is AccessMode.ADD:
            yield CONTEXT
        if self._sums():
            yield OP_MATH
        if self.form.rule in INDEXED:
            yield NON_EMPTY
            if not self._is_wrapped():
                yield WRAP_DIM
        if self.form.rule is IndexRule.REVERSED:
            yield REDUCE_UTILS
        elif self.form.rule in _PADS:
            yield DIMS

    def _tensor(self, tensor: str) -> str:
        if self.form.averaged and tensor == self.form.source:
            return _AVERAGED
        if tensor == RESULT and self._sums():
            return self._sums()
        variable = self.site.views.get(tensor) or self.site.variable(tensor)
        return f"{variable}_" if self._is_converted(tensor) else variable

    def _is_converted(self, tensor: str) -> bool:
        """Whether a tensor is a value to write, which may be of another type than the result."""
        return self.form.writes and tensor in self.site.views and tensor == self.form.source

    def _sums(self) -> str:
        """The variable that kernels add to, or combine in, instead of the result; nothing if they do so in that."""
        return name_sums(self.kernels, self.site) if self.form.mode in (AccessMode.ADD, AccessMode.COMBINE) else ""

    def _is_wrapped(self) -> bool:
        """Whether the function has set the dimension to one that is not negative."""
        dim = self.site.variable(self.form.argument)
        return self.site.code.has(f"{dim} = maybe_wrap_dim({dim},")

    def start(self) -> str:
        """The statement that gives the result what it has where nothing is written, if the function has not."""
        form, result = self.form, self.result
        if form.writes and not form.start:
            return write_zeros(self.site)
        source = self.site.variable(form.start) if form.start else result
        return f"{result}.copy_({source});" if source != result else ""

    def prepare(self) -> Iterator[str]:
        """What the result has where nothing is written, and what is written in its type."""
        form, result = self.form, self.result
        if self._is_converted(form.source):
            expanded = self.site.views[form.source]
            yield f"const auto {self._tensor(form.source)} = {expanded}.to({result}.scalar_type());"
        elif form.source and (form.source != "self" or result in self.site.names.given):  # others have self's type
            yield from write_agreement(self.site.variable(form.source), result, self.site.code)
        if form.mode is AccessMode.ADD:
            yield write_alert(self.kernels)
        if form.averaged:
            yield from self._average()
        if start := self.start():
            yield start
        yield from write_sums(self._sums(), result)

    def _average(self) -> Iterator[str]:
        """A variable for the source, divided by how many of its rows have the same index if the flag says so."""
        source, index = self.site.variable(self.form.source), self.site.variable(self.form.index)
        yield f"Tensor {_AVERAGED} = {source};"
        yield f"if ({self.site.variable(self.form.averaged)} && {source}.numel() > 0) {{"
        yield f"const auto rows = {index}.flatten();"
        yield f"const auto counts = rows.bincount({{}}, {self.result}.size(0)).index_select(0, rows);"
        divided = f"{source}.reshape({{rows.numel(), -1}}).div(counts.unsqueeze(-1))"
        yield f"{_AVERAGED} = {divided}.view({source}.sizes());"
        yield "}"

    def numbers(self) -> Iterator[str]:
        """Variables for what the kernel takes and the function has no variable for."""
        kinds = {argument.kind for argument in self.kernels.arguments}
        rank = f"{self._tensor(self.form.walked)}.dim()"
        argument = self.site.variable(self.form.argument) if self.form.argument else ""
        if "dim" in kinds and not self._is_wrapped():
            yield f"const int64_t wrapped_dim = maybe_wrap_dim({argument}, {rank});"
        if self.form.is_looked_up:
            yield f"const int64_t {_WIDTH} = ensure_nonempty_size({self._tensor(self.form.walked)}, {self._dim()});"
        if "reversed" in kinds:
            mask = f"make_dim_mask({argument}, {rank}, /*allow_empty_dims=*/true)"
            yield f"const uint64_t reversed = {mask}.to_ullong();"
        if "padding" in kinds:
            yield f"DimVector left_padding({rank}, 0);"
            yield f"for (const auto i : c10::irange({argument}.size() / 2)) {{"
            yield f"left_padding[{rank} - 1 - i] = {argument}[2 * i];"
            yield "}"
        if self.form.has_rows and not self.form.is_looked_up:
            yield f"const int64_t columns = {self.result}.size(-1), rows = {rank} > 1 ? {self.result}.size(-2) : 1;"

    def _argument(self, argument: Argument) -> str:
        tensor = self._tensor(argument.tensor) if argument.tensor else ""
        if argument.kind in ("value", "factor"):
            number = self.site.variable(self.form.value if argument.kind == "value" else self.form.factor)
            return f"getMPSScalar({number}, {self.result}.scalar_type())"
        if argument.kind == "multiplies":
            return f'{self.site.variable(self.form.combine)} == "multiply"'
        if argument.kind in _PASSED:
            return _PASSED[argument.kind].format(tensor, self._dim() if self.form.rule in INDEXED else "")
        return argument.write(tensor)

    def _dim(self) -> str:
        return self.site.variable(self.form.argument) if self._is_wrapped() else "wrapped_dim"

    def encode(self) -> Iterator[str | Node]:
        yield from self.site.write_stream()
        walked = self._tensor(self.form.walked)
        asked = [self.site.variable(tensor) for tensor in (self.form.index, self.form.source) if tensor]
        rows = f" / ensure_nonempty_size({walked}, {self._dim()})" if self.form.mode is AccessMode.COMBINE else ""
        guard = guard_empty(walked, asked, self.site) if self.form.writes else ""
        types, threads, largest = self._list_types(), f"{walked}.numel(){rows}", ""
        if self.form.is_looked_up:
            threads = count_row_threads(walked, _WIDTH)
        elif self.form.has_rows:
            whole = f"{walked}.numel() / (columns * rows)"
            threads = f"{whole} * ((columns + {PLACES - 1}) / {PLACES}) * ((rows + {_ROWS - 1}) / {_ROWS})"
            largest = LARGEST_ROWS
        yield from launch_one(self.kernels, threads, self._tensor, self._argument, types, guard=guard, largest=largest)
        yield from copy_sums(self._sums(), self.result)

    def _list_types(self) -> list[str]:
        """The tensors whose types the kernel is named by: the result, though it may add to a wider one."""
        tensors = [parameter.tensor for parameter in self.kernels.elements.parameters]
        return [self.site.variable(tensor) if tensor == RESULT else self._tensor(tensor) for tensor in tensors]
