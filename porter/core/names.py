"""Names that already mean something to the languages and the programs that a file of porter's is read by."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path

LONGEST = 100  # characters: a file's name, with what else it holds, may have 255 bytes
# The words of C++ and of the Metal language, also those that are none of Python's.
C_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq
    bfloat constant device fragment half kernel metal size_t thread threadgroup uchar uint ulong ushort vertex
    """,
    )
)
# Functions and macros that every C++ program has, or that compilers define; namespaces of C++ and of torch.
_C_NAMES = frozenset(
    ("assert", "errno", "linux", "main", "stderr", "stdin", "stdout", "unix", "at", "c10", "caffe2", "pybind11", "std")
)
# What Python, pytest and builds import or run by their names alone.
_STARTED = frozenset(("__init__", "__main__", "conftest", "setup", "sitecustomize", "usercustomize"))
_OWN = frozenset(("aten", "aten_overlay", "porter", "prim", "test", "tests", "torch"))


def explain_word(name: str) -> str:
    """Why a function in Python, C++ or Metal cannot have this name; empty if it can."""
    if keyword.iskeyword(name) or name in C_WORDS:
        return f"{name} is a word of Python, C++ or the Metal language"
    if name in _C_NAMES:
        return f"{name} means something in every C++ program"
    return "" if len(name) <= LONGEST else f"it has more than {LONGEST} characters"


def explain_module(name: str) -> str:
    """Why a module, with functions of its name, cannot have this name; empty if it can.

    A module hides any other of its name from the programs that run in its folder.
    """
    if not name.isidentifier() or not name.isascii():
        return "it is no name in Python"
    if name in _STARTED:
        return f"Python, pytest or a build runs a file named {name} by itself"
    if hasattr(builtins, name):
        return f"{name} is a name that Python has"
    if name in _OWN or name in sys.stdlib_module_names or _is_installed(name):
        return f"it would hide the module {name}"
    return explain_word(name)


def _is_installed(name: str) -> bool:
    """Whether packages that are installed have a module of this name: what imports it would get the other."""
    if len(name) > LONGEST:
        return False
    packages = [folder for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")]
    found = PathFinder.find_spec(name, packages)
    return found is not None and found.origin is not None
