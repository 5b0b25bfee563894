"""Finds which linear algebra an operator is: products, convolutions, transforms or inverses that all calls return."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, permutations, product
from typing import Any

import torch
from torch.nn.functional import pad

from porter.metal.forms.contraction import Attention, Contraction, Inverse, LinearGradients, Operands
from porter.metal.forms.convolution import Convolution, Convolved, Fourier
from porter.metal.forms.recurrent import GATES, Recurrent, RecurrentGradients
from porter.recording.calls import OpCall
from porter.recording.forms.agreement import (
    Results,
    count_elements,
    find_only,
    is_near_in_scale,
    read_types,
    tell_form,
    widen,
)
from porter.recording.runs import RecordedRun

_ROLES = 3  # tensors of a linear layer, and of attention
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
    return find_only(candidates, runs, _contracts)


def _name_by_type(call: OpCall) -> dict[str, list[str]]:
    """The names of the arguments of a schema, by their types."""
    names = defaultdict[str, list[str]](list)
    for name, type_ in read_types(call).items():
        names[type_].append(name)
    return names


def _is_computed(compute: Callable[[], Sequence[torch.Tensor]], results: Results) -> bool:
    """Whether results are computed: nothing is of sizes and numbers that do not go with each other."""
    try:
        computed = compute()
    except (RuntimeError, IndexError):
        return False
    return all(map(is_near_in_scale, computed, results))


def _list_contractions(call: OpCall) -> Iterator[Contraction]:
    """The products that the arguments of a schema allow for."""
    names = _name_by_type(call)
    tensors, optional, scalars = names["Tensor"], names["Optional[Tensor]"], names["number"]
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


def _contracts(form: Contraction, run: RecordedRun, results: Results) -> bool:
    return _is_computed(lambda: (contract(form, run.given, run.call.arguments),), results)


def find_linear_gradients(runs: Sequence[RecordedRun]) -> LinearGradients | None:
    """The linear layer whose gradients all calls return, as far as they ask for them."""
    if not tell_form(runs, (1, 2, 3)):
        return None
    names = _name_by_type(runs[0].call)
    tensors, masks = names.pop("Tensor", []), names.pop("List[bool]", [])
    if len(tensors) != _ROLES or len(masks) != 1 or names:
        return None
    candidates = (LinearGradients(*names) for names in permutations(tensors, 3))
    return find_only(candidates, runs, partial(_computes_gradients, mask=masks[0]))


def _computes_gradients(form: LinearGradients, run: RecordedRun, results: Results, mask: str) -> bool:
    asked = {place: result for place, result in zip(run.made, results, strict=True) if run.call.arguments[mask][place]}

    def compute() -> list[torch.Tensor]:
        computed = list_gradients(form, run.given)
        return [computed[place] for place in asked]

    return _is_computed(compute, tuple(asked.values()))


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


# Finds whether an operator is attention: whether that computes what all recorded calls return.


_FLAGS = 2


def find_attention(runs: Sequence[RecordedRun]) -> Attention | None:
    """The attention that computes both results of every call; None if none does, or several do, or for few calls."""
    return find_only(_list_attentions(runs[0].call), runs, _attends) if tell_form(runs, (2,)) else None


def _list_attentions(call: OpCall) -> Iterator[Attention]:
    """The roles that the arguments of a schema allow for."""
    names = _name_by_type(call)
    tensors, scales, flags = names["Tensor"], names["Optional[float]"], names["bool"]
    if len(tensors) == _ROLES and 0 < len(flags) <= _FLAGS:
        for query, key, value in permutations(tensors):
            for mask, scale, (causal, *grouped) in product(names["Optional[Tensor]"], scales, permutations(flags)):
                yield Attention(query, key, value, mask, causal, scale, "".join(grouped))


def _attends(form: Attention, run: RecordedRun, results: Results) -> bool:
    return _is_computed(lambda: attend(form, run.given, run.call.arguments), results)


def attend(
    form: Attention, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both results, in double precision. Raises RuntimeError for sizes that do not go with each other."""
    query, key, value = (widen(tensors[name]) for name in (form.query, form.key, form.value))
    if form.grouped and arguments[form.grouped]:
        key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    scale = arguments[form.scale]
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    mask = tensors.get(form.mask)
    if mask is not None:
        is_bool = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, -torch.inf) if is_bool else scores + widen(mask)
    if arguments[form.causal]:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    hidden = (scores == -torch.inf).all(-1, keepdim=True)
    weights = scores.softmax(-1).masked_fill(hidden, 0)
    return weights @ value, weights


# Finds which convolution an operator is, or gradients of one: what all recorded calls return.


_ASKED = 6  # calls of few elements, none of which a wrong way computes


def find_convolution(runs: Sequence[RecordedRun]) -> Convolution | None:
    """The convolution that computes every result of all calls; None if none does, or several do, or for few calls."""
    if not tell_form(runs, (1, 2)):
        return None
    count = max(place for run in runs for place in run.made) + 1
    smallest = sorted(runs, key=count_elements)[:_ASKED]
    fitting = (
        form
        for form in _list_convolutions(runs[0].call, count)
        if any(_convolves(form, run, tuple(result.detach().cpu() for result in run.results)) for run in smallest)
    )
    return find_only(fitting, runs, _convolves)


def _list_convolutions(call: OpCall, count: int) -> Iterator[Convolution]:
    """The convolutions that the arguments of a schema allow for: a tensor that a gradient is of has its shape."""
    names = _name_by_type(call)
    if not set(Convolution.numbers).issubset(chain.from_iterable(names.values())):
        return
    tensors, bias = names["Tensor"], "".join(names["Optional[Tensor]"])
    for results in permutations(Convolved, count):
        for roles in permutations(Convolved, len(tensors)):
            lacking = set(Convolved) - set(roles)
            if lacking.issubset(results) and not (bias and results != (Convolved.OUTPUT,)):
                named = dict(zip(roles, tensors, strict=True))
                first, weight, output = (named.get(each, "") for each in Convolved)
                yield Convolution(first, weight, output, results, bias)


def _convolves(form: Convolution, run: RecordedRun, results: Results) -> bool:
    if not run.made.keys() <= set(range(len(form.results))):
        return False

    def compute() -> list[torch.Tensor]:
        pairs = zip(run.made, results, strict=True)
        arguments = run.call.arguments
        return [convolve(form, form.results[place], run.given, arguments, result.shape) for place, result in pairs]

    return _is_computed(compute, results)


def convolve(
    form: Convolution,
    computed: Convolved,
    tensors: Mapping[str, torch.Tensor],
    arguments: Mapping[str, Any],
    shape: Sequence[int],
) -> torch.Tensor:
    """What is computed, in double precision. Raises RuntimeError for sizes that do not go with each other.

    An output may have fewer elements than all windows: a transposed convolution leaves some of its input over.
    """
    names = {Convolved.INPUT: form.input, Convolved.WEIGHT: form.weight, Convolved.OUTPUT: form.output}
    operands = {role: widen(tensors[name]) for role, name in names.items() if role is not computed and name}
    zeros = torch.zeros(shape, dtype=torch.float64)
    first, weight = operands.get(Convolved.INPUT, zeros), operands.get(Convolved.WEIGHT, zeros)
    bias = widen(tensors[form.bias]) if form.bias in tensors else None
    padding, stride, dilation, groups = (arguments[name] for name in form.numbers)
    no_padding = [0] * len(padding)
    output = torch.convolution(first, weight, bias, stride, padding, dilation, False, no_padding, groups)
    if computed is Convolved.OUTPUT:
        return output[tuple(map(slice, shape))]
    gradient = operands[Convolved.OUTPUT]
    missing = [whole - size for whole, size in zip(output.shape, gradient.shape, strict=True)]
    gradient = pad(gradient, tuple(chain.from_iterable((0, size) for size in reversed(missing))))
    mask = [computed is Convolved.INPUT, computed is Convolved.WEIGHT, False]
    slopes: Sequence[torch.Tensor] = torch.ops.aten.convolution_backward(
        gradient, first, weight, None, stride, padding, dilation, False, no_padding, groups, mask
    )  # fmt: skip
    return slopes[0] if computed is Convolved.INPUT else slopes[1]


# Finds which Fourier transform an operator is: the one that all recorded calls return.


_MODES = ("backward", "ortho", "forward")  # of torch.fft's forward transforms, by ATen's normalizations


def find_fourier(runs: Sequence[RecordedRun]) -> Fourier | None:
    """The transform that computes the result of every call; None if none does, or several do, or for few calls."""
    if not tell_form(runs):
        return None
    candidates = _list_transforms(runs[0].call)
    asked = ((form, [run for run in runs if _has_sizes(form, run)]) for form in candidates)
    fitting = [form for candidate, fit in asked if (form := find_only((candidate,), fit, _transforms))]
    return fitting[0] if len(fitting) == 1 else None


def _has_sizes(form: Fourier, run: RecordedRun) -> bool:
    """Whether the source has half of a spectrum, if that is asked for: of others the CPU computes anything."""
    dims = run.call.arguments[form.dims]
    halves = run.call.arguments[form.size] // 2 + 1 if form.size else 0
    return not form.size or (bool(dims) and run.given[form.source].shape[dims[-1]] == halves)


def _list_transforms(call: OpCall) -> Iterator[Fourier]:
    """The transforms that the arguments of a schema allow for."""
    names = _name_by_type(call)
    sources, lists, numbers, flags = (names.pop(each, []) for each in ("Tensor", "List[int]", "int", "bool"))
    if (len(sources), len(lists)) != (1, 1) or names:
        return
    if len(numbers) == len(flags) == 1:
        yield Fourier(sources[0], lists[0], numbers[0], forward=flags[0])
        yield Fourier(sources[0], lists[0], numbers[0], one_sided=flags[0])
    elif len(numbers) == 2 and not flags:
        yield from (Fourier(sources[0], lists[0], first, size=second) for first, second in permutations(numbers))


def _transforms(form: Fourier, run: RecordedRun, results: Results) -> bool:
    return _is_computed(lambda: (transform(form, run.given[form.source], run.call.arguments),), results)


def transform(form: Fourier, source: torch.Tensor, arguments: Mapping[str, Any]) -> torch.Tensor:
    """The result in double precision. Raises RuntimeError or IndexError for numbers that do not go with the sizes."""
    dims, mode, wide = arguments[form.dims], _MODES[arguments[form.normalization]], widen(source)
    inverse = {"backward": "forward", "forward": "backward"}.get(mode, mode)  # scaled the other way around
    result: torch.Tensor
    if source.is_complex() is bool(form.one_sided):
        raise RuntimeError("numbers of another kind")
    if not dims:
        result = wide
    elif form.size:
        sizes = [*(source.shape[dim] for dim in dims[:-1]), arguments[form.size]]
        result = torch.fft.irfftn(wide, s=sizes, dim=dims, norm=inverse)
    elif form.one_sided and arguments[form.one_sided]:
        result = torch.fft.rfftn(wide, dim=dims, norm=mode)
    elif form.one_sided or arguments[form.forward]:
        result = torch.fft.fftn(wide, dim=dims, norm=mode)
    else:
        result = torch.fft.ifftn(wide, dim=dims, norm=inverse)
    return result


# Finds whether an operator inverts matrices: whether inverses are what all recorded calls return.


def find_inverse(runs: Sequence[RecordedRun]) -> Inverse | None:
    """The inverse that is the first result of every call; None if it is of none, or for few calls."""
    return find_only(_list_inverses(runs[0].call), runs, _inverts) if tell_form(runs, (2,)) else None


def _list_inverses(call: OpCall) -> Iterator[Inverse]:
    """The only matrix, and the only flag, that a schema has."""
    names = _name_by_type(call)
    matrices, flags = names.pop("Tensor", []), names.pop("bool", [])
    if len(matrices) == 1 and len(flags) <= 1 and not names:
        yield Inverse(matrices[0], "".join(flags))


def _inverts(form: Inverse, run: RecordedRun, results: Results) -> bool:
    """Whether results are the inverses in the matrix's own type and the pivots that ATen reports.

    Errors of an inverse have no bound that is known before, so double precision would not do as a reference.
    """
    matrix = run.given[form.matrix]
    is_square = matrix.dim() > 1 and matrix.shape[-1] == matrix.shape[-2] and matrix.is_floating_point()
    if not is_square or results[0].shape != matrix.shape:
        return False
    inverse, info = torch.linalg.inv_ex(matrix)
    return is_near_in_scale(inverse, results[0]) and torch.equal(info, results[1])


_RESULTS = 6
_MOST_PARAMS = 100
_NOT_MADE = 5  # the inputs of layers but the first, where there is one


def find_recurrent(runs: Sequence[RecordedRun]) -> Recurrent | None:
    """The layers whose results all calls return."""
    form = Recurrent()
    names = (form.input, form.starts, form.params, *form.flags)
    if not tell_form(runs, (_RESULTS,)) or tuple(read_types(runs[0].call)) != names:
        return None
    return find_only((form,), runs, _is_recurrent)


def find_recurrent_gradients(runs: Sequence[RecordedRun]) -> RecurrentGradients | None:
    """The layers whose gradients all calls return."""
    form = RecurrentGradients()
    names = form.operands
    if not tell_form(runs, range(1, _MOST_PARAMS)) or tuple(read_types(runs[0].call)) != names:
        return None
    return find_only((form,), runs, _computes_layers)


def _is_recurrent(form: Recurrent, run: RecordedRun, results: Results) -> bool:
    """Whether results are those of the layers; of one layer alone, nothing is in the last one."""
    try:
        computed = run_layers(form, run.given, run.call.arguments)
    except (RuntimeError, IndexError):  # sizes that do not go with each other
        return False
    count = _NOT_MADE if run.call.arguments[form.flags[1]] == 1 else _RESULTS
    return all(map(is_near_in_scale, computed[:count], results))


def _computes_layers(form: RecurrentGradients, run: RecordedRun, results: Results) -> bool:
    try:
        computed = differentiate_layers(form, run.given, run.call.arguments)
    except (RuntimeError, IndexError):
        return False
    return len(computed) == len(results) and all(map(is_near_in_scale, computed, results))


def _list_tensors(name: str, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]) -> list[torch.Tensor]:
    return [widen(tensors[f"{name}[{i}]"]) for i in range(len(arguments[name]))]


def run_layers(
    form: Recurrent, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]
) -> tuple[torch.Tensor, ...]:
    """All results, in double precision. Raises RuntimeError or IndexError for sizes that do not go with each other."""
    starts, params = (_list_tensors(name, tensors, arguments) for name in (form.starts, form.params))
    return _run(widen(tensors[form.input]), starts, params, [arguments[each] for each in form.flags])


def _run(
    sequence: torch.Tensor, starts: Sequence[torch.Tensor], params: Sequence[torch.Tensor], flags: Sequence[Any]
) -> tuple[torch.Tensor, ...]:
    has_biases, layers, _, _, bidirectional, batch_first = flags
    directions, parts = 2 if bidirectional else 1, GATES if has_biases else 2
    sequence = sequence.transpose(0, 1) if batch_first else sequence
    last_states, last_cells, all_gates, all_cells, inputs = ([] for _ in range(5))
    for layer in range(layers):
        inputs.append(sequence)
        by_direction = []
        for place in range(layer * directions, (layer + 1) * directions):
            parameters, is_reversed = params[place * parts : (place + 1) * parts], place % 2 and bidirectional
            state, cell, steps = starts[0][place], starts[1][place], []
            for x in sequence.flip(0) if is_reversed else sequence:
                gates = x @ parameters[0].mT + state @ parameters[1].mT + sum(parameters[2:])
                entering, staying, new, leaving = gates.chunk(GATES, -1)
                cell = staying.sigmoid() * cell + entering.sigmoid() * new.tanh()
                state = leaving.sigmoid() * cell.tanh()
                steps.append((state, cell, gates))
            last_states.append(state)
            last_cells.append(cell)
            whole = (torch.stack(list(each)) for each in zip(*steps, strict=True))
            by_direction.append([each.flip(0) if is_reversed else each for each in whole])
        sequence, cells, gates = (torch.cat(list(each), -1) for each in zip(*by_direction, strict=True))
        all_gates.append(gates)
        all_cells.append(cells)
    kept = torch.stack(inputs[1:]) if layers > 1 else torch.empty(0)
    output = sequence.transpose(0, 1) if batch_first else sequence
    return output, *map(torch.stack, (last_states, last_cells, all_gates, all_cells)), kept


def differentiate_layers(
    form: RecurrentGradients, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]
) -> tuple[torch.Tensor, ...]:
    """All gradients, in double precision, of the input, the starts and each parameter."""
    starts, params = (_list_tensors(name, tensors, arguments) for name in (form.starts, form.params))
    leaves = [each.clone().requires_grad_() for each in (widen(tensors[form.input]), *starts, *params)]
    with torch.enable_grad():
        results = _run(leaves[0], leaves[1:3], leaves[3:], [arguments[each] for each in form.flags])
        asked = zip(results, (form.output, form.states, form.cells), strict=False)
        total = sum((result * widen(tensors[name])).sum() for result, name in asked if name in tensors)
    if not isinstance(total, torch.Tensor):  # a call that gives no gradient
        return tuple(map(torch.zeros_like, leaves))
    return torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
