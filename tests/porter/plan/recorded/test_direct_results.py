"""Results that a graph wrote elsewhere where theirs was strided."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.aten.implementations import Implementation
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.languages.source import Source
from porter.plan.recorded.corrections import resize_outputs, with_direct_results
from porter.plan.recorded.target import Target

BODY = """
  auto out = Placeholder(cachedGraph->outputTensor_, {when} ? output_ : {result}, nil, false);
  runMPSGraph(stream, cachedGraph->graph(), feeds, out);
  if (gathers) {{
    output.copy_(output_);
  }}
  return output;
"""


def change(when: str = "gathers", result: str = "output") -> str:
    function = Source.parse("Act.mm", "Tensor act() { return output; }").functions()[0]
    body = BODY.format(when=when, result=result)
    return with_direct_results(Target("Act.mm", function, body, {"result0": "output"}, frozenset())).body


def test_the_copy_of_what_the_graph_wrote_elsewhere_goes() -> None:
    assert "copy_" not in change() and "return output;" in change()


def test_a_copy_under_another_condition_stays() -> None:
    assert "output.copy_(output_);" in change(when="isStrided")


def test_a_copy_to_what_is_no_result_stays() -> None:
    assert "output.copy_(output_);" in change(result="scratch")


def replace_outputs(folder: Path, parameter: str, written: str) -> str:
    text = (
        f"Tensor& act(const Tensor& self, {parameter}) {{\n  if (keepdim) {{\n    {written}\n  }}\n  return out;\n}}\n"
    )
    (folder / "Act.mm").write_text(text)
    function = Source.parse("Act.mm", text).functions()[0]
    act = Implementation("Act.mm", "act", function.start, function.end, Source.parse("Act.mm", text).place(0), function)
    return ChangeSet({"Act.mm": text}, tuple(resize_outputs(Checkout(folder, "test"), act))).apply().get("Act.mm", text)


@pytest.mark.parametrize(
    ("parameter", "written", "resized"),
    [
        ("Tensor& out", "out = at::empty(IntArrayRef(shape), dtype);", "resize_output(out, IntArrayRef(shape));"),
        ("at::Tensor &out", "out = at::zeros({2, n}, dtype);", "resize_output(out, {2, n}); out.zero_();"),
    ],
)
def test_an_output_of_the_caller_is_resized(tmp_path: Path, parameter: str, written: str, resized: str) -> None:
    text = replace_outputs(tmp_path, parameter, written)
    assert f"if (keepdim) {{\n    at::native::{resized}\n  }}" in text
    assert "#include <ATen/native/Resize.h>" in text and written not in text


@pytest.mark.parametrize(
    ("parameter", "written"),
    [
        ("Tensor out", "out = at::empty(IntArrayRef(shape), dtype);"),
        ("const Tensor& out", "auto out = at::empty(IntArrayRef(shape), dtype);"),
        ("Tensor& out", "out = self.contiguous();"),
    ],
)
def test_what_is_no_output_of_the_caller_or_no_new_tensor_stays(tmp_path: Path, parameter: str, written: str) -> None:
    text = replace_outputs(tmp_path, parameter, written)
    assert written in text and "Resize" not in text
