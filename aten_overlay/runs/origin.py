"""Who had a kernel compiled or launched it: the Python line, what wrote the Metal, the operators that it computes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

SHADER, KERNEL, OPERATOR, EXTENSION, INDUCTOR = "compile_shader", "MetalKernel", "operator", "extension", "Inductor"
MLX, PYOBJC = "MLX", "Metal of pyobjc"
# What writes Metal itself, by the start of its modules' names. The innermost module of the stack counts.
_WRITERS: Mapping[str, str] = {
    "torch._inductor": INDUCTOR, "porter.kernels.mlx": MLX, "porter.kernels": KERNEL, "mlx": MLX,
    "tilelang": "TileLang", "tvm": "TileLang", "triton": "Triton", "triton_msl": "Triton",
    "aten_overlay.device.pyobjc": PYOBJC,
}  # fmt: skip
_PASSED = ("torch", "aten_overlay", "porter", "runpy", "importlib", "_pytest", "pluggy", *_WRITERS)
_OVERLAY = str(Path(__file__).resolve().parents[1]) + os.sep
_GENERATED = {"assert_size_stride", "extern_kernels", "inductor_ops"}
_CALLED = re.compile(r"torch\.ops\.aten\.(\w+)")  # in a graph that Inductor keeps as text


@dataclass(frozen=True)
class Origin:
    """`producer` is what wrote the Metal; `place` is `file:line` of the program's innermost Python line, `function` its
    function; `generated` is `file:line` of a file that the producer generated, and `operators` those of the graph that
    it was generated for. What is not known is empty.
    """

    producer: str
    place: str = ""
    function: str = ""
    generated: str = ""
    operators: tuple[str, ...] = ()


def find_origin(producer: str = "") -> Origin:
    """The origin of what this thread does now; `producer` where the caller knows better than the stack."""
    frames = list(_walk(sys._getframe(1)))
    writers = [writer for frame in frames if (writer := _find_writer(frame))]
    generated = next(filter(_is_generated, frames), None)
    program = next((frame for frame in frames if not _is_passed(frame)), None)
    if writers[:1] == [KERNEL] and MLX in writers:  # a kernel of MLX's, which porter runs
        writers = [MLX]
    if writers[:1] == [PYOBJC]:  # what the program, or a package that writes Metal, calls
        producer = next((writer for writer in writers if writer != PYOBJC), PYOBJC)
    return Origin(
        producer or (writers[0] if writers else SHADER),
        _place(program),
        program.f_code.co_name if program else "",
        _place(generated),
        tuple(dict.fromkeys(_read_graph(frames))) if generated else (),
    )


def _walk(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _find_writer(frame: FrameType) -> str:
    if _is_generated(frame):
        return INDUCTOR
    return next((writer for package, writer in _WRITERS.items() if _is_of(frame, package)), "")


def _is_of(frame: FrameType, package: str) -> bool:
    return f"{frame.f_globals.get('__name__', '')}.".startswith(f"{package}.")


def _is_passed(frame: FrameType) -> bool:
    is_overlay = frame.f_code.co_filename.startswith(_OVERLAY)  # as `__main__` too
    return is_overlay or _is_generated(frame) or any(_is_of(frame, package) for package in _PASSED)


def _is_generated(frame: FrameType) -> bool:
    """Whether it runs code that Inductor generated, which imports what no other module has together."""
    return frame.f_globals.keys() >= _GENERATED


def _place(frame: FrameType | None) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _read_graph(frames: Sequence[FrameType]) -> Iterator[str]:
    """The operators of the graph that Inductor compiles on this thread, or takes from its cache as text."""
    for frame in frames:
        for value in filter(None, (frame.f_locals.get(name) for name in ("self", "graph"))):
            if type(value).__name__ == "GraphLowering":
                targets = [str(node.target) for node in value.graph.nodes if node.op == "call_function"]
                yield from (target.rpartition(".")[0] for target in targets if target.count(".") > 1)
                return
            if type(value).__name__ == "CompiledFxGraph":
                yield from (f"aten.{name}" for name in _CALLED.findall(value.runnable_graph_str))
                return
