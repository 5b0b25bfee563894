"""What is promoted of a script: a stage, the function that launches its kernel, and what it is called with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch

from porter.core.errors import Place, PorterError
from porter.core.names import explain_word
from porter.kernels.loading import load
from porter.kernels.script import Case, Script, Stage, moved, on_cpu
from porter.plan.promotion.promotion import ScriptWish

_OWNERS = {"torch": torch, "torch.Tensor": torch.Tensor}
_NAME = re.compile(r"_?[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


@dataclass(frozen=True)
class Subject:
    """What is promoted as `op`: a stage of a script, and the function that launches its kernel."""

    op: str
    script: Script
    stage: Stage
    function: Callable[..., Any]
    file: str

    @property
    def place(self) -> Place:
        """Where the function begins."""
        code = getattr(self.function, "__code__", None)
        return Place(self.file, code.co_firstlineno if code else 0)

    def inputs(self, case: Case) -> Mapping[str, Any]:
        """The values of a case, those of the stages before by their references. Raises PTR287."""
        values = self.script.values(case)
        for stage in self.script.stages:
            if stage is self.stage or all(name in values for name in self.stage.takes):
                break
            values |= moved(stage.results(stage.reference, on_cpu(values)), case.device)
        self.stage.require(values)
        return values

    def arguments(self, case: Case) -> list[Any]:
        """What the function is called with in a case."""
        values = self.inputs(case)
        return [values[name] for name in self.stage.takes]

    def case(self, size: tuple[int, ...] | None = None, dtype: torch.dtype | None = None, device: str = "cpu") -> Case:
        """A case of the first size, element type and layout, or of another size or type."""
        script = self.script
        return Case(script.sizes[0] if size is None else size, dtype or script.dtypes[0], script.layouts[0], device)

    @property
    def smallest(self) -> tuple[int, ...]:
        """The smallest size of which all numbers are more than 1, if there is one."""
        return min(self.script.sizes, key=lambda sizes: (min(sizes, default=0) < 2, prod(sizes)))


def find_subject(path: Path, wish: ScriptWish) -> Subject:
    """What a wish names of a script, which is run to load it. Raises PTR238, PTR239 and PTR241."""
    script = load(path)
    stage = _find_stage(script, wish.stage, path)
    op = wish.op or stage.name
    why = explain_word(op) or ("" if _NAME.fullmatch(op) else "it is no name of small letters")
    if why:
        what = f"`{op}` cannot be the name of an operator: {why}"
        raise PorterError("PTR241", what, hint="Use small letters, digits and underscores, and no word of a language.")
    return Subject(op, script, stage, _tier(stage, wish.simple, path), str(path))


def check_name(subject: Subject) -> None:
    """Raises PTR347 for the name of an operator that PyTorch has, or of anything else that torch or a tensor has.

    The operator becomes `torch.NAME`, and `Tensor.NAME`: another module or function would be lost.
    """
    op = subject.op
    if torch._C._jit_get_schemas_for_operator(f"aten::{op}"):
        what = f"PyTorch has an operator `{op}` already"
    elif owner := next((name for name, of in _OWNERS.items() if hasattr(of, op)), ""):
        what = f"PyTorch has `{owner}.{op}`, which is no operator"
    else:
        return
    raise PorterError("PTR347", what, Place(subject.file), f"Choose another name: --op {op}_of_mine.")


def _find_stage(script: Script, name: str | None, path: Path) -> Stage:
    if name is None and len(script.stages) == 1:
        return script.stages[0]
    for stage in script.stages:
        if stage.name == name:
            return stage
    what = "the script has several stages" if name is None else f"the script has no stage {name}"
    names = ", ".join(each.name for each in script.stages)
    raise PorterError("PTR241", what, Place(str(path)), f"Name one with --stage: {names}.")


def _tier(stage: Stage, simple: bool, path: Path) -> Callable[..., Any]:
    if not simple:
        return stage.run
    if stage.simple is None:
        raise PorterError("PTR241", f"stage {stage.name} has no simple tier", Place(str(path)), "Omit --simple.")
    return stage.simple
