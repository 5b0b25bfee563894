"""Verdicts on samples of the old path, the classes of differences, and the table."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from expecttest import TestCase
from torch.testing._internal.opinfo.core import SampleInput

from parity import table as old_path_table
from parity.compare import (
    FRESH_BYTE,
    PLAIN,
    compare_results,
    is_near,
    is_unwritten,
    lie_between,
    pick_equal_elements,
    round_like,
    to_double,
    to_double_types,
)
from parity.differences import FAULT, LIMIT, Evidence
from parity.old_path import _draws, _is_copied, _varies, check_sample, pick_samples
from parity.operator_trace import trace_operators
from parity.outcomes import AGREE, DIFFER, LATE, NAN_LOST, OTHER_TYPE, UNCOMPARED, OpInfoResult
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import OPERATIONS


@pytest.mark.parametrize(
    ("got", "want", "verdict"),
    [
        (torch.tensor([1.0]), torch.tensor([1.0]), AGREE),
        (torch.tensor([100.0, 1.001]), torch.tensor([100.0, 1.0]), DIFFER),
        (torch.tensor([1.0009]).half(), torch.tensor([1.0]).half(), AGREE),
        (torch.tensor([torch.nan]), torch.tensor([1.0]), DIFFER),
        (torch.tensor([torch.nan]), torch.tensor([torch.nan]), AGREE),
        (torch.tensor([1]), torch.tensor([2]), DIFFER),
        (torch.tensor([1]), torch.tensor([1.0]), DIFFER),
        (torch.tensor([1, 2]), torch.tensor([1]), DIFFER),
        ((torch.tensor(1), True), (torch.tensor(1), False), DIFFER),
        ((torch.tensor(1),), (torch.tensor(1), torch.tensor(1)), DIFFER),
    ],
)
def test_results_agree_or_differ(got: object, want: object, verdict: str) -> None:
    assert compare_results(got, want, PLAIN).verdict == verdict


@pytest.mark.parametrize(
    ("got", "want", "alike"),
    [
        (torch.tensor([0.1]), torch.tensor([0.1], dtype=torch.float64), True),
        (torch.tensor([2]), torch.tensor([2.0], dtype=torch.float64), True),
        (torch.tensor([2]), torch.tensor([2.5], dtype=torch.float64), False),
        (torch.tensor([0.2]), torch.tensor([0.1], dtype=torch.float64), False),
        (torch.tensor([2.0, 2.0]), torch.tensor([2.0], dtype=torch.float64), False),
    ],
)
def test_a_wrong_type_is_told_apart_from_wrong_values(got: torch.Tensor, want: torch.Tensor, alike: bool) -> None:
    outcome = compare_results(got, want, PLAIN)
    assert (outcome.verdict, outcome.values) == (DIFFER, False)
    assert outcome.why.startswith(OTHER_TYPE) is alike


def test_results_are_random_where_the_seed_changes_them() -> None:
    assert _draws("rand") and _draws("dropout") and not _draws("add")
    assert _varies(lambda: torch.nn.functional.dropout(torch.ones(64)))
    assert not _varies(lambda: torch.nn.functional.dropout(torch.ones(64), 0.0))


def test_a_seed_set_by_the_sample_is_varied() -> None:
    def compute(rate: float) -> torch.Tensor:
        torch.manual_seed(42)
        return torch.nn.functional.dropout(torch.ones(64), rate)

    assert _varies(lambda: compute(0.5))
    assert not _varies(lambda: compute(0.0))


@pytest.mark.parametrize(
    ("got", "expected"),
    [([100.0, 1.001], True), ([100.0, 1.1], False), ([100.0, torch.inf], False), ([100.0, torch.nan], False)],
)
def test_small_differences_are_relative_to_the_largest_magnitude(got: list[float], expected: bool) -> None:
    assert is_near(torch.tensor(got), torch.tensor([100.0, 1.0])) is expected


def test_only_floats_may_be_near_without_being_equal() -> None:
    assert is_near(torch.tensor([True, False]), torch.tensor([True, False]))
    assert not is_near(torch.tensor([True, False]), torch.tensor([True, True]))
    assert not is_near(torch.tensor([2**24 + 1]), torch.tensor([2**24]))


def test_spread_bounds_every_element() -> None:
    low, high = torch.tensor([1, 1]), torch.tensor([2, 1])
    assert lie_between((torch.tensor([2, 1]),), ((low,), (high,)))
    assert not lie_between((torch.tensor([2, 2]),), ((low,), (high,)))
    nan, one = torch.tensor([torch.nan]), torch.tensor([1.0])
    assert lie_between(nan, (nan, nan)) and not lie_between(nan, (nan, one)) and not lie_between(one, (nan, one))
    assert not lie_between(one, (one.half(), one)) and not lie_between(1, (1, 1))


def test_a_view_of_a_part_is_not_copied() -> None:
    memory = torch.arange(6.0)
    part, whole = SampleInput(memory[1:3], args=((2,), (1,), 3)), SampleInput(memory, args=((2,), (1,), 3))

    def compute(sample: SampleInput) -> torch.Tensor:
        return torch.as_strided(sample.input, *sample.args)

    assert _is_copied(compute, whole, compute(whole))
    assert not _is_copied(compute, part, compute(part))
    assert _is_copied(lambda sample: torch.rand(3), part, torch.rand(3))


def test_samples_the_cpu_refuses_are_reported_not_compared() -> None:
    def refuse(sample: SampleInput) -> torch.Tensor:
        raise RuntimeError("no such thing\nand more")

    outcome, ran = check_sample(refuse, PLAIN, SampleInput(torch.ones(1)))
    assert (outcome.verdict, outcome.why) == (UNCOMPARED, "the CPU refuses it: RuntimeError: no such thing")
    assert not ran.graphs


def test_samples_are_spread_over_all() -> None:
    assert pick_samples(range(5), 12) == [0, 1, 2, 3, 4]
    chosen = pick_samples(range(264), 12)
    assert chosen == sorted(set(chosen)) == pick_samples(range(264), 12)
    assert len(chosen) == 12 and chosen[0] < 66 and chosen[-1] > 198


def test_widening_a_sample_keeps_its_integers() -> None:
    whole, half = torch.ones(2, dtype=torch.int32), torch.full((2,), 0.1, dtype=torch.float16, requires_grad=True)
    assert to_double(whole) is whole and to_double(torch.int32) is torch.int32
    assert to_double(torch.float16) is torch.float64 and to_double(torch.complex64) is torch.complex128
    wide = to_double(half)
    assert wide.dtype is torch.float64 and wide.requires_grad and torch.equal(wide.half(), half)
    [back, index] = round_like((wide / 3, whole), (half, whole))
    assert back.dtype is torch.float16 and index is whole
    assert to_double_types(torch.int32) is torch.float64 and to_double_types(whole) is whole
    assert round_like([torch.tensor([2.7, -2.7])], [whole])[0].tolist() == [2, -2]


def test_equal_elements_may_come_in_another_order() -> None:
    source = torch.tensor([[2.0, 1.0, 1.0]])
    values, first, other = torch.tensor([[1.0, 1.0, 2.0]]), torch.tensor([[1, 2, 0]]), torch.tensor([[2, 1, 0]])
    assert pick_equal_elements(source, (values, other), (values, first))
    assert not pick_equal_elements(source, (values, torch.tensor([[0, 1, 2]])), (values, first))
    assert not pick_equal_elements(source, (values + 1, other), (values, first))
    assert not pick_equal_elements(source, torch.tensor([[1, 2, 9]]), first)
    assert not pick_equal_elements(source, torch.tensor([[1, 1, 0]]), first)  # one twice
    assert not pick_equal_elements(torch.tensor([[torch.nan, 0.0]]), torch.tensor([[1]]), torch.tensor([[0]]))
    rows = torch.tensor([[1, 2, 2], [0, 1, 1]])
    assert pick_equal_elements(rows, torch.tensor([[1], [2]]), torch.tensor([[2], [1]]))
    assert not pick_equal_elements(rows, torch.tensor([[1], [0]]), torch.tensor([[2], [1]]))


def test_unwritten_results_are_recognized_by_their_bytes() -> None:
    fresh = torch.full((4,), FRESH_BYTE, dtype=torch.uint8).view(torch.float32)
    nan, one = torch.tensor([torch.nan]), torch.ones(1)
    assert is_unwritten((fresh, one), (nan, one), (True, False))
    assert not is_unwritten((fresh, one), (nan, one), (False, True))  # a graph was asked for it
    assert not is_unwritten((fresh, one), (nan, torch.zeros(1)), (True, True))
    assert not is_unwritten(one, one, (True,))


def test_every_dispatched_operator_is_reached() -> None:
    with trace_operators() as names:
        torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3))
    assert {"linear", "t", "mm"} <= names
    assert "add" not in names


def test_calls_below_a_cpu_fallback_are_not_reached() -> None:
    counts: dict[str, int] = {}
    with trace_operators(lambda: counts.copy()) as names:
        counts["aten::linear"] = 1
        torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3))
        torch.ones(2).abs()
    assert {"linear", "abs"} <= names
    assert not {"t", "mm"} & names


@pytest.fixture
def evidence() -> Evidence:
    return Evidence((("int32 is not supported here", "a.mm:3"), ("not supported here", "b.mm:4")))


@pytest.mark.parametrize(
    ("verdict", "why", "kind", "told"),
    [
        ("refused", "RuntimeError: int32 is not supported here", LIMIT, "a.mm:3"),
        (
            "refused",
            "RuntimeError: PTR131 not supported here",
            FAULT,
            "RuntimeError: PTR131 not supported here",
        ),
        ("differ", "not supported here", FAULT, "not supported here"),
        ("differ", "3 elements", FAULT, "3 elements"),
        ("refused", "PTR131 x", FAULT, "PTR131 x"),
        ("precision", "0.1", "precision", "0.1"),
        ("refused", "PTR126: too large", LIMIT, "the Metal API's validation: PTR126: too large"),
        ("refused", "PTR127 none", LIMIT, "its host code relies on undefined behavior: PTR127 none"),
        ("differ", "int32 (2,), the CPU gives float64 (2,)", FAULT, "int32 (2,), the CPU gives float64 (2,)"),
        ("differ", f"{NAN_LOST}: 8", LIMIT, "its graph uses operations that drop NaN"),
        (
            "differ",
            f"{LATE}: 8",
            LIMIT,
            f"its host code computes in floats, the CPU in the result's dtype: {LATE}: 8",
        ),
        ("differ", f"{OTHER_TYPE}: int32", LIMIT, f"the host code chooses the dtype: {OTHER_TYPE}: int32"),
        ("differ", "never written: 3", LIMIT, "its host code leaves the result uninitialized"),
    ],
)
def test_a_difference_listed_by_the_fork_belongs_to_the_old_path(
    evidence: Evidence, verdict: str, why: str, kind: str, told: str
) -> None:
    reason = evidence.classify(verdict, why)
    assert (reason.kind, reason.evidence) == (kind, told)


def test_checks_are_read_from_the_mps_code_of_the_fork(tmp_path: Path) -> None:
    path = tmp_path / OPERATIONS / "Some.mm"
    path.parent.mkdir(parents=True)
    path.write_text(
        'int x;\nTORCH_CHECK(false, "MPS: this is \\"not\\" done");\n'
        'AT_DISPATCH_TYPES(x.scalar_type(), "some_mps", [&]() {});\nTORCH_INTERNAL_ASSERT(x.dim() == 2 ||\n  y.dim());\n'
    )
    found = Evidence.read(Checkout(tmp_path, "named"))
    assert found.checks == (
        ('MPS: this is "not" done', f"{OPERATIONS}/Some.mm:2"),
        ('"some_mps" not implemented for', f"{OPERATIONS}/Some.mm:3"),
        ("Expected x.dim() == 2 || y.dim() to be true", f"{OPERATIONS}/Some.mm:4"),
    )


def test_only_refusals_by_the_stand_in_count_as_faults() -> None:
    reasons = (("uncompared", "the CPU refuses it: no", 2), ("uncompared", "the CPU refuses it: PTR134 no", 1))
    lines = [OpInfoResult("erf", ("erf",), "bool", {"uncompared": 3}, reasons, 0, ("erf",))]
    [row] = old_path_table.table(["erf"], lines, Evidence(()))
    assert row.classes == {FAULT: 1}


class TestTable(TestCase):
    def test_an_operator_is_compared_by_its_own_opinfos_first(self) -> None:
        lines = [
            OpInfoResult(
                "erf",
                ("erf",),
                "float32",
                {"agree": 3, "refused": 1},
                (("refused", "PTR131 x", 1),),
                4,
                ("erf", "copy_"),
            ),
            OpInfoResult("erf", ("erf",), "bool", {"refused": 2}, (("refused", "no bool", 2),), 0, ("copy_",)),
            OpInfoResult(
                "special.erf", ("special_erf",), "float32", {"agree": 9}, (), 9, ("erf", "copy_", "special_erf")
            ),
            OpInfoResult("erf", ("erf",), "-", {"died": 1}, (("died", "it died", 1),)),
            OpInfoResult(
                "nn.gelu", (), "float32", {"agree": 2, "precision": 1}, (("precision", "far", 1),), 3, ("gelu", "ceil_")
            ),
        ]
        out = io.StringIO()
        found = Evidence(())
        old_path_table.write(Checkout(EMBEDDED_FORK, "named"), lines, found, {}, out)
        told = "\n".join(line for line in out.getvalue().splitlines() if "no sample" not in line)
        self.assertExpectedInline(
            told,
            """\
ceil	float32	3 graphs	2	0	1	0	0	precision 1	precision: far	through nn.gelu
erf	float32	4 graphs	3	0	0	0	1	fault 1	fault: PTR131 x
erf	-	no graph	0	0	0	0	0	fault 1	fault: it died
2 operators through 2 OpInfos: 8 samples; of those with defined values 62.5% agree, 75.0% but for precision
{'agree': 5, 'refused': 1, 'died': 1, 'precision': 1} {'fault': 2, 'precision': 1}
all that reach one: 3 OpInfos: 19 samples; of those with defined values 73.7% agree, 78.9% but for precision
{'agree': 14, 'refused': 3, 'died': 1, 'precision': 1} {'fault': 4, 'precision': 1}""",
        )
