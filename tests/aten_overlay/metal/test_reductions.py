"""Reductions and scans over threadgroups, against numpy, for groups of all sizes and in every order of lanes. With the
headers of the installed wheel and those in the folder `PORTER_TEST_HEADERS`."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("reductions.metal")
ORDERS: tuple[dict[str, Any], ...] = ({}, {"fibers": True}, {"shuffle": 1}, {"shuffle": 2})
DTYPES = {"float": np.float32, "half": np.float16, "int": np.int32, "long": np.int64, "short": np.int16}


def _headers() -> list[Path]:
    spec = find_spec("torch")
    assert spec and spec.origin
    more = os.environ.get("PORTER_TEST_HEADERS", "")
    return [Path(spec.origin).parent / "include", *([Path(more)] if more else [])]


@cache
def _library(headers: Path) -> Library:
    options = Options(include=(headers,))
    return Library(compile_kernels(SOURCE, host_names(SOURCE, options), options))


def _rows(dtype: str, size: int) -> np.ndarray:
    rng = np.random.default_rng(size)
    if dtype in ("float", "half"):
        return rng.normal(1, 0.1, (3, size)).astype(DTYPES[dtype])
    top = 2**40 if dtype == "long" else 1000
    return rng.integers(-top, top, (3, size)).astype(DTYPES[dtype])


REFERENCES = {
    "sum": lambda x: x.astype(np.float64 if x.dtype.kind == "f" else np.int64).sum(1),
    "prod": lambda x: x.astype(np.float64).prod(1),
    "max": lambda x: x.max(1),
    "min": lambda x: x.min(1),
    "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(1),
    "welford": lambda x: x.astype(np.float64).var(1),
}


@pytest.mark.parametrize("size", [1, 7, 32, 40, 256, 1000, 1024])
@pytest.mark.parametrize("name", [n for n in host_names(SOURCE, Options(include=(_headers()[0],))) if n != "scan"])
@pytest.mark.parametrize("headers", _headers(), ids=lambda p: p.parent.name)
def test_every_thread_gets_the_result(headers: Path, name: str, size: int) -> None:
    library = _library(headers)
    reduction, _, dtype = name.partition("_")
    x = _rows(dtype or "float", size)
    expected = REFERENCES[reduction](x)[:, None]
    exact = x.dtype.kind == "i" or reduction not in ("sum", "prod", "welford")
    kind = np.int32 if reduction.startswith("arg") else np.float32 if x.dtype.kind == "f" else x.dtype
    assert library.runs_in_lockstep(name)
    for order in ORDERS:
        out = np.zeros(x.shape, kind)
        library.run(name, [x, out], [x.size], [size], **order)
        if exact:
            assert (out == expected).all()
        else:
            assert np.abs(out - expected).max() <= 1e-5 * np.abs(expected).max() + 1e-6


@pytest.mark.parametrize("size", [1, 31, 32, 33, 500, 1024])
@pytest.mark.parametrize("order", ORDERS)
def test_scans(size: int, order: dict[str, Any]) -> None:
    x, out = _rows("float", size), np.zeros((3, size), np.float32)
    _library(_headers()[0]).run("scan", [x, out], [x.size], [size], **order)
    assert np.abs(out - x.astype(np.float64).cumsum(1)).max() <= 1e-6 * size + 1e-6
