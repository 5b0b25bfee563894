"""Recurrent networks. Source: Apple's documentation of MPSGraph (recurrent neural network operations).

Shapes: source [T, N, I], input weight [4H, I], recurrent weight [4H, H], bias [4H], state and cell [N, H]; the gates
are input, forget, cell, output. Bidirectional: recurrent weight [2, 4H, H], and twice the features of all else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.semantics import implements, run_with_autograd, unsupported

# MPSGraphRNNActivation
_ACTIVATIONS: dict[int, Callable[[Tensor], Tensor]] = {
    0: lambda x: x,
    1: torch.relu,
    2: torch.tanh,
    3: torch.sigmoid,
    4: lambda x: torch.clamp(0.2 * x + 0.5, 0, 1),
}
_GATES = ("inputGateActivation", "forgetGateActivation", "cellGateActivation", "outputGateActivation")


def _direction(
    x: Tensor, recurrent: Tensor, weight: Tensor | None, bias: Tensor | None, h: Tensor, c: Tensor, d: Any, back: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """One direction: states, cells and what goes into the gates, at each step."""
    driven = x if weight is None else x @ weight.mT
    driven = driven if bias is None else driven + bias
    steps: list[tuple[Tensor, Tensor, Tensor]] = []
    for step in driven.flip(0) if back else driven:
        z = step + h @ recurrent.mT
        parts = (_ACTIVATIONS[getattr(d, gate)](part) for gate, part in zip(_GATES, z.chunk(4, -1), strict=True))
        entering, forgetting, new, leaving = parts
        c = forgetting * c + entering * new
        h = leaving * _ACTIVATIONS[d.activation](c)
        steps.append((h, c, z))
    states, cells, inner = (torch.stack(list(each)) for each in zip(*steps, strict=True))
    return (states.flip(0), cells.flip(0), inner.flip(0)) if back else (states, cells, inner)


def _halves(value: Tensor | None) -> tuple[Tensor | None, ...]:
    return (None, None) if value is None else tuple(value.chunk(2, -1))


def _lstm(
    x: Tensor, recurrent: Tensor, weight: Tensor | None, bias: Tensor | None, h: Tensor | None, c: Tensor | None, d: Any
) -> tuple[Tensor, Tensor, Tensor]:
    if d.forgetGateLast:
        raise unsupported("an LSTM whose forget gate is the last")
    features = recurrent.shape[-1] * (2 if d.bidirectional else 1)
    start = x.new_zeros(x.shape[1], features)
    h, c = (start if each is None else each.reshape(start.shape) for each in (h, c))
    if not d.bidirectional:
        return _direction(x, recurrent, weight, bias, h, c, d, bool(d.reverse))
    weights = (None, None) if weight is None else weight.chunk(2, 0)
    both = zip(recurrent, weights, _halves(bias), h.chunk(2, -1), c.chunk(2, -1), (False, True), strict=True)
    made = [_direction(x, r, w, b, h0, c0, d, back) for r, w, b, h0, c0, back in both]
    states, cells, inner = (torch.cat(list(each), -1) for each in zip(*made, strict=True))
    return states, cells, inner


@implements("LSTMWithSourceTensor:recurrentWeight:inputWeight:bias:initState:initCell:descriptor")
def lstm(
    x: Tensor, recurrent: Tensor, weight: Tensor | None, bias: Tensor | None, h: Tensor | None, c: Tensor | None, d: Any
) -> list[Tensor]:
    """The states; with `produceCell` the cells; in training what went into the gates."""
    states, cells, inner = _lstm(x, recurrent, weight, bias, h, c, d)
    return [states, *([cells] if d.produceCell or d.training else []), *([inner] if d.training else [])]


@implements(
    "LSTMGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:cellOutputFwd:stateGradient:cellGradient:"
    "inputWeight:bias:initState:initCell:mask:peephole:descriptor"
)
def lstm_gradients(
    x: Tensor, recurrent: Tensor, incoming: Tensor, inner: Tensor, cells: Tensor, state_gradient: Tensor | None,
    cell_gradient: Tensor | None, weight: Tensor | None, bias: Tensor | None, h: Tensor | None, c: Tensor | None,
    mask: Tensor | None, peephole: Tensor | None, d: Any,
) -> list[Tensor]:  # fmt: skip
    """Of the source, the recurrent weight, the input weight, the bias [1, 1, 4H], the first state and cell."""
    if mask is not None or peephole is not None:
        raise unsupported("an LSTM with a mask or peepholes")
    given = [x, recurrent, *(each for each in (weight, bias, h, c) if each is not None)]
    if x.device.type == "meta":
        return [_shaped(each, torch.empty_like(each), bias, h, c) for each in given]

    def gradients_of() -> tuple[Tensor, ...]:
        leaves = [each.detach().clone().requires_grad_() for each in given]
        rest = iter(leaves[2:])
        w, b, h0, c0 = (next(rest) if each is not None else None for each in (weight, bias, h, c))
        states, memory, _ = _lstm(leaves[0], leaves[1], w, b, h0, c0, d)
        outputs, gradients = [states], [incoming]
        for value, gradient in ((states, state_gradient), (memory, cell_gradient)):
            if gradient is not None:
                outputs.append(_ends(value, d))
                gradients.append(gradient.reshape(outputs[-1].shape))
        return torch.autograd.grad(outputs, leaves, gradients)

    made = run_with_autograd(gradients_of)
    return [_shaped(each, gradient, bias, h, c) for each, gradient in zip(given, made, strict=True)]


def _ends(value: Tensor, d: Any) -> Tensor:
    """What each direction ends with."""
    if not d.bidirectional:
        return value[0 if d.reverse else -1]
    forward, backward = value.chunk(2, -1)
    return torch.cat((forward[-1], backward[0]), -1)


def _shaped(of: Tensor, gradient: Tensor, bias: Tensor | None, *starts: Tensor | None) -> Tensor:
    if of is bias:
        return gradient.reshape(1, 1, -1)
    return gradient.reshape(gradient.shape[-2:]) if any(of is start for start in starts) else gradient
