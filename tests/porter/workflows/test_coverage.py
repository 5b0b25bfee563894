"""The elementwise rows of a fork and what came of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.lacking import is_elementwise
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import Operator
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE, NATIVE_FUNCTIONS, OPERATIONS
from porter.report.coverage import LIBRARY, Coverage, CoverageRow, coverage_object, coverage_text
from porter.report.coverage import NATIVE as IS_NATIVE
from porter.report.results import FAIL, NO_VERDICT, NOT_PLANNED, PASS, OperatorResult, Provenance, Shard, UnportedRow
from porter.verdict.result import Failure, Verdict
from porter.workflows.coverage import find_coverage
from porter.workflows.migrate import NotPlanned, PortedOperator, Request, migrate
from porter.workflows.results import collect, no_results, read_results, write_results
from porter.workflows.status import operators, recordable
from tests.porter.plan.recorded.fork import copy_fork

FORK = Checkout(EMBEDDED_FORK, "test")
ROW = """\
- func: made.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA: made_out
"""


def elementwise(text: str, row: str = ROW) -> bool:
    """Whether a row is, whose kernel is this C++."""
    header = "DECLARE_DISPATCH(void(*)(TensorIteratorBase&), made_stub)\n"
    files = {NATIVE_FUNCTIONS: row, f"{NATIVE}/Made.cpp": text, f"{NATIVE}/Made.h": header}

    def write(root: Path) -> Checkout:
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
        return Checkout(root, "test")

    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        fork = write(Path(folder))
        [function] = NativeFunctions.read(fork).all
        return is_elementwise(fork, Operator("made", (function,), ()), function)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("auto iter = TensorIterator::unary_op(out, self); made_stub(iter.device_type(), iter);", True),
        ("auto iter = TensorIteratorConfig().add_output(out).build(); made_stub(iter.device_type(), iter);", True),
        ("auto iter = TensorIteratorConfig().declare_static_shape(s).build(); made_stub(kCPU, iter);", False),
        ("auto iter = make_reduction(out, self); made_stub(iter.device_type(), iter);", False),
        ("return at::other_out(out, self);", False),
        ("auto iter = TensorIteratorConfig().add_const_input(self).build(); count(iter);", False),
        ("auto iter = TensorIterator::borrowing_nullary_op(out); made_stub(iter.device_type(), iter);", False),
        (
            "auto iter = TensorIterator::unary_op(out, self);\n"
            "for (auto at : each) { iter.unsafe_replace_operand(0, at); made_stub(iter.device_type(), iter); }",
            False,
        ),
        ("auto iter = TensorIteratorConfig().add_output(self.as_strided(a, b)).build(); made_stub(kCPU, iter);", False),
    ],
)
def test_a_kernel_is_elementwise_by_the_iterator_that_it_builds(text: str, wanted: bool) -> None:
    assert elementwise(f"Tensor& made_out(const Tensor& self, Tensor& out) {{\n  {text}\n}}\n") is wanted


HELPER = """\
static Tensor& run(Tensor& out, const Tensor& self) {
  auto iter = BUILT;
  made_stub(iter.device_type(), iter);
  return out;
}
Tensor& made_out(const Tensor& self, Tensor& out) {
  return run(out, self);
}
"""


@pytest.mark.parametrize(
    ("built", "wanted"),
    [
        ("TensorIterator::unary_op(out, self)", True),
        ("TensorIteratorConfig().add_output(out).build()", True),
        ("TensorIteratorConfig().set_check_mem_overlap(false).add_output(out).build()", False),
        ("make_reduction(out, self)", False),
    ],
)
def test_a_helper_may_build_the_iterator(built: str, wanted: bool) -> None:
    assert elementwise(HELPER.replace("BUILT", built)) is wanted


def test_a_row_without_a_tensor_is_a_factory() -> None:
    text = "Tensor& made_out(Tensor& out) {\n  auto iter = TensorIteratorConfig().add_output(out).build();\n}\n"
    assert not elementwise(text, ROW.replace("Tensor self", "Scalar end"))
    assert elementwise(text)


def test_a_meta_function_alone_can_say_so() -> None:
    meta = "TORCH_META_FUNC(made) (const Tensor& self) {\n  build_unary_float_op(maybe_get_output(), self);\n}\n"
    assert elementwise(meta)
    assert not elementwise(meta.replace("build_unary_float_op", "resize_reduction"))


def test_without_results_a_row_says_that_it_has_none_or_what_holds_it_back() -> None:
    found = find_coverage(FORK, no_results(FORK))
    held = {row.name: row.reason for each in operators(FORK) for row in each.rows if row.blocked and row.reason}
    assert found.old and not found.ported
    for row in found.old:
        assert row.code == (held[row.name].code if row.name in held else "PTR330"), row.name
    assert {row.outcome for row in found.rows if row not in found.old} == {IS_NATIVE}
    assert {"exp.out", "atan2.out"} <= {row.name for row in found.rows}


def test_results_of_a_run_are_what_rows_come_to(tmp_path: Path) -> None:
    ported = [each for each in migrate(FORK, Request(("erf", "logit"))) if isinstance(each, PortedOperator)]
    run = collect(FORK, [*ported, NotPlanned("neg", PorterError("PTR018", "no"))], Shard(1, 2))
    assert [(each.op, each.family, each.code, each.rows) for each in run.operators] == [
        ("erf", "UnaryOps", "PTR330", ("erf.out",)),
        ("logit", "UnaryOps", "PTR330", ("logit", "logit.out")),
        ("neg", "UnaryOps", "PTR018", ()),
    ]
    assert run.shard == "1/2" and all(each.lines > 10 for each in run.operators[:2])
    write_results(tmp_path / "r.json", run)
    read = read_results([tmp_path / "r.json"])
    assert read.operators == tuple(sorted(run.operators, key=lambda each: each.op))
    rows = {row.name: row for row in find_coverage(FORK, read).rows}
    assert (rows["neg.out"].outcome, rows["neg.out"].code) == (NOT_PLANNED, "PTR018")


def test_a_row_that_its_plan_leaves_is_not_ported(monkeypatch: pytest.MonkeyPatch) -> None:
    left = UnportedRow("logit.out", "PTR018", "logit.out stays on MPSGraph: no")
    found = OperatorResult("logit", "UnaryOps", PASS, rows=("logit",), unported=(left,))
    base = no_results(FORK)
    rows = {row.name: row for row in find_coverage(FORK, replace(base, operators=(found,))).rows}
    assert (rows["logit"].outcome, rows["logit.out"].outcome) == (PASS, NOT_PLANNED)


def test_files_that_cannot_be_read_or_written_are_said(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="PTR329"):
        read_results([tmp_path / "no.json"])
    with pytest.raises(PorterError, match="PTR329"):
        write_results(tmp_path / "no" / "r.json", no_results(FORK))


TABLE = Coverage(
    "fork",
    "d",
    Provenance("1.0", "c" * 40, "2.13.0"),
    (
        CoverageRow("erf.out", "erf", "UnaryOps", PASS, "", ""),
        CoverageRow("logit", "logit", "UnaryOps", FAIL, "PTR331", "1 | 2\nmore"),
        CoverageRow("where.self", "where", "TensorCompare", NOT_PLANNED, "PTR018", "types"),
        CoverageRow("exp.out", "exp", "UnaryOps", IS_NATIVE, "", ""),
    ),
)


def test_the_page_has_the_rule_the_counts_and_every_reason() -> None:
    assert_expected_inline(
        coverage_text(TABLE, "porter status --coverage"),
        """\
# Coverage

Made by `porter status --coverage`.

From porter 1.0 at commit cccccccccccccccccccccccccccccccccccccccc, torch 2.13.0, on the fork fork (digest d).

A row is elementwise if it takes a tensor, and its meta function, or the function that serves the CPU, itself or through a helper, builds a TensorIterator that writes one element for each element of its operands: of one shape, whole rather than in slices, and with their own strides. Rows that are native Metal already are counted apart.

1 of 3 (33%) of the elementwise rows have a complete port with a passing verdict on `host`.
1 more are native already.

| family | rows | passed | left |
| --- | --- | --- | --- |
| TensorCompare | 1 | 0 | 1 |
| UnaryOps | 2 | 1 | 1 |

## What is left

PTR018: 1, PTR331: 1

| row | outcome | code | reason |
| --- | --- | --- | --- |
| `logit` | FAIL | PTR331 | 1 \\| 2 |
| `where.self` | not planned | PTR018 | types |

## What passed

`erf.out`
""",
    )


def test_other_rows_that_build_graphs_have_a_table_of_their_own() -> None:
    others = (
        CoverageRow("sum.IntList_out", "sum", "ReduceOps", PASS, "", ""),
        CoverageRow("cat.out", "cat", "Shape", NOT_PLANNED, "PTR371", "other arguments"),
        CoverageRow("mm.out", "mm", "LinearAlgebra", LIBRARY, "", ""),
    )
    page = coverage_text(replace(TABLE, others=others), "porter status --coverage")
    assert_expected_inline(
        page[page.index("## Rows that are not") :],
        """\
## Rows that are not elementwise

1 of 2 (50%) of the other rows that build graphs have a complete port with a passing verdict.
1 more call a library, which stays: matrix products and the like.

| row | outcome | code | reason |
| --- | --- | --- | --- |
| `cat.out` | not planned | PTR371 | other arguments |

Ported: `sum.IntList_out`.

Library calls: `mm.out`.
""",
    )


def test_rows_are_counted_by_how_they_are_ported() -> None:
    others = (
        CoverageRow("sum.IntList_out", "sum", "ReduceOps", PASS, "", "", "own row from runs"),
        CoverageRow("cat.out", "cat", "Shape", NOT_PLANNED, "PTR371", "other arguments", "own row from runs"),
        CoverageRow("mm.out", "mm", "LinearAlgebra", LIBRARY, "", "", "library call"),
    )
    page = coverage_text(replace(TABLE, others=others), "porter status --coverage")
    assert_expected_inline(
        page[page.index("## How rows") :],
        """\
## How rows are ported

The 3 rows that build graphs, by [what `porter migrate` does with them](json.md#porter-status---json).

| how | rows | passed | left |
| --- | --- | --- | --- |
| shared row | 0 | 0 | 0 |
| own row | 0 | 0 | 0 |
| own row from runs | 2 | 1 | 1 |
| library call | 1 | 0 | 1 |
| none | 0 | 0 | 0 |
""",
    )


def test_what_the_fork_fails_before_and_after_has_a_line_of_its_own() -> None:
    older = "1 failed before the port and after, the first T.test_out: IndexError: 1 | 2"
    others = (CoverageRow("sum.IntList_out", "sum", "ReduceOps", PASS, "", older),)
    page = coverage_text(replace(TABLE, others=others), "porter status --coverage")
    assert_expected_inline(
        page[page.index("## Findings") :],
        """\
## Findings about the fork

Tests that failed before the port and after, for the same reasons, in nothing that a kernel computed.

| row | tests |
| --- | --- |
| `sum.IntList_out` | 1 failed before the port and after, the first T.test_out: IndexError: 1 \\| 2 |
""",
    )


@pytest.fixture(scope="module")
def ported() -> PortedOperator:
    [planned] = [each for each in migrate(FORK, Request(("erf",))) if isinstance(each, PortedOperator)]
    return planned


@pytest.mark.parametrize(("codes", "wanted"), [(("PTR447",) * 2, "PTR447"), (("PTR447", ""), "PTR331")])
def test_a_port_that_only_the_fork_s_faults_fail_has_their_code(
    ported: PortedOperator, codes: tuple[str, ...], wanted: str
) -> None:
    wrong = tuple(Failure("T.test_out", "refused", before="failed", code=code) for code in codes)
    failed = Verdict("erf", "host", "default", 3, 2, 0, 7, None, 0.5, failures=wrong)
    [result] = collect(FORK, [replace(ported, verdict=failed)], None).operators
    assert (result.outcome, result.code) == (FAIL, wanted)


def test_a_port_that_passes_says_what_failed_before(ported: PortedOperator) -> None:
    older = Failure("T.test_out", "IndexError: no\nmore", before="failed")
    passed = Verdict("erf", "host", "default", 3, 0, 0, 7, None, 0.5, failed_before=(older, older))
    [found] = collect(FORK, [replace(ported, verdict=passed)], None).operators
    assert (found.outcome, found.code) == (PASS, "")
    assert found.reason == "2 failed before the port and after, the first T.test_out: IndexError: no"


def test_rows_that_multiply_matrices_call_a_library(tmp_path: Path) -> None:
    fork = copy_fork(tmp_path)
    host = fork.root / OPERATIONS / "Turns.mm"
    product = "makeMatrices(^() { [graph scaledDotProductAttentionWithQueryTensor:a name:nil]; })"
    host.write_text(host.read_text().replace("(key, makeGraph);\n  runMPSGraph(", f"(key, {product});\n  runMPSGraph("))
    rows = {row.name: row for row in find_coverage(fork, no_results(fork)).others}
    outcomes = {name: row.outcome for name, row in rows.items()}
    assert (outcomes["shares"], rows["shares"].code) == (LIBRARY, "PTR020")
    assert outcomes["turned"] == outcomes["mean_square.out"] == NO_VERDICT
    found = recordable(fork)
    assert {"turned", "mean_square"} <= {*found} and not {"shares", "erf", "exp"} & {*found}


def test_all_with_those_that_no_stub_serves(tmp_path: Path) -> None:
    fork = copy_fork(tmp_path)
    alone, more = (list(migrate(fork, Request(all=True, recorded=recorded))) for recorded in (False, True))
    added = {each.op: each.error.code for each in more if isinstance(each, NotPlanned)}
    assert added["turned"] == "PTR395" and len(more) - len(alone) == len(recordable(fork))
    assert not any(each.op == "turned" for each in alone if isinstance(each, NotPlanned))


def test_the_object_counts_rows_by_outcome() -> None:
    assert coverage_object(TABLE)["counts"] == {PASS: 1, FAIL: 1, NOT_PLANNED: 1, IS_NATIVE: 1}
