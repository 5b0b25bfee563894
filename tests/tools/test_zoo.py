"""tools/zoo.py: the checks need the device, and a torch of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.conftest import Run


def test_the_short_form(passes_inside: Callable[[Path], None]) -> None:
    passes_inside(Path(__file__).parent / "check_zoo.py")


def test_the_page_is_written_whole(python: Run) -> None:
    done = python("tools/zoo.py", "--write", "-k", "Linear")
    assert done.returncode == 2 and "--write takes no other option" in done.stderr


def test_a_name_that_nothing_has_is_an_error(python: Run) -> None:
    assert python("tools/zoo.py", "-k", "Nothing", "--dtype", "float32", "--cases", "1").returncode == 1
