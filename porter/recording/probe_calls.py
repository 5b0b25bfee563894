"""Calls of an operator at sizes of porter's own: what its OpInfo's samples call when their sizes are changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, product, takewhile, zip_longest
from typing import Any

import torch

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.recording.calls import OpCall, capture_calls_in_place, capture_sample_calls, spent
from porter.recording.size_sets import SETS, Place, SizeSets, Template
from porter.recording.varied_calls import ObservedValues
from porter.verdict.suite.children import survives
from porter.verdict.suite.made_opinfos import is_made, is_recurrent

STEPS = 1_200_000  # to make the samples of one operator
_SAMPLES = 200  # of an OpInfo that are looked at
_KEPT = 10  # of them, that differ in more than sizes
_MOST_FLAGS = 3  # of a sample, all of whose values are combined
_ASKED = 12  # part of the steps in which samples of one type are asked what they call
_OTHER_SETS = 1  # of a sample, for element types after the first
TYPES = tuple(dtypes.BY_TORCH[name] for name in ("float32", "float16", "int64", "int32", "bool", "bfloat16"))


@dataclass(frozen=True)
class ProbeCall:
    """A call, and where it came from: an OpInfo, the sizes of a sample of it, and arguments that were changed."""

    call: OpCall
    op: Any
    base: str
    sets: SizeSets
    place: Place
    changed: Mapping[str, Any] = field(default_factory=dict)

    def capture_near(self, until: int) -> Iterator[OpCall]:
        """Yields calls of the same overload that samples with few other sizes make, until so many steps are spent."""
        self.sets.extend(until)
        for sample in self.sets.make_near(self.place):
            for call in capture_sample_calls(self.op, self.base, sample, self.place.requires_grad):
                if call.overload == self.call.overload:
                    yield call.with_arguments(self.changed)


def capture_probe_calls(op: Any, base: str, steps: int = STEPS, types: Sequence[DType] = TYPES) -> Iterator[ProbeCall]:
    """Yields calls by element type: those of the first that the operator has vary all sizes, the others some.

    The first call of an overload and type is made with each value of an argument, later ones with the next in turn.
    Steps may end before all samples have had their sizes: those of types after the first begin with a call of each, as
    far as half of the steps reach that are left for calls.
    """
    until = spent() + steps
    supported = [each for each in types if getattr(torch, each.torch) in op.supported_dtypes("cpu")]
    torch.manual_seed(0)
    by_type = [list(_list_walks(op, base, dtype, not i, until, steps // _ASKED)) for i, dtype in enumerate(supported)]
    half = spent() + (until - spent()) // 2
    turns = chain.from_iterable(zip_longest(*by_type[1:], fillvalue=iter(())))  # a sample of every type, then the next
    walks = takewhile(lambda _: spent() < half, turns)
    firsts = (calls for walk in walks for calls in islice(walk, 1))
    yield from chain.from_iterable(chain(firsts, *chain.from_iterable(by_type)))


def _list_walks(
    op: Any, base: str, dtype: DType, is_first: bool, until: int, steps: int
) -> Iterator[Iterator[Iterator[ProbeCall]]]:
    """Yields, for each sample of a type, the calls that it makes at some sizes after the other."""
    differentiable = op.supports_autograd and dtype.kind is Kind.FLOATING
    sets = SizeSets(lambda sample: op(sample.input, *sample.args, **sample.kwargs), until)
    samples, calls = _pick_samples(op, base, dtype, differentiable, steps)
    if differentiable and not calls:  # ATen may choose an operator only where no gradient is asked for
        plain, calls = _pick_samples(op, base, dtype, False, steps)
        samples, differentiable = (plain, False) if calls else (samples, True)
    seen = ObservedValues.of(calls)
    ranks = {Template.of(each).rank for each in samples}
    begun: set[str] = set()
    for at, sample in enumerate(samples):
        places = sets.make_places(sample, differentiable, SETS if is_first else _OTHER_SETS)
        if is_first and not at:
            others = sets.make_ranks(sample, differentiable, ranks), sets.make_numbers(sample, differentiable)
            places = chain(places, *others)
        yield (_capture(op, base, made, sets, place, seen, begun) for made, place in places)


def _capture(
    op: Any, base: str, made: Any, sets: SizeSets, place: Place, seen: ObservedValues, begun: set[str]
) -> Iterator[ProbeCall]:
    """The calls of a sample of some sizes, and those with other values of an argument.

    An OpInfo that is made has samples with all values but those of flags, and operands that may fit no others.
    """
    for call in capture_sample_calls(op, base, made, place.requires_grad):
        own = ProbeCall(call, op, base, sets, place)
        yield own
        is_next = call.name in begun and not is_made(op)
        changes = [seen.change(call)] if is_next else seen.list_changes(call, flags_alone=is_made(op))
        if is_recurrent(op):
            changes = []
        begun.add(call.name)
        yield from (replace(own, call=own.call.with_arguments(each), changed=each) for each in changes if each)


def _pick_samples(
    op: Any, base: str, dtype: DType, differentiable: bool, steps: int
) -> tuple[Sequence[Any], Sequence[OpCall]]:
    """The first samples of every combination of ranks, flags, strings and signs, of the highest rank first.

    Those that call the operator on the CPU, if any does, or else on the device: an OpInfo may serve others by some
    ranks of its samples, or by some flags. With them come the calls of those that were asked. Besides the first come
    those with what no other has: a rank, a string, an option, zero, an infinite number.
    """
    torch_dtype = getattr(torch, dtype.torch)
    try:
        listed = list(islice(op.sample_inputs("cpu", torch_dtype, requires_grad=differentiable), _SAMPLES))
    except (RuntimeError, TypeError, ValueError):  # the OpInfo has no samples of this dtype
        return [], []
    samples = _put_ranks_first(listed)  # steps may end before all are asked
    captures: tuple[Callable[..., Iterable[OpCall]], ...] = (capture_calls_in_place, capture_sample_calls)
    for capture in captures:
        asked = _take_until(spent() + steps, samples)
        calls = [list(capture(op, base, sample, differentiable)) for sample in asked]
        if any(calls):
            break
    calling = [sample for sample, made in zip(samples, calls, strict=False) if made] or samples
    found: dict[str, Any] = {}
    for sample in calling:
        found.setdefault(repr([_kind(leaf) for leaf in Template.of(sample).leaves]), sample)
    ordered = sorted(found.values(), key=lambda sample: -Template.of(sample).rank)
    chosen = ordered[:_KEPT]
    seen = {kind for sample in chosen for kind in _list_kinds(sample)}
    for sample in ordered[_KEPT:]:
        if not seen.issuperset(_list_kinds(sample)):
            chosen.append(sample)
            seen.update(_list_kinds(sample))
    for sample in _list_other_flags(op, chosen):
        if not any(calls) or any(True for _ in capture(op, base, sample, differentiable)):
            chosen.append(sample)
    return _put_new_first(chosen), [call for calls_of_sample in calls for call in calls_of_sample]


def _take_until(until: int, samples: Iterable[Any]) -> Iterator[Any]:
    """Samples until so many steps are spent."""
    yield from takewhile(lambda _: spent() < until, samples)


def _put_ranks_first(samples: Sequence[Any]) -> list[Any]:
    """The samples with the first of each rank before the others: steps may end before all have had their sizes."""
    firsts: dict[int, Any] = {}
    for sample in samples:
        firsts.setdefault(Template.of(sample).rank, sample)
    chosen = [id(each) for each in firsts.values()]
    return [*firsts.values(), *(each for each in samples if id(each) not in chosen)]


def _put_new_first(samples: Sequence[Any]) -> list[Any]:
    """The samples with the first of each rank before the others, and of these first what none before it has: norm's
    power of zero is a case of its own.
    """
    seen: set[tuple[int, Any]] = set()
    new: list[Any] = []
    others: list[Any] = []
    for sample in _put_ranks_first(samples):
        kinds = _list_kinds(sample)
        (others if seen.issuperset(kinds) else new).append(sample)
        seen.update(kinds)
    return [*new, *others]


def _list_other_flags(op: Any, samples: Sequence[Any]) -> Iterator[Any]:
    """Samples like the first with flags that none has together, which may decide what operator is called.

    Those that the CPU takes.
    """
    templates = [Template.of(sample) for sample in samples]
    if not templates:
        return
    first = templates[0]
    places = [at for at, leaf in enumerate(first.leaves) if isinstance(leaf, bool)]
    known = {tuple(each.leaves[at] for at in places) for each in templates if each.spec == first.spec}
    for values in product((False, True), repeat=len(places)) if len(places) <= _MOST_FLAGS else ():
        if values not in known:
            flags = dict(zip(places, values, strict=True))
            leaves = tuple(flags.get(at, leaf) for at, leaf in enumerate(first.leaves))
            made = replace(first, leaves=leaves).make(first.sizes(), bool(first.slopes))
            run = partial(op, made.input, *made.args, **made.kwargs)
            if survives(run) and _is_taken(run):
                yield made


def _is_taken(run: Callable[[], object]) -> bool:
    with suppress(Exception):  # whatever the CPU's checks raise
        run()
        return True
    return False


def _list_kinds(sample: Any) -> set[tuple[int, Any]]:
    """The rank of a sample, and what the arguments of it that are no tensors are, each with its place."""
    template = Template.of(sample)
    others = {(at, _kind(leaf)) for at, leaf in enumerate(template.leaves) if not isinstance(leaf, torch.Tensor)}
    return {(-1, template.rank), *others}


def _kind(leaf: Any) -> Any:
    """What of an argument a change of sizes keeps."""
    if isinstance(leaf, torch.Tensor):
        return leaf.ndim, bool(leaf.any())  # of zeros alone, host code may answer without a graph
    if isinstance(leaf, int) and not isinstance(leaf, bool):
        return "size" if leaf > 2 else leaf
    if isinstance(leaf, float) and math.isfinite(leaf):
        return "number" if leaf > 0 else "zero" if leaf == 0 else "negative number"
    return repr(leaf)
