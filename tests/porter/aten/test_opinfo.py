import ast
from pathlib import Path

import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from porter.aten.opinfo import (
    Mark,
    MarkDecision,
    OpInfoCall,
    decide_mark,
    edit_marks,
    find_opinfos,
    read_dtypes,
    read_marks,
)
from porter.aten.skip_lists import Change
from porter.core.change_set import ChangeSet
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import OPINFOS

SOURCE = """\
op_db = [
    UnaryUfuncInfo(
        "exp",
        dtypes=all_types_and(torch.half),
    ),
    OpInfo('nn.functional.gelu',
           aten_name="gelu",
           variant_test_name='none',
           dtypes=floating_types_and(torch.half, torch.bfloat16),
           dtypesIfMPS=floating_types(),
           decorators=[skipMPS, skipCUDAIfRocm],
           supports_out=False,
           skips=(
               # The first is about (CPU)
               DecorateInfo(unittest.skip("no"), 'TestCommon', 'test_out', device_type='cpu'),
               DecorateInfo(unittest.expectedFailure, 'TestConsistency', 'test_output_match',
                            dtypes=(torch.half, torch.float64)),
               DecorateInfo(toleranceOverride({torch.float16: tol(atol=1e-4, rtol=0.01)}), 'TestConsistency'),
               # numpy computes in double
               DecorateInfo(unittest.expectedFailure, 'TestCommon', 'test_numpy_ref_mps'),
               DecorateInfo(unittest.skip("no"), device_type="mps"),
           )),
    ForeachFuncInfo('exp', dtypes=floating_types()),
]
"""
PORTED = {"float32", "float16", "bfloat16"}


def calls(tmp_path: Path, op: str) -> tuple[OpInfoCall, ...]:
    path = tmp_path / OPINFOS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SOURCE)
    return find_opinfos(Checkout(tmp_path, "a test"), op)


def after(call: OpInfoCall, decisions: list[MarkDecision]) -> str:
    text = ChangeSet({call.file: call.text}, edit_marks(decisions)).apply().get(call.file, call.text)
    ast.parse(text)
    return text


def test_an_operator_is_found_by_name_and_by_aten_name(tmp_path: Path) -> None:
    [exp] = calls(tmp_path, "exp")
    assert (exp.cls, exp.line, exp.key) == ("UnaryUfuncInfo", 2, "exp")
    [gelu] = calls(tmp_path, "gelu")
    assert (gelu.key, gelu.line) == ("nn.functional.gelunone", 6)
    assert gelu.dtypes == frozenset(("float32", "float64", "float16", "bfloat16"))
    assert calls(tmp_path, "erf") == ()


def test_an_operator_of_nn_functional_needs_no_aten_name(tmp_path: Path) -> None:
    path = tmp_path / OPINFOS
    path.parent.mkdir(parents=True)
    path.write_text(
        "op_db = [\n    OpInfo('nn.functional.silu', dtypes=floating_types()),\n    OpInfo('nn.silu'),\n]\n"
    )
    assert [call.key for call in find_opinfos(Checkout(tmp_path, "a test"), "silu")] == ["nn.functional.silu"]


def test_a_mark_is_removed_only_with_its_reason(tmp_path: Path) -> None:
    [call] = calls(tmp_path, "gelu")
    decisions = [decide_mark(mark, PORTED) for mark in read_marks(call)]
    assert_expected_inline(
        "\n".join(f"{d.mark.line} {d.change.value}: {d.why}" for d in decisions),
        """\
10 removed: dtypes= holds on MPS too
11 removed: every dtype of the operator is native now
16 narrowed: float16: native now
20 kept: test_numpy_ref_mps does not test the forward kernel alone
21 removed: every dtype of the operator is native now""",
    )
    changes = ChangeSet({call.file: call.text}, edit_marks(decisions))
    assert_expected_inline(
        changes.diff(context=1).split("+++", 1)[1],
        """\
 b/torch/testing/_internal/common_methods_invocations.py
@@ -9,4 +9,3 @@
            dtypes=floating_types_and(torch.half, torch.bfloat16),
-           dtypesIfMPS=floating_types(),
-           decorators=[skipMPS, skipCUDAIfRocm],
+           decorators=[skipCUDAIfRocm],
            supports_out=False,
@@ -16,3 +15,3 @@
                DecorateInfo(unittest.expectedFailure, 'TestConsistency', 'test_output_match',
-                            dtypes=(torch.half, torch.float64)),
+                            dtypes=(torch.float64,)),
                DecorateInfo(toleranceOverride({torch.float16: tol(atol=1e-4, rtol=0.01)}), 'TestConsistency'),
@@ -20,3 +19,2 @@
                DecorateInfo(unittest.expectedFailure, 'TestCommon', 'test_numpy_ref_mps'),
-               DecorateInfo(unittest.skip("no"), device_type="mps"),
            )),
""",
    )


def test_a_dtype_that_is_not_ported_keeps_the_marks_that_cover_it(tmp_path: Path) -> None:
    [call] = calls(tmp_path, "gelu")
    decisions = [decide_mark(mark, {"float32", "float16"}) for mark in read_marks(call)]
    assert [d.change.name for d in decisions] == ["KEPT", "KEPT", "NARROWED", "KEPT", "KEPT"]
    assert decisions[0].why == "bfloat16: not part of the port"


@given(st.data())
def test_removing_any_marks_leaves_valid_python_and_the_other_marks(data: st.DataObject) -> None:
    checkout = Checkout(Path("/nowhere"), "a test").layer({OPINFOS: SOURCE})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkout, "exists", lambda self, path: True)
        [call] = find_opinfos(checkout, "gelu")
        found = read_marks(call)
        gone: list[Mark] = data.draw(st.lists(st.sampled_from(found), unique_by=lambda m: m.line))
        text = after(call, [MarkDecision(mark, Change.REMOVED, (), "") for mark in gone])
        [again] = find_opinfos(checkout.layer({OPINFOS: text}), "gelu")
    assert [m.text for m in read_marks(again)] == [m.text for m in found if m not in gone]


def test_an_argument_that_would_be_empty_goes_with_its_line() -> None:
    [call] = find_opinfos(Checkout(EMBEDDED_FORK, "embedded"), "ceil")
    every = {d.removeprefix("torch.") for d in call.dtypes or ()}
    decisions = [decide_mark(mark, every) for mark in read_marks(call)]
    assert [d.change for d in decisions] == [Change.REMOVED, Change.REMOVED]
    text = after(call, decisions)
    assert text.count("skips=") == call.text.count("skips=") - 1
    assert text.count("dtypesIfMPS=") == call.text.count("dtypesIfMPS=") - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("floating_types_and(torch.half)", {"float32", "float64", "float16"}),
        ("all_types()", {"float32", "float64", "uint8", "int8", "int16", "int32", "int64"}),
        ("custom_types(torch.float32,\n torch.bool)", {"float32", "bool"}),
        ("_dispatch_dtypes((torch.half,))", {"float16"}),
        ("{torch.cfloat}", {"complex64"}),
        ("all_types_and(*SOME)", None),
        ("{torch.half, torch.bool}", {"float16", "bool"}),
        ("floating_types_and(torch.half, *SOME)", None),
        ("floating_types_and(torch.half, key=torch.bool)", None),
        ("mine.floating_types()", None),
        ("TYPES", None),
    ],
)
def test_dtype_groups_are_read_or_left_alone(text: str, expected: set[str] | None) -> None:
    assert read_dtypes(ast.parse(text, mode="eval").body) == expected
