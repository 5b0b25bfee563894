"""The old path over OpInfo samples: what a fork's MPSGraph implementations compute, beside the CPU."""

# mypy: disable-error-code="no-untyped-call, no-any-return"

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aten_overlay.test.compare import tolerances
from porter.overlay import host
from porter.overlay.old_path_lines import (
    AGREE,
    DIFFER,
    GRADIENT,
    PRECISION,
    REFUSED,
    UNDEFINED,
    UNWRITTEN,
    Line,
    Outcome,
)
from porter.overlay.reached import reached

Tolerance = Mapping[str, float | None]
# A difference is one of precision up to this part of the largest magnitude in the result.
FRESH_BYTE = 0xCB  # PORTER_FRESH_BYTE of device/memory.h
_HALVES = (torch.float16, torch.bfloat16)
BOUNDS = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-4, torch.complex64: 1e-4, torch.complex32: 1e-2}


def lines(op: Any, kinds: Sequence[str], samples: int, precision: Mapping[str, frozenset[str]]) -> Iterator[Line]:
    """One line for each type that the OpInfo has on the CPU, and one for its gradient where it has one.

    `precision` are the fork's lists of operators that its own tests hold to wider tolerances.
    """
    for kind in kinds:
        dtype = getattr(torch, kind)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        wide = tolerances(precision, op.name, dtype)
        yield _line(op, kind, dtype, samples, partial(_forward, op, wide))
        if op.supports_autograd and dtype in op.supported_backward_dtypes("cpu") and dtype is torch.float32:
            yield _line(op, kind + GRADIENT, dtype, samples, partial(_backward, op, wide))


def _line(op: Any, kind: str, dtype: torch.dtype, samples: int, judge: Callable[[Any], Outcome | None]) -> Line:
    before = set(host.fallbacks().items())
    graphs: list[object] = []
    recorder = host.recorder()
    recorder.ran = graphs.append
    counts, reasons = Counter[str](), Counter[tuple[str, str]]()
    names: set[str] = set()
    try:
        given = op.sample_inputs("cpu", dtype, requires_grad=kind.endswith(GRADIENT))
        for sample, _ in zip(given, range(samples), strict=False):
            with reached() as on_the_way:
                outcome = judge(sample)
            names |= on_the_way
            if outcome is not None:
                outcome = _if_random(outcome, on_the_way)
                counts[outcome.verdict] += 1
                reasons.update({(outcome.verdict, outcome.why): 1} if outcome.why else {})
    finally:
        recorder.ran = None
    fallen = {name.removeprefix("aten::") for name, _ in set(host.fallbacks().items()) - before}
    told = tuple((verdict, why, count) for (verdict, why), count in reasons.items())
    named = (op.name, op.aten_name)
    return Line(
        op.formatted_name, named, kind, dict(counts), told, len(graphs), tuple(sorted(names)), tuple(sorted(fallen))
    )


def _if_random(outcome: Outcome, names: set[str]) -> Outcome:
    """Random numbers need only have their shapes and types: a device has its own."""
    if outcome.verdict in (DIFFER, PRECISION) and outcome.values and any(map(_draws, names)):
        return Outcome(UNDEFINED)
    return outcome


@lru_cache(maxsize=4096)
def _draws(name: str) -> bool:
    """Whether an operator takes its numbers from a generator."""
    packet = getattr(torch.ops.aten, name, None)
    overloads = [getattr(packet, overload) for overload in packet.overloads()] if packet else []
    return any(torch.Tag.nondeterministic_seeded in overload.tags for overload in overloads)


def _forward(op: Any, wide: Tolerance, sample: Any) -> Outcome | None:
    """None where the CPU itself refuses."""
    moved = on_device(sample)
    try:
        want = op(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return None
    try:
        got = _home(op(moved.input, *moved.args, **moved.kwargs))
    except Exception as error:
        return Outcome(REFUSED, _message(error))
    outcome = compared(got, want, wide)
    if outcome.verdict != DIFFER or not outcome.values:
        return outcome
    if _equal_elements(sample.input, got, want):
        return Outcome(UNDEFINED)
    if _unwritten(got, want):
        return Outcome(DIFFER, f"{UNWRITTEN}: {outcome.why}")
    if _in_float32(op, moved, want) or _in_float32(op, sample, got):  # the device's halves, or the CPU's
        return Outcome(PRECISION, f"in float32 it agrees: {outcome.why}")
    return outcome


def _unwritten(got: Any, want: Any) -> bool:
    """Whether results are as the allocator left their memory wherever they differ."""
    pairs = zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True)
    tensors = [(a, b) for a, b in pairs if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)]
    wrong = [a[~torch.isclose(a, b, equal_nan=True)] for a, b in tensors if not a.is_complex()]
    left = torch.cat([each.reshape(-1).contiguous().view(torch.uint8) for each in wrong]) if wrong else torch.empty(0)
    return left.numel() > 0 and bool((left == FRESH_BYTE).all())


def _in_float32(op: Any, sample: Any, want: Any) -> bool:
    """Whether a result in halves is that of float32 on the other device: no halves on the way, it agrees."""
    if not any(isinstance(t, torch.Tensor) and t.dtype in _HALVES for t in pytree.tree_leaves(want)):
        return False
    wide = sample.transform(lambda v: v.float() if isinstance(v, torch.Tensor) and v.dtype in _HALVES else v)
    try:
        got = _home(op(wide.input, *wide.args, **wide.kwargs))
    except Exception:
        return False
    pairs = list(zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=False))
    narrow = [a.to(b.dtype) if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) else a for a, b in pairs]
    found = compared(narrow, [b for _, b in pairs], {"rtol": None, "atol": None})
    return found.verdict in (AGREE, PRECISION)


def _equal_elements(source: Any, got: Any, want: Any) -> bool:
    """Whether results differ only in integers that pick equal elements of the source along a dimension."""
    pairs = list(zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=False))
    if not all(isinstance(t, torch.Tensor) for pair in pairs for t in (source, *pair)):
        return False
    differing = [(a, b) for a, b in pairs if not _equal(a, b)]
    return bool(differing) and all(_picks_the_same(source, a, b) for a, b in differing)


def _picks_the_same(source: torch.Tensor, got: torch.Tensor, want: torch.Tensor) -> bool:
    if got.dtype is not torch.int64 or want.dtype is not torch.int64 or got.shape != want.shape:
        return False
    return any(
        _equal(torch.take_along_dim(source, got, dimension), torch.take_along_dim(source, want, dimension))
        for dimension in _along(source, got)
        if got.numel() and int(got.min()) >= 0 and int(got.max()) < source.shape[dimension]
    )


def _along(source: torch.Tensor, places: torch.Tensor) -> list[int]:
    """The dimensions of the source that the places can be along: all others have the source's size."""
    if places.ndim != source.ndim:
        return []
    differing = [d for d in range(source.ndim) if places.shape[d] != source.shape[d]]
    return list(range(source.ndim)) if not differing else differing if len(differing) == 1 else []


def _backward(op: Any, wide: Tolerance, sample: Any) -> Outcome | None:
    """None where there is no gradient, or where the operator itself does not agree: that is said once."""
    forward = _forward(op, wide, sample)
    if forward is None or forward.verdict not in (AGREE, PRECISION):
        return None
    moved = on_device(sample)
    try:
        want = _gradients(op, sample)
    except Exception:
        return None
    if want is None:
        return None
    try:
        got = _gradients(op, moved)
    except Exception as error:
        return Outcome(REFUSED, _message(error))
    return compared(_home(got), want, wide)


def _gradients(op: Any, sample: Any) -> list[Any] | None:
    """By every input that takes one, for weights of the results that are the same on every device."""
    leaves = [t for t in pytree.tree_leaves((sample.input, sample.args, sample.kwargs)) if _differentiable(t)]
    results = pytree.tree_leaves(op(sample.input, *sample.args, **sample.kwargs))
    results = [t for t in results if _differentiable(t)]
    if not leaves or not results:
        return None
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(t.shape, generator=generator, dtype=torch.float32).to(t.dtype).to(t.device) for t in results]
    return list(torch.autograd.grad(results, leaves, weights, allow_unused=True))


def _differentiable(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def on_device(sample: Any) -> Any:
    """The sample with its tensors, and a device that it names, on the device."""
    moved = sample.transform(_moved)
    if str(moved.kwargs.get("device", "")).startswith("cpu"):
        moved.kwargs = {**moved.kwargs, "device": torch.device("mps")}
    return moved


def _moved(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to("mps").requires_grad_(value.requires_grad)


def _equal(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor):
        return bool(a == b) or (isinstance(a, float) and math.isnan(a))
    return a.shape == b.shape and bool(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)))


def compared(got: Any, want: Any, wide: Tolerance) -> Outcome:
    """The verdict on results: agreement is what the fork's own tests accept, precision what stays within `BOUNDS`."""
    mine, theirs = pytree.tree_leaves(got), pytree.tree_leaves(want)
    if len(mine) != len(theirs):
        return Outcome(DIFFER, f"{len(mine)} results, the CPU gives {len(theirs)}", values=False)
    outcomes = [_one(a, b, wide) for a, b in zip(mine, theirs, strict=True)]
    order = (DIFFER, PRECISION, AGREE)
    return min(outcomes, key=lambda o: (o.values, order.index(o.verdict)), default=Outcome(AGREE))


def _one(got: Any, want: Any, wide: Tolerance) -> Outcome:
    if not (isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)):
        return Outcome(AGREE) if type(got) is type(want) and _equal(got, want) else _unequal(got, want)
    if got.dtype != want.dtype or got.shape != want.shape:
        told = f"{got.dtype} {tuple(got.shape)}, the CPU gives {want.dtype} {tuple(want.shape)}"
        return Outcome(DIFFER, told.replace("torch.", ""), values=False)
    try:
        torch.testing.assert_close(
            got, want, equal_nan=True, check_device=False, check_stride=False, rtol=wide["rtol"], atol=wide["atol"]
        )
    except AssertionError as error:
        return _how_far(got, want, " ".join(str(error).split()))
    return Outcome(AGREE)


def _unequal(got: Any, want: Any) -> Outcome:
    close = isinstance(got, float) and isinstance(want, float) and math.isclose(got, want, rel_tol=1e-4)
    return Outcome(AGREE if close else DIFFER, "" if close else f"{got!r}, the CPU gives {want!r}"[:160])


def _how_far(got: torch.Tensor, want: torch.Tensor, told: str) -> Outcome:
    bound = BOUNDS.get(want.dtype)
    if bound is None or not bool((got.isfinite() == want.isfinite()).all()):
        return Outcome(DIFFER, told[:200])
    kept = want.isfinite()
    wide = torch.complex128 if want.is_complex() else torch.float64
    a, b = got[kept].to(wide), want[kept].to(wide)
    far = float((a - b).abs().max()) if a.numel() else 0.0
    largest = float(b.abs().max()) if b.numel() else 0.0
    return Outcome(PRECISION if far <= bound * largest else DIFFER, told[:200])


def _message(error: Exception) -> str:
    text = str(error).strip()
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}"[:300]


def _home(value: Any) -> Any:
    return pytree.tree_map(lambda v: v.detach().cpu() if isinstance(v, torch.Tensor) else v, value)
