"""Samples with sizes of porter's own, made of an OpInfo's: all different, at least 2, and each varied alone.

Which sizes have to stay equal, or multiples of something, is found by trying them on the CPU.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils import _pytree as pytree

from porter.recording.calls import count_call, spent
from porter.verdict.suite.cuts import Margins, has_nan
from porter.verdict.suite.leaves import list_operands, list_tensors

_TINY = 1e-3
SETS = 12  # of a sample in all of its ranks and dimensions, besides those with one size varied alone
_ALONE = 8  # sizes of a sample that are varied alone, at most
_TRIES = 40  # random assignments, until one is accepted
_POOL = range(2, 14)
_SMALL = (1, 2, 3)
_TARGETS = (7, 11, 6, 12, 3, 4, 9, 8, 2)
_WIDENED = (2, 3)  # ranks that one dimension more is tried for
_RANKS = (1, 2, 3, 4, 5)  # that calls are made of, where the CPU accepts them
_OTHER_RANK = 2  # sets of a rank, or of a number, that no sample has
_FACTORS = (2, 3, 4)  # numbers that sizes are made multiples of
_NEAR = 24  # samples that differ from one in several sizes
_MAX_ELEMENTS = 20_000  # of a tensor
_MAX_RESULT = 4_000_000  # of results, and of tensors of multiplied sizes: a stride of a transposed convolution is one


@dataclass(frozen=True, order=True)
class Slot:
    """A number of a sample that can vary: the size of a tensor's dimension, or an integer (`dim` is -1)."""

    leaf: int
    dim: int


Sizes = Mapping[Slot, int]
Memory = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Template:
    """A sample's leaves, which new ones are made of; `slopes` are the places of those that gradients are taken of.

    `has_nan` is whether the sample itself gives NaN.
    """

    leaves: tuple[Any, ...]
    spec: pytree.TreeSpec
    slopes: frozenset[int] = frozenset()
    has_nan: bool = False

    @classmethod
    def of(cls, sample: SampleInput) -> Template:
        leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        slopes = frozenset(i for i, each in enumerate(leaves) if isinstance(each, torch.Tensor) and each.requires_grad)
        return cls(tuple(each.detach() if isinstance(each, torch.Tensor) else each for each in leaves), spec, slopes)

    @property
    def rank(self) -> int:
        """The most dimensions of a tensor."""
        return max((each.ndim for each in self.leaves if isinstance(each, torch.Tensor)), default=0)

    def sizes(self) -> dict[Slot, int]:
        """The numbers that may vary, as they are."""
        found: dict[Slot, int] = {}
        for at, leaf in enumerate(self.leaves):
            if isinstance(leaf, torch.Tensor):
                found |= {Slot(at, dim): size for dim, size in enumerate(leaf.shape)}
            elif isinstance(leaf, int) and not isinstance(leaf, bool) and leaf:
                found[Slot(at, -1)] = leaf
        return found

    def resize(self, sizes: Sizes) -> Template:
        """The template with these sizes as its own."""
        leaves = tuple(self._make_leaf(at, leaf, sizes, False, 1.0) for at, leaf in enumerate(self.leaves))
        return replace(self, leaves=leaves)

    def make(
        self, sizes: Sizes, requires_grad: bool = False, factor: float = 1.0, memory: Memory | None = None
    ) -> SampleInput:
        """A sample with these sizes, whose elements are like the original's; other numbers are multiplied.

        `memory` places tensors.
        """
        leaves = [self._make_leaf(at, leaf, sizes, requires_grad, factor) for at, leaf in enumerate(self.leaves)]
        if memory is not None:
            leaves = [memory(each) if isinstance(each, torch.Tensor) else each for each in leaves]
        given, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return SampleInput(given, args=args, kwargs=kwargs)

    def _make_leaf(self, at: int, leaf: Any, sizes: Sizes, requires_grad: bool, factor: float) -> Any:
        if isinstance(leaf, torch.Tensor):
            shape = [sizes.get(Slot(at, dim), size) for dim, size in enumerate(leaf.shape)]
            made = _fill_like(leaf, shape)
            return made.requires_grad_(requires_grad and at in self.slopes)
        return _scale(leaf, factor) if isinstance(leaf, float) else sizes.get(Slot(at, -1), leaf)


def count_elements(sample: SampleInput) -> int:
    """The elements of all tensors of a sample."""
    return sum(each.numel() for each in list_operands(sample))


def _scale(value: float, factor: float) -> float:
    """Another number; of one that is almost 0, a larger one: cache keys of host code have six decimals of it."""
    is_tiny = 0 < abs(value) < _TINY and factor != 1
    return math.copysign(factor / 8, value) if is_tiny else value * factor


def _fill_like(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Elements from the range of a tensor's; of one that is not floating-point, some of its own."""
    if not tensor.numel():
        return torch.zeros(list(shape), dtype=tensor.dtype)
    if tensor.is_floating_point():
        low, high = float(tensor.min()), float(tensor.max())
        return torch.rand(list(shape), dtype=torch.float64).mul(high - low).add(low).to(tensor.dtype)
    same = torch.Generator().manual_seed(sum(size * 31**i for i, size in enumerate(shape)))  # as when it was tried
    return tensor.flatten()[torch.randint(tensor.numel(), list(shape), generator=same)]


@dataclass(frozen=True)
class _Group:
    """Slots that have to be equal, and the numbers that they can have."""

    slots: tuple[Slot, ...]
    pool: tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """What a sample was made of: its sizes, and those that may vary together."""

    template: Template
    groups: tuple[_Group, ...]
    sizes: Sizes
    requires_grad: bool


Runs = Callable[[SampleInput], Any]


class SizeSets:
    """Makes the samples of one operator, until so many steps are spent."""

    def __init__(self, run: Runs, until: int) -> None:
        self._run, self._until = run, until
        self._random = random.Random(0)
        self._drops_dimensions = False  # the last call that was tried
        self._tried: dict[tuple[Template, frozenset[tuple[Slot, int]]], tuple[bool, bool]] = {}

    def make_samples(self, sample: SampleInput, requires_grad: bool, sets: int = SETS) -> Iterator[SampleInput]:
        """Samples like this one with other sizes; none if a size cannot be more than 1."""
        yield from (made for made, _ in self.make_places(sample, requires_grad, sets))

    def make_places(
        self, sample: SampleInput, requires_grad: bool, sets: int = SETS
    ) -> Iterator[tuple[SampleInput, Place]]:
        """As `make_samples`, with what each was made of."""
        original = self._read_template(sample)
        wider = self._widen(original) if original.rank in _WIDENED else None
        widened = [each for each in (wider, original) if each is not None]
        templates = [template for each in widened for template in self._turn_dimensions(each)]
        for template in templates:
            shared = max(1, sets // len(templates))
            yield from self._make_samples(template, requires_grad, shared, _ALONE // len(templates) if sets > 1 else 0)

    def make_ranks(
        self, sample: SampleInput, requires_grad: bool, known: Collection[int]
    ) -> Iterator[tuple[SampleInput, Place]]:
        """Samples like this one of other ranks than those `known`, by dimensions in front."""
        template: Template | None = self._read_template(sample)
        original = template
        for _ in _RANKS:
            template = self._narrow(template) if template else None
            if template and template.rank not in known:
                yield from self._make_samples(template, requires_grad, _OTHER_RANK, 0)
        template = original
        while template and template.rank < max(_RANKS):
            template = self._widen(template)
            if template and template.rank not in known:
                yield from self._make_samples(template, requires_grad, _OTHER_RANK, 0)

    def make_numbers(self, sample: SampleInput, requires_grad: bool) -> Iterator[tuple[SampleInput, Place]]:
        """Samples like this one with other whole numbers, if only sizes fit that are multiples of them."""
        original = self._read_template(sample)
        sizes = original.sizes()
        for slot in (each for each, number in sizes.items() if each.dim < 0 < number):
            if all(self._is_accepted(original, {slot: number}) for number in _FACTORS):
                continue
            for number in (each for each in _FACTORS if each != sizes[slot]):
                fitting = {each: size * number**2 for each, size in sizes.items() if each.dim >= 0 and size > 1}
                if not _is_small(fitting, _MAX_RESULT):  # five dimensions of 48 are 254 million elements
                    continue
                template = original.resize({**fitting, slot: number})
                if self._is_accepted(template, {}):
                    yield from self._make_samples(template, requires_grad, _OTHER_RANK, 0)

    def _read_template(self, sample: SampleInput) -> Template:
        template = Template.of(sample)
        with suppress(Exception), _filling_memory(), torch.no_grad():  # whatever the CPU's checks raise
            return replace(template, has_nan=has_nan(self._run(template.make({}))))
        return template

    def make_near(self, place: Place) -> Iterator[SampleInput]:
        """Samples that differ from one in some sizes, or in one alone."""
        alone = [(group,) for group in place.groups for _ in range(2)]
        together = [self._choose(place.groups) for _ in range(_NEAR)] if place.groups else []
        turns = [each for pair in zip_longest(together, alone, fillvalue=()) for each in pair if each]
        seen = [place.sizes]
        for groups in turns:
            sizes: Sizes | None = place.sizes
            for group in groups:
                sizes = self._vary(place.template, sizes, group) if sizes else None
            if sizes and sizes not in seen and _is_small(sizes):
                seen.append(sizes)
                yield place.template.make(sizes, place.requires_grad, self._random.uniform(0.5, 1.0))

    def _choose(self, groups: Sequence[_Group]) -> tuple[_Group, ...]:
        return tuple(self._random.sample(groups, self._random.randint(1, len(groups))))

    def extend(self, until: int) -> None:
        """Goes on until other steps are spent."""
        self._until = until

    def _widen(self, template: Template) -> Template | None:
        """The template with one dimension more in front of the tensors of most dimensions, if the CPU accepts it."""
        return self._replace_tensors(template, lambda tensor: torch.stack((tensor, tensor))) if template.rank else None

    def _narrow(self, template: Template) -> Template | None:
        """The template without the first dimension of the tensors of most dimensions, if the CPU accepts it."""
        return self._replace_tensors(template, lambda tensor: next(iter(tensor), tensor)) if template.rank > 1 else None

    def _replace_tensors(self, template: Template, change: Memory) -> Template | None:
        """The template with other tensors in the place of those of most dimensions, if the CPU accepts it."""
        rank = template.rank
        leaves = tuple(change(each) if _has_rank(each, rank) else each for each in template.leaves)
        made = replace(template, leaves=leaves)
        return made if made.rank != rank and self._is_accepted(made, {}) else None

    def _turn_dimensions(self, template: Template) -> Iterator[Template]:
        """The template for every kind of dimension that a number of it may name: between others, first and last."""
        rank = template.rank
        at = next((i for i, each in enumerate(template.leaves) if self._is_dimension(template, i, each, rank)), None)
        if at is None:
            yield template
            return
        first, rest = template.leaves[:at], template.leaves[at + 1 :]
        for dim in dict.fromkeys((rank - 2, rank - 1, 0)):
            yield replace(template, leaves=(*first, dim, *rest))

    def _is_dimension(self, template: Template, at: int, leaf: Any, rank: int) -> bool:
        """Whether the CPU takes a number from minus the rank on, up to the rank."""
        if not isinstance(leaf, int) or isinstance(leaf, bool) or rank < 2 or not -rank <= leaf < rank:
            return False
        answers = (self._is_accepted(template, {Slot(at, -1): each}) for each in (rank - 1, -rank, rank, -rank - 1))
        return tuple(answers) == (True, True, False, False)

    def _make_samples(
        self, template: Template, requires_grad: bool, sets: int, alone: int
    ) -> Iterator[tuple[SampleInput, Place]]:
        original = template.sizes()
        groups = tuple(self._find_groups(template, original))
        grouped = {slot for group in groups for slot in group.slots}
        if any(size < 2 for slot, size in original.items() if slot.dim >= 0 and slot not in grouped):
            return
        made: list[Sizes] = []
        for _ in range(sets):
            found = self._draw(template, original, groups)
            if found is not None and found not in made:
                made.append(found)
                sample = template.make(found, requires_grad, self._random.uniform(0.5, 1.0))
                yield sample, Place(template, groups, found, requires_grad)
        for group in groups[:alone] if made else ():
            varied = self._vary(template, made[0], group)
            if varied is not None and varied not in made:
                made.append(varied)
                yield template.make(varied, requires_grad), Place(template, groups, varied, requires_grad)

    def _find_groups(self, template: Template, original: Sizes) -> list[_Group]:
        """The sizes that can vary; those that must be equal together."""
        groups: list[_Group] = []
        taken: set[Slot] = set()
        for slot in original:
            if slot in taken:
                continue
            for slots in _list_partners(template, original, slot):
                if taken.isdisjoint(slots) and self._varies(template, original, slots):
                    group = self._with_vectors(template, original, self._find_pool(template, original, slots))
                    if not _names_dimension(template, slot, group.pool):
                        groups.append(group)
                    taken.update(group.slots)
                    break
        found = {slot for group in groups for slot in group.slots}
        bound = [slot for slot in original if slot.dim < 0 < original[slot] and slot not in found]
        return [
            *groups,
            *(_Group((slot,), _SMALL) for slot in bound if self._varies_with_all(template, original, slot)),
        ]

    def _find_pool(self, template: Template, original: Sizes, slots: tuple[Slot, ...]) -> _Group:
        sign = 1 if original[slots[0]] > 0 else -1
        sizes = (sign * size for size in _POOL)
        pool = (size for size in sizes if self._is_accepted(template, _with(original, slots, size)))
        return _Group(slots, tuple(pool))

    def _with_vectors(self, template: Template, original: Sizes, group: _Group) -> _Group:
        """A size that is only accepted as long as it is less than vectors of it: with these, if it grows with them.

        A kernel that does not check their sizes reads a part of them.
        """
        slot = group.slots[0]
        if len(group.slots) > 1 or slot.dim < 0 or max(group.pool, default=0) > original[slot]:
            return group
        vectors = (
            each
            for each, size in original.items()
            if size == original[slot] and _has_rank(template.leaves[each.leaf], 1)
        )
        both = self._find_pool(template, original, tuple(dict.fromkeys((slot, *vectors))))
        return both if max(both.pool, default=0) > original[slot] else group

    def _varies_with_all(self, template: Template, original: Sizes, slot: Slot) -> bool:
        """Whether an integer that other sizes bound, not the rank, varies where these are greater: a padding."""
        greater = {each: size * (4 if each.dim >= 0 else 3) for each, size in original.items()}
        numbers = dict.fromkeys((original[slot], original[slot] + 1, template.rank))
        return all(self._is_accepted(template, {**greater, slot: each}) for each in numbers)

    def _varies(self, template: Template, original: Sizes, slots: Sequence[Slot]) -> bool:
        size = original[slots[0]]
        sign = 1 if size > 0 else -1
        targets = dict.fromkeys((*(sign * each for each in _TARGETS), 2 * size, 3 * size))
        others = [each for each in targets if each != size]
        return any(self._is_accepted(template, _with(original, slots, each)) for each in others)

    def _is_accepted(self, template: Template, sizes: Sizes) -> bool:
        if spent() > self._until:
            return False
        key = template, frozenset(sizes.items())
        if key not in self._tried:
            self._tried[key] = self._try(template, sizes), self._drops_dimensions
        accepted, self._drops_dimensions = self._tried[key]
        return accepted

    def _try(self, template: Template, sizes: Sizes) -> bool:
        with suppress(Exception), _filling_memory(), torch.no_grad():  # whatever the CPU's checks raise
            margins = Margins()
            made = template.make(sizes, memory=margins.place)
            count_call(count_elements(made))
            if any(slot.dim < 0 for slot in sizes) and self._count_result(made) > _MAX_RESULT:
                return False
            result = self._run(made)
            tensors = list_tensors(result)
            self._drops_dimensions = any(1 in tensor.shape for tensor in tensors)  # such a dimension is no loop
            return margins.are_intact() and (template.has_nan or not has_nan(result))
        return False

    def _count_result(self, sample: SampleInput) -> int:
        """The elements of the results, without memory for them; none where torch cannot tell."""
        with suppress(Exception):
            without_memory = sample.transform(lambda leaf: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf)
            return sum(leaf.numel() for leaf in list_tensors(self._run(without_memory)))
        return 0

    def _draw(self, template: Template, original: Sizes, groups: Sequence[_Group]) -> Sizes | None:
        """Sizes that are all different, if the CPU accepts some."""
        for attempt in range(_TRIES):
            found = dict(original)
            used: set[int] = set()
            for group in self._random.sample(groups, len(groups)):
                free = [size for size in group.pool if size not in used] or list(group.pool)
                if group.slots[0].dim < 0:  # a window is smaller than what it moves over
                    free = free[: max(2, len(free) // 2)]
                if attempt > _TRIES // 2:  # sizes with a bound are small
                    free = free[: max(1, len(free) // 2)]
                size = self._random.choice(free) if free else original[group.slots[0]]
                used.add(size)
                found |= dict.fromkeys(group.slots, size)
            is_taken = _is_small(found) and self._is_accepted(template, found)
            if is_taken and (not self._drops_dimensions or attempt > _TRIES // 2):
                return found
        return None

    def _vary(self, template: Template, base: Sizes, group: _Group) -> Sizes | None:
        """The same sizes but for one group."""
        others = {size for slot, size in base.items() if slot not in group.slots}
        pool = [size for size in group.pool if size not in others and size != base[group.slots[0]]]
        for size in self._random.sample(pool, len(pool)):
            found = _with(base, group.slots, size)
            if self._is_accepted(template, found):
                return found
        return None


@contextmanager
def _filling_memory() -> Iterator[None]:
    """Within a block, new memory on the CPU holds NaN, as what lies beyond an operand does, and nothing warns.

    Some kernels write nothing for a number that they do not know, such as the fourth way to interpolate. Whether the
    result then had NaN was chance, and with it the calls that are recorded. ATen fills memory in deterministic mode,
    which Python's function switches on only after it has imported all of inductor.
    """
    mode, warns = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    fills = torch._C._get_deterministic_fill_uninitialized_memory()
    torch._C._set_deterministic_algorithms(True, warn_only=True)
    torch._C._set_deterministic_fill_uninitialized_memory(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch._C._set_deterministic_algorithms(mode, warn_only=warns)
        torch._C._set_deterministic_fill_uninitialized_memory(fills)


def _has_rank(leaf: Any, rank: int) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.ndim == rank


def _with(sizes: Sizes, slots: Sequence[Slot], size: int) -> dict[Slot, int]:
    return {**sizes, **dict.fromkeys(slots, size)}


def _is_small(sizes: Sizes, most: int = _MAX_ELEMENTS) -> bool:
    counts: dict[int, int] = {}
    for slot, size in sizes.items():
        if slot.dim >= 0:
            counts[slot.leaf] = counts.get(slot.leaf, 1) * size
    return max(counts.values(), default=0) <= most


def _names_dimension(template: Template, slot: Slot, pool: Sequence[int]) -> bool:
    """Whether an integer is rather a dimension than a size: none as great as the rank is accepted."""
    return slot.dim < 0 and max((each if each > 0 else -1 - each for each in pool), default=0) < template.rank


def _list_partners(template: Template, sizes: Sizes, slot: Slot) -> Iterator[tuple[Slot, ...]]:
    """The slots that may have to equal this one, the fewest first: alone, at the same dimension, of equal size."""
    alike = [each for each, size in sizes.items() if size == sizes[slot]]
    found: dict[tuple[Slot, ...], None] = {(slot,): None}
    if slot.dim >= 0:
        shape = template.leaves[slot.leaf].shape
        dims = [each for each in alike if each.dim >= 0]
        at_dim = [each for each in dims if each.dim == slot.dim]
        found[tuple(each for each in at_dim if template.leaves[each.leaf].shape == shape)] = None
        found[tuple(each for each in dims if _from_back(template, each) == _from_back(template, slot))] = None
        found[tuple(at_dim)] = None
    found |= {tuple(sorted((slot, each))): None for each in alike if each != slot}
    if slot.dim >= 0:
        less = (each for each in dims if template.leaves[each.leaf].ndim < template.leaves[slot.leaf].ndim)
        found[tuple(sorted((slot, *less)))] = None  # one dimension, that others have a vector for
        found[tuple(dims)] = None
    found[tuple(alike)] = None
    yield from found


def _from_back(template: Template, slot: Slot) -> int:
    return slot.dim - len(template.leaves[slot.leaf].shape)
