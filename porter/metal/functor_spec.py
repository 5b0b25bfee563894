"""The specification of a functor: what it has to compute, and the style of its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from porter.aten.meta import TypeRule
from porter.aten.metal_functions import Library, MetalFunction
from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.cpu.kernels import CpuKernel
from porter.metal.functor import FunctorStyle
from porter.metal.params import PARAMETER, ParamsStruct
from porter.metal.source import Source
from porter.mpsgraph.graph import Graph


@dataclass(frozen=True)
class FunctorSpec:
    """What a functor has to compute. `names` are the functions it may correspond to, its own name first.

    Several scalars come in a `struct`. `cuda` is the kernel of CUDA, if it is needed. What `keeps` dtypes takes those
    that the old graph took and the CPU does not, too.
    """

    names: tuple[str, ...]
    inputs: tuple[str, ...]
    scalars: tuple[str, ...]
    rule: TypeRule
    cpu: CpuKernel
    graph: Graph | None
    library: Library
    style: FunctorStyle
    struct: ParamsStruct | None = None
    cuda: CpuKernel | None = None
    source: Source = Source.ANY
    keeps: bool = False

    @property
    def params(self) -> tuple[str, ...]:
        return self.style.params(len(self.inputs))

    @property
    def given(self) -> tuple[str, ...]:
        """The scalars as the functor's body spells them."""
        return tuple(f"{PARAMETER}.{name}" for name in self.scalars) if self.struct else self.scalars

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the functor computes with, as its body spells it: elements, then scalars."""
        return (*self.params, *self.given)

    def find_function(self, kind: Kind) -> MetalFunction | None:
        """Returns the function of the fork's headers that computes this for a kind of element, or None."""
        found = (self.library.find(name, len(self.arguments), kind) for name in self.names)
        return next((function for function in found if function), None)

    def result(self, dtype: DType) -> DType | None:
        return self.rule.result(dtype)

    @property
    def served(self) -> tuple[DType, ...]:
        """The dtypes that both the CPU and Metal support, and halves wherever the CPU has float; and those kept.

        Complex half only if the old path supports it too.
        """
        return tuple(dtype for dtype in dtypes.ALL if self._serves(dtype) or dtype in self.kept)

    @property
    def kept(self) -> tuple[DType, ...]:
        """The integers of the old graph that the CPU does not support: they are computed in float, as floats are."""
        has_others = any(dtype.kind is Kind.INTEGRAL and self._serves(dtype) for dtype in dtypes.ALL)
        return () if has_others else tuple(dtype for dtype in self._list_dropped() if dtype.kind is Kind.INTEGRAL)

    @property
    def given_up(self) -> tuple[DType, ...]:
        """The dtypes of the old graph that are not kept: no source defines the functor for them."""
        return tuple(dtype for dtype in self._list_dropped() if dtype not in (*self.kept, dtypes.BOOL))

    def _list_dropped(self) -> Iterator[DType]:
        for dtype in dtypes.ALL if self.keeps and self.graph else ():
            if not self._serves(dtype) and self.result(dtype) == dtype and self.graph and self.graph.of(dtype):
                yield dtype

    def _serves(self, dtype: DType) -> bool:
        if self.result(dtype) is None:
            return False
        if dtype is dtypes.HALF2 and self.result(dtype) is dtypes.HALF:
            return False
        if dtype is dtypes.HALF2 and dtypes.FLOAT2 in self.cpu.dtypes:
            return dtype in self.cpu.dtypes or bool(self.graph and self.graph.of(dtype))
        if dtype.is_reduced and dtypes.FLOAT in self.cpu.dtypes:
            return True
        return self.rule.compute(dtype) in self.cpu.dtypes

    def as_float(self, name: str) -> str:
        """Returns a parameter cast to float, in the style of the kernel file."""
        return f"{self.style.cast}({name})" if self.style.cast else f"float({name})"
