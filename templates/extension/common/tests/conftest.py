"""Tests the package that is installed, unless this folder has it built in place."""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
import torch

PROJECT = Path(__file__).resolve().parent.parent
OTHERS = [each for each in sys.path if Path(each).resolve() != PROJECT]
if not list((PROJECT / "$name").glob("_C.*")) and PathFinder.find_spec("$name", OTHERS):
    sys.path[:] = OTHERS  # sources without a library would hide the package that has one


def pytest_configure():
    try:
        import $name
    except ImportError as error:
        hint = "; built under aten_overlay, it runs there alone" if "objc" in str(error) else ""
        raise pytest.UsageError(f"{error}{hint}") from error
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("MPS")
    if torch.backends.mps.is_available() and not any(each.startswith("$name::") for each in registered):
        raise pytest.UsageError(
            f"{Path($name.__file__).parent} was built without the Metal kernels. On a Mac, install a torch that has mps. "
            "On Linux: python -m aten_overlay -m pip install --no-build-isolation ."
        )
