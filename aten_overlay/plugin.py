"""A pytest plugin: `pytest -p aten_overlay.plugin` runs any test suite with the mps device present.

`$PORTER_CHECKOUT` and `$PORTER_OPERATORS` mean what they do to `python -m aten_overlay`.
"""

from __future__ import annotations

import os

import aten_overlay

aten_overlay.start_from_environment(os.environ)
