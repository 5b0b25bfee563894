"""Kernels that resample, and those of the gradients: a thread for each element of the result.

An element's gradient comes from results that follow each other in each dimension. The inverse of the position says
which, but for a few at both ends, as products are rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.loops.resampling import Resampling, Sampling
from porter.metal.native.coordinate_kernel import RESULT, Argument, MapKernel, name_tensor
from porter.metal.native.elements import KEY, Elements, TypeParameter
from porter.metal.native.kernel import KernelStyle, register

_LETTERS = ("d", "h", "w")  # of the dimensions that are resampled
_SUM = f"c10::metal::opmath_t<{KEY}>"
_POSITIONS = {
    Sampling.NEAREST: "{i} * {ratio}",
    Sampling.NEAREST_EXACT: "({i} + 0.5f) * {ratio}",
    Sampling.LINEAR: "max(({i} + shift) * {ratio} - shift, 0.0f)",
}
_INVERSES = {
    Sampling.NEAREST: "({at}) / {ratio}",
    Sampling.NEAREST_EXACT: "({at}) / {ratio} - 0.5f",
    Sampling.LINEAR: "({at} + shift) / {ratio} - shift",
}
_ROUNDED = 2  # results at either end that may read the element too, of up to 2^24


def write_resampling_kernel(found: Resampling, name: str, instances: Sequence[DType], style: KernelStyle) -> MapKernel:
    """A kernel for some element types."""
    elements = Elements((TypeParameter(KEY, RESULT),), {}, tuple((each,) for each in instances), instances[0], False)
    arguments = tuple(_list_arguments(found))
    texts = [*(each.text for each in arguments), "uint tid [[thread_position_in_grid]]"]
    body = _write_gradient(found) if found.is_gradient else _write_samples(found)
    lines = "".join(f"  {line}\n" for line in (*_write_indices(found), *body))
    head = f"template <typename {KEY}, typename index_t>\nkernel void {name}({', '.join(texts)}) {{\n"
    return MapKernel(name, f"{head}{lines}}}\n\n{register(name, elements, texts, style)}", arguments, elements)


def list_resampled_types(found: Resampling, refuses_complex: bool) -> list[DType]:
    """The element types of a kernel: those of recorded calls; where elements are only moved, all."""
    if found.is_gradient:
        return [each for each in dtypes.ALL if each in found.dtypes]
    return [each for each in dtypes.ALL if not refuses_complex or each.kind is not Kind.COMPLEX]


def _result(found: Resampling) -> str:
    return "grad_input" if found.is_gradient else name_tensor(RESULT)


def _letters(found: Resampling) -> tuple[str, ...]:
    return _LETTERS[-len(found.scales) :]


def _list_arguments(found: Resampling) -> Iterator[Argument]:
    result, source = _result(found), name_tensor(found.source)
    yield Argument(f"device {KEY}* {result}", "tensor", RESULT)
    yield Argument(f"constant {KEY}* {source}", "tensor", found.source)
    yield Argument("constant long* sizes", "sizes", RESULT)
    yield Argument(f"constant long* {source}_sizes", "sizes", found.source)
    yield Argument(f"constant long* {result}_strides", "strides", RESULT)
    yield Argument(f"constant long* {source}_strides", "strides", found.source)
    yield Argument("constant float* ratios", "ratios")
    if found.corners:
        yield Argument(f"constant bool& {found.corners}", "flag", found.corners)


def _write_indices(found: Resampling) -> Iterator[str]:
    """The coordinates of a thread's element."""
    letters = _letters(found)
    last = len(letters) + 1
    yield f"const index_t {letters[-1]} = tid % index_t(sizes[{last}]);"
    yield f"index_t rest = tid / index_t(sizes[{last}]);"
    for d, letter in reversed([*enumerate(letters[:-1], 2)]):
        yield f"const index_t {letter} = rest % index_t(sizes[{d}]);"
        yield f"rest /= index_t(sizes[{d}]);"
    yield "const index_t c = rest % index_t(sizes[1]);"
    yield "const index_t n = rest / index_t(sizes[1]);"


def _offset(tensor: str, indices: Sequence[str]) -> str:
    return " + ".join(f"{index} * index_t({tensor}_strides[{d}])" for d, index in enumerate(indices))


def _position(found: Resampling, index: str, k: int) -> str:
    """The position in the smaller tensor that an index of the larger one has."""
    return _POSITIONS[found.sampling].format(i=index, ratio=f"ratios[{k}]")


def _write_samples(found: Resampling) -> Iterator[str]:
    """The element that each result is."""
    source, letters = name_tensor(found.source), _letters(found)
    for k, letter in enumerate(letters):
        last = f"index_t({source}_sizes[{k + 2}]) - 1"
        yield f"const index_t {source}_{letter} = min(index_t({_position(found, letter, k)}), {last});"
    read = _offset(source, ("n", "c", *(f"{source}_{each}" for each in letters)))
    yield f"output[{_offset('output', ('n', 'c', *letters))}] = {source}[{read}];"


def _write_gradient(found: Resampling) -> Iterator[str]:
    """The sum of what reads the element, by the share of it."""
    source, letters = name_tensor(found.source), _letters(found)
    if found.corners:
        yield f"const float shift = {found.corners} ? 0 : 0.5f;"
    elif found.sampling is Sampling.LINEAR:
        yield "const float shift = 0.5f;"
    for k, letter in enumerate(letters):
        yield from _write_ends(found, source, letter, k)
    yield f"{_SUM} sum = 0;"
    yield from _write_loops(found, source, 0)
    yield f"grad_input[{_offset('grad_input', ('n', 'c', *letters))}] = static_cast<{KEY}>(sum);"


def _write_ends(found: Resampling, source: str, letter: str, k: int) -> Iterator[str]:
    """The first of the results that may read the element in a dimension, and the one after the last."""
    is_linear = found.sampling is Sampling.LINEAR
    first, last = (
        _INVERSES[found.sampling].format(at=at, ratio=f"ratios[{k}]")
        for at in (f"{letter} - 1" if is_linear else letter, f"{letter} + 1")
    )
    first = f"max(index_t({first.replace(f'({letter})', letter)}) - {_ROUNDED}, index_t(0))"
    scaled = f"ratios[{k}] > 0" if found.corners else ""  # one element at the corner has no ratio
    yield f"const index_t first_{letter} = {f'{scaled} ? {first} : 0' if scaled else first};"
    size = f"index_t({source}_sizes[{k + 2}])"
    more = " && ".join((*([scaled] if scaled else ()), f"{letter} + 1 < index_t(sizes[{k + 2}])"))
    yield f"const index_t end_{letter} = {more} ? min(index_t({last}) + {_ROUNDED + 1}, {size}) : {size};"


def _write_loops(found: Resampling, source: str, k: int) -> Iterator[str]:
    """The results that read the element, in a dimension and in those within."""
    letters = _letters(found)
    if k == len(letters):
        offset = _offset(source, ("n", "c", *(f"out_{each}" for each in letters)))
        weights = "".join(f"weight_{each} * " for each in letters) if found.sampling is Sampling.LINEAR else ""
        yield f"sum += {weights}{source}[{offset}];"
        return
    letter, at, last = letters[k], f"out_{letters[k]}", f"index_t(sizes[{k + 2}]) - 1"
    yield f"for (index_t {at} = first_{letter}; {at} < end_{letter}; {at}++) {{"
    if found.sampling is Sampling.LINEAR:
        yield f"  const float at_{letter} = min({_position(found, at, k)}, float({last}));"
        yield f"  const float weight_{letter} = max(1 - abs(at_{letter} - {letter}), 0.0f);"
        outside = f"weight_{letter} == 0"
    else:
        outside = f"min(index_t({_position(found, at, k)}), {last}) != {letter}"
    yield f"  if ({outside}) {{"
    yield "    continue;"
    yield "  }"
    yield from (f"  {line}" for line in _write_loops(found, source, k + 1))
    yield "}"
