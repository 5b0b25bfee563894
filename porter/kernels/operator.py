"""A kernel as a torch operator: traced, exported and differentiated like torch's own."""

from __future__ import annotations

import hashlib
import keyword
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad

from porter.core.errors import PorterError
from porter.kernels import references
from porter.kernels.call import DEVICE, Call, Number, Output, Value, device_of, is_cuda, is_large, metal_type, three
from porter.kernels.cuda import find_collector
from porter.kernels.kernel import Kernel, TemplateArgument
from porter.kernels.launch import (
    Prepared,
    current_mode,
    find_last_source,
    launch,
    prepare,
    write_signature,
    write_source,
)
from porter.kernels.references import Reference, check_gradients

_MOST = 512  # of a kernel
Preparations = dict[Hashable, Prepared]


def find_prepared(kept: Preparations, kernel: Kernel, reference: Reference | None, call: Call) -> Prepared:
    """What launches a call. Raises PTR208-PTR220 and PTR222 for one that cannot run."""
    by_value = reference is not None  # what a reference gives may depend on the value of a number
    inputs = tuple(_describe_one(value, by_value) for value in call.inputs)
    rest = (call.outputs, call.grid, call.threadgroup, call.template, type(call.init_value), call.init_value)
    likeness = current_mode(), inputs, rest
    found = kept.get(likeness)
    if found is None:
        if reference is not None:
            references.check_declared(kernel, reference, call)
        found = prepare(kernel, call)
        if len(kept) >= _MOST:
            kept.clear()
        kept[likeness] = found
    return found


def _describe_one(value: Value, by_value: bool) -> Hashable:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.device, value.layout, value.is_contiguous()
    return type(value), value if by_value or is_large(value) else None


# Gets the inputs, the gradients of the outputs and the outputs; a single gradient and a single output come alone.
Vjp: TypeAlias = Callable[[Sequence[Value], Any, Any], Any]
NAMESPACE = "porter_kernels"
_DIGITS = 12
_TORCH = "torch."
# Numbers by their kinds: torch.export saves no list that is empty, or that holds several types.
_KINDS = {"b": "flags", "f": "floats", "i": "wholes"}
_REST = (
    ("str", "number_kinds"),
    *(("Scalar[]?", name) for name in _KINDS.values()),
    ("SymInt[]", "threads"),
    ("SymInt[]", "group_size"),
    ("SymInt[]", "output_sizes"),
    ("int[]", "output_ranks"),
    ("str[]", "output_dtypes"),  # by name: torch's own checks of an operator cannot read a list of types
    ("str[]", "template"),
    ("Scalar?", "init_value"),
)
_NUMBERS = 1 + len(_KINDS)  # arguments that hold numbers


@dataclass(frozen=True)
class Operator:
    """A kernel, what it should compute and its gradient, registered with torch as `op`; and what its calls prepared.

    `function` is the same for transforms of torch.func, which do not differentiate operators of torch.library.
    """

    kernel: Kernel
    reference: Reference | None
    vjp: Vjp | None
    op: Any
    function: Any
    prepared: Preparations


_operators: dict[str, list[Operator]] = {}


def operator(kernel: Kernel, reference: Reference | None, vjp: Vjp | None) -> Operator:
    """The operator of a kernel: registered once for each kernel, reference and gradient."""
    name = f"{kernel.name}_{hashlib.sha256(repr(kernel).encode()).hexdigest()[:_DIGITS]}"
    made = _operators.setdefault(name, [])
    for each in made:
        if _is_same(each.reference, reference) and _is_same(each.vjp, vjp):
            return each
    suffix = f"_{len(made)}" if made else ""
    prepared: Preparations = {}
    op, function = _register(f"{NAMESPACE}::{name}{suffix}", kernel, reference, vjp, prepared)
    made.append(Operator(kernel, reference, vjp, op, function, prepared))
    return made[-1]


def is_registered(op: torch._ops.OpOverload) -> bool:
    """Whether this is the operator of a kernel."""
    return op.namespace == NAMESPACE


def pack(
    inputs: Sequence[Value],
    grid: Sequence[int],
    threadgroup: Sequence[int],
    shapes: Sequence[Sequence[int]] = (),
    dtypes: Sequence[torch.dtype] = (),
    template: Sequence[TemplateArgument] = (),
    init_value: Number | None = None,
) -> tuple[object, ...]:
    """The arguments of an operator. A number among the inputs leaves its place empty.

    Without `shapes` or `dtypes` the outputs have those of the reference's results; without `grid`, each element of the
    first output has a thread. These are found inside the operator, so that whatever traces the call sees no more of it.
    """
    numbers = [(_kind(v), v) for v in inputs if not isinstance(v, torch.Tensor)]
    return (
        *(v if isinstance(v, torch.Tensor) else None for v in inputs),
        "".join(kind for kind, _ in numbers),
        *([v for kind, v in numbers if kind == each] or None for each in _KINDS),
        list(grid),
        list(threadgroup),
        [length for shape in shapes for length in shape],
        [len(shape) for shape in shapes],
        [str(dtype).removeprefix(_TORCH) for dtype in dtypes],
        [text for each in template for text in (each.kind, each.name, each.value)],
        init_value,
    )


def unpack(kernel: Kernel, reference: Reference | None, arguments: Sequence[Any]) -> Call:
    """The call that `pack` made arguments of."""
    count = len(kernel.inputs)
    threads, group, lengths, ranks, names, template, init_value = arguments[count + _NUMBERS :]
    sizes = iter(lengths)
    inputs = _join(arguments[:count], arguments[count : count + _NUMBERS])
    shapes = [tuple(next(sizes) for _ in range(rank)) for rank in ranks]
    dtypes = [getattr(torch, name) for name in names]
    if reference is not None and not (shapes and dtypes):
        results = references.result_outputs(kernel, reference, inputs)
        shapes = shapes or [each.shape for each in results]
        dtypes = dtypes or [each.dtype for each in results]
    return Call(
        inputs,
        tuple(Output(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)),
        three(threads or [math.prod(shapes[0])]),
        three(group),
        tuple(TemplateArgument(*template[i : i + 3]) for i in range(0, len(template), 3)),
        init_value,
    )


def _kind(number: Number) -> str:
    if isinstance(number, bool):
        return "b"
    return "f" if isinstance(number, (float, torch.SymFloat)) else "i"


def _join(tensors: Sequence[torch.Tensor | None], numbers: Sequence[Any]) -> tuple[Value, ...]:
    """The inputs of a call: tensors, and numbers where these leave a place."""
    kinds, *lists = numbers
    rest = dict(zip(_KINDS, (iter(each or ()) for each in lists), strict=True))
    places = iter(kinds)
    return tuple(next(rest[next(places)]) if tensor is None else tensor for tensor in tensors)


def run_operator(found: Operator, arguments: Sequence[object], verbose: bool) -> list[torch.Tensor]:
    """The outputs of a call; `verbose` prints its source first. Raises PTR208-PTR222 and PTR286."""
    is_transformed = not torch.compiler.is_compiling() and peek_interpreter_stack() is not None
    _refuse_tangents(found.kernel, arguments)
    if verbose and not torch.compiler.is_compiling():
        print(_source(found.kernel, unpack(found.kernel, found.reference, arguments)))
    result = found.function.apply(*arguments) if is_transformed else found.op(*arguments)
    return [result] if isinstance(result, torch.Tensor) else list(result)


def _refuse_tangents(kernel: Kernel, arguments: Sequence[object]) -> None:
    """Raises PTR286 in forward mode, where torch would leave the tangents out."""
    if torch.compiler.is_compiling() or forward_ad._current_level < 0:
        return
    for name, value in zip(kernel.inputs, arguments, strict=False):
        if isinstance(value, torch.Tensor) and forward_ad.unpack_dual(value).tangent is not None:
            raise _forward_mode(kernel, f"input `{name}`")


def _forward_mode(kernel: Kernel, what: str) -> PorterError:
    return PorterError(
        "PTR286", f"{what} of kernel `{kernel.name}` has a tangent, and kernels have no forward mode",
        hint="Use reverse mode, such as torch.func.vjp or jacrev, or differentiate the reference.",
    )  # fmt: skip


def recall(found: Operator, arguments: Sequence[object]) -> tuple[Call, Prepared] | None:
    """A call that ran on the mps device or on CUDA's, and what was prepared for it; None for one that ran elsewhere."""
    call = unpack(found.kernel, found.reference, arguments)
    device = device_of(call.inputs)
    if find_collector() is not None or (device != DEVICE and not is_cuda(device)):
        return None
    return call, find_prepared(found.prepared, found.kernel, found.reference, call)


def has_own_gradient(reference: Reference | None, vjp: Vjp | None) -> bool:
    """Whether a gradient is more than torch's derivative of the reference."""
    return vjp is not None and (reference is None or not _is_same(vjp, references.differentiate(reference)))


def _register(
    name: str, kernel: Kernel, reference: Reference | None, vjp: Vjp | None, prepared: Preparations
) -> tuple[Any, Any]:
    """The operator of torch.library, and the function that transforms of torch.func take for it."""

    def implementation(*arguments: Any) -> Any:
        return _returned(_compute(kernel, reference, unpack(kernel, reference, arguments), prepared))

    def fake(*arguments: Any) -> Any:
        return _returned(_imagine(kernel, reference, unpack(kernel, reference, arguments)))

    op = torch.library.custom_op(name, implementation, mutates_args=(), schema=_schema(kernel))
    op.register_fake(fake)
    backward, setup = _refuse_gradient(kernel, reference) if vjp is None else _gradient(kernel, vjp)
    op.register_autograd(backward, setup_context=setup)

    def forward(*arguments: Any) -> Any:
        return op(*arguments)

    def refuse_tangents(*_arguments: Any) -> Any:
        raise _forward_mode(kernel, "an input")

    parts = {"forward": forward, "setup_context": setup, "backward": backward, "jvp": refuse_tangents}
    members = {"generate_vmap_rule": True, **{part: staticmethod(each) for part, each in parts.items()}}
    return op, type(kernel.name, (torch.autograd.Function,), members)


def _schema(kernel: Kernel) -> str:
    taken = {name for _, name in _REST}
    names = [f"{name}_" if name in taken or keyword.iskeyword(name) else name for name in kernel.inputs]
    arguments = [*(f"Tensor? {name}" for name in names), *(f"{type_} {name}" for type_, name in _REST)]
    results = ", ".join(["Tensor"] * len(kernel.outputs))
    return f"({', '.join(arguments)}) -> {results if len(kernel.outputs) == 1 else f'({results})'}"


def _returned(results: Sequence[torch.Tensor]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


def _compute(kernel: Kernel, reference: Reference | None, call: Call, prepared: Preparations) -> Sequence[torch.Tensor]:
    """The kernel's outputs on a device, the reference's on the CPU. Raises PTR221 for a CPU call without one."""
    if (collect := find_collector()) is not None:
        collect(write_signature(kernel, call).source)
        return tuple(torch.zeros(each.shape, dtype=each.dtype) for each in call.outputs)
    if device_of(call.inputs) != "cpu":
        found = find_prepared(prepared, kernel, reference, call)
        find_last_source(kernel).text = found.generated.source
        return launch(kernel, call, found)
    find_last_source(kernel).text = _source(kernel, call)
    if reference is None:
        name = next(n for n, v in zip(kernel.inputs, call.inputs, strict=True) if isinstance(v, torch.Tensor))
        raise PorterError(
            "PTR221", f"input `{name}` of kernel `{kernel.name}` is on the CPU, and the kernel has no reference",
            hint=f'Move it: {name}.to("{DEVICE}"), or give the kernel reference=.',
        )  # fmt: skip
    results = references.results_of_unchanged(kernel, reference, call.inputs)
    references.check_results(kernel, results, call.outputs)
    return tuple(_owned(result, call.inputs) for result in results)


def _source(kernel: Kernel, call: Call) -> str:
    """The Metal source of a call; "" for one on the CPU with types that Metal lacks.

    Raises PTR208-PTR218 for a call on a device that cannot run.
    """
    if device_of(call.inputs) != "cpu":
        return write_source(kernel, call).source
    types = [v.dtype for v in call.inputs if isinstance(v, torch.Tensor)] + [o.dtype for o in call.outputs]
    return "" if None in map(metal_type, types) else write_signature(kernel, call).source


def _imagine(kernel: Kernel, reference: Reference | None, call: Call) -> Sequence[torch.Tensor]:
    """Outputs without data. With a reference their shapes are those it would give, or else PTR222 is raised."""
    if reference is not None:
        references.check_results(kernel, references.results(kernel, reference, call.inputs), call.outputs)
    device = device_of(call.inputs)
    return tuple(torch.empty(each.shape, dtype=each.dtype, device=device) for each in call.outputs)


def _owned(result: torch.Tensor, inputs: Sequence[Value]) -> torch.Tensor:
    """A dense result that is no view of an input, as an operator has to return it."""
    dense = result.contiguous()
    storages = {v.untyped_storage().data_ptr() for v in inputs if isinstance(v, torch.Tensor)}
    return dense.clone() if dense.untyped_storage().data_ptr() in storages else dense


def _gradient(kernel: Kernel, vjp: Vjp) -> tuple[Callable[..., Any], Callable[..., None]]:
    count = len(kernel.inputs)

    def setup(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.save_for_backward(*(v for v in inputs[:count] if v is not None), *outputs)
        ctx.given = [v is not None for v in inputs[:count]]
        ctx.numbers = inputs[count : count + _NUMBERS]

    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        saved = iter(ctx.saved_tensors)
        primals = _join([next(saved) if is_tensor else None for is_tensor in ctx.given], ctx.numbers)
        outputs = tuple(saved)
        filled = tuple(torch.zeros_like(o) if g is None else g for g, o in zip(gradients, outputs, strict=True))
        found = vjp(primals, _returned(filled), _returned(outputs))
        return (*check_gradients(f"kernel `{kernel.name}`", kernel.inputs, found, primals), *[None] * len(_REST))

    return backward, setup


def _refuse_gradient(kernel: Kernel, reference: Reference | None) -> tuple[Callable[..., Any], Callable[..., None]]:
    def setup(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        pass

    def backward(*_arguments: Any) -> Any:
        given = "lambda inputs, gradient, output: ..." if reference is None else "differentiate(reference)"
        raise PorterError("PTR286", f"kernel `{kernel.name}` has no gradient", hint=f"Give the kernel vjp={given}.")

    return backward, setup


def _is_same(one: Callable[..., object] | None, other: Callable[..., object] | None) -> bool:
    """Whether two functions are one, or come from one definition and closed over equal values."""
    if one is other:
        return True
    codes = getattr(one, "__code__", None), getattr(other, "__code__", None)
    if None in codes or codes[0] is not codes[1]:
        return False
    return _bound_values(one) == _bound_values(other)


def _bound_values(function: Callable[..., object] | None) -> tuple[int, ...]:
    cells = getattr(function, "__closure__", None) or ()
    defaults = (*(getattr(function, "__defaults__", None) or ()), getattr(function, "__self__", None))
    return tuple(id(value) for value in (*(cell.cell_contents for cell in cells), *defaults))
