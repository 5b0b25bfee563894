"""What ports of rows by their recorded programs come to, as values: most plans have none, and import no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from porter.aten.operator import Blocked, ServedFunction
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.metal.functor import Origin, Provenance
from porter.plan.plan import Draft
from porter.plan.removal import Removal

if TYPE_CHECKING:
    from porter.metal.codegen.schedule import Schedule
    from porter.metal.forms import Computation

FROM_RECORDING = Origin((), Provenance("the recorded graph"), 0, 1)
# The recorded programs of a row; None where nothing is recorded of it.
ReadPrograms = Callable[[ServedFunction], "Computation | None"]


def no_programs(_served: ServedFunction) -> Computation | None:
    """No recorded programs."""
    return None


# There were no runs, for a reason that says nothing of the row: asked again, it may be ported.
_NOT_RUN = frozenset({"PTR100", "PTR141", "PTR142", "PTR170", "PTR171", "PTR172", "PTR175", "PTR176", "PTR182"})


def also_without_stub(error: PorterError, without_stub: PorterError) -> PorterError:
    """Why runs give no port of a row; the hint ends with why no stub serves it, without what would make one.

    Where the row could not be run because of the machine, that would mislead: the error is all there is to say.
    """
    if error.code in _NOT_RUN:
        return error
    place = f"{without_stub.place}: " if without_stub.place else ""
    hints = filter(None, (error.hint, f"No stub serves it either: {place}{without_stub.code} {without_stub.what}"))
    return PorterError(error.code, error.what, error.place, "\n  ".join(hints))


@dataclass(frozen=True)
class WrittenKernel:
    """A kernel as written to a file, and the torch dtypes of what it is instantiated for.

    `entries` are the names that host code appends types to, and how many.
    """

    file: str
    name: str
    source: str
    instances: tuple[tuple[DType, ...], ...]
    entries: tuple[tuple[str, int], ...]
    schedule: Schedule | None = None


@dataclass(frozen=True)
class NativePort:
    """The draft with the rows ported so far, and those that could not be, with why."""

    draft: Draft
    ported: tuple[ServedFunction, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    kernels: tuple[WrittenKernel, ...] = ()
    removed: tuple[Removal, ...] = ()
    notes: tuple[str, ...] = ()  # what the ports take away

    @property
    def dtypes(self) -> set[str]:
        """The torch names of the types of first operands that there are kernels for."""
        return {instance[0].torch for kernel in self.kernels for instance in kernel.instances}
