"""Results of windows that move over the last dimensions of a tensor, and the gradients of such.

There is a thread for each window. An element of an average's gradient, or of a maximum's whose positions are given,
walks the windows that it lies in and no others. Where positions are not given, each window finds its maximum again and
adds to that element.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.languages.brackets import split_at_commas
from porter.metal.codegen.checks import write_agreement
from porter.metal.codegen.elements import KEY
from porter.metal.codegen.host_code import Launch, as_nodes
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.form import (
    CONTEXT,
    HEADERS,
    RESULT,
    Argument,
    Form,
    FormKernels,
    LaunchWriter,
    Site,
    launch_one,
    list_elements,
    name_tensor,
    write_one_kernel,
)

_POSITIONS = "result1"
_LISTS = ("kernel_size", "stride", "padding", "dilation")
_LIMITS = f"::metal::numeric_limits<{KEY}>"
_LOWEST = f"static_cast<{KEY}>({_LIMITS}::has_infinity ? -{_LIMITS}::infinity() : {_LIMITS}::lowest())"
_SUM = f"c10::metal::opmath_t<{KEY}>"


class Pooled(Enum):
    """What is made of the elements of a window."""

    MAXIMUM = "the maximum, NaN before numbers"
    AVERAGE = "the average"


@dataclass(frozen=True)
class Pooling(Form):
    """How windows are pooled.

    `size`, `stride`, `padding` and `dilation` are lists with an element for each of the last two dimensions, or one for
    both; an empty `stride` is the size. An average divides by the number `divisor` if it is given, else by how many
    elements a window has, with those of the padding if the flag `counts_padding` is set.

    A gradient goes back to `source` from `gradient`; `indices` are the positions of maxima, an argument of a gradient.
    Without a gradient `results` is 2 where positions are returned too.
    """

    TITLE: ClassVar[str] = "coordinates"
    WHOLE_BODY: ClassVar[bool] = True

    pooled: Pooled
    source: str
    size: str
    stride: str
    padding: str
    dilation: str = ""
    counts_padding: str = ""
    divisor: str = ""
    gradient: str = ""
    indices: str = ""
    results: int = 1
    dtypes: tuple[DType, ...] = ()

    @property
    def adds(self) -> bool:
        """Whether threads go over windows, several of which may add to one element."""
        return bool(self.gradient) and self.pooled is Pooled.MAXIMUM and not self.indices

    @property
    def walked(self) -> str:
        """The tensor that there is a thread for each element of."""
        return self.gradient if self.adds else RESULT

    def describe(self) -> Iterator[str]:
        pooled = f"{self.pooled.value} of windows of {self.source}"
        lists = [each for each in (self.size, self.stride, self.padding, self.dilation) if each]
        if self.adds:
            yield f"result = zeros; each element of {self.gradient} is added where its window has {self.pooled.value}"
        elif self.gradient:
            where = f", where {self.indices} says so" if self.indices else ""
            yield f"result = sum of {self.gradient} over the windows that an element lies in{where}: {pooled}"
        else:
            yield f"result = {pooled}{', with its position' if self.results > 1 else ''}"
        yield f"windows by {', '.join(lists)}"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        """Those of recorded calls, and narrow integers where maxima are of integers."""
        kinds = {dtype.kind for dtype in self.dtypes} if self.pooled is Pooled.MAXIMUM else set()
        atomic = read_atomic() if self.adds else ()
        return [
            dtype
            for dtype in dtypes.ALL
            if (dtype in self.dtypes or (dtype.kind is Kind.INTEGRAL and dtype.kind in kinds))
            and (not self.adds or dtype.metal in atomic)
        ]

    def list_counted(self) -> tuple[str, ...]:
        return (self.walked,) if self.adds else ()

    def list_moved(self) -> tuple[str, ...]:
        return self.source, self.gradient

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(self.source, instances)
        return write_one_kernel(name, elements, _list_arguments(self), _write_body(self), style)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        writer = _Writer(self, kernels, site)
        launch = launch_one(kernels, f"{site.variable(self.walked)}.numel()", site.variable, writer.write)
        lines = (*writer.prepare(), *site.write_stream(), *launch)
        headers = (*HEADERS, *((CONTEXT,) if self.adds else ()))
        return Launch(as_nodes(lines), frozenset(headers), writer.start())


def _result(form: Pooling) -> str:
    return "grad_input" if form.gradient else "output"


def _list_tensors(form: Pooling) -> Iterator[tuple[str, str, str]]:
    """The tensors of a kernel: the schema's name of each, the kernel's, and its type."""
    written = f"c10::metal::AtomicType_t<{KEY}>" if form.adds else KEY
    yield RESULT, _result(form), f"device {written}*"
    if form.results > 1:
        yield _POSITIONS, "indices", "device long*"
    if form.gradient:
        yield form.gradient, form.gradient, f"constant {KEY}*"
    if form.indices:
        yield form.indices, "indices", "constant long*"
    elif not form.gradient or form.pooled is Pooled.MAXIMUM:
        yield form.source, name_tensor(form.source), f"constant {KEY}*"


def _list_arguments(form: Pooling) -> Iterator[Argument]:
    tensors = list(_list_tensors(form))
    for tensor, name, type_ in tensors:
        yield Argument(f"{type_} {name}", "tensor", tensor)
    walked = form.walked
    yield Argument("constant long* sizes", "sizes", walked)
    yield Argument(f"constant long* {_other(form)}_sizes", "sizes", _other_tensor(form))
    for tensor, name, _ in tensors:
        yield Argument(f"constant long* {name}_strides", "strides", tensor)
    yield Argument("constant long& ndim", "rank", walked)
    for kernel_name, argument in zip(_LISTS, (form.size, form.stride, form.padding, form.dilation), strict=True):
        if argument:
            yield Argument(f"constant long* {kernel_name}", "list", argument)
    if form.counts_padding:
        yield Argument(f"constant bool& {form.counts_padding}", "flag", form.counts_padding)
    if form.divisor:
        yield Argument(f"constant long& {form.divisor}", "number", form.divisor)


def _other_tensor(form: Pooling) -> str:
    """The tensor whose last dimensions are walked by a thread."""
    return form.gradient if form.gradient and not form.adds else form.source


def _other(form: Pooling) -> str:
    return name_tensor(_other_tensor(form))


def _write_body(form: Pooling) -> Iterator[str]:
    yield from _write_coordinates(form)
    if not form.gradient or form.adds:
        yield from _write_window(form)
    else:
        yield from _write_windows_of_element(form)


def _write_coordinates(form: Pooling) -> Iterator[str]:
    """The last two coordinates of a thread, and where the others are in each tensor."""
    names = [name for _, name, _ in _list_tensors(form)]
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
    yield f"const index_t height = {_image_sizes(form)}[ndim - 2];"
    yield f"const index_t width = {_image_sizes(form)}[ndim - 1];"


def _image_sizes(form: Pooling) -> str:
    """The sizes of what windows move over."""
    return "sizes" if form.gradient and not form.adds else f"{_other(form)}_sizes"


def _at(name: str, row: str, column: str) -> str:
    strides = f"{name}_strides"
    return f"{name}_offset + {row} * index_t({strides}[ndim - 2]) + {column} * index_t({strides}[ndim - 1])"


def _write_ends(form: Pooling, row: str, column: str) -> Iterator[str]:
    """Where a window starts, its first element that is not in the padding before, and where it ends."""
    for k, (letter, index, size) in enumerate((("h", row, "height"), ("w", column, "width"))):
        yield f"const index_t start_{letter} = {index} * index_t(stride[{k}]) - index_t(padding[{k}]);"
        yield f"const index_t end_{letter} = min(start_{letter} + {_span(form, k)} + 1, {size});"
        if form.dilation:
            yield f"index_t first_{letter} = start_{letter};"
            yield f"while (first_{letter} < 0) {{"
            yield f"  first_{letter} += index_t(dilation[{k}]);"
            yield "}"
        else:
            yield f"const index_t first_{letter} = max(start_{letter}, index_t(0));"


def _write_window(form: Pooling) -> Iterator[str]:
    """What a thread makes of the elements of its window."""
    source = name_tensor(form.source)
    yield from _write_ends(form, "h", "w")
    is_maximum = form.pooled is Pooled.MAXIMUM
    if is_maximum:
        yield f"{KEY} largest = {_LOWEST};"
        yield "index_t position = first_h * width + first_w;"
    else:
        yield f"{_SUM} sum = 0;"
    yield f"for (index_t y = first_h; y < end_h; {_step(form, 'y', 0)}) {{"
    yield f"  for (index_t x = first_w; x < end_w; {_step(form, 'x', 1)}) {{"
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
    yield from _write_result(form)


def _span(form: Pooling, k: int) -> str:
    """How far the last element of a window is from the first."""
    rate = f" * index_t(dilation[{k}])" if form.dilation else ""
    return f"(index_t(kernel_size[{k}]) - 1){rate}" if rate else f"index_t(kernel_size[{k}]) - 1"


def _step(form: Pooling, index: str, k: int) -> str:
    return f"{index} += index_t(dilation[{k}])" if form.dilation else f"{index}++"


def _write_result(form: Pooling) -> Iterator[str]:
    result = _result(form)
    target = f"{result}[{_at(result, 'h', 'w')}]"
    if form.adds:
        offset = _at(result, "position / width", "position % width")
        value = f"{form.gradient}[{_at(form.gradient, 'h', 'w')}]"
        yield "if (first_h < end_h && first_w < end_w) {"
        yield f"  c10::metal::AtomicType<{KEY}>::atomic_add({result}, {offset}, {value});"
        yield "}"
    elif form.pooled is Pooled.MAXIMUM:
        yield f"{target} = largest;"
        if form.results > 1:
            yield f"indices[{_at('indices', 'h', 'w')}] = position;"
    else:
        yield from _write_divisor(form)
        yield f"{target} = static_cast<{KEY}>(sum / divisor);"


def _write_divisor(form: Pooling) -> Iterator[str]:
    """How many elements the window at the starts has, or the number that is given in their place."""
    yield f"long divisor = {form.divisor or 0};"
    yield f"if (divisor == 0 && {form.counts_padding}) {{"
    sizes = []
    for k, (letter, size) in enumerate((("h", "height"), ("w", "width"))):
        start, padded = f"start_{letter}", f"{size} + index_t(padding[{k}])"
        sizes.append(f"(min({start} + index_t(kernel_size[{k}]), {padded}) - {start})")
    yield f"  divisor = {' * '.join(sizes)};"
    yield "} else if (divisor == 0) {"
    yield "  divisor = max((end_h - first_h) * (end_w - first_w), index_t(1));"
    yield "}"


def _write_windows_of_element(form: Pooling) -> Iterator[str]:
    """The sum over the windows that an element lies in."""
    windows = _other(form)
    for k, (letter, index) in enumerate((("h", "y"), ("w", "x"))):
        steps, last = f"index_t(stride[{k}])", f"index_t({windows}_sizes[ndim - {2 - k}]) - 1"
        yield f"const index_t padded_{letter} = {letter} + index_t(padding[{k}]);"
        yield f"const index_t before_{letter} = max(padded_{letter} - ({_span(form, k)}), index_t(0));"
        yield f"const index_t first_{index} = (before_{letter} + {steps} - 1) / {steps};"
        yield f"const index_t last_{index} = min(padded_{letter} / {steps}, {last});"
    yield f"{_SUM} sum = 0;"
    yield "for (index_t y = first_y; y <= last_y; y++) {"
    yield "  for (index_t x = first_x; x <= last_x; x++) {"
    gradient = f"static_cast<{_SUM}>({form.gradient}[{_at(form.gradient, 'y', 'x')}])"
    if form.pooled is Pooled.MAXIMUM:
        yield f"    if (indices[{_at('indices', 'y', 'x')}] == h * width + w) {{"
        yield f"      sum += {gradient};"
        yield "    }"
    else:
        lines = (*_write_ends(form, "y", "x"), *_write_divisor(form), f"sum += {gradient} / divisor;")
        yield from (f"    {line}" for line in lines)
    yield from ("  }", "}")
    result = _result(form)
    yield f"{result}[{_at(result, 'h', 'w')}] = static_cast<{KEY}>(sum);"


class _Writer(LaunchWriter[Pooling]):
    def start(self) -> str:
        """The statement that gives the result what it has where nothing is added."""
        return f"{self.result}.zero_();" if self.form.adds else ""

    def prepare(self) -> Iterator[str]:
        """What has to hold of types, what the result has where nothing is added, and strides that may be left out."""
        if self.form.gradient:
            source = self.site.variable(self.form.source)
            yield from write_agreement(self.site.variable(self.form.gradient), source, self.site.code)
        if self.form.adds:
            yield f'at::globalContext().alertNotDeterministic("{self.kernels.name}_mps");'
            yield self.start()
        if self._list(self.form.stride) is None:
            stride = self.site.variable(self.form.stride)
            listed = zip(self._list(self.form.size) or (), (f"{stride}[0]", f"{stride}.back()"), strict=True)
            either = ", ".join(f"{stride}.empty() ? {size} : {step}" for size, step in listed)
            yield f"const std::array<int64_t, 2> window_stride{{{either}}};"

    def _list(self, argument: str) -> tuple[str, ...] | None:
        """The elements of a list: variables of the function, or known to be there; None if it may be empty."""
        variable = self.site.variable(argument)
        if variable.startswith("{"):
            return tuple(split_at_commas(variable[1:-1]))
        # both with what they are where the list has fewer elements
        ends = (f"{variable}[{k}]" for k in range(2))
        numbers = [self.site.code.find(f"int $n = $$before {end};", f"int $n = $$before({end});") for end in ends]
        declared = [[place["n"] for place in places] for places in numbers]
        if all(len(each) == 1 for each in declared):
            return declared[0][0], declared[1][0]
        return None if argument == self.form.stride else (f"{variable}[0]", f"{variable}.back()")

    def write(self, argument: Argument) -> str:
        if argument.kind == "list":
            listed = self._list(argument.tensor)
            return f"std::array<int64_t, 2>{{{', '.join(listed)}}}" if listed else "window_stride"
        variable = self.site.variable(argument.tensor)
        return f"{variable}.value_or(0)" if argument.kind == "number" else argument.write(variable)
