"""Gradients that a backward pass leaves out, with flags that few samples have."""

from __future__ import annotations

import torch

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.asked_gradients import list_asked, list_operands
from tests.porter.verdict.suite.variations.shown import find_op


def test_a_bias_alone_is_asked_for_in_training_and_outside_of_it() -> None:
    """A branch for what is not trained wrote no gradient of a bias where the weight's was not asked for."""
    op = find_op("nn.functional.batch_norm")
    opinfos = OpInfos(Context(bases=("native_batch_norm_backward",), through_backward=(op.full_name,)))
    asked = {
        (bool(sample.kwargs.get("training")), sample.args[-1] is list_operands(sample)[0])
        for _, sample in list_asked(opinfos, op, torch.float32)
        if len(list_operands(sample)) == 1
    }
    assert {(True, True), (False, True)} <= asked
