"""The operators of the embedded fork as subjects of mutation: native ones as they are, others as porter ports them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from mutation.slips import Slips, slip_in_host_code, slip_in_registrations, slip_in_rows
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import INDEXING, KERNELS, METAL_HEADERS, NATIVE_FUNCTIONS, OPERATIONS
from porter.languages.brackets import find_closing_end
from porter.languages.slips import slip_in_metal
from porter.languages.source import parse_source
from porter.metal.insertion import find_registrations
from porter.metal.macros import MacroBook
from porter.plan.planner import plan_operator
from porter.verdict.native import native_target
from porter.verdict.result import VerifyTarget
from porter.verdict.verify import target_of

_SLIPS: Mapping[str, Slips] = {
    "kernel": slip_in_metal,
    "functor": slip_in_metal,
    "helper": slip_in_metal,
    "registration": slip_in_registrations,
    "host": slip_in_host_code,
    "yaml": slip_in_rows,
}
_FUNCTION = r"^(?:template[^;{{}}]*?>\n)?inline \w+ {}\([^;{{}}]*\) \{{"


@dataclass(frozen=True)
class Region:
    """A part of a file that mutants change: what it is, and its offsets."""

    kind: str
    file: str
    start: int
    end: int


@dataclass(frozen=True)
class Subject:
    """A native operator: what to verify, the texts in which its files differ from the fork's, and its own parts.

    `root` is the fork; a port that `is_ported` from another fork than the embedded one has kernels of its own, which
    are no functors.
    """

    op: str
    target: VerifyTarget
    texts: Mapping[str, str]
    regions: tuple[Region, ...]
    root: Path = EMBEDDED_FORK
    is_ported: bool = False

    def text(self, file: str) -> str:
        return self.texts[file] if file in self.texts else _fork_text(file)


@dataclass(frozen=True)
class Mutant:
    """A file of a subject with one small change in the lines `old`; `told` says which."""

    op: str
    region: str
    slip: str
    file: str
    text: str
    told: str
    old: str = ""


def find_operators() -> tuple[str, ...]:
    """The base names of the embedded fork's operators that have an MPS row."""
    served = r"^- func: (\w+?)_?[.(][^\n]*\n(?:^ +.*\n)*?^ {4}[\w, ]*\bMPS\b"
    rows = re.findall(served, _fork_text(NATIVE_FUNCTIONS), re.M)
    return tuple(dict.fromkeys(rows))


def make_subject(op: str) -> Subject:
    """The subject of an operator: its port, where it has one to make. Every registration has a line of its own."""
    checkout = Checkout(EMBEDDED_FORK, "embedded")
    try:
        target, texts = native_target(checkout, op), dict[str, str]()
    except Exception:
        plan = plan_operator(checkout, op)
        target, texts = target_of(plan, op), dict(plan.changes.apply())
    found = Subject(op, target, texts, ())
    texts.update({file: _with_single_lines(found.text(file), file, target) for file in _files(KERNELS, ".metal")})
    texts = {file: text for file, text in texts.items() if text != _fork_text(file)}
    found = replace(found, texts=texts)
    return replace(found, regions=tuple(dict.fromkeys(_regions(found))))


def find_mutants(subject: Subject) -> Iterator[Mutant]:
    """Every mutant of a subject, each text once."""
    seen: set[str] = set()
    for region in subject.regions:
        text = subject.text(region.file)
        for slip in _SLIPS[region.kind](text[region.start : region.end]):
            start, end = region.start + slip.start, region.start + slip.end
            mutated = text[:start] + slip.new + text[end:]
            if mutated == text or mutated in seen:
                continue
            seen.add(mutated)
            line = text.count("\n", 0, start) + 1
            told = f"{region.file}:{line}: {text[start:end].strip()!r} -> {slip.new.strip()!r}"
            old = text[text.rfind("\n", 0, start) + 1 : text.find("\n", end - 1)]
            yield Mutant(subject.op, region.kind, slip.kind, region.file, mutated, told, old)


@cache
def _fork_text(file: str) -> str:
    path = EMBEDDED_FORK / file
    return path.read_text() if path.is_file() else ""


def _files(folder: str, suffix: str) -> list[str]:
    return sorted(f"{folder}/{path.name}" for path in (EMBEDDED_FORK / folder).glob(f"*{suffix}"))


def _with_single_lines(text: str, file: str, target: VerifyTarget) -> str:
    """The text of a kernel file with a REGISTER line for each type of the subject's kernels."""
    indexing = parse_source(INDEXING, _fork_text(INDEXING)).macros()
    source = parse_source(file, text)
    book = MacroBook.read((*indexing, *source.macros()))
    for kernel in target.kernels:
        for use in reversed(find_registrations(source, book, kernel)):
            made = [
                f"{base.name}({kernel}, {', '.join(base.arguments(instance))});\n"
                for base, instance in book.expand(use.name, use.arguments)
            ]
            end = text.index("\n", use.start) + 1
            text = text[: use.start] + "".join(made) + text[end:]
        source = parse_source(file, text)
    return text


def _regions(subject: Subject) -> Iterator[Region]:
    kernels = "|".join(map(re.escape, subject.target.kernels))
    for file in _files(KERNELS, ".metal"):
        text = subject.text(file)
        for struct in re.finditer(rf"^struct (?:{kernels})_functor \{{.*?^\}};\n", text, re.M | re.S):
            yield Region("functor", file, struct.start(), struct.end())
            yield from _helpers(subject, file, struct[0], set())
        for line in re.finditer(rf"^REGISTER_\w+\((?:{kernels})\b.*\n", text, re.M):
            yield Region("registration", file, line.start(), line.end())
    for file in _files(OPERATIONS, "Kernel.mm"):
        text = subject.text(file)
        for pattern in (rf'^[^\n]*\{{\n[^}}]*"(?:{kernels})"[^}}]*\n\}}\n', r"^REGISTER_DISPATCH\((\w+), .*\n"):
            for match in re.finditer(pattern, text, re.M):
                if match.re.groups == 0 or match[1] in subject.target.stubs:
                    yield Region("host", file, match.start(), match.end())
    rows = subject.text(NATIVE_FUNCTIONS)
    for row in re.finditer(rf"^- func: {re.escape(subject.op)}_?[.(].*\n(?:^(?!- func).*\n)*", rows, re.M):
        if NATIVE_FUNCTIONS not in subject.texts or row[0] not in _fork_text(NATIVE_FUNCTIONS):
            for line in re.finditer(r"^ {4}[^\n]*\bMPS\b[^\n]*\n", row[0], re.M):
                yield Region("yaml", NATIVE_FUNCTIONS, row.start() + line.start(), row.start() + line.end())


def _helpers(subject: Subject, file: str, code: str, seen: set[str]) -> Iterator[Region]:
    """The functions of the file and of the fork's Metal headers that code calls, and those that these call."""
    for name in dict.fromkeys(re.findall(r"(?<!::metal::precise::)(?<!precise::)\b(\w+)(?:<\w+>)?\(", code)):
        if name in seen or f" ::metal::{name}(" in code:
            continue
        seen.add(name)
        for path in (file, *_files(METAL_HEADERS, "utils.h"), *_files(METAL_HEADERS, "special_math.h")):
            text = subject.text(path)
            for match in re.finditer(_FUNCTION.format(re.escape(name)), text, re.M):
                end = find_closing_end(text, match.end() - 1)
                yield Region("helper", path, match.start(), end)
                yield from _helpers(subject, path, text[match.end() : end], seen)
