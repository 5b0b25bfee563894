"""What a package's files see of the system with `$PORTER_AS_MAC`, and that nothing else does."""

from __future__ import annotations

import builtins
import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aten_overlay import as_mac

Namespace = dict[str, Any]


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Namespace]]:
    """Runs the text of a file of the package, or of another file."""
    monkeypatch.setattr(builtins, "__import__", builtins.__import__)
    as_mac.show_mac({as_mac.VARIABLE: str(tmp_path / "package")})

    def run(text: str, file: str = "package/setup.py") -> Namespace:
        names: Namespace = {"__file__": str(tmp_path / file), "__name__": "told"}
        exec(text, names)
        return names

    yield run


IMPORTS = (
    "import sys, platform, os\nseen = sys.platform, platform.system(), platform.machine(), os.uname().sysname",
    "from sys import platform as p\nfrom platform import system, machine\nfrom os import uname\n"
    "seen = p, system(), machine(), uname().sysname",
    "import os.path, sys as s, platform as p\nfrom os import *\nseen = s.platform, p.system(), p.machine(), uname().sysname",
)


@pytest.mark.parametrize("text", IMPORTS)
def test_files_of_the_package_see_a_mac(execute: Callable[..., Namespace], text: str) -> None:
    assert execute(text)["seen"] == ("darwin", "Darwin", "arm64", "Darwin")


@pytest.mark.parametrize("file", ["setuptools.py", "package.py", "package-2/setup.py"])
def test_other_files_do_not(execute: Callable[..., Namespace], file: str) -> None:
    here = (sys.platform, platform.system(), platform.machine(), os.uname().sysname)
    assert [execute(text, file)["seen"] for text in IMPORTS] == [here] * 3
    assert execute("import sys", file)["sys"] is sys


def test_all_that_setup_scripts_ask_for_is_a_mac_s(execute: Callable[..., Namespace]) -> None:
    text = "import platform, os\nseen = platform.mac_ver()[0], platform.uname()[:1], platform.platform(), os.uname()[4]"
    assert execute(text)["seen"] == ("26.0", ("Darwin",), "macOS-26.0-arm64-arm-64bit", "arm64")


def test_all_else_is_the_module_s(execute: Callable[..., Namespace], monkeypatch: pytest.MonkeyPatch) -> None:
    names = execute("import sys, os\nsys.porter_told = os.path\nold = sys.argv, os.environ")
    assert sys.porter_told is os.path  # type: ignore[attr-defined]
    execute("import sys\ndel sys.porter_told")
    assert not hasattr(sys, "porter_told")
    assert names["old"] == (sys.argv, os.environ) and dir(names["sys"]) == dir(sys)
    assert isinstance(names["sys"], type(sys))


def test_what_a_package_s_test_sets_its_files_see(execute: Callable[..., Namespace]) -> None:
    system, view = sys.platform, execute("import sys")["sys"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view, "platform", "linux")
        assert execute("import sys\nseen = sys.platform")["seen"] == "linux"
    assert execute("import sys\nseen = sys.platform")["seen"] == "darwin"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("platform.system", lambda: "Windows")
        assert execute("import platform\nseen = platform.system()")["seen"] == "Windows"
    assert sys.platform == system


def test_nothing_is_shown_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    before = builtins.__import__
    as_mac.show_mac({})
    as_mac.show_mac({as_mac.VARIABLE: ""})
    assert builtins.__import__ is before
