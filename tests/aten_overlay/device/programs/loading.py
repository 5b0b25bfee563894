"""Host code of tests, compiled as extensions are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torch.utils import cpp_extension

from aten_overlay import toolchain
from aten_overlay.apple import build


def load_program(name: str, folder: Path, flags: Iterable[str] = ()) -> None:
    """Compiles a program of this folder in another, and loads it.

    It begins with the header that a fork's host code does, which is precompiled: to read those of torch takes 4 seconds.
    """
    first = build.precompile_headers([build.OBJECTIVE_CPP])[build.OBJECTIVE_CPP]
    (functions,) = build.build_headers([build.OBJECTIVE_CPP])
    cpp_extension.load(
        name,
        [str(Path(__file__).with_name(f"{name}.mm"))],
        extra_cflags=[*build.general_flags(), *first, *flags],
        extra_ldflags=[*toolchain.link_with(functions)],
        build_directory=str(folder),
        is_python_module=False,
    )
