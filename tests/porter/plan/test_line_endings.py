"""A fork with CRLF gets the same port, each line ended as those of its file."""

from __future__ import annotations

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.plan.planner import plan_operator


@pytest.mark.parametrize("op", ["atan2", "erf", "floor_divide", "lerp", "eq"])
def test_the_port_of_a_crlf_fork_is_that_of_the_fork_with_crlf(
    op: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("fork")
    for path in EMBEDDED_FORK.rglob("*"):
        if path.is_file():
            copy = root / path.relative_to(EMBEDDED_FORK)
            copy.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes()
            copy.write_bytes(data if path.name == ".clang-format" else data.replace(b"\n", b"\r\n"))
    wanted = plan_operator(Checkout(EMBEDDED_FORK, "test"), op).changes.apply()
    found = plan_operator(Checkout(root, "test"), op).changes.apply()
    assert found == {path: text.replace("\n", "\r\n") for path, text in wanted.items()}
