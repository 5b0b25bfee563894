"""Which samples of an OpInfo calls of porter's own sizes are made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput

from porter.core.dtypes import FLOAT
from porter.recording import calls, probe_calls
from porter.recording.calls import OpCall, capture_calls_in_place
from porter.recording.probe_calls import STEPS, _pick_samples, _put_new_first, capture_probe_calls
from porter.recording.size_sets import Template
from porter.verdict.suite.made_opinfos import make_opinfo

[LOSS] = [op for op in op_db if op.full_name == "nn.functional.nll_loss"]


def test_scalars_that_branches_ask_for_are_among_few_samples() -> None:
    ranked = [SampleInput(torch.rand([2] * rank), args=(dim,)) for rank in (5, 4, 3) for dim in range(-2, 2)]
    numbers = (0.5, 0.0, -1.5, float("inf"), -float("inf"), 0.7)
    scalars = [SampleInput(torch.rand(2, 2), args=(number,)) for number in numbers]

    class Added:
        """An OpInfo, as far as samples are picked."""

        def sample_inputs(self, *_args: object, **_options: object) -> Iterator[SampleInput]:
            return iter((*ranked, *scalars))

        def __call__(self, sample: torch.Tensor, number: float) -> torch.Tensor:
            return torch.add(sample, number)

    samples, _ = _pick_samples(Added(), "add", FLOAT, False, STEPS)
    picked = [sample.args[0] for sample in samples if sample.input.ndim == 2]
    assert picked == [0.5, 0.0, -1.5, float("inf"), -float("inf")]


@pytest.mark.parametrize(("base", "ranks"), [("nll_loss_backward", {1, 2}), ("nll_loss2d_forward", {4, 5})])
def test_samples_call_the_operator(base: str, ranks: set[int]) -> None:
    picked, calls = _pick_samples(LOSS, base, FLOAT, True, STEPS)
    assert {Template.of(each).rank for each in picked} <= ranks
    assert any("weight" in each.kwargs for each in picked)
    assert len({call.arguments["ignore_index"] for call in calls}) > 1


def test_samples_that_are_not_asked_stay() -> None:
    picked, calls = _pick_samples(LOSS, "nll_loss_backward", FLOAT, True, 0)
    assert {Template.of(each).rank for each in picked} >= {4} and not calls


def test_flags_that_no_sample_has_together_are_combined() -> None:
    [pool] = [op for op in op_db if op.full_name == "nn.functional.max_pool2d"]
    picked, _ = _pick_samples(pool, "max_pool2d_backward", FLOAT, True, 0)
    flags = {(each.kwargs["ceil_mode"], each.kwargs["return_indices"]) for each in picked}
    assert flags == {(False, False), (False, True), (True, False), (True, True)}


class Listed:
    """An OpInfo of given samples, as far as samples are picked."""

    def __init__(self, samples: Sequence[SampleInput]) -> None:
        self._samples = samples

    def sample_inputs(self, *_args: object, **_options: object) -> Iterator[SampleInput]:
        return iter(self._samples)

    def __call__(self, sample: torch.Tensor, *args: int, **_flags: bool) -> torch.Tensor:
        return torch.add(sample, sum(args))


def test_a_number_that_few_samples_have_comes_before_samples_that_bring_nothing_new() -> None:
    """Steps end before all samples have had their sizes: norm's power of zero came after twelve others."""
    powers = [SampleInput(torch.rand(2, 3), args=(power,)) for power in (3.0, 4.0, 5.0, -2.0, 0.0, 6.0)]
    columns = [SampleInput(torch.rand(2), args=(power,)) for power in (3.0, 7.0)]
    picked = _put_new_first([*powers, *columns])
    assert [(each.input.ndim, each.args[0]) for each in picked] == [
        *((2, 3.0), (1, 3.0), (2, -2.0), (2, 0.0)),
        *((2, 4.0), (2, 5.0), (2, 6.0), (1, 7.0)),
    ]


def test_a_rank_that_few_samples_have_is_among_the_first() -> None:
    many = [SampleInput(torch.rand(2, 2, 2), args=args) for args in product((0, 1, 2), repeat=3)]
    picked, _ = _pick_samples(
        Listed([*many, SampleInput(torch.rand(2, 2), args=(0, 0, 0))]), "add", FLOAT, False, STEPS
    )
    assert [each.input.ndim for each in picked][:3] == [3, 2, 3]


def test_samples_of_several_ranks_are_those_that_call_the_operator() -> None:
    class Branching(Listed):
        """Adds images alone, as padding calls another operator for each rank."""

        def __call__(self, sample: torch.Tensor, *args: int, **_flags: bool) -> torch.Tensor:
            return torch.add(sample, sum(args)) if sample.ndim > 2 else torch.mul(sample, sum(args))

    rows = [SampleInput(torch.rand(2, 2), args=args) for args in ((0,), (1,), (2,))]
    images = [SampleInput(torch.rand(2, 2, 2), args=args) for args in ((0,), (1,), (2,))]
    for base, calling in (("add", images), ("mul", rows)):
        picked, _ = _pick_samples(Branching([*rows, *images]), base, FLOAT, False, STEPS)
        assert {each.input.ndim for each in picked} == {calling[0].input.ndim}


def test_samples_call_an_operator_that_only_the_device_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def capture(_op: object, _base: str, sample: SampleInput, _differentiable: bool) -> Iterator[OpCall]:
        if not sample.kwargs["indices"]:
            yield OpCall(torch.ops.aten.add.Tensor, {})

    monkeypatch.setattr(probe_calls, "capture_sample_calls", capture)
    flags = product((False, True), repeat=2)
    samples = [SampleInput(torch.rand(2), kwargs={"indices": one, "ceil": other}) for one, other in flags]
    picked, _ = _pick_samples(Listed(samples[1:]), "mps_only", FLOAT, False, STEPS)
    assert [each.kwargs for each in picked] == [{"indices": False, "ceil": flag} for flag in (True, False)]


@pytest.mark.parametrize("is_plain", [False, True])
def test_an_operator_that_calls_without_gradients_alone_make_is_found(
    monkeypatch: pytest.MonkeyPatch, is_plain: bool
) -> None:
    """Attention asks for another operator where nothing is differentiated."""
    [op] = [op for op in op_db if op.full_name == "mul"]
    call = OpCall(torch.ops.aten.mul.Tensor, {})

    def capture(_op: object, _base: str, _sample: SampleInput, slopes: bool) -> Iterator[OpCall]:
        yield from [call] * (slopes is not is_plain)

    for module in (calls, probe_calls):
        monkeypatch.setattr(module, "capture_sample_calls", capture)
    captured = list(calls.capture_calls(op, "mps_only", FLOAT))
    assert captured and set(map(id, captured)) == {id(call)}
    probes = list(islice(capture_probe_calls(op, "mps_only", types=(FLOAT,)), 3))
    assert [each.place.requires_grad for each in probes] == [not is_plain] * 3


def test_calls_of_a_made_opinfo_keep_operands_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """No argument of a call is changed alone: its operands may fit no other number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(probe_calls, "capture_sample_calls", lambda *given: iter(capture_calls_in_place(*given)))
    base = "_weight_norm_interface"
    seen = set()
    for own in capture_probe_calls(make_opinfo(base), base):
        first, second, dim = own.call.arguments.values()
        assert second.shape == torch.Size(size if d == dim else 1 for d, size in enumerate(first.shape))
        seen.add((first.dtype, first.ndim, dim))
    torch.set_num_threads(threads)
    assert {
        (torch.float32, rank, dim) for rank, dim in ((1, 0), (2, 0), (2, 1), (3, 0), (3, 2), (4, 0), (4, 3))
    } <= seen
    assert {dtype for dtype, _, _ in seen} == {torch.float32, torch.float16, torch.bfloat16}


def test_flags_of_a_made_opinfo_are_varied_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_calls, "capture_sample_calls", lambda *given: iter(capture_calls_in_place(*given)))
    base = "unique_dim_consecutive"
    calls = [own.call.arguments for own in islice(capture_probe_calls(make_opinfo(base), base), 12)]
    flags = [(each["return_inverse"], each["return_counts"]) for each in calls]
    assert flags == [(True, True), (False, True), (True, False)] * 4
    assert len({(each["self"].dtype, each["self"].shape, each["dim"]) for each in calls}) == 4
