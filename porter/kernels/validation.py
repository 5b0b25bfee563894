"""What is wrong with a call, told before anything is launched, by the name of the argument."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import torch

from porter.core.dtypes import Kind, name_torch
from porter.core.errors import PorterError
from porter.kernels.call import (
    DEVICE,
    Call,
    Number,
    TemplateValue,
    Value,
    describe,
    device_of,
    is_atomic,
    is_cuda,
    limits,
    metal_type,
    number_type,
    three,
)
from porter.kernels.compare import Tolerance
from porter.kernels.definition import is_name
from porter.kernels.kernel import Kernel
from porter.kernels.signature import ATTRIBUTES, MOST_BUFFERS, Content, Generated, described

MOST_THREADS = 1024
_DIMENSIONS = 3
_MOST_IN_GRID = 2**32 - 1  # of one dimension: positions in a grid are 32-bit numbers
_MOST_THREADS_IN_GRID = 2**63  # that launches count
_END_OF_INT = 2**31
_MOST_ELEMENTS = 2**59  # of a tensor that has addresses, with at most 16 bytes an element


def check_call(kernel: Kernel, call: Call) -> None:
    """Raises PTR208, PTR209, PTR212 and PTR215-PTR218 for a call that the kernel cannot run."""
    device = device_of(call.inputs)
    device = "cpu" if call.in_host else device if is_cuda(device) else DEVICE
    for name, value in zip(kernel.inputs, call.inputs, strict=True):
        if isinstance(value, torch.Tensor):
            _check_tensor(kernel, name, value, device)
        else:
            _check_number(kernel, name, value)
    for name, output in zip(kernel.outputs, call.outputs, strict=True):
        _check_type(kernel, f"output `{name}`", output.dtype)
        if kernel.atomic_outputs and not is_atomic(output.dtype):
            raise PorterError(
                "PTR216",
                f"output `{name}` of kernel `{kernel.name}` is {name_torch(output.dtype)}, which has no atomic",
                hint="With atomic_outputs, outputs are float32, int32, uint32 or uint64.",
            )
        if call.init_value is not None:
            _check_init_value(kernel, name, output.dtype, call.init_value)
    threads = math.prod(call.group)
    if threads > MOST_THREADS:
        _refuse_threads(kernel, call.group, MOST_THREADS)


def check_generated(kernel: Kernel, generated: Generated) -> None:
    """Raises PTR213 if the kernel takes more buffers than Metal binds."""
    if len(generated.buffers) > MOST_BUFFERS:
        raise PorterError(
            "PTR213", f"kernel `{kernel.name}` takes {len(generated.buffers)} buffers; Metal binds {MOST_BUFFERS}",
            hint="Pass several arrays as one; shapes, strides and ndim that the body names count too.",
        )  # fmt: skip


def _refuse_threads(kernel: Kernel, group: Sequence[int], most: int) -> None:
    raise PorterError(
        "PTR212",
        f"threadgroup {tuple(group)} of kernel `{kernel.name}` has {math.prod(group)} threads; it takes {most}",
        hint="Make `threadgroup` smaller; the grid may stay.",
    )


def require_threads(kernel: Kernel, **given: object) -> None:
    """Raises PTR283 for a call that leaves out a grid or a threadgroup."""
    for what, threads in given.items():
        if threads is None:
            raise PorterError(
                "PTR283", f"the call of kernel `{kernel.name}` gives no `{what}`",
                hint=f"Say how many threads it runs: {what}=(x.numel(), 1, 1) is one for each element of x.",
            )  # fmt: skip


def sizes(kernel: Kernel, what: str, given: object) -> tuple[int, int, int]:
    """A grid or a threadgroup as three numbers. Raises PTR211."""
    hint = "Give one to three whole numbers of threads: (1024, 1, 1)."
    numbers: object = [given] if isinstance(given, (int, torch.SymInt)) else given
    if not isinstance(numbers, Sequence) or isinstance(numbers, str) or not 1 <= len(numbers) <= _DIMENSIONS:
        raise PorterError("PTR211", f"`{what}` of kernel `{kernel.name}` is {given!r}", hint=hint)
    least = 1 if what.startswith("thread") and what != "threads_per_grid" else 0
    for number in numbers:
        # A traced number has no value yet, and a comparison would become a condition of what is exported.
        wide = not torch.compiler.is_compiling() and isinstance(number, int) and number > _MOST_IN_GRID
        if not isinstance(number, (int, torch.SymInt)) or isinstance(number, bool) or number < least or wide:
            raise PorterError("PTR211", f"`{what}` of kernel `{kernel.name}` holds {number!r}", hint=hint)
    known = not torch.compiler.is_compiling() and all(isinstance(n, int) for n in numbers)
    if known and math.prod(numbers) >= _MOST_THREADS_IN_GRID:
        raise PorterError(
            "PTR211", f"`{what}` of kernel `{kernel.name}` is {tuple(numbers)}, more threads than 64 bits count",
            hint=hint,
        )  # fmt: skip
    return three(numbers)


def checked_inputs(kernel: Kernel, given: object) -> tuple[Value, ...]:
    """The inputs of a call in order. Raises PTR205, PTR207 and PTR215."""
    given = listed(kernel, "inputs", given, kernel.inputs)
    _check_count(kernel, "inputs", given, kernel.inputs)
    values: list[Value] = []
    for name, value in zip(kernel.inputs, given, strict=True):
        if not isinstance(value, (torch.Tensor, bool, int, float, torch.SymInt, torch.SymFloat)):
            raise PorterError(
                "PTR207", f"input `{name}` of kernel `{kernel.name}` is a {type(value).__name__}",
                hint="Pass a tensor or a number.",
            )  # fmt: skip
        if _is_too_wide(value):
            raise PorterError(
                "PTR215", f"input `{name}` of kernel `{kernel.name}` is {value}, more than 64 bits hold",
                hint=f"Pass a float, or a tensor with the parts of `{name}`.",
            )  # fmt: skip
        if isinstance(value, torch.Tensor) and value.is_nested:
            raise PorterError(
                "PTR218", f"input `{name}` of kernel `{kernel.name}` is a nested tensor, which has no one shape",
                hint=f"Pass its parts one by one, {name}.unbind(), or {name}.to_padded_tensor(0).",
            )  # fmt: skip
        values.append(cast(Value, value))
    return tuple(values)


def _is_too_wide(value: object) -> bool:
    if torch.compiler.is_compiling():  # a bound would be a guard on a size
        return False
    return type(value) is int and not -(2**63) <= value < 2**64


def output_types(kernel: Kernel, given: Sequence[object]) -> tuple[torch.dtype, ...]:
    """The element type of each output. Raises PTR206 and PTR209."""
    _check_count(kernel, "output_dtypes", given, kernel.outputs)
    types = []
    for name, dtype in zip(kernel.outputs, given, strict=True):
        if not isinstance(dtype, torch.dtype):
            raise PorterError(
                "PTR209", f"the type of output `{name}` of kernel `{kernel.name}` is {dtype!r}",
                hint="Give a torch.dtype such as torch.float32.",
            )  # fmt: skip
        types.append(dtype)
    return tuple(types)


def output_lengths(kernel: Kernel, what: str, given: Sequence[object]) -> tuple[tuple[int, ...], ...]:
    """The shape of each output. Raises PTR206."""
    _check_count(kernel, what, given, kernel.outputs)
    return tuple(_lengths(kernel, name, shape) for name, shape in zip(kernel.outputs, given, strict=True))


def _lengths(kernel: Kernel, name: str, shape: object) -> tuple[int, ...]:
    lengths: object = [shape] if isinstance(shape, int) else shape
    if not isinstance(lengths, Sequence) or not all(_is_length(n) for n in lengths):
        raise PorterError(
            "PTR206", f"the shape of output `{name}` of kernel `{kernel.name}` is {shape!r}",
            hint="Give the lengths of its dimensions: (4, 16).",
        )  # fmt: skip
    if not torch.compiler.is_compiling() and all(type(n) is int for n in lengths) and _exceeds_memory(lengths):
        raise PorterError(
            "PTR206", f"the shape of output `{name}` of kernel `{kernel.name}` is {shape!r}, more than memory holds",
            hint="Give the lengths of its dimensions: (4, 16).",
        )  # fmt: skip
    return tuple(lengths)


def _is_length(given: object) -> bool:
    return isinstance(given, (int, torch.SymInt)) and not isinstance(given, bool) and given >= 0


def _exceeds_memory(lengths: Sequence[int]) -> bool:
    return 0 not in lengths and math.prod(lengths) >= _MOST_ELEMENTS


def listed(kernel: Kernel, what: str, given: object, names: Sequence[str]) -> Sequence[object]:
    """`given`, which has to be a list. Raises PTR205 or PTR206."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        return given
    code = "PTR205" if what == "inputs" else "PTR206"
    raise PorterError(
        code, f"`{what}` of kernel `{kernel.name}` is {_described(given)}, not a list",
        hint=f"Give a list with one entry for each of {', '.join(names)}.",
    )  # fmt: skip


def _described(given: object) -> str:
    return "a tensor" if isinstance(given, torch.Tensor) else repr(given)


def check_start(kernel: Kernel, value: object) -> None:
    """Raises PTR217 for a start value that is no number, or no number of Metal's."""
    if value is not None and not isinstance(value, (bool, int, float, torch.SymInt, torch.SymFloat)):
        raise PorterError(
            "PTR217", f"init_value of kernel `{kernel.name}` is {_described(value)}",
            hint="Give one number, for all elements of all outputs.",
        )  # fmt: skip
    if _is_too_wide(value):
        raise PorterError(
            "PTR217", f"init_value of kernel `{kernel.name}` is {value}, more than 64 bits hold",
            hint="Give a number that all outputs can hold.",
        )  # fmt: skip


def template_values(kernel: Kernel, given: Any) -> Mapping[str, TemplateValue]:
    """Template parameters by name. Raises PTR210."""
    pairs = given.items() if isinstance(given, Mapping) else given
    if not isinstance(pairs, Iterable) or not all(isinstance(each, tuple) and len(each) == 2 for each in pairs):
        raise PorterError(
            "PTR210", f"the template of kernel `{kernel.name}` is {given!r}",
            hint='Give a mapping from parameters to values: {"T": torch.float32}.',
        )  # fmt: skip
    for name, value in pairs:
        is_type = isinstance(value, torch.dtype) and metal_type(value) is not None
        if not (is_type or (isinstance(value, (bool, int)) and abs(value) < _END_OF_INT)):
            raise PorterError(
                "PTR210", f"template parameter `{name}` of kernel `{kernel.name}` is {value!r}",
                hint="Give a type that Metal has, a whole number of 32 bits or a bool.",
            )  # fmt: skip
        if not is_name(name) or name in ATTRIBUTES or name in (*kernel.inputs, *kernel.outputs):
            raise PorterError(
                "PTR210", f"template parameter `{name}` of kernel `{kernel.name}` has the name of an input or output, "
                "or one that Metal uses",
                hint="Give it another name.",
            )  # fmt: skip
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            what = f"the template of kernel `{kernel.name}` has `{name}` twice"
            raise PorterError("PTR210", what, hint="Give each parameter one value.")
    return dict(pairs)


def _check_count(kernel: Kernel, what: str, given: Collection[object], names: Sequence[str]) -> None:
    """Raises PTR205 or PTR206 unless `given` has one entry for each of `names`."""
    if len(given) != len(names):
        code = "PTR205" if what == "inputs" else "PTR206"
        if what.endswith("shapes") and given and all(isinstance(n, int) for n in given):
            raise PorterError(
                code, f"`{what}` of kernel `{kernel.name}` is one shape, not a list of shapes",
                hint=f"Give a list: [{tuple(given)}].",
            )  # fmt: skip
        raise PorterError(
            code, f"`{what}` of kernel `{kernel.name}` has {len(given)} entries for {len(names)} names",
            hint=f"Give one for each of {', '.join(names)}.",
        )  # fmt: skip


def check_keys(kernel: Kernel, what: str, given: Mapping[str, object], names: Sequence[str]) -> None:
    """Raises PTR205 or PTR206 unless a mapping has an entry for each of `names`, and no other."""
    code = "PTR205" if what == "inputs" else "PTR206"
    for name in names:
        if name not in given:
            raise PorterError(
                code, f"`{what}` of kernel `{kernel.name}` lacks `{name}`", hint=f"Add an entry for `{name}`."
            )
    for name in given:
        if name not in names:
            raise PorterError(
                code, f"`{what}` of kernel `{kernel.name}` has `{name}`, which is not one of its names",
                hint=f"The names are {', '.join(names)}.",
            )  # fmt: skip


def _check_tensor(kernel: Kernel, name: str, value: torch.Tensor, device: str) -> None:
    what = f"input `{name}`"
    _check_type(kernel, what, value.dtype)
    if value.layout is not torch.strided:
        raise PorterError(
            "PTR218", f"{what} of kernel `{kernel.name}` is {value.layout}, which has no one memory to index",
            hint=f"Pass {name}.to_dense().",
        )  # fmt: skip
    is_number = value.device.type == "cpu" and value.dim() == 0
    if device not in (str(value.device), value.device.type) and not is_number:
        raise PorterError(
            "PTR208", f"{what} of kernel `{kernel.name}` is on {value.device}, not on {device}",
            hint=f'Move it: {name}.to("{device}").',
        )  # fmt: skip
    strided = Content.STRIDES in described(kernel, name)
    if not kernel.row_contiguous and not strided and not value.is_contiguous():
        raise PorterError(
            "PTR218", f"{what} of kernel `{kernel.name}` is not contiguous, and the body does not name {name}_strides",
            hint=f"Index by elem_to_loc with {name}_strides, or leave ensure_row_contiguous on.",
        )  # fmt: skip


def _check_type(kernel: Kernel, what: str, dtype: torch.dtype) -> None:
    if metal_type(dtype) is None:
        hint = "Convert it to float32." if dtype == torch.float64 else "Convert it to a type that Metal has."
        raise PorterError(
            "PTR209", f"{what} of kernel `{kernel.name}` is {name_torch(dtype)}, which Metal does not have", hint=hint
        )


def _check_number(kernel: Kernel, name: str, value: Value) -> None:
    if isinstance(value, float) and math.isfinite(value) and abs(value) > torch.finfo(torch.float32).max:
        raise PorterError(
            "PTR215", f"input `{name}` of kernel `{kernel.name}` is {value}, which float32 cannot hold",
            hint=f"Scale `{name}`, or pass float('inf') if that is meant.",
        )  # fmt: skip
    if isinstance(value, bool) or not isinstance(value, int):
        return
    _check_range(kernel, f"input `{name}`", value, number_type(value), f"Pass a 0-d int64 tensor for `{name}`.")


def _check_init_value(kernel: Kernel, name: str, dtype: torch.dtype, value: Number) -> None:
    what = f"init_value for output `{name}`"
    kind = describe(dtype).kind
    if isinstance(value, float) and kind in (Kind.INTEGRAL, Kind.BOOL):
        raise PorterError(
            "PTR217", f"{what} of kernel `{kernel.name}` is {value}, but the output is {name_torch(dtype)}",
            hint="Give a whole number.",
        )  # fmt: skip
    low, high = _bounds(dtype, kind, value)
    if math.isfinite(value) and not low <= value <= high:
        raise PorterError(
            "PTR217", f"{what} of kernel `{kernel.name}` is {value}, which {name_torch(dtype)} cannot hold",
            hint=f"Give a value from {low} to {high}.",
        )  # fmt: skip


def _bounds(dtype: torch.dtype, kind: Kind, value: Number) -> tuple[Number, Number]:
    if kind in (Kind.FLOATING, Kind.COMPLEX):
        most = torch.finfo(dtype).max
        return -most, most
    return (limits(dtype) if kind is Kind.INTEGRAL else None) or (value, value)


def _check_range(kernel: Kernel, what: str, value: int, dtype: torch.dtype, hint: str) -> None:
    low, high = limits(dtype) or (value, value)
    if not low <= value <= high:
        raise PorterError(
            "PTR215", f"{what} of kernel `{kernel.name}` is {value}, which {name_torch(dtype)} cannot hold", hint=hint
        )


# Arguments of the wrong kind: found, and named, before anything runs with them.


_VJP = ("inputs", "gradients", "outputs")


def check_functions(
    name: str, functions: Mapping[str, object], inputs: Sequence[str] | None, flags: Mapping[str, object] | None = None
) -> None:
    """Raises PTR284 for a function that is none or that cannot take what it will get, and a flag that is no bool.

    Without `inputs`, which a call may name, how many a function takes is not known.
    """
    for what, function in functions.items():
        if function is None:
            continue
        if not callable(function):
            raise PorterError(
                "PTR284", f"`{what}` of kernel `{name}` is a {type(function).__name__}, not a function",
                hint=f"Give a function: {what}=lambda x: ..., or leave `{what}` out.",
            )  # fmt: skip
        given = _VJP if what == "vjp" else inputs
        if given is not None and not _takes(function, len(given)):
            raise PorterError(
                "PTR284", f"`{what}` of kernel `{name}` does not take {len(given)} arguments",
                hint=f"It gets {', '.join(given) or 'no argument'}.",
            )  # fmt: skip
    for what, flag in (flags or {}).items():
        if not isinstance(flag, bool):
            raise PorterError("PTR284", f"`{what}` of kernel `{name}` is {flag!r}", hint="Give True or False.")


def _takes(function: Callable[..., object], count: int) -> bool:
    """Whether a function takes that many arguments by place, as far as it says."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # one that is written in C, and has no signature
        return True
    return True


def check_example(kernel: Kernel, inputs: object) -> None:
    """Raises PTR205 and PTR207 for an example that is not a list with one value for each input."""
    checked_inputs(kernel, inputs)


def check_choices(kernel: Kernel, dtypes: object, fixed: object, tolerance: object) -> None:
    """Raises PTR285 for what a check cannot be told to do."""
    if not _is_collection(dtypes, torch.dtype):
        raise _refuse(kernel, "check", "dtypes", dtypes, "Give a list of types: [torch.float32].")
    if not _is_collection(fixed, int):
        raise _refuse(kernel, "check", "fixed", fixed, "Give a list of lengths: [64].")
    if not isinstance(tolerance, Tolerance):
        hint = "Give porter.kernels.Tolerance(relative=1e-3, absolute=1e-5)."
        raise _refuse(kernel, "check", "tolerance", tolerance, hint)


def check_examples(kernel: Kernel, examples: object, groups: object) -> None:
    """Raises PTR285 for what cannot be timed, and PTR205, PTR207 and PTR211 for what is in it."""
    if not isinstance(examples, (list, tuple)) or not examples or not all(map(_is_list, examples)):
        raise _refuse(
            kernel, "benchmark", "examples", examples,
            f"Give a list with the inputs of each call, themselves a list: [[{', '.join(kernel.inputs)}]].",
        )  # fmt: skip
    for example in examples:
        checked_inputs(kernel, example)
    if groups is None:
        return
    if not isinstance(groups, (list, tuple)) or not all(map(_is_list, groups)):
        raise _refuse(kernel, "benchmark", "groups", groups, "Give a list of threadgroups: [(64, 1, 1), (8, 8, 1)].")
    for group in groups:
        sizes(kernel, "threadgroup", group)


def check_launch(name: str, given: object, arguments: Collection[str]) -> Mapping[str, Any]:
    """What a launch gives. Raises PTR258 for anything but arguments of a call."""
    if not isinstance(given, Mapping):
        raise PorterError(
            "PTR258", f"the launch of kernel `{name}` gives a {type(given).__name__}",
            hint=f'Return a dict of arguments of a call: {{"{next(iter(arguments))}": (8, 1, 1)}}.',
        )  # fmt: skip
    unknown = [each for each in given if each not in arguments]
    if unknown:
        raise PorterError(
            "PTR258", f"the launch of kernel `{name}` gives `{unknown[0]}`", hint=f"It can give {', '.join(arguments)}."
        )
    return given


def _is_collection(given: object, kind: type) -> bool:
    return isinstance(given, (list, tuple, set, frozenset)) and all(isinstance(each, kind) for each in given)


def _is_list(given: object) -> bool:
    return isinstance(given, (list, tuple))


def _refuse(kernel: Kernel, method: str, what: str, given: object, hint: str) -> PorterError:
    said = f"a {type(given).__name__}" if isinstance(given, torch.Tensor) else repr(given)[:80]
    return PorterError("PTR285", f"`{what}` of the {method} of kernel `{kernel.name}` is {said}", hint=hint)
