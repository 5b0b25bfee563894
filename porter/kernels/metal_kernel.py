"""`MetalKernel`: a kernel whose body alone is written, called as MLX's `metal_kernel` is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch

from porter.core.errors import PorterError
from porter.kernels.call import Call, Number, Output, TemplateValue, Value, template_arguments
from porter.kernels.checks import check_kernel
from porter.kernels.kernel import Kernel
from porter.kernels.launch import write_source
from porter.kernels.operator import Operator, Vjp, operator, pack
from porter.kernels.references import Reference
from porter.kernels.types import metal_type
from porter.kernels.validation import check_count, sizes

Inputs: TypeAlias = Mapping[str, Value] | Sequence[Value]
Shapes: TypeAlias = Mapping[str, Sequence[int]] | Sequence[Sequence[int]]
DTypes: TypeAlias = Mapping[str, torch.dtype] | Sequence[torch.dtype]
Template: TypeAlias = Mapping[str, TemplateValue] | Sequence[tuple[str, TemplateValue]]


class MetalKernel:
    """A Metal kernel from the text between its braces.

    The signature is generated: inputs and outputs by name, Metal attributes that `source` names, and `<input>_shape`,
    `_strides`, `_ndim` and `_storage_offset` where it names them. `header` stands before the kernel. Without
    `input_names` and `output_names`, a call names them, in mappings. `ensure_row_contiguous` copies inputs that are
    not; `atomic_outputs` makes every output a pointer to atomics.

    `reference` computes the same with torch: it runs for inputs on the CPU, and `check` compares with it. `vjp` gets the
    inputs, the gradients of the outputs and the outputs, and returns a gradient for each input;
    `differentiate(reference)` makes one.

    Raises PTR200-PTR203.
    """

    def __init__(
        self,
        name: str,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        source: str = "",
        header: str = "",
        ensure_row_contiguous: bool = True,
        atomic_outputs: bool = False,
        reference: Reference | None = None,
        vjp: Vjp | None = None,
    ) -> None:
        self._named = input_names is not None and output_names is not None
        self._reference, self._vjp = reference, vjp
        self._draft = Kernel(
            name, tuple(input_names or ()), tuple(output_names or ()), source, header,
            row_contiguous=ensure_row_contiguous, atomic_outputs=atomic_outputs,
        )  # fmt: skip
        self._source = ""
        self._operator: Operator | None = None
        if self._named:
            check_kernel(self._draft)
            self._operator = operator(self._draft, reference, vjp)

    @property
    def source(self) -> str:
        """The complete Metal source of the last call; "" before the first."""
        return self._source

    @property
    def kernel(self) -> Kernel:
        """The kernel as a value."""
        return self._draft

    def __call__(
        self,
        inputs: Inputs,
        template: Template = (),
        grid: Sequence[int] = (1, 1, 1),
        threadgroup: Sequence[int] = (1, 1, 1),
        output_shapes: Shapes = (),
        output_dtypes: DTypes = (),
        init_value: Number | None = None,
        verbose: bool = False,
    ) -> dict[str, torch.Tensor] | list[torch.Tensor]:
        """Runs the kernel over `grid` threads in groups of `threadgroup`; its outputs, by name if shapes were.

        `template` gives types, whole numbers and bools to template parameters. `init_value` fills outputs before the
        kernel runs. `verbose` prints the source. Raises PTR205-PTR220.
        """
        found = self._find_operator(inputs, output_shapes)
        kernel = found.kernel
        call = Call(
            _listed(kernel, "inputs", inputs, kernel.inputs),
            _outputs(kernel, output_shapes, output_dtypes),
            sizes(kernel, "grid", grid),
            sizes(kernel, "threadgroup", threadgroup),
            template_arguments(_template(kernel, template)),
            init_value,
        )
        if not torch.compiler.is_compiling():
            self._source = write_source(kernel, call).source
            if verbose:
                print(self._source)
        result = found.op(*pack(call))
        results = [result] if isinstance(result, torch.Tensor) else list(result)
        if isinstance(output_shapes, Mapping):
            return dict(zip(kernel.outputs, results, strict=True))
        return results

    def _find_operator(self, inputs: Inputs, output_shapes: Shapes) -> Operator:
        """The operator of this kernel; a call may be the first to name inputs and outputs. Raises PTR201 and PTR205."""
        if self._operator is not None:
            return self._operator
        draft = self._draft
        if not isinstance(inputs, Mapping) or not isinstance(output_shapes, Mapping):
            raise PorterError(
                "PTR205", f"kernel `{draft.name}` has no names for its inputs and outputs",
                hint="Give input_names and output_names, or pass inputs and output_shapes as mappings.",
            )  # fmt: skip
        kernel = replace(draft, inputs=draft.inputs or tuple(inputs), outputs=draft.outputs or tuple(output_shapes))
        check_kernel(kernel)
        return operator(kernel, self._reference, self._vjp)


def _listed(kernel: Kernel, what: str, given: Inputs, names: Sequence[str]) -> tuple[Value, ...]:
    """The inputs in the order of their names. Raises PTR205 and PTR207."""
    if isinstance(given, Mapping):
        _check_keys(kernel, what, given, names)
        values = tuple(given[name] for name in names)
    else:
        check_count(kernel, what, given, names)
        values = tuple(given)
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, (torch.Tensor, bool, int, float)):
            raise PorterError(
                "PTR207", f"input `{name}` of kernel `{kernel.name}` is a {type(value).__name__}",
                hint="Pass a tensor or a number.",
            )  # fmt: skip
    return values


def _outputs(kernel: Kernel, shapes: Shapes, dtypes: DTypes) -> tuple[Output, ...]:
    """Shape and type of each output. Raises PTR206 and PTR207."""
    ordered: list[tuple[object, ...]] = []
    for what, given in (("output_shapes", shapes), ("output_dtypes", dtypes)):
        if isinstance(given, Mapping):
            _check_keys(kernel, what, given, kernel.outputs)
            ordered.append(tuple(given[name] for name in kernel.outputs))
        else:
            check_count(kernel, what, given, kernel.outputs)
            ordered.append(tuple(given))
    return tuple(_output(kernel, *each) for each in zip(kernel.outputs, *ordered, strict=True))


def _output(kernel: Kernel, name: str, shape: object, dtype: object) -> Output:
    if not isinstance(dtype, torch.dtype) or metal_type(dtype) is None:
        raise PorterError(
            "PTR209", f"the type of output `{name}` of kernel `{kernel.name}` is {dtype!r}, which Metal does not have",
            hint="Give a torch.dtype such as torch.float32.",
        )  # fmt: skip
    lengths = [shape] if isinstance(shape, int) else shape
    if not isinstance(lengths, Sequence) or not all(isinstance(n, (int, torch.SymInt)) and n >= 0 for n in lengths):
        raise PorterError(
            "PTR206", f"the shape of output `{name}` of kernel `{kernel.name}` is {shape!r}",
            hint="Give the lengths of its dimensions: (4, 16).",
        )  # fmt: skip
    return Output(tuple(lengths), dtype)


def _template(kernel: Kernel, given: Template) -> Mapping[str, TemplateValue]:
    """Template parameters by name. Raises PTR210."""
    pairs = dict(given)
    for name, value in pairs.items():
        is_type = isinstance(value, torch.dtype) and metal_type(value) is not None
        if not name.isidentifier() or not (is_type or isinstance(value, (bool, int))):
            raise PorterError(
                "PTR210", f"template parameter `{name}` of kernel `{kernel.name}` is {value!r}",
                hint="Give a type that Metal has, a whole number or a bool.",
            )  # fmt: skip
        if name in (*kernel.inputs, *kernel.outputs):
            raise PorterError(
                "PTR210", f"template parameter `{name}` of kernel `{kernel.name}` has the name of an input or output",
                hint="Give it another name.",
            )  # fmt: skip
    return pairs


def _check_keys(kernel: Kernel, what: str, given: Mapping[str, object], names: Sequence[str]) -> None:
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


metal_kernel = MetalKernel
