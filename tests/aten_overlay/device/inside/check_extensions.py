"""Extensions that torch compiles just in time, and what torch::mps does for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"


@pytest.fixture(scope="module", autouse=True)
def extension(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("stream")
    source = str(PROGRAMS / "stream.mm")
    cpp_extension.load("stream", [source], build_directory=str(folder), is_python_module=False)
    yield


@pytest.mark.parametrize(("name", "value"), [("fills_behind_an_open_encoder", 1), ("fills_after_a_commit", 2)])
def test_commands_run_between_those_of_torch(name: str, value: int) -> None:
    whole = torch.zeros(8, dtype=torch.uint8, device="mps")
    getattr(torch.ops.stream_test, name)(whole[2:5])
    assert whole.add(0).tolist() == [0, 0, value, value, value, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("leaves_its_encoder_open", "PTR124: a command buffer was committed while an earlier encoder has had no end"),
        ("makes_a_second_encoder", "PTR124: a second encoder was made of a command buffer while an earlier encoder"),
        ("waits_for_itself", "PTR122: dispatch_sync to queue `metal gpu stream` from a block running on it: deadlock"),
    ],
)
def test_what_a_mac_aborts_on_is_refused(name: str, told: str) -> None:
    with pytest.raises(RuntimeError, match=told):
        getattr(torch.ops.stream_test, name)(torch.zeros(4, device="mps"))
    test_commands_run_between_those_of_torch("fills_behind_an_open_encoder", 1)
