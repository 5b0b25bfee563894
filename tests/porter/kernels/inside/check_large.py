"""`porter kernel check --large`: offsets in 32 bits are found in a script's kernels, and in programs; 64 bits pass."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

import aten_overlay
from aten_overlay.device import load
from aten_overlay.device.large import fill_sparsely, sparse_memory
from porter.core.errors import PorterError
from porter.core.progress import Step
from porter.workflows.kernel import CUDA, check_script

# The first element of each row. A row's offset is its number times the stride, in INDEX.
SCRIPT = """
import torch
from porter.kernels.script import Kind, Layout, Script, Stage

library = torch.mps.compile_shader('''
kernel void first(device const float* x, device float* out, constant long& stride, uint row [[thread_position_in_grid]]) {
  out[row] = x[INDEX(row) * INDEX(stride)];
}
''')

def run(x):
    EXPECT
    out = torch.empty(len(x), device=x.device)
    library.first(x, out, x.stride(0), threads=len(x))
    return out

SCRIPT = Script(
    "first", Kind.ROW_WISE, (Stage("first", run, lambda x: REFERENCE, ("x",)),), lambda case: {"x": case.normal(*case.size)},
    ((4, 64),), (), dtypes=(torch.float32,), layouts=(Layout.DENSE,),
)
"""


def ignore(_step: Step) -> None:
    pass


def check(path: Path, index: str, expect: str = "pass", reference: str = "x[:, 0]") -> dict[str, str]:
    """What failed of the large cases, by their names without the size."""
    text = SCRIPT.replace("INDEX", index).replace("EXPECT", expect).replace("REFERENCE", reference)
    (path / "first.py").write_text(text)
    results = [result for result in check_script(path / "first.py", ignore, large=True) if not result.ok]
    return {result.case.partition(", ")[2] or result.case: result.error for result in results}


def test_rows_and_strides_past_32_bits_fail_in_uint(tmp_path: Path) -> None:
    failed = check(tmp_path, "uint")
    assert list(failed) == [
        "stride of the first dimension past 2^32 elements",
        "67108872 rows in stage first, past 2^32 elements",
    ]
    strided, dense = failed.values()
    assert strided.startswith("PTR282 kernel `first`") or strided.startswith("PTR270 kernel `first`")
    assert dense.startswith(
        "PTR282 kernel `first` multiplies 67108864 and 64 in unsigned 32 bits on the way to an address"
    )


def test_wrong_rows_are_told_where_widths_are_not_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_SANITIZE", "bounds")
    failed = check(tmp_path, "uint")
    assert failed["67108872 rows in stage first, past 2^32 elements"].startswith(
        "PTR270 stage first: last rows of out[0]"
    )


def test_long_offsets_pass(tmp_path: Path) -> None:
    assert check(tmp_path, "long") == {}


def test_where_nothing_ran_it_is_told(tmp_path: Path) -> None:
    expect = 'if x.untyped_storage().nbytes() > 1 << 20: raise ValueError("x has to be smaller")'
    failed = check(tmp_path, "long", expect)
    assert failed == {"large": "PTR296 no case of the script runs past 32 bits: x has to be smaller"}


def test_rows_that_depend_on_others_are_not_counted_up(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(
        SCRIPT.replace("INDEX", "long").replace("EXPECT", "pass").replace("REFERENCE", "x[:, 0] + 0 * x.shape[0]")
    )
    results = list(check_script(tmp_path / "first.py", ignore, large=True))
    assert sum("rows in stage" in result.case for result in results) == 2
    (tmp_path / "first.py").write_text(
        SCRIPT.replace("INDEX", "long").replace("EXPECT", "pass").replace("REFERENCE", "x[:, 0] * (x.shape[0] / 4)")
    )
    results = list(check_script(tmp_path / "first.py", ignore, large=True))
    assert not any("rows in stage" in result.case for result in results)
    assert any("depend on each other" in warning for result in results for warning in result.warnings)


def test_a_gpu_has_no_such_memory(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="PTR296 large tensors need the host's memory"):
        from porter.workflows.kernel import _check_large

        list(_check_large(tmp_path / "first.py", CUDA, ignore))


def test_zeros_take_no_memory_and_are_zeros() -> None:
    device = load.started()
    assert device is not None
    with sparse_memory():
        fill_sparsely()
        before = _resident()
        tensor = torch.zeros(1 << 29, device="mps")
        tensor[-1] = 3
        assert tensor[-2:].tolist() == [0, 3]
        assert tensor.zero_()[-2:].tolist() == [0, 0]
        tensor[1:3] = 5
        tensor[:2].zero_()
        assert tensor[:4].tolist() == [0, 0, 5, 0]
        assert _resident() - before < 64 << 20


def test_a_program_gets_large_tensors_where_its_environment_says_so() -> None:
    device = load.started()
    assert device is not None
    aten_overlay.prepare_for_large(device, {"PORTER_LARGE": "0"})
    with pytest.raises(RuntimeError):
        torch.empty(1 << 40, dtype=torch.uint8, device="mps")
    before = _resident()
    aten_overlay.prepare_for_large(device, {"PORTER_LARGE": "1"})
    try:
        assert torch.zeros(1 << 40, dtype=torch.uint8, device="mps")[-1].item() == 0 and _resident() - before < 64 << 20
    finally:
        device.allocate_sparsely(0)


def test_a_grid_has_as_many_threads_as_there_are_positions() -> None:
    kernel = torch.mps.compile_shader("kernel void none(device float* x) {}").none
    with pytest.raises(RuntimeError, match="PTR270 kernel `none`: a grid of 4294967297 threads along one axis"):
        kernel(torch.empty(1, device="mps"), threads=(1 << 32) + 1)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
