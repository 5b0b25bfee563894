"""The semantics of MPSGraph operations, in torch: given `meta` tensors, the result's shape and type, else its value.

Where the shape depends on values, the result for `meta` tensors is a `types.Unknown`.

Each family of operations has a module; an implementation is registered under its selector, without `name:`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from aten_overlay.errors import OverlayError

if TYPE_CHECKING:
    from torch import Tensor

Implementation = Callable[..., Any]
T = TypeVar("T")
_FAMILIES = (
    "arithmetic", "convolutions", "fourier", "indexing", "losses", "networks", "pooling", "random_numbers", "recurrent",
    "reductions", "resizing", "shapes",
)  # fmt: skip
_TABLE: dict[str, Implementation] = {}
_MOVES: set[str] = set()


def implements(*selectors: str, moves: bool = False) -> Callable[[Implementation], Implementation]:
    """Registers a function as the implementation of these selectors.

    `moves` says that it only moves elements of its first operand, so that the result's type is known even where its
    shape is not.
    """

    def register(function: Implementation) -> Implementation:
        for selector in selectors:
            assert selector not in _TABLE, selector
            _TABLE[selector] = function
        _MOVES.update(selectors if moves else ())
        return function

    return register


def find(selector: str) -> Implementation:
    """The implementation of an operation. Raises PTR131 where there is none."""
    _load()
    if selector not in _TABLE:
        raise unsupported(f"MPSGraph's `{selector}`", suggest(selector))
    return _TABLE[selector]


def suggest(selector: str) -> str:
    """The end of a message about a selector that is not implemented."""
    _load()
    near = difflib.get_close_matches(selector, _TABLE, n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""


def only_moves(selector: str) -> bool:
    """Whether an operation only moves the elements of its first operand."""
    _load()
    return selector in _MOVES


def list_selectors() -> tuple[str, ...]:
    """Every selector that is implemented, sorted."""
    _load()
    return tuple(sorted(_TABLE))


def unsupported(what: str, near: str = "") -> OverlayError:
    """The error for an operation, or a form of one, that is not implemented."""
    return OverlayError("PTR131", f"{what} is not supported{near}", hint="Report it with the operator.")


def compute_gradient(function: Callable[[Tensor], Tensor], source: Tensor, incoming: Tensor) -> Tensor:
    """The gradient of a function at `source`, by autograd."""
    import torch

    if source.device.type == "meta" or incoming.device.type == "meta":
        return torch.empty_like(source, device="meta")

    def gradient() -> Tensor:
        at = source.detach().clone().requires_grad_()
        return torch.autograd.grad(function(at), at, incoming.to(source.dtype))[0]

    return run_with_autograd(gradient)


def run_with_autograd(compute: Callable[[], T]) -> T:
    """Computes in a thread of its own: graphs run below autograd, which records nothing there."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(compute).result()


@cache
def _load() -> None:
    for family in _FAMILIES:
        import_module(f"aten_overlay.apple.mpsgraph.{family}")
