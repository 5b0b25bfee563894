"""What the kernels of a port cost where rows are long: launches, and bytes beside those that the loop form counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from porter.core import dtypes
from porter.core.errors import PorterError
from porter.loops.expressions import Buffer, Expr, Op, ReductionKind, find_reductions, walk
from porter.loops.fusion import LoopNest
from porter.loops.program import Programs, ResultBuffer, SymbolicNest, SymbolicProgram
from porter.metal.loop_spelling import VALUES_OF
from porter.metal.native.kernel import KernelStyle, NativeKernel, write_kernel
from porter.metal.native.moments import TYPE as MOMENTS
from porter.metal.native.moments import find_moments
from porter.metal.native.preparing import prepare
from porter.metal.native.slice_launch import LEAST_ELEMENTS
from porter.metal.native.slices import Partial

_MOMENTS_SIZE = 16
_EXTREMES = (ReductionKind.MAX, ReductionKind.MIN, *VALUES_OF.values())


def slice_lines(style: KernelStyle, program: SymbolicProgram) -> Iterator[str]:
    """A line for each kernel of a program that threadgroups may share the rows of, with what that adds at most."""
    try:
        [made] = prepare(Programs(program.name, (program,))).cases
        for nest in made.nests:
            kernel = write_kernel(made, nest, "kernel", _name_results(made), style)
            if kernel.partials:
                yield _describe(kernel, nest)
    except PorterError as error:
        yield f"{error.code} {error.what}"


def list_together(style: KernelStyle, nests: Sequence[LoopNest]) -> Iterator[Expr]:
    """The reductions that kernels make in a pass of others: extreme values with their indices, and moments."""
    for nest in nests if style.threadgroup_reductions else ():
        if style.welford:
            yield from (each.squares for each in find_moments(nest))
        found = [each for store in nest.stores for each in find_reductions(store.value)]
        indexed = {(each.args[0], each.reduction.loops) for each in found if each.reduction.kind in VALUES_OF}
        extreme = (each for each in found if each.reduction.kind in _EXTREMES)
        yield from (each for each in extreme if (each.args[0], each.reduction.loops) in indexed)


def _name_results(program: SymbolicProgram) -> dict[int, str]:
    return {role.index: f"output{role.index}" for role in program.roles.values() if isinstance(role, ResultBuffer)}


def _describe(kernel: NativeKernel, nest: SymbolicNest) -> str:
    read = sum(_list_read(nest).values())
    kept = sum(_find_size(each, kernel) for each in kernel.partials)
    ratio = 1 + 2 * kept / (LEAST_ELEMENTS * read)
    return f"long rows: 2 launches, {ratio:.2f} times the bytes at most, with what is stored of slices"


def _list_read(nest: SymbolicNest) -> dict[Buffer, int]:
    """The bytes of an element of each buffer that is read."""
    values = chain.from_iterable(walk(store.value) for store in nest.nest.stores)
    loads = (each for each in values if each.op is Op.LOAD and each.dtype is not None)
    return {each.attribute: each.dtype.size for each in loads if isinstance(each.attribute, Buffer) and each.dtype}


def _find_size(partial: Partial, kernel: NativeKernel) -> int:
    """The bytes of what is stored of a slice."""
    if partial.type == MOMENTS:
        return _MOMENTS_SIZE
    known = next((each for each in dtypes.ALL if each.metal == partial.type), None)
    names = [each.name for each in kernel.elements.parameters]
    at = next((i for i, name in enumerate(names) if partial.type.endswith(f"<{name}>")), 0)
    return (known or kernel.elements.instances[0][at].opmath).size
