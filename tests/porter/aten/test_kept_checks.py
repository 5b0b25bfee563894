"""Functions of MPS that check a range for some element types only."""

from __future__ import annotations

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.operator import Migration, Operator, find_migrations
from porter.core.checkout import Checkout
from porter.core.layout import NATIVE, NATIVE_FUNCTIONS, OPERATIONS

ROWS = """\
- func: spread_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)
  dispatch:
    CPU, CUDA: spread_
    MPS: spread_mps_
- func: spread_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)
  dispatch:
    CPU, CUDA: spread_
    MPS: spread_mps_
"""
SHARED = """\
Tensor& spread_(Tensor& self, int64_t from, std::optional<int64_t> to, std::optional<Generator> gen) {
  auto iter = TensorIterator::borrowing_nullary_op(self);
  random_from_to_stub(iter.device_type(), iter, range, from, gen);
  return self;
}
Tensor& spread_(Tensor& self, std::optional<Generator> gen) {
  auto iter = TensorIterator::borrowing_nullary_op(self);
  random_from_to_stub(iter.device_type(), iter, range, from, gen);
  return self;
}
"""
OWN = """\
namespace at::native {
namespace mps {
template <typename scalar_t>
Tensor& draw(Tensor& self, scalar_t low, scalar_t high) {
  runMPSGraph(stream, cachedGraph->graph(), feeds, self);
  return self;
}
}
Tensor& spread_mps_(Tensor& self, int64_t low, std::optional<int64_t> high, std::optional<Generator> gen) {
  if (isFloatingType(self.scalar_type())) {
    templates::check_from_to_in_range(low, *high - 1, self.dtype());
  }
  return mps::draw<int64_t>(self, low, *high - 1, std::nullopt, MPSGraphRandomDistributionUniform, gen, __func__);
}
Tensor& spread_mps_(Tensor& self, std::optional<Generator> gen) {
  return spread_mps_(self, 0, 2, gen);
}
}
"""
HEADER = """\
DECLARE_DISPATCH(void(*)(TensorIteratorBase&, const uint64_t, const int64_t, std::optional<Generator>), random_from_to_stub)
"""


def migrations(path: Path, own: str) -> list[Migration]:
    files = {
        NATIVE_FUNCTIONS: ROWS,
        f"{NATIVE}/Spread.h": HEADER,
        f"{NATIVE}/Spread.cpp": SHARED,
        f"{OPERATIONS}/Spread.mm": own,
    }
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    fork = Checkout(path, "test")
    found = find_migrations(fork, Operator.read(fork, "spread"))
    return [each for each in found if isinstance(each, Migration)]


def test_a_function_keeps_its_checks_and_calls_the_stub(tmp_path: Path) -> None:
    [found] = migrations(tmp_path, OWN)
    assert found.served.function.name == "spread_.from" and found.target is found.served.entry
    assert found.body is not None
    assert_expected_inline(
        found.body.write(()),
        """\
{
  if (isFloatingType(self.scalar_type())) {
    templates::check_from_to_in_range(low, *high - 1, self.dtype());
  }
  auto iter = TensorIterator::borrowing_nullary_op(self);
random_from_to_stub(iter.device_type(), iter, static_cast<uint64_t>(*high - 1) - static_cast<uint64_t>(low) + 1, low, gen);
return self;
}""",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (isFloatingType(self.scalar_type())) {", "if (high.has_value()) {"),  # whatever the type is
        ("templates::check_from_to_in_range(", "check("),  # no check of shared code
        ("self.scalar_type())) {", "self.scalar_type())) {\n  } else {"),  # a check of all other types
        ("draw<int64_t>", "draw<double>"),  # bounds of another type
        ("MPSGraphRandomDistributionUniform", "MPSGraphRandomDistributionNormal"),
    ],
)
def test_other_functions_join_what_cpu_and_cuda_share(tmp_path: Path, old: str, new: str) -> None:
    found = migrations(tmp_path, OWN.replace(old, new))
    assert [each.body for each in found] == [None, None]


def test_an_overload_that_does_more_than_call_the_kept_one_is_ported(tmp_path: Path) -> None:
    own = OWN.replace(
        "  return spread_mps_(self, 0, 2, gen);", "  self.zero_();\n  return spread_mps_(self, 0, 2, gen);"
    )
    assert [each.served.function.name for each in migrations(tmp_path, own)] == ["spread_.from", "spread_"]
