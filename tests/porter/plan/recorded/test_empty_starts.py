"""Results have their start values where host code returns because nothing is written to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from porter.metal.codegen.host_code import Launch, Line
from porter.plan.recorded.returns import start_of_nothing as start_function
from tests.porter.plan.recorded.hosts import read, write

START = "out.copy_(self);"
RETURN = "if (TEST) {\n  return;\n}\nauto self_ = self.view({1});\n"


def start_of_nothing(body: str, start: str, result: str) -> str:
    host = replace(read(body), launch=Launch((Line(start),), frozenset(), start))
    return write(replace(start_function(host, result), launch=Launch()), body)


@pytest.mark.parametrize(
    "test", ["index.numel() == 0", "self.numel() == 0 || index.numel() == 0", "(source.numel() == 0)"]
)
def test_the_start_comes_before_the_return(test: str) -> None:
    assert "{\n  out.copy_(self);\nreturn;\n}" in start_of_nothing(RETURN.replace("TEST", test), START, "out")


@pytest.mark.parametrize(
    "test", ["self.numel() == 0", "out.numel() == 0", "index.numel() == 0 || flag", "index.dim() == 0"]
)
def test_what_returns_of_an_empty_result_or_for_another_reason_stays(test: str) -> None:
    body = RETURN.replace("TEST", test)
    assert start_of_nothing(body, START, "out") == body


def test_a_return_without_braces_gets_them() -> None:
    made = start_of_nothing("if (index.numel() == 0)\n  return;\n", "out.zero_();", "out")
    assert made == "if (index.numel() == 0)\n  {\nout.zero_();\nreturn;\n}\n"


@pytest.mark.parametrize(
    ("body", "start"),
    [
        (RETURN.replace("TEST", "index.numel() == 0"), ""),  # a launch that starts from nothing
        ("if (index.numel() == 0) {\nreturn fill(out);\n}\n", START),  # what is called may write it
        ("if (index.numel() == 0) {\nreturn;\n}\nauto out = at::empty({});\n", START),  # there is none yet
        ("if (index.numel() == 0) {\nreturn;\n}\nTensor sums;\nsums = self;\n", "out.copy_(sums);"),  # nor a value
    ],
)
def test_other_bodies_stay(body: str, start: str) -> None:
    assert start_of_nothing(body, start, "out") == body


@pytest.mark.parametrize(
    ("source", "declared"),
    [
        ("base", "const auto base = self.view({1});"),
        ("wide", "const auto base = self.view({1});\nconst auto wide = base.expand(sizes);"),
    ],
)
def test_a_local_that_is_declared_later_is_declared_there(source: str, declared: str) -> None:
    later = "const auto base = self.view({1});\nconst auto wide = base.expand(sizes);\n"
    body = f"if (index.numel() == 0) {{\n  return;\n}}\n{later}"
    start = f"out.copy_({source});"
    assert start_of_nothing(body, start, "out") == body.replace("return;", f"{declared}\n{start}\nreturn;")


def test_a_local_of_a_block_that_has_ended_is_declared_there() -> None:
    block = "if (flag) {\n  const auto base = self.view({1});\n  check(base);\n}\n"
    body = f"{block}if (index.numel() == 0) {{\n  return;\n}}\n"
    made = start_of_nothing(body, "out.copy_(base);", "out")
    assert made == body.replace("return;", "const auto base = self.view({1});\nout.copy_(base);\nreturn;")
