"""Tensors that old code casts to a common type, or conjugates, which no recorded call shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.result_types import write_as_read
from tests.porter.plan.recorded import fork

NAMES = Names(
    {"self": "a", "rest": "b", "out": "out"}, {"self": "Tensor", "rest": "Tensor", "out": "Tensor(a!)"}, code=KeptCode()
)
CASTS = "auto c = castMPSTensor(graph, cached->one, shared); auto d = castMPSTensor(graph, cached->other, shared);"


def test_both_get_the_type_that_the_graph_cast_them_to() -> None:
    names, lines = write_as_read(KeptCode(f"const auto shared = at::result_type(a, b); {CASTS}"), NAMES)
    assert lines == (
        "const auto shared = at::result_type(a, b);",
        "const auto a_cast = a.to(shared);",
        "const auto b_cast = b.to(shared);",
    )
    assert (names.variable("self"), names.show("self"), names.common) == ("a_cast", "a", frozenset({"self", "rest"}))


@pytest.mark.parametrize(
    "old",
    [
        f"auto shared = at::result_type(a, out); {CASTS}",  # what is written is not converted
        "auto shared = at::result_type(a, b); auto c = castMPSTensor(graph, cached->one, shared);",
        f"auto shared = a.scalar_type(); {CASTS}",
        "if (out.is_conj()) { conjugate(out); }",
    ],
)
def test_other_code_changes_nothing(old: str) -> None:
    assert write_as_read(KeptCode(old), NAMES) == (NAMES, ())


def test_a_tensor_that_the_graph_conjugates_is_resolved_after_its_cast() -> None:
    old = f"auto shared = at::result_type(a, b); {CASTS} if (b.is_conj()) {{ conjugate(d); }}"
    names, lines = write_as_read(KeptCode(old), NAMES)
    assert lines[-1] == "const auto b_resolved = b.to(shared).resolve_conj();"
    assert (names.variable("self"), names.variable("rest")) == ("a_cast", "b_resolved")


def test_a_port_reads_what_the_old_graph_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feeds = "    runMPSGraph(stream, cachedGraph->graph(), feeds, output);"
    conjugated = (
        f"    if (self.is_conj()) {{\n      input = [mpsGraph conjugateWithTensor:input name:nil];\n    }}\n{feeds}"
    )
    monkeypatch.setattr(fork, "HOST", fork.HOST.replace(feeds, conjugated))
    text = fork.diff(tmp_path, "turned", fork.turned())
    assert "+  const auto self_resolved = self.resolve_conj();\n" in text
    assert "+  const auto self_resolved_contiguous = self_resolved.contiguous();\n" in text
    assert "+  if (self.is_conj())" not in text
