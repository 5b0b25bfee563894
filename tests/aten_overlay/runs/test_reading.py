"""What the processes of a program wrote down is read as one run."""

from __future__ import annotations

from pathlib import Path

from aten_overlay.runs import reading
from aten_overlay.runs.journal import SOURCES, VARIABLE, Journal, find_journal
from aten_overlay.runs.origin import Origin, find_origin

USER = Origin("compile_shader", "train.py:3", "step")


def write_launches(folder: Path, process: int, *counts: tuple[str, int]) -> None:
    """The file that device/launches.cpp writes, with an empty place after what it counted."""
    slots = [reading._SLOT.pack(count, text.encode()) for text, count in (*counts, ("", 0))]
    (folder / f"{process}.launches").write_bytes(b"".join(slots))


def test_processes_add_up(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.note_kernels(Path("a.so"), ["f", "idle"], "kernel void f() {}", USER)
    journal.note_kernels(Path("a.so"), ["f"], "kernel void f() {}", Origin("Inductor"))  # the cached library again
    write_launches(tmp_path, 1, ("a.so\nf\n", 2), ("fork.so\natan2_float\naten::atan2", 3))
    write_launches(tmp_path, 2, ("a.so\nf\n", 5))
    run = reading.read_run(tmp_path)
    kernels = [(kernel.name, kernel.origin.producer, kernel.operator, kernel.launches) for kernel in run.kernels]
    assert kernels == [
        ("f", "compile_shader", "", 7),
        ("idle", "compile_shader", "", 0),
        ("atan2_float", "operator", "aten::atan2", 3),
    ]
    assert (run.compiled, run.launches) == (2, 10)
    assert (tmp_path / SOURCES / run.kernels[0].source).read_text() == "kernel void f() {}"


def test_one_fault_in_a_loop_is_one_finding(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.note_kernels(Path("a.so"), ["f"], "", USER)
    for seed in (0, 1):
        journal.note_finding("a.so", "f", ["aten::add"], f"PTR264: kernel `f` reads (seed {seed})", USER)
    journal.note_finding("a.so", "f", [], "kernel `f`: argument `x` has nothing bound (buffer 0)", USER)
    bounds, unbound = reading.read_run(tmp_path).findings
    assert (bounds.code, bounds.count, bounds.text) == ("PTR264", 2, "kernel `f` reads (seed 0)")
    assert (bounds.operators, bounds.kernel_origin) == (("aten::add",), USER)
    assert (unbound.code, unbound.count) == ("PTR106", 1)


def test_a_process_that_outlives_the_run_writes_nothing(tmp_path: Path) -> None:
    assert find_journal({VARIABLE: str(tmp_path)}) == Journal(tmp_path)
    assert find_journal({VARIABLE: str(tmp_path / "removed")}) is None
    assert find_journal({}) is None


def test_an_origin_is_the_innermost_line_of_the_program() -> None:
    code = compile("def launch():\n    return find()\n", "train.py", "exec")
    names = {"find": find_origin, "__name__": "train"}
    exec(code, names)
    assert names["launch"]() == Origin("compile_shader", "train.py:2", "launch")  # type: ignore[operator]


def test_an_origin_knows_what_wrote_the_metal() -> None:
    """By the innermost package: the program's own line is outside of it, and of code that Inductor generated."""
    library = {"find": find_origin, "__name__": "torch._inductor.runtime.runtime_utils"}
    exec(compile("def compile_shader():\n    return find()\n", "runtime_utils.py", "exec"), library)
    names = ("assert_size_stride", "extern_kernels", "inductor_ops")
    generated = {**dict.fromkeys(names), **library, "__name__": "torch._inductor.runtime.compile_tasks.cabc"}
    exec(compile("\n\ndef call():\n    return compile_shader()\n", "cabc.py", "exec"), generated)
    program = {"call": generated["call"], "__name__": "train"}
    exec(compile("def step():\n    return call()\n", "train.py", "exec"), program)
    assert program["step"]() == Origin("Inductor", "train.py:2", "step", "cabc.py:4")  # type: ignore[operator]


def test_a_kernel_of_mlx_is_of_mlx_though_porter_launches_it() -> None:
    launch: dict[str, object] = {"find": find_origin, "__name__": "porter.kernels.launch"}
    exec(compile("def launch():\n    return find()\n", "launch.py", "exec"), launch)
    calls: dict[str, object] = {"launch": launch["launch"], "__name__": "porter.kernels.mlx.calls"}
    exec(compile("def call():\n    return launch()\n", "calls.py", "exec"), calls)
    program = {"call": calls["call"], "__name__": "train"}
    exec(compile("def step():\n    return call()\n", "train.py", "exec"), program)
    assert program["step"]() == Origin("MLX", "train.py:2", "step")  # type: ignore[operator]
