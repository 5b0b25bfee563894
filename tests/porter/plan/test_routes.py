"""How rows are ported is chosen before anything runs, and the plan takes that route."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.aten.operator import Operator, ServedFunction, find_served
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import CLANG_FORMAT, OPERATIONS
from porter.loops.program import Programs
from porter.metal.functor import Source
from porter.plan.planner import plan_operator
from porter.plan.routes import Route, RowRoute, read_routes
from porter.workflows.explain import explain
from porter.workflows.stacking import OldCode, read_old_code
from tests.porter.plan.golden.forks import copy_embedded
from tests.porter.plan.recorded import fork as made_up

LIBRARY = "makeMatrices(^() { [graph scaledDotProductAttentionWithQueryTensor:a name:nil]; })"


def run_nothing(served: ServedFunction) -> Programs:
    raise AssertionError(f"the old code of {served.function.name} runs, and no port can come of it")


def edit_host(tmp_path: Path, before: str, after: str) -> Checkout:
    """The made-up fork with host code changed in one place."""
    checkout = made_up.copy_fork(tmp_path)
    host = checkout.root / OPERATIONS / "Turns.mm"
    assert host.read_text().count(before) == 1
    host.write_text(host.read_text().replace(before, after))
    return checkout


@pytest.fixture
def multiplies(tmp_path: Path) -> Checkout:
    """The fork whose `shares` multiplies matrices."""
    return edit_host(tmp_path, "SharesCachedGraph>(key, makeGraph)", f"SharesCachedGraph>(key, {LIBRARY})")


@pytest.fixture
def runs_elsewhere(tmp_path: Path) -> Checkout:
    """The fork whose `shares` runs its graph within an expression."""
    run = "runMPSGraph(stream, graph->graph(), feeds, output);\n  return output;\n}\n\n} // namespace at::native"
    checkout = edit_host(tmp_path, run.replace("stream", "getCurrentMPSStream()"), "return RUN(graph);\n}\n}")
    host = checkout.root / OPERATIONS / "Turns.mm"
    host.write_text(
        "#define RUN(graph) runMPSGraph(getCurrentMPSStream(), graph->graph(), feeds, output)\n" + host.read_text()
    )
    return checkout


def route(checkout: Checkout, op: str) -> RowRoute:
    [row] = read_routes(checkout, Operator.read(checkout, op))
    return row


def test_a_row_that_a_library_computes_is_not_run(multiplies: Checkout) -> None:
    assert route(multiplies, "shares").route is Route.LIBRARY
    with pytest.raises(PorterError, match="PTR020") as raised:
        plan_operator(multiplies, "shares", programs=run_nothing)
    assert raised.value.what == "shares calls `scaledDotProductAttentionWithQueryTensor`: a library computes it"
    assert raised.value.place and raised.value.place.file.endswith("Turns.mm")


def test_the_frame_of_a_row_that_a_library_computes_is_written(multiplies: Checkout) -> None:
    plan = plan_operator(multiplies, "shares", programs=run_nothing, scaffold=True)
    assert [each.code for each in plan.unported] == ["PTR020"]
    assert "PTR020" in plan.changes.diff()


def test_a_cuda_functor_is_refused_where_no_stub_takes_one(multiplies: Checkout) -> None:
    with pytest.raises(PorterError, match="PTR434") as raised:
        plan_operator(multiplies, "shares", programs=run_nothing, source=Source.CUDA)
    assert raised.value.hint == "Omit --from cuda."


def test_a_row_whose_function_runs_no_graph_that_is_seen_is_not_run(runs_elsewhere: Checkout) -> None:
    found = route(runs_elsewhere, "shares")
    assert found.route is Route.NONE and found.error and found.error.code == "PTR368"
    with pytest.raises(PorterError, match="PTR368") as raised:
        plan_operator(runs_elsewhere, "shares", programs=run_nothing)
    assert "No stub serves it either: " in raised.value.hint and "PTR071" in raised.value.hint


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (
            "turn_template<float>(self, 1, false);",
            "turn_template runs its graph, and not every call on the way is a plain statement",
        ),
        (
            "getCurrentMPSStream()->executeMPSGraph(graph->graph(), feeds, results);",
            "shares_mps runs its graph by executeMPSGraph, not by runMPSGraph",
        ),
    ],
)
def test_a_row_without_a_plain_way_to_its_graph_says_what_runs_it(tmp_path: Path, run: str, why: str) -> None:
    plain = "runMPSGraph(getCurrentMPSStream(), graph->graph(), feeds, output);"
    row = route(edit_host(tmp_path, plain, run), "shares")
    assert row.route is Route.NONE and row.error and row.error.code == "PTR368"
    assert row.error.what == f"shares has no function to port: {why}"


@pytest.mark.parametrize("code", ["PTR005", "PTR065", "PTR066"])
def test_no_old_code_runs_where_the_checkout_cannot_be_used(tmp_path: Path, code: str) -> None:
    checkout = copy_embedded(tmp_path / "fork")
    wrong = {
        "PTR005": (f"{OPERATIONS}/BinaryKernel.mm", "<<<<<<< ours\n=======\n>>>>>>> theirs\n"),
        "PTR065": (CLANG_FORMAT, "a: &a 1\nBasedOnStyle: *a\n"),
        "PTR066": (CLANG_FORMAT, "BasedOnStyle: inheritparentconfig\n"),
    }
    file, text = wrong[code]
    (checkout.root / file).write_text(text)
    with pytest.raises(PorterError, match=code) as raised:
        plan_operator(checkout, "atan2", programs=run_nothing)
    assert "No stub" not in raised.value.hint


def test_a_row_of_runs_says_why_no_stub_serves_it(tmp_path: Path) -> None:
    found = route(made_up.copy_fork(tmp_path), "shares")
    assert found.route is Route.RUNS and found.error and found.error.code == "PTR071"


def test_only_rows_that_no_stub_serves_have_an_error(tmp_path: Path) -> None:
    checkout = made_up.copy_fork(tmp_path)
    [function] = Operator.read(checkout, "shares").functions
    served = find_served(checkout, function)
    assert served
    for wrong in (Route.RUNS, Route.LIBRARY, Route.NONE):
        with pytest.raises(ValueError, match="kernel of a stub"):
            RowRoute(served, wrong)
    with pytest.raises(ValueError, match="kernel of a stub"):
        RowRoute(served, Route.SHARED, PorterError("PTR071", "no stub"))


def test_explain_shows_the_route_and_the_kernel_of_a_row_that_is_ported_from_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = made_up.copy_fork(tmp_path)
    old = OldCode(read_old_code(checkout, run=False).graphs, lambda _: lambda _: made_up.shares())
    monkeypatch.setattr("porter.workflows.explain.read_old_code", lambda *_, **__: old)
    stages = list(explain(checkout, "shares", record=False))
    [port, schedule, kernel] = stages[-3:]
    assert (port.title, schedule.title) == ("port", "schedule of shares")
    assert port.lines == ("shares: own row from runs; no stub serves it: PTR071 found no implementation of shares_cpu",)
    assert kernel.title == "kernel, from the recorded graph"
    [planned] = plan_operator(checkout, "shares", programs=lambda served: made_up.shares()).functors
    assert kernel.lines == tuple(planned.source.splitlines())


def test_explain_without_kept_runs_asks_for_them_and_not_for_a_person(tmp_path: Path) -> None:
    *_, last = explain(made_up.copy_fork(tmp_path), "shares", record=False)
    assert (last.title, last.lines[0].splitlines()[0]) == ("no kernel", "PTR395 no runs of shares are kept")
    assert "by hand" not in last.lines[0]
