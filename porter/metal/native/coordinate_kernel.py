"""Kernels of coordinate maps: a thread for each element, whose coordinates give its offset in each tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.loops.coordinates import INDEXED, CoordinateMap, Rule, Way
from porter.metal.native.elements import KEY, Elements, TypeParameter
from porter.metal.native.kernel import KernelStyle, register

RESULT = "result0"
_USUAL = {"self": "input", RESULT: "output"}
_INDEX_TYPE = "I"
_SUM = f"sum_t<{KEY}>"
# What kernels that add or combine use.
SUM_HELPER = """\
// The type that elements are added up in: of 32 bits for floating-point ones of 16
template <typename T>
using sum_t = ::metal::conditional_t<::metal::is_integral_v<T>, T, c10::metal::opmath_t<T>>;

"""
_PADS = (Rule.PADDED, Rule.CLAMPED, Rule.REFLECTED)
_AT = {
    Rule.REVERSED: ("const index_t at = reversed >> d & 1 ? index_t(sizes[d]) - 1 - i : i;",),
    Rule.REPEATED: ("const index_t at = i % index_t({to}_sizes[d]);",),
    Rule.PADDED: ("const index_t at = i - index_t(padding[d]);",),
    Rule.CLAMPED: ("const index_t at = clamp(i - index_t(padding[d]), index_t(0), index_t({to}_sizes[d]) - 1);",),
    Rule.REFLECTED: (
        "const index_t last = index_t({to}_sizes[d]) - 1;",
        "const index_t at = last - abs(last - abs(i - index_t(padding[d])));",
    ),
    Rule.POSITION: ("const long at = d == dim ? long(index[i * index_stride]) : i;",),
}
_INDEXED_AT = "index_t(at)"  # what an index names is as wide as the index until it is known to be inside


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel: its text in Metal, what it is, and of which tensor, by its name in the schema."""

    text: str
    kind: str
    tensor: str = ""


@dataclass(frozen=True)
class MapKernel:
    """A kernel of a coordinate map, and its arguments in order."""

    name: str
    source: str
    arguments: tuple[Argument, ...]
    elements: Elements


def write_map_kernel(found: CoordinateMap, name: str, instances: Sequence[DType], style: KernelStyle) -> MapKernel:
    """A kernel for some element types."""
    elements = _list_elements(found, instances)
    arguments = tuple(_list_arguments(found))
    texts = [*(each.text for each in arguments), "uint tid [[thread_position_in_grid]]"]
    types = ", ".join(f"typename {each.name}" for each in elements.parameters)
    head = f"template <{types}, typename index_t>\nkernel void {name}({', '.join(texts)}) {{\n"
    body = "".join(f"  {line}\n" for line in _write_body(found))
    return MapKernel(name, f"{head}{body}}}\n\n{register(name, elements, texts, style)}", arguments, elements)


def list_types(found: CoordinateMap, atomic: Sequence[str], refuses_complex: bool) -> list[DType]:
    """The element types of a kernel: those of recorded kinds with atomic functions where it needs them, else all.

    The type of bins is what host code makes of the source's: one of those recorded.
    """
    if found.rule is Rule.BIN:
        return [dtype for dtype in dtypes.ALL if dtype in found.dtypes and _find_sum(dtype).metal in atomic]
    kinds = {dtype.kind for dtype in found.dtypes}
    kinds |= {Kind.COMPLEX} if Kind.FLOATING in kinds else set()
    made = [dtype for dtype in dtypes.ALL if dtype.kind in kinds or found.way is not Way.ADD]
    if found.way is Way.ADD:
        made = [dtype for dtype in made if _find_sum(dtype).metal in atomic]
    if refuses_complex or found.way is Way.COMBINE:
        made = [dtype for dtype in made if dtype.kind is not Kind.COMPLEX]
    return made


def _find_sum(dtype: DType) -> DType:
    """The type that elements are added up in."""
    return dtype.opmath if dtype.kind is Kind.FLOATING else dtype


def _list_elements(found: CoordinateMap, instances: Sequence[DType]) -> Elements:
    parameters = [TypeParameter(KEY, RESULT)]
    made: tuple[tuple[DType, ...], ...] = tuple((dtype,) for dtype in instances)
    if len(found.index_dtypes) > 1:
        parameters.append(TypeParameter(_INDEX_TYPE, found.index))
        made = tuple((dtype, each) for dtype in instances for each in found.index_dtypes)
    return Elements(tuple(parameters), {}, made, instances[0], False)


def name_tensor(tensor: str) -> str:
    """What a kernel calls a tensor of the schema."""
    return _USUAL.get(tensor, tensor)


def _to(found: CoordinateMap) -> str:
    """The tensor whose coordinates follow from those of a thread."""
    return RESULT if found.writes else found.source


def _list_arguments(found: CoordinateMap) -> Iterator[Argument]:
    if found.rule is Rule.BIN:
        yield from _list_bin_arguments(found)
        return
    source, to = name_tensor(found.source), name_tensor(_to(found))
    written = {Way.ADD: f"c10::metal::AtomicType_t<{_SUM}>", Way.COMBINE: _SUM}.get(found.way, KEY)
    yield Argument(f"device {written}* output", "tensor", RESULT)
    if found.source:
        yield Argument(f"constant {KEY}* {source}", "tensor", found.source)
    if found.index:
        type_ = _INDEX_TYPE if len(found.index_dtypes) > 1 else found.index_dtypes[0].metal
        yield Argument(f"constant {type_}* index", "tensor", found.index)
    walked = find_walked(found)
    yield Argument("constant long* sizes", "sizes", walked)
    if needs_sizes(found):
        yield Argument(f"constant long* {to}_sizes", "sizes", _to(found))
    yield Argument("constant long* output_strides", "strides", RESULT)
    if found.source:
        yield Argument(f"constant long* {source}_strides", "strides", found.source)
    if found.rule is Rule.ELEMENT:
        yield Argument("constant long* index_strides", "strides", found.index)
        yield Argument(f"constant index_t& {to}_size", "size", _to(found))
        yield Argument(f"constant index_t& {to}_stride", "stride", _to(found))
    if found.rule is Rule.POSITION:
        yield Argument("constant index_t& index_stride", "index stride", found.index)
    if found.rule is Rule.ROW:
        yield Argument("constant long* index_strides", "strides", found.index)
        yield Argument(f"constant index_t& {to}_size", "rows", _to(found))
    yield Argument("constant long& ndim", "rank", walked)
    if found.rule is Rule.ROW:
        yield Argument("constant long& index_ndim", "rank", found.index)
    if found.rule in INDEXED:
        yield Argument("constant long& dim", "dim")
    if found.way is Way.COMBINE:
        yield Argument("constant index_t& index_size", "size", found.index)
        yield Argument("constant index_t& index_stride", "stride", found.index)
        if found.source:
            yield Argument(f"constant index_t& {source}_stride", "stride", found.source)
        yield Argument("constant bool& multiplies", "multiplies")
    if found.rule is Rule.REVERSED:
        yield Argument("constant ulong& reversed", "reversed")
    if found.rule in _PADS:
        yield Argument("constant long* padding", "padding")
    if found.value:
        yield Argument(f"constant {KEY}& value", "value")
    if found.factor:
        yield Argument(f"constant {KEY}& {found.factor}", "factor")
    if found.skipped:
        yield Argument(f"constant long& {found.skipped}", "number", found.skipped)


def _list_bin_arguments(found: CoordinateMap) -> Iterator[Argument]:
    index, source = name_tensor(found.index), name_tensor(found.source)
    type_ = _INDEX_TYPE if len(found.index_dtypes) > 1 else found.index_dtypes[0].metal
    yield Argument(f"device c10::metal::AtomicType_t<{_SUM}>* output", "tensor", RESULT)
    yield Argument(f"constant {type_}* {index}", "tensor", found.index)
    yield Argument(f"constant {KEY}* {source}", "optional tensor", found.source)
    yield Argument("constant index_t& output_size", "rows", RESULT)
    yield Argument("constant index_t& output_stride", "first stride", RESULT)
    yield Argument(f"constant index_t& {index}_stride", "first stride", found.index)
    yield Argument(f"constant index_t& {source}_stride", "optional stride", found.source)
    yield Argument(f"constant bool& has_{source}", "flag", found.source)


def find_walked(found: CoordinateMap) -> str:
    """The tensor whose coordinates the threads have."""
    if not found.writes:
        return RESULT
    return found.index if found.rule in (Rule.ELEMENT, Rule.BIN) else found.source


def needs_sizes(found: CoordinateMap) -> bool:
    """Whether a kernel takes the sizes of the tensor at whose coordinates it reads or writes."""
    return found.rule not in (Rule.REVERSED, Rule.ELEMENT, Rule.ROW)


def _is_checked(found: CoordinateMap) -> bool:
    """Whether coordinates may lie outside."""
    return found.rule in (Rule.PADDED, *INDEXED)


def _write_body(found: CoordinateMap) -> Iterator[str]:
    if found.rule is Rule.ROW:
        yield from _write_rows(found)
        return
    if found.rule is Rule.BIN:
        yield from _write_bins(found)
        return
    source, to = name_tensor(found.source), name_tensor(_to(found))
    tensors = ["output", *([source] if source else []), *(["index"] if found.rule is Rule.ELEMENT else [])]
    inside = _is_checked(found) and found.rule is not Rule.ELEMENT
    yield "index_t rest = tid;"
    yield from (f"index_t {each}_offset = 0;" for each in tensors)
    if inside:
        yield "bool is_inside = true;"
    yield "for (long d = ndim - 1; d >= 0; d--) {"
    if found.way is Way.COMBINE:  # a thread for each row along the dimension
        yield "  if (d == dim) {"
        yield "    continue;"
        yield "  }"
    yield "  const index_t i = rest % index_t(sizes[d]);"
    yield "  rest /= index_t(sizes[d]);"
    for line in _write_at(found):
        yield f"  {line.format(to=to)}"
    if inside:
        yield f"  is_inside = is_inside && at >= 0 && at < index_t({to}_sizes[d]);"
    for each in tensors:
        moved = _INDEXED_AT if found.rule is Rule.POSITION else "at"
        at = moved if each == to and found.rule is not Rule.ELEMENT else "i"
        line = f"{each}_offset += {at} * index_t({each}_strides[d]);"
        if each == to and found.rule is Rule.ELEMENT and found.way is not Way.COMBINE:
            yield "  if (d != dim) {"
            yield f"    {line}"
            yield "  }"
        else:
            yield f"  {line}"
    yield "}"
    yield from _write_end(found, source, to, inside)


def _write_at(found: CoordinateMap) -> Sequence[str]:
    """The coordinate of the other tensor in a dimension, as `at`."""
    lines = _AT.get(found.rule, ())
    if found.rule is not Rule.POSITION or not found.wraps:
        return lines
    counted = "const long at = counted < 0 ? counted + index_t({to}_sizes[d]) : counted;"
    return (*(each.replace("long at", "long counted") for each in lines), counted)


def _write_end(found: CoordinateMap, source: str, to: str, inside: bool) -> Iterator[str]:
    """What is done with the element at the offsets."""
    element = f"{source}[{source}_offset]" if source else "value"
    if found.way is Way.COMBINE:
        yield from _write_combined(found, source)
        return
    is_element = found.rule is Rule.ELEMENT
    if is_element:
        yield from _read_index(found, "index[index_offset]", f"{to}_size")
    test = f"at >= 0 && at < {to}_size" if is_element else "is_inside"
    checked = inside or is_element
    if found.way is Way.READ:
        offset = f"{source}_offset + {_INDEXED_AT} * {source}_stride" if is_element else f"{source}_offset"
        value = f"{source}[{offset}]"
        outside = "value" if found.value else f"{KEY}(0)"
        yield f"output[output_offset] = {f'{test} ? {value} : {outside}' if checked else value};"
        return
    offset = f"output_offset + {_INDEXED_AT} * output_stride" if is_element else "output_offset"
    value = f"c10::metal::mul({element}, {found.factor})" if found.factor else element
    if found.way is Way.ADD or found.factor:
        value = f"static_cast<{_SUM if found.way is Way.ADD else KEY}>({value})"
    write = f"c10::metal::AtomicType<{_SUM}>::atomic_add(output, {offset}, {value});"
    write = write if found.way is Way.ADD else f"output[{offset}] = {value};"
    if checked:
        yield from (f"if ({test}) {{", f"  {write}", "}")
    else:
        yield write


def _read_index(found: CoordinateMap, element: str, size: str) -> Iterator[str]:
    """An element of the index, as `at`."""
    if found.wraps:
        yield f"const long counted = {element};"
        yield f"const long at = counted < 0 ? counted + {size} : counted;"
    else:
        yield f"const long at = {element};"


def _write_rows(found: CoordinateMap) -> Iterator[str]:
    """An element goes to its place in the row that the index of its leading coordinates names."""
    source = name_tensor(found.source)
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
    unless = f" && at != {found.skipped}" if found.skipped else ""
    yield "const long at = index[index_offset];"
    yield f"if (at >= 0 && at < output_size{unless}) {{"
    yield f"  output_offset += {_INDEXED_AT} * index_t(output_strides[0]);"
    element = f"static_cast<{_SUM}>({source}[{source}_offset])"
    yield f"  c10::metal::AtomicType<{_SUM}>::atomic_add(output, output_offset, {element});"
    yield "}"


def _write_bins(found: CoordinateMap) -> Iterator[str]:
    """An element goes to the bin that the index names."""
    index, source = name_tensor(found.index), name_tensor(found.source)
    yield f"const long at = {index}[tid * {index}_stride];"
    yield "if (at >= 0 && at < output_size) {"
    element = f"{source}[tid * {source}_stride]"
    yield f"  const {_SUM} value = has_{source} ? static_cast<{_SUM}>({element}) : {_SUM}(1);"
    yield f"  c10::metal::AtomicType<{_SUM}>::atomic_add(output, {_INDEXED_AT} * output_stride, value);"
    yield "}"


def _write_combined(found: CoordinateMap, source: str) -> Iterator[str]:
    """The elements of a row one after the other: two of them may go to one place, which no atomic can multiply."""
    element = f"{source}[{source}_offset + j * {source}_stride]" if source else "value"
    yield "for (index_t j = 0; j < index_size; j++) {"
    yield from (f"  {line}" for line in _read_index(found, "index[index_offset + j * index_stride]", "output_size"))
    yield "  if (at >= 0 && at < output_size) {"
    yield f"    const {_SUM} element = static_cast<{_SUM}>({element});"
    yield f"    device {_SUM}& combined = output[output_offset + {_INDEXED_AT} * output_stride];"
    yield f"    combined = static_cast<{_SUM}>(multiplies ? combined * element : combined + element);"
    yield "  }"
    yield "}"
