from pathlib import Path

import pytest

from porter.core.errors import PorterError
from porter.verdict.build import registration

MIXED = """\
- func: sin(Tensor self) -> Tensor
  device_check: NoCheck   # TensorIterator
  structured_delegate: sin.out
  variants: function, method
  tags: [core, pointwise]

- func: atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  device_check: NoCheck   # TensorIterator
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU, CUDA, MPS, MTIA, NotAKeyOfThisWheel: atan2_out
  tags: [core, pointwise, not_a_tag_of_this_wheel]

- func: atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)
  device_check: NoCheck   # TensorIterator
  structured_delegate: atan2.out
  variants: method

- func: atan2(Tensor self, Tensor other) -> Tensor
  device_check: NoCheck   # TensorIterator
  structured_delegate: atan2.out
  variants: method, function
"""


def test_rows_have_their_line_and_schema() -> None:
    found = registration.rows(MIXED, ["atan2"])
    assert [(r.name, r.line) for r in found] == [("atan2.out", 7), ("atan2_", 15), ("atan2", 20)]
    assert found[1].schema == "atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)"


def test_structured_wrappers_for_the_shared_kernel(tmp_path: Path) -> None:
    made = registration.generate(MIXED, ["atan2"], tmp_path)
    assert [(k.row, k.symbol) for k in made.kernels] == [("atan2.out", "structured_atan2_out")]
    (source,) = made.sources
    text = source.read_text()
    assert "TORCH_LIBRARY_IMPL(aten, MPS, m)" in text
    for name in ("atan2", "atan2_", "atan2.out"):
        assert f'm.impl("{name}",' in text
    header = (made.include / "ATen/ops/atan2_native.h").read_text()
    assert "struct TORCH_API structured_atan2_out : public at::meta::structured_atan2" in header


def test_every_row_gets_the_tag_that_the_wheel_asks_for(tmp_path: Path) -> None:
    arguments = "(Tensor(a!) self, {0}, *, Generator? generator=None) -> Tensor(a!)\n  variants: method\n  dispatch:\n"
    text = "".join(
        f"- func: {name}_{arguments.format(given)}    MPS: {name}_mps_\n  autogen: {name}, {name}.out\n\n"
        for name, given in (("uniform", "float from=0, float to=1"), ("exponential", "float lambd=1"))
    )
    made = registration.generate_parts(text, [("uniform", "exponential")], tmp_path)
    assert [kernel.symbol for kernel in made.kernels] == ["uniform_mps_", "exponential_mps_"]


def test_a_functional_form_of_another_name_goes_with_its_operator(tmp_path: Path) -> None:
    text = """\
- func: normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)
  variants: method
  dispatch:
    MPS: normal_mps_
  autogen: normal.out

- func: normal_functional(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor
  dispatch:
    CompositeExplicitAutograd: normal_functional
"""
    made = registration.generate(text, ["normal"], tmp_path)
    assert [(kernel.row, kernel.symbol) for kernel in made.kernels] == [("normal_", "normal_mps_")]
    registration.native_headers(text, ["normal"], tmp_path)
    header = (tmp_path / "ATen/ops/normal_native.h").read_text()
    assert "normal_mps_(" in header and "normal_functional(" in header


def test_a_separate_mps_kernel_is_named_in_the_header(tmp_path: Path) -> None:
    text = MIXED.replace("CPU, CUDA, MPS,", "CPU, CUDA,").replace(
        "  tags: [core, pointwise, not", "    MPS: atan2_out_mps\n  tags: [core, pointwise, not"
    )
    registration.native_headers(text, ["atan2"], tmp_path)
    assert "structured_atan2_out_mps" in (tmp_path / "ATen/ops/atan2_native.h").read_text()


def test_the_same_rows_leave_the_files_untouched(tmp_path: Path) -> None:
    (first,) = registration.generate(MIXED, ["atan2"], tmp_path).sources
    before = first.stat().st_ino
    registration.generate(MIXED, ["atan2"], tmp_path)
    assert first.stat().st_ino == before


OLDER = """\
- func: nansum(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor
  variants: function, method
  dispatch:
    MPS: nansum_mps
"""


def test_a_row_that_lacks_the_last_arguments_of_the_wheels_has_calls_without_them(tmp_path: Path) -> None:
    (source,) = registration.generate(OLDER, ["nansum"], tmp_path).sources
    header = (tmp_path / "include/ATen/ops/nansum_native.h").read_text()
    assert "bool keepdim=false);" in header and "dtype" not in header.partition("namespace at {")[2]
    text = source.read_text()
    assert "return nansum_mps(self, dim, keepdim);\n" in text
    assert 'TORCH_CHECK(dtype == ::std::nullopt, "nansum_mps does not take dtype");' in text
    assert "return at::native::nansum_mps(self, dim, keepdim, dtype);" in text


ALIASES = "\n".join(["  a0: &a0 x", *(f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9))])


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("CPU, CUDA, MPS,", "CPU, CUDA,", "PTR161", 7),
        ("structured_delegate: atan2.out\n  variants: method\n", "structured_delegate: atan3.out\n", "PTR160", 7),
        ("  structured: True", "  structured: [True", "PTR160", 10),
        ("  structured: True", "  structured: True\n" + ALIASES, "PTR160", 11),
        ("Tensor other", "Tensor another", "PTR162", 7),
    ],
)
def test_rows_that_do_not_fit_are_refused(tmp_path: Path, old: str, new: str, code: str, line: int) -> None:
    with pytest.raises(PorterError) as refused:
        registration.generate(MIXED.replace(old, new), ["atan2"], tmp_path)
    assert refused.value.code == code
    assert refused.value.place is not None and refused.value.place.line == line


WHOLE_NUMBERS = """\
- func: triu.out(Tensor self, int diagonal=0, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: triu_cpu
    MPS: triu_mps_out

- func: triu(Tensor self, int diagonal=0) -> Tensor
  structured_delegate: triu.out
  variants: method, function
"""


def test_integers_that_the_wheel_takes_as_symbols_fit(tmp_path: Path) -> None:
    made = registration.generate(WHOLE_NUMBERS, ["triu"], tmp_path)
    assert made.served == ("triu", "triu.out")
    text = made.sources[0].read_text()
    assert "int64_t diagonal" in text and "SymInt diagonal" not in text


def test_dispatched_functions_can_be_declared_again(tmp_path: Path) -> None:
    """As host code does that calls one by its name in `at::mps`."""
    registration.dispatch_headers(["eq"], tmp_path)
    text = (tmp_path / "ATen/ops/eq_mps_dispatch.h").read_text()
    assert "inline at::Tensor eq(const at::Tensor & self, const at::Tensor & other) {" in text
    assert "using" not in text


def test_several_operators_share_a_source(tmp_path: Path) -> None:
    one = registration.generate_parts(MIXED + WHOLE_NUMBERS, [("atan2", "triu")], tmp_path / "one")
    two = registration.generate(MIXED + WHOLE_NUMBERS, ["atan2", "triu"], tmp_path / "two")
    assert (len(one.sources), len(two.sources)) == (1, 2)
    assert one.served == two.served and one.kernels == two.kernels
    text = one.sources[0].read_text()
    assert one.served and all(f'm.impl("{name}",' in text for name in one.served)
