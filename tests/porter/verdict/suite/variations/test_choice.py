"""Rows that vectors are read of, behind elements that are not theirs: such vectors are not aligned."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import vary_layouts, vary_vectors
from porter.verdict.suite.slope_layouts import vary_seeds
from porter.verdict.suite.variations.choice import VECTOR, choose_vectors
from tests.porter.verdict.suite.variations.shown import Call, find_op, shows


def round_addresses_down(call: Call) -> Call:
    """An operator that reads dense rows of vectors from where the last aligned one starts."""

    def compute(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        has_vectors = x.is_contiguous() and x.ndim > 0 and x.shape[-1] % VECTOR == 0
        wrong = x.as_strided(x.shape, x.stride(), x.storage_offset() // VECTOR * VECTOR) if has_vectors else x
        return call(wrong, *args, **named)

    return compute


@pytest.mark.parametrize("name", ["cumsum", "sort", "argmax"])
def test_vectors_that_are_not_aligned_are_read(name: str) -> None:
    op = find_op(name)
    opinfos, wrong = OpInfos(Context(bases=(op.name,))), round_addresses_down(op)
    picked = opinfos.pick_samples(op, torch.float32)
    assert not any(shows(op, wrong, varied) for sample in picked for _, varied in vary_layouts(sample, False))
    rows = choose_vectors(opinfos, op, torch.float32)
    assert any(shows(op, wrong, varied) for sample in rows for _, varied in vary_vectors(sample))


def test_gradients_of_vectors_are_not_aligned() -> None:
    op = find_op("log_softmax")
    rows = choose_vectors(OpInfos(Context(bases=(op.name,))), op, torch.float32, requires_grad=True)
    assert rows and all(sample.input.requires_grad and sample.input.shape[-1] == VECTOR for sample in rows)
    offsets = [seeds[0].storage_offset() for sample in rows for _, seeds in vary_seeds(op, sample)]
    assert any(offset % VECTOR for offset in offsets)


def read_vectors(*several: torch.Tensor) -> list[torch.Tensor]:
    """Tensors as they are read as vectors, where rows have as many elements: as if these were side by side."""
    return [
        x.as_strided(x.shape, (*x.stride()[:-1], 1), x.storage_offset()) if x.ndim and not x.shape[-1] % VECTOR else x
        for x in several
    ]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("cat", lambda tensors, *args, **named: torch.cat(read_vectors(*tensors), *args, **named)),
        ("stack", lambda tensors, *args, **named: torch.stack(read_vectors(*tensors), *args, **named)),
        ("aminmax", lambda x, **named: torch.aminmax(*read_vectors(x), **named)),
    ],
)
def test_vectors_of_elements_that_are_apart_are_read(name: str, wrong: Call) -> None:
    op = find_op(name)
    rows = choose_vectors(OpInfos(Context(bases=(name,))), op, torch.float32)
    assert not any(shows(op, wrong, sample) for sample in rows)
    assert any(shows(op, wrong, varied) for sample in rows for _, varied in vary_vectors(sample))


def test_a_tensor_that_may_be_left_out_has_strides_of_its_own() -> None:
    op = find_op("bincount")

    def wrong(x: torch.Tensor, weights: torch.Tensor | None = None, **named: Any) -> torch.Tensor:
        read = weights if weights is None else weights.as_strided(x.shape, x.stride(), weights.storage_offset())
        return torch.bincount(x, weights=read, **named)

    def is_seen(samples: list[SampleInput]) -> bool:
        alone = (
            varied for sample in samples for label, varied in vary_layouts(sample, False) if "second tensor" in label
        )
        return any(shows(op, wrong, varied) for varied in alone)

    opinfos = OpInfos(Context(bases=("bincount",)))
    assert not is_seen(opinfos.pick_samples(op, torch.int64))
    assert is_seen(opinfos.pick_laid_out(op, torch.int64))
