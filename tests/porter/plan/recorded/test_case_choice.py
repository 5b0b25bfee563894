"""The conditions that host code chooses a case by."""

from __future__ import annotations

from dataclasses import replace

from expecttest import assert_expected_inline

from porter.loops.program import Programs
from porter.metal.codegen.host_code import Launch, Line, print_nodes
from porter.metal.codegen.host_values import Names
from porter.mpsgraph.conditions import Answered, read_question
from porter.plan.recorded.case_choice import write_cases
from tests.porter.plan.recorded import fork

CASE = fork.turned().cases[0]
NAMES = Names({"self": "self", "p": "p", "mode": "mode", "flag": "flag"}, {"p": "float", "mode": "int", "flag": "bool"})


def write(*cases: tuple[str, ...]) -> str:
    """The branches of cases, each with its conditions; those that begin with `!` do not hold."""
    when = [
        tuple(Answered(read_question(text.removeprefix("!")), not text.startswith("!")) for text in case)
        for case in cases
    ]
    programs = Programs("turned", tuple(replace(CASE, when=each) for each in when))
    launches = [Launch((Line(f"launch_{i}();"),)) for i, _ in enumerate(cases)]
    return "\n".join(print_nodes(write_cases(programs, launches, NAMES)))


def test_numbers_are_compared_as_a_person_would() -> None:
    assert_expected_inline(
        write(("p == inf", "!mode == 0"), ("!p == -inf", "!p < 1.5"), ()),
        """\
if (p == std::numeric_limits<double>::infinity() && mode != 0) {
launch_0();
} else if (p != -std::numeric_limits<double>::infinity() && !(p < 1.5)) {
launch_1();
} else {
launch_2();
}""",
    )


def test_what_earlier_cases_have_taken_is_not_asked_again() -> None:
    assert_expected_inline(
        write(("p == 0.0",), ("!p == 0.0", "flag"), ("!p == 0.0", "!flag"), ()),
        """\
if (p == 0.0) {
launch_0();
} else if (flag) {
launch_1();
} else if (!flag) {
launch_2();
} else {
launch_3();
}""",
    )


def test_what_an_earlier_case_asks_for_beside_others_is_asked_again() -> None:
    assert "} else if (mode != 0 && flag) {" in write(("mode == 0", "flag"), ("!mode == 0", "flag"), ())
