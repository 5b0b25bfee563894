"""Results have their start values where host code returns because nothing is written to them."""

from __future__ import annotations

import pytest

from porter.plan.native.empty_rows import start_of_nothing

LAUNCH = "out.copy_(self);\nMPSStream* stream = getCurrentMPSStream();\n"
RETURN = "if (TEST) {\n  return;\n}\nauto self_ = self.view({1});\n"


@pytest.mark.parametrize(
    "test", ["index.numel() == 0", "self.numel() == 0 || index.numel() == 0", "(source.numel() == 0)"]
)
def test_the_start_comes_before_the_return(test: str) -> None:
    assert "{\n  out.copy_(self);\nreturn;\n}" in start_of_nothing(RETURN.replace("TEST", test), LAUNCH, "out")


@pytest.mark.parametrize(
    "test", ["self.numel() == 0", "out.numel() == 0", "index.numel() == 0 || flag", "index.dim() == 0"]
)
def test_what_returns_of_an_empty_result_or_for_another_reason_stays(test: str) -> None:
    body = RETURN.replace("TEST", test)
    assert start_of_nothing(body, LAUNCH, "out") == body


def test_a_return_without_braces_gets_them() -> None:
    made = start_of_nothing("if (index.numel() == 0)\n  return;\n", "out.zero_();\n", "out")
    assert made == "if (index.numel() == 0)\n  {\nout.zero_();\nreturn;\n}\n"


@pytest.mark.parametrize(
    ("body", "launch"),
    [
        (RETURN.replace("TEST", "index.numel() == 0"), "run();\n"),  # a launch that starts from nothing
        ("if (index.numel() == 0) {\nreturn fill(out);\n}\n", LAUNCH),  # what is called may write it
        ("if (index.numel() == 0) {\nreturn;\n}\nauto out = at::empty({});\n", LAUNCH),  # there is none yet
    ],
)
def test_other_bodies_stay(body: str, launch: str) -> None:
    assert start_of_nothing(body, launch, "out") == body
