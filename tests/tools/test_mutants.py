"""What `tools/mutants.py` takes for a slip, which mutants it makes of an operator, and how it goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch

import mutants
from mutation import trial
from mutation.ledger import Ledger, summarize
from mutation.ported import find_added
from mutation.slips import Slips, slip_in_host_code, slip_in_registrations, slip_in_rows
from mutation.subjects import Mutant, Subject, find_mutants, find_operators, make_subject
from mutation.trial import Fate, Stage, choose_first
from mutation.warm import NoEngineError, TimedTest, WarmSubject, without_engine
from porter.core.python import PACKAGES
from porter.languages.slips import slip_in_metal
from porter.verdict.judge import verdict_without_tests
from porter.verdict.messages import ErrorAnswer, VerdictAnswer
from porter.verdict.result import DEFAULT, HOST, NO_TEST, Failure, VerifyTarget
from porter.verdict.suite.children import ask_child
from porter.verdict.suite.refusals import REFUSALS

FUNCTOR = """struct a_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    const float low = static_cast<float>(b);
    if (low > 0.5f) {
      return static_cast<T>(::metal::max(static_cast<float>(a), low));
    }
    return static_cast<T>(a == b ? low + 1.0f : -low);
  }
};
"""
HOST_CODE = """static void a_kernel(TensorIteratorBase& iter) {
  lib.exec_binary_kernel(iter, "a", std::nullopt, std::nullopt, kBool);
}
REGISTER_DISPATCH(a_stub, &a_kernel)
"""


def apply(slips: Slips, code: str) -> set[str]:
    return {code[: slip.start] + slip.new + code[slip.end :] for slip in slips(code)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("low > 0.5f", "low >= 0.5f"),
        ("low > 0.5f", "low > 0.50001f"),
        ("low + 1.0f", "low - 1.0f"),
        (": -low", ": low"),
        ("::metal::max(static_cast<float>(a), low)", "::metal::max(low, static_cast<float>(a))"),
        ("::metal::max", "::metal::min"),
        ("static_cast<float>(b)", "static_cast<half>(b)"),
        ("static_cast<float>(b)", "static_cast<float>(a)"),
        ("if (low > 0.5f)", "if (true)"),
        ("a == b ?", "false ?"),
        ("const float low", "const half low"),
        (
            "    if (low > 0.5f) {\n      return static_cast<T>(::metal::max(static_cast<float>(a), low));\n    }\n",
            "\n",
        ),
    ],
)
def test_slips_in_a_functor(old: str, new: str) -> None:
    assert old in FUNCTOR
    assert FUNCTOR.replace(old, new) in apply(slip_in_metal, FUNCTOR)


def test_slips_in_registrations() -> None:
    line = "REGISTER_BINARY_OP(a, int, float);\n"
    made = apply(slip_in_registrations, line)
    assert {"", "REGISTER_BINARY_OP(a, short, float);\n", "REGISTER_BINARY_OP(a, int, half);\n"} <= made


@pytest.mark.parametrize(
    ("old", "new"), [('"a"', '"nothing"'), (", kBool", ""), ("REGISTER_DISPATCH(a_stub, &a_kernel)\n", "")]
)
def test_slips_in_host_code(old: str, new: str) -> None:
    assert HOST_CODE.replace(old, new) in apply(slip_in_host_code, HOST_CODE)


def test_slips_in_rows() -> None:
    made = apply(slip_in_rows, "    CPU, CUDA, MPS: a_out\n")
    assert {"    CPU, CUDA: a_out\n", "    CPU, CUDA, MPS: a_out_\n", ""} <= made


@pytest.mark.parametrize(
    ("line", "slipped"),
    [
        ("const auto y = x.contiguous();", "const auto y = x;"),
        ("set(x.strides());", "set(x.sizes());"),
        ('f(is_small ? "int" : "long");', 'f(is_small ? "int" : "int");'),
        ("if (a.numel() == 0) {", "if (a.numel() != 0) {"),
        ("set_args(encoder, x, 1);", "set_args(encoder, 1, x);"),
        ("const auto width = min(n, 1024);", "const auto width = min(n, 2 * 1024);"),
        ("const int64_t inner = n;", "const short inner = n;"),
        ("f(scalarToMetalTypeString(output));", 'f(std::string("float"));'),
        ("if (is_empty(a)) {\n    a.zero_();\n    return;\n  }", ""),
    ],
)
def test_slips_in_the_host_code_of_a_port(line: str, slipped: str) -> None:
    assert (f"  {slipped}\n" if slipped else "") in apply(slip_in_host_code, f"  {line}\n")


@pytest.mark.parametrize(
    ("line", "slipped"),
    [
        ("const index_t i = rest % size;", "const ushort i = rest % size;"),
        ("offset += index_t(i) * stride;", "offset += ushort(i) * stride;"),
        ("c10::metal::opmath_t<T1> sum = T1(0);", "T1 sum = T1(0);"),
        ("c10::metal::opmath_t<T1> sum = T1(0);", "c10::metal::opmath_t<T1> sum = (1 - 0);"),
        ("T best = numeric_limits<T>::lowest();", "T best = numeric_limits<T>::max();"),
        ("for (long d = ndim - 1; d >= 0; d--) {", "for (long d = ndim - 1; d > 0; d--) {"),
        ("threadgroup_barrier(mem_flags::mem_threadgroup);", ""),
    ],
)
def test_slips_in_the_kernel_of_a_port(line: str, slipped: str) -> None:
    assert (f"  {slipped}\n" if slipped else "") in apply(slip_in_metal, f"  {line}\n")


def test_a_statement_of_host_code_is_left_out_but_what_only_a_profiler_sees() -> None:
    assert "" in apply(slip_in_host_code, "  TORCH_CHECK(a.dim() == 2, b);\n")
    assert "" not in apply(slip_in_host_code, "  getMPSProfiler().endProfileKernel(PSO);\n")
    profiled = '  getMPSProfiler().beginProfileKernel(PSO, "gather", {input});\n'
    assert profiled.replace("gather", "gather_") not in apply(slip_in_host_code, profiled)


def test_registrations_of_types_alone() -> None:
    made = apply(slip_in_registrations, "REGISTER_GATHER(float, int);\nREGISTER_POOL(half);\n")
    assert "REGISTER_GATHER(half, int);\nREGISTER_POOL(half);\n" in made
    assert "REGISTER_GATHER(float, int);\n" in made
    assert not any("2" in mutated for mutated in made)
    complex_ones = "REGISTER_POOL(float2);\nREGISTER_POOL(short);\n"
    assert complex_ones.replace("short", "float2") in apply(slip_in_registrations, complex_ones)
    assert not any("other" in each for each in made)


def test_what_a_port_adds_is_what_changes() -> None:
    before = "#include <a>\nint old() {\n  return 1;\n}\n"
    after = "#include <a>\n#include <b>\nint old() {\n  // what it is\n  return b();\n}\n"
    [host] = find_added("X.mm", before, after)
    assert (host.kind, after[host.start : host.end]) == ("host", "  return b();\n")
    kernels = "#define R(T) \\\n  f<T>\nkernel void f() {\n}\nREGISTER_F(float);\n"
    found = [(region.kind, kernels[region.start : region.end]) for region in find_added("X.metal", "", kernels)]
    assert found == [("kernel", "kernel void f() {\n}\n"), ("registration", "REGISTER_F(float);\n")]
    assert not list(find_added("test/test_mps.py", "", "a = 1\n"))


def test_a_few_mutants_of_a_port_are_of_all_its_parts() -> None:
    kinds = ("kernel", "registration", "host", "yaml")
    every = [Mutant("a", kind, "line", "file", f"{kind} {at}", "") for kind in kinds for at in range(50)]
    chosen = mutants.choose(every, 50)
    count = {kind: sum(mutant.region == kind for mutant in chosen) for kind in kinds}
    assert count == {"kernel": 28, "registration": 5, "host": 15, "yaml": 2}


def test_there_are_twenty_operators_and_more_than_a_thousand_mutants() -> None:
    operators = find_operators()
    assert len(operators) == 20
    few = [mutants.choose(find_mutants(make_subject(op)), 54) for op in operators]
    assert sum(map(len, few)) > 1000
    assert {mutant.region for each in few for mutant in each} == {"functor", "helper", "registration", "host", "yaml"}


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    mutant = Mutant("a", "functor", "operator", "A.metal", "text", "A.metal:1: '+' -> '-'")
    other = Mutant("a", "functor", "operator", "A.metal", "other", "A.metal:2: '+' -> '-'")
    Ledger(tmp_path / "results").add(mutant, Fate.SURVIVED, "")
    ledger = Ledger(tmp_path / "results")
    ledger.add(other, Fate.CAUGHT, "test")
    text, share = summarize(ledger.entries.values())
    assert share == 0.5
    assert "survived: a: functor, operator: A.metal:1: '+' -> '-'" in text
    ledger.add(mutant, Fate.CAUGHT, "a test of a later run")
    assert summarize(Ledger(tmp_path / "results").entries.values())[1] == 1.0


@pytest.mark.parametrize(
    ("region", "old", "first"),
    [
        ("registration", "REGISTER_POOL(uchar, int);\n", ["T.test_b_mps_uint8"]),
        ("registration", "REGISTER_POOL(bfloat, float);", ["T.test_b_mps_bfloat16", "T.test_b_mps_float32"]),
        ("registration", "POOL", ["T.test_b_mps_float32"]),
        ("kernel", "half", ["T.test_b_mps_float32"]),
    ],
)
def test_the_first_tests_of_a_mutant_end_soon_and_launch_what_is_compiled(
    region: str, old: str, first: list[str]
) -> None:
    kernels = {"uint8": "pool_uchar", "bfloat16": "pool_bfloat", "float32": "pool_float"}
    tests = [TimedTest(f"T.test_b_mps_{dtype}", 0.1, (kernel,)) for dtype, kernel in kernels.items()]
    tests += [
        TimedTest("T.test_long_mps_float32", 9.0, ("pool_float",)),
        TimedTest("T.test_idle_mps_float32", 0.1, ()),
        TimedTest("T.test_both_mps_float32", 0.1, ("pool_float", "pool_half")),
    ]
    part = choose_first(tests, Mutant("a", region, "line", "A.metal", "", "", old))
    assert list(part.tests) == first
    assert [test.name for test in tests[:3] if part.compiles(test.kernels[0])] == first


def test_tests_that_caught_the_same_slip_come_first(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "results")
    for at, (op, slip, test) in enumerate(
        [("a", "name", "test_x"), ("a", "name", "test_x"), ("a", "dtype", "test_y"), ("b", "dtype", "test_z")]
    ):
        ledger.add(Mutant(op, "kernel", slip, "A.metal", str(at), ""), Fate.CAUGHT, f"ended T.{test}: why")
    order = ledger.count_kills(Mutant("a", "kernel", "dtype", "A.metal", "", "")).most_common()
    assert [test for test, _ in order] == ["test_y", "test_x"]


def test_what_fails_without_a_mutant_is_asked_for_once_a_stage(tmp_path: Path) -> None:
    first = Ledger(tmp_path / "results")
    assert first.failing("a", "quick", lambda: ()) == ()
    assert first.failing("a", "whole", lambda: ("T.one", "T.two")) == ("T.one", "T.two")
    again = Ledger(tmp_path / "results")
    assert [again.failing("a", stage, pytest.fail) for stage in ("quick", "whole")] == [(), ("T.one", "T.two")]
    text, share = summarize(again.entries.values())
    assert text.splitlines()[:2] == ["fails without a mutant: T.one", "fails without a mutant: T.two"]
    assert "0 mutants of 0 operators" in text
    assert share == 1.0


@pytest.mark.parametrize(("fails", "fate"), [(("T.a",), Fate.SURVIVED), (("T.a", "T.b"), Fate.CAUGHT)])
def test_what_fails_without_a_mutant_catches_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fails: tuple[str, ...], fate: Fate
) -> None:
    """Of `fails`, T.a fails without a mutant too; it is asked alone, then all of its stage once."""
    asked = list[tuple[str, str]]()

    def find_failure(subject: Subject, texts: object, stage: Stage, failing: Sequence[str]) -> str:
        return next((test for test in fails if test not in failing), "")

    def find_failing(subject: Subject, stage: Stage, test: str = "") -> tuple[str, ...]:
        asked.append((stage.name, test))
        return ("T.a",) if test in ("", "T.a") else ()

    monkeypatch.setattr(trial, "_find_failure", find_failure)
    monkeypatch.setattr(mutants, "find_failing", find_failing)
    mutant = Mutant("a", "host", "line", "A.mm", "", "A.mm:1: 'f();' -> ''")
    ledger = Ledger(tmp_path / "results")
    mutants.run(_make_warm(VerdictAnswer(PASSING)), [mutant], ledger, again=False)
    assert [entry.fate for entry in ledger.entries.values() if entry.key != entry.told][-1] == fate.value
    assert asked[:2] == [("checked", "T.a"), ("checked", "")]
    assert len(asked) == len(set(asked))


PASSING = verdict_without_tests("a", [], 0.0, HOST, DEFAULT)


def _make_warm(answer: VerdictAnswer | ErrorAnswer, failing: tuple[str, ...] = ()) -> WarmSubject:
    """A subject without tests, of whose mutants one verdict is given."""
    subject = Subject("a", VerifyTarget("a", ()), {}, (), is_ported=True)
    return cast(WarmSubject, SimpleNamespace(subject=subject, tests=(), failing=failing, ask=lambda *_: answer))


@pytest.mark.parametrize("code", ["PTR170", "ended"])
def test_an_error_of_porter_catches_no_mutant(code: str) -> None:
    warm = _make_warm(ErrorAnswer(code, "what"))
    mutant = Mutant("a", "host", "line", "A.mm", "", "A.mm:1: 'f();' -> ''")
    if code == "ended":
        assert trial.try_mutant(warm, mutant, {}, lambda *_: ()) == (Fate.CAUGHT, "ended what")
        return
    with pytest.raises(RuntimeError, match="has no verdict: what"):
        trial.try_mutant(warm, mutant, {}, lambda *_: ())


@pytest.mark.parametrize("failing", [("T.a",), ("T.a", "T.b")])
def test_what_fails_without_a_mutant_catches_none_of_a_warm_subject(
    monkeypatch: pytest.MonkeyPatch, failing: tuple[str, ...]
) -> None:
    answer = VerdictAnswer(verdict_without_tests("a", [Failure("T.a", "why"), Failure("T.b", "why")], 0.0))
    monkeypatch.setattr(trial, "_ask", lambda *_, **__: VerdictAnswer(PASSING))
    mutant = Mutant("a", "host", "line", "A.mm", "", "A.mm:1: 'f();' -> ''")
    fate = trial.try_mutant(_make_warm(answer, failing), mutant, {}, lambda *_: ())
    assert fate == ((Fate.CAUGHT, "T.b") if len(failing) == 1 else (Fate.SURVIVED, ""))


def test_a_stage_whose_tests_all_fail_without_a_mutant_catches_none(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = verdict_without_tests("a", [Failure(NO_TEST, "none")], 0.0, HOST, DEFAULT)
    monkeypatch.setattr(trial, "_ask", lambda *_, **__: VerdictAnswer(verdict))
    mutant = Mutant("a", "host", "line", "A.mm", "", "A.mm:1: 'f();' -> ''")
    assert trial.try_mutant(_make_warm(VerdictAnswer(verdict)), mutant, {}, lambda *_: ()) == (Fate.SURVIVED, "")


def test_the_tool_imports_no_torch_before_the_device() -> None:
    """Its `start` could bring up no device, so that it ran nowhere but in tests."""
    program = "import sys; sys.path.insert(0, 'tools'); import mutants; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=PACKAGES, check=False).returncode == 0


def test_samples_that_a_gradient_is_asked_of_are_left_to_their_tests() -> None:
    """A variation that takes it for the CPU's refusal has no samples, and there would be no test of it."""

    def is_differentiated() -> bool:
        x = torch.ones(2, requires_grad=True)
        try:
            torch.autograd.grad(x.sum(), x)
        except REFUSALS:
            return False
        return True

    with without_engine():
        with pytest.raises(NoEngineError):
            is_differentiated()
        assert ask_child(is_differentiated) is True
