"""Selects OpInfos for an operator that none is named for: those that dispatch it, and those whose derivative formulas
call it on a device that implements them (elsewhere the gradient may be composed of other operators). Where torch has no
such OpInfo, one that is made of a recurrent layer may.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from porter.core import cache
from porter.verdict.derivatives import list_derived_with, read_derivatives
from porter.verdict.errors import NoVerdict

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo

Table = Mapping[str, tuple[list[str], list[str]]]


@dataclass(frozen=True)
class Selection:
    """Full names of OpInfos: whose call, and only whose backward, dispatches an operator."""

    forward: tuple[str, ...] = ()
    backward: tuple[str, ...] = ()


def select_opinfos(base: str) -> Selection:
    """The OpInfos that dispatch an operator; none where some are named for it.

    Asked before the fork's own code is loaded: the table, made once for each torch, is of what falls back to the CPU.
    """
    from torch.testing._internal.common_methods_invocations import op_db

    from porter.verdict.suite.context import aten_names
    from porter.verdict.suite.made_opinfos import make_recurrent_opinfo

    if any(base in aten_names(op) for op in op_db):
        return Selection()
    forward = tuple(name for name, (names, _) in table().items() if base in names)
    functions = list_derived_with(base)
    derived = {op.full_name for op in op_db if op.supports_autograd and functions & _differentiated(op)}
    backward = [name for name, (_, names) in table().items() if base in names or name in derived]
    if not forward and not backward:
        backward = [name for name in sorted(functions) if make_recurrent_opinfo(name)]
    return Selection(forward, tuple(name for name in backward if name not in forward))


def _differentiated(op: OpInfo) -> frozenset[str]:
    """The functions whose derivatives an OpInfo's gradient takes: its own, else those that it dispatches."""
    from porter.verdict.suite.context import aten_names

    own = frozenset(aten_names(op)) & {name for name, _ in read_derivatives()}
    return own or frozenset(table()[op.full_name][0])


@functools.cache
def table() -> Table:
    """The ATen base names that each OpInfo dispatches, forward and besides that backward.

    Made once for each torch, in some ten seconds, while nothing of a fork is loaded. Raises PTR170 when that fails.
    """
    from aten_overlay import toolchain
    from porter.verdict.suite import dispatched

    file = _file(dispatched.__file__)
    text = cache.get(file)
    if text is None:
        with toolchain.locked(file):  # processes that record side by side ask for it at once
            text = cache.get(file) or _make_apart(file)
    made: Table = json.loads(text)
    return made


def _make_apart(file: Path) -> str:
    """Makes the table in a separate process: after autograd runs here, no later fork could use it. Raises PTR170."""
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        error = pool.submit(_make, file).exception()
    if error:
        what = f"cannot determine which operators the OpInfos call: {error}"
        raise NoVerdict("PTR170", what, hint="Run `porter setup`, which does this first.") from error
    return cache.get(file) or "{}"


def _make(file: Path) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    from porter.verdict.suite import dispatched

    dispatched.check_gradients()
    found = {op.full_name: dispatched.record_dispatch(op) for op in op_db}
    assert any(one.forward for one in found.values()), "nothing counts what the device does"
    cache.put(file, json.dumps({name: (sorted(one.forward), sorted(one.backward)) for name, one in found.items()}))


def _file(source: str) -> Path:
    from aten_overlay.device import libraries
    from aten_overlay.toolchain import torch_version

    return cache.key("dispatched", "", torch_version(), libraries.build_device().parent.name, Path(source).read_text())
