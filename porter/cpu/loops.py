"""The loops that run a scalar function over all elements of an iterator, and where a call of one has that function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from porter.aten.branches import Facts
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.languages import cpp
from porter.languages.definitions import Definition


@dataclass(frozen=True)
class ScalarFunction:
    """What a loop runs for one element.

    `found` has its text if that is not the kernel's own, `templates` the types of its template parameters, and
    `library` the file that defines what it calls. With `wide` it computes in opmath type.
    """

    body: cpp.LambdaExpr
    found: Definition | None = None
    templates: Mapping[str, str] = field(default_factory=dict)
    library: tuple[Checkout, str] | None = None
    wide: bool = False


# Returns the scalar function of a call of a loop, or None if the call has none that can be read.
ReadLoop = Callable[[Definition, cpp.Call, Facts], ScalarFunction | None]


@dataclass(frozen=True)
class Loops:
    """The functions of a device that run a scalar function, and those that only copy."""

    device: str
    names: frozenset[str]
    copies: frozenset[str]
    read: ReadLoop
    is_functor: Callable[[str], bool] = field(default=lambda _type: False)

    @property
    def main(self) -> str:
        """The one that most kernels call."""
        return min(self.names, key=len)

    def refuse(self, what: str, found: Definition, start: int) -> PorterError:
        """Returns the error for host code that is not understood."""
        return PorterError(
            "PTR078",
            f"cannot translate the {self.device} kernel: {what}",
            found.line_of(start),
            "Write the functor by hand if no other source defines it.",
        )


def _read_lambda(_found: Definition, call: cpp.Call, facts: Facts) -> ScalarFunction | None:
    values = map(facts.resolve, call.arguments)
    body = next((value for value in values if isinstance(value, cpp.LambdaExpr)), None)
    return ScalarFunction(body) if body else None


CPU_LOOPS = Loops("CPU", frozenset(("cpu_kernel", "cpu_kernel_vec")), frozenset(("direct_copy_kernel",)), _read_lambda)
