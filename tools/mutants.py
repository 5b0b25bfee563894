"""How many small mutants of functors, helpers, registrations, host code and yaml a verdict catches.

    python tools/mutants.py [OP ...] --results FILE [--most N] [--again] [--checkout FORK]

The subjects are all operators of the embedded fork: native ones as they are, the others as porter ports them. Those of
another checkout are named, and ported from its stubs or from recorded runs of its old code; a later run with the same
results adds them to the embedded fork's.

Every mutant that ends is a line of the results file, so a run goes on where the last one ended. Those that do not
compile, compile to the same code, or give the same bits on millions of random and special inputs do not count; the
survivors of the others are listed: each is a gap in the tests, or computes the same. `--again` tries them once more.
"""

from __future__ import annotations

import random
import sys
import time
from argparse import Namespace
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path

from mutation.ledger import Ledger, key, summarize
from mutation.ported import make_ported_subject
from mutation.subjects import Mutant, find_mutants, find_operators, make_subject
from mutation.trial import Fate, Stage, find_failing, start, try_mutant
from mutation.warm import METHOD, WarmSubject
from shared.arguments import parser

GOAL = 0.99
# Of each hundred mutants of an operator, how many are of which part; what is left goes to the functor.
PARTS = {"helper": 25, "registration": 22, "host": 4, "yaml": 4}
PARTS_OF_PORTED = {"registration": 10, "host": 30, "yaml": 4}


def choose(mutants: Iterable[Mutant], most: int | None) -> list[Mutant]:
    """Some mutants of every part of an operator, the same ones in every run."""
    found = list(mutants)
    if most is None or len(found) <= most:
        return found
    random.Random(0).shuffle(found)
    kernels = _of(found, "kernel")
    parts = PARTS_OF_PORTED if kernels else PARTS
    chosen = [m for part, share in parts.items() for m in _of(found, part)[: most * share // 100]]
    chosen += (kernels or _of(found, "functor"))[: most - len(chosen)]
    rest = [m for part in ("helper", "registration", "host") for m in _of(found, part) if m not in chosen]
    return chosen + rest[: most - len(chosen)]


def _of(mutants: Iterable[Mutant], part: str) -> list[Mutant]:
    return [mutant for mutant in mutants if mutant.region == part]


def run(subject: WarmSubject, mutants: Iterable[Mutant], ledger: Ledger, again: bool) -> None:
    op = subject.subject.op
    tried = {Fate.SURVIVED.value} if again else set()
    todo = [m for m in mutants if key(m) not in ledger.entries or ledger.entries[key(m)].fate in tried]

    def failing(stage: Stage, test: str) -> tuple[str, ...]:
        """All of a stage that fails without a mutant is asked for once a single test does, or what is no test.

        An error has blanks in it: without a mutant it would end every run.
        """
        is_whole = ledger.knows(op, stage.name)
        if test and not is_whole and " " not in test:
            one = f"{stage.name} {test}"
            is_whole = not METHOD.fullmatch(test) or bool(
                ledger.failing(op, one, lambda: find_failing(subject.subject, stage, test))
            )
        return ledger.failing(op, stage.name, lambda: find_failing(subject.subject, stage)) if is_whole else ()

    for mutant in todo:
        started = time.monotonic()
        fate, by = try_mutant(subject, mutant, ledger.count_kills(mutant), failing)
        seconds = time.monotonic() - started
        ledger.add(mutant, fate, by, seconds)
        print(f"{seconds:.1f} s: {op}: {mutant.told}: {fate.value} {by}", flush=True)


def run_subject(options: Namespace, op: str) -> None:
    """Tries the mutants of one operator, in a process of its own: what it loads and reads stays there."""
    subject = make_ported_subject(options.checkout.resolve(), op) if options.checkout else make_subject(op)
    chosen = choose(find_mutants(subject), options.most)
    warm, ledger = WarmSubject(subject), Ledger(options.results)
    ledger.failing(op, "whole", lambda: warm.failing)
    run(warm, chosen, ledger, options.again)


def main(arguments: list[str]) -> int:
    operators = find_operators()
    told = parser(__doc__)
    told.add_argument("ops", nargs="*", help=f"by default {', '.join(operators)}")
    told.add_argument("--checkout", type=Path, help="the fork that the operators are of; by default the embedded one")
    told.add_argument("--results", type=Path, required=True, help="the file of JSON lines that the run goes on with")
    told.add_argument("--most", type=int, help="mutants of each operator, of all its parts")
    told.add_argument("--again", action="store_true", help="try the survivors again")
    options = told.parse_args(arguments)
    if options.checkout and not options.ops:
        told.error("--checkout asks for the operators by name")
    start()
    for op in options.ops or operators:
        process = get_context("fork").Process(target=run_subject, args=(options, op))
        process.start()
        process.join()
        if process.exitcode:
            return 2
    text, share = summarize(Ledger(options.results).entries.values())
    print(text)
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
