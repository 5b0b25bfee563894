"""`porter mac`: records launches here for a Mac to replay, and sets its log beside others.

The device has to come up before torch is imported.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from aten_overlay.errors import OverlayError
from porter import __version__
from porter.core.checkout import Checkout
from porter.core.dtypes import name_torch
from porter.core.errors import Place, PorterError
from porter.core.files import read_regular
from porter.core.progress import Step, Steps, ignore
from porter.core.python import PACKAGES, own_module
from porter.verdict.native import native_target
from porter.verdict.result import DEFAULT, MPS
from porter.witness.log import Comparison, Log, compare, read_log
from porter.workflows.kernel import start_device
from porter.workflows.templates import create_file, find_templates

if TYPE_CHECKING:
    from porter.witness.recording import Recording

WORKFLOW, SCRIPT, LAUNCHES, HOST_LOG = "witness.yml", "witness.py", "launches.jsonl", "host.jsonl"
# Upstream's own samples of an operator: few, and of every element type.
SAMPLES = "test_output_match"
_ROOM = Path(__file__).resolve().parents[1] / "witness"


@dataclass(frozen=True)
class Bundle:
    """What was written for a Mac: the files, how many launches of how many sources, and the log of this host.

    `left_out` are the reasons for launches that the Mac does not get, each with its number.
    """

    files: tuple[Path, ...]
    sources: int
    launches: int
    left_out: tuple[tuple[str, int], ...]
    host: Log


def write_bundle(
    open_checkout: Callable[[], Checkout],
    folder: Path,
    subjects: Sequence[str],
    expr: str = SAMPLES,
    steps: Steps = lambda _step: None,
) -> Bundle:
    """Records what kernel scripts and native operators of a checkout launch, and writes it with what replays it.

    A subject is a script, or an operator of the checkout, whose tests that `expr` selects run through `compile_shader`.
    No subjects are all templates. Raises PTR236 for a file that is there, PTR196 where nothing was launched, what
    `native_target` raises for an operator, and what `start_device` raises.
    """
    files = {name: folder / name for name in (WORKFLOW, SCRIPT, LAUNCHES, HOST_LOG)}
    for path in files.values():
        if path.exists():
            raise PorterError("PTR236", "the file exists already", Place(str(path)), "Choose another folder.")
    scripts, operators = _sort(subjects)
    checkout = open_checkout() if operators else None
    targets = [native_target(checkout, op) for op in operators] if checkout else []
    start_device()
    from porter.verdict.backends.beside import TOLERANCES
    from porter.witness.recording import Recording, recording

    recorded = Recording(_find_lack)
    with recording(recorded), without_shortcuts():
        for number, path in enumerate(scripts):
            steps(Step(path.name, number, len(scripts) + len(targets)))
            _run_script(path, recorded)
        for number, target in enumerate(targets):
            steps(Step(target.base, len(scripts) + number, len(scripts) + len(targets)))
            assert checkout is not None
            _run_operator(checkout, target.base, expr, recorded)
    counts = recorded.counts
    if not counts["launch"]:
        raise PorterError(
            "PTR196", f"no launch of {', '.join(subjects)} could be recorded: {_tell_left_out(recorded)[0][0]}",
            hint="Name a kernel script, or an operator whose verdict `--backend kernels` gives.",
        )  # fmt: skip
    bounds = {name_torch(dtype): bound for dtype, bound in TOLERANCES.items()}
    lines = recorded.lines({"porter": __version__, "torch": metadata.version("torch"), "bounds": bounds})
    create_file(files[LAUNCHES], "".join(f"{line}\n" for line in lines))
    create_file(files[SCRIPT], read_regular(_ROOM / "replay.py").decode())
    create_file(files[WORKFLOW], _write_workflow(folder))
    steps(Step("the script, on this host"))
    replay_here(folder, files[HOST_LOG])
    left_out, host = tuple(_tell_left_out(recorded)), read_log(files[HOST_LOG])
    return Bundle(tuple(files.values()), counts["library"], counts["launch"], left_out, host)


def compare_logs(paths: Sequence[Path]) -> Comparison:
    """Logs side by side. Raises PTR195."""
    return compare([read_log(path) for path in paths])


def replay_here(folder: Path, log: Path) -> None:
    """Runs the script of a folder, as it is, on the stand-in for Metal. Raises PTR197 where it does not end well."""
    program = own_module("aten_overlay.__main__", str((folder / SCRIPT).resolve()), "--log", str(log.resolve()))
    done = subprocess.run(
        program.command, env=program.environment, cwd=PACKAGES, capture_output=True, text=True, check=False
    )
    if done.returncode:
        ended = (done.stderr.strip().splitlines() or [f"it exited with {done.returncode}"])[-1]
        raise PorterError(
            "PTR197", f"the script for the Mac fails here: {ended}", Place(str(folder / SCRIPT)),
            hint="Run it by `python -m aten_overlay`; it says more.",
        )  # fmt: skip


def _sort(subjects: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Scripts and operators, each in its order."""
    if not subjects:
        return [template.path for template in find_templates()], []
    scripts = [Path(name) for name in subjects if name.endswith(".py")]
    return scripts, [name for name in subjects if not name.endswith(".py")]


@contextmanager
def without_shortcuts() -> Iterator[None]:
    """Compiles every library anew, and makes each call a launch of its own: a repeated one bypasses what records."""
    from porter.kernels.launch import compiled, observing

    compiled.cache_clear()
    with observing(lambda _kernel, _call, _outputs: None):
        yield
    compiled.cache_clear()


def _run_script(path: Path, recorded: Recording) -> None:
    from porter.kernels.checking import check
    from porter.kernels.loading import load

    recorded.subject = path.name
    for result in check(load(path), sweeps=False):
        if not result.ok:
            why = result.error or str(result.difference)
            recorded.leave_out(f"the host's own check fails: {why.splitlines()[0]}", case=result.case)


def _run_operator(checkout: Checkout, op: str, expr: str, recorded: Recording) -> None:
    from porter.server import worker

    recorded.subject = op
    target = native_target(checkout, op)
    try:
        verdict = worker.verify(checkout.root, {}, {}, target, worker.RunOptions(expr, MPS, DEFAULT), ignore).verdict
    except PorterError as error:
        recorded.leave_out(f"{error.code} {error.what}")
        return
    if not verdict.ok:
        reason = verdict.failures[0].reason.splitlines()[0] if verdict.failures else "no test passed"
        recorded.leave_out(f"the host's own verdict fails: {reason}")


def _find_lack(source: str, name: str) -> str:
    """What a kernel needs that the GPU of a virtual Mac lacks, by compiling it for that family; "" for nothing."""
    from aten_overlay.device import load
    from aten_overlay.device.shader import ShaderLibrary
    from aten_overlay.metal.family import REFUSED, VARIABLE

    device, before = load.started(), os.environ.get(VARIABLE)
    assert device is not None
    os.environ[VARIABLE] = "paravirtual"
    try:
        getattr(ShaderLibrary(source, device), name)
    except (SyntaxError, RuntimeError) as error:
        cause = error.__cause__
        return cause.what if isinstance(cause, OverlayError) and cause.code == REFUSED else ""
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before
    return ""


def _tell_left_out(recorded: Recording) -> list[tuple[str, int]]:
    return Counter(each["reason"] for each in recorded.records if each["record"] == "left out").most_common()


def _write_workflow(folder: Path) -> str:
    """The workflow, with the folder as it is called from the top of its repository, if it is in one."""
    whole = folder.resolve()
    top = next((each for each in whole.parents if (each / ".git").exists()), whole.parent)
    torch = metadata.version("torch").partition("+")[0]
    text = Template(read_regular(_ROOM / WORKFLOW.replace("witness", "workflow")).decode())
    return text.safe_substitute(folder=whole.relative_to(top).as_posix(), torch=torch)
