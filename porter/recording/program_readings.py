"""The programs of an operator: recorded at sizes of porter's own, cached as recordings are, and printed."""

from __future__ import annotations

from collections.abc import Iterator

from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.loops.program import Programs, SymbolicProgram
from porter.loops.program_printing import program_lines
from porter.loops.storage import decode_programs, encode_programs
from porter.verdict import client
from porter.verdict.evidence import digest_old_code, key
from porter.verdict.messages import RecordRequest
from porter.verdict.result import VerifyTarget


def get_programs(
    checkout: Checkout, target: VerifyTarget, macos: str = "", run: bool = True, progress: Progress = ignore
) -> tuple[Programs, ...] | None:
    """The programs of an operator's overloads; None if not cached and `run` is false.

    Raises PTR137, PTR138, and what building the old code raises.
    """
    file = key(digest_old_code(checkout), "programs", target.base, macos)
    text = cache.get(file)
    if text is not None:
        return decode_programs(text)
    if not run:
        return None
    found = client.request_programs(RecordRequest(checkout.root.resolve(), target, macos), progress)
    cache.put(file, encode_programs(found))
    return found


def describe_programs(
    checkout: Checkout, target: VerifyTarget, overload: str, macos: str, progress: Progress = ignore
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the programs of an overload as titles and lines, and why calls have none."""
    try:
        found = get_programs(checkout, target, macos, progress=progress) or ()
    except PorterError as error:
        yield "program", (str(error),)
        return
    for each in found:
        if each.name == overload:
            yield from ((_title(program), tuple(program_lines(program))) for program in each.cases)
            if each.left:
                yield f"no program of {overload}", tuple(f"{error.code} {error.what}" for error in each.left)


def _title(program: SymbolicProgram) -> str:
    dtypes = ", ".join(dtype.metal for dtype in program.dtypes)
    return f"program of {program.name}, from {len(program.calls)} calls, {program.key} of {dtypes}"
