"""A test of large tensors says how much memory it takes, and runs alone (186927, 156100)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from porter.core.layout import TEST_MPS
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Case, Rule

_LARGE, _ALONE = ("largeTensorTest", "largeTensors"), "serialTest"


def _check(change: Change) -> Iterator[Remark]:
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


_PLACE = "instantiate_device_type_tests("
_BAD = """class TestPlanted(TestCase):
    @largeTensorTest("9GB", device="mps")
    def test_planted(self):
        x = torch.ones(2**33, device="mps", dtype=torch.uint8)
        self.assertEqual(x.sum(), 2**33)


"""
RULE = Rule(
    "large-test",
    Severity.WARNING,
    "A new test of large tensors has no `@serialTest()`.",
    _check,
    bad=(Case(edits=((TEST_MPS, _PLACE + "T", _BAD + _PLACE + "T"),)),),
    good=(
        Case(
            edits=(
                (TEST_MPS, _PLACE + "T", _BAD.replace("    @large", "    @serialTest()\n    @large") + _PLACE + "T"),
            )
        ),
    ),
)
