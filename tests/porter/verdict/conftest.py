"""Ports of the embedded fork's operators that tests verify and break."""

from __future__ import annotations

import pytest

from tests.porter.verdict.written_ports import ATAN2, FLOATS, HYPOT, INTEGERS, LISTS, REMAINDER, Port, port


@pytest.fixture
def atan2() -> Port:
    pairs = (*((f, f) for f in FLOATS), *((i, "float") for i in (*INTEGERS, "bool")))
    made = port("atan2", ATAN2, pairs)
    return made.edited(LISTS, '            "atan2": [torch.int64],\n', "")


@pytest.fixture
def hypot() -> Port:
    made = port("hypot", HYPOT, tuple((f, f) for f in FLOATS))
    return made.edited(LISTS, '            "hypot": [torch.float16],\n', "")


@pytest.fixture
def remainder() -> Port:
    return port("remainder", REMAINDER, tuple((t, t) for t in (*FLOATS, *INTEGERS)))
