"""Runs a script's file and finds its `SCRIPT` and its kernels."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch

from porter.core.errors import Place, PorterError, code_in
from porter.core.files import require_regular
from porter.core.setting import setting
from porter.kernels.call import Call, Number
from porter.kernels.kernel import Kernel
from porter.kernels.launch import observing
from porter.kernels.metal_kernel import MetalKernel
from porter.kernels.script import Case, Script, Stage, moved, on_cpu
from porter.kernels.torch_metal_kernel import TorchMetalKernel

AnyKernel: TypeAlias = MetalKernel | TorchMetalKernel


@dataclass(frozen=True)
class StageUse:
    """The stage that makes a call, its function that launches the kernel, and the values it was given.

    `call_numbers` are the inputs of the kernel that were numbers.
    """

    stage: Stage
    function: Callable[..., Any]
    values: Mapping[str, Any]
    call_numbers: Mapping[str, Number]
    file: str

    @property
    def numbers(self) -> dict[str, Number]:
        """The values that are numbers."""
        return {name: value for name, value in self.values.items() if not isinstance(value, torch.Tensor)}


NAME = "SCRIPT"
_METAL = (".metal", ".metallib")


@dataclass(frozen=True)
class FoundKernel:
    """A kernel of a script, and a call that the `SCRIPT` makes of it by `use`, if it makes any.

    `others` are calls of other element types.
    """

    kernel: AnyKernel
    call: Call | None = None
    use: StageUse | None = None
    others: tuple[Call, ...] = ()


_problem: ContextVar[Path | None] = ContextVar("problem", default=None)


def answering(problem: Path | None) -> AbstractContextManager[None]:
    """A block in which a file is an answer to `problem`: its functions launch the stages of the problem's SCRIPT, and
    what it says itself of cases, references and bounds counts for nothing.
    """
    return setting(_problem, problem)


def load(path: Path) -> Script:
    """The `SCRIPT` of a file. Raises PTR238 (cannot be run), PTR239 (has none) and PTR440 (is no answer)."""
    return _find_script(path, run_file(path))


def load_text(path: Path, text: str) -> Script:
    """The `SCRIPT` of a file, were `text` in it. Raises as `load`."""
    values: dict[str, Any] = {"__name__": "<run_path>", "__file__": str(path)}
    with running_file(path):
        exec(compile(text, str(path), "exec"), values)
    return _find_script(path, values)


def _find_script(path: Path, values: Mapping[str, Any]) -> Script:
    if (problem := _problem.get()) is not None:
        return _answer(problem, path, values)
    found = values.get(NAME)
    if not isinstance(found, Script):
        hint = "Give it a module-level `SCRIPT = Script(...)`, as `porter kernel new quickstart` does."
        raise PorterError("PTR239", f"the script has no {NAME}", Place(str(path)), hint)
    return found


def _answer(problem: Path, path: Path, values: Mapping[str, Any]) -> Script:
    with answering(None):
        script = load(problem)
    missing = [stage.name for stage in script.stages if not callable(values.get(stage.name))]
    if missing:
        what = f"the answer to {problem.name} has no function {missing[0]}"
        takes = next(", ".join(stage.takes) for stage in script.stages if stage.name == missing[0])
        raise PorterError("PTR440", what, Place(str(path)), f"Define {missing[0]}({takes}), which launches a kernel.")
    return replace(script, stages=tuple(replace(s, run=values[s.name], simple=None) for s in script.stages))


def load_kernels(path: Path) -> dict[str, FoundKernel]:
    """The kernels of a file by their names in Metal, each with a call that the file's `SCRIPT` makes of it, if any.

    Raises PTR238.
    """
    values = run_file(path)
    kernels = {v.kernel.name: v for v in values.values() if isinstance(v, (MetalKernel, TorchMetalKernel))}
    script = values.get(NAME)
    with running_script(path):
        calls = _collect_calls(script, kernels, str(path)) if isinstance(script, Script) else {}
    return {name: _with_calls(kernel, calls.get(name, ())) for name, kernel in kernels.items()}


def _with_calls(kernel: AnyKernel, calls: Sequence[tuple[Call, StageUse]]) -> FoundKernel:
    return FoundKernel(kernel, *calls[0], tuple(call for call, _ in calls[1:])) if calls else FoundKernel(kernel)


def find_kernel(path: Path, kernels: Mapping[str, FoundKernel], name: str | None) -> FoundKernel:
    """The kernel of that name, or the only one. Raises PTR240."""
    if name is None and len(kernels) == 1:
        return next(iter(kernels.values()))
    if name is None or name not in kernels:
        what = (
            "the script has several kernels" if name is None and kernels else f"the script has no kernel {name or ''}"
        )
        hint = f"Name one with --kernel: {', '.join(kernels)}." if kernels else "Give it a module-level MetalKernel."
        raise PorterError("PTR240", what.strip(), Place(str(path)), hint)
    return kernels[name]


@contextmanager
def running_script(path: Path) -> Iterator[None]:
    """A block that calls functions of a script: what they raise tells its line. Raises PTR288, or the code in it."""
    try:
        yield
    except PorterError as error:
        raise PorterError(error.code, error.what, error.place or _place(path, error), error.hint) from error
    except (Exception, SystemExit) as error:  # the script is somebody else's
        place = _place(path, error)
        told = str(error).strip()
        if (code := code_in(told)) and told.startswith(code):
            raise PorterError(code, told.removeprefix(code).strip(), place) from error
        raise PorterError("PTR288", f"the script stops: {_told(error)}", place) from error


def _collect_calls(script: Script, kernels: Collection[str], file: str) -> dict[str, list[tuple[Call, StageUse]]]:
    """Calls of each kernel, in both tiers, one for each element type: the last ones in the last case that makes any."""
    calls: dict[str, list[tuple[Call, StageUse]]] = {}
    seen: set[torch.dtype] = set()
    for case in reversed(list(script.cases())):
        if calls.keys() >= set(kernels) and case.dtype in seen:
            continue
        last = dict(_calls_of_case(script, case, file))
        for name, (call, use) in last.items():
            calls_of_kernel = calls.setdefault(name, [])
            if all(_types(call) != _types(other) for other, _ in calls_of_kernel):
                calls_of_kernel.append((call, use))
        seen.add(case.dtype)
    return calls


def _types(call: Call) -> tuple[object, ...]:
    return tuple(value.dtype if isinstance(value, torch.Tensor) else type(value) for value in call.inputs)


def _calls_of_case(script: Script, case: Case, file: str) -> Iterator[tuple[str, tuple[Call, StageUse]]]:
    values = script.values(case)
    for stage in script.stages:
        for function in filter(None, (stage.run, stage.simple)):
            yield from _calls_of_stage(stage, function, values, file)
        values |= moved(stage.results(stage.reference, on_cpu(values)), case.device)


def _calls_of_stage(
    stage: Stage, function: Callable[..., Any], values: Mapping[str, Any], file: str
) -> Iterator[tuple[str, tuple[Call, StageUse]]]:
    found: list[tuple[Kernel, Call]] = []
    with observing(lambda kernel, call, _outputs: found.append((kernel, call))):
        stage.results(function, values)
    taken = {name: values[name] for name in stage.takes}
    for kernel, call in found:
        given = zip(kernel.inputs, call.inputs, strict=True)
        numbers = {name: value for name, value in given if not isinstance(value, torch.Tensor)}
        yield kernel.name, (call, StageUse(stage, function, taken, numbers, file))


def require_script(path: Path) -> None:
    """Raises PTR238 unless `path` is a file that may be Python."""
    if not path.is_file():
        what = "this is a folder, not a script" if path.is_dir() else "there is no such script"
        raise PorterError("PTR238", what, Place(str(path)), "Check the path.")
    require_regular(path, "PTR238")
    if path.suffix in _METAL:
        raise PorterError(
            "PTR238", "this is Metal source, not a script", Place(str(path)),
            "Give a Python file with a MetalKernel: its source= is a kernel's body, its header= what stands before.",
        )  # fmt: skip


def run_file(path: Path) -> dict[str, Any]:
    """The values of a file's module. Raises PTR238, and the code of an error of porter with the line."""
    require_script(path)
    with running_file(path):
        values = runpy.run_path(str(path))
    return values


@contextmanager
def running_file(path: Path) -> Iterator[None]:
    """A block that runs a file. Raises PTR238, and the code of an error of porter with the line."""
    try:
        yield
    except PorterError as error:
        raise PorterError(error.code, error.what, error.place or _place(path, error), error.hint) from error
    except (Exception, SystemExit) as error:
        raise PorterError("PTR238", f"the script cannot be run: {_told(error)}", _place(path, error)) from error


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]


def _place(path: Path, error: BaseException) -> Place:
    """The script's last line on the way to the error."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return Place(str(path), error.lineno or 0)
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return Place(str(path), lines[-1] if lines else 0)
