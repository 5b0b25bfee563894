"""The kernels of coordinate maps against torch, over tensors of several ranks whose strides have gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from expecttest import assert_expected_inline

from aten_overlay.metal.launch import Library
from porter.core.dtypes import BFLOAT, BOOL, FLOAT, HALF, HALF2, INT, LONG, SHORT, DType, Kind
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.schedule import PLACES
from porter.metal.forms.form import RESULT, Argument, FormKernels
from porter.metal.forms.index_map import INDEXED, AccessMode, IndexMap, IndexRule
from porter.metal.forms.sums import Bincount
from porter.metal.helpers import read_helper
from tests.porter.metal.compiled import compile_soon
from tests.porter.metal.forms.launching import count_pad_threads, count_threads, with_gaps

HEADS = (
    f"#include <c10/metal/atomic.h>\n#include <c10/metal/utils.h>\nusing namespace metal;\n{read_helper('sum_t.metal')}"
)
STYLE = KernelStyle(True, False)
INDEX = (INT, LONG)
ATOMIC = ("float", "half", "long", "int")
SHAPES = ((7,), (4, 5), (3, 4, 5), (2, 3, 4, 3))
ROWS = IndexMap(IndexRule.ROW, AccessMode.ADD, index="index", source="src", index_dtypes=INDEX)
BINS = Bincount("index", "src", index_dtypes=INDEX)
Given = dict[str, torch.Tensor]


def compile_one(
    found: IndexMap | Bincount, suffix: str, dtype: DType = FLOAT, fault: tuple[str, str] = ("", "")
) -> tuple[FormKernels, Library]:
    kernel = found.write_kernels("tested", tuple(dict.fromkeys((dtype, FLOAT, INT))), STYLE)
    right, wrong = fault
    assert right in kernel.source
    source = kernel.source.replace(right, wrong) if right else kernel.source
    return kernel, compile_soon(HEADS + source, f"tested_{suffix}")


def launch(
    found: IndexMap | Bincount,
    given: Given,
    result: torch.Tensor,
    dim: int = 0,
    listed: Sequence[int] = (),
    multiplies: bool = False,
    spare: int = 0,
    dtype: DType = FLOAT,
    fault: tuple[str, str] = ("", ""),
) -> torch.Tensor:
    """The result that a kernel of elements of a type writes to, which may have a fault in place of what is right."""
    suffix = "_".join((dtype.metal, *(("long",) if found.index else ()), "int"))
    kernel, library = compile_one(found, suffix, dtype, fault)
    tensors = {**given, RESULT: result}
    walked = tensors[found.index if isinstance(found, Bincount) else found.walked]

    def numbers(values: Sequence[int]) -> torch.Tensor:
        return torch.tensor(list(values), dtype=torch.int64)

    def narrow(value: int) -> torch.Tensor:
        return torch.tensor([value], dtype=torch.int32)

    def value(argument: Argument) -> torch.Tensor:
        tensor = tensors.get(argument.tensor, result)
        made: dict[str, Callable[[], torch.Tensor]] = {
            "tensor": lambda: tensor, "sizes": lambda: numbers(tensor.shape),
            "strides": lambda: numbers(tensor.stride()), "rows": lambda: narrow(tensor.size(0)), "rank": lambda: numbers([tensor.ndim]),
            "number": lambda: numbers([spare]),
            "size": lambda: narrow(tensor.size(dim) if tensor.ndim else 1), "stride": lambda: narrow(tensor.stride(dim) if tensor.ndim else 1),
            "index stride": lambda: narrow(tensor.stride(0) if tensor.ndim else 1), "dim": lambda: numbers([dim]),
            "reversed": lambda: numbers([sum(1 << d for d in listed)]), "padding": lambda: numbers(listed),
            "multiplies": lambda: torch.tensor([multiplies]), "value": lambda: torch.tensor([9.5]),
            "factor": lambda: torch.tensor([2.0]), "first stride": lambda: narrow(tensor.stride(0)),
            "flag": lambda: torch.tensor([argument.tensor in tensors]),
            "optional tensor": lambda: tensor, "optional stride": lambda: narrow(tensor.stride(0)),
        }  # fmt: skip
        return made[argument.kind]()

    values = [value(each) for each in kernel.arguments]
    combines = isinstance(found, IndexMap) and found.mode is AccessMode.COMBINE
    has_rows = isinstance(found, IndexMap) and found.has_rows
    along = dim if isinstance(found, IndexMap) and found.rule in INDEXED else -1
    threads = count_threads(walked, along) if has_rows else walked.numel() // (walked.size(dim) if combines else 1)
    if has_rows and isinstance(found, IndexMap) and not found.is_looked_up:
        threads = count_pad_threads(walked)
    library.run(f"tested_{suffix}", values, (threads,), (32,))
    return result


def fresh(shape: Sequence[int]) -> torch.Tensor:
    return with_gaps(torch.full(tuple(shape), -1.0))


@pytest.mark.parametrize("shape", SHAPES)
def test_reads(shape: tuple[int, ...]) -> None:
    source = with_gaps(torch.randn(shape))
    last = len(shape) - 1
    flipped = launch(
        IndexMap(IndexRule.REVERSED, AccessMode.READ, "dims", source="self"),
        {"self": source},
        fresh(shape),
        listed=(0, last)[: len(shape)],
    )
    assert flipped.equal(source.flip((0, last)[: len(shape)]))
    repeats = [2 + d % 2 for d in range(len(shape))]
    tiled = source.repeat(repeats)
    assert launch(
        IndexMap(IndexRule.REPEATED, AccessMode.READ, source="self"), {"self": source}, fresh(tiled.shape)
    ).equal(tiled)
    left = [0] * last + [2]
    padded = torch.nn.functional.pad(source, (2, 1), value=9.5)
    found = IndexMap(IndexRule.PADDED, AccessMode.READ, "pad", source="self", value="value")
    assert launch(found, {"self": source}, fresh(padded.shape), listed=left).equal(padded)


@pytest.mark.parametrize("rule", [IndexRule.CLAMPED, IndexRule.REFLECTED])
def test_pads_and_their_gradients(rule: IndexRule) -> None:
    mode = "replicate" if rule is IndexRule.CLAMPED else "reflect"
    source = torch.randn(2, 3, 5, 6, requires_grad=True)
    padded = torch.nn.functional.pad(source, (3, 2, 1, 4), mode)
    left = (0, 0, 1, 3)
    read = IndexMap(rule, AccessMode.READ, "padding", source="self")
    made = launch(read, {"self": with_gaps(source.detach())}, fresh(padded.shape), listed=left)
    assert made.equal(padded.detach())
    gradient = with_gaps(torch.randn(padded.shape))
    padded.backward(gradient)
    added = IndexMap(rule, AccessMode.ADD, "padding", source="grad_output", dtypes=(FLOAT,))
    found = launch(added, {"grad_output": gradient}, with_gaps(torch.zeros(source.shape)), listed=left)
    torch.testing.assert_close(found, source.grad)


@pytest.mark.parametrize("height", [1, 2, 3, 4])
def test_a_row_beyond_the_last_is_memory_of_others(height: int) -> None:
    """A planted fault: without the comparison with the number of rows, threads write behind the last."""
    source = torch.randn(height, 3)
    padded = torch.nn.functional.pad(source, (2, 1), "replicate")
    pads = IndexMap(IndexRule.CLAMPED, AccessMode.READ, "padding", source="self")
    memory = torch.full((height + 1, 6), -1.0)
    assert launch(pads, {"self": source}, memory[:height].clone(), listed=(0, 2)).equal(padded)
    fault = ("first_row + k * steps < rows ? k * steps : 0", "k * steps")
    launch(pads, {"self": source}, memory[:height], listed=(0, 2), fault=fault)
    assert memory[:height].equal(padded) and memory[height].eq(-1).all() == (height % 2 == 0)


@pytest.mark.parametrize("width", [1, 3, 5, 6, 9])
def test_a_place_beyond_the_end_of_a_row_writes_into_the_next(width: int) -> None:
    """A planted fault: without the comparison with the row's length, threads write what other rows have."""
    source = torch.randn(3, width)
    padded = torch.nn.functional.pad(source, (2, 1), value=9.5)
    pads = IndexMap(IndexRule.PADDED, AccessMode.READ, "pad", source="self", value="value")
    memory = torch.full((4, width + 3), -1.0)
    right = launch(pads, {"self": source}, memory[:3].clone(), listed=(0, 2))
    assert right.equal(padded)
    fault = ("first + e * turns < columns ? e * turns : 0", "e * turns")
    launch(pads, {"self": source}, memory[:3], listed=(0, 2), fault=fault)
    is_whole = (width + 3) % PLACES == 0  # no thread has a place beyond the row
    assert memory[3].eq(-1).all() == is_whole
    assert memory[:3].equal(padded) or not is_whole


LOOKED_UP = IndexMap(IndexRule.ELEMENT, AccessMode.READ, "dim", "index", "self", index_dtypes=INDEX)
PLACE = "const index_t i = e * turns < width - first ? e * turns : 0;\n    "
BEYOND = "const index_t i = e * turns;\n    "


@pytest.mark.parametrize("width", [1, 3, 4, 5, 6, 8, 9])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("rule", INDEXED)
def test_an_element_beyond_the_end_of_the_index(rule: IndexRule, dim: int, width: int) -> None:
    """Planted faults: a thread reads the index beyond its last element, or writes beyond the result's last row."""
    read = replace(LOOKED_UP, rule=rule)
    source = torch.randn(4, 5)
    memory = torch.full((12, 16), 4)  # behind the index it has others
    shape = (width, 5) if dim == 0 else (4, width)
    if rule is IndexRule.ELEMENT:
        index = memory[: shape[0], : shape[1]]
        index.copy_(torch.randint(3, shape))
        expected = source.gather(dim, index)
    else:
        index = memory.flatten()[:width]
        index.copy_(torch.randint(3, (width,)))
        expected = source.index_select(dim, index)
    tensors = {"self": source, "index": index}

    def run(right: str = "", wrong: str = "") -> torch.Tensor:
        around = torch.full((12, 16), -1.0)
        launch(read, tensors, around[: shape[0], : shape[1]], dim, fault=(right, wrong))
        return around

    around = run()
    assert around[: shape[0], : shape[1]].equal(expected)
    assert int(around.eq(-1).sum()) == around.numel() - expected.numel()
    is_whole = width % PLACES == 0  # no thread has a place beyond the row
    reads, writes = (run(f"{PLACE}{what}", f"{BEYOND}{what}") for what in ("const long at", "output["))
    assert reads.equal(around) == is_whole
    assert writes.equal(around) == is_whole


@pytest.mark.parametrize("rule", INDEXED)
@pytest.mark.parametrize("beyond", [3, -1])
def test_an_index_beyond_the_end_of_its_dimension_reads_zero(rule: IndexRule, beyond: int) -> None:
    """A planted fault: without a comparison it reads what other rows have."""
    source, index = torch.randn(5)[1:4], torch.tensor([2, 0, 1, 1, beyond])
    read, tensors = replace(LOOKED_UP, rule=rule), {"self": source, "index": index}
    expected = torch.cat((source[index[:4]], torch.zeros(1)))
    assert launch(read, tensors, fresh((5,))).equal(expected)
    right, wrong = ("at < input_size", "true") if beyond > 0 else ("at >= 0", "true")
    assert not launch(read, tensors, fresh((5,)), fault=(right, wrong)).equal(expected)


@pytest.mark.parametrize("rule", INDEXED)
def test_tensors_without_dimensions_are_looked_up(rule: IndexRule) -> None:
    read = replace(LOOKED_UP, rule=rule)
    for index in (torch.tensor(0), torch.tensor([0])):
        tensors = {"self": torch.tensor([2.5]), "index": index}
        assert launch(read, tensors, torch.full(index.shape, -1.0)).eq(2.5).all()


@pytest.mark.parametrize(
    ("shape", "row"), [((), (4,)), ((5,), (4,)), ((3, 4), (4,)), ((), (2, 3)), ((3, 4), (2, 3)), ((5,), ())]
)
@pytest.mark.parametrize("skipped", ["", "spare"])
def test_rows_are_added_whole(shape: tuple[int, ...], row: tuple[int, ...], skipped: str) -> None:
    index = torch.randint(-2, 9, shape)
    source = with_gaps(torch.randn(shape + row))
    found = IndexMap(
        IndexRule.ROW, AccessMode.ADD, index="indices", source="grad_output", index_dtypes=INDEX, skipped=skipped
    )
    given = {"indices": with_gaps(index) if shape else index, "grad_output": source}
    spare = int(index.flatten()[0])
    made = launch(found, given, with_gaps(torch.zeros(7, *row)), spare=spare)
    inside = ((index >= 0) & (index < 7) & ((index != spare) | (not skipped))).reshape(-1)
    rows = source.reshape(-1, *row).double()[inside]
    expected = torch.zeros(7, *row, dtype=torch.float64).index_add(0, index.reshape(-1)[inside], rows)
    torch.testing.assert_close(made, expected.float())


@pytest.mark.parametrize("is_weighted", [False, True])
def test_bins(is_weighted: bool) -> None:
    index = with_gaps(torch.randint(-2, 9, (40,)))
    weights = with_gaps(torch.randn(40))
    found = Bincount("self", "weights", index_dtypes=INDEX)
    made = launch(found, {"self": index, **({"weights": weights} if is_weighted else {})}, with_gaps(torch.zeros(7)))
    inside = (index >= 0) & (index < 7)
    elements = weights[inside].double() if is_weighted else torch.ones(int(inside.sum()), dtype=torch.float64)
    expected = torch.zeros(7, dtype=torch.float64).index_add(0, index[inside], elements)
    torch.testing.assert_close(made, expected.float())


@pytest.mark.parametrize("shape", SHAPES)
def test_elements_by_their_index(shape: tuple[int, ...]) -> None:
    dim = len(shape) // 2
    smaller = tuple(max(size - 1, 1) for size in shape)
    index = with_gaps(torch.rand(smaller).argsort(dim))
    source, start = with_gaps(torch.randn(shape)), with_gaps(torch.randn(shape))
    given = {"self": source, "src": source, "index": index}
    read = IndexMap(IndexRule.ELEMENT, AccessMode.READ, "dim", "index", "self", index_dtypes=INDEX)
    assert launch(read, given, fresh(smaller), dim).equal(source.gather(dim, index))
    put = IndexMap(IndexRule.ELEMENT, AccessMode.PUT, "dim", "index", "src", start="self", index_dtypes=INDEX)
    assert launch(put, given, start.clone(), dim).equal(start.scatter(dim, index, source))
    value = IndexMap(IndexRule.ELEMENT, AccessMode.PUT, "dim", "index", "", "value", "self", index_dtypes=INDEX)
    assert launch(value, given, start.clone(), dim).equal(start.scatter(dim, index, 9.5))
    same = with_gaps(torch.zeros(smaller, dtype=torch.int64))  # all to one place
    add = IndexMap(IndexRule.ELEMENT, AccessMode.ADD, "dim", "index", "src", start="self", index_dtypes=INDEX)
    found = launch(add, {**given, "index": same}, start.clone(), dim)
    torch.testing.assert_close(found, start.scatter_add(dim, same, source))
    both = IndexMap(
        IndexRule.ELEMENT, AccessMode.COMBINE, "dim", "index", "src", start="self", combine="reduce", index_dtypes=INDEX
    )
    for multiplies, name in ((False, "add"), (True, "multiply")):
        found = launch(both, {**given, "index": same}, start.clone(), dim, multiplies=multiplies)
        torch.testing.assert_close(found, start.scatter(dim, same, source, reduce=name))


@pytest.mark.parametrize("shape", SHAPES)
def test_slices_by_their_index(shape: tuple[int, ...]) -> None:
    dim = len(shape) - 1
    index = torch.stack((torch.tensor([2, 0, 2, 1]),) * 2, -1)[:, 0]
    source, start = with_gaps(torch.randn(shape)), with_gaps(torch.randn(shape))
    read = IndexMap(IndexRule.POSITION, AccessMode.READ, "dim", "index", "self", index_dtypes=INDEX)
    taken = source.index_select(dim, index)
    assert launch(read, {"self": source, "index": index}, fresh(taken.shape), dim).equal(taken)
    add = IndexMap(
        IndexRule.POSITION, AccessMode.ADD, "dim", "index", "source", start="self", factor="alpha", index_dtypes=INDEX
    )
    found = launch(add, {"source": taken, "index": index}, start.clone(), dim)
    torch.testing.assert_close(found, start.index_add(dim, index, taken, alpha=2))


@pytest.mark.parametrize("shape", SHAPES)
def test_indices_below_zero_count_from_the_end(shape: tuple[int, ...]) -> None:
    dim, source, start = len(shape) // 2, with_gaps(torch.randn(shape)), with_gaps(torch.randn(shape))
    index = torch.arange(shape[dim]) - torch.tensor([0, shape[dim]]).repeat(shape[dim])[: shape[dim]]
    put = IndexMap(
        IndexRule.POSITION, AccessMode.PUT, "dim", "index", "value", "", "self", index_dtypes=INDEX, wraps=True
    )
    found = launch(put, {"value": source, "index": index}, start.clone(), dim)
    assert found.equal(start.index_copy(dim, index.where(index >= 0, index + shape[dim]), source))
    whole = index.reshape([-1 if d == dim else 1 for d in range(len(shape))]).expand(shape).contiguous()
    wrapped, given = whole.where(whole >= 0, whole + shape[dim]), {"self": source, "src": source, "index": whole}
    read = IndexMap(IndexRule.ELEMENT, AccessMode.READ, "dim", "index", "self", index_dtypes=INDEX, wraps=True)
    assert launch(read, given, fresh(shape), dim).equal(source.gather(dim, wrapped))
    both = IndexMap(
        IndexRule.ELEMENT,
        AccessMode.COMBINE,
        "dim",
        "index",
        "src",
        "",
        "self",
        combine="reduce",
        index_dtypes=INDEX,
        wraps=True,
    )
    torch.testing.assert_close(launch(both, given, start.clone(), dim), start.scatter_add(dim, wrapped, source))
    beyond = torch.tensor([-1, 2, -3, -2])  # the second and the third are still outside
    few = launch(replace(read, rule=IndexRule.POSITION), {"self": source[:2], "index": beyond}, fresh((4, *shape[1:])))
    assert few[1:3].eq(0).all() and few[0].equal(source[1]) and few[3].equal(source[0])


@pytest.mark.parametrize("dtype", [HALF, BFLOAT, SHORT])
@pytest.mark.parametrize("found", [ROWS, BINS])
def test_many_16_bit_elements_are_added_up_in_32_bits(found: IndexMap | Bincount, dtype: DType) -> None:
    found = replace(found, dtypes=(dtype,), index_dtypes=(LONG,))
    kernel = found.write_kernels("tested", (dtype,), STYLE)
    library = compile_soon(HEADS + kernel.source, f"tested_{dtype.metal}_int")
    source = torch.full((6147,), 1.5, dtype=getattr(torch, dtype.torch))
    sums = torch.zeros(2, dtype=torch.float32 if dtype.kind is Kind.FLOATING else source.dtype)
    given = {RESULT: sums, "src": source, "index": torch.ones(6147, dtype=torch.int64)}
    whole = {"sizes": [6147], "strides": [1], "rank": [1]}
    narrow = {"rows": 2, "first stride": 1, "optional stride": 1}
    numbers = {name: torch.tensor(each) for name, each in whole.items()}
    numbers |= {name: torch.tensor([each], dtype=torch.int32) for name, each in narrow.items()}
    values = [numbers.get(each.kind, given[each.tensor]) for each in kernel.arguments if each.kind != "flag"]
    values += [torch.tensor([True])] if isinstance(found, Bincount) else []
    library.run(f"tested_{dtype.metal}_int", values, (6147,), (32,))
    assert sums.tolist() == [0, source.double().sum().item()]


@pytest.mark.parametrize("dtype", [HALF, BFLOAT])
@pytest.mark.parametrize("multiplies", [False, True])
def test_many_16_bit_elements_are_combined_in_32_bits(dtype: DType, multiplies: bool) -> None:
    both = IndexMap(
        IndexRule.ELEMENT, AccessMode.COMBINE, "dim", "index", "src", start="self", combine="reduce", index_dtypes=INDEX
    )
    source = (torch.arange(3000) % 3 * 2**-7 + 1 - 2**-7).to(getattr(torch, dtype.torch))
    given = {"src": source, "index": torch.ones(3000, dtype=torch.int64)}
    found = launch(both, given, torch.ones(2), multiplies=multiplies, dtype=dtype)
    exact = source.double().prod() if multiplies else source.double().sum() + 1
    torch.testing.assert_close(found.double(), torch.stack((torch.ones(()), exact)), rtol=1e-5, atol=0)


@pytest.mark.parametrize("rule", [IndexRule.ROW, IndexRule.ELEMENT, IndexRule.CLAMPED])
def test_kernels_that_add_compile_for_complex_elements_of_16_bits(rule: IndexRule) -> None:
    """These convert to what they are added up in by casts alone."""
    found = IndexMap(
        rule, AccessMode.ADD, "dim", "index" if rule is not IndexRule.CLAMPED else "", "src", index_dtypes=(LONG,)
    )
    kernel = found.write_kernels("tested", (HALF2,), STYLE)
    assert compile_soon(HEADS + kernel.source, "tested_half2_int").names == ("tested_half2_int",)


@pytest.mark.parametrize("outside", [(9, -1), (2**32, -(2**32) + 1), (2**31 + 1, -(2**63))])
def test_an_index_outside_reads_zero_and_writes_nothing(outside: tuple[int, int]) -> None:
    index = torch.tensor([0, *outside])
    source = torch.tensor([1.0, 2.0, 3.0])
    read = IndexMap(IndexRule.ELEMENT, AccessMode.READ, "dim", "index", "self", index_dtypes=INDEX)
    assert launch(read, {"self": source, "index": index}, fresh((3,))).tolist() == [1, 0, 0]
    add = IndexMap(IndexRule.ELEMENT, AccessMode.ADD, "dim", "index", "src", start="self", index_dtypes=INDEX)
    assert launch(add, {"src": source, "index": index}, torch.zeros(3)).tolist() == [1, 0, 0]


@pytest.mark.parametrize("outside", [2**32, -(2**32) + 1, 2**33 - 1, -(2**63)])
@pytest.mark.parametrize("wraps", [False, True])
def test_rows_and_bins_that_no_index_of_32_bits_names_are_left_out(outside: int, wraps: bool) -> None:
    index, source = torch.tensor([1, outside, 0]), torch.tensor([1.0, 2.0, 3.0])
    for each in (ROWS, BINS):
        assert launch(each, {"src": source, "index": index}, torch.zeros(2)).tolist() == [3, 1]
    read = IndexMap(IndexRule.POSITION, AccessMode.READ, "dim", "index", "self", index_dtypes=INDEX, wraps=wraps)
    assert launch(read, {"self": source, "index": index}, fresh((3,))).tolist() == [2, 0, 1]
    both = replace(read, rule=IndexRule.ELEMENT, mode=AccessMode.COMBINE, source="src", combine="reduce")
    assert launch(both, {"src": source, "index": index}, torch.zeros(2)).tolist() == [3, 1]


def test_element_types() -> None:
    moved = IndexMap(IndexRule.REPEATED, AccessMode.READ, source="self", dtypes=(FLOAT,))
    assert {"bool", "long", "float2"} <= {dtype.metal for dtype in moved.list_types(tuple, False)}
    assert "float2" not in {dtype.metal for dtype in moved.list_types(tuple, True)}
    added = IndexMap(IndexRule.CLAMPED, AccessMode.ADD, "padding", source="self", dtypes=(FLOAT, HALF))
    assert [dtype.metal for dtype in added.list_types(lambda: ATOMIC, False)] == ["float", "half", "bfloat"]
    whole = IndexMap(IndexRule.CLAMPED, AccessMode.ADD, "padding", source="self", dtypes=(INT, BOOL))
    assert [dtype.metal for dtype in whole.list_types(lambda: ATOMIC, False)] == ["long", "int"]


def test_the_text_of_a_scatter() -> None:
    add = IndexMap(IndexRule.ELEMENT, AccessMode.ADD, "dim", "index", "src", start="self", index_dtypes=(LONG,))
    body = add.write_kernels("scatter_add", (FLOAT,), STYLE).source.partition("#define")[0]
    assert_expected_inline(
        body,
        """\
template <typename T, typename index_t>
[[max_total_threads_per_threadgroup(256)]] kernel void scatter_add(device c10::metal::AtomicType_t<sum_t<T>>* output, constant T* src, constant long* index, constant long* sizes, constant long* output_strides, constant long* src_strides, constant long* index_strides, constant index_t& output_size, constant index_t& output_stride, constant long& ndim, constant long& dim, uint tid [[thread_position_in_grid]]) {
  index_t rest = tid;
  index_t output_offset = 0;
  index_t src_offset = 0;
  index_t index_offset = 0;
  for (long d = ndim - 1; d >= 0; d--) {
    const index_t i = rest % index_t(sizes[d]);
    rest /= index_t(sizes[d]);
    if (d != dim) {
      output_offset += i * index_t(output_strides[d]);
    }
    src_offset += i * index_t(src_strides[d]);
    index_offset += i * index_t(index_strides[d]);
  }
  const long at = index[index_offset];
  if (at >= 0 && at < output_size) {
    c10::metal::AtomicType<sum_t<T>>::atomic_add(output, output_offset + index_t(at) * output_stride, static_cast<sum_t<T>>(src[src_offset]));
  }
}

""",
    )
