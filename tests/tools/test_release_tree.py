"""What tools/release_tree.py takes from a release and from sources, and what it says does not fit."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.layout import MPS, NATIVE_FUNCTIONS, OPERATION_UTILS, OPERATIONS, VERSION

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import release_tree

RELEASE = {
    "torch/version.py": "__all__ = ['__version__']\n__version__ = '2.15.0+cpu'\n",
    "torch/testing/lists.py": "NEW = 1\n",
    "torch/include/c10/metal/utils.h": "// new\n",
    "torch/include/ATen/Context.h": "// new\n",
    "torch/include/ATen/CPUFunctions.h": "// generated\n",
    "torch/include/ATen/ops/sum.h": "// generated\n",
    "torch/include/ATen/native/mps/OperationUtils.h": """\
#pragma once
namespace at::native::mps {
class Library {
 public:
  Library() = default;
  virtual ~Library() = 0;
  void compile(const std::string& name) const;
  void run(int count);
  int size() { return helper(1); }
};
std::string describe(
    const Tensor& tensor);
inline bool is_dense(const Tensor& tensor) { return tensor.is_contiguous(); }
} // namespace at::native::mps
""",
    "torchgen/model.py": "# new\n",
    "torchgen/packaged/ATen/native/native_functions.yaml": """\
- func: first(Tensor self) -> Tensor
  dispatch:
    MPS: first_mps

- func: second.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, MPS: second_out

- func: third(Tensor self) -> Tensor
  dispatch:
    MPS: third_mps
""",
    "torchgen/packaged/ATen/native/tags.yaml": "- tag: core\n",
    "torchgen/packaged/ATen/templates/Functions.h": "// template\n",
    "torchgen/packaged/autograd/derivatives.yaml": "- name: first(Tensor self) -> Tensor\n",
}
SOURCES = {
    OPERATION_UTILS: """\
namespace at::native::mps {
void Library::run(int count) {}
void Library::stop() {}
} // namespace at::native::mps
""",
    f"{MPS}/Older.h": "// of an older release\n",
    f"{OPERATIONS}/First.mm": """\
namespace at::native {
Tensor first_mps(const Tensor& self) {
  return self;
}
TORCH_IMPL_FUNC(second_out_mps)(const Tensor& self, const Tensor& out) {}
} // namespace at::native
""",
    "aten/src/ATen/Context.h": "// old\n",
    "torchgen/model.py": "# old\n",
    "c10/core/Device.h": "// old\n",
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_tree_has_what_a_release_ships_and_sources_have_beside_it(tmp_path: Path) -> None:
    release, old = write(tmp_path / "release", RELEASE), write(tmp_path / "old", SOURCES)
    newer = write(tmp_path / "newer", {f"{OPERATIONS}/Third.mm": "Tensor third_mps(const Tensor& self) {}\n"})
    tree = tmp_path / "tree"
    release_tree.assemble(release, [old, newer], tree)
    assert (tree / "aten/src/ATen/Context.h").read_text() == "// new\n"
    assert (tree / "torchgen/model.py").read_text() == "# new\n"
    assert (tree / "c10/core/Device.h").read_text() == "// old\n"
    assert (tree / VERSION).read_text() == "2.15.0\n"
    assert (tree / NATIVE_FUNCTIONS).is_file()
    assert not (tree / "aten/src/ATen/ops").exists() and not (tree / "aten/src/ATen/CPUFunctions.h").exists()
    assert (tree / f"{OPERATIONS}/Third.mm").is_file() and (tree / f"{OPERATIONS}/First.mm").is_file()


def test_what_does_not_fit_is_listed_with_its_place(tmp_path: Path) -> None:
    release, old = write(tmp_path / "release", RELEASE), write(tmp_path / "old", SOURCES)
    release_tree.assemble(release, [old], tmp_path / "tree")
    misfits = release_tree.list_misfits(tmp_path / "tree", release)
    assert_expected_inline(
        "\n".join(f"{misfit.place}: {misfit.what}" for misfit in misfits),
        """\
aten/src/ATen/native/native_functions.yaml:10: third dispatches MPS to third_mps, which no host file defines
aten/src/ATen/native/mps/operations/First.mm:5: no row dispatches MPS to second_out_mps
aten/src/ATen/native/mps/OperationUtils.h:7: no host file defines compile
aten/src/ATen/native/mps/OperationUtils.h:11: no host file defines describe
aten/src/ATen/native/mps/OperationUtils.mm:3: Library declares no stop
aten/src/ATen/native/mps/Older.h:1: the release has no such header""",
    )


OLD_HEADER = f"{MPS}/OperationUtils.h"
OLDER = {
    OLD_HEADER: """\
namespace at::native::mps {
enum class Version { FIRST_PLUS = 0, SECOND_PLUS };
bool is_at_least(Version version);
inline bool needs_copy(const Tensor& tensor) { return !tensor.is_contiguous(); }
inline bool is_dense(const Tensor& tensor) { return tensor.is_contiguous(); }
} // namespace at::native::mps
""",
    f"{OPERATIONS}/Uses.mm": """\
namespace at::native {
static bool is_at_least(int version) { return true; }
Tensor first_mps(const Tensor& self) {
  if (is_at_least(Version::SECOND_PLUS) && mps::needs_copy(self) && mps::is_dense(self)) {
    return mps::needs_copy(self);
  }
  return self;
}
} // namespace at::native
""",
}


def test_what_only_headers_of_an_older_release_declare_is_listed_where_it_is_used(tmp_path: Path) -> None:
    release, old = write(tmp_path / "release", RELEASE), write(tmp_path / "old", OLDER)
    release_tree.assemble(release, [old], tmp_path / "tree")
    misfits = release_tree.list_misfits(tmp_path / "tree", release, [old])
    used = [f"{misfit.place}: {misfit.what}" for misfit in misfits if misfit.what.startswith("uses")]
    assert_expected_inline(
        "\n".join(used),
        """\
aten/src/ATen/native/mps/operations/Uses.mm:4: uses SECOND_PLUS, which aten/src/ATen/native/mps/OperationUtils.h of the release lacks
aten/src/ATen/native/mps/operations/Uses.mm:4: uses needs_copy, which aten/src/ATen/native/mps/OperationUtils.h of the release lacks""",
    )


def test_host_files_of_an_older_release_are_renamed_where_the_headers_have_the_newer_names(tmp_path: Path) -> None:
    device = {"torch/include/ATen/mps/MPSDevice.h": "TORCH_API bool is_macos_at_least(MacOSVersion version);\n"}
    use = f"{OPERATIONS}/Uses.mm"
    asks = """\
string key = "k" + std::string(name);
static const bool newer = is_macos_13_or_newer(MacOSVersion::MACOS_VER_15_1_PLUS);
if (is_macos_13_or_newer() && is_macos_13_or_newer(MacOSVersion::MACOS_VER_14_4_PLUS) && !needsGather(out)) {
"""
    old = write(tmp_path / "old", {use: asks, OLD_HEADER: ""})
    newer = {**RELEASE, **device}
    release_tree.assemble(write(tmp_path / "release", newer), [old], tmp_path / "tree")
    release_tree.rename(tmp_path / "tree")
    assert_expected_inline(
        (tmp_path / "tree" / use).read_text(),
        """\
std::string key = "k" + std::string(name);
static const bool newer = is_macos_at_least(MacOSVersion::MACOS_15_1);
if (is_macos_at_least(MacOSVersion::MACOS_15_0) && is_macos_at_least(MacOSVersion::MACOS_15_0) && !needsGather(out)) {
""",
    )
    header = (tmp_path / "tree" / OLD_HEADER).read_text()
    assert header.count("inline bool needsGather(") == 1 and header.endswith("} // namespace at::native::mps\n")
    release_tree.rename(tmp_path / "tree")
    assert (tmp_path / "tree" / OLD_HEADER).read_text() == header


def test_a_tree_whose_headers_have_the_older_names_stays(tmp_path: Path) -> None:
    use = f"{OPERATIONS}/Uses.mm"
    old = write(tmp_path / "old", {use: "is_macos_13_or_newer();\n", OLD_HEADER: ""})
    write(tmp_path / "release", {**RELEASE, "torch/include/ATen/mps/MPSDevice.h": "bool is_macos_13_or_newer();\n"})
    release_tree.assemble(tmp_path / "release", [old], tmp_path / "tree")
    release_tree.rename(tmp_path / "tree")
    assert (tmp_path / "tree" / use).read_text() == "is_macos_13_or_newer();\n"
