"""What `porter run --mlx` starts, without a device and without MLX."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aten_overlay import __main__ as overlay
from porter.core.errors import PorterError
from porter.workflows import mlx


def fail_with(code: str) -> Callable[..., int]:
    def run(prepare: Callable[[], None]) -> int:
        raise PorterError(code, "mlx.core cannot be imported")

    return run


def test_missing_mlx_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(overlay, "main", fail_with("PTR223"))
    assert mlx.main() == 2
    assert capsys.readouterr().err == "porter: PTR223 mlx.core cannot be imported\n"


def test_errors_of_the_program_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "main", fail_with("PTR212"))
    with pytest.raises(PorterError, match="PTR212"):
        mlx.main()
