"""What every MPSGraph operation means, in torch: of `meta` tensors its result's shape and type, of others its value.

Where the shape depends on values, the result of `meta` tensors is a `types.Unknown`.

A family of operations has a module; each meaning is registered under the operation's selector, without `name:`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from porter.core.errors import PorterError

if TYPE_CHECKING:
    from torch import Tensor

Meaning = Callable[..., Any]
T = TypeVar("T")
_FAMILIES = (
    "arithmetic", "convolutions", "fourier", "indexing", "losses", "networks", "pooling", "random_numbers", "recurrent",
    "reductions", "resizing", "shapes",
)  # fmt: skip
_TABLE: dict[str, Meaning] = {}
_MOVES: set[str] = set()


def means(*selectors: str, moves: bool = False) -> Callable[[Meaning], Meaning]:
    """Registers a function as the meaning of these selectors; `moves` where it only moves its first operand's elements.

    Of a move the result's type is known where its shape is not.
    """

    def register(function: Meaning) -> Meaning:
        for selector in selectors:
            assert selector not in _TABLE, selector
            _TABLE[selector] = function
        _MOVES.update(selectors if moves else ())
        return function

    return register


def find(selector: str) -> Meaning:
    """The meaning of an operation. Raises PTR131 for one that has none."""
    _load()
    if selector not in _TABLE:
        raise not_known(f"MPSGraph's `{selector}`", nearest(selector))
    return _TABLE[selector]


def nearest(selector: str) -> str:
    """The end of a message about a selector that has no meaning."""
    _load()
    near = difflib.get_close_matches(selector, _TABLE, n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""


def moves(selector: str) -> bool:
    """Whether an operation only moves the elements of its first operand."""
    _load()
    return selector in _MOVES


def known() -> tuple[str, ...]:
    """Every selector that has a meaning, sorted."""
    _load()
    return tuple(sorted(_TABLE))


def not_known(what: str, near: str = "") -> PorterError:
    """For an operation, or a form of one, that has no meaning here."""
    return PorterError("PTR131", f"{what} is not supported{near}", hint="Report it with the operator.")


def gradient_at(function: Callable[[Tensor], Tensor], source: Tensor, incoming: Tensor) -> Tensor:
    """The gradient of a function at a point, by autograd."""
    import torch

    if source.device.type == "meta" or incoming.device.type == "meta":
        return torch.empty_like(source, device="meta")

    def gradient() -> Tensor:
        at = source.detach().clone().requires_grad_()
        return torch.autograd.grad(function(at), at, incoming.to(source.dtype))[0]

    return with_autograd(gradient)


def with_autograd(compute: Callable[[], T]) -> T:
    """What `compute` gives in a thread of its own: graphs run below autograd, which records nothing there."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(compute).result()


def _load() -> None:
    for family in _FAMILIES:
        import_module(f"aten_overlay.apple.mpsgraph.{family}")
