"""Lets the files of a package see a Mac: what `sys`, `platform` and `os` say of the system, to these files alone.

`$PORTER_AS_MAC` names the folders whose files do. A module below one of them imports a view of `sys`, `platform` and
`os`; all others, setuptools, pip and torch among them, import the modules themselves. Nothing is imported here but what
Python has: a process that a program starts runs this before anything else.
"""

from __future__ import annotations

import builtins
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

VARIABLE = "PORTER_AS_MAC"
MACOS, _MACHINE = "26.0", "arm64"
_SYSTEM, _KERNEL = "Darwin", f"{int(MACOS.partition('.')[0]) - 1}.0.0"  # of the Darwin below a macOS
_VERSION = f"{_SYSTEM} Kernel Version {_KERNEL}"


def mac_ver(
    release: str = "", versioninfo: tuple[str, str, str] = ("", "", ""), machine: str = ""
) -> tuple[str, tuple[str, str, str], str]:
    """What `platform.mac_ver` answers, whose arguments are for what is not known."""
    return MACOS, ("", "", ""), _MACHINE


def show_mac(environ: Mapping[str, str]) -> None:
    """Shows a Mac to the files of the folders that `$PORTER_AS_MAC` names, from now on; once in a process."""
    folders = [folder for folder in environ.get(VARIABLE, "").split(os.pathsep) if folder]
    if folders and not isinstance(builtins.__import__, _Import):
        builtins.__import__ = _Import(folders)


class _View(ModuleType):
    """A module in which some names have other values; what is set there for one of these stays there."""

    def __init__(self, module: ModuleType, values: dict[str, object]) -> None:
        super().__init__(module.__name__)
        object.__setattr__(self, "_seen", (module, {n: (getattr(module, n), value) for n, value in values.items()}))

    def __getattribute__(self, name: str) -> Any:
        module, values = object.__getattribute__(self, "_seen")
        value = getattr(module, name)
        if name == "__dict__":  # where pytest's monkeypatch reads what it will restore
            return {**value, **{shown: getattr(self, shown) for shown in values}}
        true, shown = values.get(name, (None, value))
        return shown if value is true else value  # a test may have replaced the module's own

    def __setattr__(self, name: str, value: object) -> None:
        module, values = object.__getattribute__(self, "_seen")
        if name in values:
            values[name] = (values[name][0], value)
        else:
            setattr(module, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(object.__getattribute__(self, "_seen")[0], name)

    def __dir__(self) -> Iterable[str]:
        return dir(object.__getattribute__(self, "_seen")[0])


class _Import:
    """`__import__`, which hands the views to the files of some folders."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._import = builtins.__import__
        self._folders = tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)  # noqa: PTH118
        self._views = {module: _View(module, values) for module, values in _list_values().items()}

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> ModuleType:
        module = self._import(name, globals, locals, fromlist, level)
        view = self._views.get(module)
        return module if view is None or not self._sees(globals) else view

    def _sees(self, globals: Mapping[str, object] | None) -> bool:
        file = (globals or {}).get("__file__")
        return isinstance(file, str) and os.path.realpath(file).startswith(self._folders)


def _list_values() -> dict[ModuleType, dict[str, object]]:
    node = platform.node()
    return {
        sys: {"platform": "darwin"},
        os: {"uname": lambda: os.uname_result((_SYSTEM, node, _KERNEL, _VERSION, _MACHINE))},
        platform: {
            "system": lambda: _SYSTEM,
            "machine": lambda: _MACHINE,
            "processor": lambda: "arm",
            "release": lambda: _KERNEL,
            "version": lambda: _VERSION,
            "platform": lambda *_, **__: f"macOS-{MACOS}-{_MACHINE}-arm-64bit",
            "uname": lambda: platform.uname_result(_SYSTEM, node, _KERNEL, _VERSION, _MACHINE),
            "mac_ver": mac_ver,
        },
    }
