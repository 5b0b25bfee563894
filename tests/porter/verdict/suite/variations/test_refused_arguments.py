"""Calls that the CPU refuses: made of samples that it takes."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.refused_arguments import list_refused, list_refused_calls
from tests.porter.verdict.suite.variations import shown


def _find(name: str, variant: str = "") -> OpInfo:
    return next(op for op in op_db if op.name == name and op.variant_test_name == variant)


def _list_labels(op: OpInfo, sample: SampleInput, tensors: bool = True) -> list[str]:
    opinfos: Any = SimpleNamespace(pick_samples=lambda *_: [sample])
    return [label for label, _ in list_refused(opinfos, op, torch.float32, tensors)]


def test_a_padding_that_is_as_large_as_the_input_is_refused() -> None:
    op = _find("nn.functional.pad", "reflect")
    labels = _list_labels(op, SampleInput(torch.ones(1, 2, 3, 5), args=((1, 1, 2, 2), "reflect")))
    changed = [label.partition("=")[0] for label in labels if "Padding size should be less than" in label]
    assert changed == ["with 0[0]", "with 0[1]", "with 0[2]", "with 0[3]"]
    assert any(label.startswith("with 0=(1, 1, 2): ") for label in labels)


def test_a_dimension_beyond_the_rank_is_refused_once_for_each_message() -> None:
    labels = _list_labels(_find("cumsum"), SampleInput(torch.ones(3, 4), args=(0,)))
    why = "Dimension out of range (expected to be in range of [-2, 1], but got {})"
    assert labels == [f"with 0={dim}: {why.format(dim)}" for dim in (2, -3)]


def test_a_dimension_between_others_is_refused_where_the_cpu_has_none_for_it() -> None:
    opinfos = OpInfos(Context(bases=("_weight_norm_interface",)))
    [op] = opinfos.select("mps_ops_modifier")
    labels = [label for label, _ in list_refused_calls(opinfos, op, torch.float32)]
    refused = [label.partition(":")[0] for label in labels if "first or last dim" in label]
    assert refused == ["with dim=-1", "with dim=3", "with dim=1"]


def test_a_count_beyond_the_size_and_another_rank_are_refused() -> None:
    labels = _list_labels(_find("topk"), SampleInput(torch.ones(3, 4), args=(2,)))
    assert any("out of range" in label for label in labels)
    labels = _list_labels(_find("mm"), SampleInput(torch.ones(3, 4), args=(torch.ones(4, 2),)))
    assert {label.partition(":")[0] for label in labels} >= {"with 0=a rank more", "with 0=a row less"}


def test_a_width_of_a_loss_that_is_not_positive_is_refused() -> None:
    sample = SampleInput(torch.ones(3, 4), args=(torch.zeros(3, 4),), kwargs={"delta": 0.5, "reduction": "sum"})
    labels = _list_labels(_find("nn.functional.huber_loss"), sample, tensors=False)
    assert any(label.startswith("with delta=-1.0: ") for label in labels)
    assert any(label.startswith("with reduction='no such value': ") for label in labels)
    sample = SampleInput(torch.ones(3, 4), args=(torch.zeros(3, 4),))
    labels = _list_labels(_find("nn.functional.smooth_l1_loss"), sample, tensors=False)
    assert any(label.startswith("with beta=-1.0: ") for label in labels)


def test_a_word_that_means_nothing_is_refused() -> None:
    labels = _list_labels(
        _find("nn.functional.gelu"), SampleInput(torch.ones(3), kwargs={"approximate": "tanh"}), False
    )
    assert any(label.startswith("with approximate='no such value': ") for label in labels)


def test_a_backward_refuses_what_the_cpu_s_does() -> None:
    op = _find("nn.functional.pad", "reflect")
    opinfos = OpInfos(Context(bases=("reflection_pad1d_backward", "reflection_pad2d_backward")))
    labels = [label for label, _ in list_refused_calls(opinfos, op, torch.float32)]
    assert any(label.startswith("with input=") and "unexpected" in label for label in labels)


def test_a_row_that_writes_results_alone_refuses_what_the_cpu_s_does() -> None:
    op = _find("nn.functional.pad", "reflect")
    rows = ("reflection_pad1d.out", "reflection_pad2d.out")
    opinfos = OpInfos(Context(bases=("reflection_pad1d", "reflection_pad2d"), rows=rows))
    refused = [each for each in list_refused_calls(opinfos, op, torch.float32) if "out" in each[1].kwargs]
    sizes = {sample.kwargs["overload"] for label, sample in refused if "Padding size should be less than" in label}
    assert sizes == set(rows)
    of_results = [(s.kwargs["overload"], label.partition(":")[0]) for label, s in refused if label[:8] == "with out"]
    assert sorted(of_results) == [(row, "with out=of another kind") for row in rows]


def test_results_of_an_operator_of_its_own_are_refused_in_another_kind() -> None:
    """Another test varies its arguments, and the test of `out=` has operators of one result alone."""
    labels = _list_labels_of_calls("sort", "sort", ("sort.values_stable",), has_before=False)
    assert labels == {f"sort.values_stable with {name}=of another kind" for name in ("values", "indices")}


def test_a_result_in_the_memory_of_an_argument_is_refused_where_the_cpu_s_is() -> None:
    row = "index_select.out"
    shared = f"{row} with results={row}"
    assert shared in _list_labels_of_calls("index_select", "index_select", (row,), has_before=True)
    assert shared not in _list_labels_of_calls("index_select", "index_select", (row,), has_before=False)


def _list_labels_of_calls(base: str, name: str, rows: tuple[str, ...], has_before: bool) -> set[str]:
    """The row and the change of each call that is refused."""
    full_names = (_find(name).full_name,)
    context = Context(bases=(base,), rows=rows, through=full_names, through_backward=full_names, has_before=has_before)
    opinfos = OpInfos(context)
    refused = list_refused_calls(opinfos, _find(name), torch.float32)
    return {f"{sample.kwargs['overload']} {label.partition(':')[0]}" for label, sample in refused}


def test_each_result_and_each_optional_tensor_of_another_kind_is_refused() -> None:
    """Of the calls of a row it is one with a weight that is changed, and results have types of their own."""
    rows = ("nll_loss2d_forward", "nll_loss2d_forward.output")
    labels = _list_labels_of_calls("nll_loss2d_forward", "nn.functional.nll_loss", rows, has_before=True)
    assert "nll_loss2d_forward with 1=of another kind" in labels
    written = {label for label in labels if label.startswith(rows[1])}
    assert written == {f"{rows[1]} with {name}=of another kind" for name in ("output", "total_weight")}


def test_a_type_that_does_not_go_with_the_others_is_asked_of_what_was_there_before() -> None:
    row = "native_batch_norm_backward"
    changed = f"{row} with 1=of another kind"  # the CPU says "mixed dtype (CPU)"
    assert changed in _list_labels_of_calls(row, "nn.functional.batch_norm", (row,), has_before=True)
    assert changed not in _list_labels_of_calls(row, "nn.functional.batch_norm", (row,), has_before=False)


def test_what_an_assertion_in_a_file_of_the_cpu_refuses_is_refused() -> None:
    op = copy.deepcopy(next(each for each in op_db if each.name == "tril"))

    def refuse(x: torch.Tensor, diagonal: int = 0) -> torch.Tensor:
        if x.ndim and diagonal == x.shape[-1] + 1:
            raise RuntimeError('dim == 0 INTERNAL ASSERT FAILED at "/aten/src/ATen/native/cpu/TriangularOps.cpp":408')
        if x.ndim and diagonal == -1:
            raise RuntimeError("tril is not implemented for 'Char' on CPU")
        return torch.tril(x, diagonal)

    op.op = refuse
    labels = [label for label, _ in list_refused(OpInfos(Context(bases=("tril",))), op, torch.float32)]
    assert any("INTERNAL ASSERT" in label for label in labels) and not any("on CPU" in label for label in labels)


def test_a_flag_that_the_cpu_alone_may_refuse_is_asked_of_what_was_there_before() -> None:
    op = shown.find_op("softmax")
    flagged = []
    for has_before in (False, True):
        opinfos = OpInfos(Context(bases=("_softmax",), through=(op.full_name,), has_before=has_before))
        refused = list_refused_calls(opinfos, op, torch.float32)
        flagged.append([label for label, _ in refused if "half to float" in label])
    assert not flagged[0] and flagged[1]


def test_what_mkl_cannot_do_is_not_refused() -> None:
    """It transforms no rows at all otherwise than by an error; other libraries do."""
    labels = _list_labels(_find("fft.fft"), SampleInput(torch.ones(1, 4)))
    assert labels and not any("MKL" in label for label in labels)
