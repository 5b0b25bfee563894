"""Early returns that leave results of rows without elements."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from porter.loops.expressions import call
from porter.loops.program import Programs
from porter.metal.codegen.host_values import Names
from porter.plan.recorded import returns
from porter.plan.recorded.returns import fill_of_nothing
from tests.porter.loops.test_empty_rows import SIZE as ROW_SIZE
from tests.porter.loops.test_empty_rows import SUM, named, programs
from tests.porter.plan.recorded.hosts import LAUNCH, read, write

NAMES = Names({"self": "input", "result0": "output"}, {"self": "Tensor"})
TOTAL = programs(SUM)


def fill(body: str, filling: Programs = TOTAL, names: Names = NAMES, before: str = "") -> str:
    return write(fill_of_nothing(replace(read(body), before=before), filling, names), body)


@pytest.mark.parametrize(
    ("head", "leave"),
    [
        ("input.numel() == 0", "return;"),
        ("output.numel() == 0 || input.numel() == 0", "return output;"),
        ("(output.numel() == 0) || (input.numel() == 0)", "return;"),
    ],
)
def test_results_are_filled_before_it_returns(head: str, leave: str) -> None:
    found = fill(f"if ({head}) {{ {leave} }}\nlaunch();")
    assert found == f"if ({head}) {{ output.zero_();\n{leave} }}\nlaunch();"


def test_a_statement_without_braces_gets_some() -> None:
    found = fill("if (input.numel() == 0)\n  return;\nlaunch();")
    assert found == "if (input.numel() == 0)\n  {\noutput.zero_();\nreturn;\n}\nlaunch();"


def test_a_mean_of_nothing_is_nan() -> None:
    mean = programs(call("division", (SUM, named(ROW_SIZE)), SUM.dtype))  # type: ignore[arg-type]
    found = fill("if (input.numel() == 0) { return; }", mean)
    assert "output.fill_(std::numeric_limits<double>::quiet_NaN());" in found


@pytest.mark.parametrize(
    "body",
    [
        "if (output.numel() == 0) { return; }",  # nothing to fill
        "if (input.numel() == 0) { output.fill_(3); return; }",  # the function says what
        "if (input.numel() == 0) { return output.fill_(3); }",
        "if (input.numel() == 0) { return; } else { launch(); }",
        "if (input.numel() == 0 && flag) { return; }",
        "if (input.numel() == 0 || flag) { return; }",
        "if (other.numel() == 0) { return; }",
        "if (input.numel() == 0) { launch(); }",
        "if (input.numel() == 0) { return; }\nTensor output = at::empty({1});",
    ],
)
def test_other_statements_stay(body: str) -> None:
    assert fill(body, before="if (input.numel() == 0)") == body


def test_what_is_not_known_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "if (input.numel() == 0) { return; }"
    optional = Names(NAMES.variables, NAMES.types, frozenset({"output"}))
    assert fill(body, names=optional) == body
    assert fill(body, names=Names({"result0": "output"}, {})) == body
    monkeypatch.setattr(returns, "compute_of_nothing", lambda programs: {})
    assert fill(body) == body


@pytest.mark.parametrize(("value", "text"), [(0, "zero_()"), (1, "fill_(1)"), (2.5, "fill_(2.5)")])
def test_what_fills(value: float, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returns, "compute_of_nothing", lambda programs: {0: value})
    assert f"output.{text};" in fill("if (input.numel() == 0) { return; }")
    assert not math.isnan(value)


def test_a_body_that_never_asks_returns_what_it_returns_after_the_launch() -> None:
    body = f"auto output = at::empty({{}}, input.options());\n{LAUNCH}\nreturn output;"
    found = fill(body)
    filled = "if (input.numel() == 0) {\noutput.zero_();\nreturn output;\n}\n\n"
    assert found == body.replace(LAUNCH, f"{filled}{LAUNCH}")
    assert fill(body, before="if (input.numel() == 0) return;") == body
