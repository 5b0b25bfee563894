"""What a vjp returns, in one form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from porter.core.errors import PorterError


def check_gradients(
    whose: str, names: Sequence[str], found: Any, primals: Sequence[object]
) -> Iterator[torch.Tensor | None]:
    """One gradient for each input, of its shape; None for what is no tensor. Raises PTR226."""
    gradients = tuple(_flatten(found))
    if len(gradients) != len(names):
        raise PorterError(
            "PTR226", f"the vjp of {whose} gives {len(gradients)} gradients",
            hint=f"Return one for each of {', '.join(names)}; None for those without.",
        )  # fmt: skip
    for name, gradient, primal in zip(names, gradients, primals, strict=True):
        if gradient is not None and not isinstance(gradient, torch.Tensor):
            raise PorterError(
                "PTR226", f"the vjp of {whose} gives `{name}` a {type(gradient).__name__} as gradient",
                hint="Return a tensor, or None.",
            )  # fmt: skip
        if gradient is None or not isinstance(primal, torch.Tensor):
            yield None
            continue
        if gradient.shape != primal.shape:
            raise PorterError(
                "PTR226", f"the vjp of {whose} gives `{name}` a gradient of shape "
                f"{tuple(gradient.shape)}, not {tuple(primal.shape)}",
                hint=f"Return a gradient of the shape of `{name}`.",
            )  # fmt: skip
        if gradient.device != primal.device:
            raise PorterError(
                "PTR226", f"the vjp of {whose} gives `{name}` a gradient on {gradient.device}, not on {primal.device}",
                hint=f"Compute it where `{name}` is: .to({name}.device).",
            )  # fmt: skip
        yield gradient


def _flatten(found: Any) -> Iterator[Any]:
    """The gradients in `found` in order: it may be one, or lists within lists, such as a kernel's outputs."""
    if isinstance(found, (list, tuple)):
        for part in found:
            yield from _flatten(part)
    else:
        yield found
