"""porter's own form: a script with a `MetalKernel` or a `TorchMetalKernel`, such as an import writes.

`porter kernel check` runs it. What a file does not say of its kernel, how it is called and what it computes, is a
function to fill in.
"""

from __future__ import annotations

import re

from porter.kernels.export.forms import Files, Form, Source, listed, quoted, reference_name_and_source
from porter.kernels.kernel import Kernel

_NAME = "porter"
# A type or a number that a call gives: no name of Metal's is one letter.
_PLACEHOLDER = re.compile(r"\b[A-Z]\b")


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
    text = f'''"""Kernel `{kernel.name}`. Run with `python -m aten_overlay`, or on a Mac."""

import torch

from porter.kernels import {names}
from porter.kernels.script import Kind, Script, Stage, run_script

{definition}
kernel = {made}


def {run}({", ".join(kernel.inputs)}):
    """Calls the kernel: say here how many threads it needs, and what they write."""
{_run(kernel)}
{_define_reference(kernel, run) if source.reference is None else ""}
SCRIPT = Script(
    summary="a kernel from elsewhere",
    kind=Kind.ELEMENTWISE,
    stages=(Stage({quoted(kernel.name)}, {run}, {expected}, ({takes.rstrip()})),),
    inputs=lambda case: {{{", ".join(f"{quoted(name)}: case.normal(*case.size)" for name in kernel.inputs)}}},
    sizes=((1,), (257,), (3, 5)),
    benchmark=((1 << 22,),),
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


def _run(kernel: Kernel) -> str:
    first = kernel.inputs[0] if kernel.inputs else ""
    grid, shape, dtype = (
        (f"({first}.numel(), 1, 1)", f"{first}.shape", f"{first}.dtype")
        if first
        else ("(1, 1, 1)", "(1,)", "torch.float32")
    )
    if kernel.tensors:
        shapes = ", ".join(shape for _ in kernel.outputs)
        inputs = "".join(f"{name}, " for name in kernel.inputs)
        threads = f"threads_per_grid={grid}, threads_per_thread_group=(256, 1, 1)"
        return f"    return kernel({inputs}{threads}, result_shapes=[{shapes}])\n"
    types = dict.fromkeys(_PLACEHOLDER.findall(kernel.body))
    shapes, dtypes = (", ".join(f"{quoted(name)}: {value}" for name in kernel.outputs) for value in (shape, dtype))
    results = ", ".join(f"outputs[{quoted(name)}]" for name in kernel.outputs)
    return f"""    outputs = kernel(
        inputs={{{", ".join(f"{quoted(name)}: {name}" for name in kernel.inputs)}}},
        template={{{", ".join(f"{quoted(name)}: {dtype}" for name in types)}}},
        grid={grid},
        threadgroup=(256, 1, 1),
        output_shapes={{{shapes}}},
        output_dtypes={{{dtypes}}},
    )
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


FORM = Form(_NAME, write, runs_here=True)
