"""What a family of Apple's GPUs lacks is refused, by kernel and line; without a family nothing is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.family import FAMILIES, VARIABLE, parse, select
from aten_overlay.metal.headers import INCLUDE
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).parent / "families.metal"
REFUSED = [
    ("apple7", "largest"), ("apple7", "count"), ("apple7", "sum"), ("apple9", "count"), ("apple9", "sum"),
    *(("paravirtual", name) for name in ("largest", "double_bfloat", "convert", "tile", "product")),
]  # fmt: skip
SERVED = [
    ("apple8", "largest"), ("apple9", "largest"), ("apple7", "sum_pairs"), ("apple7", "narrow"),
    ("apple10", "product"), ("apple7", "tile"), ("apple7", "convert"),
    ("paravirtual", "double_float"), ("paravirtual", "narrow"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "name"), REFUSED)
def test_what_a_family_lacks_is_refused_at_its_line(family: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, family)
    with pytest.raises(OverlayError) as refused:
        compile_kernels(SOURCE, [name])
    assert refused.value.code == "PTR276"
    assert f"kernel `{name}`: " in refused.value.what
    lines = SOURCE.read_text().splitlines()
    assert refused.value.place is not None
    assert lines[refused.value.place.line - 1].endswith(f"// FAULT {name}")


@pytest.mark.parametrize(("family", "name"), SERVED)
def test_what_a_family_has_compiles(family: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, family)
    assert Library(compile_kernels(SOURCE, [name])).names == (name,)


def test_without_a_family_all_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    given, out = np.arange(32, dtype=np.uint64), np.zeros(1, np.uint64)
    library = Library(compile_kernels(SOURCE, ["largest", "count", "sum"]))
    library.run("largest", [out, given], (32,), (32,))
    assert out[0] == 31
    library.run("count", [out, given], (32,), (32,))
    assert out[0] == 31 + 496


def test_a_family_is_known_by_its_name() -> None:
    assert select({}) is None and select({VARIABLE: "apple8"}) == parse("apple8")
    with pytest.raises(OverlayError) as unknown:
        parse("apple6")
    assert (unknown.value.code, unknown.value.hint) == (
        "PTR277",
        "Choose one of apple7, apple8, apple9, apple10, paravirtual.",
    )


def test_the_limits_of_the_runtime_are_those_of_the_table() -> None:
    text = (INCLUDE / "porter_metal_abi.h").read_text()
    defined = {name: int(value) for name, value in re.findall(r"#define (PM_MAX_\w+) (\d+)u", text)}
    for family in FAMILIES:
        assert defined["PM_MAX_THREADGROUP_BYTES"] == family.threadgroup_bytes
        assert defined["PM_MAX_THREADS_PER_GROUP"] == family.threads_per_threadgroup
        assert defined["PM_MAX_BUFFERS"] == family.buffers
