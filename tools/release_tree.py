"""Assembles a tree of one PyTorch release: what its wheel ships, with host and kernel files from source folders.

    python tools/release_tree.py [--rename] (WHEEL.whl | installed) SOURCES... NEW

A wheel has the rows, tags, templates, torchgen, `torch/testing` and headers of its release, and no `.mm`, `.metal` or
`.cpp` file. These come from SOURCES, whose later folders replace files of earlier ones: a whole older tree first, then
newer files as far as there are any. Prints what does not fit, by file and line, before a verdict fails for it. The
result is for planning and verdicts, not a fork to send upstream. A wheel is read, never imported.

With --rename host files of PyTorch 2.7 ask of macOS what 2.15 has names for, and the backend's header declares what
they call of 2.7's and 2.15's lacks, as it answers on macOS 15.
"""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from aten_overlay import toolchain
from porter.aten.native_functions import NativeFunctions
from porter.core.checkout import Checkout
from porter.core.errors import Place
from porter.core.layout import (
    ATEN,
    ATEN_ROOT,
    C10,
    CLANG_FORMAT,
    DERIVATIVES,
    DEVICE,
    METAL_HEADERS,
    MPS,
    NATIVE,
    NATIVE_FUNCTIONS,
    OPERATIONS,
    VERSION,
)
from porter.languages.lexer import TokenKind
from porter.languages.source import Source, parse_source
from shared.arguments import parser

INSTALLED = "installed"
FOLDERS = ("aten", "c10", "test", "tools", "torch", "torchgen")
# Where a wheel has what a tree has elsewhere: the folder or file of the wheel, then its place in the tree.
PLACES = (
    ("torchgen/packaged/ATen/native", NATIVE),
    ("torchgen/packaged/ATen/templates", f"{ATEN}/templates"),
    ("torchgen/packaged/autograd/derivatives.yaml", DERIVATIVES),
    ("torchgen", "torchgen"),
    ("torch/testing", "torch/testing"),
    ("torch/include/c10", C10),
)
# Folders whose headers a release decides: one that it does not ship is another version's.
DECIDED = (DEVICE, MPS, METAL_HEADERS)
MPS_DEVICE_HEADER, OPERATION_UTILS_HEADER = f"{DEVICE}/MPSDevice.h", f"{MPS}/OperationUtils.h"
_HEADER = (".h", ".hpp", ".inl")
# What host files of 2.7 ask of macOS: a release that 2.15 has no name for is older than all that it supports.
RENAMED = (
    (
        re.compile(r"\bis_macos_13_or_newer\(MacOSVersion::MACOS_VER_(15_\d)_PLUS\)"),
        r"is_macos_at_least(MacOSVersion::MACOS_\1)",
    ),
    (
        re.compile(r"\bis_macos_13_or_newer\((?:MacOSVersion::MACOS_VER_1[34]_\d_PLUS)?\)"),
        "is_macos_at_least(MacOSVersion::MACOS_15_0)",
    ),
    (re.compile(r"(?<![:\w])string(?= (?:\w*key|op_name)\b)"), "std::string"),
)
# What 2.7's OperationUtils.h has for its host files and 2.15's lacks, as it answers on macOS 15.
BRIDGES = {
    "supportsComplex": "inline bool supportsComplex() {\n  return true;\n}",
    "checkSupportsBFloat16": "inline void checkSupportsBFloat16() {}",
    "needsGather": "inline bool needsGather(const TensorBase& t) {\n  return false;\n}",
    "MPS_CHECK_INT64_OP_SUPPORTED": "#define MPS_CHECK_INT64_OP_SUPPORTED(input_tensor, mac_os_13_3_plus, op_name)",
    "log1p": "MPSGraphTensor* log1p(MPSGraph* mpsGraph, MPSGraphTensor* inputTensor);",
    "gatherViewTensor": "Tensor gatherViewTensor(const Tensor& src, Tensor& dst);",
    "scatterViewTensor": "Tensor& scatterViewTensor(const Tensor& src, Tensor& output);",
    "generateKernelDataOffsets": """\
id<MTLBuffer> generateKernelDataOffsets(
    id<MTLComputeCommandEncoder> commandEncoder,
    const TensorIteratorBase& iter,
    bool use_64bit_index = false);""",
    "castToIHFTypes": """\
inline bool is_sorted_as_is(ScalarType type) {
  return type == kInt || type == kLong || type == kFloat || type == kHalf;
}
inline MPSGraphTensor* castToIHFTypes(MPSGraph* graph, MPSGraphTensor* input, const TensorBase& of, bool) {
  const auto type = of.scalar_type();
  return is_sorted_as_is(type) ? input : castMPSTensor(graph, input, isFloatingType(type) ? kFloat : kInt);
}
inline MPSGraphTensor* castFromIHFTypes(MPSGraph* graph, MPSGraphTensor* input, const TensorBase& of, bool) {
  return is_sorted_as_is(of.scalar_type()) ? input : castMPSTensor(graph, input, of.scalar_type());
}""",
}
_SUFFIXES = frozenset({"const", "noexcept", "override", "final"})


@dataclass(frozen=True)
class Misfit:
    """Something of one file that another file of the tree lacks."""

    place: Place
    what: str


def assemble(release: Path, sources: Iterable[Path], new: Path) -> None:
    """Writes the tree. `release` is the folder of an unpacked wheel, or of the installed packages."""
    for folder in sources:
        for name in FOLDERS:
            if (folder / name).is_dir():
                shutil.copytree(folder / name, new / name, symlinks=True, dirs_exist_ok=True)
        for name in (CLANG_FORMAT, VERSION):
            if (folder / name).is_file():
                shutil.copy(folder / name, new / name)
    for origin, place in PLACES:
        if (release / origin).is_file():
            (new / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(release / origin, new / place)
        else:
            leave_out = shutil.ignore_patterns("packaged", "__pycache__", "*.pyc")
            shutil.copytree(release / origin, new / place, dirs_exist_ok=True, ignore=leave_out)
    _copy_headers(release / "torch" / "include" / "ATen", new / ATEN)
    (new / VERSION).write_text(f"{read_version(release)}\n")


def _copy_headers(shipped: Path, folder: Path) -> None:
    """Copies the headers of ATen, but those that torchgen makes: the build of a tree makes its own."""
    for path in sorted(shipped.rglob("*")):
        target = folder / path.relative_to(shipped)
        is_generated = path.is_relative_to(shipped / "ops") or (path.parent == shipped and not target.exists())
        if path.is_file() and path.suffix in _HEADER and not is_generated:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def rename(tree: Path) -> None:
    """Has host files of 2.7 ask of macOS what a tree's headers answer, and the header declare what these files call."""
    checkout = Checkout(tree, "named")
    if "is_macos_at_least" not in checkout.read(MPS_DEVICE_HEADER):
        return
    for path in (path for folder in (MPS, OPERATIONS) for path in checkout.list(folder, ".mm")):
        text = old = checkout.read(path)
        for pattern, newer in RENAMED:
            text = pattern.sub(newer, text)
        if text != old:
            (tree / path).write_text(text)
    header = checkout.read(OPERATION_UTILS_HEADER)
    lacking = [code for name, code in BRIDGES.items() if not re.search(rf"\b{name}\b", header)]
    code, end, rest = header.rpartition("} // namespace at::native::mps")
    if lacking and end:
        (tree / OPERATION_UTILS_HEADER).write_text(code + "\n".join(lacking) + f"\n\n{end}{rest}")


def read_version(release: Path) -> str:
    """The release's version without its build: `2.15.0`."""
    text = (release / "torch" / "version.py").read_text()
    return next(line.split("'")[1].partition("+")[0] for line in text.splitlines() if line.startswith("__version__"))


def list_misfits(tree: Path, release: Path, sources: Iterable[Path] = ()) -> Iterator[Misfit]:
    """What no file defines though a row or a header names it, what is defined though none does, and foreign headers.

    Host files use what headers of their own release declared, those of `sources`, and this release's no longer do.
    """
    checkout = Checkout(tree, "named")
    paths = [path for folder in (MPS, OPERATIONS) for path in checkout.list(folder, ".mm", ".cpp")]
    hosts = [parse_source(path, checkout.read(path)) for path in paths]
    yield from _list_rows(checkout, hosts)
    yield from _list_declared(checkout, hosts)
    yield from _list_lost(checkout, hosts, sources)
    for folder in DECIDED:
        for path in sorted((tree / folder).rglob("*")):
            name = path.relative_to(tree).as_posix()
            if path.suffix in _HEADER and not (release / "torch/include" / name.removeprefix(f"{ATEN_ROOT}/")).exists():
                yield Misfit(Place(name, 1), "the release has no such header")


def _list_rows(checkout: Checkout, hosts: Iterable[Source]) -> Iterator[Misfit]:
    """Rows whose MPS kernel no host file defines, and structured kernels that no row names."""
    functions = [(host, function) for host in hosts for function in host.functions()]
    defined = {function.name for _, function in functions} | _list_instantiated(hosts)
    rows = NativeFunctions.read(checkout).all
    entries = [(row, entry) for row in rows for entry in row.dispatch if "MPS" in entry.keys]
    for row, entry in entries:
        if entry.keys == ("MPS",) and entry.kernel not in defined:
            yield Misfit(row.place, f"{row.name} dispatches MPS to {entry.kernel}, which no host file defines")
    named = {entry.kernel for _, entry in entries}
    for host, function in functions:
        if function.wrapper == "TORCH_IMPL_FUNC" and function.name not in named:
            yield Misfit(host.place(function.start), f"no row dispatches MPS to {function.name}")


def _list_instantiated(hosts: Iterable[Source]) -> set[str]:
    """The first arguments of macros at namespace scope, which may define a function of that name."""
    return {use.arguments[0] for host in hosts for use in host.macro_uses() if use.arguments}


def _list_declared(checkout: Checkout, hosts: Iterable[Source]) -> Iterator[Misfit]:
    """Functions that the backend's headers declare and no file defines, and members defined but not declared."""
    paths = [path for folder in (MPS, OPERATIONS) for path in checkout.list(folder, ".h")]
    headers = [parse_source(path, checkout.read(path)) for path in paths]
    declared = [(header, *name) for header in headers for name in find_declared(header)]
    inline = {function.name for header in headers for function in header.functions()}
    defined = {function.name for host in hosts for function in host.functions()} | _list_instantiated(hosts)
    for header, name, at in declared:
        if name not in defined | inline:
            yield Misfit(header.place(at), f"no host file defines {name}")
    classes = {header.code[at + 1].text for header in headers for at in _find_classes(header)}
    names = {name for _, name, _ in declared} | inline
    for host in hosts:
        for function in host.functions():
            qualifier = _find_qualifier(function.signature, function.name)
            if qualifier in classes and function.name not in names | classes:
                yield Misfit(host.place(function.start), f"{qualifier} declares no {function.name}")


def _list_lost(checkout: Checkout, hosts: Iterable[Source], sources: Iterable[Path]) -> Iterator[Misfit]:
    """Where host files first use a function or an enumerator that only an older header has (`needsGather` of 2.14)."""
    older = [
        parse_source(path, header.read(path))
        for header in (Checkout(folder, "named") for folder in sources)
        for folder in (DEVICE, MPS)
        for path in header.list(folder, ".h")
    ]
    kept = {name for folder in DECIDED for path in checkout.list(folder, ".h") for name in _read_names(checkout, path)}
    declared = {name: header.path for header in older for name in _list_usable(header) if name not in kept}
    defined = {function.name for host in hosts for function in host.functions()}
    for host in hosts:
        used: dict[str, int] = {}
        for token in host.code:
            if token.kind is TokenKind.IDENTIFIER and token.text in declared and token.text not in defined:
                used.setdefault(token.text, token.start)
        for name, at in used.items():
            yield Misfit(host.place(at), f"uses {name}, which {declared[name]} of the release lacks")


def _read_names(checkout: Checkout, path: str) -> set[str]:
    return set(re.findall(r"\w+", checkout.read(path)))


def _list_usable(header: Source) -> Iterator[str]:
    """The functions and enumerators of a header."""
    yield from (function.name for function in header.functions())
    yield from (name for name, _ in find_declared(header))
    for listed in re.findall(r"\benum\b[^{};]*\{([^}]*)\}", header.text):
        yield from re.findall(r"(?:^|,)\s*(?://[^\n]*\s*)*(\w+)", listed)


def find_declared(header: Source) -> Iterator[tuple[str, int]]:
    """The functions that a header declares and does not define, with their offsets; not what is pure or deleted."""
    code = header.code
    bodies = [(function.body_start, function.body_end) for function in header.functions()]
    for at in range(1, len(code) - 1):
        token, before = code[at], code[at - 1]
        is_called = before.kind is not TokenKind.IDENTIFIER and before.text not in ("*", "&", ">")
        if token.kind is not TokenKind.IDENTIFIER or code[at + 1].text != "(" or is_called or token.text.isupper():
            continue
        if before.text in ("return", "new", "else") or any(start <= token.start < end for start, end in bodies):
            continue
        after = header.partners[at + 1] + 1
        while after < len(code) and code[after].text in _SUFFIXES:
            after += 1
        if after < len(code) and code[after].text == ";":
            yield token.text, token.start


def _find_classes(header: Source) -> Iterator[int]:
    code = header.code
    return (at for at in range(len(code) - 1) if code[at].text in ("class", "struct"))


def _find_qualifier(signature: str, name: str) -> str:
    """The class of a member's definition: `Library` of `void Library::compile()`."""
    before = signature.partition(f"::{name}(")[0]
    return before.rpartition(" ")[2].rpartition("::")[2] if f"::{name}(" in signature else ""


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--rename", action="store_true", help="have host files of 2.7 speak of macOS as 2.15 does")
    options.add_argument("release", help="a wheel of torch, or `installed`")
    options.add_argument("sources", type=Path, nargs="+", help="folders with host and kernel files")
    options.add_argument("new", type=Path, help="the tree to write, which must not exist")
    chosen = options.parse_args()
    for folder in chosen.sources:
        if not (folder / MPS).is_dir():
            sys.exit(f"{folder} has no {MPS}: name the root of a source tree")
    if chosen.new.exists():
        sys.exit(f"{chosen.new} exists: name a folder to create")
    with TemporaryDirectory() as unpacked:
        release = toolchain.torch_root().parent
        if chosen.release != INSTALLED:
            if not zipfile.is_zipfile(chosen.release):
                sys.exit(f"{chosen.release} is no wheel; name a .whl file or `{INSTALLED}`")
            with zipfile.ZipFile(chosen.release) as wheel:
                wheel.extractall(unpacked, [name for name in wheel.namelist() if _is_needed(name)])
            release = Path(unpacked)
        if not (release / "torch" / "include" / METAL_HEADERS).is_dir():
            sys.exit(f"{chosen.release} ships no {METAL_HEADERS}: it needs torch 2.7 or later")
        assemble(release, chosen.sources, chosen.new)
        if chosen.rename:
            rename(chosen.new)
        misfits = list(list_misfits(chosen.new, release, chosen.sources))
    print(*(f"{misfit.place}: {misfit.what}" for misfit in misfits), sep="\n")
    print(f"{chosen.new}: {len(misfits)} misfits; rows in {NATIVE_FUNCTIONS}")
    return 0


def _is_needed(name: str) -> bool:
    roots = ("torchgen/", "torch/testing/", "torch/include/ATen/", "torch/include/c10/", "torch/version.py")
    return name.startswith(roots)


if __name__ == "__main__":
    sys.exit(main())
