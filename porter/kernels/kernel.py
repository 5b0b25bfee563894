"""A kernel that a person wrote, as a value: its body and what its signature is made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class AddressSpace(Enum):
    """Where Metal keeps what an argument points to."""

    DEVICE = "device"
    CONSTANT = "constant"


@dataclass(frozen=True)
class MetalParameter:
    """An argument of the kernel that Metal fills: `uint id [[thread_position_in_grid]]`."""

    name: str
    dtype: str
    attribute: str


@dataclass(frozen=True)
class Library:
    """Source that stands before a kernel instead of porter's helpers, and its own names for types that Metal lacks."""

    text: str
    types: tuple[tuple[str, str], ...] = ()

    def rename(self, metal: str) -> str:
        return dict(self.types).get(metal, metal)


@dataclass(frozen=True)
class Kernel:
    """The body of a Metal kernel, with names for what it reads and writes.

    `header` is source that stands before the kernel. Attributes that the body names become arguments; `parameters` are
    those under other names. `placeholders` pairs an input with a word of the body that stands for its element type.
    `tensors` says that a subscript may hold several indices (`A[column, row]`), and that inputs have `get_extent`.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    body: str
    header: str = ""
    parameters: tuple[MetalParameter, ...] = ()
    placeholders: tuple[tuple[str, str], ...] = ()
    tensors: bool = False
    row_contiguous: bool = True
    atomic_outputs: bool = False
    library: Library | None = None


@dataclass(frozen=True)
class Operand:
    """What generated source depends on of one input or output: its element type in Metal, and how it is passed."""

    name: str
    metal: str
    rank: int
    space: AddressSpace = AddressSpace.DEVICE

    @property
    def is_value(self) -> bool:
        """Whether the kernel gets a reference to one value instead of a pointer."""
        return self.rank == 0 and self.space is AddressSpace.CONSTANT


@dataclass(frozen=True)
class TemplateArgument:
    """A template parameter and its value, in Metal's words: `typename`, `T`, `float`."""

    kind: str
    name: str
    value: str
