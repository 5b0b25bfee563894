"""The lint of Metal that compiles: each fault is found at its line, and its repair is not."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from aten_overlay.lint import MetalWarning, lint, listening, warn, warn_of_launch
from aten_overlay.lint.finding import Across
from aten_overlay.lint.miscompilations import TABLE
from aten_overlay.metal.build import Options, preprocess, read_unit

SOURCE = Path(__file__).parent / "faults.metal"
ROOT = Path(__file__).resolve().parents[3]
FORK = ROOT / "aten_overlay" / "fork"
FINDINGS = lint(read_unit(preprocess(SOURCE, Options())))


def test_each_fault_is_found_at_its_line_and_no_repair_is() -> None:
    marked = {
        (number, code, mark[2])
        for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
        if (mark := re.search(r"// FAULTS? ([PTR\d ]+) (\w+)$", line))
        for code in mark[1].split()
    }
    assert {(f.place.line, f.code, f.kernel) for f in FINDINGS} == marked
    assert len(FINDINGS) == len(marked)


@pytest.mark.parametrize(("group", "holds"), [((32, 8), False), ((64, 1), True), ((16, 4), False), ((33, 1), True)])
def test_a_row_of_a_threadgroup_is_one_simdgroup_or_several(group: tuple[int, int], holds: bool) -> None:
    (row,) = (f for f in FINDINGS if f.kernel == "row_sum")
    assert row.across is Across.ROW and not row.is_certain
    with listening() as heard:
        warn_of_launch([row], group)
    assert heard == [row] * holds


def test_an_attribute_makes_a_lost_total_certain() -> None:
    (peak,) = (f for f in FINDINGS if f.kernel == "peak")
    assert peak.declared == 128 and peak.is_certain
    with pytest.warns(MetalWarning, match=r"faults.metal:\d+: PTR291 kernel `peak`: `simd_max` reduces a simdgroup"):
        warn([peak])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_launch([peak], (128,))  # it was warned of when it was compiled


def test_the_forks_kernels_have_no_findings() -> None:
    files = sorted(FORK.rglob("*.metal"))
    assert files
    for path in files:
        assert lint(read_unit(preprocess(path, Options(include=(FORK,))))) == ()


def test_each_known_miscompilation_is_in_the_page_of_the_lint() -> None:
    page = (ROOT / "docs" / "lint.md").read_text()
    for row in TABLE:
        for report in re.findall(r"\w+#\d+", row.source):
            assert report in page, report
