"""A trace names the first stage that is wrong, and who wrote the first wrong element."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.checking import StageResult, trace
from porter.kernels.launch import Mode, running
from porter.kernels.script import Case, Kind, Layout, Script, Stage, Values


def run(body: str, x: Tensor, **changes: Any) -> Tensor:
    kernel = MetalKernel("stage", ["x"], ["out"], body, atomic_outputs=bool(changes.pop("atomic", False)))
    call = {"grid": (x.numel(), 1, 1), "output_shapes": [x.shape], "output_dtypes": [x.dtype], **changes}
    (out,) = kernel([x], threadgroup=(8, 1, 1), **call)
    assert isinstance(out, Tensor)
    return out


def copy(x: Tensor) -> Tensor:
    return run("uint i = thread_position_in_grid.x; out[i] = x[i];", x)


def make_inputs(case: Case) -> Values:
    return {"x": torch.arange(float(case.size[0])).to(case.device)}


def trace_second(second: Any, shuffle: int | None = None) -> StageResult:
    """The last result of a trace of a right stage and a second one, both of which should copy."""
    stages = (
        Stage("first", copy, torch.clone, ("x",), ("middle",)),
        Stage("second", second, torch.clone, ("middle",)),
    )
    script = Script("copies", Kind.PIPELINE, stages, make_inputs, ((20,),), (), (torch.float32,), (Layout.DENSE,))
    with running(Mode(checked=True, shuffle=shuffle, poison=True)):
        results = list(trace(script, shuffle=shuffle))
    assert [each.stage for each in results] == ["first", "second"]
    assert results[0].difference is None
    return results[1]


WRONG = """
uint i = thread_position_in_grid.x;
float v = x[i];
if (i == 13) v += 1;
out[i] = v;
"""


@pytest.mark.parametrize("shuffle", [None, 7])
def test_a_wrong_element_has_its_thread_and_line(shuffle: int | None) -> None:
    found = trace_second(lambda x: run(WRONG, x), shuffle)
    assert found.difference is not None and found.writer is not None
    assert (found.difference.index, found.difference.expected, found.difference.got) == ((13,), "13.0", "14.0")
    assert (found.writer.thread, found.writer.line, found.writer.text, found.writer.count) == (
        (13, 0, 0), 5, "out[i] = v;", 1,
    )  # fmt: skip


def test_the_last_of_several_stores_is_told() -> None:
    body = "uint i = thread_position_in_grid.x;\nout[i] = x[i];\nif (i == 9) out[3] = 0;"
    found = trace_second(lambda x: run(body, x))
    assert found.writer is not None
    assert (found.writer.thread, found.writer.text, found.writer.count) == ((9, 0, 0), "if (i == 9) out[3] = 0;", 2)


def test_an_element_that_nobody_wrote_has_no_thread() -> None:
    found = trace_second(lambda x: run("uint i = thread_position_in_grid.x; if (i != 11) out[i] = x[i];", x))
    assert found.difference is not None and found.writer is not None
    assert found.difference.index == (11,)
    assert found.writer.thread is None


def test_additions_are_counted() -> None:
    body = "uint i = thread_position_in_grid.x;\natomic_fetch_add_explicit(&out[i / 2], x[i], memory_order_relaxed);"
    found = trace_second(lambda x: run(body, x, atomic=True, init_value=0))
    assert found.difference is not None and found.writer is not None
    assert found.difference.index == (0,)
    assert (found.writer.thread, found.writer.line, found.writer.count) == ((1, 0, 0), 2, 2)


def test_a_result_that_is_a_copy_of_an_output_is_traced_to_it() -> None:
    found = trace_second(lambda x: run(WRONG, x).half().float())
    assert found.writer is not None and found.writer.thread == (13, 0, 0)


def test_a_result_that_no_kernel_gave_has_no_writer() -> None:
    assert trace_second(lambda x: x + 1).writer is None


def test_of_two_launches_the_one_that_gave_the_result_is_watched() -> None:
    def twice(x: Tensor) -> Tensor:
        wrong = run(WRONG, x)
        copy(x)
        return wrong

    found = trace_second(twice)
    assert found.writer is not None and (found.writer.thread, found.writer.count) == ((13, 0, 0), 1)


def test_what_is_right_is_traced_to_its_end() -> None:
    assert trace_second(copy).difference is None


def test_a_wrong_simple_tier_is_told() -> None:
    stages = (Stage("copy", copy, torch.clone, ("x",), simple=lambda x: run(WRONG, x)),)
    script = Script("copy", Kind.PIPELINE, stages, make_inputs, ((20,),), (), (torch.float32,), (Layout.DENSE,))
    (found,) = trace(script)
    assert found.tier == "simple" and found.difference is not None and found.writer is not None
    assert (found.difference.index, found.writer.thread, found.writer.text) == ((13,), (13, 0, 0), "out[i] = v;")
    wrong = script.find_difference(next(script.cases()))
    assert wrong is not None and str(wrong).startswith("stage copy (simple): out[13] is 14.0")


def test_a_wrong_result_without_dimensions_has_its_thread() -> None:
    def add(x: Tensor) -> Tensor:
        return run("float sum = 1;\nfor (int i = 0; i < 20; ++i) sum += x[i];\nout[0] = sum;", x, grid=(1, 1, 1),
                   output_shapes=[()])  # fmt: skip

    stages = (Stage("add", add, torch.sum, ("x",)),)
    script = Script("add", Kind.PIPELINE, stages, make_inputs, ((20,),), (), (torch.float32,), (Layout.DENSE,))
    (found,) = trace(script)
    assert found.difference is not None and found.writer is not None
    assert (found.difference.got, found.writer.thread, found.writer.line) == ("191.0", (0, 0, 0), 3)
