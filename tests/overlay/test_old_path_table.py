"""Verdicts on samples of the old path, the classes of differences, and the table."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from expecttest import TestCase

from porter.checkout import EMBEDDED_FORK, OPERATIONS, Checkout
from porter.overlay import old_path_table
from porter.overlay.old_path import FRESH_BYTE, _equal_elements, _if_random, _unwritten, compared
from porter.overlay.old_path_lines import AGREE, DIFFER, PRECISION, UNDEFINED, Line
from porter.overlay.reached import reached
from porter.overlay.reasons import FAULT, LIMIT, Evidence

PLAIN: dict[str, float | None] = {"rtol": None, "atol": None}


@pytest.mark.parametrize(
    ("got", "want", "verdict"),
    [
        (torch.tensor([1.0]), torch.tensor([1.0]), AGREE),
        (torch.tensor([100.0, 1.001]), torch.tensor([100.0, 1.0]), PRECISION),
        (torch.tensor([100.0, 1.1]), torch.tensor([100.0, 1.0]), DIFFER),
        (torch.tensor([1.004]).half(), torch.tensor([1.0]).half(), PRECISION),
        (torch.tensor([torch.nan]), torch.tensor([1.0]), DIFFER),
        (torch.tensor([torch.nan]), torch.tensor([torch.nan]), AGREE),
        (torch.tensor([1]), torch.tensor([2]), DIFFER),
        (torch.tensor([1]), torch.tensor([1.0]), DIFFER),
        (torch.tensor([1, 2]), torch.tensor([1]), DIFFER),
        ((torch.tensor(1), True), (torch.tensor(1), False), DIFFER),
        ((torch.tensor(1),), (torch.tensor(1), torch.tensor(1)), DIFFER),
    ],
)
def test_results_agree_or_are_near_or_differ(got: object, want: object, verdict: str) -> None:
    assert compared(got, want, PLAIN).verdict == verdict


def test_only_the_values_of_random_results_may_differ() -> None:
    different = compared(torch.rand(3), torch.rand(3) + 1, PLAIN)
    assert _if_random(different, {"rand", "copy_"}).verdict == UNDEFINED
    assert _if_random(different, {"add", "copy_"}).verdict == DIFFER
    assert _if_random(compared(torch.rand(3), torch.rand(4), PLAIN), {"rand"}).verdict == DIFFER


def test_equal_elements_may_come_in_another_order() -> None:
    source = torch.tensor([[2.0, 1.0, 1.0]])
    values, first, other = torch.tensor([[1.0, 1.0, 2.0]]), torch.tensor([[1, 2, 0]]), torch.tensor([[2, 1, 0]])
    assert _equal_elements(source, (values, other), (values, first))
    assert not _equal_elements(source, (values, torch.tensor([[0, 1, 2]])), (values, first))
    assert not _equal_elements(source, (values + 1, other), (values, first))
    assert not _equal_elements(source, torch.tensor([[1, 2, 9]]), first)
    rows = torch.tensor([[1, 2, 2], [0, 1, 1]])
    assert _equal_elements(rows, torch.tensor([[1], [2]]), torch.tensor([[2], [1]]))
    assert not _equal_elements(rows, torch.tensor([[1], [0]]), torch.tensor([[2], [1]]))


def test_what_nothing_wrote_is_told_by_its_bytes() -> None:
    fresh = torch.full((4,), FRESH_BYTE, dtype=torch.uint8).view(torch.float32)
    assert _unwritten((fresh, torch.ones(1)), (torch.tensor([torch.nan]), torch.ones(1)))
    assert not _unwritten((fresh, torch.ones(1)), (torch.tensor([torch.nan]), torch.zeros(1)))
    assert not _unwritten(torch.ones(1), torch.ones(1))


def test_every_operator_on_the_way_is_reached() -> None:
    with reached() as names:
        torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3))
    assert {"linear", "t", "mm"} <= names
    assert "add" not in names


@pytest.fixture
def evidence() -> Evidence:
    listed = frozenset({"TestConsistencyMPS.test_output_match_floor_mps_float32"})
    return Evidence((("int32 is not supported here", "a.mm:3"), ("not supported here", "b.mm:4")), listed, "list.py")


@pytest.mark.parametrize(
    ("op", "verdict", "why", "kind", "told"),
    [
        ("ceil", "refused", "RuntimeError: int32 is not supported here", LIMIT, "a.mm:3"),
        (
            "ceil",
            "refused",
            "RuntimeError: PTR131 not supported here",
            FAULT,
            "RuntimeError: PTR131 not supported here",
        ),
        ("ceil", "differ", "not supported here", FAULT, "not supported here"),
        ("floor", "differ", "3 elements", LIMIT, "list.py expects it"),
        ("floor", "refused", "PTR131 x", FAULT, "PTR131 x"),
        ("floor", "precision", "0.1", "precision", "0.1"),
        ("ceil", "refused", "PTR126: too large", LIMIT, "the Metal API's validation: PTR126: too large"),
        ("ceil", "refused", "PTR127 none", LIMIT, "its host code asks for what is not defined: PTR127 none"),
        ("ceil", "differ", "int32 (2,), the CPU gives float64 (2,)", LIMIT, "the device has no float64"),
        ("ceil", "differ", "never written: 3", LIMIT, "its host code leaves the result as the memory was"),
    ],
)
def test_a_difference_is_the_old_paths_own_where_the_fork_says_so(
    evidence: Evidence, op: str, verdict: str, why: str, kind: str, told: str
) -> None:
    reason = evidence.reason(op, "float32", verdict, why)
    assert (reason.kind, reason.evidence) == (kind, told)


def test_checks_are_read_from_the_forks_own_mps_code(tmp_path: Path) -> None:
    path = tmp_path / OPERATIONS / "Some.mm"
    path.parent.mkdir(parents=True)
    path.write_text('int x;\nTORCH_CHECK(false, "MPS: this is \\"not\\" done");\n')
    found = Evidence.read(Checkout(tmp_path, "named"), ())
    assert found.checks == (('MPS: this is "not" done', f"{OPERATIONS}/Some.mm:2"),)
    assert found.listed == frozenset()


class TestTable(TestCase):
    def test_an_operator_is_judged_by_the_opinfos_of_its_name_else_by_the_closest(self) -> None:
        lines = [
            Line(
                "erf",
                ("erf",),
                "float32",
                {"agree": 3, "refused": 1},
                (("refused", "PTR131 x", 1),),
                4,
                ("erf", "copy_"),
            ),
            Line("special.erf", ("special_erf",), "float32", {"agree": 9}, (), 9, ("erf", "copy_", "special_erf")),
            Line(
                "nn.gelu", (), "float32", {"agree": 2, "precision": 1}, (("precision", "far", 1),), 3, ("gelu", "ceil_")
            ),
        ]
        out = io.StringIO()
        found = Evidence((), frozenset(), "")
        old_path_table.write(Checkout(EMBEDDED_FORK, "named"), lines, found, {}, out)
        told = "\n".join(line for line in out.getvalue().splitlines() if "no OpInfo" not in line)
        self.assertExpectedInline(
            told,
            """\
ceil	float32	3 graphs	2	0	1	0	0	precision 1	precision: far	through nn.gelu
erf	float32	4 graphs	3	0	0	0	1	fault 1	fault: PTR131 x
2 operators through 2 OpInfos: 7 samples
{'agree': 5, 'refused': 1, 'precision': 1} 85.7% match; {'fault': 1, 'precision': 1}""",
        )
