"""What kernels may call is what the fork's own header declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.core.checkout import Checkout
from porter.core.layout import METAL_HEADERS
from porter.plan.recorded.files import read_style
from tests.porter.plan.recorded.fork import copy_fork

DECLARED = "template <typename T>\nfloat3 threadgroup_welford_combine(\n    threadgroup T* data,\n    {count});\n"


@pytest.mark.parametrize(
    ("count", "welford"),
    [("unsigned idx,\n    unsigned size", True), ("unsigned size", False)],
    ids=["threads", "other"],
)
def test_welford_is_used_where_the_header_has_it(tmp_path: Path, count: str, welford: bool) -> None:
    before = copy_fork(tmp_path)
    assert not read_style(before).welford
    with (before.root / METAL_HEADERS / "reduction_utils.h").open("a") as header:
        header.write(DECLARED.format(count=count))
    style = read_style(Checkout(before.root, "with more in its header"))
    assert style.welford is welford
    assert style.threadgroup_reductions
