"""What a gradient test finds wrong is told apart by sample and by the kernels that computed it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import aten_overlay
from porter.verdict.suite import compare, consistency, counters, execution, results, runner
from porter.verdict.suite.context import Context
from porter.verdict.suite.gradients import Gradients
from porter.verdict.suite.overloads import WRITTEN_OVER

device = aten_overlay.start()
TEST = "test_output_grad_match_nn_functional_silu_mps_float16"


@pytest.fixture(autouse=True)
def counted() -> Any:
    counters.install(dict, device.fallbacks)


@pytest.fixture
def composed_silu() -> Iterator[None]:
    """A device whose silu_backward is made of operators that each round to half."""

    def compose(slope: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return slope * (x.sigmoid() * (1 + x * (1 - x.sigmoid())))

    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings(action="ignore"):
        library.impl("silu_backward", compose, "MPS")
    yield
    library._destroy()


@pytest.mark.usefixtures("composed_silu")
def test_a_gradient_that_is_imprecise_in_half_is_found_by_sample_and_computed_by_no_kernel() -> None:
    [found] = runner.run(Context(bases=("silu",)), TEST)
    assert (found.status, found.reason) == ("failed", found.findings[0].what)
    assert "Mismatched elements" in found.reason
    assert {each.kernel_calls for each in found.findings} == {0}
    assert len({each.sample for each in found.findings}) == len(found.findings) > 0


@pytest.fixture
def picky_silu() -> Iterator[None]:
    """A device whose silu has no implementation for vectors, and whose gradient is wrong."""

    def refuse(x: torch.Tensor) -> torch.Tensor:
        if x.ndim == 1:
            raise NotImplementedError("silu of a vector")
        return x * x.sigmoid()

    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings(action="ignore"):
        library.impl("silu", refuse, "MPS")
        library.impl("silu_backward", lambda slope, x: slope * 2, "MPS")
    yield
    library._destroy()


@pytest.mark.usefixtures("picky_silu")
def test_a_gradient_test_judges_samples_behind_one_that_is_refused() -> None:
    [outcome] = runner.run(Context(bases=("silu",)), TEST)
    kinds = {each.sample: each.is_refusal for each in outcome.findings}
    assert outcome.status == "failed" and min(kinds) > 0
    assert True in kinds.values() and list(kinds.values())[-1] is False, outcome.findings


@pytest.mark.usefixtures("composed_silu")
def test_a_kernel_that_is_not_reached_is_a_finding_of_its_own() -> None:
    [found] = runner.run(Context(bases=("silu",), kernels=("silu",)), TEST)
    assert found.reason.startswith("never reached the ported kernel (silu)")
    assert (found.findings[-1].what, found.findings[-1].sample) == (found.reason, -1)
    assert len(found.findings) > 1


@pytest.mark.parametrize("falls_back", [False, True])
def test_direct_calls_of_a_branch_that_other_kernels_serve_need_no_kernel_of_the_port(
    falls_back: bool,
) -> None:
    """Upstream's softmax backward along the last dimension has a kernel of its own, and a port is of the others."""
    times = count(1)
    fallbacks = ["aten::var.correction"] if falls_back else []
    counters.install(lambda: {"rows_in_one_pass": next(times)}, lambda: {name: next(times) for name in fallbacks})
    [outcome] = runner.run(Context(bases=("var",), kernels=("var",)), "test_wide_accumulation_var_mps_float16")
    assert outcome.status == ("failed" if falls_back else "skipped")
    assert ("never reached the ported kernel (var)" if falls_back else "rows_in_one_pass") in outcome.reason


@pytest.mark.parametrize(
    ("base", "test"),
    [
        ("abs", "test_out_abs_mps_float32"),
        ("abs", "test_inplace_abs_mps_float32"),
        ("arange", "test_error_inputs_arange_mps"),
    ],
)
def test_what_the_device_refuses_is_found_by_sample(base: str, test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so can it be compared with what the fork refused before a port."""

    @contextmanager
    def refuse() -> Iterator[None]:
        raise IndexError("no room")
        yield

    monkeypatch.setattr(execution, "device_context", refuse)
    [found] = runner.run(Context(bases=(base,)), test)
    assert (found.status, {each.what for each in found.findings}) == ("failed", {"IndexError: no room"})
    numbers = [each.sample for each in found.findings]
    assert len({*numbers}) == len(numbers) > 1 and min(numbers) > 0


def test_a_layout_for_which_the_cpu_contradicts_itself_is_compared_with_dense_memory() -> None:
    """The CPU's median of an expanded tensor has elements that are not in the tensor."""
    row = torch.tensor([[1, 7], [2, 8], [3, 9]]).T[0][:, None].expand(3, 5)
    assert row.median(-1).values.tolist() != row.clone().median(-1).values.tolist()
    [found] = runner.run(Context(bases=("median",)), "test_layouts_median_mps_int32")
    assert (found.status, found.reason) == ("passed", "")


def test_other_layouts_are_compared_with_what_the_cpu_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    right = consistency.Consistency.mps_with_arguments

    def wrong(*arguments: Any) -> tuple[Any, Any]:
        result, given = right(*arguments)
        return result + 1, given

    monkeypatch.setattr(consistency.Consistency, "mps_with_arguments", wrong)
    [found] = runner.run(Context(bases=("abs",)), "test_layouts_abs_mps_int32")
    assert found.status == "failed" and "not equal" in found.reason


def test_equal_elements_are_compared_by_what_is_named() -> None:
    """What differs from the CPU's topk in ties alone passes; a position of another element does not."""
    [passed] = runner.run(Context(bases=("topk",)), "test_layouts_topk_mps_float32")
    assert (passed.status, passed.reason) == ("passed", "")


@pytest.mark.parametrize(
    ("step", "status"), [(1, "passed"), (2, "failed")], ids=["another of them", "one of them twice"]
)
def test_other_positions_of_equal_elements(step: int, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = consistency.Consistency.mps_with_arguments

    def change(*arguments: Any) -> tuple[Any, Any]:
        (values, positions), given = right(*arguments)
        if arguments[2].args == (3,) and arguments[2].input.stride()[-1] == 0:  # rows of equal elements
            positions = torch.arange(positions.shape[-1], device=positions.device) // step + 0 * positions
        return torch.return_types.topk((values, positions)), given

    monkeypatch.setattr(consistency.Consistency, "mps_with_arguments", change)
    [found] = runner.run(Context(bases=("topk",)), "test_layouts_topk_mps_float32")
    assert found.status == status


def change_results(change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], patch: pytest.MonkeyPatch) -> None:
    """Puts a function of the device's float32 results and the float64 ones in their place."""
    right = consistency.Consistency.mps_with_arguments

    def compute(suite: Any, op: Any, sample: Any, device: str) -> tuple[Any, Any]:
        result, given = right(suite, op, sample, device)
        if result.dtype != torch.float32:
            return result, given
        exact = suite.cpu(op, sample.transform(compare.widen))
        return change(result.cpu(), exact).to(result.device), given

    patch.setattr(consistency.Consistency, "mps_with_arguments", compute)


# The CPU's float32 polynomial of a degree up to 255 is off by up to 1e-3; its maximum is exact.
@pytest.mark.parametrize(
    ("base", "times", "shift", "reason"),
    [
        ("special_chebyshev_polynomial_v", 1, 0.0, ""),
        ("special_chebyshev_polynomial_v", 10, 0.0, "with uint8: Tensor-likes are not close"),
        ("special_chebyshev_polynomial_v", 1, torch.nan, "nan"),
        ("maximum", 1, 2e-5, "Mismatched elements"),
    ],
)
def test_mixed_types_may_be_as_far_off_as_the_cpu(
    base: str, times: float, shift: float, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_results(lambda mine, exact: (exact + times * (exact - mine) + shift).float(), monkeypatch)
    [found] = runner.run(Context(bases=(base,)), f"test_mixed_dtypes_{base}_mps_float32")
    assert (found.status == "passed") == (not reason), found.reason
    assert not reason or any(reason in each.what for each in found.findings)


def test_upstreams_own_tolerances_hold_however_far_off_the_cpu_is(monkeypatch: pytest.MonkeyPatch) -> None:
    change_results(lambda mine, exact: (exact + 2e-5).float(), monkeypatch)
    [found] = runner.run(
        Context(bases=("special_chebyshev_polynomial_v",)),
        "test_output_match_special_chebyshev_polynomial_v_mps_float32",
    )
    assert "are not close" in found.reason


@pytest.mark.parametrize("step", [0, 1], ids=["right values", "wrong values"])
def test_results_of_another_type_alone(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right = consistency.Consistency.mps_with_arguments

    def change(*arguments: Any) -> tuple[Any, Any]:
        result, given = right(*arguments)
        return result.short() + step, given

    monkeypatch.setattr(consistency.Consistency, "mps_with_arguments", change)
    [found] = runner.run(Context(bases=("abs",)), "test_output_match_abs_mps_int32")
    assert "torch.int16 != torch.int32" in found.reason
    assert {each.is_type for each in found.findings} == {not step}


# As at::assert_no_overlap says it.
OVERLAPS = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location."


@pytest.mark.parametrize(
    ("is_all", "error", "status"),
    [(False, OVERLAPS, "passed"), (False, "no room", "failed"), (True, OVERLAPS, "failed")],
    ids=["part of an argument", "for another reason", "all of an argument"],
)
def test_results_over_arguments_that_host_code_refuses(
    is_all: bool, error: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = consistency.Consistency.mps_with_arguments
    refused = []

    def refuse(suite: Any, op: Any, sample: SampleInput, on: str) -> Any:
        places = sample.kwargs.get(WRITTEN_OVER, {}).values()
        arguments = {0: sample.input, **dict(enumerate(sample.args, 1)), **sample.kwargs}
        if any((arguments[place].shape == shape) is is_all for place, shape in places):
            refused.append(sample)
            raise RuntimeError(error)
        return right(suite, op, sample, on)

    monkeypatch.setattr(consistency.Consistency, "mps_with_arguments", refuse)
    [outcome] = runner.run(Context(bases=("sum",)), "test_outs_sum_mps_float32")
    assert refused and outcome.status == status, outcome.reason


def test_kernels_that_ran_before_an_error_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    times = count(1)
    counters.install(lambda: {"put_float": next(times)}, device.fallbacks)

    def end(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Gradients, "mps", end)
    with pytest.raises(KeyboardInterrupt):
        runner.run(Context(bases=("put",)), "test_deterministic_mode_put_mps_float32")
    [record] = [record for test, record in results.records.items() if "put_mps" in test]
    assert record.kernels["put_float"] > 0
