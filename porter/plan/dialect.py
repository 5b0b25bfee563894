"""What a fork needs before porter can write a kernel in it: the library that launches kernels, and its functors."""

from __future__ import annotations

from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import INDEXING, KERNEL_LIBRARY
from porter.metal.host import Dialect


class OldDialect(PorterError):
    """The fork predates the functor dialect (PTR002)."""


def require_library(checkout: Checkout) -> None:
    """Raises PTR002 for a fork without the library that launches kernels of every family, with what else it lacks."""
    if not checkout.exists(KERNEL_LIBRARY):
        require_dialect(checkout)


def require_dialect(checkout: Checkout) -> None:
    """Raises PTR002 for a fork that predates the functor dialect, with what it lacks."""
    if error := find_dialect_error(checkout):
        raise error


def find_dialect_error(checkout: Checkout) -> OldDialect | None:
    """PTR002 for a fork that predates the functor dialect, which kernels of functors need."""
    missing = [path for path in (INDEXING, KERNEL_LIBRARY) if not checkout.exists(path)]
    if not missing and "#define REGISTER_BINARY_OP" not in checkout.read(INDEXING):
        missing.append(f"REGISTER_BINARY_OP in {INDEXING}")
    names = {each.name for each in Dialect.read(checkout).execs}
    missing += [f"{n} in {KERNEL_LIBRARY}" for n in ("exec_unary_kernel", "exec_binary_kernel") if n not in names]
    if missing:
        return OldDialect(
            "PTR002",
            f"this fork predates the functor dialect: it lacks {', '.join(missing)}",
            Place(INDEXING),
            "docs/your-fork.md shows how to modernize a fork; `porter status` and `porter explain` work on this one.",
        )
    return None
