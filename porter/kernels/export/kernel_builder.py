"""Hugging Face's kernel-builder: a project with a Metal section. Not yet built: that needs Nix and a Mac."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from string import Template

import torch

from porter.kernels.call import describe, number_type
from porter.kernels.export.forms import Files, Form, Source
from porter.kernels.launch import write_signature
from porter.kernels.signature import Buffer, Content

_NAME = "kernel-builder"
_CPP_NUMBERS = {torch.bool: ("bool", "bool"), torch.int32: ("int64_t", "int32_t"), torch.float32: ("double", "float")}
_BUILD = """[general]
name = "{dashed}"
version = 1
backends = ["metal"]

[torch]
src = ["torch-ext/torch_binding.cpp", "torch-ext/torch_binding.h"]

[kernel.{name}_metal]
backend = "metal"
depends = ["torch"]
src = ["{name}_metal/{name}.mm", "{name}_metal/{name}.metal"]
"""
_FLAKE = """{{
  description = "{name}";

  inputs.kernel-builder.url = "github:huggingface/kernels";

  outputs =
    {{ self, kernel-builder }}:
    kernel-builder.lib.genKernelFlakeOutputs {{
      inherit self;
      path = ./.;
    }};
}}
"""
_HEADER = """#pragma once

#include <torch/torch.h>

{signature};
"""
_BINDING = """#include <torch/library.h>

#include "registration.h"
#include "torch_binding.h"

TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {{
  ops.def("{schema}");
#if defined(METAL_KERNEL)
  ops.impl("{name}", torch::kMPS, &{name});
#endif
}}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
"""
_PACKAGE = """import torch

from ._ops import ops


def {name}({inputs}, *, threads, group_size, {shapes}):
{contiguous}{outputs}    ops.{name}({arguments}, threads, group_size)
    return {results}
"""


def write(source: Source) -> Files:
    """A project for kernel-builder, for the types of the example. Raises PTR228."""
    kernel, generated = source.kernel, write_signature(source.kernel, source.call)
    name = kernel.name
    signature = f"void {name}({', '.join(_cpp_parameters(source))})"
    host = Template(Path(__file__).with_suffix(".mm").read_text()).substitute(
        name=name, function=generated.function, signature=signature, checks="".join(_checks(source)),
        bindings="".join(_binding(source, index, each) for index, each in enumerate(generated.buffers)),
    )  # fmt: skip
    package = name
    return {
        "build.toml": _BUILD.format(dashed=name.replace("_", "-"), name=name),
        "flake.nix": _FLAKE.format(name=name),
        f"{name}_metal/{name}.metal": generated.source,
        f"{name}_metal/{name}.mm": host,
        "torch-ext/torch_binding.h": _HEADER.format(signature=signature),
        "torch-ext/torch_binding.cpp": _BINDING.format(name=name, schema=_schema(source)),
        f"torch-ext/{package}/__init__.py": _python(source),
    }


def _numbers(source: Source) -> dict[str, torch.dtype]:
    pairs = zip(source.kernel.inputs, source.call.inputs, strict=True)
    return {name: number_type(value) for name, value in pairs if not isinstance(value, torch.Tensor)}


def _cpp_parameters(source: Source) -> Iterator[str]:
    numbers = _numbers(source)
    for name in source.kernel.inputs:
        yield f"{_CPP_NUMBERS[numbers[name]][0]} {name}" if name in numbers else f"const at::Tensor& {name}"
    yield from (f"at::Tensor& {name}" for name in source.kernel.outputs)
    yield from ("at::IntArrayRef threads", "at::IntArrayRef group_size")


def _schema(source: Source) -> str:
    words = {"bool": "bool", "int64_t": "int", "double": "float"}
    numbers = _numbers(source)
    inputs = [
        f"{words[_CPP_NUMBERS[numbers[name]][0]]} {name}" if name in numbers else f"Tensor {name}"
        for name in source.kernel.inputs
    ]
    outputs = [f"Tensor({chr(ord('a') + at)}!) {name}" for at, name in enumerate(source.kernel.outputs)]
    return f"{source.kernel.name}({', '.join([*inputs, *outputs, 'int[] threads', 'int[] group_size'])}) -> ()"


def _checks(source: Source) -> Iterator[str]:
    for name, value in zip(source.kernel.inputs, source.call.inputs, strict=True):
        if isinstance(value, torch.Tensor):
            yield f'  TORCH_CHECK({name}.is_mps(), "{name} has to be on the mps device");\n'
            yield (
                f"  TORCH_CHECK({name}.scalar_type() == c10::CppTypeToScalarType<{_cpp(value.dtype)}>::value, "
                f'"{name} has to be {str(value.dtype).removeprefix("torch.")}");\n'
            )


def _cpp(dtype: torch.dtype) -> str:
    cpp = describe(dtype).cpp
    return f"at::{cpp}" if cpp[0].isupper() else cpp


def _binding(source: Source, index: int, buffer: Buffer) -> str:
    numbers = _numbers(source)
    name = buffer.operand
    match buffer.content:
        case Content.SHAPE | Content.EXTENTS:
            call = f"bind<int32_t>(encoder, {name}.sizes(), {index})"
        case Content.STRIDES:
            call = f"bind<int64_t>(encoder, {name}.strides(), {index})"
        case Content.RANK:
            call = f"bind<int32_t>(encoder, int32_t({name}.dim()), {index})"
        case Content.STORAGE_OFFSET:
            call = f"bind<int64_t>(encoder, {name}.storage_offset(), {index})"
        case _ if name in numbers:
            narrow = _CPP_NUMBERS[numbers[name]][1]
            call = f"bind<{narrow}>(encoder, {narrow}({name}), {index})"
        case _:
            call = f"bind(encoder, {name}, {index})"
    return f"      {call};\n"


def _python(source: Source) -> str:
    kernel, start = source.kernel, source.call.init_value
    device = next(
        (n for n, v in zip(kernel.inputs, source.call.inputs, strict=True) if isinstance(v, torch.Tensor)), ""
    )
    where = f"{device}.device" if device else '"mps"'
    outputs = ""
    for name, output in zip(kernel.outputs, source.call.outputs, strict=True):
        made = "torch.empty(" if start is None else "torch.full("
        value = "" if start is None else f"{start!r}, "
        outputs += f"    {name} = {made}{name}_shape, {value}dtype={output.dtype}, device={where})\n"
    dense = [n for n in kernel.inputs if n not in _numbers(source)] if kernel.row_contiguous else []
    return _PACKAGE.format(
        name=kernel.name, inputs=", ".join(kernel.inputs), shapes=", ".join(f"{n}_shape" for n in kernel.outputs),
        contiguous="".join(f"    {n} = {n}.contiguous()\n" for n in dense), outputs=outputs,
        arguments=", ".join((*kernel.inputs, *kernel.outputs)), results=", ".join(kernel.outputs),
    )  # fmt: skip


FORM = Form(_NAME, write)
