"""Starts what is written down of a program's launches, in the folder of its journal (see aten_overlay/runs)."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from aten_overlay.metal import compiler
from aten_overlay.runs.journal import Journal, find_journal
from aten_overlay.runs.origin import find_origin

if TYPE_CHECKING:
    from aten_overlay.device.state import Device

_FAILED = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)
_callbacks: list[object] = []  # as long as the process: kernels run until its end


def start(device: Device, journal: Journal, frameworks: ctypes.CDLL | None) -> None:
    """Counts every launch of this process from now on, whoever makes it, and notes those that fail.

    `frameworks` are those of the Metal API, where they are loaded: they refuse launches themselves.
    """

    def note(library: bytes, kernel: bytes, operators: bytes, text: bytes) -> None:
        names = operators.decode(errors="replace").splitlines()
        message = text.decode(errors="replace") or f"kernel `{kernel.decode(errors='replace')}` failed"
        if current := find_journal():
            current.note_finding(library.decode(), kernel.decode(errors="replace"), names, message, find_origin())

    runtime = ctypes.CDLL(str(compiler.runtime_library()))
    launched = ctypes.c_void_p.in_dll(runtime, "pm_launched")
    failed = _FAILED(note)
    _callbacks.append(failed)
    device.library.porter_record_launches(str(journal.folder).encode(), failed, ctypes.byref(launched))
    if frameworks is not None:
        frameworks.porter_hear_refusals(device.library.porter_refused_launch)
