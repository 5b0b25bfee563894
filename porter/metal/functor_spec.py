"""What a functor has to compute, and how its file writes functors, before a source for it is chosen."""

from __future__ import annotations

from dataclasses import dataclass

from porter.aten.meta import TypeRule
from porter.aten.metal_functions import Library, MetalFunction
from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.cpu.kernels import CpuKernel
from porter.metal.functor import FunctorStyle
from porter.mpsgraph.graph import Graph


@dataclass(frozen=True)
class FunctorSpec:
    """What a functor computes. `names` are the functions it may already be known by, its own first."""

    names: tuple[str, ...]
    inputs: tuple[str, ...]
    scalars: tuple[str, ...]
    rule: TypeRule
    cpu: CpuKernel
    graph: Graph | None
    library: Library
    style: FunctorStyle

    @property
    def params(self) -> tuple[str, ...]:
        return self.style.params(len(self.inputs))

    @property
    def arguments(self) -> tuple[str, ...]:
        """The functor's parameters: elements, then scalars."""
        return (*self.params, *self.scalars)

    def find_function(self, kind: Kind) -> MetalFunction | None:
        """The function of the fork's headers that computes this for a kind of element; None where none does."""
        found = (self.library.find(name, len(self.arguments), kind) for name in self.names)
        return next((function for function in found if function), None)

    def result(self, dtype: DType) -> DType | None:
        return self.rule.result(dtype)

    @property
    def served(self) -> tuple[DType, ...]:
        """What the CPU supports, of what Metal has; complex halves where the old path took them too."""
        return tuple(dtype for dtype in dtypes.ALL if self._serves(dtype))

    def _serves(self, dtype: DType) -> bool:
        if self.result(dtype) is None:
            return False
        if dtype is dtypes.HALF2 and self.result(dtype) is dtypes.HALF:
            return False
        if dtype is dtypes.HALF2 and dtypes.FLOAT2 in self.cpu.dtypes:
            return dtype in self.cpu.dtypes or bool(self.graph and self.graph.of(dtype))
        return self.rule.compute(dtype) in self.cpu.dtypes

    def as_float(self, name: str) -> str:
        """A parameter cast to float, the way the kernel file writes it."""
        return f"{self.style.cast}({name})" if self.style.cast else f"float({name})"
