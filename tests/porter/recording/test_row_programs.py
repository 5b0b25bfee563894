"""The programs of the overload that a row serves."""

from dataclasses import replace
from pathlib import Path

import pytest

from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import Operator
from porter.core import cache
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS
from porter.recording import readings
from porter.recording.readings import get_row_programs, serves
from porter.verdict import client
from porter.verdict.client import key


def test_programs_that_are_not_kept_take_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    checkout = Checkout(EMBEDDED_FORK, "embedded")
    row = Operator.read(checkout, "atan2").served[0]
    with pytest.raises(PorterError, match="no runs of atan2 are kept") as raised:
        get_row_programs(checkout, row, run=False)
    assert raised.value.code == "PTR395" and "--no-verify" in raised.value.hint


def test_why_no_programs_are_kept_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    checkout = Checkout(EMBEDDED_FORK, "embedded")
    row = Operator.read(checkout, "atan2").served[0]
    request = readings.make_request(checkout, "atan2", of_programs=True)
    cache.put(key("of another state", "programs", "atan2", readings.NEWEST), "[]")
    with pytest.raises(PorterError, match="atan2 are kept of this state: the checkout"):
        get_row_programs(checkout, row, run=False)

    def fail(*_: object) -> str:
        raise PorterError("PTR137", "atan2 launches kernels:\nmany")

    monkeypatch.setattr(client, "request_recording", fail)
    with pytest.raises(PorterError, match="launches kernels"):
        get_row_programs(checkout, row, run=True)
    with pytest.raises(PorterError, match="its recording failed with PTR137 atan2 launches kernels\n"):
        get_row_programs(checkout, row, run=False)
    readings.keep_recording(checkout, request, "[]")
    with pytest.raises(PorterError, match="ran a graph"):
        get_row_programs(checkout, row, run=False)


ROWS = """
- func: padded(Tensor grad, int[2] padding) -> Tensor
- func: padded.grad_input(Tensor grad, int[2] padding, *, Tensor(a!) grad_input) -> Tensor(a!)
- func: padded_(Tensor(a!) grad, int[2] padding) -> Tensor(a!)
- func: padded.other(Tensor grad, int[4] padding) -> Tensor
- func: counted(int n, *, ScalarType? dtype=None, Device? device=None) -> Tensor
- func: counted.out(int n, *, Tensor(a!) out) -> Tensor(a!)
"""


@pytest.mark.parametrize(
    ("overload", "row", "is_served"),
    [
        ("padded", "padded", True),
        ("padded", "padded.grad_input", True),
        ("padded", "padded_", True),
        ("padded", "padded.other", False),
        ("padded.other", "padded.grad_input", False),
        ("padded.grad_input", "padded", False),
        ("counted", "counted.out", True),
    ],
)
def test_rows_that_serve_an_overload(overload: str, row: str, is_served: bool, tmp_path: Path) -> None:
    (tmp_path / NATIVE_FUNCTIONS).parent.mkdir(parents=True)
    (tmp_path / NATIVE_FUNCTIONS).write_text(ROWS)
    checkout = Checkout(tmp_path, "made up")
    function = NativeFunctions.read(checkout).by_name[row]
    some_row = Operator.read(Checkout(EMBEDDED_FORK, "embedded"), "atan2").served[0]
    assert serves(checkout, overload, replace(some_row, function=function)) is is_served
