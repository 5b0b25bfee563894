"""Nodes of host code: statements that all branches have are written once, and kernels by a name or a variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.core.checkout import Checkout
from porter.core.layout import DEVICE
from porter.metal.codegen.host_code import (
    Block,
    Branches,
    Encode,
    Hoisted,
    Launch,
    Line,
    declare,
    hoist,
)
from porter.metal.host import profiles_streams

LAUNCH = Block("launch(^() {", (Line("run();"),), "});")
COPY_A = Block("if (!a_.is_same(a)) {", (Line("a.copy_(a_);"),))
COPY_B = Block("if (!b_.is_same(b)) {", (Line("b.copy_(b_);"),))
MADE_A, MADE_B = declare("a_", "a.contiguous()"), declare("b_", "b.contiguous()")
DISPATCH = (Line("dispatch(PSO);"),)
ENCODE = Encode("sums", ("type_of(a)", "index_type"), "PSO", ("a_",), ("out", "a_"), DISPATCH)
COMBINE = Encode("sums", (), "combinePSO", ("partial",), ("out", "partial"), DISPATCH, "_combine")


def test_the_order_of_statements_does_not_matter() -> None:
    hoisted = hoist([(MADE_A, MADE_B, LAUNCH, COPY_A, COPY_B), (MADE_B, MADE_A, LAUNCH, COPY_B, COPY_A)])
    assert hoisted == Hoisted((MADE_A, MADE_B), ((LAUNCH,), (LAUNCH,)), (COPY_A, COPY_B))


def test_a_launch_stays_before_what_copies_its_results() -> None:
    hoisted = hoist([(MADE_A, MADE_B, LAUNCH, COPY_A, COPY_B), (MADE_A, LAUNCH, COPY_A)])
    assert hoisted == Hoisted((MADE_A,), ((MADE_B, LAUNCH, COPY_B), (LAUNCH,)), (COPY_A,))


def test_what_uses_a_variable_of_one_branch_stays_there() -> None:
    one, other = (declare("size", f"a.size({i})", "int64_t") for i in range(2))
    rows = declare("rows", "share_rows(size)")
    hoisted = hoist([(one, rows, LAUNCH), (other, rows, LAUNCH)])
    assert hoisted == Hoisted((), ((one, rows, LAUNCH), (other, rows, LAUNCH)), ())


def test_what_copies_a_result_that_branches_make_otherwise_stays_there() -> None:
    other = declare("a_", "a.clone()")
    hoisted = hoist([(MADE_A, LAUNCH, COPY_A), (other, LAUNCH, COPY_A)])
    assert hoisted == Hoisted((), ((MADE_A, LAUNCH, COPY_A), (other, LAUNCH, COPY_A)), ())


def test_nothing_moves_before_a_block_that_may_return() -> None:
    returns = Block("if (a.numel() == 0) {", (Line("return;"),))
    hoisted = hoist([(returns, MADE_A, LAUNCH), (MADE_A, LAUNCH)])
    assert not hoisted.before


def test_a_kernel_is_named_by_itself_or_by_a_variable() -> None:
    launch = Launch((Block("pool {", (ENCODE, Block("if (slices > 1) {", (COMBINE,)))),))
    assert launch.kernels == ("sums",)
    text = launch.write()
    assert '("sums_" + type_of(a) + "_" + index_type);' in text and '(combinePSO, "sums_combine", {partial});' in text
    text = launch.with_variable().write()
    assert '(kernel + "_" + type_of(a) + "_" + index_type);' in text and "(PSO, kernel, {a_});" in text
    assert 'Func(kernel + "_combine");' in text and "sums" not in text


def test_of_several_kernels_each_keeps_its_name() -> None:
    launch = Launch((ENCODE, ENCODE))
    assert launch.with_variable() == launch


@pytest.mark.parametrize("tests", [("",), ("", "a")])
def test_nothing_is_behind_an_else(tests: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="branches"):
        Branches(tests, ((), ()))


def test_the_profiler_is_told_the_stream_where_it_takes_one() -> None:
    launch = Launch((ENCODE,))
    profiled = [line for line in launch.write(profiles_stream=True).splitlines() if "Profile" in line]
    assert profiled == [
        'getMPSProfiler().beginProfileKernel(PSO, "sums", {a_}, stream);',
        "getMPSProfiler().endProfileKernel(PSO, stream);",
    ]
    assert ", stream)" not in launch.write()


@pytest.mark.parametrize(("last", "takes"), [(", MPSStream* stream", True), ("", False)])
def test_the_header_says_whether_the_profiler_takes_a_stream(tmp_path: Path, last: str, takes: bool) -> None:
    header = tmp_path / DEVICE / "MPSProfiler.h"
    header.parent.mkdir(parents=True)
    header.write_text(f"uint64_t beginProfileKernel(\n    const void* handle,\n    const TensorList& tensors{last});\n")
    assert profiles_streams(Checkout(tmp_path, "named")) is takes
