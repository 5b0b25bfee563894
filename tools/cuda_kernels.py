"""Reads every elementwise CUDA kernel of a fork, and prints why it cannot read the others.

    python tools/cuda_kernels.py FORK [--all]

A kernel is one that a file in native/cuda registers for a stub; it is elementwise if it calls one of ATen's loops over
elements, itself or through functions of its file. `read` is one of which every type of element is translated, `partly`
one of which some are. `--all` lists those that are read too. Ends with 1 where none is.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import CUDA_KERNELS
from porter.cuda.loops import read_cuda_kernel, read_device_source
from porter.languages.definitions import find_definitions
from shared.arguments import fork_parser

_REGISTERED = re.compile(r"REGISTER\w*_DISPATCH\(\s*(\w+)\s*,\s*&?\s*([\w:]+)\s*\)")
_LOOP = re.compile(r"\b(?:\w*gpu_kernel(?:_with_scalars|_nocast|_multiple_outputs)?)\s*[<(]")
_CALLED = re.compile(r"\b([a-z_]\w*)\s*(?:<[^;{}()]*>)?\(")


@dataclass(frozen=True)
class Reading:
    """How one kernel was read: `outcome` is read, partly or not, and `reasons` are the errors."""

    stub: str
    file: str
    outcome: str
    reasons: tuple[str, ...]


def find_kernels(checkout: Checkout) -> Iterator[tuple[str, str]]:
    """Yields the stub and the file of each elementwise kernel."""
    for path in checkout.list(CUDA_KERNELS, ".cu"):
        text = read_device_source(checkout.read(path), True).text
        for stub, function in _REGISTERED.findall(text):
            if is_elementwise(path, text, function.rpartition("::")[2]):
                yield stub, path


def is_elementwise(path: str, text: str, function: str) -> bool:
    """Whether a function calls a loop over elements, itself or through functions of its file."""
    pending, seen = [function], {function}
    while pending:
        for found in find_definitions(path, text, pending.pop()):
            if _LOOP.search(found.text):
                return True
            called = set(_CALLED.findall(found.text)) - seen
            seen |= called
            pending += sorted(called)
    return False


def read(checkout: Checkout, stub: str, path: str) -> Reading:
    """Reads the kernel of a stub."""
    file = path.rpartition("/")[2]
    try:
        kernel = read_cuda_kernel(checkout, stub)
    except PorterError as error:
        return Reading(stub, file, "not", (f"{error.code} {error.what}",))
    outcome = "not" if not kernel.lambdas else "partly" if kernel.untranslated else "read"
    return Reading(stub, file, outcome, tuple(f"{u.error.code} {u.error.what}" for u in kernel.untranslated))


def main() -> int:
    arguments = fork_parser(__doc__)
    arguments.add_argument("--all", action="store_true", help="list the kernels that are read too")
    given = arguments.parse_args()
    checkout = Checkout(given.fork, "tools")
    found = [read(checkout, stub, path) for stub, path in find_kernels(checkout)]
    for each in found:
        if given.all or each.outcome != "read":
            print(f"{each.outcome:<6}  {each.file}  {each.stub}  {'; '.join(each.reasons)[:160]}".rstrip())
    counts = Counter(each.outcome for each in found)
    print(f"{len(found)} elementwise kernels: {counts['read']} read, {counts['partly']} partly, {counts['not']} not")
    return 0 if counts["read"] else 1


if __name__ == "__main__":
    sys.exit(main())
