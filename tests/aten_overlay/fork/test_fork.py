"""The embedded fork is what it says: real ATen rows, kernels that exist, lists that parse, one format, a small size."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
from pathlib import Path

import clang_format
import pytest
import yaml

from porter.core import layout
from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS, OPERATIONS, OPINFOS, TEST_MPS

FORK = EMBEDDED_FORK
NATIVE = FORK / layout.NATIVE
LISTS = FORK / layout.COMMON_MPS
C_LIKE = sorted(p for p in FORK.rglob("*") if p.suffix in {".h", ".cpp", ".mm", ".metal"})


def rows(path: Path) -> dict[str, dict[str, object]]:
    entries = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    return {entry["func"].split("(")[0]: entry for entry in entries}


def mps_kernels() -> dict[str, str]:
    """The kernel of each row that has one for MPS."""
    found = {}
    for name, row in rows(FORK / NATIVE_FUNCTIONS).items():
        for keys, kernel in dict(row.get("dispatch", {})).items():  # type: ignore[call-overload]
            if "MPS" in keys.split(", "):
                found[name] = kernel
    return found


def own_mps_kernels() -> set[str]:
    """The kernels that only MPS has: written in the fork's operations."""
    return {k for k in mps_kernels().values() if k.endswith(("_mps", "_mps_")) or "_mps_" in k}


def operations() -> str:
    return "\n".join(p.read_text() for p in sorted((FORK / OPERATIONS).glob("*.mm")))


def base(name: str) -> str:
    return name.split(".")[0].removesuffix("_")


def test_rows_match_the_installed_torch_except_for_dispatch() -> None:
    spec = importlib.util.find_spec("torchgen")
    assert spec is not None and spec.origin is not None
    theirs = rows(Path(spec.origin).parent / "packaged/ATen/native/native_functions.yaml")
    ours = rows(FORK / NATIVE_FUNCTIONS)
    assert "atan2.out" in ours
    for name, row in ours.items():
        expected = {k: v for k, v in theirs[name].items() if k != "dispatch"}
        assert {k: v for k, v in row.items() if k != "dispatch"} == expected, name


def test_every_structured_delegate_is_declared() -> None:
    ours = rows(FORK / NATIVE_FUNCTIONS)
    delegates = {row["structured_delegate"] for row in ours.values() if "structured_delegate" in row}
    assert delegates and delegates <= ours.keys()


@pytest.mark.parametrize("kernel", sorted(own_mps_kernels()))
def test_every_mps_kernel_is_defined_once(kernel: str) -> None:
    definition = rf"(?:TORCH_IMPL_FUNC\({kernel}\)|CREATE_\w+\({kernel}, |^Tensor&? {kernel}\()"
    assert len(re.findall(definition, operations(), re.MULTILINE)) == 1


def test_every_shared_kernel_has_a_stub_registered_for_mps() -> None:
    registered = set(re.findall(r"REGISTER_(?:DISPATCH|MPS_UNARY_STUB)\((\w+?)(?:_stub)?,", operations()))
    shared = {base(name) for name, kernel in mps_kernels().items() if kernel not in own_mps_kernels()}
    redispatching = {"remainder", "logit"}
    assert redispatching < shared and shared - redispatching <= registered


def test_every_idiom_occurs() -> None:
    text = operations()
    for idiom in (
        r"CREATE_MPS_STRUCTURED_UNARY_TORCH_IMPL_FUNC\(\w+, \w+\)",
        r"REGISTER_MPS_UNARY_STUB\(\w+, \w+\)",
        r"CREATE_MPS_STRUCTURED_BOOLEAN_OP_FUNC\(\w+, \w+, Scalar\)",
        r"dataType\] == MPSDataTypeInt64",
        r'op_name == "\w+"',
        r"is_macos_at_least\(",
        r"eps\.has_value\(\)",
        r"\^BinaryOpFn\(",
        r"alphaTensor = ",
        r"^Tensor& \w+_mps_?\(",
    ):
        assert re.search(idiom, text, re.MULTILINE), idiom


def test_native_operators_have_functors_and_stubs() -> None:
    metal = "\n".join(p.read_text() for p in (FORK / KERNELS).glob("*.metal"))
    functors = set(re.findall(r"struct (\w+)_functor", metal))
    launched = set(re.findall(r'exec_\w+_kernel\(\*?\w+, "(\w+)"', operations()))
    assert functors == launched == {"exp", "copysign", "sub_alpha"}


@pytest.mark.parametrize("path", [LISTS, FORK / OPINFOS, FORK / TEST_MPS], ids=lambda p: p.name)
def test_python_files_parse(path: Path) -> None:
    assert ast.parse(path.read_text()).body


def test_list_entries_are_operators() -> None:
    strings = {
        node.value
        for dictionary in ast.walk(ast.parse(LISTS.read_text()))
        if isinstance(dictionary, ast.Dict | ast.Set)
        for node in (dictionary.keys if isinstance(dictionary, ast.Dict) else dictionary.elts)
        if isinstance(node, ast.Constant)
    }
    known = {base(name) for name in rows(FORK / NATIVE_FUNCTIONS)}
    assert "atan2" in strings
    assert strings - known == {"igamma", "__rmod__"}


def test_every_decorated_opinfo_is_an_operator() -> None:
    names = re.findall(r"^    \w*Info\('(\w+)'", (FORK / OPINFOS).read_text(), re.MULTILINE)
    assert names and set(names) <= {base(name) for name in rows(FORK / NATIVE_FUNCTIONS)}


@pytest.mark.parametrize("path", C_LIKE, ids=lambda p: p.relative_to(FORK).as_posix())
def test_files_have_the_format_of_the_fork(path: Path) -> None:
    package = Path(clang_format.__file__).parent
    command = [str(package / "data/bin/clang-format"), f"--style=file:{FORK / '.clang-format'}"]
    name = path.with_suffix(".cpp") if path.suffix == ".metal" else path
    done = subprocess.run(
        [*command, f"--assume-filename={name}"], input=path.read_text(), capture_output=True, text=True, check=True
    )
    assert done.stdout == path.read_text()


def test_the_fork_is_small_and_holds_only_source_files() -> None:
    files = [p for p in FORK.rglob("*") if p.is_file() and "__pycache__" not in p.parts and ".porter" not in p.parts]
    assert sum(len(p.read_text().splitlines()) for p in files) < 4800
    assert not [p for p in files if p.suffix not in {".h", ".cpp", ".mm", ".metal", ".py", ".yaml", ".txt", ""}]
