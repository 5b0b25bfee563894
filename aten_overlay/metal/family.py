"""Apple's GPU families, as far as a compute kernel can tell them apart, and the one that this process compiles for.

Sources: Apple's "Metal Feature Set Tables" for the GPUs and the limits (developer.apple.com/metal/limits); its note on
64-bit atomics as Dawn's Metal back end takes it (dawn b620b2f: minimum and maximum of `ulong` alone, in device memory,
from family 9 on, and 8 on a Mac); pytorch/pytorch#150566 for simdgroup functions, which take no 64-bit integers;
perplexityai/pplx-garden#23 for the M5's family. Of GitHub's virtual Macs: JuliaGPU/Metal.jl#309 and
tetherto/qvac#3788 (they say that they are of family 5, for which the tables have neither `bfloat` nor simdgroup
matrices), pytorch/pytorch#196582 and kornia/kornia#4207 (no pipeline of Metal Performance Primitives is made). The
tables have no simd_sum for family 5 either, but torch's reductions run there (kornia/kornia#4159). What none says is
not here: how many threads a kernel's registers leave room for is known to Apple's compiler alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from aten_overlay.errors import OverlayError

VARIABLE = "PORTER_FAMILY"
REFUSED = "PTR276"


@dataclass(frozen=True)
class Feature:
    """What a kernel may use: part of the name of what it then compiles to, the words that a source has for it."""

    what: str
    mangled: str
    words: str
    instead: str


BFLOAT = Feature(
    "`bfloat`", "6bfloat", r"(packed_)?bfloat(16_t)?[234]?|simdgroup_bfloat8x8", "Compute in float or half"
)
MATRICES = Feature(
    "simdgroup matrices", "16simdgroup_matrix", r"simdgroup_(matrix|\w+8x8|multiply\w*)", "Multiply with simd_sum"
)
PRIMITIVES = Feature(
    "Metal Performance Primitives", "3mpp", r"mpp|tensor_ops|matmul2d\w*", "Guard a path without tensor_ops for it"
)


@dataclass(frozen=True)
class Family:
    """A family and its limits. `ulong_atomics` are minimum and maximum of 64 bits in device memory."""

    name: str
    ulong_atomics: bool
    lacks: tuple[Feature, ...] = ()
    threadgroup_bytes: int = 32 * 1024
    threads_per_threadgroup: int = 1024
    buffers: int = 31


FAMILIES = (
    Family("apple7", ulong_atomics=False),  # A14, M1
    Family("apple8", ulong_atomics=True),  # A15, A16, M2; on a Mac, which is where PyTorch runs
    Family("apple9", ulong_atomics=True),  # A17 Pro, A18, M3, M4
    Family("apple10", ulong_atomics=True),  # A19, M5
    Family("paravirtual", ulong_atomics=False, lacks=(PRIMITIVES, MATRICES, BFLOAT)),  # of a virtual Mac
)


def select(environment: Mapping[str, str] | None = None) -> Family | None:
    """The family that `$PORTER_FAMILY` names; None where it names none. Raises PTR277."""
    name = (os.environ if environment is None else environment).get(VARIABLE)
    return parse(name) if name else None


def parse(name: str) -> Family:
    """A family by its name. Raises PTR277."""
    for family in FAMILIES:
        if family.name == name:
            return family
    known = ", ".join(family.name for family in FAMILIES)
    raise OverlayError("PTR277", f"there is no GPU family named `{name}`", hint=f"Choose one of {known}.")


@contextmanager
def naming(kernels: Sequence[str]) -> Iterator[None]:
    """Names the kernels in a refusal of what their family lacks."""
    try:
        yield
    except OverlayError as error:
        if error.code != REFUSED:
            raise
        named = ", ".join(f"`{name}`" for name in kernels)
        raise OverlayError(REFUSED, f"kernel {named}: {error.what}", error.place, error.hint) from error


def write_flags(family: Family | None) -> tuple[str, ...]:
    """How the language is compiled for a family; with none, all that any has is allowed."""
    if family is None:
        return ()
    return (f'-DPM_FAMILY="{family.name}"', f"-DPM_FAMILY_ULONG_ATOMICS={int(family.ulong_atomics)}")
