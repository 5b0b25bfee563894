"""The programs of the overload that a row serves."""

from pathlib import Path

import pytest

from porter.aten.operator import Operator
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.recording.row_programs import get_row_programs


def test_programs_that_are_not_kept_take_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    checkout = Checkout(EMBEDDED_FORK, "embedded")
    row = Operator.read(checkout, "atan2").served[0]
    with pytest.raises(PorterError, match="no runs of atan2 are kept") as raised:
        get_row_programs(checkout, row, run=False)
    assert raised.value.code == "PTR395" and "--no-verify" in raised.value.hint
