"""What operators refuse calls with, and what torch's own Python code does: a device that it serves in another way."""

from __future__ import annotations

import dis
from pathlib import Path

import torch

REFUSALS = (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError)
OVERLAP_ERROR = "refers? to (?:a single|the same) memory"  # ATen's words for shared memory
_TORCH = Path(torch.__file__).parent
_RAISES = "RAISE_VARARGS"


def find_kind(refused: Exception) -> type[Exception]:
    """What may refuse a call that an error refuses: any runtime error, of a type that the CPU does not implement."""
    return next(each for each in REFUSALS if isinstance(refused, each))  # bases are before what is derived


def is_raised_by_torch(error: BaseException) -> bool:
    """Whether a `raise` of the torch package raised an error, rather than an operator that its code calls."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or _TORCH not in Path(last.tb_frame.f_code.co_filename).parents:
        return False
    code = dis.get_instructions(last.tb_frame.f_code)
    return _RAISES in (each.opname for each in code if each.offset == last.tb_lasti)
