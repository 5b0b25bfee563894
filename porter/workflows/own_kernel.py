"""`porter migrate --from FILE.cu --function NAME`: the Metal functor of a CUDA kernel of a person's own, compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from porter.core.checkout import LARGEST_LEXED, Checkout
from porter.core.errors import PorterError
from porter.core.files import read_named
from porter.cuda.own import read_own_kernel
from porter.metal.own_functor import write_own_functor
from porter.verdict.own.result import TranslatedKernel

# Tells a person what is about to happen.
Announce = Callable[[str], None]


def ignore(_what: str) -> None:
    """Announces nothing."""


def translate_own_kernel(
    fork: Checkout, ops: tuple[str, ...], file: str | None, function: str | None, run: bool, announce: Announce = ignore
) -> TranslatedKernel:
    """Translates a kernel, and with `run` compiles and runs both on this machine, which it announces before.

    Raises PTR340 (the options do not name one kernel of a file), and what reading and comparing it raise.
    """
    if ops or file is None or function is None or file == "cuda":
        what = "a kernel of your own is --from FILE.cu and --function NAME, without OP"
        raise PorterError("PTR340", what, hint="For an operator: `porter migrate OP --from cuda`.")
    path = Path(file)
    text = read_named(path, "PTR340", most=LARGEST_LEXED)
    own = read_own_kernel(fork.layer({path.name: text}), path.name, function)
    functor = write_own_functor(fork, own)
    if not run:
        return TranslatedKernel(file, own, functor, not_compared="--no-verify")
    from porter.verdict.own.check import compare_functor

    announce(f"the code of {file} is compiled and run on this machine; --no-verify only translates it")
    return TranslatedKernel(file, own, functor, compare_functor(fork, own, functor, path))
