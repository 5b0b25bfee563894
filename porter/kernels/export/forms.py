"""What a form of export is: how a kernel is written for another ecosystem, and read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from porter.core.errors import PorterError
from porter.kernels.call import Call, Value
from porter.kernels.kernel import Kernel
from porter.kernels.operator import has_own_gradient
from porter.kernels.references import Reference
from porter.kernels.uses import AnyKernel, StageUse

Files: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Source:
    """What is exported: the kernel, what it computes, and a call of the types that it is for, if one is given.

    `use` is how a script made the call.
    """

    kernel: Kernel
    reference: Reference | None
    example: Call | None
    use: StageUse | None = None

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
    """A form: `write` gives files by path, `read` makes a kernel of the text of one. `runs_here`: without a Mac."""

    name: str
    write: Callable[[Source], Files]
    read: Callable[[str], AnyKernel] | None = None
    runs_here: bool = False


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
