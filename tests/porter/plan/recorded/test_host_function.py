"""What stays of a function is read once, and what the port changes of it is printed at its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from porter.metal.codegen.host_code import Line
from porter.plan.recorded.host_function import Exit, HostFunction
from porter.plan.recorded.stages import STAGES
from tests.porter.plan.recorded.hosts import LAUNCH, read, write

RETURNS = "if (a.numel() == 0 || (b.dim() > 1)) {\n  a.zero_(); // of nothing\n  return a;\n}\n"


def test_an_early_return_has_its_tests_and_its_place() -> None:
    [leave] = read(f"{RETURNS}{LAUNCH}\nreturn a;").exits
    assert leave.tests == ("a.numel() == 0", "(b.dim() > 1)") and leave.leave == "return a;"
    assert leave.empty == {"a", ""} and not leave.is_alone


def test_a_condition_in_brackets_is_read_as_one_without() -> None:
    [leave] = read(f"if ((a.numel() == 0 || b.numel() == 0)) return;\n{LAUNCH}").exits
    assert leave.empty == {"a", "b"} and leave.is_alone


@pytest.mark.parametrize("body", [f"{LAUNCH}\n{RETURNS}", f"if (flag) {{ return; }} else {{ check(a); }}\n{LAUNCH}"])
def test_no_other_statement_is_an_early_return(body: str) -> None:
    assert not read(body).exits


def test_what_does_not_change_is_printed_as_it_was() -> None:
    body = f"// first\n{RETURNS}if (  flag  ) {{\n  {LAUNCH}\n}}\nreturn a;"
    assert write(read(body), body) == body


def test_changes_are_printed_at_their_places() -> None:
    body = f"{RETURNS}if (flag) {{\n  {LAUNCH}\n}}"
    host = read(body)
    [leave], [guard] = host.exits, host.guards
    leave, guard = replace(leave, tests=("a.numel() == 0",), lines=("b.zero_();",)), replace(guard, more=("more",))
    host = replace(host, exits=(leave,), guards=(guard,)).add(Line("check();"), Exit(("other",), "return;"))
    added = f"check();\nif (other) {{\nreturn;\n}}\n\n{LAUNCH}"
    changed = RETURNS.replace("a.numel() == 0 || (b.dim() > 1)", "a.numel() == 0")
    changed = changed.replace("return a;", "b.zero_();\nreturn a;")
    assert write(host, body) == f"{changed}if (flag || more) {{\n  {added}\n}}"


def test_a_dispatch_returns_nothing_before_its_launch() -> None:
    body = f'AT_DISPATCH_ALL_TYPES(a.scalar_type(), "a", [&] {{\n{LAUNCH}\n}});\nreturn a;'
    assert read(body).leave == "return;" and read(f"{LAUNCH}\nreturn a;").leave == "return a;"


def test_the_launch_has_a_place_of_its_own() -> None:
    with pytest.raises(ValueError, match="no empty statement"):
        HostFunction("return;")


def test_each_stage_is_named_once_and_says_why() -> None:
    assert len({stage.run for stage in STAGES}) == len({stage.reason for stage in STAGES}) == len(STAGES)
    assert all(stage.reason for stage in STAGES)
