"""The seed of the orders in which kernels run on a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping

from aten_overlay.errors import OverlayError

VARIABLE = "PORTER_SHUFFLE"


def read_seed(environment: Mapping[str, str] | None = None) -> int | None:
    """The seed that `$PORTER_SHUFFLE` names; None without one. Raises PTR396."""
    text = (os.environ if environment is None else environment).get(VARIABLE)
    if not text:
        return None
    if not text.isdecimal():
        raise OverlayError("PTR396", f"${VARIABLE} is `{text}`", hint="A seed is a whole number, from 0.")
    return int(text)
