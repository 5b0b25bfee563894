"""The families of kernels that porter writes, in order of preference."""

from __future__ import annotations

from porter.aten.native_functions import NativeFunction
from porter.aten.stubs import StubCall
from porter.metal.families import elementwise, random
from porter.metal.kernel import KernelFamily

FAMILIES: tuple[KernelFamily, ...] = (random, elementwise)


def find_family(function: NativeFunction, call: StubCall) -> KernelFamily:
    """Returns the first family that may write the kernel of a stub. If none may, raises the last one's refusal."""
    refusals = [family.refusal(function, call) for family in FAMILIES]
    found = next((family for family, refused in zip(FAMILIES, refusals, strict=True) if refused is None), None)
    if found is None:
        assert refusals[-1] is not None
        raise refusals[-1]
    return found
