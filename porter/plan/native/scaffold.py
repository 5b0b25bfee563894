"""The frame of a port that is not complete: each decision that is open is a comment with its code."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from porter.aten.native_functions import NativeFunction
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.formatting import format_block
from porter.languages.source import parse_source
from porter.plan.native.body import replace_graph
from porter.plan.native.files import edit_kernel_file, find_kernel_file
from porter.plan.native.host_function import Check, print_body
from porter.plan.native.target import Target

_WIDTH = 76


def write_frame(fork: Checkout, function: NativeFunction, target: Target, error: PorterError) -> Iterator[Edit]:
    """The function without its graph, which raises until it launches a kernel, and the head of that kernel.

    Raises PTR370 unless the function runs one graph.
    """
    host = replace_graph(target.body, target.place, set(target.variables.values()))
    decision = "\n".join([f"// {line}" for line in textwrap.wrap(f"{error.code}: {error.what}", _WIDTH)])
    check = f'TORCH_CHECK_NOT_IMPLEMENTED(false, "{function.name}: its kernel is not written yet");'
    body = print_body(host.add(Check(decision), Check(check)))
    source = parse_source(target.file, fork.read(target.file))
    head = source.text[target.function.start : target.function.body_start]
    text = format_block(fork, target.file, f"{head}{{\n{body.strip()}\n}}")
    yield Edit(target.file, target.function.start, target.function.end, text)
    kernel_file = find_kernel_file(fork, target.file)
    yield from edit_kernel_file(fork, kernel_file, format_block(fork, kernel_file, _write_kernel(function, decision)))


def _write_kernel(function: NativeFunction, decision: str) -> str:
    """A kernel without statements, of the tensors of a schema."""
    kernel = function.base.strip("_")
    inputs = [
        f"constant T* {'input' if each.name == 'self' else each.name}" for each in function.inputs if each.is_tensor
    ]
    outputs = [f"device T* output{i or ''}" for i in range(function.results)]
    arguments = ", ".join((*outputs, *inputs, "uint tid [[thread_position_in_grid]]"))
    return f"template <typename T>\nkernel void {kernel}({arguments}) {{\n{decision}\n}}\n"
