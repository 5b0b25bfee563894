"""The lint: each rule on its own cases, and silence on sources that Apple's compiler takes."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, METAL_HEADERS
from porter.metal.lint import RULES, LintFinding, Rule, lint


def _accepted() -> list[Path]:
    spec = find_spec("torch")
    installed = Path(spec.origin).parent / "include/c10/metal" if spec and spec.origin else EMBEDDED_FORK
    named = [Path(p) for p in (os.environ.get("PORTER_TEST_FORK"), os.environ.get("PORTER_TEST_HEADERS")) if p]
    folders = [EMBEDDED_FORK / METAL_HEADERS, installed, *(root / METAL_HEADERS for root in named)]
    kernels = [root / KERNELS for root in (EMBEDDED_FORK, *named)]
    found = [path for folder in folders for path in folder.glob("*.h")]
    return sorted(found + [path for folder in kernels for path in folder.glob("*.metal")])


@pytest.mark.parametrize(
    ("rule", "source"), [(r, s) for r in RULES for s in r.bad], ids=lambda v: getattr(v, "name", None)
)
def test_a_rule_finds_its_faults(rule: Rule, source: str) -> None:
    assert rule.name in {f.rule for f in lint("a.metal", source)}


@pytest.mark.parametrize(
    ("rule", "source"), [(r, s) for r in RULES for s in r.good], ids=lambda v: getattr(v, "name", None)
)
def test_a_rule_accepts_correct_code(rule: Rule, source: str) -> None:
    assert [f for f in lint("a.metal", source) if f.rule == rule.name] == []


@pytest.mark.parametrize("path", _accepted(), ids=lambda p: f"{p.parents[1].name}-{p.name}")
def test_accepted_sources_have_no_findings(path: Path) -> None:
    assert lint(path.name, path.read_text()) == ()


def test_a_finding_names_file_line_and_what_to_write() -> None:
    assert lint("k.metal", "\n\nfloat f(double x) { return x; }\n") == (
        LintFinding("k.metal", 3, "type", "Metal has no `double`: use `float`"),
    )


def test_host_only_code_is_skipped() -> None:
    text = "#ifdef __METAL__\nfloat x;\n#else\ndouble y;\n#endif\n#ifndef __METAL__\nstd::array z;\n#endif\ndouble w;\n"
    assert [(f.line, f.rule) for f in lint("a.h", text)] == [(9, "type")]


def test_a_conditional_on_something_else_is_read_on_both_sides() -> None:
    text = "#if __METAL_VERSION__ >= 310\ndouble a;\n#else\ndouble b;\n#endif\n"
    assert [f.line for f in lint("a.h", text)] == [2, 4]


def test_brackets_that_do_not_match_are_refused() -> None:
    with pytest.raises(PorterError) as error:
        lint("a.metal", "void f() { (; }")
    assert error.value.code == "PTR110"


@given(st.text(alphabet="ab*&()[]{}<>:;,=# \n\"'", max_size=80))
def test_any_text_is_linted_or_refused_for_its_brackets(text: str) -> None:
    try:
        findings = lint("a.metal", text)
    except PorterError as error:
        assert error.code == "PTR110"
        assert set(text) & set("()[]{}\"'")
    else:
        assert all(1 <= finding.line <= text.count("\n") + 1 for finding in findings)
