"""Core AI: a `TorchMetalKernel`. Not yet run with Core AI's own, which needs a Mac."""

from __future__ import annotations
import __future__

import ast
import hashlib
import linecache
import re
import textwrap
from collections.abc import Collection, Mapping
from typing import Any

import torch

from porter.core.errors import Place, PorterError
from porter.kernels.call import metal_type
from porter.kernels.export.core_stage import read_stage
from porter.kernels.export.forms import Files, Form, Source, listed, quoted, reference_name_and_source, refuse
from porter.kernels.export.reading import FoundCall, find_call
from porter.kernels.kernel import Kernel, MetalParameter
from porter.kernels.references import Reference
from porter.kernels.signature import ATTRIBUTES, Content, blank_comments, described, helpers, replace_placeholder, words
from porter.kernels.torch_metal_kernel import TorchMetalKernel

_NAME = "coreai"
_PARAMETERS = (
    "name", "input_names", "result_names", "src", "torch_defn", "metal_params", "helper_src", "template_dtypes",
)  # fmt: skip


def write(source: Source) -> Files:
    """A module with the kernel and its torch definition, and with the call that a script makes of it.

    Raises PTR228 and PTR231.
    """
    kernel = source.kernel
    _check(source)
    stage = read_stage(source) if source.use is not None and not kernel.tensors else None
    names = _argument_names(source)
    if stage is None:
        defined, definition = reference_name_and_source(kernel, source.reference, _NAME)
    else:
        defined = f"{kernel.name}_reference"
        definition = stage.write_reference(defined)
    typed = _typed_templates(source)
    numbers = stage.declare_numbers(names) if stage else []
    before = "".join([*_pointers(source, names), *numbers, *_descriptions(source, names), *_constants(source)])
    body = before + textwrap.dedent(kernel.body).strip("\n") + "\n" if before else kernel.body
    parameters = "".join(
        f'        MetalParameter("{p.name}", "{p.dtype}", "{p.attribute}"),\n' for p in _parameters(kernel)
    )
    header = helpers(words(kernel.body) | words(kernel.header)) + kernel.header
    placeholders = dict(kernel.placeholders)
    for name, word in typed:
        placeholder = _placeholder(word, words(body) | words(header))
        placeholders[names[name]] = placeholder
        body, header = (replace_placeholder(each, word, placeholder) for each in (body, header))
    inputs = tuple(names[name] for name in _tensors(source))
    imports = "import math\n" if stage and "math." in definition else ""
    text = f'''"""Kernel `{kernel.name}` for Core AI, written by porter."""

{imports}import torch
from coreai.authoring import MetalParameter
from coreai_torch import TorchMetalKernel

{definition}
kernel = TorchMetalKernel(
    "{kernel.name}",
    input_names={listed(inputs)},
    result_names={listed(tuple(names[name] for name in kernel.outputs))},
    src={quoted(body)},
    torch_defn={defined},
    metal_params=[
{parameters}    ],
    helper_src={quoted(header)},
    template_dtypes={placeholders!r},
)
{stage.write_call(kernel.name) if stage else ""}'''
    return {f"{kernel.name}.py": text}


def _parameters(kernel: Kernel) -> tuple[MetalParameter, ...]:
    named = words(kernel.body) - {p.name for p in kernel.parameters}
    found = (MetalParameter(a.name, a.type, a.name) for a in ATTRIBUTES.values() if a.name in named)
    return (*kernel.parameters, *found)


def _check(source: Source) -> None:
    kernel = source.kernel
    if kernel.atomic_outputs or (source.example is not None and source.example.init_value is not None):
        raise refuse(kernel, _NAME, "has atomic outputs or a start value", "Write each output element once.")
    numbers = [] if source.example is None else set(kernel.inputs) - set(_tensors(source))
    if numbers and source.use is None:
        raise refuse(kernel, _NAME, "takes numbers", "Pass tensors of one element, or export it of a script's stage.")


def _tensors(source: Source) -> tuple[str, ...]:
    """The inputs that are tensors, as all of Core AI's are."""
    if source.example is None:
        return source.kernel.inputs
    pairs = zip(source.kernel.inputs, source.example.inputs, strict=True)
    return tuple(name for name, value in pairs if isinstance(value, torch.Tensor))


def _ranks(source: Source) -> dict[str, int]:
    """The number of dimensions of each tensor of the call, if there is one."""
    if source.example is None:
        return {}
    names = (*source.kernel.inputs, *source.kernel.outputs)
    values = (*source.example.inputs, *source.example.outputs)
    return {name: len(v.shape) for name, v in zip(names, values, strict=True) if not isinstance(v, (bool, int, float))}


def _argument_names(source: Source) -> dict[str, str]:
    """What the kernel's tensors are called, where the body keeps their names for the memory behind them.

    Core AI's tensors take an index for each dimension, and are no pointers.
    """
    kernel = source.kernel
    plain = {name: name for name in (*_tensors(source), *kernel.outputs)}
    if kernel.tensors:
        return plain
    ranks = _ranks(source)
    code = blank_comments(kernel.body)
    for name in plain:
        as_vector = all(found[1] for found in re.finditer(rf"(?<![\w.]){name}\b(\s*\[)?", code))
        if ranks.get(name, 1) > 1 or not as_vector:
            plain[name] = f"{name}_tensor"
    return plain


def _pointers(source: Source, names: Mapping[str, str]) -> list[str]:
    """Declarations of pointers to the memory behind tensors, from the address of their first element."""
    ranks = _ranks(source)
    return [
        f"auto {name} = &{argument}[{', '.join(['0'] * max(ranks.get(name, 1), 1))}];\n"
        for name, argument in names.items()
        if argument != name
    ]


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


def _placeholder(word: str, others: Collection[str]) -> str:
    """A word for a type that is part of no other one, since Core AI may replace it wherever its letters stand."""
    within = any(word in other and other not in (word, *(f"{word}{n}" for n in (2, 3, 4))) for other in others)
    return f"{word}_TYPE" if within else word


def _constants(source: Source) -> list[str]:
    """Template numbers, which Core AI has none of, as constants of the body."""
    arguments = source.example.template if source.example else ()
    return [f"constexpr {a.kind} {a.name} = {a.value};\n" for a in arguments if a.kind != "typename"]


def _descriptions(source: Source, names: Mapping[str, str]) -> list[str]:
    """What the body asks to know of tensors, which are dense, from their extents, innermost dimension first."""
    found = []
    for name, argument in names.items():
        rank = _ranks(source).get(name, 0)
        extents = [f"int({argument}.get_extent({d}))" for d in range(rank)]
        strides = [" * ".join(["1l", *extents[:d]]) for d in range(rank)]
        texts = {
            Content.SHAPE: f"const int {name}_shape[] = {{{', '.join(reversed(extents))}}};\n",
            Content.STRIDES: f"const long {name}_strides[] = {{{', '.join(reversed(strides))}}};\n",
            Content.RANK: f"const int {name}_ndim = {rank};\n",
            Content.STORAGE_OFFSET: f"const long {name}_storage_offset = 0;\n",
        }
        found += [texts[content] for content in described(source.kernel, name)]
    return found


def read(text: str) -> TorchMetalKernel:
    """The kernel of the one call of `TorchMetalKernel` in a file. Nothing of the file runs.

    Raises PTR229 and PTR230.
    """
    required = ("name", "input_names", "result_names", "src")
    found = find_call(text, ("TorchMetalKernel",), _PARAMETERS, ("torch_defn",), required)
    return TorchMetalKernel(**found.arguments, torch_defn=_definition(found, text))


def _definition(found: FoundCall, text: str) -> Reference:
    """The function that `torch_defn` names: one of torch, or one that the file defines with nothing but torch.

    The file's functions are defined, not called: what Python evaluates to define one is refused.
    """
    expression = found.functions.get("torch_defn")
    if expression is None:
        raise PorterError("PTR230", "the kernel has no `torch_defn`", hint="Add a torch function of its inputs.")
    imports = [n for n in found.module.body if isinstance(n, (ast.Import, ast.ImportFrom)) and _is_torch(n)]
    functions = [n for n in found.module.body if isinstance(n, ast.FunctionDef)]
    for function in functions:
        _refuse_running(function)
    if not _is_path(expression):
        what = f"`torch_defn` is `{ast.unparse(expression)[:60]}`, which only running the file could tell"
        raise PorterError("PTR230", what, Place("", expression.lineno), "Name a function of torch, or of the file.")
    scope: dict[str, Any] = {"torch": torch}
    name = f"<torch_defn {hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()[:8]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)  # for inspect.getsource
    lazily = __future__.annotations.compiler_flag  # annotations are kept as text
    try:
        exec(compile(ast.Module([*imports, *functions], []), name, "exec", lazily), scope)
        reference: Reference = eval(compile(ast.Expression(expression), "<torch_defn>", "eval"), scope)
    except (NameError, AttributeError, ImportError, SyntaxError) as error:
        raise PorterError(
            "PTR230", f"`torch_defn` is not defined in the file: {error}", hint="Define it beside the kernel."
        ) from error
    return reference


def _refuse_running(function: ast.FunctionDef) -> None:
    """Raises PTR230 for a decorator, or a default that is no literal: Python runs these to define the function."""
    defaults = [each for each in (*function.args.defaults, *function.args.kw_defaults) if each is not None]
    if function.decorator_list:
        what, line = "has a decorator", function.decorator_list[0].lineno
    elif computed := next((each for each in defaults if not _is_literal(each) and not _is_path(each)), None):
        what, line = f"has the default `{ast.unparse(computed)[:60]}`", computed.lineno
    else:
        return
    hint = "Import a file whose functions can be defined without running any of its code."
    raise PorterError("PTR230", f"the function `{function.name}` {what}", Place("", line), hint)


def _is_literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def _is_path(value: ast.expr) -> bool:
    """Whether an expression is a name, or an attribute of one: `torch.nn.functional.silu`."""
    return _is_path(value.value) if isinstance(value, ast.Attribute) else isinstance(value, ast.Name)


def _is_torch(node: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return all(name.split(".")[0] in ("torch", "math") for name in names)


FORM = Form(_NAME, write, read)
