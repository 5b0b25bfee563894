"""What status says of each operator: one entry for all its rows, and a code for what is not portable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.operator import ServedFunction
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.program import Programs
from porter.plan.planner import plan_operator
from porter.plan.routes import Route
from porter.report.status import OperatorStatus, State, count_lines, status_lines, status_object
from porter.workflows.migrate import NotPlanned, PortedOperator, Request, migrate
from porter.workflows.stacking import OldCode, read_old_code
from porter.workflows.status import Filters, operators, portable, recordable, status
from tests.porter.plan.recorded import fork as made_up

INDEXING = "c10/metal/indexing.h"


@pytest.fixture
def fork() -> Checkout:
    return Checkout(EMBEDDED_FORK, "test")


@pytest.fixture
def older(fork: Checkout) -> Checkout:
    """The fork without the macro that registers functors."""
    text = fork.read(INDEXING)
    assert "#define REGISTER_BINARY_OP" in text
    return fork.layer({INDEXING: text.replace("#define REGISTER_BINARY_OP", "#define OTHER_BINARY_OP")})


RUN = "mps::runMPSGraph(a, out);"
LIBRARY = "mps::runMPSGraph([graph scaledDotProductAttentionWithQueryTensor:a name:nil], out);"


def add_row_of_lerp(fork: Checkout, body: str) -> Checkout:
    """The fork with a second row of lerp on MPSGraph, whose shared implementation is nowhere to be found."""
    code, line = f"{OPERATIONS}/BinaryOps.mm", "    CPU, CUDA: lerp_Tensor\n"
    rows, host = fork.read(NATIVE_FUNCTIONS), fork.read(code)
    assert line in rows
    added = f"TORCH_IMPL_FUNC(lerp_Tensor_mps)(const Tensor& a, const Tensor& out) {{\n  {body}\n}}\n"
    return fork.layer({NATIVE_FUNCTIONS: rows.replace(line, f"{line}    MPS: lerp_Tensor_mps\n"), code: host + added})


@pytest.fixture
def recorded(fork: Checkout) -> Checkout:
    """The fork with a row that no stub serves and whose function runs a graph."""
    return add_row_of_lerp(fork, RUN)


@pytest.fixture
def held(fork: Checkout) -> Checkout:
    """The fork with a row that no stub serves and that a library computes."""
    return add_row_of_lerp(fork, LIBRARY)


def named(found: tuple[OperatorStatus, ...]) -> list[str]:
    return [operator.name for operator in found]


def test_the_table_has_a_heading_and_a_line_for_each_operator(fork: Checkout) -> None:
    shown = operators(fork, Filters(("exp", "logit", "remainder", "sub")))
    assert_expected_inline(
        "\n".join(status_lines(shown)),
        """\
operator   rows  written in             read from  port
exp        1     native through a stub             PTR013 already native
logit      3     MPSGraph, other                   2 of 3 rows: shared row
sub        1     other Metal                       PTR013 already native
remainder  2     MPSGraph, other                   1 of 2 rows: shared row
4 operators: 2 portable, 0 portable in part, 0 blocked, 2 without a graph
7 rows: 3 MPSGraph, 1 native through a stub, 1 other Metal, 2 other, 0 mixed, 0 unknown
3 rows build graphs (MPSGraph or mixed): 3 shared row, 0 own row, 0 own row from runs, 0 library call, 0 none""",
    )


def test_everything_that_is_not_portable_has_a_reason_with_a_code(held: Checkout) -> None:
    found = operators(held)
    rows = [row for operator in found for row in operator.rows]
    assert {row.state for row in rows} == set(State) - {State.MIXED, State.UNKNOWN}
    assert all(row.reason is None for row in rows if row.portable)
    assert {str(row.reason)[:6] for row in rows if not row.portable} == {"PTR013", "PTR020", "PTR032"}


def test_an_operator_of_which_a_row_is_held_back_says_so(held: Checkout) -> None:
    [lerp] = operators(held, Filters(("lerp",)))
    assert (lerp.portable, lerp.blocked, len(lerp.rows)) == (True, True, 2)
    said = "lerp.Tensor_out calls `scaledDotProductAttentionWithQueryTensor`: a library computes it"
    assert lerp.port == f"1 of 2 rows: shared row; 1 of 2 rows: library call: PTR020 {said}"


def test_a_row_that_no_stub_serves_is_ported_from_runs_and_says_why(recorded: Checkout) -> None:
    [lerp] = operators(recorded, Filters(("lerp",)))
    assert (lerp.portable, lerp.blocked) == (True, False)
    assert lerp.port == "1 of 2 rows: shared row; 1 of 2 rows: own row from runs"
    row = next(row for row in lerp.rows if row.route is Route.RUNS).as_object()
    assert (row["port"], row["reason"], row["no_stub"][:7]) == ("own row from runs", "", "PTR071 ")
    assert recordable(recorded) == ("lerp",)
    assert list(count_lines([lerp]))[-1].startswith("own row from runs: what `porter migrate` tries")


def test_counts_add_up(held: Checkout, recorded: Checkout) -> None:
    for checkout in (held, recorded):
        every = operators(checkout)
        by_operator, by_state, by_route, *_ = (
            [int(number) for number in re.findall(r"\b\d+\b", line)] for line in count_lines(every)
        )
        assert by_operator[0] == len(every) == sum(by_operator[1:])
        assert by_state[0] == sum(len(each.rows) for each in every) == sum(by_state[1:])
        assert by_route[0] == sum(row.state.builds_graph for each in every for row in each.rows) == sum(by_route[1:])
        assert by_operator[1] + by_operator[2] == len(operators(checkout, Filters(portable=True)))
        assert by_operator[2] + by_operator[3] == len(operators(checkout, Filters(blocked=True)))


def test_the_plan_takes_the_routes_that_status_says(held: Checkout) -> None:
    """Each row that joins moves, and each that stays has the code that status gives."""
    for operator in operators(held):
        rows = {row.name: row for row in operator.rows if row.state.builds_graph}
        if rows:
            plan = plan_operator(held, operator.name)
            moved = {each.name for each in plan.entries}
            left = {each.reason.split()[0]: each.code for each in plan.unported}
            assert {name for name, row in rows.items() if row.route is Route.SHARED} == moved & rows.keys()
            assert {name: row.reason.code for name, row in rows.items() if row.reason} == left


def test_readings_are_of_the_rows_on_mpsgraph_alone(fork: Checkout) -> None:
    found = status(fork, Filters(("exp", "logit")))
    read = {row.name: row.reading for operator in found for row in operator.rows}
    assert read["exp.out"] == read["logit_"] == ""
    assert read["logit"].startswith("source")


def test_filters_choose_by_state_and_by_name(held: Checkout) -> None:
    everything = operators(held)
    able, blocked = operators(held, Filters(portable=True)), operators(held, Filters(blocked=True))
    assert named(able) == [each.name for each in everything if each.portable]
    assert named(blocked) == ["lerp"]
    assert len(able) < len(everything)
    assert named(operators(held, Filters(portable=True, blocked=True))) == named(able)
    assert named(operators(held, Filters(("l*", "exp?")))) == ["exp2", "log1p", "logaddexp", "logit", "lt", "lerp"]
    assert named(operators(held, Filters(("l*",), blocked=True))) == ["lerp"]


def test_a_pattern_without_operators_is_refused_with_near_names(fork: Checkout) -> None:
    with pytest.raises(PorterError, match="PTR012") as caught:
        operators(fork, Filters(("exp", "logitt")))
    assert "no operator matches logitt" in str(caught.value)
    assert "logit" in caught.value.hint


def test_on_a_fork_older_than_the_dialect_every_graph_has_that_reason(older: Checkout) -> None:
    rows = [row for operator in operators(older) for row in operator.rows if row.state is State.MPSGRAPH]
    assert {row.route for row in rows} == {Route.RUNS, Route.NONE}, "functions that macros make have no runs to port"
    assert {str(row.reason) for row in rows} == {"PTR002 this fork predates the functor dialect"}
    assert portable(older) == ()


def test_a_reason_of_its_own_comes_before_the_age_of_the_fork(held: Checkout, older: Checkout) -> None:
    both = held.layer({INDEXING: older.read(INDEXING)})
    [lerp] = operators(both, Filters(("lerp",)))
    assert {row.name: row.reason.code for row in lerp.rows if row.reason} == {
        "lerp.Scalar_out": "PTR002", "lerp.Tensor_out": "PTR020"
    }  # fmt: skip


def test_all_operators_of_an_older_fork_are_refused_at_once(older: Checkout) -> None:
    with pytest.raises(PorterError, match="PTR002"):
        list(migrate(older, Request(all=True)))


def test_all_operators_of_an_older_fork_are_ported_from_recorded_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = made_up.copy_fork(tmp_path)
    header = checkout.root / INDEXING
    header.write_text(header.read_text().replace("#define REGISTER_BINARY_OP", "#define OTHER_BINARY_OP"))

    def read(served: ServedFunction) -> Programs:
        if served.function.base != "turned":
            raise PorterError("PTR395", f"no runs of {served.function.base} are kept")
        return made_up.turned()

    old = OldCode(read_old_code(checkout, run=False).graphs, lambda _: read)
    monkeypatch.setattr("porter.workflows.migrate.read_old_code", lambda *_, **__: old)
    found = list(migrate(checkout, Request(all=True, recorded=True)))
    assert [each.plan.op for each in found if isinstance(each, PortedOperator)] == ["turned"]
    refused = {each.op: each.error.code for each in found if isinstance(each, NotPlanned)}
    assert "erf" not in refused, "the functions of macros have no runs to port"
    assert (refused["atan2"], refused["shares"]) == ("PTR395", "PTR395"), "what has no stub needs no functor"


def test_json_has_the_keys_that_it_had(fork: Checkout) -> None:
    found = status_object(operators(fork, Filters(("erf",))))
    assert found["counts"] == {
        "MPSGraph": 1,
        "native through a stub": 0,
        "other Metal": 0,
        "other": 0,
        "mixed": 0,
        "unknown": 0,
    }
    assert found["rows"] == [
        {
            "name": "erf.out",
            "kernel": "erf_out_mps",
            "class": "MPSGraph",
            "port": "shared row",
            "reason": "",
            "no_stub": "",
            "reading": "",
        }
    ]
    assert found["ports"] == {
        "shared row": 1, "own row": 0, "own row from runs": 0, "library call": 0, "none": 0
    }  # fmt: skip
    assert found["operators"] == [{"name": "erf", "rows": ["erf.out"], "portable": True}]
