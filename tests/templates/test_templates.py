"""The templates under the plugin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.aten_overlay.cuda.needs import needs_libdevice


def test_every_template(passes_inside: Callable[[Path], None]) -> None:
    passes_inside(Path(__file__).parent / "inside" / "check_templates.py")


@needs_libdevice
def test_every_template_becomes_ptx(passes_inside: Callable[[Path], None]) -> None:
    passes_inside(Path(__file__).parent / "inside" / "check_ptx.py")
