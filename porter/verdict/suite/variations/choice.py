"""The samples that variations of sizes start from: few, in one element type, unlike each other in their arguments."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from porter.verdict.suite.arguments import keep_computed, turn_to_last
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import compute, has_elements, list_operands, list_tensors, replace_input
from porter.verdict.suite.made_opinfos import is_recurrent, list_opinfos, name_opinfos
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.refusals import REFUSALS
from porter.verdict.suite.resizing import resize_along, spread_values

MOST_CALLS, MOST_INDIRECT = 5, 1
TYPES = (torch.float32, torch.int64, torch.bool)
VECTOR, FEW = 4, 3  # elements of rows, and of other dimensions
OF_VECTORS = 2  # samples
MOST_FLAGS = 2  # choices of flags beside those of other samples


def varies_in(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether an OpInfo is one that varies in size, and in this type: the first of `TYPES` that it takes."""
    taken = op.supported_dtypes("mps")
    return dtype is next((each for each in TYPES if each in taken), None) and op.full_name in _list_plain(opinfos)


class _Calls(TorchDispatchMode):
    """How many ATen operators are called."""

    count: int = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


@lru_cache(maxsize=1)
def _list_plain(opinfos: OpInfos) -> frozenset[str]:
    """The full names of the OpInfos that vary in size: those of the operators under test, or what calls little else.

    Attention and losses reach an operator through others; each of their calls takes long, and shows no more of it. So
    do long sequences of recurrent layers, which launch kernels for each step: their samples have sizes enough.
    """
    context = opinfos.context
    direct = {op.full_name for op in list_opinfos(context.bases, context.through, context.through_backward)
              if context.names(op) and not is_recurrent(op)}  # fmt: skip
    indirect = [context.through_backward, *([] if direct else [context.through])]
    return frozenset(direct.union(*map(_take_plainest, indirect)))


def _take_plainest(full_names: Collection[str]) -> list[str]:
    """A few of these OpInfos with the fewest tensors, that call the fewest operators."""
    counted = [(*_count_parts(op), full) for op, full, _ in name_opinfos() if full in full_names]
    return [full for _, calls, full in sorted(counted) if calls <= MOST_CALLS][:MOST_INDIRECT]


def _count_parts(op: OpInfo) -> tuple[int, int]:
    """How many tensors the last sample of an OpInfo has, and how many operators the CPU calls for it."""
    dtype = next((each for each in TYPES if each in op.supported_dtypes("cpu")), torch.float16)
    *_, sample = op.sample_inputs("cpu", dtype)
    calls = _Calls()
    with calls, suppress(*REFUSALS):
        compute(op, sample)
    return len(list_operands(sample)), calls.count


def choose_samples(
    opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, most: int, requires_grad: bool = False
) -> list[SampleInput]:
    """At most so many samples with elements: those of two dimensions first, then of as many as there are.

    Of a rank, the first and the last of those that differ in numbers, flags or the ranks of their tensors; the last one
    with its dimension, if it has a number that may be one, counted from the end.
    """
    if op.full_name not in _list_plain(opinfos):
        return []
    unlike: dict[int, dict[str, SampleInput]] = {}
    for sample in opinfos.reaching_samples(op, dtype, requires_grad):
        if isinstance(sample.input, torch.Tensor) and sample.input.ndim and sample.input.numel():
            unlike.setdefault(sample.input.ndim, {}).setdefault(_describe(sample), sample)
    ranks = sorted(unlike, key=lambda rank: (rank != 2, -rank))
    chosen: list[SampleInput] = []
    for alike in (list(unlike[rank].values()) for rank in ranks):
        last = turn_to_last(op, alike[-1])
        chosen += [alike[0], *([last] if len(alike) > 1 or last is not alike[-1] else [])]
    return chosen[:most]


def choose_vectors(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, requires_grad: bool = False) -> list[SampleInput]:
    """Samples with rows of as many elements as a kernel reads at once, where these are dense and aligned for that."""
    chosen = choose_samples(opinfos, op, dtype, OF_VECTORS, requires_grad)
    dense = [sample for sample in chosen if sample.input.layout is torch.strided]
    rows = [varied for sample in dense for _, varied in resize_along(op, sample, sample.input.ndim - 1, (VECTOR,), FEW)]
    several = [] if requires_grad else _resize_lists(opinfos, op, dtype)
    return [*(replace_input(sample, sample.input.requires_grad_(requires_grad)) for sample in rows), *several]


def _resize_lists(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> list[SampleInput]:
    """The first samples whose input is a list of tensors, each with such rows, as far as the CPU computes them."""
    if not varies_in(opinfos, op, dtype):
        return []
    listed = [sample for sample in opinfos.reaching_samples(op, dtype) if isinstance(sample.input, (list, tuple))]
    whole = (sample for sample in listed if sample.input and all(map(has_elements, sample.input)))
    resized = (
        replace_input(sample, [spread_values(each.detach(), (*each.shape[:-1], VECTOR)) for each in sample.input])
        for sample in whole
    )
    computed = (each for _, each in keep_computed(stay_inside(op), (("", sample) for sample in resized)))
    return list(islice(computed, OF_VECTORS))


def choose_factories(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, most: int) -> list[SampleInput]:
    """At most so many samples that make a tensor of this type of several whole numbers, and of nothing else.

    Flags count for none.
    """
    if op.full_name not in _list_plain(opinfos):
        return []
    several = (sample for sample in opinfos.reaching_samples(op, dtype) if sample.kwargs.get("dtype") == dtype)
    numbered = (
        sample
        for sample in several
        if sample.args and all(type(value) is int for value in (sample.input, *sample.args))
    )
    return list(islice(numbered, most))


def _describe(sample: SampleInput) -> str:
    leaves = pytree.tree_leaves((sample.args, sorted(sample.kwargs.items())))
    return repr([each.ndim if isinstance(each, torch.Tensor) else each for each in leaves])


def list_flags(sample: SampleInput) -> str:
    """The flags among a sample's arguments, in their order: what has others may have kernels of its own."""
    leaves = pytree.tree_leaves((sample.args, sorted(sample.kwargs.items())))
    return repr([leaf for leaf in leaves if isinstance(leaf, bool)])


def list_words(sample: SampleInput) -> str:
    """The strings among a sample's arguments, as the reduction of a loss: each may have a kernel of its own."""
    leaves = pytree.tree_leaves((sample.args, list(sample.kwargs.values())))
    return repr([leaf for leaf in leaves if isinstance(leaf, str)])


def choose_flags(
    opinfos: OpInfos,
    op: OpInfo,
    dtype: torch.dtype,
    chosen: Sequence[SampleInput],
    describe: Callable[[SampleInput], str] = list_flags,
    requires_grad: bool = True,
) -> list[SampleInput]:
    """A sample of each choice of flags that none of those chosen has, a few in all, with the most tensors first."""
    unlike = {describe(sample): sample for sample in chosen}
    chosen_flags = set(unlike)
    samples = opinfos.reaching_samples(op, dtype, requires_grad) if chosen else []
    for sample in sorted(samples, key=lambda sample: -count_others(sample)):
        if isinstance(sample.input, torch.Tensor) and sample.input.ndim > 1 and sample.input.numel():
            unlike.setdefault(describe(sample), sample)
    return [sample for flags, sample in unlike.items() if flags not in chosen_flags][:MOST_FLAGS]


def count_others(sample: SampleInput) -> int:
    """The tensors of a sample beside its input."""
    return len(list_tensors((sample.args, sample.kwargs)))
