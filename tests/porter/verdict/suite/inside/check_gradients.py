"""Results of an operator that has several, each compared as one alone is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import aten_overlay
from porter.verdict.suite import counters, results
from porter.verdict.suite.consistency import Accepted
from porter.verdict.suite.elementwise import Elementwise
from porter.verdict.suite.gradients import Gradients, make_seeds

device = aten_overlay.start()


class Suite(Gradients):
    """One test, of which only what it notes is asked."""

    opinfos: Any = SimpleNamespace(
        tolerances=lambda *_: {"rtol": 1e-3, "atol": 1e-3},
        context=SimpleNamespace(
            bases=(), through=(), through_backward=(), count_ported=lambda _: 0, has_before=False, flushes=False
        ),
    )
    elements = answers = 0

    def test_results(self) -> None: ...

    def test_output_match_two(self) -> None: ...


@pytest.fixture(autouse=True)
def counted() -> Any:
    counters.install(dict, device.fallbacks)


@pytest.mark.parametrize(("cpu", "mps", "is_wrong"), [(0.25, 0.0, False), (0.0, 0.25, True)])
def test_a_result_in_half_is_right_that_matches_float64_where_the_cpu_does_not(
    cpu: float, mps: float, is_wrong: bool
) -> None:
    def two(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        error = (mps if x.device.type == "mps" else cpu) if x.dtype == torch.float16 else 0.0
        return x * 2, x * 3 + error

    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    sample = SampleInput(torch.ones(2, 3, dtype=torch.float16, requires_grad=True))
    suite.match_slopes(two, torch.float16, sample, "mps")  # type: ignore[arg-type]
    found = results.get_record("test_results").findings
    assert ["are not close" in each.what for each in found] == [True] * is_wrong
    found.clear()


@pytest.mark.parametrize(("mps", "is_wrong"), [([0.0, 5e-3], False), ([0.02, 0.0], True)])
def test_each_element_in_half_matches_the_cpu_as_upstream_asks_or_float64_as_torch_does(
    mps: list[float], is_wrong: bool
) -> None:
    """Upstream's tolerance is five times as large as torch's: the first element of the CPU's is beyond it."""

    def off(x: torch.Tensor) -> torch.Tensor:
        errors = mps if x.device.type == "mps" else [0.25, 0.0]
        return x * 3 + (torch.tensor(errors).to(x) if x.dtype == torch.float16 else 0.0)

    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    suite.opinfos = SimpleNamespace(tolerances=lambda *_: {"rtol": 5e-3, "atol": 1e-3}, context=Suite.opinfos.context)
    with suite.noting():
        suite.match(off, torch.float16, SampleInput(torch.ones(2, dtype=torch.float16)), "mps")  # type: ignore[arg-type]
    findings = results.get_record("test_results").findings
    assert len(findings) == is_wrong, findings
    findings.clear()


@pytest.mark.parametrize(("cpu", "mps", "kinds"), [(0.25, 0.0, [True]), (0.0, 0.25, [False]), (0.0, 0.0, [])])
def test_where_the_fork_as_it_was_can_be_asked_upstream_s_own_test_has_to_match_the_cpu(
    cpu: float, mps: float, kinds: list[bool]
) -> None:
    def off(x: torch.Tensor) -> torch.Tensor:
        error = (mps if x.device.type == "mps" else cpu) if x.dtype == torch.float16 else 0.0
        return x * 3 + error

    suite = Suite("test_output_match_two")  # type: ignore[no-untyped-call]
    suite.opinfos = SimpleNamespace(
        tolerances=Suite.opinfos.tolerances,
        context=SimpleNamespace(bases=(), through=(), through_backward=(), count_ported=lambda _: 0, has_before=True),
    )
    sample = SampleInput(torch.ones(2, 3, dtype=torch.float16))
    with suite.noting():
        suite.match(off, torch.float16, sample, "mps")  # type: ignore[arg-type]
    found = results.get_record("test_output_match_two").findings
    assert [each.is_nearer for each in found] == kinds, found
    found.clear()


@pytest.mark.parametrize(("cpu", "mps", "is_wrong"), [(0.25, 0.25, False), (0.25, 0.5, False), (0.0, 0.25, True)])
def test_a_complex_result_as_far_off_as_the_cpu_s_is_remarked(cpu: float, mps: float, is_wrong: bool) -> None:
    def off(x: torch.Tensor) -> torch.Tensor:
        error = (mps if x.device.type == "mps" else cpu) if x.dtype == torch.complex64 else 0.0
        return x * 3 + error

    suite: Any = Suite("test_results")  # type: ignore[no-untyped-call]
    op: Any = type("Op", (), {"__call__": lambda _, x: off(x), "name": "off"})()
    sample = SampleInput(torch.ones(2, 3, dtype=torch.complex64))
    with suite.noting():
        suite.match(op, torch.complex64, sample, "mps", same=suite.same_or_as_near)
    record = results.get_record("test_results")
    assert len(record.findings) == is_wrong
    assert ["off in complex64" in each for each in record.remarks] == [True] * (cpu != mps and not is_wrong)
    record.findings.clear()
    record.remarks.clear()


@pytest.mark.parametrize("is_wrong", [False, True])
def test_a_gradient_in_16_bit_arithmetic_is_told_from_one_that_is_rounded(is_wrong: bool) -> None:
    def slope(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        is_narrow = is_wrong and grad.device.type == "mps"
        wide = [each if is_narrow or each.dtype == torch.float64 else each.float() for each in (grad, x)]
        return (wide[0] * (1 - wide[1] * wide[1]) * wide[1]).to(grad.dtype)

    class Elements(Elementwise, Suite): ...

    suite = Elements("test_results")  # type: ignore[no-untyped-call]
    x, grad = (torch.rand(64, generator=torch.Generator().manual_seed(seed)).half() for seed in (1, 2))
    with suite.noting():
        suite.rounded_once(slope, SampleInput(grad, args=(x,)), "mps")  # type: ignore[arg-type]
    findings = results.get_record("test_results").findings
    assert ["opmath" in each.what for each in findings] == [True] * is_wrong
    findings.clear()


@pytest.mark.parametrize(("error", "calls"), [(AssertionError, 3), (Accepted, 0)])
def test_no_kernel_is_wrong_where_host_code_accepts_a_call(error: type[AssertionError], calls: int) -> None:
    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    suite.opinfos = SimpleNamespace(
        context=SimpleNamespace(bases=(), through=(), through_backward=(), count_ported=lambda _: 3)
    )
    with suite.noting():
        raise error("accepted")
    found = results.get_record("test_results").findings
    assert [each.kernel_calls for each in found] == [calls]
    found.clear()


def test_a_sample_has_the_number_that_it_had_where_an_earlier_one_is_refused() -> None:
    """The fork before a port may refuse a sample whose forward and backward pass the port notes one by one."""

    def refuse(x: torch.Tensor) -> torch.Tensor:
        if x.device.type == "mps" and (not x.numel() or float(x.detach().cpu().sum()) > 2):
            raise NotImplementedError("refused")
        return x * 2

    def only_large(x: torch.Tensor) -> torch.Tensor:
        return refuse(x) if x.numel() else x * 2

    numbers = []
    for op in (refuse, only_large):
        suite = Suite("test_results")  # type: ignore[no-untyped-call]
        for tensor in (torch.ones(0), torch.ones(3), torch.ones(2), torch.ones(4)):
            with suite.asking():
                suite.match_slopes(op, torch.float32, SampleInput(tensor.requires_grad_()), "mps")  # type: ignore[arg-type]
        findings = results.get_record("test_results").findings
        numbers.append({each.sample for each in findings})
        findings.clear()
    assert numbers == [{1, 2, 4}, {2, 4}]


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float32, 1e-3), (torch.bfloat16, 1.6e-2)])
def test_gradients_are_as_right_as_the_type_of_a_result_allows(dtype: torch.dtype, rtol: float) -> None:
    suite, sample = Suite("test_results"), SampleInput(torch.ones(2))  # type: ignore[no-untyped-call]
    found = suite.choose_tolerance(None, torch.float32, sample, dtype)  # type: ignore[arg-type]
    assert found["rtol"] == rtol


def test_what_torch_itself_refuses_of_a_device_is_no_gradient_of_the_fork() -> None:
    def refused(x: torch.Tensor) -> Any:
        return torch.norm(x, p="nuc", dtype=torch.float32)  # in Python, for this device alone

    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    sample = SampleInput(torch.ones(2, 3, requires_grad=True))
    with suite.asking():
        suite.match_slopes(refused, torch.float32, sample, "mps")  # type: ignore[arg-type]
    assert not results.get_record("test_results").findings


class Off(torch.autograd.Function):
    """Twice a tensor, with a gradient that is off in fewer than 64 bits: by more on the device, as rounding may be."""

    error = 0.03

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:
        error = 0.0 if slope.dtype == torch.float64 else Off.error if slope.device.type == "mps" else 0.01
        return slope * (2 + error)


@pytest.mark.parametrize(
    ("dtype", "label", "is_wrong"),
    [(torch.float16, "varied", False), (torch.float16, "", True), (torch.float32, "varied", True)],
)
def test_only_gradients_of_varied_samples_in_16_bits_are_compared_by_the_cpu_s_errors(
    dtype: torch.dtype, label: str, is_wrong: bool
) -> None:
    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    sample = SampleInput(torch.ones(2, 3, dtype=dtype, requires_grad=True))
    suite.match_slopes(Off.apply, dtype, sample, "mps", label)  # type: ignore[arg-type]
    found = results.get_record("test_results").findings
    assert len(found) == is_wrong, found
    found.clear()


@pytest.mark.parametrize(("error", "is_as_near"), [(0.03, True), (0.2, False)])
def test_a_gradient_of_upstream_s_sample_in_16_bits_is_as_near_where_the_fork_as_it_was_can_be_asked(
    monkeypatch: pytest.MonkeyPatch, error: float, is_as_near: bool
) -> None:
    monkeypatch.setattr(Suite.opinfos.context, "has_before", True)
    monkeypatch.setattr(Off, "error", error)
    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    sample = SampleInput(torch.ones(2, 3, dtype=torch.float16, requires_grad=True))
    suite.match_slopes(Off.apply, torch.float16, sample, "mps")  # type: ignore[arg-type]
    findings = results.get_record("test_results").findings
    assert [(each.is_as_near, each.is_nearer) for each in findings] == [(is_as_near, False)], findings
    findings.clear()


def test_a_result_of_another_shape_is_one_finding_about_host_code() -> None:
    def longer(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x]) if x.device.type == "mps" else x * 2

    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    sample = SampleInput(torch.ones(2, 3, requires_grad=True))
    with suite.asking():
        suite.match_slopes(longer, torch.float32, sample, "mps")  # type: ignore[arg-type]
    findings = results.get_record("test_results").findings
    assert [each.is_type for each in findings] == [True], findings
    findings.clear()


class NotModeled(torch.autograd.Function):
    """Twice a tensor, with a gradient that the stand-in for Apple cannot run on the device."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:
        if slope.device.type == "mps":
            raise RuntimeError("PTR134 a placeholder of the graph is not fed")
        return slope * 2


@pytest.mark.parametrize("calls", [0, 1])
def test_an_old_gradient_that_does_not_run_is_a_finding_about_the_fork_unless_kernels_under_test_ran(
    calls: int,
) -> None:
    class Counting(Suite):
        opinfos: Any = SimpleNamespace(
            tolerances=Suite.opinfos.tolerances,
            context=SimpleNamespace(
                bases=(), through=(), through_backward=(), count_ported=lambda _: calls, has_before=False
            ),
        )

    suite = Counting("test_results")  # type: ignore[no-untyped-call]
    op: Any = type("Op", (), {"__call__": lambda _, x: NotModeled.apply(x), "name": "twice"})()  # type: ignore[no-untyped-call]
    with suite.asking():
        suite.match_slopes(op, torch.float32, SampleInput(torch.ones(2, requires_grad=True)), "mps")
    record = results.get_record("test_results")
    assert ["does not run" in each.what for each in record.fork_findings] == [True] * (not calls)
    assert ["PTR134" in each.what for each in record.findings] == [True] * calls
    record.findings.clear()
    record.fork_findings.clear()


def test_gradients_of_a_sample_are_the_same_ones_in_each_run() -> None:
    images = [torch.ones(1, 2, 3, 3).contiguous(memory_format=torch.channels_last), torch.ones(3, dtype=torch.bfloat16)]
    once = make_seeds(images)
    torch.rand(7)
    assert all(map(torch.equal, once, make_seeds(images)))
    assert once[0].is_contiguous(memory_format=torch.channels_last) and once[1].dtype is torch.bfloat16


class Unfed(torch.autograd.Function):
    """A function whose gradient raises an error of the fork on the device."""

    error = ""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> torch.Tensor:
        if slopes[0].device.type == "mps":
            raise RuntimeError(Unfed.error)
        return slopes[0] * 2


EMPTY = "INTERNAL ASSERT FAILED: Placeholder tensor is empty!"


@pytest.mark.parametrize(("error", "shape", "ported", "is_of_fork"), [
    (EMPTY, (0, 2), 0, True),
    (EMPTY, (0, 2), 1, False),
    (EMPTY, (2,), 0, False),
    ("INTERNAL ASSERT FAILED", (0, 2), 0, False),
])  # fmt: skip
def test_a_gradient_that_is_not_under_test_and_feeds_a_graph_nothing_is_a_fault_of_the_fork(
    monkeypatch: pytest.MonkeyPatch, error: str, shape: tuple[int, ...], ported: int, is_of_fork: bool
) -> None:
    monkeypatch.setattr(Unfed, "error", error)
    monkeypatch.setattr(Suite.opinfos.context, "count_ported", lambda _: ported)
    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    x = torch.ones(shape, device="mps", requires_grad=True)
    y, op = Unfed.apply(x), SimpleNamespace(name="unfed")  # type: ignore[no-untyped-call]
    findings = results.get_record("test_results").fork_findings
    if is_of_fork:
        assert suite.differentiate_on_device(op, [y], [x], [y.detach()]) is None  # type: ignore[arg-type]
        assert [each.what for each in findings] == [
            f"the gradient of unfed, which is not under test, does not run: {error}"
        ]
        findings.clear()
    else:
        with pytest.raises(RuntimeError, match="INTERNAL ASSERT"):
            suite.differentiate_on_device(op, [y], [x], [y.detach()])  # type: ignore[arg-type]
        assert not findings


@pytest.mark.parametrize(("bases", "is_of_fork"), [((), True), (("mm",), False)])
def test_an_operator_under_test_that_ends_before_its_kernel_is_no_finding_about_the_fork(
    monkeypatch: pytest.MonkeyPatch, bases: tuple[str, ...], is_of_fork: bool
) -> None:
    def refuse(*_: Any) -> Any:
        raise RuntimeError("PTR134 the graph is not fed")

    monkeypatch.setattr(Suite.opinfos.context, "bases", bases)
    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    x = torch.ones(2, 2, device="mps", requires_grad=True)
    y, op = x @ x.detach(), SimpleNamespace(name="product")
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("mm", refuse, "MPS")
        if is_of_fork:
            assert suite.differentiate_on_device(op, [y], [x], [y.detach()]) is None  # type: ignore[arg-type]
        else:
            with pytest.raises(RuntimeError, match="PTR134"):
                suite.differentiate_on_device(op, [y], [x], [y.detach()])  # type: ignore[arg-type]
    results.get_record("test_results").fork_findings.clear()
