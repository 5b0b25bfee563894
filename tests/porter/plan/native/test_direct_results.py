"""Results that a graph wrote elsewhere where theirs was strided."""

from __future__ import annotations

from porter.languages.source import Source
from porter.plan.native.direct_results import with_direct_results
from porter.plan.native.target import Target

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
