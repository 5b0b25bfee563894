"""Results that are a tensor resampled along its last dimensions, and the gradients of such.

Each result reads few elements, at a position that follows from its own. A gradient is computed for each element from
the results that read it, which follow each other in each dimension: it walks these and no others. The inverse of the
position says which, but for a few at both ends, as products are rounded.
Source: ATen/native/UpSample.h (`compute_scales_value`, `area_pixel_compute_scale`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.metal.codegen.elements import KEY
from porter.metal.codegen.host_code import Launch, as_nodes
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.schedule import PLACES
from porter.metal.forms.form import (
    HEADERS,
    LARGEST_ROWS,
    RESULT,
    Argument,
    Form,
    FormKernels,
    Site,
    count_row_threads,
    launch_one,
    list_elements,
    name_tensor,
    write_one_kernel,
    write_place,
)


class Sampling(Enum):
    """What an element `i` reads; `ratio` is how many elements of the source it stands for."""

    NEAREST = "the element floor(i * ratio)"
    NEAREST_EXACT = "the element floor((i + 0.5) * ratio)"
    LINEAR = "the two elements around (i + 0.5) * ratio - 0.5, by distance"


_LETTERS = ("d", "h", "w")  # of the dimensions that are resampled
_SUM = f"c10::metal::opmath_t<{KEY}>"
_POSITIONS = {
    Sampling.NEAREST: "{i} * {ratio}",
    Sampling.NEAREST_EXACT: "({i} + 0.5f) * {ratio}",
    Sampling.LINEAR: "max(({i} + shift) * {ratio} - shift, 0.0f)",
}
_INVERSES = {
    Sampling.NEAREST: "{at} / {ratio}",
    Sampling.NEAREST_EXACT: "{at} / {ratio} - 0.5f",
    Sampling.LINEAR: "({at} + shift) / {ratio} - shift",
}
_ROUNDED = 2  # results at either end that may read the element too, of up to 2^24
_SCALES = "ATen/native/UpSample.h"
_LEADING = 2  # dimensions that are not resampled


@dataclass(frozen=True)
class Resampling(Form):
    """How a tensor is resampled.

    `scales` are the numbers that may be given for the last dimensions, in their order; `corners` is the flag that
    aligns the corners, if there is one. A gradient takes the elements of `source` back.
    """

    TITLE: ClassVar[str] = "coordinates"

    sampling: Sampling
    source: str
    scales: tuple[str, ...]
    corners: str = ""
    is_gradient: bool = False
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        dims = ", ".join(f"{-len(self.scales) + i} by {scale}" for i, scale in enumerate(self.scales))
        if self.is_gradient:
            yield f"result = sum of the elements of {self.source} that read it, by their share"
        else:
            yield f"result = elements of {self.source}"
        yield f"in each of the dimensions {dims}: {self.sampling.value}"
        if self.corners:
            yield f"with {self.corners}: the two elements around i * ratio"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        """Those of recorded calls; where elements are only moved, all."""
        if self.is_gradient:
            return [dtype for dtype in dtypes.ALL if dtype in self.dtypes]
        return [dtype for dtype in dtypes.ALL if not refuses_complex or dtype.kind is not Kind.COMPLEX]

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        body = _write_gradient(self) if self.is_gradient else _write_samples(self)
        lines = (*_write_indices(self), *body)
        return write_one_kernel(name, list_elements(RESULT, instances), _list_arguments(self), lines, style)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        def write(argument: Argument) -> str:
            return argument.write(site.variable(argument.tensor)) if argument.tensor else "ratios"

        result = site.variable(RESULT)
        threads = f"{result}.numel()" if self.is_gradient else count_row_threads(result)
        largest = "" if self.is_gradient else LARGEST_ROWS
        launch = launch_one(kernels, threads, site.variable, write, largest=largest)
        lines = (*self._write_ratios(site), *site.write_stream(), *launch)
        return Launch(as_nodes(lines), frozenset((*HEADERS, _SCALES)))

    def _write_ratios(self, site: Site) -> Iterator[str]:
        """How many elements of the smaller tensor each of the larger one stands for, in each dimension."""
        small, large = (RESULT, self.source) if self.is_gradient else (self.source, RESULT)
        yield f"const std::array<float, {len(self.scales)}> ratios{{"
        for d, scale in enumerate(self.scales, _LEADING):
            sizes = f"{site.variable(small)}.size({d}), {site.variable(large)}.size({d})"
            end = "};" if d == len(self.scales) + 1 else ","
            if self.corners:
                flag = site.variable(self.corners)
                yield f"at::native::area_pixel_compute_scale<float>({sizes}, {flag}, {site.variable(scale)}){end}"
            else:
                yield f"compute_scales_value<float>({site.variable(scale)}, {sizes}){end}"


def _letters(form: Resampling) -> tuple[str, ...]:
    return _LETTERS[-len(form.scales) :]


def _list_arguments(form: Resampling) -> Iterator[Argument]:
    result, source = ("grad_input" if form.is_gradient else name_tensor(RESULT)), name_tensor(form.source)
    yield Argument(f"device {KEY}* {result}", "tensor", RESULT)
    yield Argument(f"constant {KEY}* {source}", "tensor", form.source)
    yield Argument("constant long* sizes", "sizes", RESULT)
    yield Argument(f"constant long* {source}_sizes", "sizes", form.source)
    yield Argument(f"constant long* {result}_strides", "strides", RESULT)
    yield Argument(f"constant long* {source}_strides", "strides", form.source)
    yield Argument("constant float* ratios", "ratios")
    if form.corners:
        yield Argument(f"constant bool& {form.corners}", "flag", form.corners)


def _write_indices(form: Resampling) -> Iterator[str]:
    """The coordinates of a thread's element, or of the row that it has elements of."""
    letters = _letters(form)
    last = len(letters) + 1
    if form.is_gradient:
        yield f"const index_t {letters[-1]} = tid % index_t(sizes[{last}]);"
        yield f"index_t rest = tid / index_t(sizes[{last}]);"
    else:
        yield f"const index_t columns = sizes[{last}], turns = (columns + {PLACES - 1}) / {PLACES};"
        yield "index_t rest = tid / turns, first = tid % turns;"
    for d, letter in reversed([*enumerate(letters[:-1], 2)]):
        yield f"const index_t {letter} = rest % index_t(sizes[{d}]);"
        yield f"rest /= index_t(sizes[{d}]);"
    yield "const index_t c = rest % index_t(sizes[1]);"
    yield "const index_t n = rest / index_t(sizes[1]);"


def _offset(tensor: str, indices: Sequence[str]) -> str:
    return " + ".join(f"{index} * index_t({tensor}_strides[{d}])" for d, index in enumerate(indices))


def _position(form: Resampling, index: str, k: int) -> str:
    """The position in the smaller tensor that an index of the larger one has."""
    return _POSITIONS[form.sampling].format(i=index, ratio=f"ratios[{k}]")


def _write_samples(form: Resampling) -> Iterator[str]:
    """The element that each result is."""
    source, letters = name_tensor(form.source), _letters(form)
    *reads, innermost = (
        f"const index_t {source}_{letter} = min(index_t({_position(form, letter, k)}), "
        f"index_t({source}_sizes[{k + _LEADING}]) - 1);"
        for k, letter in enumerate(letters)
    )
    yield from reads
    read = _offset(source, ("n", "c", *(f"{source}_{each}" for each in letters)))
    yield f"for (index_t e = 0; e < {PLACES}; e++) {{"
    yield f"  {write_place(letters[-1])}"
    yield f"  {innermost}"
    yield f"  output[{_offset('output', ('n', 'c', *letters))}] = {source}[{read}];"
    yield "}"


def _write_gradient(form: Resampling) -> Iterator[str]:
    """The sum of what reads the element, by the share of it."""
    source, letters = name_tensor(form.source), _letters(form)
    if form.corners:
        yield f"const float shift = {form.corners} ? 0 : 0.5f;"
    elif form.sampling is Sampling.LINEAR:
        yield "const float shift = 0.5f;"
    for k, letter in enumerate(letters):
        yield from _write_ends(form, source, letter, k)
    yield f"{_SUM} sum = 0;"
    yield from _write_loops(form, source, 0)
    yield f"grad_input[{_offset('grad_input', ('n', 'c', *letters))}] = static_cast<{KEY}>(sum);"


def _write_ends(form: Resampling, source: str, letter: str, k: int) -> Iterator[str]:
    """The first of the results that may read the element in a dimension, and the one after the last."""
    is_linear = form.sampling is Sampling.LINEAR
    first, last = (
        _INVERSES[form.sampling].format(at=at, ratio=f"ratios[{k}]")
        for at in ((f"{letter} - 1", f"{letter} + 1") if is_linear else (letter, f"({letter} + 1)"))
    )
    first = f"max(index_t({first}) - {_ROUNDED}, index_t(0))"
    scaled = f"ratios[{k}] > 0" if form.corners else ""  # one element at the corner has no ratio
    yield f"const index_t first_{letter} = {f'{scaled} ? {first} : 0' if scaled else first};"
    size = f"index_t({source}_sizes[{k + 2}])"
    more = " && ".join((*([scaled] if scaled else ()), f"{letter} + 1 < index_t(sizes[{k + 2}])"))
    yield f"const index_t end_{letter} = {more} ? min(index_t({last}) + {_ROUNDED + 1}, {size}) : {size};"


def _write_loops(form: Resampling, source: str, k: int) -> Iterator[str]:
    """The results that read the element, in a dimension and in those within."""
    letters = _letters(form)
    if k == len(letters):
        offset = _offset(source, ("n", "c", *(f"out_{each}" for each in letters)))
        weights = "".join(f"weight_{each} * " for each in letters) if form.sampling is Sampling.LINEAR else ""
        yield f"sum += {weights}{source}[{offset}];"
        return
    letter, at, last = letters[k], f"out_{letters[k]}", f"index_t(sizes[{k + 2}]) - 1"
    yield f"for (index_t {at} = first_{letter}; {at} < end_{letter}; {at}++) {{"
    if form.sampling is Sampling.LINEAR:
        yield f"  const float at_{letter} = min({_position(form, at, k)}, float({last}));"
        yield f"  const float weight_{letter} = max(1 - abs(at_{letter} - {letter}), 0.0f);"
        outside = f"weight_{letter} == 0"
    else:
        outside = f"min(index_t({_position(form, at, k)}), {last}) != {letter}"
    yield f"  if ({outside}) {{"
    yield "    continue;"
    yield "  }"
    yield from (f"  {line}" for line in _write_loops(form, source, k + 1))
    yield "}"
