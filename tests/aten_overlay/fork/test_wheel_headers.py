"""What porter writes compiles and runs with the real c10/metal: of the installed wheel, and of the folder that
`PORTER_TEST_HEADERS` names, as well as with the embedded fork's own."""

from __future__ import annotations

import os
import shutil
from functools import lru_cache
from pathlib import Path

import pytest
import torch

from aten_overlay import toolchain
from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import BY_METAL
from porter.core.layout import KERNELS, METAL_HEADERS
from porter.plan.plan import Draft
from porter.plan.planner import plan_operator
from porter.verdict.verify import target_of, verify

# A port of each kind: of one element and of two, complex, promoted, compared, with a scalar.
PORTS = ("erf", "rsqrt", "signbit", "atan2", "eq", "remainder", "lerp")
FILES = ("UnaryKernel.metal", "BinaryKernel.metal")


def list_headers() -> list[Path]:
    named = os.environ.get("PORTER_TEST_HEADERS", "")
    return [toolchain.torch_root() / "include", *([Path(named)] if named else [])]


HEADERS = pytest.mark.parametrize("headers", list_headers(), ids=lambda folder: folder.parent.name)


@lru_cache(maxsize=1)
def written() -> dict[str, str]:
    """The fork's kernel files with every port in them."""
    draft = Draft(Checkout(EMBEDDED_FORK, "test"))
    for op in PORTS:
        plan = plan_operator(draft.fork, op)
        assert plan.complete
        draft = draft.follow(plan.changes)
    return {name: draft.fork.read(f"{KERNELS}/{name}") for name in FILES}


@HEADERS
@pytest.mark.parametrize("name", FILES)
def test_registrations_compile_and_compute(name: str, headers: Path, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_text(written()[name])
    options = build.Options(include=(headers,), optimization=build.QUICK)
    names = build.host_names(source, options)
    unary = name.startswith("Unary")
    plain = [each for each in names if is_of_layout(each, "dense_scalar" if unary else "dense")]
    functors = {each.partition("_dense_")[0] for each in plain}
    assert {"erf", "rsqrt", "signbit"} < functors or {"atan2", "eq", "remainder", "lerp_scalar_weight"} < functors
    library = Library(build.compile_kernels(source, plain, options))
    x, y = torch.tensor([0.5, 2.0, -3.0, 7.0]), torch.tensor([1.5, -2.0, 2.0, 7.0])
    out, flags = torch.zeros(4), torch.zeros(4, dtype=torch.bool)
    if unary:
        library.run("erf_dense_scalar_float_float", [out, x], [4])
        torch.testing.assert_close(out, torch.erf(x))
        library.run("signbit_dense_scalar_bool_float", [flags, x], [4])
        assert torch.equal(flags, torch.signbit(x))
        return
    for op in ("atan2", "remainder"):
        library.run(f"{op}_dense_float_float", [out, x, y], [4])
        torch.testing.assert_close(out, getattr(torch, op)(x, y))
    library.run("eq_dense_bool_float", [flags, x, y], [4])
    assert torch.equal(flags, torch.eq(x, y))
    library.run("lerp_scalar_weight_dense_float_float_float", [out, x, y, torch.tensor([0.25])], [4])
    torch.testing.assert_close(out, torch.lerp(x, y, 0.25))


def is_of_layout(name: str, layout: str) -> bool:
    """Whether nothing but types follows a layout in the name of a kernel."""
    _, separator, types = name.partition(f"_{layout}_")
    return bool(separator) and set(types.split("_")) <= BY_METAL.keys()


@HEADERS
def test_a_verdict_with_the_headers_in_the_place_of_the_forks(headers: Path, tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, fork)
    shutil.rmtree(fork / METAL_HEADERS)
    shutil.copytree(headers / METAL_HEADERS, fork / METAL_HEADERS)
    plan = plan_operator(Checkout(fork, "test"), "atan2")
    verdict = verify(
        fork, plan.changes.apply(), target_of(plan, "atan2"), "(test_output_match or test_layouts) and float32"
    )
    assert verdict.ok and verdict.kernel_calls > 20, verdict.failures
