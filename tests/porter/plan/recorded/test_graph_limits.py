"""A port has no limit of MPSGraph's, and keeps every other check and branch."""

from __future__ import annotations

import re

import pytest

from porter.core.errors import Place
from porter.plan.recorded.host_function import drop_graph_limits, print_body, replace_graph

KEPT = 'TORCH_CHECK(self.dim() > 0, "a dimension is needed");'


@pytest.mark.parametrize(
    "limit",
    [
        'MPS_CHECK_INT64_OP_SUPPORTED(self, true, "sum");',
        'TORCH_CHECK(is_macos_13_or_newer(X) || !self.is_complex(), "complex numbers need macOS 14");',
        'TORCH_CHECK_NOT_IMPLEMENTED(has_14 || !self.is_complex(), "complex numbers need macOS 14");',
        'if (!is_macos_13_or_newer(MacOSVersion::X)) {\n  TORCH_CHECK(!self.is_complex(), "not yet");\n}',
        'if (!has_14) {\n  TORCH_CHECK(!self.is_complex(), "not yet");\n}',
    ],
)
def test_a_limit_goes(limit: str) -> None:
    body = f"bool has_14 = is_macos_13_or_newer(MacOSVersion::X);\n{limit}\n{KEPT}\n"
    assert drop_graph_limits(body) == f"bool has_14 = is_macos_13_or_newer(MacOSVersion::X);\n{KEPT}\n"


@pytest.mark.parametrize(
    "code",
    [
        KEPT,
        "if (!has_14) {\n  self = self.contiguous();\n}",
        'if (has_14) {\n  TORCH_CHECK(self.dim() > 1, "two are needed");\n}',
        'if (!has_14 && dim) {\n  TORCH_CHECK(false, "not this one");\n}',
        'if (!has_14) {\n  TORCH_CHECK(false, "old");\n} else {\n  self.zero_();\n}',
    ],
)
def test_other_code_stays(code: str) -> None:
    body = f"bool has_14 = is_macos_13_or_newer(MacOSVersion::X);\n{code}\n"
    assert drop_graph_limits(body) == body


def test_a_function_without_its_graph_has_no_variable_for_a_release() -> None:
    body = f"""
  bool has_14 = is_macos_13_or_newer(MacOSVersion::X);
  MPS_CHECK_INT64_OP_SUPPORTED(self, has_14, "sum");
  {KEPT}
  MPSGraph* graph = makeGraph(has_14);
  runMPSGraph(getCurrentMPSStream(), graph, feeds, out);
"""
    text = print_body(replace_graph(body, Place("a.mm"), ()))
    assert KEPT in text and not re.search(r"has_14|MPS_CHECK", text)
