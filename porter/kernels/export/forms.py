"""What a form of export is: how a kernel is written for another ecosystem, and read back."""

from __future__ import annotations

import dis
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeAlias

import torch

from porter.core.errors import PorterError
from porter.kernels.call import Call, Value
from porter.kernels.kernel import Kernel
from porter.kernels.loading import AnyKernel, StageUse
from porter.kernels.mlx.gathering import GatheredKernels
from porter.kernels.operator import has_own_gradient
from porter.kernels.references import Reference

Files: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Source:
    """What is exported: the kernel, what it computes, and a call of the types that it is for, if one is given.

    `use` is how a script made the call, and `others` are calls that it makes with other element types.
    """

    kernel: Kernel
    reference: Reference | None
    example: Call | None
    use: StageUse | None = None
    others: tuple[Call, ...] = ()

    @property
    def call(self) -> Call:
        """The example. Raises PTR228 if there is none, for a form whose source depends on types."""
        if self.example is None:
            raise PorterError(
                "PTR228", f"kernel `{self.kernel.name}` is exported without inputs, whose types this form depends on",
                hint="Give inputs like those of a call.",
            )  # fmt: skip
        return self.example


@dataclass(frozen=True)
class Form:
    """A form: `write` gives files by path, `read` makes a kernel of the text of one, `run` takes those that a file
    makes while it runs, with code that calls it.
    """

    name: str
    write: Callable[[Source], Files]
    read: Callable[[str], AnyKernel] | None = None
    run: Callable[[Path, Sequence[str]], GatheredKernels] | None = None


def refuse(kernel: Kernel, form: str, what: str, hint: str) -> PorterError:
    """What is raised for a kernel that uses what a form does not have."""
    return PorterError("PTR231", f"kernel `{kernel.name}` {what}, which the form {form} does not have", hint=hint)


def check_gradient(kernel: AnyKernel) -> None:
    """Raises PTR256 for a gradient that an export would lose: one that the reference does not have by itself."""
    if has_own_gradient(kernel.reference, kernel.vjp):
        raise PorterError(
            "PTR256", f"kernel `{kernel.kernel.name}` has a vjp of its own, and no export takes it along",
            hint="Write the gradient there by hand, and export with --without-vjp (without_vjp=True).",
        )  # fmt: skip


def source_of(kernel: AnyKernel, inputs: Sequence[Value] | None) -> Source:
    """A kernel, and the call that it makes for example inputs."""
    return Source(kernel.kernel, kernel.reference, None if inputs is None else kernel.call_for(inputs))


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


def list_globals(code: CodeType) -> set[str]:
    """The names of a module that a function reads: no attribute of another value, such as `torch.softmax`, is one."""
    names = {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}
    return names.union(*(list_globals(each) for each in code.co_consts if isinstance(each, CodeType)))


def _with_called(function: Reference, found: list[Reference]) -> list[Reference]:
    """The functions of its module that a function calls, and those that they call, then itself."""
    if function in found or not isinstance(function, FunctionType):
        return found
    for name in sorted(list_globals(function.__code__)):
        called = function.__globals__.get(name)
        if isinstance(called, FunctionType) and called.__globals__ is function.__globals__ and called is not function:
            _with_called(called, found)
    found.append(function)
    return found
