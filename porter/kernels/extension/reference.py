"""A reference as text of its own: a function that needs nothing of its file but torch."""

from __future__ import annotations

import builtins
import inspect
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from porter.core.errors import PorterError

_MODULES: dict[str, ModuleType] = {"torch": torch, "math": math, "F": torch.nn.functional, "Tensor": torch}
HEADER = '''"""What the kernels compute, in torch."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
'''


@dataclass(frozen=True)
class Written:
    """A function's name in the module of references, and its source."""

    name: str
    text: str


def write_reference(kernel: str, function: Callable[..., Any]) -> Written:
    """The source of a kernel's reference. Raises PTR254 if it is more than one function of torch alone."""
    module = getattr(function, "__module__", None) or ""
    if module.partition(".")[0] in ("torch", "") and hasattr(function, "__name__"):
        path = f"{module or 'torch'}.{function.__name__}"
        return Written(f"{kernel}_reference", f"{kernel}_reference = {path}\n")
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>" or function.__closure__:
        raise _refuse(kernel, "is not a plain function of its file")
    needed = _globals(function.__code__) - set(dir(builtins))
    missing = sorted(name for name in needed if name not in _MODULES and name != function.__name__)
    if missing:
        raise _refuse(kernel, f"uses {', '.join(missing)} of its file")
    return Written(function.__name__, textwrap.dedent(inspect.getsource(function)))


def _globals(code: CodeType) -> set[str]:
    """The global names that a function's code loads, those of functions within it included."""
    import dis

    own = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (_globals(each) for each in code.co_consts if isinstance(each, CodeType))
    return own.union(*inner)


def _refuse(kernel: str, why: str) -> PorterError:
    return PorterError(
        "PTR254", f"the reference of kernel `{kernel}` {why}, so the extension cannot take it along",
        hint="Make it one function that uses only its arguments, torch and math.",
    )  # fmt: skip
