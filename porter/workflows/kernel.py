"""`porter kernel` and `porter extension new`: starts the device, then runs a script, exports kernels, writes projects.

The device has to come up before torch is imported, which importing `porter.kernels` does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from aten_overlay.cuda.sanitizer import TOOLS, run_sanitized
from aten_overlay.metal import language
from aten_overlay.metal.sanitizer.checks import VARIABLE, select
from porter.core.errors import Place, PorterError
from porter.core.files import read_named
from porter.core.progress import Step, Steps
from porter.core.python import own_module
from porter.verdict.errors import raising_porter_errors
from porter.verdict.result import ALL, ARITHMETICS, DEFAULT, FAST
from porter.verdict.verify import find_arithmetics
from porter.workflows.templates import create_file, find_templates

if TYPE_CHECKING:
    from porter.kernels.checking import CaseResult, StageResult
    from porter.kernels.timing import Timing


MPS, CUDA = "mps", "cuda"
LARGE_CHECKS = ("bounds", "overflow")  # of memory that nothing wrote
NO_CHECKS = "none"


def start_device(device: str = MPS) -> None:
    """Brings up the stand-in's mps device; a Mac has its own. Raises PTR100 and PTR140-PTR146; PTR385 and PTR386 where
    a CUDA device is asked for and none can be used.
    """
    if device == CUDA:
        from aten_overlay.cuda.driver import find_driver

        with raising_porter_errors():
            find_driver().require_device(0)
        return
    if sys.platform == "darwin":
        return
    import aten_overlay

    with raising_porter_errors():
        aten_overlay.start()


def backend_name(device: str = MPS) -> str:
    """Where scripts run: on the stand-in, on a Mac's own device, or on an NVIDIA GPU."""
    if device == CUDA:
        return CUDA
    return "mps" if sys.platform == "darwin" else "host"


def check_script(
    path: Path,
    steps: Steps,
    device: str = MPS,
    arithmetic: str = DEFAULT,
    large: bool = False,
    hidden: int | None = None,
) -> Iterator[CaseResult]:
    """The result of every case in each arithmetic of that name, with bounds checked. `all` are those of verdicts, and
    Metal's fast math. With `large` of large tensors too. With a seed, `hidden`, cases made of it and the rules against
    cheats follow.

    Raises PTR171, PTR238, PTR239, PTR271, PTR287, PTR296 and what `start_device` raises.
    """
    names = (*ARITHMETICS, FAST) if arithmetic == ALL else find_arithmetics(arithmetic)
    if device == CUDA and arithmetic != DEFAULT:
        raise PorterError("PTR171", "an NVIDIA GPU has its own arithmetic", hint="Omit --arithmetic.")
    start_device(device)
    from aten_overlay.lint import listening
    from porter.kernels.checking import CaseResult, Part, check
    from porter.kernels.judging.conduct import Unchanged
    from porter.kernels.judging.mutants import check_hidden
    from porter.kernels.loading import load

    printed: set[str] = set()
    unchanged = Unchanged() if hidden is not None else None
    for name in names:
        # What threads access is watched once: where it is, fewer operations are regrouped.
        mode = _checked(sanitize=name == names[0] == DEFAULT, arithmetic=name) if device != CUDA else _in_order()
        watched = _watching() if name == names[0] == DEFAULT and device != CUDA else nullcontext()
        failed = []
        with _computing(name), mode, watched, listening() as heard:
            script = load(path)
            results = check(script, device, sweeps=name == names[0])
            if hidden is not None and name == names[0]:
                results = chain(results, check_hidden(script, hidden, device))
            for number, result in enumerate(results):
                case = result.case if name == DEFAULT else f"{result.case}, {name} arithmetic"
                steps(Step(f"{path.name}: {case}", number + 1))
                warnings = dict.fromkeys(text for finding in heard if (text := str(finding)) not in printed)
                printed.update(warnings)
                if name == FAST and not result.ok:
                    failed.append(result)
                    continue
                yield replace(result, case=case, warnings=tuple(warnings))
        yield from (
            replace(result, case=f"{result.case}, {name} arithmetic", cause=cause)
            for result, cause in _find_causes(path, device, failed)
        )
    if device == MPS and language.select() is None and "cooperative_tensor" in read_named(path, "PTR238"):
        yield from _check_older_tiles(path, device, steps)
    if large:
        yield from _check_large(path, device, steps)
    if unchanged is not None:
        yield from (CaseResult("conduct", error=str(error), part=Part.CONDUCT) for error in unchanged.find_replaced())
    if device == CUDA:
        yield from _check_sanitized(path, steps)


def _find_causes(path: Path, device: str, failed: Sequence[CaseResult]) -> Iterator[tuple[CaseResult, str]]:
    """Each case that fails in fast math, and what its kernels depend on: what a weaker arithmetic keeps."""
    from porter.kernels.checking import check
    from porter.kernels.loading import load

    passed: dict[str, set[str]] = {}
    for name in ("finite", "relaxed") if failed else ():
        with _computing(name), _checked(arithmetic=name):
            passed[name] = {result.case for result in check(load(path), device) if result.ok}
    for result in failed:
        kernels = ", ".join(f"`{kernel}`" for kernel in result.kernels) or "a kernel"
        if result.case in passed["finite"]:
            cause = f"{kernels}: right with exact functions; fast ones err as much as Metal allows"
        elif result.case in passed["relaxed"]:
            cause = f"PTR298 {kernels} depends on infinity or NaN, which fast math takes for numbers that do not occur"
        else:
            cause = f"{kernels}: depends on how sums and products are grouped, which fast math leaves to the compiler"
        yield result, cause


def _check_older_tiles(path: Path, device: str, steps: Steps) -> Iterator[CaseResult]:
    """Every case with cooperative tensors in the order of registers before macOS 26.2."""
    from porter.kernels.checking import check
    from porter.kernels.loading import load

    with _setting(language.VARIABLE, language.OLDER_TILES.name), _computing(DEFAULT), _checked():
        for number, result in enumerate(check(load(path), device, sweeps=False)):
            case = f"{result.case}, tiles of macOS 26.0"
            steps(Step(f"{path.name}: {case}", number + 1))
            yield replace(result, case=case)


def _check_large(path: Path, device: str, steps: Steps) -> Iterator[CaseResult]:
    """Cases with large tensors. What is computed of their unwritten memory means nothing, so bounds and widths are
    watched. Raises PTR271 and PTR296.
    """
    if device != MPS or sys.platform == "darwin":
        raise PorterError(
            "PTR296", "large tensors need the host's memory, which alone is addresses without pages",
            hint="Run `porter kernel check --large` on Linux, without --device.",
        )  # fmt: skip
    from aten_overlay.device.large import fill_sparsely, sparse_memory
    from porter.kernels.large import check_large
    from porter.kernels.launch import Mode, running
    from porter.kernels.loading import load

    checks = ",".join(name for name in LARGE_CHECKS if name in select(LARGE_CHECKS)) or NO_CHECKS
    setting = _setting(VARIABLE, checks)
    with raising_porter_errors(), sparse_memory(), setting, _computing(DEFAULT), running(Mode(checked=True)):
        fill_sparsely()
        for number, result in enumerate(check_large(load(path))):
            steps(Step(f"{path.name}: {result.case}", number + 1))
            yield result


@contextmanager
def _computing(arithmetic: str) -> Iterator[None]:
    """Compiles what a script hands to `compile_shader` for an arithmetic."""
    from aten_overlay.metal.build import VARIABLE
    from porter.kernels.launch import compiled

    compiled.cache_clear()
    with _setting(VARIABLE, arithmetic) if arithmetic != DEFAULT else nullcontext():
        yield


def _watching() -> AbstractContextManager[None]:
    """Watches what a script hands to `compile_shader` like its other kernels, unless the environment says otherwise."""
    return nullcontext() if VARIABLE in os.environ else _setting(VARIABLE, ALL)


@contextmanager
def _setting(name: str, value: str) -> Iterator[None]:
    """Sets a variable of the environment in a block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def _in_order() -> AbstractContextManager[None]:
    """Runs kernels in orders made of the seed that $PORTER_SHUFFLE names, if it does. Raises PTR396."""
    from aten_overlay.cuda.seed import read_seed
    from porter.kernels.launch import Mode, running

    with raising_porter_errors():
        seed = read_seed()
    return nullcontext() if seed is None else running(Mode(shuffle=seed))


def _check_sanitized(path: Path, steps: Steps) -> Iterator[CaseResult]:
    """One result for each check that `--sanitize` names: the script's cases under compute-sanitizer. Raises PTR394."""
    from porter.kernels.checking import CaseResult

    for check in (name for name in select() if name in TOOLS):
        steps(Step(f"{path.name}: {check}"))
        program = own_module("porter.__main__", "kernel", "check", str(path), "--device", CUDA)
        with raising_porter_errors():
            findings, _ = run_sanitized(check, program.command, program.environment)
        yield CaseResult(f"compute-sanitizer {check}", error="; ".join(map(str, findings)))


def trace_script(path: Path, shuffle: int | None) -> Iterator[StageResult]:
    """Stage after stage, up to the first that differs, with bounds checked and lanes in another order if asked.

    Raises PTR238, PTR239, PTR287, PTR288 and what `start_device` raises.
    """
    start_device()
    from porter.kernels.checking import trace
    from porter.kernels.loading import load, running_script

    with _checked(shuffle), running_script(path):
        yield from trace(load(path), shuffle=shuffle)


def time_scripts(paths: tuple[Path, ...], steps: Steps, device: str = MPS) -> Iterator[tuple[str, Timing]]:
    """The times of each script: its name, and one timing. No paths are all templates.

    Raises PTR238, PTR239, PTR287, PTR288 and what `start_device` raises.
    """
    start_device(device)
    from porter.kernels.loading import load, running_script
    from porter.kernels.timing import measure, on_one_core, without_fill

    files = paths or tuple(template.path for template in find_templates())
    with without_fill(), on_one_core():
        for number, path in enumerate(files):
            steps(Step(path.stem, number, len(files)))
            with running_script(path):
                for timing in measure(load(path), device):
                    yield path.stem, timing


def compile_scripts(paths: tuple[Path, ...], steps: Steps) -> Iterator[tuple[str, int]]:
    """Compiles the kernels of each script to PTX, into the cache: its name, and how many sources. No paths are all
    templates.

    Raises PTR100, PTR219, PTR238, PTR239, PTR287, PTR288 and PTR380-PTR382.
    """
    from porter.kernels.checking import compile_script
    from porter.kernels.loading import load, running_script

    files = paths or tuple(template.path for template in find_templates())
    for number, path in enumerate(files):
        steps(Step(path.stem, number, len(files)))
        with running_script(path):
            yield path.stem, compile_script(load(path))


def _checked(
    shuffle: int | None = None, sanitize: bool = False, arithmetic: str = DEFAULT
) -> AbstractContextManager[None]:
    """The overlay's checks, where there is one."""
    if sys.platform == "darwin":
        return nullcontext()
    from porter.kernels.launch import Mode, running

    traced = shuffle is not None
    return running(Mode(True, shuffle, poison=True, traced=traced, sanitize=sanitize, arithmetic=arithmetic))


ATEN = "aten"  # the form that `porter.workflows.promote` writes


def export_kernel(path: Path, form: str, name: str | None, folder: Path, without_vjp: bool = False) -> list[Path]:
    """Writes a kernel of a script in another form.

    Raises PTR228, PTR231, PTR232, PTR236, PTR238, PTR240, and PTR256 unless `without_vjp`.
    """
    start_device()
    from porter.kernels.export import export, find_form
    from porter.kernels.loading import find_kernel, load_kernels

    find_form(form, [ATEN])
    found = find_kernel(path, load_kernels(path), name)
    return _write(export(found.kernel, form, None, found.call, without_vjp, found.use, found.others), folder)


@contextmanager
def answering_to(problem: Path | None) -> Iterator[None]:
    """A block in which a file is checked as an answer to `problem`, if there is one."""
    if problem is None:
        yield
        return
    start_device()
    from porter.kernels.loading import answering

    with answering(problem):
        yield


def import_kernel(path: Path, form: str, folder: Path) -> list[Path]:
    """Writes the kernel of a file in another form as porter's own, from its text. Raises PTR229-PTR232, PTR236 and
    PTR238.
    """
    start_device()
    from porter.kernels.export import export, find_form, read_back
    from porter.kernels.loading import require_script

    can_run = find_form(form).run is not None
    require_script(path)
    text = read_named(path, "PTR238")
    try:
        kernel = read_back(text, form)
    except PorterError as error:
        place = Place(str(path), error.place.line if error.place else 0)
        hint = f"{error.hint} Or pass --run: it runs the file, and takes what it makes." if can_run else error.hint
        raise PorterError(error.code, error.what, place, hint) from error
    return _write(export(kernel, "porter"), folder)


def import_running(
    path: Path, form: str, folder: Path, kernel: str | None, calls: Sequence[str]
) -> tuple[list[Path], tuple[str, ...]]:
    """Writes the kernels that a file makes while it runs, or the one of that name; notes on what was called.

    Raises PTR223, PTR229, PTR232, PTR236, PTR238 and PTR240.
    """
    start_device()
    from porter.kernels.export import take_running
    from porter.kernels.loading import require_script

    require_script(path)
    files, notes = take_running(path, form, kernel, calls)
    return _write(files, folder), notes


def _write(files: Mapping[str, str], folder: Path) -> list[Path]:
    paths = [folder / name for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        create_file(path, text)
    return paths


def start_extension(
    name: str, kernels: Path | None, folder: Path, *, without_vjp: bool = False, metallib: bool = False
) -> tuple[Path, ...]:
    """Writes an extension `name`, with the kernels of a file if one is given, or with a Metal library on a Mac.

    Raises PTR251-PTR257, and what `start_device` raises for a file, which may use the device.
    """
    if kernels is not None and metallib:
        raise PorterError(
            "PTR257", "the kernels of a file are compiled for the types of a call, so no library can hold them",
            hint="Leave out --metallib, or start without --from and put your Metal source into csrc/kernels.h.",
        )  # fmt: skip
    if kernels is not None:
        start_device()
    from porter.kernels.extension import project  # imports torch

    if kernels is None:
        return project.write(project.example(name, metallib), folder)
    from porter.kernels.extension.from_kernels import project_of_file

    return project.write(project_of_file(name, kernels, without_vjp), folder)
