"""What a vjp returns, in one form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def flatten(found: Any) -> tuple[torch.Tensor | None, ...]:
    """The gradients in `found` in order: a tensor, None, or lists of them within lists, such as a kernel's outputs."""
    return tuple(_each(found))


def _each(found: Any) -> Iterator[torch.Tensor | None]:
    if isinstance(found, (list, tuple)):
        for part in found:
            yield from _each(part)
    else:
        yield found
