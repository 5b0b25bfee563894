"""What a fork needs before porter can write a kernel in it: the library that launches kernels, and its functors.

Macros that register kernels are known by what they instantiate: a later fork may give them other names.
"""

from __future__ import annotations

from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import INDEXING, KERNEL_LIBRARY
from porter.languages.directives import read_macros
from porter.metal.host import Dialect, NewDialect
from porter.metal.macros import MacroBook, MacroFamily, find_unread

_REGISTERS = "REGISTER_BINARY_OP"


class OldDialect(PorterError):
    """The fork predates the functor dialect (PTR002)."""


def require_library(checkout: Checkout) -> None:
    """Raises PTR002 for a fork without the library that launches kernels of every family, with what else it lacks."""
    if not checkout.exists(KERNEL_LIBRARY):
        require_dialect(checkout)


def require_dialect(checkout: Checkout) -> None:
    """Raises PTR002 for a fork that predates the functor dialect, with what it lacks, and PTR095 for one whose macros
    porter cannot read."""
    if error := find_dialect_error(checkout):
        raise error


def find_dialect_error(checkout: Checkout) -> PorterError | None:
    """PTR002 for a fork that predates the functor dialect, which kernels of functors need; PTR095 for a later one."""
    missing = [path for path in (INDEXING, KERNEL_LIBRARY) if not checkout.exists(path)]
    if not missing and not _registers_binary_kernels(header := checkout.read(INDEXING)):
        if unread := find_unread(read_macros(header), MacroFamily.BINARY):
            what = f"this fork's {unread} registers kernels in a form that porter does not know"
            hint = "Update porter, or port this operator by hand."
            return NewDialect("PTR095", what, Place(INDEXING), hint)
        missing.append(f"{_REGISTERS} in {INDEXING}")
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


def _registers_binary_kernels(header: str) -> bool:
    """Whether a macro of indexing.h, of any name, registers kernels of two elements for a pair of types."""
    if f"#define {_REGISTERS}(" in header:
        return True
    bases = MacroBook.read(read_macros(header)).bases.values()
    return any(base.family is MacroFamily.BINARY and not base.castout and not base.unknown for base in bases)
