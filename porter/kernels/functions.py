"""`custom_function`, with a gradient of its own, as MLX's decorator makes one; and `compile_shader`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from aten_overlay.errors import OverlayError
from porter.kernels import cuda
from porter.kernels.launch import PLAIN, compiled
from porter.kernels.references import check_gradients


class custom_function:
    """A function of tensors whose gradient `vjp` gives, instead of what it is made of.

    `@f.vjp` decorates a function of the inputs, the gradients of the outputs and the outputs; a single gradient and a
    single output come alone. It returns a gradient for each input.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._vjp: Callable[[Any, Any, Any], Any] | None = None

    def vjp(self, function: Callable[[Any, Any, Any], Any]) -> custom_function:
        """Sets the gradient. Returns the function that has it, so that the gradient may go by its name."""
        self._vjp = function
        return self

    def __call__(self, *inputs: Any) -> Any:
        if self._vjp is None:
            return self._function(*inputs)
        return _WithGradient.apply(self._function, self._vjp, *inputs)  # type: ignore[no-untyped-call]


def _names(function: Callable[..., Any], count: int) -> list[str]:
    """What a function calls its first `count` arguments, for messages."""
    try:
        declared = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # one that is written in C
        declared = []
    return [*declared, *(f"argument {i}" for i in range(len(declared), count))][:count]


class _WithGradient(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(function: Callable[..., Any], _vjp: Callable[..., Any], *inputs: Any) -> Any:
        found = function(*inputs)
        return found if isinstance(found, torch.Tensor) else tuple(found)

    @staticmethod
    def setup_context(ctx: Any, given: tuple[Any, ...], output: Any) -> None:
        function, ctx.vjp, *inputs = given
        outputs = (output,) if isinstance(output, torch.Tensor) else output
        ctx.name = getattr(function, "__name__", "f")
        ctx.names = _names(function, len(inputs))
        ctx.given = [None if isinstance(v, torch.Tensor) else v for v in inputs]
        tensors = [v for v in inputs if isinstance(v, torch.Tensor)]
        ctx.save_for_backward(*tensors, *outputs)
        ctx.count = len(tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        tensors, outputs = iter(ctx.saved_tensors[: ctx.count]), ctx.saved_tensors[ctx.count :]
        primals = tuple(next(tensors) if value is None else value for value in ctx.given)
        alone = len(outputs) == 1
        found = ctx.vjp(primals, gradients[0] if alone else gradients, outputs[0] if alone else outputs)
        return None, None, *check_gradients(f"function `{ctx.name}`", ctx.names, found, primals)


class Shaders:
    """The kernels of a source, compiled for a device when one is first called with its tensors."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Shader:
        if name.startswith("_"):
            raise AttributeError(name)
        return Shader(self._source, name)


class Shader:
    """One kernel. `shader(x, y, threads=...)` has the arguments of `torch.mps.compile_shader`'s kernels."""

    def __init__(self, source: str, name: str) -> None:
        self._source, self._name = source, name

    @cached_property
    def _on_mps(self) -> Any:
        return getattr(compiled(self._source, PLAIN), self._name)

    @cached_property
    def _on_cuda(self) -> Any:
        return getattr(cuda.compiled(self._source), self._name)

    def __call__(self, *args: Any, **how: Any) -> None:
        """Launches the kernel where its first tensor lies. Raises PTR219, PTR380-PTR393, and what torch raises."""
        if not any(isinstance(argument, torch.Tensor) and argument.is_cuda for argument in args):
            self._on_mps(*args, **how)
            return
        try:
            self._on_cuda(*args, **how)
        except OverlayError as error:
            raise cuda.convert(error) from error


def compile_shader(source: str) -> Shaders:
    """The kernels of a Metal source, each an attribute. It is compiled when a kernel is called."""
    return Shaders(source)
