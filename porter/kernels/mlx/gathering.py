"""Runs a file of an MLX program, and takes the kernels that it makes, with the first call of each."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from porter.core.errors import Place, PorterError
from porter.core.files import read_named
from porter.kernels.call import Call
from porter.kernels.kernel import Kernel
from porter.kernels.loading import run_file, running_file
from porter.kernels.mlx.calls import watching
from porter.kernels.mlx.installing import Installation, import_mlx

_CALLED = "--call"
# What a function that makes kernels is called with where it asks for numbers, and nobody says which, by their types.
_INTEGERS = (64, 32, 8, 4)
_GUESSES: Mapping[str, object] = {"float": 1e-5, "bool": False}
_OF_KERNELS = {"input_names", "output_names", "source"}


@dataclass(frozen=True)
class Gathered:
    """A kernel that a run made, and its first call."""

    kernel: Kernel
    call: Call | None = None


@dataclass(frozen=True)
class GatheredKernels:
    """The kernels of a file by name, and what a user should know: what was guessed, and what was not called."""

    kernels: Mapping[str, Gathered]
    notes: tuple[str, ...] = ()


def gather(path: Path, calls: Sequence[str] = ()) -> GatheredKernels:
    """Runs `path`, and `calls`, code that runs in its module; the kernels that either makes.

    Without `calls`, each function of the file that makes kernels and that nothing called is called, with numbers where
    it asks for numbers. A file of a package is imported as the package's module. Raises PTR223, PTR229 where no kernel
    is made, and PTR238.
    """
    path = path.resolve()
    makers = _find_makers(path)
    mx = import_mlx()
    installation = Installation(mx)
    installation.install()
    run = _Run(str(path))
    notes: list[str] = []
    try:
        with watching(lambda launched: run.add_call(launched.kernel, launched.call), run.add):
            values = {"mx": mx, **_run_module(path)}
            for code in calls:
                with running_file(path):
                    exec(compile(code, _CALLED, "exec"), values)
            if not calls:
                notes = [note for maker in makers if maker.name not in run.reached for note in maker.try_in(values)]
    except PorterError as error:
        if not run.kernels:
            raise
        notes.append(f"The file did not end: {error}")
    finally:
        installation.uninstall()
    if not run.kernels:
        what = "no kernel is made while the file runs, so none can be imported"
        raise PorterError("PTR229", what, Place(str(path)), "\n".join(notes) or _hint(makers))
    return GatheredKernels(run.kernels, tuple(notes))


def _hint(makers: Sequence[_Maker]) -> str:
    said = ", ".join(str(maker) for maker in makers)
    return f'Say with {_CALLED} "CODE" what makes one{f": {said}" if said else ""}.'


@dataclass
class _Run:
    """What a run has made so far, by names of which no two are the same, and the functions of the file that did."""

    file: str
    kernels: dict[str, Gathered] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    _names: dict[Kernel, str] = field(default_factory=dict)

    def add(self, kernel: Kernel) -> None:
        """A kernel that was made: it is of this file if a line of it, or of the user's code, led there."""
        frame, functions = sys._getframe(1), set()
        while frame is not None:
            if frame.f_code.co_filename in (self.file, _CALLED):
                functions.add(frame.f_code.co_name)
            frame = frame.f_back  # type: ignore[assignment]
        if functions and kernel not in self._names:
            same = sum(kernel.name == other.name for other in self._names)
            name = f"{kernel.name}_{same + 1}" if same else kernel.name
            self._names[kernel] = name
            self.kernels[name] = Gathered(replace(kernel, name=name))
        self.reached |= functions

    def add_call(self, kernel: Kernel, call: Call) -> None:
        """A launch of a kernel, before it runs."""
        name = self._names.get(kernel)
        if name is not None and self.kernels[name].call is None:
            self.kernels[name] = replace(self.kernels[name], call=call)


@dataclass(frozen=True)
class _Maker:
    """A function of the file that makes a kernel: its parameters without a default, with their types as written."""

    name: str
    line: int
    parameters: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.parameters)})"

    def try_in(self, values: Mapping[str, Any]) -> Iterator[str]:
        """Calls the function if numbers may be all it asks for, and says so, or why there is no kernel of it."""
        advice = f'Pass {_CALLED} "{self}", with values.'
        if any(kind not in _GUESSES and kind not in ("int", "") for kind in self.parameters.values()):
            yield f"{self} in line {self.line} was not called: it takes more than numbers. {advice}"
            return
        refusal = ""
        for integer in _INTEGERS:
            guesses = {name: _GUESSES.get(kind, integer) for name, kind in self.parameters.items()}
            try:
                values[self.name](**guesses)
            except Exception as error:  # the file is somebody else's, and its numbers were guessed
                refusal = f"{self} in line {self.line} stops for numbers that were guessed: {error}. {advice}"
                continue
            if guesses:
                chosen = ", ".join(f"{name}={value!r}" for name, value in guesses.items())
                yield f'{self.name}({chosen}) was called: pass {_CALLED} "{self}" for other numbers.'
            return
        yield refusal


def _find_makers(path: Path) -> list[_Maker]:
    """The functions at the top of a file that call `metal_kernel`, or what takes the same arguments."""
    with running_file(path):
        module = ast.parse(read_named(path, "PTR238"), str(path))
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    return [_Maker(f.name, f.lineno, _parameters(f.args)) for f in functions if any(map(_makes, ast.walk(f)))]


def _makes(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name.endswith("metal_kernel") or {keyword.arg for keyword in node.keywords} >= _OF_KERNELS


def _parameters(arguments: ast.arguments) -> dict[str, str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    required = positional[: len(positional) - len(arguments.defaults)]
    required += [a for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None]
    return {a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in required}


def _run_module(path: Path) -> dict[str, Any]:
    """The values of the file's module, which is imported by its name where a package is around it."""
    names, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        names, folder = [folder.name, *names], folder.parent
    if len(names) == 1:
        return run_file(path)
    with running_file(path), _importing_from(folder):
        return vars(importlib.import_module(".".join(names).removesuffix(".__init__")))


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """A block in which modules come from `folder` first, as in the checkout or the archive that a file lies in."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
