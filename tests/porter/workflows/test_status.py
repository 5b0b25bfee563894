"""What status says of each operator: one entry for all its rows, and a code for what is not portable."""

from __future__ import annotations

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.operator import ServedFunction
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.program import Programs
from porter.report.status import OperatorStatus, State, status_lines, status_object
from porter.workflows.migrate import NotPlanned, PortedOperator, Request, migrate
from porter.workflows.status import Filters, operators, portable, status
from tests.porter.plan.native import fork as made_up

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


@pytest.fixture
def held(fork: Checkout) -> Checkout:
    """The fork with a second row of lerp on MPSGraph, whose shared implementation is nowhere to be found."""
    code, line = f"{OPERATIONS}/BinaryOps.mm", "    CPU, CUDA: lerp_Tensor\n"
    rows, host = fork.read(NATIVE_FUNCTIONS), fork.read(code)
    assert line in rows
    added = "TORCH_IMPL_FUNC(lerp_Tensor_mps)(const Tensor& a, const Tensor& out) {\n  mps::runMPSGraph(a, out);\n}\n"
    return fork.layer({NATIVE_FUNCTIONS: rows.replace(line, f"{line}    MPS: lerp_Tensor_mps\n"), code: host + added})


def named(found: tuple[OperatorStatus, ...]) -> list[str]:
    return [operator.name for operator in found]


def test_the_table_has_a_heading_and_a_line_for_each_operator(fork: Checkout) -> None:
    shown = operators(fork, Filters(("exp", "logit", "remainder", "sub")))
    assert_expected_inline(
        "\n".join(status_lines(shown)),
        """\
operator   rows  written in             read from  port
exp        1     native through a stub             PTR013 already native
logit      3     MPSGraph, other                   portable
sub        1     other Metal                       PTR013 already native
remainder  2     MPSGraph, other                   portable
4 operators: 2 portable, 0 blocked
MPSGraph: 3, native through a stub: 1, other Metal: 1, other: 2, mixed: 0, unknown: 0""",
    )


def test_everything_that_is_not_portable_has_a_reason_with_a_code(held: Checkout) -> None:
    found = operators(held)
    rows = [row for operator in found for row in operator.rows]
    assert {row.state for row in rows} == set(State) - {State.MIXED, State.UNKNOWN}
    assert all(row.reason is None for row in rows if row.portable)
    assert {str(row.reason)[:6] for row in rows if not row.portable} == {"PTR013", "PTR032", "PTR071"}


def test_an_operator_of_which_a_row_is_held_back_says_so(held: Checkout) -> None:
    [lerp] = operators(held, Filters(("lerp",)))
    assert (lerp.portable, lerp.blocked, len(lerp.rows)) == (True, True, 2)
    assert lerp.port.startswith("portable, but 1 of 2 rows: PTR071 ")


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
    assert rows
    assert {str(row.reason) for row in rows} == {"PTR002 this fork predates the functor dialect"}
    assert portable(older) == ()


def test_a_reason_of_its_own_comes_before_the_age_of_the_fork(held: Checkout, older: Checkout) -> None:
    both = held.layer({INDEXING: older.read(INDEXING)})
    [lerp] = operators(both, Filters(("lerp",)))
    assert {row.name: row.reason.code for row in lerp.rows if row.reason} == {
        "lerp.Scalar_out": "PTR002", "lerp.Tensor_out": "PTR071"
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

    monkeypatch.setattr("porter.workflows.migrate.read_programs", lambda *_, **__: lambda _: read)
    found = list(migrate(checkout, Request(all=True, recorded=True)))
    assert [each.plan.op for each in found if isinstance(each, PortedOperator)] == ["turned"]
    refused = {each.op: each.error.code for each in found if isinstance(each, NotPlanned)}
    assert (refused["atan2"], refused["shares"]) == ("PTR002", "PTR071"), "what has no stub needs no functor"


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
        {"name": "erf.out", "kernel": "erf_out_mps", "class": "MPSGraph", "reason": "", "reading": ""}
    ]
    assert found["operators"] == [{"name": "erf", "rows": ["erf.out"], "portable": True}]
