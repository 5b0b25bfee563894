"""What is left of a function whose graph kernels take the place of."""

from __future__ import annotations

import pytest

from porter.core.errors import Place
from porter.plan.recorded.host_function import replace_graph

BODY = """
  TORCH_CHECK(self.dim() > 0);

  // COMMENT
  @autoreleasepool {
    auto cachedGraph = LookUpOrCreateCachedGraph<Graph>(key, [&](auto mpsGraph, auto newCachedGraph) {});
    runMPSGraph(getCurrentMPSStream(), cachedGraph->graph(), feeds, out);
  }
"""


@pytest.mark.parametrize("comment", ["Run the graph", "MPSGraph has this operation as of macOS 13."])
def test_a_comment_on_the_graph_goes_with_it(comment: str) -> None:
    host = replace_graph(BODY.replace("COMMENT", comment), Place("Turned.mm", 1), ())
    assert host.text.strip() == "TORCH_CHECK(self.dim() > 0);\n\n  ;"


def test_another_comment_stays() -> None:
    assert (
        "// Rows are sorted"
        in replace_graph(BODY.replace("COMMENT", "Rows are sorted"), Place("Turned.mm", 1), ()).text
    )
