"""Cheats that a comparison of values lets pass, each judged; and slips that a script's own cases catch or miss."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from porter.core.errors import PorterError
from porter.kernels import MetalKernel
from porter.kernels.checking import CaseResult, Part, check
from porter.kernels.compare import Tolerance
from porter.kernels.judging.conduct import Unchanged
from porter.kernels.judging.mutants import Fate, check_hidden, list_mutants, try_mutant
from porter.kernels.loading import answering, load
from porter.kernels.script import Case, Kind, Layout, Script, Stage, Values

SCALE = MetalKernel(
    "scale",
    ["x"],
    ["out"],
    "uint i = thread_position_in_grid.x; out[i] = x[i] * 2.0f + 1.0f;",
    launch=lambda x: {"grid": (x.numel(), 1, 1), "output_shapes": [x.shape], "output_dtypes": [x.dtype]},
)
SIZES = ((7,), (64,))


def scale(x: Tensor) -> Tensor:
    out = SCALE.run(x)
    assert isinstance(out, Tensor)
    return out


def reference(x: Tensor) -> Tensor:
    return 2 * x + 1


def script(run: Callable[..., Any], inputs: Callable[[Case], Values] | None = None, **fields: Any) -> Script:
    stage = Stage("scale", run, reference, ("x",))
    rest = {"dtypes": (torch.float32,), "layouts": (Layout.DENSE,), "sizes": SIZES, "benchmark": SIZES, **fields}
    return Script("judged", Kind.ELEMENTWISE, (stage,), inputs or (lambda case: {"x": case.normal(*case.size)}), **rest)


def find_breaches(judged: Script) -> list[str]:
    """What the script does wrong; its own cases all pass."""
    assert all(result.ok for result in check(judged, sweeps=False))
    return [summarize(result) for result in check_hidden(judged, 5) if not result.ok]


def summarize(result: CaseResult) -> str:
    text = result.error or str(result.difference)
    return text.partition("\n")[0].removeprefix("PTR227 ") if result.part is Part.CONDUCT else result.part.value


def test_an_honest_script_breaks_no_rule() -> None:
    results = list(check_hidden(script(scale), 5))
    assert [summarize(result) for result in results if not result.ok] == []
    assert sum(result.part is Part.HIDDEN for result in results) > 8


def test_inputs_on_the_cpu_are_told_what_a_script_moves_them_by() -> None:
    result = next(iter(check(script(scale, lambda case: {"x": torch.ones(*case.size)}), sweeps=False)))
    assert result.error.startswith("PTR221") and "case.place moves others" in result.error


def call_reference(x: Tensor) -> Tensor:
    return reference(x)


def call_reference_beside_a_kernel(x: Tensor) -> Tensor:
    scale(x)
    return reference(x)


def compute_on_the_host(x: Tensor) -> Tensor:
    scale(x)
    return torch.from_numpy(2 * x.cpu().numpy() + 1).to(x.device)


def write_to_its_input(x: Tensor) -> Tensor:
    out = scale(x)
    x.copy_(out)
    return out


def leave_a_thread(x: Tensor) -> Tensor:
    threading.Thread(target=threading.Event().wait, args=(60,), daemon=True).start()
    return scale(x)


def know_the_sizes(x: Tensor) -> Tensor:
    return scale(x) if x.shape in SIZES else scale(x).zero_()


def make_cache() -> Callable[[Tensor], Tensor]:
    kept: dict[object, Tensor] = {}

    def run(x: Tensor) -> Tensor:
        key = (x.data_ptr(), x.shape)
        # The tensor is kept too, so that no other has its address.
        kept.setdefault((key, 0), x)
        return kept.setdefault(key, scale(x))

    return run


@pytest.mark.parametrize(
    ("run", "breaches"),
    [
        (call_reference, ["launches no kernel", "computes with aten::mul, aten::add"]),
        (call_reference_beside_a_kernel, ["computes with aten::mul, aten::add"]),
        (compute_on_the_host, ["reads its values back to the host"]),
        (write_to_its_input, ["writes to its input x"]),
        (leave_a_thread, ["leaves a thread running"]),
        (make_cache(), ["gives another result for new values at the same addresses"]),
    ],
)
def test_a_cheat_is_told(run: Callable[[Tensor], Tensor], breaches: Sequence[str]) -> None:
    breaches_told = list(dict.fromkeys(breach.partition(":")[0] for breach in find_breaches(script(run))))
    expected = [breach.partition(":")[0] for breach in breaches]
    assert breaches_told == [f"stage scale {breach}" for breach in expected]


def test_a_size_that_the_script_does_not_name_is_tried() -> None:
    assert set(find_breaches(script(know_the_sizes))) == {"hidden"}


def test_inputs_that_never_change_and_a_wide_tolerance_are_told() -> None:
    fixed = script(scale, lambda case: {"x": torch.ones(case.size, device=case.device)})
    assert find_breaches(fixed) == ["the script's inputs are the same whatever the seed is"]
    wide = script(lambda x: scale(x) + 0.5, tolerance=Tolerance(absolute=1.0))
    assert "the script has its own absolute tolerance" in find_breaches(wide)


def test_a_script_that_takes_no_hidden_size_has_no_verdict() -> None:
    def refuse(case: Case) -> Values:
        if case.salt:
            raise ValueError("not one of the author's")
        return {"x": case.normal(*case.size)}

    picky = script(scale, refuse, sizes=((7,),))
    (result,) = [result for result in check_hidden(picky, 1) if not result.ok]
    assert "takes none of its hidden sizes" in result.error


def test_a_check_that_is_replaced_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    unchanged = Unchanged()
    assert list(unchanged.find_replaced()) == []
    monkeypatch.setattr("porter.kernels.script.find_difference", lambda *_: None)
    monkeypatch.setattr(torch, "allclose", lambda *_: True)
    assert {error.what for error in unchanged.find_replaced()} == {
        "the script replaces porter.kernels.script.find_difference",
        "the script replaces torch.allclose",
    }


SLIPPING = '''"""A script: 1 + 1 is no Metal."""
import torch
from porter.kernels import MetalKernel
from porter.kernels.script import Kind, Layout, Script, Stage
KERNEL = MetalKernel("slipping", ["x"], ["out"], """
  uint i = thread_position_in_grid.x;
  out[i] = i < 64 ? x[i] * 2.0f : x[i] + x[i];  // * 3
""", launch=lambda x: {
    "grid": (x.numel(), 1, 1), "threadgroup": (8, 1, 1), "output_shapes": [x.shape], "output_dtypes": [x.dtype]})
STAGE = Stage("slipping", KERNEL.run, lambda x: 2 * x, ("x",))
SCRIPT = Script("x * 2.0f", Kind.ELEMENTWISE, (STAGE,), lambda case: {"x": case.normal(*case.size)}, ((32,),), (),
    dtypes=(torch.float32,), layouts=(Layout.DENSE,))
'''


def test_slips_that_a_scripts_own_cases_miss(tmp_path: Path) -> None:
    path = tmp_path / "slipping.py"
    path.write_text(SLIPPING)
    source = "kernel void slipping() {\n  out[i] = i < 64 ? x[i] * 2.0f : x[i] + x[i];  // * 3\n}"
    mutants = {(mutant.old, mutant.new): mutant for mutant in list_mutants(SLIPPING, [source], 0)}
    assert {mutant.line for mutant in mutants.values()} == {7}
    assert mutants.keys() >= {("*", "+"), ("+", "*"), ("<", "<=")}
    assert [try_mutant(path, mutants[slip], 0, "mps")[0] for slip in (("*", "+"), ("+", "*"), ("<", "<="))] == [
        Fate.CAUGHT,
        Fate.MISSED,
        Fate.SAME,
    ]


PROBLEM = """
from porter.kernels.script import Kind, Layout, Script, Stage, to_answer
import torch
STAGE = Stage("doubled", to_answer, lambda x: 2 * x, ("x",))
SCRIPT = Script("2 * x", Kind.ELEMENTWISE, (STAGE,), lambda case: {"x": case.normal(*case.size)}, ((32,),), (),
    dtypes=(torch.float32,), layouts=(Layout.DENSE,))
"""


def test_an_answer_is_judged_by_the_cases_and_the_reference_of_its_problem(tmp_path: Path) -> None:
    problem, answer = tmp_path / "problem.py", tmp_path / "answer.py"
    problem.write_text(PROBLEM)
    claims = SLIPPING.replace("lambda x: 2 * x", "lambda x: 3 * x") + "doubled = KERNEL.run\n"
    for factor, is_right in (("2.0f", True), ("3.0f", False)):  # the answer's own reference is three times x
        answer.write_text(claims.replace("x[i] * 2.0f", f"x[i] * {factor}"))
        with answering(problem):
            assert all(result.ok for result in check(load(answer), sweeps=False)) is is_right
    assert load(answer).stages[0].name == "slipping"


def test_what_answers_no_problem_says_what_it_lacks(tmp_path: Path) -> None:
    problem, answer = tmp_path / "problem.py", tmp_path / "answer.py"
    problem.write_text(PROBLEM)
    answer.write_text("tripled = None\n")
    with (
        answering(problem),
        pytest.raises(PorterError, match=r"PTR440 the answer .* has no function doubled(.|\n)*\(x\)"),
    ):
        load(answer)
    (result, *_) = check(load(problem), sweeps=False)
    assert result.error.startswith("PTR440")
