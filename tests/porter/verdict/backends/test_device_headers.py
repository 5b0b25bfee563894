"""A fork's headers of at::mps that lack what every release declares are named, not the device's own file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aten_overlay import errors
from aten_overlay.device import libraries
from porter.core import cache
from porter.core.errors import PorterError
from porter.core.layout import DEVICE
from porter.verdict.backends import host


@pytest.mark.parametrize(("header", "place"), [("MPSProfiler.h", f"{DEVICE}/MPSProfiler.h"), ("MPSStream.h", DEVICE)])
def test_a_header_that_lacks_a_function_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, place: str
) -> None:
    def build(_headers: Path | None) -> Path:
        what = "MPSProfiler.mm does not compile: out-of-line definition of 'stopCapture'"
        raise errors.OverlayError("PTR143", what, errors.Place("/porter/device/mps/MPSProfiler.mm", 40))

    monkeypatch.setattr(libraries, "build_mps", build)
    (tmp_path / DEVICE).mkdir(parents=True)
    (tmp_path / DEVICE / header).write_text("#pragma once\n")
    with pytest.raises(PorterError) as raised:
        host.recipe(tmp_path)
    assert (raised.value.code, str(raised.value.place)) == ("PTR150", place)
    assert raised.value.what.endswith("out-of-line definition of 'stopCapture'")


def test_headers_of_a_fork_that_is_compiled_are_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    fork, long_ago = tmp_path / "fork", (0.0, 0.0)
    (fork / DEVICE).mkdir(parents=True)
    (fork / DEVICE / "MPSProfiler.h").write_text("#pragma once\n")
    cached = host._device_headers(fork)
    assert cached is not None
    for path in (cached, *cached.rglob("*")):
        os.utime(path, long_ago)
    host._device_headers(fork)
    cache.prune(0)
    assert (cached / "ATen/mps/MPSProfiler.h").is_file()
