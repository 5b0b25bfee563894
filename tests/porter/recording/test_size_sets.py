"""Samples at sizes of porter's own, with the constraints of the operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.testing._internal.opinfo.core import SampleInput

from porter.recording import size_sets
from porter.recording.size_sets import SizeSets, Template

Op = Callable[..., Any]
LONG = 10**12


def make_samples(op: Op, *args: Any, **kwargs: Any) -> list[SampleInput]:
    sets = SizeSets(lambda sample: op(sample.input, *sample.args, **sample.kwargs), LONG)
    return list(sets.make_samples(SampleInput(args[0], args=args[1:], kwargs=kwargs), requires_grad=False))


def shapes(sample: SampleInput) -> list[tuple[int, ...]]:
    return [tuple(leaf.shape) for leaf in Template.of(sample).leaves if isinstance(leaf, torch.Tensor)]


CASES: dict[str, tuple[Op, tuple[Any, ...]]] = {
    "one tensor": (torch.exp, (torch.rand(5, 5),)),
    "a dimension": (torch.softmax, (torch.rand(5, 5, 5), 1)),
    "equal shapes": (functional.mse_loss, (torch.rand(5, 5), torch.rand(5, 5))),
    "a list of sizes": (functional.layer_norm, (torch.rand(2, 5, 5), [5, 5], torch.rand(5, 5))),
    "a channel": (functional.instance_norm, (torch.rand(2, 3, 5), torch.rand(3), torch.rand(3))),
    "indices": (torch.gather, (torch.rand(5, 5), 1, torch.randint(5, (5, 3)))),
    "a size of one": (functional.pad, (torch.rand(1, 1, 3), [1, 2])),
    "a list of tensors": (torch.cat, ([torch.rand(3, 5), torch.rand(3, 5)], 0)),
    "multiples": (functional.pixel_shuffle, (torch.rand(1, 4, 3, 3), 2)),
}


@pytest.mark.parametrize(("op", "args"), CASES.values(), ids=CASES)
def test_sizes_are_at_least_two_and_the_operator_takes_them(op: Op, args: tuple[Any, ...]) -> None:
    found = make_samples(op, *args)
    assert len({str(shapes(sample)) for sample in found}) >= 5
    for sample in found:
        op(sample.input, *sample.args, **sample.kwargs)
        assert all(size >= 2 for shape in shapes(sample) for size in shape)


@pytest.mark.parametrize("case", ["one tensor", "a dimension", "equal shapes"])
def test_dimensions_of_a_tensor_differ(case: str) -> None:
    op, args = CASES[case]
    for sample in make_samples(op, *args):
        shape = shapes(sample)[0]
        assert len(set(shape)) == len(shape)


def test_no_results_are_made_that_have_many_more_elements_than_what_is_given() -> None:
    counts: list[int] = []

    def convolve(*args: Any) -> torch.Tensor:
        result = functional.conv_transpose3d(*args)
        counts.append(result.device.type == "cpu" and result.numel())
        return result

    args = torch.rand(2, 2, 4, 4, 4), torch.rand(2, 2, 3, 3, 3), None, (8, 7, 6)
    assert make_samples(convolve, *args)
    assert 0 < max(counts) <= 4_000_000


def make_ranks(op: Op, *args: Any, known: tuple[int, ...]) -> set[int]:
    sets = SizeSets(lambda sample: op(sample.input, *sample.args, **sample.kwargs), LONG)
    found = sets.make_ranks(SampleInput(args[0], args=args[1:]), requires_grad=False, known=known)
    return {sample.input.ndim for sample, _ in found}


def test_ranks_that_no_sample_has_are_made_where_the_operator_takes_them() -> None:
    assert make_ranks(functional.pixel_shuffle, torch.rand(1, 4, 3, 3), 2, known=(4,)) == {3, 5}
    assert make_ranks(torch.exp, torch.rand(3, 4), known=(1, 2)) == {3, 4, 5}
    assert make_ranks(torch.mm, torch.rand(3, 4), torch.rand(4, 3), known=(2,)) == set()


def test_what_must_be_equal_stays_equal() -> None:
    op, args = CASES["a list of sizes"]
    for sample in make_samples(op, *args):
        given, weight = shapes(sample)
        assert tuple(sample.args[0]) == weight == given[-2:]
    op, args = CASES["equal shapes"]
    assert all(len(set(shapes(sample))) == 1 for sample in make_samples(op, *args))


def test_a_dimension_is_first_last_and_between_in_several_ranks() -> None:
    op, args = CASES["a dimension"]
    found = {(sample.input.ndim, sample.args[0]) for sample in make_samples(op, *args)}
    assert found == {(4, 2), (4, 3), (4, 0), (3, 1), (3, 2), (3, 0)}


def test_a_size_is_varied_alone() -> None:
    found = [shapes(sample)[0] for sample in make_samples(torch.exp, torch.rand(5, 5, 5, 5))]
    alone = {
        i for a in found for b in found for i in range(4) if a[i] != b[i] and a[:i] + a[i + 1 :] == b[:i] + b[i + 1 :]
    }
    assert alone == {0, 1, 2, 3}


def test_what_the_operator_rejects_is_not_varied() -> None:
    def square(tensor: torch.Tensor) -> torch.Tensor:
        assert tensor.shape[0] == tensor.shape[1]
        return tensor

    found = make_samples(square, torch.rand(3, 3, 2))
    assert found and all(sample.input.shape[0] == sample.input.shape[1] for sample in found)


def test_a_size_that_stays_one_gives_no_samples() -> None:
    def first(tensor: torch.Tensor) -> torch.Tensor:
        assert tensor.shape[0] == 1
        return tensor

    assert make_samples(first, torch.rand(1, 4, 3, 3)) == []


def test_gradients_are_taken_of_what_the_sample_takes_them_of() -> None:
    sample = SampleInput(torch.rand(2, 3, requires_grad=True), args=(torch.rand(3),))
    template = Template.of(sample)
    made = template.make(template.sizes(), requires_grad=True)
    assert made.input.requires_grad and not made.args[0].requires_grad


def test_vectors_that_one_dimension_has_vary_with_it() -> None:
    def normalize(given: torch.Tensor, *vectors: torch.Tensor) -> torch.Tensor:
        assert all(len(each) == given.shape[1] for each in vectors)
        return given * sum(each[:, None] for each in vectors)

    found = make_samples(normalize, torch.rand(5, 5, 5), torch.rand(5), torch.rand(5))
    assert len({sample.input.shape[1] for sample in found}) > 2


def test_a_size_that_unchecked_vectors_bound_varies_with_them() -> None:
    def scale(given: torch.Tensor, *vectors: torch.Tensor) -> torch.Tensor:
        assert all(len(each) >= given.shape[1] for each in vectors)  # a part of them is read
        shape = (given.shape[1], *(1 for _ in given.shape[2:]))
        return given * sum(each[: given.shape[1]].view(shape) for each in vectors)

    found = make_samples(scale, torch.rand(5, 5, 5), torch.rand(5), torch.rand(5))
    assert len({sample.input.shape[1] for sample in found}) > 2
    assert all(len(each) == sample.input.shape[1] for sample in found for each in sample.args)


def test_nan_of_what_is_read_beyond_a_tensor_is_not_taken_for_the_samples_own() -> None:
    def read_beyond(given: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
        channels = given.shape[1]
        inside = len(vector) >= channels and (given.ndim == 3 or len(vector) == channels)
        return given.sum() * (1.0 if inside else float("nan"))

    found = make_samples(read_beyond, torch.rand(3, 2, 4), torch.rand(2))
    assert found and all(len(sample.args[0]) >= sample.input.shape[1] for sample in found)


def test_a_number_near_zero_becomes_one_that_six_decimals_show() -> None:
    sample = SampleInput(torch.rand(2, 3), args=(1e-5, 0.0, 4.0))
    template = Template.of(sample)
    assert template.make(template.sizes(), factor=0.8).args == (0.1, 0.0, 3.2)
    assert template.make(template.sizes()).args == (1e-5, 0.0, 4.0)


def test_sizes_that_a_number_multiplies_stay_few_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stride of a transposed convolution came with weights of five dimensions of 48: 2 GB of them."""
    counts: list[int] = []

    def fill(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        counts.append(prod(shape))
        return torch.ones(()).expand(*shape)

    def divide(tensor: torch.Tensor, by: int) -> torch.Tensor:
        if tensor.shape[0] % by:
            raise ValueError("the first size is a multiple of the number")
        return tensor[:1] / by

    monkeypatch.setattr(size_sets, "_fill_like", fill)
    sets = SizeSets(lambda sample: divide(sample.input, *sample.args), LONG)
    for rank in (3, 5):
        list(sets.make_numbers(SampleInput(torch.rand([3] * rank), args=(1,)), requires_grad=False))
    assert 12**5 in counts
    assert max(counts) <= 4_000_000


def test_a_number_for_which_nothing_is_written_is_not_taken() -> None:
    """What such a result holds is chance: here zeros of the memory that was freed last."""

    def scale(tensor: torch.Tensor, mode: int) -> torch.Tensor:
        if mode in (1, 2, 3):
            return tensor * mode
        torch.zeros_like(tensor)
        return torch.empty_like(tensor)

    samples = make_samples(scale, torch.rand(4, 5), 1)
    assert {3} <= {sample.args[0] for sample in samples} <= {1, 2, 3}
    assert not torch.are_deterministic_algorithms_enabled()
