"""Programs are requested once, kept, and printed by overload."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import FLOAT, HALF
from porter.core.errors import PorterError
from porter.loops.expressions import Buffer, Loop, Op, intern, load
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Arguments, Named, SizeProduct, TensorValue
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, Role, SymbolicNest, SymbolicProgram
from porter.metal.forms import FormProgram, encode_computations
from porter.metal.forms.contraction import Contraction, Operands
from porter.recording import readings
from porter.verdict import client
from porter.verdict.messages import RecordRequest


def make_copy() -> SymbolicProgram:
    """Copies its argument."""
    numel = Named("input_numel", SizeProduct("self"), 6)
    turns = Loop("i0", 6, numel)
    index = intern(Op.LOOP, attribute=turns)
    store = Store(Buffer(1), FLOAT, 6, (turns,), index, load(Buffer(0), index, FLOAT))
    nest = SymbolicNest(LoopNest((store,), (turns,)), numel.value)
    roles: dict[Buffer, Role] = {Buffer(0): ArgumentBuffer("self"), Buffer(1): ResultBuffer(0)}
    call = Arguments({"self": TensorValue((2, 3), FLOAT)}, {"scale": 0.5, "sizes": (2, 3), "mode": None})
    return SymbolicProgram("neg.out", (), "self", (FLOAT, HALF), (nest,), roles, (numel,), call, (call,))


def test_programs_are_kept_and_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[RecordRequest] = []
    made = (Programs("neg", ()), Programs("neg.out", (make_copy(),), (PorterError("PTR364", "one call"),)))

    def request_recording(request: RecordRequest, progress: object) -> str:
        asked.append(request)
        return encode_computations(made)

    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    monkeypatch.setattr(client, "request_recording", request_recording)
    checkout = Checkout(EMBEDDED_FORK, "embedded")
    assert readings.get_programs(checkout, "neg", run=False) is None
    for _ in range(2):
        stages = dict(readings.describe_programs(checkout, "neg", "neg.out", ""))
        assert stages == {
            "program of neg.out, from 1 calls, self of float, half": (
                "input_numel = self.numel()",
                "map, for i0 < input_numel:",
                "  output[i0] = input[i0]",
            ),
            "no program of neg.out": ("PTR364 one call",),
        }
    assert len(asked) == 1


def test_the_cost_is_that_of_the_largest_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = make_copy()
    larger = replace(program.example, tensors={"self": TensorValue((5, 8), FLOAT)})
    made = (Programs("neg.out", (replace(program, calls=(program.example, larger)),)),)
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    monkeypatch.setattr(client, "request_recording", lambda request, progress: encode_computations(made))
    checkout = Checkout(EMBEDDED_FORK, "embedded")
    stages = dict(readings.describe_programs(checkout, "neg", "neg.out", "", cost=True))
    assert stages["cost of a call of neg.out, for self (5, 8)"] == (
        "map: 40 threads, 40 turns, 160 bytes read, 160 written",
        "320 bytes moved, 1.00 times the 320 of inputs and results",
    )


def test_the_cost_of_a_form_is_that_of_the_largest_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    form = Contraction(Operands.MATRICES, "self", "mat2")
    sizes = ({"self": (2, 3), "mat2": (3, 4), "result0": (2, 4)}, {"self": (5, 3), "mat2": (3, 8), "result0": (5, 8)})
    calls = (Arguments({name: TensorValue(shape, FLOAT) for name, shape in shapes.items()}, {}) for shapes in sizes)
    programs = (FormProgram("neg.out", form, tuple(calls)),)
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    monkeypatch.setattr(client, "request_recording", lambda request, progress: encode_computations(programs))
    checkout = Checkout(EMBEDDED_FORK, "embedded")
    stages = dict(readings.describe_programs(checkout, "neg", "neg.out", "", cost=True))
    assert stages["cost of a call of neg.out, for self (5, 3), mat2 (3, 8), result0 (5, 8)"] == (
        "reduction: 5 rows, 120 turns, 156 bytes read, 160 written",
        "316 bytes moved, 1.00 times the 316 of inputs and results",
    )
    assert "matrix product of neg.out" in dict(readings.describe_programs(checkout, "neg", "neg.out", ""))
