"""Every kernel of every template as PTX: their sources are those of a first run of each template's cases in one type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aten_overlay.metal.build import host_names
from aten_overlay.metal.cuda.compile import compile_ptx
from aten_overlay.metal.cuda.target import CudaOptions
from porter.kernels import launch
from porter.kernels.loading import load
from porter.workflows.templates import find_templates
from tests.aten_overlay.cuda.needs import assemble

pytestmark = pytest.mark.usefixtures("compiled_soon")

PATHS = {template.name: template.path for template in find_templates()}


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, None]]:
    """The Metal sources that are compiled."""
    seen: dict[str, None] = {}
    compiled = launch.compiled

    def record(source: str, mode: launch.Mode) -> Any:
        seen[source] = None
        return compiled(source, mode)

    monkeypatch.setattr(launch, "compiled", record)
    yield seen


@pytest.mark.parametrize("name", PATHS)
def test_a_template_becomes_ptx(name: str, sources: dict[str, None]) -> None:
    script = load(PATHS[name])
    cases = list(script.cases())
    for case in [case for case in cases if case.dtype == cases[0].dtype and case.size == cases[0].size]:
        script.check(case)
    assert sources
    for source in sources:
        module = compile_ptx(source, host_names(source), cuda=CudaOptions(forms=("grid",)))
        assert assemble(module.text) == ""
