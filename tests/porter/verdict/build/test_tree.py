import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS
from porter.verdict.build import registration, sources
from porter.verdict.build.tree import TREES_KEPT, materialise

METAL = f"{KERNELS}/BinaryKernel.metal"


def test_the_tree_has_the_plan_and_the_checkout_is_untouched(tmp_path: Path) -> None:
    before = (EMBEDDED_FORK / METAL).read_bytes()
    tree = materialise(EMBEDDED_FORK, {METAL: "// new\n", f"{KERNELS}/New.metal": "// more\n"}, tmp_path)
    assert (tree.root / METAL).read_text() == tree.read(METAL) == "// new\n"
    assert tree.kernel_files()[-2:] == [f"{KERNELS}/New.metal", f"{KERNELS}/UnaryKernel.metal"]
    assert (tree.root / NATIVE_FUNCTIONS).resolve() == (EMBEDDED_FORK / NATIVE_FUNCTIONS).resolve()
    assert (EMBEDDED_FORK / METAL).read_bytes() == before == tree.before(METAL).encode()


def test_a_tree_of_a_written_plan_is_that_of_the_plan(tmp_path: Path) -> None:
    """The checkout has the plan's texts; before, one file had others, one was not there, and one is gone."""
    new, gone = f"{KERNELS}/New.metal", f"{KERNELS}/Gone.metal"
    now = (EMBEDDED_FORK / METAL).read_text()
    fork = shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")
    (fork / new).write_text("// new\n")
    earlier = {METAL: "// before\n", new: None, gone: "// gone\n"}
    written = materialise(fork, {METAL: now, new: "// new\n", gone: ""}, tmp_path, earlier)
    assert (written.root / METAL).read_text() == written.read(METAL) == now and written.before(METAL) == "// before\n"
    assert [written.in_checkout(path) for path in (METAL, new, gone, NATIVE_FUNCTIONS)] == [True, False, True, True]
    with pytest.raises(PorterError, match="PTR164"):
        written.before(new)
    before = materialise(fork, {}, tmp_path, earlier)
    assert (before.root / METAL).read_text() == before.read(METAL) == "// before\n"
    assert new not in before.kernel_files() and gone in before.kernel_files() and not before.exists(new)
    assert before.unedited().read(METAL) == "// before\n" and not before.unedited().exists(new)
    assert (fork / METAL).read_text() == now


def test_each_plan_has_one_tree(tmp_path: Path) -> None:
    one = materialise(EMBEDDED_FORK, {METAL: "a"}, tmp_path)
    assert materialise(EMBEDDED_FORK, {METAL: "a"}, tmp_path).root == one.root
    assert materialise(EMBEDDED_FORK, {METAL: "b"}, tmp_path).root != one.root


def test_headers_change_the_digest_and_kernels_do_not(tmp_path: Path) -> None:
    plain = materialise(EMBEDDED_FORK, {}, tmp_path).headers_digest()
    assert materialise(EMBEDDED_FORK, {METAL: "a"}, tmp_path).headers_digest() == plain
    assert materialise(EMBEDDED_FORK, {"c10/metal/common.h": "a"}, tmp_path).headers_digest() != plain


def test_old_trees_are_removed_unless_in_use(tmp_path: Path) -> None:
    made = [materialise(EMBEDDED_FORK, {METAL: str(i)}, tmp_path).root for i in range(TREES_KEPT + 3)]
    assert all(root.is_dir() for root in made)
    for root in made[:2]:
        os.utime(root, (0, 0))
    materialise(EMBEDDED_FORK, {METAL: "another"}, tmp_path)
    assert [root.is_dir() for root in made] == [False, False] + [True] * (TREES_KEPT + 1)


def test_a_tree_that_another_process_is_removing_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{KERNELS}/UnaryKernel.metal"
    (materialise(EMBEDDED_FORK, {}, tmp_path).root / path).unlink()
    monkeypatch.setattr(shutil, "rmtree", lambda folder, **_options: None)  # as one that takes long
    assert (materialise(EMBEDDED_FORK, {}, tmp_path).root / path).is_file()


def test_a_tree_that_another_process_removes_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Path.iterdir

    def list_with_one_that_is_gone(folder: Path) -> Iterator[Path]:
        yield from listed(folder)
        yield folder / ("0" * 24)

    monkeypatch.setattr(Path, "iterdir", list_with_one_that_is_gone)
    assert materialise(EMBEDDED_FORK, {METAL: "a"}, tmp_path).root.is_dir()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    tree = materialise(EMBEDDED_FORK, {}, tmp_path)
    with pytest.raises(PorterError) as refused:
        tree.read("aten/none.h")
    assert refused.value.code == "PTR164"


def test_the_host_files_of_an_operator(tmp_path: Path) -> None:
    tree = materialise(EMBEDDED_FORK, {}, tmp_path)
    yaml = tree.read(NATIVE_FUNCTIONS)
    for base, stub, file in (("copysign", "copysign_stub", "BinaryKernel.mm"), ("exp", "exp_stub", "UnaryKernel.mm")):
        kernels = registration.generate(yaml, [base], tmp_path / base).kernels
        assert [Path(f).name for f in sources.operation_files(tree, kernels, [stub])] == [file]


def test_a_row_whose_kernel_is_gone_is_refused(tmp_path: Path) -> None:
    old = f"{Path(KERNELS).parent}/operations/BinaryOps.mm"
    tree = materialise(EMBEDDED_FORK, {old: "// gone\n"}, tmp_path)
    kernels = registration.generate(tree.read(NATIVE_FUNCTIONS), ["atan2"], tmp_path / "g").kernels
    with pytest.raises(PorterError) as refused:
        sources.operation_files(tree, kernels, ["copysign_stub"])
    assert refused.value.code == "PTR165"
    assert "atan2_out_mps" in refused.value.what


def test_functors_are_those_registered_and_not_macro_parameters(tmp_path: Path) -> None:
    text = "#define REGISTER_TWO(NAME) \\\n  REGISTER_BINARY_OP(NAME, int, int)\n\nREGISTER_TWO(gcd);\n"
    assert sources.functors_in(text) == {"gcd"}
