"""Plants faults in the answers to the problems, one at a time, and judges each.

    python tools/problem_faults.py [-k NAME] [--seed SEED]

Problems are in problems/set, their answers in problems/answers, and problems/faults.yaml has the faults. An answer as
it stands has to pass, and each fault has to be caught, by a case of the problem or a hidden one. Prints each fault that
is not, and counts. Exit code 1 if there is one.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import yaml

import aten_overlay
from shared.arguments import parser

PROBLEMS = Path(__file__).resolve().parent.parent / "problems"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("-k", dest="name", default="", help="only answers whose name has this in it")
    options.add_argument("--seed", type=int, default=0, help="what hidden cases are made of")
    arguments = options.parse_args()
    aten_overlay.start()
    fates: Counter[str] = Counter()
    for name, faults in yaml.safe_load((PROBLEMS / "faults.yaml").read_text()).items():
        if arguments.name in name:
            fates += _judge(name, faults, arguments.seed)
    print(", ".join(f"{count} {fate}" for fate, count in fates.items()))
    return 0 if fates.keys() <= {"caught", "right"} else 1


def plant(text: str, old: str, new: str) -> str:
    """An answer with `new` in the place of the first `old` of its Metal."""
    start = text.index(old, text.index('    """\n'))
    return text[:start] + new + text[start + len(old) :]


def _judge(name: str, faults: list[dict[str, str]], seed: int) -> Counter[str]:
    from porter.kernels.call import DEVICE
    from porter.kernels.judging.mutants import Fate, Mutant, try_mutant
    from porter.kernels.loading import answering

    path = PROBLEMS / "answers" / f"{name}.py"
    text, fates = path.read_text(), Counter[str]()
    with answering(PROBLEMS / "set" / f"{name}.py"):
        fate, case = try_mutant(path, Mutant(0, "answer", "", "", text), seed, DEVICE)
        fates["right" if fate is Fate.SAME else "wrong"] += 1
        if fate is not Fate.SAME:
            print(f"{name}: fails as it stands: {case}")
        for fault in faults:
            mutant = Mutant(0, "fault", fault["old"], fault["new"], plant(text, fault["old"], fault["new"]))
            fate, _ = try_mutant(path, mutant, seed, DEVICE)
            caught = fate in (Fate.CAUGHT, Fate.MISSED)  # by the problem's cases, or by a hidden one
            fates["caught" if caught else "not caught"] += 1
            if not caught:
                print(f"{name}: `{fault['old']}` -> `{fault['new']}` is not caught: {fate.value}")
    return fates


if __name__ == "__main__":
    sys.exit(main())
