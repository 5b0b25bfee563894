"""`torch.mps.load_metallib` for a library whose source lies beside it.

A `.metallib` holds code for Apple's GPUs, which nothing here runs. Where `NAME.metal` lies beside `NAME.metallib`, that
source is compiled instead, if it defines every kernel that the library names. A library that the `metal` and `metallib`
on the path of a program made is source itself (apple/offline.py).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from aten_overlay.apple.offline import MARK
from aten_overlay.device.shader import ShaderLibrary
from aten_overlay.errors import OverlayError, Place

if TYPE_CHECKING:
    from aten_overlay.device.state import Device

# A function's entry in a library: its name, with the length before it, then its type. 2 is a kernel.
_ENTRY = re.compile(rb"NAME(?P<length>..)(?P<name>[^\0]+)\0TYPE\x01\0(?P<type>.)", re.DOTALL)
_KERNEL = b"\2"
_HINT = "Put the source that it was made from beside it, or use torch.mps.compile_shader(source)."


def load_from_path(path: str, device: Device) -> ShaderLibrary:
    """The kernels of the source beside a library. Raises RuntimeError with PTR186 or PTR187, and SyntaxError."""
    library = Path(path)
    if library.is_file() and (text := library.read_bytes()).startswith(MARK.encode()):
        return ShaderLibrary(text.decode(), device)
    source = library.with_suffix(".metal")
    try:
        _check(library, source)
    except OverlayError as error:
        raise _refusal(error) from error
    made = ShaderLibrary(source, device)
    missing = sorted(set(kernel_names(library.read_bytes())) - set(dir(made)))
    if missing:
        raise _refusal(_mismatch(library, source, missing))
    return made


def load_from_bytes(data: bytes, device: Device) -> ShaderLibrary:
    """The kernels of a library that porter's own tools made; others are refused, as bytes lie beside nothing.

    Raises RuntimeError with PTR186.
    """
    if data.startswith(MARK.encode()):
        return ShaderLibrary(data.decode(), device)
    error = OverlayError("PTR186", "a Metal library given as bytes has no source beside it", hint=_HINT)
    raise _refusal(error) from error


def kernel_names(data: bytes) -> tuple[str, ...]:
    """The kernels that a library's own list names; none where the bytes are no such library."""
    entries = (entry for entry in _ENTRY.finditer(data) if entry["type"] == _KERNEL)
    lengths = ((int.from_bytes(entry["length"], "little") - 1, entry["name"]) for entry in entries)
    return tuple(name.decode(errors="replace") for length, name in lengths if length == len(name))


def _check(library: Path, source: Path) -> None:
    if not library.is_file():
        raise OverlayError("PTR186", f"there is no Metal library {library.name}", Place(str(library)), _HINT)
    if not source.is_file():
        what = f"{library.name} holds code for Apple's GPUs, and there is no {source.name} beside it"
        raise OverlayError("PTR186", what, Place(str(library)), _HINT)


def _mismatch(library: Path, source: Path, missing: list[str]) -> OverlayError:
    what = f"{source.name} does not define what {library.name} holds: {', '.join(missing)}"
    return OverlayError("PTR187", what, Place(str(source)), "Compile the library again from the source beside it.")


def _refusal(error: OverlayError) -> RuntimeError:
    return RuntimeError(f"Failed to create metal library, error: {error}")
