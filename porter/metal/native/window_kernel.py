"""Kernels that pool windows, a thread for each, and those of the gradients.

A gradient has a thread for each element, which walks the windows that the element lies in; or for each window, where
several may add to one element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.loops.windows import Pooling, Window
from porter.metal.native.coordinate_kernel import RESULT, Argument, MapKernel, name_tensor
from porter.metal.native.elements import KEY, Elements, TypeParameter
from porter.metal.native.kernel import KernelStyle, register

POSITIONS = "result1"
LISTS = ("kernel_size", "stride", "padding", "dilation")
_LIMITS = f"::metal::numeric_limits<{KEY}>"
_LOWEST = f"static_cast<{KEY}>({_LIMITS}::has_infinity ? -{_LIMITS}::infinity() : {_LIMITS}::lowest())"
_SUM = f"c10::metal::opmath_t<{KEY}>"


def write_window_kernel(found: Window, name: str, instances: Sequence[DType], style: KernelStyle) -> MapKernel:
    """A kernel for some element types."""
    elements = Elements((TypeParameter(KEY, found.source),), {}, tuple((d,) for d in instances), instances[0], False)
    arguments = tuple(_list_arguments(found))
    texts = [*(each.text for each in arguments), "uint tid [[thread_position_in_grid]]"]
    lines = "".join(f"  {line}\n" for line in _write_body(found))
    head = f"template <typename {KEY}, typename index_t>\nkernel void {name}({', '.join(texts)}) {{\n"
    return MapKernel(name, f"{head}{lines}}}\n\n{register(name, elements, texts, style)}", arguments, elements)


def list_pooled_types(found: Window, atomic: Sequence[str]) -> list[DType]:
    """The element types of a kernel: those of recorded calls, and narrow integers where maxima are of integers."""
    kinds = {each.kind for each in found.dtypes} if found.pooling is Pooling.MAXIMUM else set()
    made = [each for each in dtypes.ALL if each in found.dtypes or (each.kind is Kind.INTEGRAL and each.kind in kinds)]
    return [each for each in made if each.metal in atomic] if found.adds else made


def find_threads(found: Window) -> str:
    """The tensor that there is a thread for each element of."""
    return found.gradient if found.adds else RESULT


def _result(found: Window) -> str:
    return "grad_input" if found.gradient else "output"


def _list_tensors(found: Window) -> Iterator[tuple[str, str, str]]:
    """The tensors of a kernel: the schema's name of each, the kernel's, and its type."""
    written = f"c10::metal::AtomicType_t<{KEY}>" if found.adds else KEY
    yield RESULT, _result(found), f"device {written}*"
    if found.results > 1:
        yield POSITIONS, "indices", "device long*"
    if found.gradient:
        yield found.gradient, found.gradient, f"constant {KEY}*"
    if found.indices:
        yield found.indices, "indices", "constant long*"
    elif not found.gradient or found.pooling is Pooling.MAXIMUM:
        yield found.source, name_tensor(found.source), f"constant {KEY}*"


def _list_arguments(found: Window) -> Iterator[Argument]:
    tensors = list(_list_tensors(found))
    for tensor, name, type_ in tensors:
        yield Argument(f"{type_} {name}", "tensor", tensor)
    walked = find_threads(found)
    yield Argument("constant long* sizes", "sizes", walked)
    yield Argument(f"constant long* {_other(found)}_sizes", "sizes", _other_tensor(found))
    for tensor, name, _ in tensors:
        yield Argument(f"constant long* {name}_strides", "strides", tensor)
    yield Argument("constant long& ndim", "rank", walked)
    for kernel_name, argument in zip(LISTS, (found.size, found.stride, found.padding, found.dilation), strict=True):
        if argument:
            yield Argument(f"constant long* {kernel_name}", "list", argument)
    if found.counts_padding:
        yield Argument(f"constant bool& {found.counts_padding}", "flag", found.counts_padding)
    if found.divisor:
        yield Argument(f"constant long& {found.divisor}", "number", found.divisor)


def _other_tensor(found: Window) -> str:
    """The tensor whose last dimensions are walked by a thread."""
    return found.gradient if found.gradient and not found.adds else found.source


def _other(found: Window) -> str:
    return name_tensor(_other_tensor(found))


def _write_body(found: Window) -> Iterator[str]:
    yield from _write_coordinates(found)
    if not found.gradient or found.adds:
        yield from _write_window(found)
    else:
        yield from _write_windows_of_element(found)


def _write_coordinates(found: Window) -> Iterator[str]:
    """The last two coordinates of a thread, and where the others are in each tensor."""
    names = [name for _, name, _ in _list_tensors(found)]
    yield "const index_t w = tid % index_t(sizes[ndim - 1]);"
    yield "index_t rest = tid / index_t(sizes[ndim - 1]);"
    yield "const index_t h = rest % index_t(sizes[ndim - 2]);"
    yield "rest /= index_t(sizes[ndim - 2]);"
    yield from (f"index_t {name}_offset = 0;" for name in names)
    yield "for (long d = ndim - 3; d >= 0; d--) {"
    yield "  const index_t i = rest % index_t(sizes[d]);"
    yield "  rest /= index_t(sizes[d]);"
    yield from (f"  {name}_offset += i * index_t({name}_strides[d]);" for name in names)
    yield "}"
    yield f"const index_t height = {_image_sizes(found)}[ndim - 2];"
    yield f"const index_t width = {_image_sizes(found)}[ndim - 1];"


def _image_sizes(found: Window) -> str:
    """The sizes of what windows move over."""
    return "sizes" if found.gradient and not found.adds else f"{_other(found)}_sizes"


def _at(name: str, row: str, column: str) -> str:
    strides = f"{name}_strides"
    return f"{name}_offset + {row} * index_t({strides}[ndim - 2]) + {column} * index_t({strides}[ndim - 1])"


def _write_ends(found: Window, row: str, column: str) -> Iterator[str]:
    """Where a window starts, its first element that is not in the padding before, and where it ends."""
    for k, (letter, index, size) in enumerate((("h", row, "height"), ("w", column, "width"))):
        yield f"const index_t start_{letter} = {index} * index_t(stride[{k}]) - index_t(padding[{k}]);"
        yield f"const index_t end_{letter} = min(start_{letter} + {_span(found, k)} + 1, {size});"
        if found.dilation:
            yield f"index_t first_{letter} = start_{letter};"
            yield f"while (first_{letter} < 0) {{"
            yield f"  first_{letter} += index_t(dilation[{k}]);"
            yield "}"
        else:
            yield f"const index_t first_{letter} = max(start_{letter}, index_t(0));"


def _write_window(found: Window) -> Iterator[str]:
    """What a thread makes of the elements of its window."""
    source = name_tensor(found.source)
    yield from _write_ends(found, "h", "w")
    is_maximum = found.pooling is Pooling.MAXIMUM
    if is_maximum:
        yield f"{KEY} largest = {_LOWEST};"
        yield "index_t position = first_h * width + first_w;"
    else:
        yield f"{_SUM} sum = 0;"
    yield f"for (index_t y = first_h; y < end_h; {_step(found, 'y', 0)}) {{"
    yield f"  for (index_t x = first_w; x < end_w; {_step(found, 'x', 1)}) {{"
    element = f"{source}[{_at(source, 'y', 'x')}]"
    if is_maximum:
        yield f"    const {KEY} value = {element};"
        yield "    if (value > largest || value != value) {"  # NaN stays
        yield "      largest = value;"
        yield "      position = y * width + x;"
        yield "    }"
    else:
        yield f"    sum += static_cast<{_SUM}>({element});"
    yield from ("  }", "}")
    yield from _write_result(found)


def _span(found: Window, k: int) -> str:
    """How far the last element of a window is from the first."""
    rate = f" * index_t(dilation[{k}])" if found.dilation else ""
    return f"(index_t(kernel_size[{k}]) - 1){rate}" if rate else f"index_t(kernel_size[{k}]) - 1"


def _step(found: Window, index: str, k: int) -> str:
    return f"{index} += index_t(dilation[{k}])" if found.dilation else f"{index}++"


def _write_result(found: Window) -> Iterator[str]:
    result = _result(found)
    target = f"{result}[{_at(result, 'h', 'w')}]"
    if found.adds:
        offset = _at(result, "position / width", "position % width")
        value = f"{found.gradient}[{_at(found.gradient, 'h', 'w')}]"
        yield "if (first_h < end_h && first_w < end_w) {"
        yield f"  c10::metal::AtomicType<{KEY}>::atomic_add({result}, {offset}, {value});"
        yield "}"
    elif found.pooling is Pooling.MAXIMUM:
        yield f"{target} = largest;"
        if found.results > 1:
            yield f"indices[{_at('indices', 'h', 'w')}] = position;"
    else:
        yield from _write_divisor(found)
        yield f"{target} = static_cast<{KEY}>(sum / divisor);"


def _write_divisor(found: Window) -> Iterator[str]:
    """How many elements the window at the starts has, or the number that is given in their place."""
    yield f"long divisor = {found.divisor or 0};"
    yield f"if (divisor == 0 && {found.counts_padding}) {{"
    sizes = []
    for k, (letter, size) in enumerate((("h", "height"), ("w", "width"))):
        start, padded = f"start_{letter}", f"{size} + index_t(padding[{k}])"
        sizes.append(f"(min({start} + index_t(kernel_size[{k}]), {padded}) - {start})")
    yield f"  divisor = {' * '.join(sizes)};"
    yield "} else if (divisor == 0) {"
    yield "  divisor = max((end_h - first_h) * (end_w - first_w), index_t(1));"
    yield "}"


def _write_windows_of_element(found: Window) -> Iterator[str]:
    """The sum over the windows that an element lies in."""
    windows = _other(found)
    for k, (letter, index) in enumerate((("h", "y"), ("w", "x"))):
        steps, last = f"index_t(stride[{k}])", f"index_t({windows}_sizes[ndim - {2 - k}]) - 1"
        yield f"const index_t padded_{letter} = {letter} + index_t(padding[{k}]);"
        yield f"const index_t before_{letter} = max(padded_{letter} - ({_span(found, k)}), index_t(0));"
        yield f"const index_t first_{index} = (before_{letter} + {steps} - 1) / {steps};"
        yield f"const index_t last_{index} = min(padded_{letter} / {steps}, {last});"
    yield f"{_SUM} sum = 0;"
    yield "for (index_t y = first_y; y <= last_y; y++) {"
    yield "  for (index_t x = first_x; x <= last_x; x++) {"
    gradient = f"static_cast<{_SUM}>({found.gradient}[{_at(found.gradient, 'y', 'x')}])"
    if found.pooling is Pooling.MAXIMUM:
        yield f"    if (indices[{_at('indices', 'y', 'x')}] == h * width + w) {{"
        yield f"      sum += {gradient};"
        yield "    }"
    else:
        lines = (*_write_ends(found, "y", "x"), *_write_divisor(found), f"sum += {gradient} / divisor;")
        yield from (f"    {line}" for line in lines)
    yield from ("  }", "}")
    result = _result(found)
    yield f"{result}[{_at(result, 'h', 'w')}] = static_cast<{KEY}>(sum);"
