"""Kernels that go over the same rows become one, which reads what they share once."""

from __future__ import annotations

from dataclasses import replace

from porter.loops.fusion import LoopNest, Shape
from porter.loops.program import SymbolicProgram


def merge_nests(case: SymbolicProgram) -> SymbolicProgram:
    """A case with one kernel for its reductions, if all have the same rows and none reads what another writes."""
    nests = [symbolic.nest for symbolic in case.nests]
    written = {store.buffer for nest in nests for store in nest.stores}
    is_apart = not any(buffer in written for nest in nests for buffer in nest.reads())
    if len(nests) < 2 or not is_apart or any(each.shape is not Shape.REDUCTION for each in nests):
        return case
    first = case.nests[0]
    if any(each.rows != first.rows or each.nest.rows != first.nest.rows for each in case.nests):
        return case
    stores = tuple(store for nest in nests for store in nest.stores)
    return replace(case, nests=(replace(first, nest=LoopNest(stores, first.nest.rows)),))
