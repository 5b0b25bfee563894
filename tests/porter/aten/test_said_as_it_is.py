"""A row is classified by its code; what cannot be read is unknown, with the code of the error."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from porter.aten.implementations import Language
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import ServedFunction, find_served
from porter.core.checkout import EMBEDDED_FORK, LARGEST_LEXED, Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE, NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.planner import plan_operator
from porter.report.status import State
from porter.workflows.explain import explain
from porter.workflows.status import Filters, operators

BINARY = f"{OPERATIONS}/BinaryOps.mm"
ROW = "- func: bend.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  dispatch:\n    {line}\n"
SHARED = "TORCH_IMPL_FUNC(bend_out)(const Tensor& out) {\n  bend_stub(device_type(), *this);\n}\n"
HEADER = (
    "DECLARE_DISPATCH(structured_unary_fn, bend_stub)\nusing structured_unary_fn = void (*)(TensorIteratorBase&);\n"
)
GRAPH = "void bend_mps(TensorIteratorBase& iter) {\n  runMPSGraph(iter);\n}\n"
METAL = 'void bend_mps(TensorIteratorBase& iter) {\n  lib.exec_unary_kernel(iter, "bend");\n}\n'
BOTH = (
    "void bend_mps(TensorIteratorBase& iter) {\n  if (a) {\n    runMPSGraph(iter);\n  }\n  mtl_dispatch1DJob(a);\n}\n"
)
REGISTERED = "REGISTER_DISPATCH(bend_stub, &bend_mps)\n"
Spoil = Callable[[Path], object]


def small(tmp_path: Path, line: str, host: str) -> ServedFunction:
    files = {
        NATIVE_FUNCTIONS: ROW.format(line=line),
        f"{NATIVE}/Bend.cpp": SHARED,
        f"{NATIVE}/Bend.h": HEADER,
        f"{OPERATIONS}/Bend.mm": host,
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    checkout = Checkout(tmp_path, "test")
    row = find_served(checkout, NativeFunctions.read(checkout).by_name["bend.out"])
    assert row
    return row


@pytest.mark.parametrize(
    ("line", "host", "language"),
    [
        ("CPU, CUDA, MPS: bend_out", GRAPH + REGISTERED, Language.MPSGRAPH),
        ("CPU, CUDA, MPS: bend_out", METAL + REGISTERED, Language.METAL),
        ("CPU, CUDA, MPS: bend_out", BOTH + REGISTERED, Language.MIXED),
        ("MPS: bend_mps", GRAPH, Language.MPSGRAPH),
        ("MPS: bend_mps", METAL, Language.METAL),
        ("MPS: bend_mps", BOTH, Language.MIXED),
    ],
)
def test_the_code_tells_the_language_and_the_key_does_not(
    tmp_path: Path, line: str, host: str, language: Language
) -> None:
    row = small(tmp_path, line, host)
    assert (row.language, row.error) == (language, None)


@pytest.mark.parametrize(
    ("line", "host", "what"),
    [
        ("CPU, CUDA, MPS: bend_out", METAL, "registers bend_stub"),
        ("CPU, CUDA, MPS: bend_out", REGISTERED, "bend_mps is registered for bend_stub, but"),
        ("MPS: bend_mps", "", "defines bend_mps"),
    ],
)
def test_a_row_without_a_kernel_to_be_found_is_unknown(tmp_path: Path, line: str, host: str, what: str) -> None:
    row = small(tmp_path, line, host)
    assert row.language is Language.UNKNOWN
    assert row.error and row.error.code == "PTR032" and what in row.error.what


def _link_out(path: Path) -> None:
    outside = path.parents[len(Path(BINARY).parts)] / "outside.mm"
    path.rename(outside)
    path.symlink_to(outside)


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _folder(path: Path) -> None:
    path.unlink()
    path.symlink_to("..")


def _pipe(path: Path) -> None:
    import os

    path.unlink()
    os.mkfifo(path)


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


SPOILED: dict[str, tuple[Spoil, str]] = {
    "conflict": (lambda p: p.write_text("<<<<<<< HEAD\n" + p.read_text()), "PTR005"),
    "link out": (_link_out, "PTR004"),
    "dangling link": (_dangling, "PTR003"),
    "loop": (_loop, "PTR003"),
    "folder": (_folder, "PTR003"),
    "pipe": (_pipe, "PTR003"),
    "missing": (lambda p: p.unlink(), "PTR032"),
    "unbalanced": (lambda p: p.write_text(p.read_text() + "}"), "PTR030"),
    "too large": (lambda p: p.write_text(p.read_text() + "\n" * LARGEST_LEXED), "PTR007"),
    "too deep": (lambda p: p.write_text(p.read_text() + "namespace a {" * 500 + "}" * 500), "PTR034"),
}


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    root = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, root)
    return root


@pytest.mark.parametrize("name", SPOILED)
def test_an_unreadable_implementation_is_unknown_and_refused(fork: Path, name: str) -> None:
    spoil, code = SPOILED[name]
    spoil(fork / BINARY)
    [atan2] = operators(Checkout(fork, "test"), Filters(("atan2",)))
    assert [(row.state, row.reason and row.reason.code) for row in atan2.rows] == [(State.UNKNOWN, code)]
    with pytest.raises(PorterError) as caught:
        plan_operator(Checkout(fork, "test"), "atan2")
    assert caught.value.code == code
    told = [line for stage in explain(Checkout(fork, "test"), "atan2", record=False) for line in stage.lines]
    assert any(code in line for line in told)


@pytest.mark.parametrize("name", SPOILED)
def test_what_stands_in_another_file_is_still_told(fork: Path, name: str) -> None:
    SPOILED[name][0](fork / BINARY)
    [exp] = operators(Checkout(fork, "test"), Filters(("exp",)))
    assert [row.state for row in exp.rows] == [State.STUB]


def test_a_byte_order_mark_changes_nothing_but_itself(fork: Path) -> None:
    before = plan_operator(Checkout(fork, "test"), "atan2").changes.apply()
    for path in before:
        (fork / path).write_text("\ufeff" + (fork / path).read_text())
    after = plan_operator(Checkout(fork, "test"), "atan2").changes.apply()
    assert {path: text.removeprefix("\ufeff") for path, text in after.items()} == before


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (b"    MPS:\n", "PTR011"),
        (b"    MPS: [a, b]\n", "PTR011"),
        (b"    [MPS, CPU]: a\n", "PTR011"),
        (b"    MPS: ''\n", "PTR011"),
        (b"    MPS: \xff\n", "PTR010"),
    ],
)
def test_a_line_that_names_no_kernel_is_refused(fork: Path, written: bytes, code: str) -> None:
    rows = fork / NATIVE_FUNCTIONS
    rows.write_bytes(rows.read_bytes().replace(b"    MPS: atan2_out_mps\n", written))
    with pytest.raises(PorterError) as caught:
        operators(Checkout(fork, "test"))
    assert caught.value.code == code


@pytest.mark.parametrize("padding", ["", "# \u00e9\n" * 5000])
def test_a_character_that_yaml_does_not_allow_is_found_by_its_line(fork: Path, padding: str) -> None:
    rows = fork / NATIVE_FUNCTIONS
    line = "    MPS: atan2_out_mps\n"
    rows.write_text(rows.read_text().replace(line, f"{padding}    MPS: \0\n"))
    with pytest.raises(PorterError, match=r"PTR010 invalid YAML: .* characters are not allowed") as caught:
        operators(Checkout(fork, "test"))
    assert caught.value.place and "\0" in rows.read_text().splitlines()[caught.value.place.line - 1]


@pytest.mark.parametrize("schema", ["x", "[a]", "{a: b}", "f(", "f) -> (", ""])
def test_a_row_without_a_schema_is_refused(fork: Path, schema: str) -> None:
    rows = fork / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + f"\n- func: {schema}\n  dispatch:\n    MPS: a\n")
    with pytest.raises(PorterError) as caught:
        operators(Checkout(fork, "test"))
    assert caught.value.code in ("PTR010", "PTR011")
