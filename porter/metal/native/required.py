"""Checks that optional tensors are given without which the old code raised, and which kernels read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from porter.loops.host_values import Given, HostValue
from porter.loops.optional import find_flag_of, list_readers
from porter.loops.program import SymbolicProgram, list_loaded
from porter.metal.native.host_values import Names


def list_unguarded(program: SymbolicProgram, names: Names) -> Iterator[str]:
    """The optional tensors that kernels read in every call, or in every one that asks for what they compute of them."""
    for tensor in sorted(list_loaded(program)):
        is_required = tensor in program.required or find_flag_of(program, tensor) is None
        if names.types.get(tensor) == "Tensor?" and is_required:
            yield tensor


def write_required_checks(
    program: SymbolicProgram, names: Names, body: str, write: Callable[[HostValue], str]
) -> Iterator[str]:
    """Checks that the function's `body` does not have; `write` gives the C++ of whether a tensor is given.

    It may have them for calls of the case alone: `training || has_total`, of one without training.
    """
    base = program.name.partition(".")[0]
    flags = (each.text for each in program.when if not each.holds and each.text in names.types)
    unless = "".join(rf"(?:{re.escape(names.variable(each))} \|\| )?" for each in flags)
    for tensor in list_unguarded(program, names):
        given = write(Given(tensor))
        if not re.search(rf"TORCH_CHECK\(\s*{unless}{re.escape(given)}\s*[,)]", body):
            condition = _write_condition(program, tensor, given, write)
            yield f'TORCH_CHECK({condition}, "{base}: expected {tensor} to be given");'


def _write_condition(program: SymbolicProgram, tensor: str, given: str, write: Callable[[HostValue], str]) -> str:
    """That a tensor is given, or that no result is asked for which is computed from it."""
    flags = [find_flag_of(program, each) for each in sorted(list_readers(program, tensor))]
    asked = [write(each.value) for each in dict.fromkeys(flags) if each]
    if find_flag_of(program, tensor) is None or None in flags:
        return given
    given = f"({given})" if "&&" in given else given
    return f"{given} || !{asked[0]}" if len(asked) == 1 else f"{given} || !({' || '.join(asked)})"
