"""Damaged forks and damaged Metal end in an answer or a coded error: some at random, and those that once did not."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

import fuzz
from porter.core.layout import CPU_KERNELS, INDEXING, KERNELS, NATIVE, OPERATIONS, SPECIAL_MATH
from tests.conftest import Run

FILES = fuzz.fork_files()
PATHS = (
    f"{OPERATIONS}/BinaryOps.mm", f"{OPERATIONS}/BinaryKernel.mm", f"{NATIVE}/BinaryOps.cpp",
    f"{CPU_KERNELS}/BinaryOpsKernel.cpp", f"{KERNELS}/BinaryKernel.metal", INDEXING, SPECIAL_MATH,
)  # fmt: skip
PIECES = {
    "template heads": "template <typename T>\n" * 4000,
    "open raw strings": 'R"(' * 20000,
    "open comments": "/*" * 20000,
    "open comments in directives": "#/*\n" * 20000,
    "includes": "".join(f"#include <{OPERATIONS[9:]}/F{i}.h>\n" for i in range(30000)),
    "parentheses": f"void f() {{ a = {'(' * 12000}1{')' * 12000}; }}\n",
    "casts": f"void f() {{ a = {'(float)' * 12000}1; }}\n",
    "a chain of &&": f"void f() {{ a = {' && '.join('a' * 12000)}; }}\n",
    "namespaces": "namespace a {" * 12000 + "}" * 12000,
    "macros that double": "".join(f"#define M{i}(x) M{i + 1}(x) M{i + 1}(x)\n" for i in range(40)) + "M0(a)\n",
    "functions of one name": "void f() { g(); }\n" * 20000,
    "blank lines": "\n" * 300000,
}


@pytest.fixture(autouse=True)
def _timer() -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, fuzz._up)
    yield
    signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("piece", PIECES)
def test_what_once_took_too_long_or_overflowed_is_read_or_refused(piece: str) -> None:
    for path in PATHS:
        changed = {path: PIECES[piece] + FILES[path]}
        checkout = fuzz.in_memory({**FILES, **changed}, changed)
        assert fuzz.watched(lambda checkout=checkout: fuzz.ask(checkout, "atan2", "hypot")) == "", path  # type: ignore[misc]


@pytest.mark.parametrize("kind", [(), ("--metal",)], ids=["fork", "metal"])
def test_random_damage_ends_in_an_answer_or_a_code(kind: tuple[str, ...], python: Run) -> None:
    done = python("tools/fuzz.py", "--count", "60", "--seed", "11", *kind)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(" 0 failures\n")


def test_metal_that_once_took_too_long_is_read_or_refused() -> None:
    _, work = fuzz.metal_source(fuzz.metal_files(), seed=9, number=6396)
    assert fuzz.watched(work) == ""


def test_an_error_without_a_code_is_a_failure() -> None:
    def work() -> None:
        raise KeyError("a")

    assert "KeyError" in fuzz.watched(work)


def test_a_hang_and_a_flood_of_memory_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "SECONDS", 0.2)

    def hang() -> None:
        while True:
            pass

    def flood() -> None:
        raise MemoryError

    assert fuzz.watched(hang).startswith("more than")
    assert fuzz.watched(flood).startswith("more than 1 GB")


def test_a_number_always_makes_the_same_tree() -> None:
    named = {number: fuzz.fork_tree(FILES, 3, number)[0] for number in range(6)}
    assert named == {number: fuzz.fork_tree(FILES, 3, number)[0] for number in range(6)}
    assert len(set(named.values())) == 6
