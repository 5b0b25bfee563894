"""What a kernel should compute, as a torch function of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from porter.core.errors import PorterError
from porter.kernels.call import Call, Number, Output, Value
from porter.kernels.kernel import Kernel

# Gets the inputs in order; its results are the outputs, a single one alone.
Reference: TypeAlias = Callable[..., Any]


def results(kernel: Kernel, reference: Reference, inputs: Sequence[Value]) -> tuple[torch.Tensor, ...]:
    """What the reference gives, always as a tuple. Raises PTR222 for something else than a tensor for each output."""
    found = reference(*inputs)
    given = (found,) if isinstance(found, torch.Tensor) else found
    if not isinstance(given, (tuple, list)) or not all(isinstance(each, torch.Tensor) for each in given):
        raise PorterError(
            "PTR222", f"the reference of kernel `{kernel.name}` gives a {type(found).__name__}",
            hint="Return a tensor for each output.",
        )  # fmt: skip
    if len(given) != len(kernel.outputs):
        raise PorterError(
            "PTR222", f"the reference of kernel `{kernel.name}` gives {len(given)} results",
            hint=f"Return one for each of {', '.join(kernel.outputs)}.",
        )  # fmt: skip
    return tuple(given)


def results_of_unchanged(kernel: Kernel, reference: Reference, inputs: Sequence[Value]) -> tuple[torch.Tensor, ...]:
    """What the reference gives. Raises PTR222 also for one that changes an input, which no kernel can."""
    before = [_version(each) for each in inputs]
    found = results(kernel, reference, inputs)
    for name, value, version in zip(kernel.inputs, inputs, before, strict=True):
        if _version(value) != version:
            raise PorterError(
                "PTR222", f"the reference of kernel `{kernel.name}` changes its input `{name}`",
                hint=f"Compute on a copy: {name}.clone().",
            )  # fmt: skip
    return found


def _version(value: Value) -> int:
    """How often a tensor was changed in place, which inference mode does not count."""
    return value._version if isinstance(value, torch.Tensor) and not value.is_inference() else 0


def check_results(kernel: Kernel, found: Sequence[torch.Tensor], outputs: Sequence[Output]) -> None:
    """Raises PTR222 if the reference's results have other shapes or types than the call declares."""
    for name, result, output in zip(kernel.outputs, found, outputs, strict=True):
        _check_output(kernel, name, output, Output(tuple(result.shape), result.dtype))


def check_declared(kernel: Kernel, reference: Reference, call: Call) -> None:
    """Raises PTR222 if a call declares other outputs than the reference gives, where that is known without data."""
    try:
        expected = result_outputs(kernel, reference, call.inputs)
    except PorterError:
        raise
    except Exception:  # a reference that needs data, such as one that calls numpy
        return
    for name, output, wanted in zip(kernel.outputs, call.outputs, expected, strict=True):
        _check_output(kernel, name, output, wanted)


def _check_output(kernel: Kernel, name: str, output: Output, wanted: Output) -> None:
    if output != wanted:
        raise PorterError(
            "PTR222",
            f"output `{name}` of kernel `{kernel.name}` is declared as {_written(output)}, and its reference gives "
            f"{_written(wanted)}",
            hint="Correct the shapes and types of the call, or the reference.",
        )


def result_outputs(kernel: Kernel, reference: Reference, inputs: Sequence[Value]) -> tuple[Output, ...]:
    """Shape and type of each result, without computing them."""
    if any(isinstance(v, (FakeTensor, torch.SymInt, torch.SymFloat)) for v in inputs):
        return tuple(Output(tuple(each.shape), each.dtype) for each in results(kernel, reference, inputs))
    described = tuple(Output(tuple(v.shape), v.dtype) if isinstance(v, torch.Tensor) else v for v in inputs)
    return _imagined(kernel, reference, *described)


@lru_cache(maxsize=1024, typed=True)
def _imagined(kernel: Kernel, reference: Reference, *inputs: Output | Number) -> tuple[Output, ...]:
    """`inputs` by themselves, for a number's type to count: 1 and 1.0 may give results of different types."""
    with FakeTensorMode():
        values = [torch.empty(v.shape, dtype=v.dtype) if isinstance(v, Output) else v for v in inputs]
        found = results(kernel, reference, values)
    return tuple(Output(tuple(each.shape), each.dtype) for each in found)


def differentiate(reference: Reference) -> Callable[[Sequence[Value], Any, Any], Any]:
    """A vjp for a kernel with this reference: torch's own derivative of the reference. Raises PTR284."""
    if not callable(reference):
        raise PorterError(
            "PTR284", f"`reference` of differentiate is a {type(reference).__name__}, not a function",
            hint="Give it the torch function that the kernel computes.",
        )  # fmt: skip

    def vjp(primals: Sequence[Value], cotangents: Any, outputs: Any) -> tuple[torch.Tensor | None, ...]:
        places = [i for i, v in enumerate(primals) if isinstance(v, torch.Tensor) and v.is_floating_point()]

        def of_tensors(*tensors: torch.Tensor) -> Any:
            values = list(primals)
            for place, tensor in zip(places, tensors, strict=True):
                values[place] = tensor
            found = reference(*values)
            return tuple(filter(_has_derivative, (found,) if isinstance(found, torch.Tensor) else found))

        pull = torch.func.vjp(of_tensors, *(primals[i] for i in places))[1]
        gradients: list[torch.Tensor | None] = [None] * len(primals)
        given = (cotangents,) if isinstance(cotangents, torch.Tensor) else cotangents
        wanted = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        floating = tuple(each for each, output in zip(given, wanted, strict=True) if _has_derivative(output))
        for place, gradient in zip(places, pull(floating), strict=True):
            gradients[place] = gradient
        return tuple(gradients)

    return vjp


def _has_derivative(result: torch.Tensor) -> bool:
    return result.is_floating_point() or result.is_complex()


def _written(output: Output) -> str:
    return f"{str(output.dtype).removeprefix('torch.')} of shape {tuple(output.shape)}"


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
