"""Lowers the graphs that old implementations run to loop form, and compares it with the graphs, node by node.

    python tools/loop_form.py FORK [OP ...] [--numbers] [--save FILE]

One line an operator: graphs lowered and agreeing, kernels, and why the others have no loop form. Then the counts.
With --numbers, records calls at sizes of porter's own instead, and finds programs: cases, their numbers that are
expressions of the arguments, and why other calls have no program.
Without operators: every base name that `porter status` calls MPSGraph. Ends with 1 where results differ or a
process died.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from porter.aten.implementations import Language
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import find_served
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.loops.program import Programs
from porter.server import worker
from porter.verdict.backends import host
from porter.verdict.errors import raising_porter_errors
from porter.verdict.result import HOST
from shared.arguments import fork_parser
from shared.isolation import run_isolated
from shared.whole_fork import build_whole, load_whole

_SECONDS = 600  # without anything new of an operator, which others on the machine may delay
Line = tuple[str, str, str]  # the operator, how a graph came out, and more
TYPES = tuple(dtypes.BY_TORCH[name] for name in ("float32", "float16", "int64"))


def main() -> int:
    options = _parse()
    checkout = Checkout(options.fork.resolve(), "named")
    bases = options.ops or _list_bases(checkout)
    worker.preload(HOST)
    selections = {base: host.select_opinfos(base) for base in bases}
    load_whole(build_whole(checkout))
    found: list[Line] = []
    for base in bases:
        through = (*selections[base].forward, *selections[base].backward)
        check = _find_programs if options.numbers else _check
        lines = list(run_isolated(partial(check, base, through), (base, "died", "PTR137"), _SECONDS))
        found += lines or [(base, "no graph", "")]
        _print(base, lines)
    print(dict(Counter(how for _, how, _ in found)), file=sys.stderr)
    if options.save:
        options.save.write_text(json.dumps(found, indent=1))
    return int(any(how in ("differ", "died") for _, how, _ in found))


def _parse() -> Namespace:
    parser = fork_parser(__doc__)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--numbers", action="store_true")
    parser.add_argument("--save", type=Path)
    return parser.parse_args()


def _list_bases(checkout: Checkout) -> list[str]:
    rows = [row for e in NativeFunctions.read(checkout).all if (row := find_served(checkout, e))]
    return list(dict.fromkeys(r.function.base for r in rows if r.language is Language.MPSGRAPH and r.implementation))


def _print(base: str, lines: Sequence[Line]) -> None:
    counts = Counter(how for _, how, _ in lines)
    reasons = Counter(more for _, how, more in lines if how not in ("agree", "no graph"))
    reasons.subtract(more for _, how, more in lines if how in ("case", "number"))
    why = "; ".join(f"{count}x {reason[:150]}" for reason, count in reasons.most_common(3) if count > 0)
    print(base, ", ".join(f"{how} {count}" for how, count in counts.items()), why, sep="\t", flush=True)


def _check(base: str, through: Sequence[str]) -> Iterator[Line]:
    from porter.recording import calls, record
    from porter.verdict.suite.dispatched import check_gradients

    check_gradients()
    for dtype in TYPES:
        for op in record.find_opinfos(base, through):
            for call in calls.pick_diverse_calls(list(calls.capture_calls(op, base, dtype))):
                yield from _check_call(base, call)


def _find_programs(base: str, through: Sequence[str]) -> Iterator[Line]:
    from porter.recording.programs import record_programs

    for each in record_programs(base, through):
        if not isinstance(each, Programs):
            continue
        for program in each.cases:
            yield base, "case", f"{each.name}, {len(program.calls)} calls"
            yield from ((base, "number", str(number)) for number in program.numbers)
        yield from ((base, error.code, f"{error.code} {error.what}") for error in each.left)


def _check_call(base: str, call: object) -> Iterator[Line]:
    from porter.recording.runs import run_call
    from shared.loop_forms import check_loop_form

    try:
        ran = run_call(call)  # type: ignore[arg-type]
    except Exception as error:  # the fork's code or torch may raise anything
        yield base, "refused", type(error).__name__
        return
    for run in ran.runs:
        try:
            with raising_porter_errors():
                nests, differences = check_loop_form(run)
        except PorterError as error:
            yield base, error.code, error.what
            continue
        kernels = f"{len(nests)} kernels: {', '.join(nest.shape.value for nest in nests)}"
        yield (base, "differ", differences[0]) if differences else (base, "agree", kernels)


if __name__ == "__main__":
    sys.exit(main())
