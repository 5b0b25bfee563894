"""Pieces of Python source."""

from __future__ import annotations

import inspect
import textwrap
from types import FunctionType

import torch

from porter.core.errors import PorterError
from porter.kernels.kernel import Kernel
from porter.kernels.references import Reference


def quoted(text: str) -> str:
    """`text` as a Python literal, over several lines where it has them."""
    if "\n" not in text or '"""' in text or text.endswith(('"', "\\")):
        return repr(text).replace("'", '"') if "'" not in text and '"' not in text else repr(text)
    return f'r"""{text}"""' if "\\" in text else f'"""{text}"""'


def listed(names: tuple[str, ...]) -> str:
    """A list of strings, with double quotes."""
    return f"[{', '.join(quoted(name) for name in names)}]"


def reference_name_and_source(kernel: Kernel, reference: Reference | None, form: str) -> tuple[str, str]:
    """How a file calls a kernel's reference, and the source that it needs for that.

    A function of torch is called by its name; another one is copied, if it is a plain function of a module, with the
    functions of that module that it calls.
    """
    module, name = getattr(reference, "__module__", None), getattr(reference, "__qualname__", "")
    inner = getattr(reference, "__name__", "")
    if reference is not None and getattr(torch, inner, None) is reference:
        return f"torch.{inner}", ""
    if module is not None and module.startswith("torch") and name.isidentifier():
        return f"{module}.{name}", f"import {module}\n" if module != "torch" else ""
    if reference is None or not name.isidentifier() or getattr(reference, "__closure__", None):
        raise PorterError(
            "PTR231", f"the reference of kernel `{kernel.name}` cannot be written down, which the form {form} needs",
            hint="Define the reference with def, at the top of a module.",
        )  # fmt: skip
    return name, "\n\n".join(textwrap.dedent(inspect.getsource(each)) for each in _with_called(reference, []))


def _with_called(function: Reference, found: list[Reference]) -> list[Reference]:
    """The functions of its module that a function calls, and those that they call, then itself."""
    if function in found or not isinstance(function, FunctionType):
        return found
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, FunctionType) and called.__globals__ is function.__globals__ and called is not function:
            _with_called(called, found)
    found.append(function)
    return found
