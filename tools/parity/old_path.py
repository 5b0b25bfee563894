"""Runs a fork's MPSGraph implementations over OpInfo samples and compares them with the CPU."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

import torch
from torch.utils import _pytree as pytree

from aten_overlay.apple.mpsgraph.precision import IN_DOUBLE, KEEPING_NAN, LARGER, SMALLER, Precision
from aten_overlay.apple.mpsgraph.recorder import GraphRun
from parity.compare import (
    HALVES,
    PLAIN,
    Tolerance,
    compare_results,
    is_near,
    is_unwritten,
    lie_between,
    pick_equal_elements,
    round_like,
    to_double,
    to_double_types,
    to_single,
)
from parity.operator_trace import trace_operators
from parity.outcomes import (
    AGREE,
    DIFFER,
    GRADIENT,
    LATE,
    NAN_LOST,
    PRECISION,
    REFUSED,
    UNCOMPARED,
    UNDEFINED,
    UNWRITTEN,
    OpInfoResult,
    Outcome,
)
from porter.verdict.backends import host
from porter.verdict.suite.compare import tolerances
from porter.verdict.suite.samples import on_device

T = TypeVar("T")
Compute = Callable[[Any], Any]
SEEDS = range(8)


@dataclass(frozen=True)
class DeviceRun:
    """One run of a sample on the device: its results (moved to the CPU) or an error, and the operators it reached.

    `untouched` says for each result whether no graph and no kernel wrote it.
    """

    results: Any = None
    error: str = ""
    untouched: tuple[bool, ...] = ()
    graphs: int = 0
    names: frozenset[str] = frozenset()
    fallbacks: frozenset[str] = frozenset()


def compare_opinfo(
    op: Any, kinds: Sequence[str], samples: int, precision: Mapping[str, frozenset[str]]
) -> Iterator[OpInfoResult]:
    """Yields a result for each dtype that the OpInfo supports on the CPU, and one for its gradient.

    `precision` holds the fork's lists of operators with wider tolerances.
    """
    for kind in kinds:
        dtype = getattr(torch, kind)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        wide = tolerances(precision, op.name, dtype)
        yield _summarize_samples(op, kind, dtype, samples, partial(check_sample, partial(_results, op), wide))
        if op.supports_autograd and dtype in op.supported_backward_dtypes("cpu") and dtype is torch.float32:
            yield _summarize_samples(op, kind + GRADIENT, dtype, samples, partial(_check_gradients, op, wide))


def _summarize_samples(
    op: Any, kind: str, dtype: torch.dtype, samples: int, check: Callable[[Any], tuple[Outcome, DeviceRun]]
) -> OpInfoResult:
    given = list(op.sample_inputs("cpu", dtype, requires_grad=kind.endswith(GRADIENT), set_seed=True))
    found = [check(sample) for sample in pick_samples(given, samples)]
    reasons = Counter((outcome.verdict, outcome.why) for outcome, _ in found if outcome.why)
    return OpInfoResult(
        op.formatted_name,
        (op.name, op.aten_name),
        kind,
        dict(Counter(outcome.verdict for outcome, _ in found)),
        tuple((verdict, why, count) for (verdict, why), count in reasons.items()),
        sum(ran.graphs for _, ran in found),
        tuple(sorted({name for _, ran in found for name in ran.names})),
        tuple(sorted({name for _, ran in found for name in ran.fallbacks})),
    )


def pick_samples(given: Sequence[T], count: int) -> list[T]:
    """At most `count` samples, in order and deterministic, spread out because neighbors are similar."""
    chosen = Random(0).sample(range(len(given)), min(count, len(given)))
    return [given[i] for i in sorted(chosen)]


def check_sample(compute: Compute, wide: Tolerance, sample: Any) -> tuple[Outcome, DeviceRun]:
    """Compares one sample with the CPU. `compute` returns its results, or None if there are none."""
    try:
        want = compute(sample)
    except Exception as error:
        return Outcome(UNCOMPARED, f"the CPU refuses it: {_message(error)}"), DeviceRun()
    if want is None:
        return Outcome(UNCOMPARED, "nothing to compare"), DeviceRun()
    try:
        moved = on_device(sample)
    except (NotImplementedError, TypeError) as error:  # sparse and float64 tensors
        return Outcome(UNCOMPARED, f"the device does not support such a tensor: {_message(error)}"), DeviceRun()
    ran = _run_on_device(compute, moved)
    return _outcome(compute, wide, sample, ran, want), ran


def _outcome(compute: Compute, wide: Tolerance, sample: Any, ran: DeviceRun, want: Any) -> Outcome:
    outcome = Outcome(REFUSED, ran.error, values=False) if ran.error else compare_results(ran.results, want, wide)
    if outcome.verdict == AGREE:
        return outcome
    undefined = _find_undefined(compute, sample, ran, want) if outcome.values else None
    if undefined:
        return undefined
    if not _is_copied(compute, sample, want):
        return Outcome(UNCOMPARED, "on the CPU, a copy of the sample gives another result too")
    explained = _explain_difference(compute, sample, ran, want, wide) if outcome.values else None
    return explained or outcome


def _is_copied(compute: Compute, sample: Any, want: Any) -> bool:
    """Whether copies of a sample's tensors give the same result; copies of views may not."""
    if compare_results(compute(sample), want, PLAIN).verdict != AGREE:
        return True  # it differs every time
    try:
        return compare_results(compute(sample.transform(_copy_tensor)), want, PLAIN).verdict == AGREE
    except RuntimeError:
        return False


def _find_undefined(compute: Compute, sample: Any, ran: DeviceRun, want: Any) -> Outcome | None:
    """Checks whether values are undefined: random numbers, or the order of equal elements."""
    stable = sample.kwargs.get("stable")
    if not stable and pick_equal_elements(sample.input, ran.results, want):
        return Outcome(UNDEFINED)
    return Outcome(UNDEFINED) if any(map(_draws, ran.names)) and _varies(partial(compute, sample)) else None


@lru_cache(maxsize=4096)
def _draws(name: str) -> bool:
    """Whether an operator uses a random generator."""
    packet = getattr(torch.ops.aten, name, None)
    overloads = [getattr(packet, overload) for overload in packet.overloads()] if packet else []
    return any(torch.Tag.nondeterministic_seeded in overload.tags for overload in overloads)


def _varies(compute: Callable[[], Any]) -> bool:
    """Whether the CPU's results depend on the seed, even if the sample sets one."""
    plain, found = torch.manual_seed, []
    for seed in SEEDS:
        with torch.random.fork_rng(devices=()), patch("torch.manual_seed", lambda given, by=seed: plain(given + by)):
            plain(seed)
            found.append(pytree.tree_map(_detach_copy, compute()))
    return any(compare_results(each, found[0], PLAIN).verdict != AGREE for each in found)


def _explain_difference(compute: Compute, sample: Any, ran: DeviceRun, want: Any, wide: Tolerance) -> Outcome | None:
    """Explains a difference in values by running the sample in other ways."""
    message = compare_results(ran.results, want, wide).why
    if is_unwritten(ran.results, want, ran.untouched):
        return Outcome(DIFFER, f"{UNWRITTEN}: {message}")
    keeping_nan = _run_in(KEEPING_NAN, compute, sample) if ran.graphs else DeviceRun(error="no graph")
    if not keeping_nan.error and compare_results(keeping_nan.results, want, wide).verdict == AGREE:
        return Outcome(DIFFER, f"{NAN_LOST}: {message}")
    bounds = tuple(_run_in(each, compute, sample) for each in (LARGER, SMALLER)) if ran.graphs else ()
    others = (ran.results, *(each.results for each in bounds if not each.error))
    if bounds and lie_between(want, others):
        return Outcome(PRECISION, f"its graphs agree within rounding: {message}")
    if reason := _explain_rounding(compute, sample, ran, want, wide):
        return Outcome(PRECISION, f"{reason}: {message}")
    floats = _compute_in_types(compute, sample.transform(to_double_types), want)
    if bounds and floats is not None and lie_between(floats, others):
        return Outcome(DIFFER, f"{LATE}: {message}")
    return None


def _compute_in_types(compute: Compute, sample: Any, want: Any) -> list[Any] | None:
    """The CPU's result for a sample in other dtypes, converted to those of `want`; None if it raises an error."""
    try:
        return round_like(compute(sample), want)
    except Exception:  # no explanation, the difference stands
        return None


def _explain_rounding(compute: Compute, sample: Any, ran: DeviceRun, want: Any, wide: Tolerance) -> str:
    """Explains a difference as rounding; `""` if it is not.

    Either the same graphs give the correct result in double precision, or a small difference disappears in wider
    dtypes: on the CPU or, since halves are also rounded between graphs, on the device.
    """
    exact = _compute_in_types(compute, sample.transform(to_double), want)
    if exact is None:
        return ""
    doubled = _run_in(IN_DOUBLE, compute, sample) if ran.graphs else DeviceRun(error="no graph")
    if not doubled.error and compare_results(doubled.results, exact, wide).verdict == AGREE:
        return "its graphs agree in double precision"
    if not is_near(ran.results, want):
        return ""
    if compare_results(ran.results, exact, wide).verdict == AGREE:
        return "agrees with the CPU in double precision"
    if not any(isinstance(leaf, torch.Tensor) and leaf.dtype in HALVES for leaf in pytree.tree_leaves(want)):
        return ""
    single = _run_on_device(compute, on_device(sample.transform(to_single)))
    agrees = not single.error and compare_results(round_like(single.results, want), exact, wide).verdict == AGREE
    return "close, and agrees in float32" if agrees else ""


def _run_in(precision: Precision, compute: Compute, sample: Any) -> DeviceRun:
    with host.recorder().use_precision(precision):
        return _run_on_device(compute, on_device(sample))


def _check_gradients(op: Any, wide: Tolerance, sample: Any) -> tuple[Outcome, DeviceRun]:
    """Compares gradients, unless the result itself already disagrees."""
    forward, _ = check_sample(partial(_results, op), wide, sample)
    if forward.verdict not in (AGREE, PRECISION):
        return Outcome(UNCOMPARED, "the result does not agree"), DeviceRun()
    results = [t for t in pytree.tree_leaves(_results(op, sample)) if _differentiable(t)]
    generator = torch.Generator().manual_seed(0)
    weights = [torch.empty_like(t).copy_(torch.randn(t.shape, generator=generator)).detach() for t in results]
    return check_sample(partial(_gradients, op, weights), wide, sample)


def _results(op: Any, sample: Any) -> Any:
    return op(sample.input, *sample.args, **sample.kwargs)


def _gradients(op: Any, weights: Sequence[torch.Tensor], sample: Any) -> list[Any] | None:
    """The gradients of every differentiable input, for these weights of the results."""
    leaves = [t for t in pytree.tree_leaves((sample.input, sample.args, sample.kwargs)) if _differentiable(t)]
    results = [t for t in pytree.tree_leaves(_results(op, sample)) if _differentiable(t)]
    if not leaves or not results:
        return None
    given = [weight.to(t) for weight, t in zip(weights, results, strict=True)]
    return list(torch.autograd.grad(results, leaves, given, allow_unused=True))


def _differentiable(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _run_on_device(compute: Compute, moved: Any) -> DeviceRun:
    recorder, runs = host.recorder(), list[GraphRun]()
    kernels, fallbacks = host.kernel_calls(), set(host.fallbacks().items())
    results, error = None, ""
    recorder.on_run = runs.append
    try:
        with trace_operators(host.fallbacks) as names:
            try:
                results = compute(moved)
            except Exception as refusal:
                error = _message(refusal)
    finally:
        recorder.on_run = None
    untouched = [
        host.kernel_calls() == kernels and not _is_graph_result(leaf, runs) for leaf in pytree.tree_leaves(results)
    ]
    fallen = frozenset(name.removeprefix("aten::") for name, _ in set(host.fallbacks().items()) - fallbacks)
    return DeviceRun(pytree.tree_map(_to_cpu, results), error, tuple(untouched), len(runs), frozenset(names), fallen)


def _is_graph_result(result: Any, runs: Sequence[GraphRun]) -> bool:
    return isinstance(result, torch.Tensor) and any(result.data_ptr() in run.results.values() for run in runs)


def _to_cpu(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _copy_tensor(value: Any) -> Any:
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def _detach_copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _message(error: Exception) -> str:
    text = str(error).strip()
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}"[:300]
