"""Apple's GPU families, as far as a compute kernel can tell them apart, and the one that this process compiles for.

Sources: Apple's "Metal Feature Set Tables" for the GPUs and the limits (developer.apple.com/metal/limits); its note on
64-bit atomics as Dawn's Metal back end takes it (dawn b620b2f: minimum and maximum of `ulong` alone, in device memory,
from family 9 on, and 8 on a Mac); pytorch/pytorch#150566 for simdgroup functions, which take no 64-bit integers. What
none says is not here: how many threads a kernel's registers leave room for is known to Apple's compiler alone.
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
class Family:
    """A family and its limits. `ulong_atomics` are minimum and maximum of 64 bits in device memory."""

    name: str
    ulong_atomics: bool
    threadgroup_bytes: int = 32 * 1024
    threads_per_threadgroup: int = 1024
    buffers: int = 31


FAMILIES = (
    Family("apple7", ulong_atomics=False),  # A14, M1
    Family("apple8", ulong_atomics=True),  # A15, A16, M2; on a Mac, which is where PyTorch runs
    Family("apple9", ulong_atomics=True),  # A17 Pro, A18, M3, M4
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
