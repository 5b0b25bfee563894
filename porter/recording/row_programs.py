"""The recorded programs of a row, which a port without a stub is written from."""

from __future__ import annotations

from porter.aten.declarations import TENSOR_OPTIONS
from porter.aten.native_functions import NativeFunction, NativeFunctions
from porter.aten.operator import ServedFunction
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.metal.forms.programs import Computation
from porter.recording.program_readings import get_programs
from porter.recording.readings import find_target


def get_row_programs(
    checkout: Checkout, row: ServedFunction, run: bool, progress: Progress = ignore
) -> Computation | None:
    """The programs of the overload that a row serves; None if no call has one.

    Raises PTR395 if none are kept and nothing may `run`, and as `get_programs` does.
    """
    target = find_target(checkout, row.function.base)
    found = get_programs(checkout, target, run=run, progress=progress)
    if found is None:
        raise PorterError(
            "PTR395",
            f"no runs of {target.base} are kept",
            hint="Without --no-verify, or --no-record of explain, its old code runs and is recorded.",
        )
    functions = NativeFunctions.read(checkout).by_name
    serving = [each for each in found if serves(checkout, each.name, row)]
    serving.sort(key=lambda each: not each.calls)  # those of which calls are known first
    own = [each for each in serving if row.function.name in (each.name, functions[each.name].delegate)]
    return next(iter(own or serving), None)


def serves(checkout: Checkout, overload: str, row: ServedFunction) -> bool:
    """Whether a row serves calls of an overload: directly, as its delegate, or as its out= variant."""
    function = NativeFunctions.read(checkout).by_name.get(overload)
    if function is None or row.function.name in (overload, function.delegate):
        return function is not None
    return function.delegate is None and _is_out_of(row.function, function)


def _is_out_of(row: NativeFunction, function: NativeFunction) -> bool:
    """Whether a row is the out= variant of a function, which takes what it writes too, or its in-place variant."""
    if [each.name for each in row.arguments] == [each.name for each in function.arguments]:
        return row.name.partition(".")[::2] == (f"{function.base}_", function.name.partition(".")[2])
    taken = [(each.name, each.type) for each in row.arguments if "!" not in each.type]
    is_family = row.base == function.base and len(taken) < len(row.arguments)
    return is_family and taken == [
        (each.name, each.type) for each in function.arguments if each.name not in TENSOR_OPTIONS
    ]
