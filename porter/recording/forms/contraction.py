"""Finds which matrix product an operator is: the one that computes what all recorded calls return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations, product
from typing import Any

import torch

from porter.metal.forms.contraction import Contraction, Operands
from porter.metal.forms.linear_gradients import LinearGradients
from porter.recording.calls import OpCall
from porter.recording.forms.agreement import Results, find_only, is_near_in_scale, read_types, tell_form, widen
from porter.recording.runs import RecordedRun

_ROLES = 3  # tensors of a linear layer
_SCALARS = 2  # the factors of what is added, and of the product
_FOUND = [operands for operands in Operands if operands is not Operands.FLAT]
_RANKS = {
    Operands.MATRICES: ((2,), (2,), (2,)), Operands.BATCHES: ((3,), (3,), (3,)), Operands.SUMMED: ((3,), (3,), (2,)),
    Operands.VECTOR: ((2,), (1,), (1,)),
}  # fmt: skip


def find_contraction(runs: Sequence[RecordedRun]) -> Contraction | None:
    """The product that computes the result of every call; None if none does, or several do, or for few calls."""
    if not tell_form(runs):
        return None
    candidates = (each for each in _list_contractions(runs[0].call) if _has_ranks(each, runs))
    return find_only(candidates, runs, _computes)


def _list_contractions(call: OpCall) -> Iterator[Contraction]:
    """The products that the arguments of a schema allow for."""
    types = read_types(call)
    tensors = [name for name, type_ in types.items() if type_ == "Tensor"]
    optional = [name for name, type_ in types.items() if type_ == "Optional[Tensor]"]
    scalars = [name for name, type_ in types.items() if type_ == "number"]
    if len(tensors) + len(optional) not in (2, 3) or len(scalars) not in (0, _SCALARS):
        return
    for first, second in permutations(tensors, 2):
        [*added] = (name for name in (*tensors, *optional) if name not in (first, second))
        for operands, is_left, is_right in product(_FOUND, (False, True), (False, True)):
            for beta, alpha in permutations(scalars, 2) if scalars else [("", "")]:
                yield Contraction(operands, first, second, is_left, is_right, "".join(added), beta, alpha)


def _has_ranks(form: Contraction, runs: Sequence[RecordedRun]) -> bool:
    """Whether operands have as many dimensions as the form says; of rows, some calls have more than of matrices."""
    operands = (form.left_operand, form.right_operand)
    ranks = [(*(run.given[name].ndim for name in operands), run.results[0].ndim) for run in runs]
    if form.operands is Operands.ROWS:
        matrices = (1, 2) if form.is_right_transposed else (2,)
        has_rows = any(first > 2 for first, _, _ in ranks) and all(first for first, _, _ in ranks)
        has_matrices = all(second in matrices for _, second, _ in ranks)
        return has_rows and has_matrices and not form.is_left_transposed
    if form.operands is Operands.VECTOR and form.is_right_transposed:
        return False
    allowed = _RANKS[form.operands]
    return all(rank in some for shape in ranks for rank, some in zip(shape, allowed, strict=True))


def _computes(form: Contraction, run: RecordedRun, results: Results) -> bool:
    [result] = results
    try:
        computed = contract(form, run.given, run.call.arguments)
    except (RuntimeError, IndexError):  # sizes that do not go with each other
        return False
    return is_near_in_scale(computed, result)


def find_linear_gradients(runs: Sequence[RecordedRun]) -> LinearGradients | None:
    """The linear layer whose gradients all calls return, as far as they ask for them."""
    if not tell_form(runs, (1, 2, 3)):
        return None
    types = read_types(runs[0].call)
    tensors = [name for name, type_ in types.items() if type_ == "Tensor"]
    masks = [name for name, type_ in types.items() if type_ == "List[bool]"]
    if len(tensors) != _ROLES or len(masks) != 1 or len(types) != _ROLES + 1:
        return None
    candidates = (LinearGradients(*names) for names in permutations(tensors, 3))
    return find_only(candidates, runs, partial(_computes_gradients, mask=masks[0]))


def _computes_gradients(form: LinearGradients, run: RecordedRun, results: Results, mask: str) -> bool:
    asked = run.call.arguments[mask]
    try:
        computed = list_gradients(form, run.given)
    except (RuntimeError, IndexError):  # sizes that do not go with each other
        return False
    places = zip(run.made, results, strict=True)
    return all(is_near_in_scale(computed[place], result) for place, result in places if asked[place])


def list_gradients(form: LinearGradients, tensors: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The gradients of input, weight and bias. Raises RuntimeError for sizes that do not go with each other."""
    output, weight, rows = (widen(tensors[name]) for name in (form.output, form.weight, form.input))
    flat = output.reshape(-1, output.shape[-1])
    return torch.matmul(output, weight), flat.mT @ rows.reshape(-1, rows.shape[-1]), flat.sum(0)


def contract(form: Contraction, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, object]) -> torch.Tensor:
    """The result, in the widest type of its kind. Raises RuntimeError for sizes that do not go with each other."""
    first, second = widen(tensors[form.left_operand]), widen(tensors[form.right_operand])
    first = first.mT if form.is_left_transposed else first
    second = second.mT if form.is_right_transposed and second.ndim > 1 else second
    computed = torch.matmul(first, second)
    computed = computed.sum(0) if form.operands is Operands.SUMMED else computed
    computed = computed * _read_factor(arguments[form.alpha], computed) if form.alpha else computed
    beta, added = arguments[form.beta] if form.beta else 1, tensors.get(form.added)
    if added is None or not beta:
        return computed
    return computed + widen(added) * _read_factor(beta, computed)


def _read_factor(number: Any, product: torch.Tensor) -> complex:
    """A factor as ATen takes it: of whole numbers it has no fraction."""
    is_whole = not (product.is_floating_point() or product.is_complex())
    factor: complex = int(number) if is_whole and isinstance(number, float) else number
    return factor
