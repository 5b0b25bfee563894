"""How many small mutants of functors and host code `verify` catches.

    python tools/mutants.py [OP ...] [--most N]

The subjects are operators of the embedded fork that are native. Survivors are listed: each is a gap in the tests or a
mutant that computes the same. The latter are told by `equivalence`, which compares the results of the kernels bit by
bit, and do not count: the share is of the mutants that change a result.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from equivalence import same_results
from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS, OPERATIONS
from porter.verdict.result import VerifyTarget
from porter.verdict.verify import verify
from shared.arguments import parser

GOAL = 0.98


@dataclass(frozen=True)
class Subject:
    """A native operator of the embedded fork."""

    target: VerifyTarget
    kernel_file: str
    host_file: str


@dataclass(frozen=True)
class Mutant:
    """A file with one small change; `told` says which."""

    file: str
    text: str
    told: str


FLOATS = tuple((d, d) for d in ("float", "half", "bfloat"))
COMPLEX = (("float2", "float2"), ("half2", "half2"))
INTEGERS = tuple((d, d) for d in ("long", "int", "short", "uchar", "char"))
TO_FLOAT = tuple((d, "float") for d in ("long", "int", "short", "uchar", "char", "bool"))
SUBJECTS = {
    "copysign": Subject(
        VerifyTarget("copysign", kernels=("copysign",), stubs=("copysign_stub",), pairs=FLOATS + TO_FLOAT),
        "BinaryKernel.metal",
        "BinaryKernel.mm",
    ),
    "exp": Subject(
        VerifyTarget("exp", kernels=("exp",), stubs=("exp_stub",), pairs=FLOATS + COMPLEX[:1] + TO_FLOAT),
        "UnaryKernel.metal",
        "UnaryKernel.mm",
    ),
    "sub": Subject(
        VerifyTarget("sub", kernels=("sub_alpha",), pairs=FLOATS + COMPLEX + INTEGERS),
        "BinaryKernel.metal",
        "BinaryKernel.mm",
    ),
}
# What is written, and what a slip would make of it. Spaces keep templates, pointers and includes out of reach.
SLIPS: Mapping[str, tuple[str, ...]] = {
    r" \+ ": (" - ",),
    r" - ": (" + ",),
    r" \* ": (" + ", " / "),
    r" == ": (" != ",),
    r"\b0\b": ("1",),
    r"static_cast<float>\((\w+)\)": (r"static_cast<half>(\1)", r"(static_cast<float>(\1) + 1)"),
    r"opmath_t<T>\((\w+)\)": (r"half(\1)", r"-opmath_t<T>(\1)"),
    r"::cos\(": ("::sin(",),
    r"::sin\(": ("::cos(",),
    r"::exp\(": ("::exp2(",),
    r"::copysign\(": ("::max(",),
    r"\bx\.x\b": ("x.y",),
    r"\bx\.y\b": ("x.x",),
    r"\(b\)": ("(a)",),
    r"\bT\(scale, angle\)": ("T(angle, scale)",),
}


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Every mutant of a functor's body, its REGISTER lines and the name its host code passes."""
    path = f"{KERNELS}/{subject.kernel_file}"
    text = (EMBEDDED_FORK / path).read_text()
    for functor in subject.target.kernels:
        body = re.search(rf"^struct {functor}_functor \{{.*?^\}};", text, re.M | re.S)
        assert body is not None
        for pattern, replacements in SLIPS.items():
            for match in re.finditer(pattern, body[0]):
                for new in replacements:
                    at, end = body.start() + match.start(), body.start() + match.end()
                    yield _mutant(path, text, at, end, match.expand(new))
        for match in re.finditer(rf"^REGISTER_\w+\({functor}\b.*;\n", text, re.M):
            yield _mutant(path, text, match.start(), match.end(), "")
    host = f"{OPERATIONS}/{subject.host_file}"
    code = (EMBEDDED_FORK / host).read_text()
    for functor in subject.target.kernels:
        for match in re.finditer(rf'"{functor}"', code):
            yield _mutant(host, code, match.start(), match.end(), '"nothing"')


def caught(subject: Subject, mutant: Mutant) -> bool:
    return not verify(EMBEDDED_FORK, {mutant.file: mutant.text}, subject.target).ok


def changes_nothing(subject: Subject, mutant: Mutant) -> bool:
    """Whether a mutant of a kernel file computes what the original does."""
    if not mutant.file.endswith(".metal"):
        return False
    original = (EMBEDDED_FORK / mutant.file).read_text()
    return all(same_results(original, mutant.text, functor, EMBEDDED_FORK) for functor in subject.target.kernels)


def _mutant(file: str, text: str, start: int, end: int, new: str) -> Mutant:
    line = text.count("\n", 0, start) + 1
    return Mutant(file, text[:start] + new + text[end:], f"{file}:{line}: {text[start:end].strip()!r} -> {new!r}")


def main(arguments: list[str]) -> int:
    told = parser(__doc__)
    told.add_argument("ops", nargs="*", default=list(SUBJECTS), help=f"of {', '.join(SUBJECTS)}")
    told.add_argument("--most", type=int, help="mutants of each operator, spread over all there are")
    options = told.parse_args(arguments)
    survivors: list[str] = []
    equivalent: list[str] = []
    total, started = 0, time.monotonic()
    for op in options.ops:
        if not verify(EMBEDDED_FORK, {}, SUBJECTS[op].target).ok:
            sys.exit(f"{op} fails without a mutant: every mutant would count as caught")
        found = list(mutants(SUBJECTS[op]))
        step = max(1, len(found) // options.most) if options.most else 1
        for mutant in found[::step]:
            total += 1
            if not caught(SUBJECTS[op], mutant):
                same = changes_nothing(SUBJECTS[op], mutant)
                (equivalent if same else survivors).append(f"{op}: {mutant.told}")
    counted = total - len(equivalent)
    share = (counted - len(survivors)) / counted
    print(*(f"survived: {told}" for told in survivors), sep="\n")
    print(*(f"computes the same: {told}" for told in equivalent), sep="\n")
    print(f"{total} mutants, {len(equivalent)} of which compute the same bits as the original")
    print(f"caught {counted - len(survivors)} of {counted}: {share:.1%} in {time.monotonic() - started:.0f} s")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
