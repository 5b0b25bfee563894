"""porter's own form: a script with a `MetalKernel` or a `TorchMetalKernel`, such as an import writes.

`porter kernel check` runs it. What a file does not say of its kernel, how it is called and what it computes, is a
function to fill in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from porter.kernels.call import Call, Number, Value, torch_type
from porter.kernels.export.forms import Files, Form, Source, listed, quoted, reference_name_and_source
from porter.kernels.kernel import Kernel, TemplateArgument

_NAME = "porter"
# A type or a number that a call gives: no name of Metal's is one letter.
_PLACEHOLDER = re.compile(r"\b[A-Z]\b")
# Torch takes no greatest element of these.
_WIDE = (torch.uint16, torch.uint32, torch.uint64)


def write(source: Source) -> Files:
    """A script with the kernel. Raises PTR231 for a reference that cannot be written down."""
    kernel = source.kernel
    defined, definition = ("None", "")
    if source.reference is not None:
        defined, definition = reference_name_and_source(kernel, source.reference, _NAME)
    made = _core(kernel, defined) if kernel.tensors else _plain(kernel, defined)
    names = "MetalParameter, TorchMetalKernel" if kernel.tensors else "MetalKernel"
    run = kernel.name if kernel.name != "kernel" else "run"
    takes = "".join(f"{quoted(name)}, " for name in kernel.inputs)
    expected = defined if source.reference else f"{run}_reference"
    case = _Example.unknown(kernel)
    if source.example and source.reference is None and not kernel.tensors:
        case = _Example.of(kernel, source.example)
    text = f'''"""Kernel `{kernel.name}`. Run with `python -m aten_overlay`, or on a Mac."""

import torch

from porter.kernels import {names}
from porter.kernels.script import Kind, {case.layout}Script, Stage, run_script

{definition}
kernel = {made}


def {run}({", ".join(kernel.inputs)}):
    """Calls the kernel: say here how many threads it needs, and what they write{case.said}."""
{_run(kernel, case)}
{_define_reference(kernel, run) if source.reference is None else ""}
SCRIPT = Script(
    summary="a kernel from elsewhere",
    kind=Kind.ELEMENTWISE,
    stages=(Stage({quoted(kernel.name)}, {run}, {expected}, ({takes.rstrip()})),),
    inputs=lambda case: {{{", ".join(f"{quoted(name)}: {value}" for name, value in case.inputs.items())}}},
    sizes={case.sizes},
    benchmark={case.benchmark},{case.choices}
)

if __name__ == "__main__":
    run_script(__file__)
'''
    return {f"{kernel.name}.py": text}


def _plain(kernel: Kernel, reference: str) -> str:
    return f"""MetalKernel(
    "{kernel.name}",
    input_names={listed(kernel.inputs)},
    output_names={listed(kernel.outputs)},
    source={quoted(kernel.body)},
    header={quoted(kernel.header)},
    ensure_row_contiguous={kernel.row_contiguous},
    atomic_outputs={kernel.atomic_outputs},
    reference={reference},
)"""


def _define_reference(kernel: Kernel, run: str) -> str:
    return f'''
def {run}_reference({", ".join(kernel.inputs)}):
    """The same in torch, which `porter kernel check` compares with."""
    raise NotImplementedError("say in {run}_reference what the kernel computes")

'''


@dataclass(frozen=True)
class _Example:
    """What a script writes of a call, as Python: `said` is what its text tells of it."""

    inputs: Mapping[str, str]
    sizes: str = "((1,), (257,), (3, 5))"
    benchmark: str = "((1 << 22,),)"
    choices: str = ""
    said: str = ""
    launch: Mapping[str, str] = field(default_factory=dict)

    @property
    def layout(self) -> str:
        """What the script imports for its choices."""
        return "Layout, " if self.choices else ""

    @classmethod
    def unknown(cls, kernel: Kernel) -> _Example:
        """That of a kernel of one thread for each element, of one type, whose inputs are like the first."""
        first = kernel.inputs[0] if kernel.inputs else ""
        grid, shape, dtype = ("(1, 1, 1)", "(1,)", "torch.float32")
        if first:
            grid, shape, dtype = f"({first}.numel(), 1, 1)", f"{first}.shape", f"{first}.dtype"
        launch = {
            "template": _by_name(dict.fromkeys(_PLACEHOLDER.findall(kernel.body), dtype)),
            "grid": grid, "threadgroup": "(256, 1, 1)",
            "output_shapes": _by_name(dict.fromkeys(kernel.outputs, shape)),
            "output_dtypes": _by_name(dict.fromkeys(kernel.outputs, dtype)),
        }  # fmt: skip
        return cls(dict.fromkeys(kernel.inputs, "case.normal(*case.size)"), launch=launch)

    @classmethod
    def of(cls, kernel: Kernel, call: Call) -> _Example:
        """An example of one call, with the numbers that it had."""
        tensors = [value for value in call.inputs if isinstance(value, torch.Tensor)]
        floating = next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), torch.float32)
        size = tuple(max(tensors, key=torch.numel).shape) if tensors else (1,)
        launch = {
            "template": _by_name({t.name: _template_value(t) for t in call.template}),
            "grid": str(call.grid), "threadgroup": str(call.threadgroup),
            "output_shapes": _by_name({n: str(o.shape) for n, o in zip(kernel.outputs, call.outputs, strict=True)}),
            "output_dtypes": _by_name({n: str(o.dtype) for n, o in zip(kernel.outputs, call.outputs, strict=True)}),
        } | ({} if call.init_value is None else {"init_value": _number(call.init_value)})  # fmt: skip
        inputs = zip(kernel.inputs, call.inputs, strict=True)
        return cls(
            {name: _value(value, floating, seed) for seed, (name, value) in enumerate(inputs)},
            sizes=f"({size},)", benchmark=f"({size},)",
            choices=f"\n    dtypes=({floating},),\n    layouts=(Layout.DENSE,),",
            said=".\n\n    These are the numbers of one call: compute them from the inputs", launch=launch,
        )  # fmt: skip


def _by_name(values: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{quoted(name)}: {value}' for name, value in values.items())}}}"


def _template_value(argument: TemplateArgument) -> str:
    if argument.kind == "typename":
        return str(torch_type(argument.value))
    return argument.value.capitalize() if argument.kind == "bool" else argument.value


def _number(value: Number) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _value(value: Value, floating: torch.dtype, seed: int) -> str:
    """Values like those of an input: of its shape and type, and no integer greater than the greatest."""
    if not isinstance(value, torch.Tensor):
        return _number(value)
    shape = "".join(f"{length}, " for length in value.shape)
    if value.dtype.is_floating_point or value.dtype.is_complex:
        text = f"case.normal({shape}seed={seed})"
        return text if value.dtype == floating else f"{text}.to({value.dtype})"
    below = max(2, int(value.max()) + 1) if value.numel() and value.dtype not in _WIDE else 2
    return f"case.integers({shape}below={below}, dtype={value.dtype}, seed={seed})"


def _run(kernel: Kernel, case: _Example) -> str:
    if kernel.tensors:
        first = kernel.inputs[0] if kernel.inputs else ""
        grid, shape = (f"({first}.numel(), 1, 1)", f"{first}.shape") if first else ("(1, 1, 1)", "(1,)")
        inputs = "".join(f"{name}, " for name in kernel.inputs)
        shapes = ", ".join(shape for _ in kernel.outputs)
        threads = f"threads_per_grid={grid}, threads_per_thread_group=(256, 1, 1)"
        return f"    return kernel({inputs}{threads}, result_shapes=[{shapes}])\n"
    results = ", ".join(f"outputs[{quoted(name)}]" for name in kernel.outputs)
    launch = "".join(f"        {name}={value},\n" for name, value in case.launch.items())
    return f"""    outputs = kernel(
        inputs={_by_name({name: name for name in kernel.inputs})},
{launch}    )
    return {results}
"""


def _core(kernel: Kernel, reference: str) -> str:
    parameters = ", ".join(f'MetalParameter("{p.name}", "{p.dtype}", "{p.attribute}")' for p in kernel.parameters)
    return f"""TorchMetalKernel(
    "{kernel.name}",
    input_names={listed(kernel.inputs)},
    result_names={listed(kernel.outputs)},
    src={quoted(kernel.body)},
    torch_defn={reference},
    metal_params=[{parameters}],
    helper_src={quoted(kernel.header)},
    template_dtypes={dict(kernel.placeholders)!r},
)"""


FORM = Form(_NAME, write)
