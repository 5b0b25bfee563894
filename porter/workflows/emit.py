"""Scripts that time operators, with an old torch and a new one, or a script's kernels, on a Mac."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from porter.aten.native_functions import NativeFunction, NativeFunctions
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.files import read_regular
from porter.core.layout import NATIVE_FUNCTIONS
from porter.core.progress import Step, Steps
from porter.workflows.kernel import start_device
from porter.workflows.mac import without_shortcuts
from porter.workflows.templates import create_file

BLANK = "?"  # an argument for the reader to fill in
TENSOR = "tensor"
_SOURCE = Path(__file__).resolve().parents[1] / "witness" / "benchmark.py"
_KERNELS = _SOURCE.with_name("kernel_benchmark.py")
_CALLS = "CALLS: list[dict[str, Any]] = []"
# A value that every operator takes for a required argument of a type: others are blanks.
_VALUES: dict[str, Any] = {"Scalar": 2, "float": 0.5, "int": 1, "SymInt": 1, "bool": False}


def emit_benchmark(checkout: Checkout, ops: Sequence[str], file: Path) -> tuple[str, ...]:
    """Writes the script for operators, and returns those with a blank to fill by hand.

    Raises PTR012 for an operator that does not exist, PTR153 for one without a function of tensors, PTR236 for a file
    that is there, and PTR353.
    """
    functions = NativeFunctions.read(checkout)
    calls = [_describe_call(op, functions.find_overloads(op)) for op in ops]
    text = read_regular(_SOURCE).decode()
    assert text.count(_CALLS) == 1
    listed = "".join(f"    {json.dumps(call)},\n" for call in calls)
    create_file(file, text.replace(_CALLS, f"{_CALLS.removesuffix('[]')}[\n{listed}]"))
    return tuple(call["operator"] for call in calls if BLANK in call["arguments"])


def emit_kernel_benchmark(path: Path, file: Path, steps: Steps) -> Mapping[str, str]:
    """Writes the script for the kernels of a porter script, and returns the stages without a time of torch, and why.

    Raises PTR196 where nothing is launched, PTR236 for a file that is there, PTR353, what `load` raises, and what
    `start_device` raises.
    """
    if file.exists():
        raise PorterError("PTR236", "the file exists already", Place(str(file)), "Choose another name.")
    start_device()
    from porter.kernels.export.benchmark import Launches, describe_benchmark
    from porter.kernels.loading import load, running_script
    from porter.witness.recording import recording

    launches = Launches()
    with recording(launches), without_shortcuts(), running_script(path):
        benchmark = describe_benchmark(load(path), launches, lambda case: steps(Step(f"{path.name}: {case}")))
    if not launches.sources:
        what = f"{path.name} launches nothing at the sizes of `benchmark`"
        raise PorterError("PTR196", what, Place(str(path)), "Give SCRIPT sizes to time: ((1 << 20,),).")
    create_file(file, benchmark.fill(read_regular(_KERNELS).decode()))
    return benchmark.left_out


def _describe_call(op: str, overloads: Sequence[NativeFunction]) -> dict[str, Any]:
    """The functional overload with the most tensors, and its arguments without those that have a default."""
    calls = [_require_arguments(function) for function in overloads if _is_functional(function)]
    call = max(calls, key=lambda call: call["arguments"].count(TENSOR), default=None)
    if call is None or TENSOR not in call["arguments"]:
        raise PorterError(
            "PTR153", f"{op} has no function that takes tensors and returns others", Place(NATIVE_FUNCTIONS),
            hint="Name the operator that calls it.",
        )  # fmt: skip
    return call


def _is_functional(function: NativeFunction) -> bool:
    return not function.is_inplace and function.inputs == function.arguments


def _require_arguments(function: NativeFunction) -> dict[str, Any]:
    required = [argument for argument in function.arguments if argument.default is None]
    values = [TENSOR if argument.is_tensor else _VALUES.get(argument.type, BLANK) for argument in required]
    return {"operator": function.name, "arguments": values}
