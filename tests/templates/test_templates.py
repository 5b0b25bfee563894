"""The templates under the plugin."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.aten_overlay.cuda.needs import needs_libdevice
from tests.conftest import ROOT

TEMPLATES = sorted((ROOT / "templates").glob("*.py"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_says_what_it_is_and_has_a_script(path: Path) -> None:
    module = ast.parse(path.read_text())
    named = {
        target.id
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert ast.get_docstring(module) and "SCRIPT" in named


def test_every_template(passes_inside: Callable[[Path], None]) -> None:
    passes_inside(Path(__file__).parent / "inside" / "check_templates.py")


@needs_libdevice
def test_every_template_becomes_ptx(passes_inside: Callable[[Path], None]) -> None:
    passes_inside(Path(__file__).parent / "inside" / "check_ptx.py")
