"""The programs of an operator: recorded at sizes of porter's own, cached as recordings are, and printed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.loops.host_values import Arguments
from porter.loops.printing import name_memory, program_lines
from porter.loops.program import ArgumentBuffer, Role, SymbolicProgram, Table, instantiate
from porter.metal.forms.programs import Computation, FormProgram, decode_computations, encode_computations
from porter.plan.native.files import read_style
from porter.recording.slice_cost import list_together, slice_lines
from porter.verdict import client
from porter.verdict.evidence import digest_old_code, key
from porter.verdict.messages import RecordRequest
from porter.verdict.result import VerifyTarget


def get_programs(
    checkout: Checkout, target: VerifyTarget, macos: str = "", run: bool = True, progress: Progress = ignore
) -> tuple[Computation, ...] | None:
    """The programs of an operator's overloads; None if not cached and `run` is false.

    Raises PTR137, PTR138, and what building the old code raises.
    """
    text = cache.get(_find_file(checkout, target, macos))
    if text is not None:
        return decode_computations(text)
    if not run:
        return None
    request = RecordRequest(checkout.root.resolve(), target, macos, earlier=checkout.earlier)
    found = client.request_programs(request, progress)
    return keep_programs(checkout, target, found, macos)


def keep_programs(
    checkout: Checkout, target: VerifyTarget, found: tuple[Computation, ...], macos: str = ""
) -> tuple[Computation, ...]:
    """Caches the programs of an operator, and returns them."""
    cache.put(_find_file(checkout, target, macos), encode_computations(found))
    return found


def _find_file(checkout: Checkout, target: VerifyTarget, macos: str) -> Path:
    return key(digest_old_code(checkout), "programs", target.base, macos)


def describe_programs(
    checkout: Checkout, target: VerifyTarget, overload: str, macos: str, cost: bool = False, progress: Progress = ignore
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the programs of an overload as titles and lines, with `cost` theirs too, and why calls have none."""
    try:
        found = get_programs(checkout, target, macos, progress=progress) or ()
    except PorterError as error:
        yield "program", (str(error),)
        return
    for each in found:
        if each.name != overload:
            continue
        if isinstance(each, FormProgram):
            yield f"{each.form.TITLE} of {each.name}", tuple(each.form.describe())
            continue
        for program in each.cases:
            yield _title(program), tuple(program_lines(program))
            if cost:
                yield _describe_cost(checkout, program)
        if each.left:
            yield f"no program of {overload}", tuple(f"{error.code} {error.what}" for error in each.left)


def _title(program: SymbolicProgram) -> str:
    dtypes = ", ".join(dtype.metal for dtype in program.dtypes)
    return f"program of {program.name}, from {len(program.calls)} calls, {program.key} of {dtypes}"


def _describe_cost(checkout: Checkout, program: SymbolicProgram) -> tuple[str, tuple[str, ...]]:
    """What the largest recorded call costs."""
    from porter.recording.loop_cost import cost_lines, count_cost  # torch, which nothing else here needs

    call = max(program.calls, key=lambda each: sum(math.prod(value.shape) for value in each.tensors.values()))
    shapes = ", ".join(f"{name} {value.shape}" for name, value in call.tensors.items())
    title = f"cost of a call of {program.name}, for {shapes}"
    sizes = {buffer: size for buffer, role in program.roles.items() if (size := _size(role, call)) is not None}
    try:
        nests = instantiate([each.nest for each in program.nests], call)
        found = count_cost(nests, sizes, set(list_together(read_style(checkout), nests)))
    except PorterError as error:
        return title, (f"{error.code} {error.what}",)
    return title, (*cost_lines(found, name_memory(program)), *slice_lines(read_style(checkout), program))


def _size(role: Role, call: Arguments) -> int | None:
    match role:
        case ArgumentBuffer(name):
            return math.prod(call.tensors[name].shape)
        case Table(elements):
            return len(elements)
    return None
