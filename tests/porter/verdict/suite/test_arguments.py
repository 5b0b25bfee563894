"""Samples with one argument of a call varied: which there are."""

from __future__ import annotations

import copy
import os
import signal
import unittest

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import DecorateInfo, OpInfo, SampleInput

from porter.verdict.suite.arguments import keep_computed, list_result_types, turn_flags, vary_arguments


def _find(name: str) -> OpInfo:
    return next(op for op in op_db if op.name == name and not op.variant_test_name)


def _list_labels(name: str, sample: SampleInput, *dtypes: torch.dtype) -> list[str]:
    return [label for label, _ in vary_arguments(_find(name), sample, dtypes)]


def test_flags_and_result_types_that_a_schema_names_are_varied_though_a_call_gives_none() -> None:
    labels = _list_labels("sum", SampleInput(torch.ones(2, 3, dtype=torch.bool)), torch.int64, torch.float16)
    assert labels == ["with keepdim=True", "with dtype=torch.int64", "with dtype=torch.float16"]


def test_results_are_of_no_type_that_the_lists_expect_to_fail() -> None:
    op = copy.copy(_find("cumsum"))
    op.decorators = (
        DecorateInfo(unittest.expectedFailure, dtypes=[torch.complex64]),
        DecorateInfo(unittest.expectedFailure, device_type="cuda", dtypes=[torch.float16]),
        DecorateInfo(unittest.skip("slow"), "TestOther", dtypes=[torch.int8]),
        unittest.skip("as a whole"),
    )
    given = [torch.float16, torch.int8, torch.complex64]
    assert list_result_types(op, given) == [torch.float16, torch.int8]


def test_flags_of_a_call_are_turned_over_wherever_they_stand() -> None:
    sample = SampleInput(torch.ones(2, 3), args=(0, True), kwargs={"dtype": torch.float32})
    labels = _list_labels("sum", sample)
    assert labels == ["with 0=1", "with 0=-1", "with 1=False", "with keepdim=True"]


def test_flags_alone_are_turned_over() -> None:
    found = dict(turn_flags(_find("topk"), SampleInput(torch.ones(2, 3), args=(1, -1, False))))
    assert list(found) == ["with 2=True"]
    assert found["with 2=True"].args == (1, -1, True)
    [(label, each)] = turn_flags(_find("sum"), SampleInput(torch.ones(2, 3), kwargs={"dim": 0, "keepdim": True}))
    assert label == "with keepdim=False" and each.kwargs == {"dim": 0, "keepdim": False}


def test_a_flag_that_ends_the_process_of_the_cpu_stays() -> None:
    numbers = {"training": True, "momentum": 0.5, "eps": 0.5}
    norm = _find("_native_batch_norm_legit")
    with_none = SampleInput(torch.ones(2, 3), args=(None, None, None, None), kwargs=numbers)
    assert list(turn_flags(norm, with_none)) == []
    statistics = [torch.zeros(3), torch.ones(3)]
    [(label, _)] = turn_flags(norm, SampleInput(torch.ones(2, 3), args=(None, None, *statistics), kwargs=numbers))
    assert label == "with training=False"


def test_the_arguments_of_a_python_function_are_those_of_its_signature() -> None:
    sample = SampleInput(torch.ones(2, 3), args=(1,))
    assert "with dtype=torch.float16" in _list_labels("softmax", sample, torch.float16)
    labels = _list_labels("nn.functional.gaussian_nll_loss", SampleInput(torch.ones(2)))
    assert "with full=True" in labels and "with eps=1.0" in labels


def test_results_in_any_order_are_not_asked_for() -> None:
    labels = _list_labels("topk", SampleInput(torch.ones(2, 3), args=(1,)))
    assert "with largest=False" in labels and "with sorted=False" not in labels


def test_whole_numbers_go_beyond_32_bits_where_that_changes_no_shape() -> None:
    matrix = SampleInput(torch.ones(2, 3), args=(1,))
    assert "with 0=4294967297" in _list_labels("tril", matrix) and "with 0=-4294967295" in _list_labels("tril", matrix)
    assert "with 0=4294967297" not in _list_labels("topk", matrix)  # which has as many columns


def test_a_varied_call_is_the_sample_but_for_one_argument() -> None:
    sample = SampleInput(torch.ones(2, 3), args=(1,), kwargs={"keepdim": True})
    for _, changed in vary_arguments(_find("sum"), sample, [torch.int32]):
        same = [changed.args == sample.args, all(changed.kwargs.get(k) == v for k, v in sample.kwargs.items())]
        added = set(changed.kwargs) - set(sample.kwargs)
        assert changed.input is sample.input and same.count(False) + len(added) == 1


def test_calls_that_raise_or_end_the_process_are_left_out() -> None:
    def compute(value: torch.Tensor, how: str) -> None:
        if how == "crashes":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "raises":
            raise AttributeError(how)

    calls = [(how, SampleInput(torch.ones(1), args=(how,))) for how in ("a", "crashes", "b", "raises", "c", "crashes")]
    assert [label for label, _ in keep_computed(compute, calls)] == ["a", "b", "c"]


def test_the_arguments_that_a_function_passes_on_are_those_of_the_schema() -> None:
    sample = SampleInput(torch.ones(4, 2), args=(torch.tensor([1, 2]),))
    labels = _list_labels("nn.functional.embedding", sample)
    assert "with scale_grad_by_freq=True" in labels and "with padding_idx=1" in labels
