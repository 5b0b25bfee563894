"""Core AI: a `TorchMetalKernel`. Not yet run with Core AI's own, which needs a Mac."""

from __future__ import annotations

import ast
from typing import Any

import torch

from porter.core.errors import PorterError
from porter.kernels.attributes import ATTRIBUTES
from porter.kernels.body import words
from porter.kernels.export.forms import Files, Form, Source, refuse
from porter.kernels.export.reading import FoundCall, find_call
from porter.kernels.export.text import listed, quoted, reference_name_and_source
from porter.kernels.kernel import Kernel, MetalParameter
from porter.kernels.prelude import helpers
from porter.kernels.references import Reference
from porter.kernels.signature import Content, described
from porter.kernels.torch_metal_kernel import TorchMetalKernel
from porter.kernels.types import metal_type

_NAME = "coreai"
_PARAMETERS = (
    "name", "input_names", "result_names", "src", "torch_defn", "metal_params", "helper_src", "template_dtypes",
)  # fmt: skip


def write(source: Source) -> Files:
    """A module with the kernel and its torch definition. Raises PTR228 and PTR231."""
    kernel = source.kernel
    _check(source)
    defined, definition = reference_name_and_source(kernel, source.reference, _NAME)
    placeholders = dict(kernel.placeholders) | dict(_typed_templates(source))
    before = "".join(_shapes(source)) + "".join(_constants(source))
    body = before + kernel.body.lstrip("\n") if before else kernel.body
    parameters = "".join(
        f'        MetalParameter("{p.name}", "{p.dtype}", "{p.attribute}"),\n' for p in _parameters(kernel)
    )
    header = helpers(words(kernel.body) | words(kernel.header)) + kernel.header
    text = f'''"""Kernel `{kernel.name}` for Core AI, written by porter."""

import torch
from coreai_torch import MetalParameter, TorchMetalKernel

{definition}
kernel = TorchMetalKernel(
    "{kernel.name}",
    input_names={listed(kernel.inputs)},
    result_names={listed(kernel.outputs)},
    src={quoted(body)},
    torch_defn={defined},
    metal_params=[
{parameters}    ],
    helper_src={quoted(header)},
    template_dtypes={placeholders!r},
)
'''
    return {f"{kernel.name}.py": text}


def _parameters(kernel: Kernel) -> tuple[MetalParameter, ...]:
    named = words(kernel.body) - {p.name for p in kernel.parameters}
    found = (MetalParameter(a.name, a.type, a.name) for a in ATTRIBUTES.values() if a.name in named)
    return (*kernel.parameters, *found)


def _check(source: Source) -> None:
    kernel = source.kernel
    if kernel.atomic_outputs or (source.example is not None and source.example.init_value is not None):
        raise refuse(kernel, _NAME, "has atomic outputs or a start value", "Write each output element once.")
    for name in (*kernel.inputs, *kernel.outputs):
        asked = set(described(kernel, name)) - {Content.SHAPE}
        if asked:
            raise refuse(kernel, _NAME, f"reads {name}{min(c.value for c in asked)}", "Index dense memory.")
    if source.example is not None and not all(isinstance(v, torch.Tensor) for v in source.example.inputs):
        raise refuse(kernel, _NAME, "takes numbers", "Pass tensors of one element.")


def _typed_templates(source: Source) -> list[tuple[str, str]]:
    """Template types that are those of an input, which Core AI replaces in the text."""
    found = []
    for argument in source.example.template if source.example else ():
        if argument.kind == "typename":
            same = (n for n, v in zip(source.kernel.inputs, source.call.inputs, strict=True)
                    if isinstance(v, torch.Tensor) and metal_type(v.dtype) == argument.value)  # fmt: skip
            name = next(same, None)
            if name is None:
                hint = "Give inputs of which one has the type."
                raise refuse(source.kernel, _NAME, f"has a type `{argument.name}` of no input", hint)
            found.append((name, argument.name))
    return found


def _constants(source: Source) -> list[str]:
    """Template numbers, which Core AI has none of, as constants of the body."""
    arguments = source.example.template if source.example else ()
    return [f"constexpr {a.kind} {a.name} = {a.value};\n" for a in arguments if a.kind != "typename"]


def _shapes(source: Source) -> list[str]:
    """Shapes that the body asks for, from the extents of tensors, which count from the innermost dimension."""
    found = []
    names = (*source.kernel.inputs, *source.kernel.outputs)
    for at, name in enumerate(names):
        if Content.SHAPE in described(source.kernel, name):
            values = (*source.call.inputs, *source.call.outputs)
            rank = len(getattr(values[at], "shape", ()))
            extents = ", ".join(f"int({name}.get_extent({d}))" for d in reversed(range(rank)))
            found.append(f"const int {name}_shape[] = {{{extents}}};\n")
    return found


def read(text: str) -> TorchMetalKernel:
    """The kernel of the one call of `TorchMetalKernel` in a file. Runs its torch definition alone.

    Raises PTR229 and PTR230.
    """
    found = find_call(text, ("TorchMetalKernel",), _PARAMETERS, ("torch_defn",))
    return TorchMetalKernel(**found.arguments, torch_defn=_definition(found))


def _definition(found: FoundCall) -> Reference:
    """The function that `torch_defn` names: one of torch, or one that the file defines with nothing but torch."""
    expression = found.functions.get("torch_defn")
    if expression is None:
        raise PorterError("PTR230", "the kernel has no `torch_defn`", hint="Add a torch function of its inputs.")
    imports = [n for n in found.module.body if isinstance(n, (ast.Import, ast.ImportFrom)) and _is_torch(n)]
    functions = [n for n in found.module.body if isinstance(n, ast.FunctionDef)]
    scope: dict[str, Any] = {"torch": torch}
    exec(compile(ast.Module([*imports, *functions], []), "<torch_defn>", "exec"), scope)
    try:
        reference: Reference = eval(compile(ast.Expression(expression), "<torch_defn>", "eval"), scope)
    except (NameError, AttributeError) as error:
        raise PorterError(
            "PTR230", f"`torch_defn` is not defined in the file: {error}", hint="Define it beside the kernel."
        ) from error
    return reference


def _is_torch(node: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return all(name.split(".")[0] in ("torch", "math") for name in names)


FORM = Form(_NAME, write, read)
