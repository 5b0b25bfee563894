"""The script for the Mac, on the CPU: launches of functions of torch in place of kernels."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from porter.witness.replay import Machine, Record, measure, pack, replay, unpack

BOUNDS = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2, "complex64": 2e-5}


def machine(kernels: dict[str, Callable[..., None]], virtual: bool = False) -> Machine:
    def compile_shader(source: str) -> Any:
        if source == "wrong":
            raise SyntaxError("no such function")
        return SimpleNamespace(**kernels)

    return Machine("mps", "cpu", "a GPU", "a system", virtual, compile_shader, lambda: None)


def memory(before: torch.Tensor, after: torch.Tensor | None) -> Record:
    name = str(before.dtype).removeprefix("torch.")
    return {"dtype": name, "before": pack(before), "after": None if after is None else pack(after)}


def launch(kernel: str = "twice", source: str = "fine", lacks: str = "") -> list[Record]:
    """A launch that doubles every second element of the memory."""
    before = torch.arange(6.0)
    after = before.clone()
    after[1::2] *= 2
    view = {"memory": 0, "dtype": "float32", "shape": [3], "stride": [2], "offset": 1}
    return [
        {"record": "launches", "format": 1, "bounds": BOUNDS},
        {"record": "library", "library": 0, "source": source},
        {
            "record": "launch", "subject": "s", "library": 0, "kernel": kernel, "dtype": "float32", "lacks": lacks,
            "memory": [memory(before, after)], "arguments": [view, 2.0], "threads": [3], "group_size": None,
            "arg_casts": {},
        },
        {"record": "left out", "subject": "s", "kernel": "k", "dtype": "float32", "reason": "too large"},
    ]  # fmt: skip


def twice(values: torch.Tensor, factor: float, **_options: Any) -> None:
    values *= factor


def off(values: torch.Tensor, factor: float, **_options: Any) -> None:
    values *= factor
    values[1] = torch.nextafter(values[1], torch.tensor(9.0))
    values[2] += 1


def broken(*_arguments: Any, **_options: Any) -> None:
    raise RuntimeError("the GPU timed out")


def outcome(records: list[Record], on: Machine) -> Record:
    first, line, skipped, end = replay(records, on)
    assert first["record"] == "machine" and skipped["outcome"] == "skipped"
    assert end["counts"] == {line["outcome"]: 1, "skipped": 1}
    return line


def test_a_launch_that_leaves_the_hosts_memory_is_the_same() -> None:
    line = outcome(launch(), machine({"twice": twice}))
    assert (line["outcome"], line["elements"], line["equal"], line["max_ulp"]) == ("ran", 3, 3, 0)
    assert line["seconds"] > 0


def test_a_launch_that_leaves_other_values_is_measured() -> None:
    line = outcome(launch("off"), machine({"off": off}))
    assert (line["elements"], line["equal"], line["different"], line["max_ulp"]) == (3, 1, 1, 1)
    assert line["first"] == "11.0, not 10.0"


@pytest.mark.parametrize(
    ("kernel", "source", "expected", "reason"),
    [
        ("twice", "wrong", "not compiled", "no such function"),
        ("gone", "fine", "not compiled", "gone"),
        ("broken", "fine", "failed", "the GPU timed out"),
    ],
)
def test_what_does_not_run_says_why(kernel: str, source: str, expected: str, reason: str) -> None:
    line = outcome(launch(kernel, source), machine({"twice": twice, "broken": broken}))
    assert line["outcome"] == expected and reason in line["reason"]


def test_a_virtual_mac_refuses_what_its_gpu_lacks_and_others_do_not() -> None:
    records, kernels = launch(lacks="simdgroup matrices"), {"twice": twice}
    refused = outcome(records, machine(kernels, virtual=True))
    assert (refused["outcome"], refused["reason"]) == ("refused", "simdgroup matrices")
    assert outcome(records, machine(kernels))["outcome"] == "ran"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_distances_are_in_units_in_the_last_place_over_zero(dtype: torch.dtype) -> None:
    zero, one = torch.zeros(3, dtype=dtype), torch.ones(3, dtype=dtype)
    smallest = torch.nextafter(torch.zeros((), dtype=dtype), torch.ones((), dtype=dtype))
    wanted = torch.stack([smallest, -smallest, smallest])
    line = measure(memory(one, wanted), torch.stack([-smallest, -smallest, zero[0]]), BOUNDS)
    assert (line["elements"], line["equal"], line["max_ulp"]) == (3, 1, 2)


def test_nan_equals_nan_and_whole_numbers_have_no_distance() -> None:
    nan = torch.tensor([float("nan"), 1.0])
    assert measure(memory(torch.zeros(2), nan), torch.tensor([-float("nan"), 1.0]), BOUNDS)["equal"] == 2
    line = measure(memory(torch.zeros(2).int(), torch.tensor([1, 2]).int()), torch.tensor([1, 3]).int(), BOUNDS)
    assert (line["different"], line["max_ulp"], line["first"]) == (1, None, "3, not 2")


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.complex64, torch.complex32])
def test_memory_of_every_type_survives_and_is_compared(dtype: torch.dtype) -> None:
    tensor = torch.tensor([0, 1, 1]).to(dtype)
    name = str(dtype).removeprefix("torch.")
    assert torch.equal(unpack(pack(tensor), name).view(torch.uint8), tensor.view(torch.uint8))
    other = torch.tensor([1, 1, 0]).to(dtype)
    assert measure(memory(tensor, other), other, BOUNDS)["different"] == 0
    assert measure(memory(tensor, other), tensor, BOUNDS)["different"] == 2


def test_a_launch_that_writes_what_the_hosts_left_alone_is_found() -> None:
    line = measure(memory(torch.zeros(4), None), torch.tensor([0.0, 0.0, 5.0, 0.0]), BOUNDS)
    assert (line["elements"], line["different"], line["first"]) == (1, 1, "5.0, not 0.0")
