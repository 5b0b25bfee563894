"""Results that a graph wrote, or memory like theirs where they were strided."""

from __future__ import annotations

import pytest

from porter.languages.source import Source
from porter.plan.recorded.corrections import without_scratch
from porter.plan.recorded.target import Target

BODY = """
  bool gathers = needsGather(output);
  {declared}
  Placeholder outputPlaceholder = Placeholder(cachedGraph->outputTensor_, r);
  {copied}
  return output;
"""
COPY = "if (gathers) { output.copy_(r); }"


def change(declared: str, copied: str = COPY) -> str:
    function = Source.parse("Act.mm", "Tensor act() { return output; }").functions()[0]
    body = BODY.format(declared=declared, copied=copied)
    return without_scratch(Target("Act.mm", function, body, {"self": "self", "result0": "output"}, frozenset())).body


@pytest.mark.parametrize(
    "value",
    [
        "gathers ? at::empty_like(output, LEGACY_CONTIGUOUS_MEMORY_FORMAT) : output",
        "!mps::needsGather(output) ? output : output.contiguous()",
    ],
)
def test_the_graph_wrote_the_result_or_memory_like_it(value: str) -> None:
    made = change(f"Tensor r = {value};")
    assert "copy_" not in made and "Tensor r" not in made
    assert "Placeholder(cachedGraph->outputTensor_, output);" in made


@pytest.mark.parametrize(
    ("declared", "copied"),
    [
        ("Tensor r = gathers ? at::empty_like(self) : output;", COPY),  # of another tensor
        ("Tensor r = gathers ? at::empty_like(output) : self;", COPY),  # the result is not written
        ("Tensor r = gathers ? at::empty_like(output) : output; r = self;", COPY),
        ("Tensor r = gathers ? at::empty_like(output) : output;", ""),
    ],
)
def test_other_memory_stays(declared: str, copied: str) -> None:
    assert change(declared, copied) == BODY.format(declared=declared, copied=copied)
