"""What a call computes, told from the graphs that it ran and where they wrote."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.recorder import GraphRun, Node, RecordedGraph
from aten_overlay.apple.mpsgraph.types import MPS
from porter.core.errors import PorterError
from porter.mpsgraph.graph import format_expr
from porter.recording.expressions import build_expression, merge_parts

RESULT = Ref(0, 0)


def constant(value: float, address: int) -> GraphRun:
    """A graph that writes a number."""
    made = torch.full((2,), value)
    node = Node("constantWithScalar:shape:dataType", (value, [2], MPS[made.dtype]), (made,), (made.dtype,))
    return GraphRun(RecordedGraph([node]), {}, {}, {RESULT: address})


def describe(runs: Sequence[GraphRun], given: torch.Tensor, after: torch.Tensor, result: torch.Tensor) -> str:
    return format_expr(merge_parts(build_expression(runs, {"self": after}, {"self": given}, [result], True)))


def read(given: torch.Tensor, fed: torch.Tensor) -> str:
    """A graph that only reads a placeholder."""
    result, meta = torch.empty_like(fed), fed.to("meta")
    node = Node("placeholderWithShape:dataType", ([2], MPS[fed.dtype]), (meta,), (fed.dtype,))
    run = GraphRun(RecordedGraph([node]), {RESULT: fed.data_ptr()}, {RESULT: fed}, {RESULT: result.data_ptr()})
    return describe([run], given, given, result)


@pytest.mark.parametrize("copied", [False, True])
def test_graphs_that_write_the_parts_of_a_complex_result(copied: bool) -> None:
    result, elsewhere = torch.full((2,), 2 + 3j), torch.zeros(4)
    target = elsewhere if copied else result
    runs = [constant(2.0, target.data_ptr()), constant(3.0, target.data_ptr() + 4)]
    wanted = "complexTensorWithRealTensor:imaginaryTensor(2.0, 3.0)"
    assert describe(runs, torch.zeros(2), torch.zeros(2), result) == wanted


def test_a_complex_result_written_as_reals_is_unknown() -> None:
    result = torch.full((2,), 2 + 2j)
    with pytest.raises(PorterError, match="writes complex elements as pairs of real ones") as refused:
        describe([constant(2.0, result.data_ptr())], torch.zeros(2), torch.zeros(2), result)
    assert refused.value.code == "PTR135"


def test_a_copy_holds_the_argument_before_the_call() -> None:
    before, now = torch.tensor([1.0, 2.0]), torch.zeros(2)
    assert describe([], before, before, before.clone()) == "self"
    with pytest.raises(PorterError, match="the call ran no graph"):
        describe([], before, now, now)  # it was filled in place
    with pytest.raises(PorterError, match="the call ran no graph"):
        describe([], now, now, now)  # so it may have been, too


@pytest.mark.parametrize(
    ("given", "dtype", "wanted"),
    [
        (torch.tensor([1 + 2j, 0j]), torch.bool, "bool(self)"),
        (torch.tensor([1.0, 2.0]), torch.complex64, "float2(self)"),
        (torch.tensor([1.0, 2.0]), torch.int32, "int(self)"),
    ],
)
def test_a_placeholder_fed_a_converted_argument(given: torch.Tensor, dtype: torch.dtype, wanted: str) -> None:
    assert read(given, given.to(dtype)) == wanted


def test_a_placeholder_fed_one_complex_part_is_unknown() -> None:
    given = torch.tensor([1 + 2j, 3j])
    with pytest.raises(PorterError, match="a placeholder that is not a tensor argument"):
        read(given, given.real.clone())


def test_element_types_print_by_name_and_bytes_as_numbers() -> None:
    made = torch.tensor([0.5, 2.0])
    data = Node("constantWithData:shape:dataType", (b"8 bytes.", [2], MPS[made.dtype]), (made,), (made.dtype,))
    run = GraphRun(RecordedGraph([data]), {}, {}, {RESULT: made.data_ptr()})
    found = format_expr(build_expression([run], {"self": torch.zeros(1)}, {}, [made], False))
    assert found == "constantWithData:shape:dataType(list(0.5, 2.0), [2], float)"
