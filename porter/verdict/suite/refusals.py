"""Errors that torch's own Python code raises, such as for a device that it serves in another way."""

from __future__ import annotations

import dis
from pathlib import Path
from traceback import walk_tb

import torch

_TORCH = Path(torch.__file__).parent
_RAISES = "RAISE_VARARGS"


def is_raised_by_torch(error: BaseException) -> bool:
    """Whether a `raise` of the torch package raised an error, rather than an operator that its code calls."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    if not frames or _TORCH not in Path(frames[-1].f_code.co_filename).parents:
        return False
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    assert at is not None
    raised = (each.opname for each in dis.get_instructions(frames[-1].f_code) if each.offset == at.tb_lasti)
    return _RAISES in raised
