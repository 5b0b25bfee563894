"""Brings the mps device up in a Python process that a program with the device started, before torch is imported.

`aten_overlay.start_from_environment` puts this folder first on `$PYTHONPATH`. A `sitecustomize` further down runs too.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parent.parent
_OF_PYOBJC = ("objc", "Foundation", "Metal")


class _StartFirst(MetaPathFinder):
    """Starts the device when torch is looked for the first time, and finds the torch that it imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in _OF_PYOBJC and os.environ.get("PORTER_AS_MAC"):
            importlib.import_module("torch")  # what starts with it finds the module
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        _start()
        module = sys.modules[name]
        module.__spec__ = ModuleSpec(name, _Imported(module))  # the import system takes what the module says
        return module.__spec__


class _Imported(Loader):
    """Answers with a module that has been imported, and leaves it as it is."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def _start() -> None:
    _find_overlay()
    import aten_overlay

    aten_overlay.start_from_environment(os.environ)


def _find_overlay() -> None:
    if importlib.util.find_spec("aten_overlay") is None:
        sys.path.append(str(_ROOT))


def _show_mac() -> None:
    """Before torch is imported: a setup script may ask for the system and import no torch."""
    if os.environ.get("PORTER_AS_MAC"):
        _find_overlay()
        from aten_overlay import as_mac

        as_mac.show_mac(os.environ)


def _run_next() -> None:
    """Runs the `sitecustomize` that this one hides."""
    others = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, _StartFirst())
_show_mac()
_run_next()
