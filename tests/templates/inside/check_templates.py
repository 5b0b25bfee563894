"""Every case of every template, in both tiers, with accesses out of bounds refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from porter.kernels.launch import Mode, running
from porter.kernels.loading import load
from porter.kernels.script import Case, Kind, Script
from porter.workflows.templates import find_templates

PATHS = {template.name: template.path for template in find_templates()}
SCRIPTS = {name: load(path) for name, path in PATHS.items()}
CASES = [pytest.param(name, case, id=f"{name}-{case}") for name, script in SCRIPTS.items() for case in script.cases()]


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    with running(Mode(checked=True, poison=True)):
        yield


@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_template_computes_what_its_reference_does(name: str, case: Case) -> None:
    SCRIPTS[name].check(case)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_template_refuses_wrong_calls(name: str) -> None:
    script = SCRIPTS[name]
    assert script.refusals
    script.check_refusals()


@cache
def listed() -> dict[str, str]:
    return {template.name: template.kind for template in find_templates()}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_template_is_listed_as_what_it_is(name: str) -> None:
    assert Kind(listed()[name]) is SCRIPTS[name].kind


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_template_has_a_size_that_does_not_divide(name: str) -> None:
    script: Script = SCRIPTS[name]
    assert any(length % 2 for size in script.sizes for length in size)
