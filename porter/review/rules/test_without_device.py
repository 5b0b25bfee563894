"""A test that forgets its device tests the CPU (195300)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from porter.core.layout import TEST_MPS
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Case, Rule

_MAKING = frozenset(
    ("tensor", "rand", "randn", "randint", "ones", "zeros", "arange", "linspace", "empty", "full", "eye", "randperm")
)


def _check(change: Change) -> Iterator[Remark]:
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


_PLACE = "instantiate_device_type_tests("
_BAD = """class TestPlanted(TestCase):
    def test_planted(self):
        x = torch.randn(3)
        self.assertEqual(torch.exp(x), x.exp())


"""
RULE = Rule(
    "test-without-device",
    Severity.ERROR,
    "A new test of test_mps.py makes tensors, and names no device.",
    _check,
    bad=(Case(edits=((TEST_MPS, _PLACE + "T", _BAD + _PLACE + "T"),)),),
    good=(Case(edits=((TEST_MPS, _PLACE + "T", _BAD.replace("randn(3)", 'randn(3, device="mps")') + _PLACE + "T"),)),),
)
