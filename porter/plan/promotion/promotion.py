"""A kernel of a script with all that an operator of it needs, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from porter.core.errors import Place
from porter.plan.new_operator.schema import Schema
from porter.plan.new_operator.tests import Sample
from porter.plan.promotion.program import Program


@dataclass(frozen=True)
class ScriptWish:
    """What to promote: the operator's name ("" for that of the stage), the stage if there are several, and its tier.

    `instantiate` has values of template parameters that depend on the call.
    """

    op: str
    stage: str | None = None
    simple: bool = False
    schema: str | None = None
    instantiate: tuple[tuple[str, tuple[int, ...]], ...] = ()


class Content(Enum):
    """What the kernel gets of an argument."""

    DATA = "data"
    SHAPE = "shape"
    STRIDES = "strides"
    RANK = "rank"
    STORAGE_OFFSET = "storage offset"


@dataclass(frozen=True)
class Binding:
    """One buffer of the kernel: the number of its input or, after those, of its output, and what it holds."""

    operand: int
    content: Content


@dataclass(frozen=True)
class TypeName:
    """An element type of the kernel: its torch name in each of the cases, and its word in the kernel, if it varies."""

    dtypes: tuple[str, ...]
    word: str = ""


@dataclass(frozen=True)
class KernelText:
    """The Metal source. `outputs` are the names of what it writes.

    `types` and `numbers` are its template parameters, both in the order of `parameters`; `instances` are their values:
    Metal names of types, then numbers. `in_groups` says that its result depends on how threads are grouped.
    """

    before: str
    definition: str
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    types: tuple[TypeName, ...]
    numbers: tuple[str, ...]
    instances: tuple[tuple[str, ...], ...]
    bindings: tuple[Binding, ...]
    in_groups: bool
    row_contiguous: bool


@dataclass(frozen=True)
class Decision:
    """What the operator leaves to a person, and where in the script."""

    place: Place
    what: str
    code: str = "PTR249"

    def __str__(self) -> str:
        return f"{self.place}: {self.code} {self.what}"


@dataclass(frozen=True)
class TestTexts:
    """What the operator's tests need: calls, and the source of `reference_OP`, which computes the same in torch.

    `tolerance` is relative, then absolute; None is the usual one for a result's type.
    """

    samples: tuple[Sample, ...]
    reference: str
    tolerance: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class Promotion:
    """A kernel of a script as an operator. `dtypes` has the element types of each tensor, case by case.

    `cpu` is the reference as C++ for each result, if it could be written so, which needs the headers of `cpu_headers`.
    `empty` are the kernel's inputs that may be empty when it is launched.
    """

    schema: Schema
    program: Program
    kernel: KernelText
    dtypes: Mapping[str, tuple[str, ...]]
    tests: TestTexts
    cpu: tuple[str, ...] = ()
    cpu_headers: tuple[str, ...] = ()
    empty: frozenset[int] = frozenset()
    decisions: tuple[Decision, ...] = ()

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.schema.name

    @property
    def has_opinfo(self) -> bool:
        """Whether OpInfo's tests can call it: they compare with the CPU, and vary the first argument, a tensor."""
        return bool(self.cpu) and self.schema.arguments[0].is_tensor
