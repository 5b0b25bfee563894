"""torch.mps.load_metallib, with and without the source beside the library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from aten_overlay.apple import offline
from aten_overlay.device.metallib import kernel_names

SOURCE = """
#include "by.h"
kernel void scale(device float* out, uint i [[thread_position_in_grid]]) { out[i] *= BY; }
kernel void fill(device float* out, constant float& value, uint i [[thread_position_in_grid]]) { out[i] = value; }
"""


def library(names: Sequence[str], kind: int = 2) -> bytes:
    """The beginning and the function list of a library as Apple's tools write it."""
    entries = (b"NAME" + (len(n) + 1).to_bytes(2, "little") + n.encode() + b"\0TYPE\1\0" + bytes([kind]) for n in names)
    return b"MTLB" + b"".join(entries)


def write(folder: Path, data: bytes) -> Path:
    (folder / "by.h").write_text("#define BY 3\n")
    (folder / "k.metal").write_text(SOURCE)
    (folder / "k.metallib").write_bytes(data)
    return folder / "k.metallib"


@pytest.mark.parametrize("data", [b"MTLB", library(["scale", "fill"]), library(["other"], kind=0)])
def test_the_source_beside_a_library_runs(tmp_path: Path, data: bytes) -> None:
    made = torch.mps.load_metallib(write(tmp_path, data))
    x = torch.zeros(3, device="mps")
    made.fill(x, 2.0)
    made.scale(x)
    assert x.tolist() == [6, 6, 6] and dir(made) == ["fill", "scale"]


def test_a_library_that_porter_s_tools_made_is_all_there_is(tmp_path: Path) -> None:
    path = write(tmp_path, b"")
    assert offline.main("metal", [str(tmp_path / "k.metal"), "-o", str(path)]) == 0
    path.with_suffix(".metal").unlink()
    for loaded in (torch.mps.load_metallib(path), torch.mps.load_metallib(path.read_bytes())):
        x = torch.ones(3, device="mps")
        loaded.scale(x)
        assert x.tolist() == [3, 3, 3]


def test_a_library_of_another_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"PTR187 k.metal does not define what k.metallib holds: shift"):
        torch.mps.load_metallib(write(tmp_path, library(["scale", "shift"])))


def test_a_library_without_its_source_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, library(["scale"]))
    path.with_suffix(".metal").unlink()
    with pytest.raises(RuntimeError, match=r"PTR186 k.metallib holds code for Apple's GPUs, and there is no k.metal"):
        torch.mps.load_metallib(str(path))


def test_a_missing_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"PTR186 there is no Metal library k.metallib"):
        torch.mps.load_metallib(tmp_path / "k.metallib")


def test_names_whose_length_is_wrong_are_none() -> None:
    assert kernel_names(library(["ab"]) + b"NAME\x09\0cd\0TYPE\1\0\2") == ("ab",)
