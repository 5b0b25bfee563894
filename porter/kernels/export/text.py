"""Pieces of Python source."""

from __future__ import annotations

import inspect
import textwrap

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

    A function of torch is called by its name; another one is copied, if it is a plain function of a module.
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
    return name, textwrap.dedent(inspect.getsource(reference))
