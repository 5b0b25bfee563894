"""The OpInfos of one run: those of the operators under test, as the fork's lists leave them, and their samples."""

# mypy: disable-error-code="no-untyped-call, assignment"

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch.testing._internal.common_device_type import ops
from torch.testing._internal.common_utils import TrackedInputIter, set_rng_seed
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, SampleInput, UnaryUfuncInfo
from torch.utils._python_dispatch import TorchDispatchMode

from porter.core.dtypes import TESTED, name_torch
from porter.verdict.suite import lists, samples, tolerances
from porter.verdict.suite.arguments import Varied
from porter.verdict.suite.backward import run_backward
from porter.verdict.suite.context import Context, base_name, get_context
from porter.verdict.suite.distributions import find_cases
from porter.verdict.suite.leaves import compute, list_operands, list_tensors
from porter.verdict.suite.made_opinfos import is_made, list_opinfos
from porter.verdict.suite.runner import matcher

MPS_DTYPES: tuple[torch.dtype, ...] = tuple(getattr(torch, dtype.torch) for dtype in TESTED)
LAYOUT_SAMPLES = 3
KINDS = 5
SPREAD = 6
_ERRORS = "mps_ops_error_inputs_modifier"
# The tests of a fork whose samples these are, by whether they have gradients: torch seeds samples with a test's name.
_UPSTREAMS = {
    False: SimpleNamespace(__qualname__="TestConsistency.test_output_match"),
    True: SimpleNamespace(__qualname__="TestConsistency.test_output_grad_match"),
}
_T = TypeVar("_T")
_Test = TypeVar("_Test", bound=Callable[..., None])


class OpInfos:
    """The OpInfos that a context tests, with the types, lists and tolerances of its fork.

    Raises PTR163 when the fork's test lists do not run.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        # Upstream leaves complex32 out, but here may be a port that has it.
        self.dtypes = [*MPS_DTYPES, *([torch.complex32] if "complex32" in context.dtypes else [])]
        kinds = lists.grad_dtypes(context.precision if context.as_is else "")
        self.grad_dtypes = [getattr(torch, kind) for kind in kinds]
        self.low_precision = lists.low_precision(context.precision)
        self.tolerances = tolerances.tolerances(context.precision)
        self._seeds_each = tolerances.seeds_each_sample(context.precision)
        self._modifiers = lists.modifiers(context.lists_file, context.lists)
        self._made: dict[tuple[str, torch.dtype, bool], list[SampleInput]] = {}
        self._reaching: dict[tuple[str, torch.dtype, bool], list[int]] = {}

    def select(self, modifier: str, besides: Sequence[str] = ()) -> list[OpInfo]:
        """The OpInfos of this run, and those of these full names, as one of the fork's modifiers leaves them.

        Those that fill with random numbers, and all where such an operator is tested, are left out: nothing that they
        compute is what the CPU computes, and fills have tests of their own. Their error inputs stay.
        """
        names = {*self.context.through, *besides}
        chosen = iter(list_opinfos(self.context.bases, names, self.context.through_backward))
        if modifier != _ERRORS:
            fills = any(any(find_cases(base)) for base in self.context.bases)
            chosen = (op for op in chosen if not fills and not any(find_cases(op.name)))
        found = [make_comparable(op) for op in chosen]
        return list(self._modifiers[modifier](found))

    def select_structured(self, modifier: str, besides: Sequence[str] = ()) -> list[OpInfo]:
        """Those of `select` that are not pointwise."""
        return [each for each in self.select(modifier, besides) if not is_pointwise(each)]

    def plans(self, dtype: torch.dtype) -> bool:
        """Whether a kernel is planned for this type."""
        return name_torch(dtype) in self.context.dtypes

    def computes(self, one: torch.dtype, other: torch.dtype) -> bool:
        """Whether a kernel computes in the type that these two are promoted to."""
        return not self.context.dtypes or name_torch(torch.promote_types(one, other)) in self.context.dtypes

    def samples(self, op: OpInfo, dtype: torch.dtype, requires_grad: bool = False) -> list[SampleInput]:
        """The OpInfo's samples, in memory of their own: making them takes longer than most tests.

        They are those of the fork's own test, which begins with torch's seed. Others have seeds of their own: those of
        gradients, which the fork's test draws between its samples, and those of an OpInfo that the fork has not.
        Whatever test asks first, they are the same: one that fails has to meet them on the fork before the port.
        """
        key = (op.formatted_name, dtype, requires_grad)
        if key not in self._made:
            seeds_each = self._seeds_each or requires_grad or is_made(op)
            if not seeds_each:
                set_rng_seed()
            made = op.sample_inputs("cpu", dtype, requires_grad=requires_grad, set_seed=seeds_each)
            if isinstance(made, TrackedInputIter):
                made.test_fn = _UPSTREAMS[requires_grad]
            self._made[key] = samples.keep_on_cpu(op, made)
        return [samples.copy_sample(sample) for sample in self._made[key]]

    def reaching_samples(self, op: OpInfo, dtype: torch.dtype, requires_grad: bool = False) -> list[SampleInput]:
        """Those of `samples` that end in a call of an operator under test, where no OpInfo is named for one; if none
        does, all.

        The OpInfo of nll_loss has calls of nll_loss2d_forward, that of a pad one for each number of dimensions.
        """
        made = self.samples(op, dtype, requires_grad)
        if op.full_name not in (*self.context.through, *self.context.through_backward):
            return made
        key = (op.formatted_name, dtype, requires_grad)
        if key not in self._reaching:
            calls = [self._calls_tested(op, samples.copy_sample(sample), requires_grad) for sample in made]
            self._reaching[key] = [at for at, reaches in enumerate(calls) if reaches] or list(range(len(made)))
        return [made[at] for at in self._reaching[key]]

    def pick_samples(self, op: OpInfo, dtype: torch.dtype, requires_grad: bool = False) -> list[SampleInput]:
        """A few samples with a tensor input, or a list of tensors, with dimensions where there are any; operands of one
        shape come first.
        """
        found = [s for s in self.reaching_samples(op, dtype, requires_grad) if _list_inputs(s)]
        large = [s for s in found if all(t.ndim > 1 and t.numel() for t in _list_inputs(s))] or found
        return sorted(large, key=lambda s: len({t.shape for t in operands(s)}))[:LAYOUT_SAMPLES]

    def pick_laid_out(self, op: OpInfo, dtype: torch.dtype) -> list[SampleInput]:
        """Those of `pick_samples`, and one with the most tensors if none of these has as many: one that may be left
        out, as a weight, is read by strides of its own.
        """
        picked = self.pick_samples(op, dtype)
        with_inputs = (sample for sample in self.reaching_samples(op, dtype) if _list_inputs(sample))
        fullest = max([*picked, *with_inputs], key=lambda sample: len(list_operands(sample)), default=None)
        return picked if fullest is None or any(fullest is sample for sample in picked) else [*picked, fullest]

    def put_after_given(self, op: OpInfo, dtype: torch.dtype, varied: Iterable[Varied]) -> Iterator[Varied]:
        """Some that are varied, if there are any, after a few as they are: for some of the former no kernel may run, or
        another one.
        """
        rest = iter(varied)
        for first in rest:
            yield from (("as it is", sample) for sample in self.pick_samples(op, dtype))
            yield first
            yield from rest

    def _calls_tested(self, op: OpInfo, sample: SampleInput, slopes: bool) -> bool:
        """Whether the CPU calls an operator under test for a sample, or for its gradients."""
        with Called() as called, suppress(Exception):
            results = compute(op, sample)
            if slopes:
                run_backward([each for each in list_tensors(results) if each.requires_grad])
        return not called.names.isdisjoint(self.context.bases)

    def pick_kinds(self, op: OpInfo, dtype: torch.dtype) -> list[SampleInput]:
        """The first sample of `pick_samples` for each kind of arguments: tensors, numbers, None, a string, a flag."""
        found: dict[object, SampleInput] = {}
        for sample in (*self.pick_samples(op, dtype), *self.samples(op, dtype)):
            if isinstance(sample.input, torch.Tensor):
                named = tuple((name, _kind(value)) for name, value in sorted(sample.kwargs.items()))
                found.setdefault((tuple(map(_kind, sample.args)), named), sample)
        return list(found.values())[:KINDS]


class Called(TorchDispatchMode):
    """The ATen base names of the operators that are called, and of the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.last = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.last = base_name(func._schema.name)
        self.names.add(self.last)
        return func(*args, **(kwargs or {}))


class Draws(TorchDispatchMode):
    """Whether the CPU draws random numbers for a call, as dropout does: no device draws the same ones.

    The generator's state after the call says nothing: OpInfos of such operators put it back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.drawn = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **(kwargs or {}))
        before = torch.random.get_rng_state()
        result = func(*args, **(kwargs or {}))
        self.drawn |= not torch.equal(before, torch.random.get_rng_state())
        return result


@contextmanager
def watching(op: Callable[..., Any], context: Context) -> Iterator[Draws]:
    """Whether a call of an OpInfo draws; of one that calls operators under test among others, which may be random."""
    draws, name = Draws(), getattr(op, "full_name", "")
    with draws if name in context.through or name in context.through_backward else nullcontext():
        yield draws


@lru_cache(maxsize=1)
def opinfos(context: Context) -> OpInfos:
    """The OpInfos of a context, made once for the modules that test it."""
    return OpInfos(context)


def make_comparable(op: OpInfo) -> OpInfo:
    """A copy whose mps dtypes are those that the CPU has too: there is nothing to compare the others with."""
    op = copy.deepcopy(op)
    op.dtypesIf["mps"] = set(op.supported_dtypes("mps")) & set(op.supported_dtypes("cpu"))
    op.backward_dtypesIfMPS = set(op.backward_dtypesIfMPS) & set(op.supported_dtypes("cpu"))
    return op


def is_pointwise(op: OpInfo) -> bool:
    """Whether every functional row of the ATen operator is tagged pointwise: gelu.out, which is made of one, is not."""
    if isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo)):
        return True
    packet = getattr(torch.ops.aten, op.aten_name, None)
    rows = [getattr(packet, name) for name in packet.overloads()] if packet else []
    functional = [row for row in rows if not row._schema.is_mutable]
    return bool(functional) and all(torch.Tag.pointwise in row.tags for row in functional)


class parametrize_over(ops):
    """`ops`, for a run whose operators may all be of another kind: then there is no test.

    Nor is there one that the run does not select, of which `applies` is not asked: to answer it makes samples. Nor for
    an operator and a type that `applies` says no to; where an OpInfo raises an error as it is asked, the test is to
    tell.
    """

    def __init__(
        self, op_list: Sequence[OpInfo], applies: Callable[[OpInfo, torch.dtype], bool] | None = None, **given: Any
    ) -> None:
        super().__init__(op_list, **given)
        self.applies = applies

    def __call__(self, test: _Test) -> _Test:
        """The test, of which there is one for each operator and type then."""
        marked: _Test = super().__call__(test)
        return marked

    def _parametrize_test(self, test: Any, generic_cls: Any, device_cls: Any) -> Iterator[Any]:
        is_selected = matcher(get_context().expression)
        for each in super()._parametrize_test(test, generic_cls, device_cls) if self.op_list else ():
            op, dtype = each[2]["op"], each[2].get("dtype")  # error inputs are of no type
            name = f"{test.__name__}_{op.formatted_name}_{device_cls.device_type}"
            if not is_selected(f"{device_cls.__name__}.{name}{f'_{name_torch(dtype)}' if dtype else ''}"):
                continue
            if self.applies is None or _holds(self.applies, op, dtype):
                yield each


def _holds(applies: Callable[[OpInfo, torch.dtype], bool], op: OpInfo, dtype: torch.dtype) -> bool:
    try:
        return applies(op, dtype)
    except Exception:  # of any kind: the OpInfo is the fork's
        return True


def take_spread(found: Sequence[_T]) -> Sequence[_T]:
    """A few, spread over all."""
    return found[:: len(found) // SPREAD + 1]


def _list_inputs(sample: SampleInput) -> list[torch.Tensor]:
    """The input, or its tensors if it is a list of nothing else."""
    several = list(sample.input) if isinstance(sample.input, (list, tuple)) else [sample.input]
    return several if all(isinstance(each, torch.Tensor) for each in several) else []


def operands(sample: SampleInput) -> list[torch.Tensor]:
    return list_tensors((sample.input, sample.args))


def _kind(value: object) -> object:
    return value if isinstance(value, (str, bool)) else type(value)
