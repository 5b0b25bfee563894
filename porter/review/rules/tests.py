"""PyTorch's tests: their devices, tolerances and memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from porter.core.layout import TEST_MPS
from porter.review.change import Change, Remark
from porter.review.rule import Severity, edit_case, rule

_LARGE, _ALONE = ("largeTensorTest", "largeTensors"), "serialTest"
_PLACE = "instantiate_device_type_tests(T"
_LARGE_TEST = """class TestPlanted(TestCase):
    @largeTensorTest("9GB", device="mps")
    def test_planted(self):
        x = torch.ones(2**33, device="mps", dtype=torch.uint8)
        self.assertEqual(x.sum(), 2**33)


"""


@rule(
    Severity.WARNING,
    "A new test of large tensors has no `@serialTest()`.",
    bad=(edit_case((TEST_MPS, _PLACE, _LARGE_TEST + _PLACE)),),
    good=(edit_case((TEST_MPS, _PLACE, _LARGE_TEST.replace("    @large", "    @serialTest()\n    @large") + _PLACE)),),
)
def large_test(change: Change) -> Iterator[Remark]:
    """A test of large tensors says how much memory it takes, and runs alone (186927, 156100)."""
    for file in change.tests:
        if not any(word in file.after for word in _LARGE) or not file.path.endswith(".py"):
            continue
        try:
            tree = ast.parse(file.after)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.lineno in file.added:
                names = [ast.unparse(decorator) for decorator in node.decorator_list]
                if any(n.startswith(_LARGE) for n in names) and not any(n.startswith(_ALONE) for n in names):
                    what = f"`{node.name}` takes much memory and may run beside others"
                    yield Remark(file.path, node.lineno, what, "Add `@serialTest()`.")


_TOLERANCE = re.compile(r"\b(?:atol|rtol)\s*=\s*[\d.]|\btol\(|\btoleranceOverride\b|exact_dtype\s*=\s*False")
_LINE = "            self.assertEqual(actual, expected, exact_device=False)\n"


@rule(
    Severity.WARNING,
    "A test sets a tolerance, and no comment says what error was measured.",
    bad=(
        edit_case((TEST_MPS, _LINE, _LINE.replace("exact_device=False", "exact_device=False, atol=1e-2, rtol=1e-2"))),
    ),
    good=(
        edit_case(
            (
                TEST_MPS,
                _LINE,
                "            # float16 is off by 1 ULP, 9.8e-4\n"
                + _LINE.replace("exact_device=False", "atol=1e-3, rtol=1e-3"),
            )
        ),
        edit_case((TEST_MPS, _LINE, _LINE + _LINE)),
    ),
)
def loosened_tolerance(change: Change) -> Iterator[Remark]:
    """A tolerance is measured, not guessed (182109): a change that sets one says beside it what the error is."""
    for file in change.tests:
        lines = file.after.splitlines()
        removed = {" ".join(line.split()) for line in file.removed}
        for number in sorted(file.added):
            line = lines[number - 1]
            before = lines[number - 2] if number > 1 else ""
            match = _TOLERANCE.search(line)
            if (
                match
                and "#" not in line
                and not before.lstrip().startswith("#")
                and " ".join(line.split()) not in removed
            ):
                what = f"a tolerance is set (`{match[0].strip()}`), and nothing says what the error is"
                hint = "Measure it, and say it in a comment: `porter verify` has the ULP of each dtype."
                yield Remark(file.path, number, what, hint, match.start() + 1)


_MAKING = frozenset(
    ("tensor", "rand", "randn", "randint", "ones", "zeros", "arange", "linspace", "empty", "full", "eye", "randperm")
)
_DEVICELESS = """class TestPlanted(TestCase):
    def test_planted(self):
        x = torch.randn(3)
        self.assertEqual(torch.exp(x), x.exp())


"""


@rule(
    Severity.ERROR,
    "A new test of test_mps.py makes tensors, and names no device.",
    bad=(edit_case((TEST_MPS, _PLACE, _DEVICELESS + _PLACE)),),
    good=(edit_case((TEST_MPS, _PLACE, _DEVICELESS.replace("randn(3)", 'randn(3, device="mps")') + _PLACE)),),
)
def test_without_device(change: Change) -> Iterator[Remark]:
    """A test that forgets its device tests the CPU (195300)."""
    for file in change.tests:
        if file.path != TEST_MPS:
            continue
        try:
            tree = ast.parse(file.after)
        except SyntaxError as error:
            yield Remark(file.path, error.lineno or 0, "Python cannot read this file", "Mend the syntax.")
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test") and node.lineno in file.added:
                makes = [call for call in ast.walk(node) if isinstance(call, ast.Call) and _makes_tensor(call)]
                words = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
                    n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
                } | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}  # fmt: skip
                if makes and not any("mps" in word or "device" in word for word in words if isinstance(word, str)):
                    what = f"`{node.name}` makes tensors and names no device: it tests the CPU"
                    yield Remark(file.path, makes[0].lineno, what, 'Pass `device="mps"`.')


def _makes_tensor(call: ast.Call) -> bool:
    is_torch = (
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "torch"
    )
    return is_torch and isinstance(call.func, ast.Attribute) and call.func.attr in _MAKING
