"""porter's own form: a script with a `MetalKernel` or a `TorchMetalKernel`, such as an import writes."""

from __future__ import annotations

from porter.kernels.export.forms import Files, Form, Source, listed, quoted, reference_name_and_source
from porter.kernels.kernel import Kernel

_NAME = "porter"


def write(source: Source) -> Files:
    """A script with the kernel. Raises PTR231 for a reference that cannot be written down."""
    kernel = source.kernel
    defined, definition = ("None", "")
    if source.reference is not None:
        defined, definition = reference_name_and_source(kernel, source.reference, _NAME)
    made = _core(kernel, defined) if kernel.tensors else _plain(kernel, defined)
    names = "MetalParameter, TorchMetalKernel" if kernel.tensors else "MetalKernel"
    text = f'''"""Kernel `{kernel.name}`. Run with `python -m aten_overlay`, or on a Mac."""

import torch

from porter.kernels import {names}

{definition}
kernel = {made}
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
