"""The definitions of the C++ functions that `native_functions.yaml` names."""

from __future__ import annotations

import re
from functools import lru_cache

from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE
from porter.languages.definitions import Definition, find_definitions

_SINGLE_ARGUMENT = re.compile(r"^[A-Z_]+\(\s*(\w+)\s*\)", re.M)


def find_native_definitions(checkout: Checkout, native_function: str) -> list[Definition]:
    """Returns the definitions of a kernel: its TORCH_IMPL_FUNC, else all plain overloads. Raises PTR071."""
    found = next(filter(None, (_find_in(checkout, native_function, ending) for ending in (".cpp", ".h"))), None)
    if found is None:
        raise PorterError(
            "PTR071",
            f"found no implementation of {native_function}",
            Place(NATIVE),
            "It may be generated or defined in a subfolder; register its stub by hand.",
        )
    return found


def _find_in(checkout: Checkout, native_function: str, ending: str) -> list[Definition]:
    """The definitions in files with this ending."""
    pattern = rf"\b{re.escape(native_function)}\s*[(),]"
    folder = checkout.folder(NATIVE, ending)
    paths = folder.files_containing(native_function, pattern, whole=True)
    if paths == folder.unread:
        pasting = folder.files_containing("##")
        paths = tuple(
            path for path in pasting if path in folder.unread or _may_paste(checkout.read(path), native_function)
        )
    unread = [path for path in paths if path in folder.unread]
    for wrapper in ("TORCH_IMPL_FUNC", ""):
        readable = (path for path in paths if path not in unread)
        found = [
            one for path in readable for one in find_definitions(path, checkout.read(path), native_function, wrapper)
        ]
        if found:
            return found
    for path in unread:
        checkout.read(path)
    return []


def _may_paste(text: str, name: str) -> bool:
    """Whether a macro use may paste the name together: `MACRO(eq)` for `eq_Tensor_out`."""
    return any(argument.startswith(name.split("_")[0]) for argument in _list_single_arguments(text))


@lru_cache(maxsize=256)
def _list_single_arguments(text: str) -> tuple[str, ...]:
    """The arguments of the macro uses of a file that have one."""
    return tuple(_SINGLE_ARGUMENT.findall(text))
