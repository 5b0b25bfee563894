"""`porter bench`: the same calls through a checkout's code, another's and torch's own, on an NVIDIA GPU."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from porter.core.errors import PorterError
from porter.core.progress import Step
from porter.core.python import own_module
from porter.race.calls import CALLS, Timings, read_table, read_timings
from porter.race.replay import COMPILE, TENSOR_CORES
from porter.workflows.run import MODULE, RunSettings, run_program

_CACHE = "cache"


@dataclass(frozen=True)
class Race:
    """What runs: `sides` are the checkouts whose code is recorded, by who wrote it; none where a folder is replayed.

    Tensors have at most so many elements; a folder is kept, else launches go into one of their own.
    """

    operators: tuple[str, ...]
    sides: Mapping[str, Path]
    most: int
    folder: Path | None = None
    tensor_cores: bool = False

    def __post_init__(self) -> None:
        if bool(self.operators) is not bool(self.sides):
            raise ValueError("operators are recorded from checkouts")


def run_race(race: Race, report: Callable[[Step], None], times: bool = True) -> Timings | None:
    """Records each side, compiles what they launch, and times it; None where it `times` nothing.

    Raises PTR301 for an operator without calls, PTR302 where a side launches nothing, PTR303 where a GPU's part fails.
    """
    require_calls(race.operators)
    with ExitStack() as stack:
        folder = race.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="porter-bench-")))
        folder = folder.absolute()
        for side, checkout in race.sides.items():
            report(Step(f"recording {side}"))
            settings = RunSettings(checkout, ",".join(race.operators))
            words = (MODULE, "porter.race.launches", str(folder), side, str(race.most))
            if run_program(words, settings).code:
                hint = "Its error stands above. Write its port first where it has none: porter migrate OP --write."
                raise PorterError("PTR302", f"the launches of {checkout} are not recorded", hint=hint)
        report(Step("compiling to PTX"))
        _replay(folder, COMPILE, race.tensor_cores)
        if not times:
            return None
        report(Step("timing on the GPU"))
        kept = folder / "timings.json"
        _replay(folder, str(kept), race.tensor_cores)
        return read_timings(kept)


def require_calls(operators: Sequence[str]) -> None:
    """Raises PTR301 for an operator that the table of calls does not have."""
    listed = read_table()["operators"]
    for operator in operators:
        if operator not in listed:
            hint = f"It has {', '.join(sorted(listed))}; a line there adds one."
            raise PorterError("PTR301", f"{CALLS.name} has no calls of {operator}", hint=hint)


def _replay(folder: Path, task: str, tensor_cores: bool) -> None:
    """PTX is kept in the folder, so that a machine without a compiler has it."""
    program = own_module("porter.race.replay", str(folder), task, *((TENSOR_CORES,) if tensor_cores else ()))
    environment = {**program.environment, "PORTER_CACHE": str(folder / _CACHE)}
    if subprocess.run(program.command, env=environment, check=False).returncode:
        hint = "Its error stands above. On another machine with a GPU: porter bench --replay FOLDER."
        raise PorterError("PTR303", f"{folder} is not {'compiled' if task == COMPILE else 'timed'}", hint=hint)
