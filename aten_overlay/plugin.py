"""A pytest plugin: `pytest -p aten_overlay.plugin` runs any test suite with the mps device present."""

from __future__ import annotations

import os
from pathlib import Path

import aten_overlay

_fork = os.environ.get("PORTER_CHECKOUT")
aten_overlay.start(Path(_fork) if _fork else None)
