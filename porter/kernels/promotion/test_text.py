"""The calls and the reference of a script as the source of tests."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from porter.core.errors import Place, PorterError
from porter.kernels.script import Case, Script, Stage
from porter.plan.new_operator.operator import Sample
from porter.plan.promotion.promotion import Decision

_MODULES = {"Tensor": "torch.Tensor", "F": "torch.nn.functional", "nn": "torch.nn"}
_KEPT = ("torch", "math")


@dataclass(frozen=True)
class _Recorder(Case):
    """A case that remembers how each of its tensors was made."""

    made: list[tuple[Tensor, str]] = field(default_factory=list)

    def normal(self, *shape: int, seed: int = 0) -> Tensor:
        """Tests make uniform numbers: these spread as far as the normal ones do."""
        return self._note(super().normal(*shape, seed=seed), f"make_arg({shape!r}, low=-2, high=2)")

    def uniform(self, *shape: int, low: float, high: float, seed: int = 0) -> Tensor:
        values = super().uniform(*shape, low=low, high=high, seed=seed)
        return self._note(values, f"make_arg({shape!r}, low={low!r}, high={high!r})")

    def integers(self, *shape: int, below: int, dtype: torch.dtype = torch.int32, seed: int = 0) -> Tensor:
        values = super().integers(*shape, below=below, dtype=dtype, seed=seed)
        own = "" if dtype == self.dtype else f", dtype={dtype}, requires_grad=False"
        return self._note(values, f"make_arg({shape!r}, low=0, high={below!r}{own})")

    def _note(self, values: Tensor, text: str) -> Tensor:
        self.made.append((values, text))
        return values

    def find(self, values: Tensor) -> str | None:
        return next((text for tensor, text in self.made if tensor is values), None)


@dataclass(frozen=True)
class Samples:
    """A sample for each size of a script, functions that they call by their names, and what is left to a person."""

    samples: tuple[Sample, ...]
    functions: str
    decisions: tuple[Decision, ...]


def write_samples(script: Script, stage: Stage, op: str, place: Place) -> Samples:
    """The inputs of a stage as the source of tests: what earlier stages give is computed by their references.

    Raises PTR248 for one of these that is more than a function of its arguments.
    """
    samples, decisions = [], []
    before = list(find_earlier(script, stage))
    for size in script.sizes:
        case = _Recorder(size, script.dtypes[0], script.layouts[0], "cpu")
        values = script.values(case)
        texts = {}
        for name, value in values.items():
            text = case.find(value) if isinstance(value, Tensor) else repr(value)
            if text is None:
                own = "" if value.dtype == case.dtype else f", dtype={value.dtype}"
                text = f"make_arg({tuple(value.shape)!r}{own})"
                what = f"the script computes `{name}`, and the tests' samples have any values: write some that fit"
                if name in stage.takes or any(name in each.takes for each in before):
                    decisions.append(Decision(place, what))
            texts[name] = text
        samples.append(_write_sample(stage, before, texts, op))
    functions = (write_reference(each.reference, _maker(each, op), place) for each in before)
    return Samples(tuple(samples), "\n\n".join(functions), tuple(dict.fromkeys(decisions)))


def find_earlier(script: Script, stage: Stage) -> Iterator[Stage]:
    """The stages before one whose results it takes, directly or by those of others, in their order."""
    wanted = set(stage.takes)
    found = []
    for each in reversed(script.stages[: script.stages.index(stage)]):
        if wanted & set(each.gives):
            found.append(each)
            wanted |= set(each.takes)
    yield from reversed(found)


def _write_sample(stage: Stage, before: Sequence[Stage], texts: Mapping[str, str], op: str) -> Sample:
    if not before:
        return Sample(tuple(texts[name] for name in stage.takes))
    taken = {name for each in (*before, stage) for name in each.takes}
    given = [f"{name} = {text}" for name, text in texts.items() if name in taken]
    calls = [f"{', '.join(each.gives)} = {_maker(each, op)}({', '.join(each.takes)})" for each in before]
    return Sample(stage.takes, (*given, *calls))


def _maker(stage: Stage, op: str) -> str:
    return f"reference_{op}_{stage.name}"


def write_reference(function: Callable[..., Any], name: str, place: Place) -> str:
    """The source of a function `name` that needs only torch and math. Raises PTR248."""
    module = getattr(function, "__module__", None) or ""
    inner = getattr(function, "__name__", "")
    if (module or "torch").partition(".")[0] == "torch" and inner and inner != "<lambda>":
        path = f"{module or 'torch'}.{inner}"
        if _find(path) is not function:
            path = next((p for p in (f"torch.{inner}", f"torch.nn.functional.{inner}") if _find(p) is function), "")
        if path:
            return f"def {name}(*args):\n    return {path}(*args)\n"
    if not isinstance(function, FunctionType) or inner == "<lambda>" or function.__closure__:
        raise PorterError(
            "PTR248", "the reference of the stage is not a plain function of the script", place,
            "Write it as one function of its arguments, torch and math.",
        )  # fmt: skip
    helpers: dict[FunctionType, str] = {}
    _write_function(function, name, place, helpers)
    return "\n\n".join(f"{text}\n" for text in reversed(helpers.values()))


def _write_function(function: FunctionType, name: str, place: Place, helpers: dict[FunctionType, str]) -> None:
    """Adds the source of a function, and of those of its file that it calls, to `helpers`."""
    helpers[function] = ""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    written = _Standalone(function, name, place, helpers).visit(tree)
    helpers[function] = ast.unparse(ast.fix_missing_locations(written))


def _find(path: str) -> object:
    found: object = torch
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


class _Standalone(ast.NodeTransformer):
    """Renames a function and those that it calls, drops annotations, and puts numbers of its file for their names."""

    def __init__(self, function: FunctionType, name: str, place: Place, helpers: dict[FunctionType, str]) -> None:
        self.function, self.name, self.place, self.helpers = function, name, place, helpers
        self.own = {*function.__code__.co_varnames, *function.__code__.co_cellvars, function.__name__}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name == self.function.__name__:
            node.name = self.name
        node.returns = None
        for each in (*node.args.args, *node.args.kwonlyargs):
            each.annotation = None
        if ast.get_docstring(node) and len(node.body) > 1:
            node.body = node.body[1:]
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.own or node.id in _KEPT or not isinstance(node.ctx, ast.Load):
            return node
        values = self.function.__globals__
        if node.id not in values:
            return node
        value = values[node.id]
        if isinstance(value, (bool, int, float)):
            return ast.Constant(value)
        if isinstance(value, FunctionType) and value.__globals__ is values:
            name = f"{self.name}_{node.id}"
            if value not in self.helpers:
                _write_function(value, name, self.place, self.helpers)
            return ast.Name(name, node.ctx)
        if node.id in _MODULES:
            return ast.parse(_MODULES[node.id], mode="eval").body
        raise PorterError(
            "PTR248", f"the reference of the stage uses `{node.id}` of the script, which the tests would not have",
            Place(self.place.file, self.function.__code__.co_firstlineno + node.lineno - 1),
            "Write it as one function of its arguments, torch and math.",
        )  # fmt: skip
