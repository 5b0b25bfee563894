"""The pair of files that kernels of a family go to, and the text of a pair that the fork lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import ATEN_ROOT, INDEXING, KERNELS, METAL_HEADERS, OPERATIONS, UTILS, spell_include
from porter.languages.directives import read_includes, read_macros
from porter.languages.source import Source
from porter.metal.functor import SCALAR_TRAIT, USES_C10, FunctorStyle
from porter.metal.host import HostStyle, has_registrations, list_kernels, sees_helpers
from porter.metal.macros import MacroBook, MacroFamily
from porter.metal.registration import Line

_LIBRARY = re.compile(
    r"(?:^#if.*\n)?^(?:static )?auto& lib = (?:mps::)?MetalShaderLibrary\w*::[^;]*;\n(?:#else\n.*\n)?(?:#endif.*\n)?",
    re.M,
)
_METAL_HEAD = re.compile(r"^(?:#include <metal_stdlib>|using namespace [^;]*;)\n", re.M)  # no aliases of templates
_ONLY_METHODS = "#define TORCH_ASSERT_ONLY_METHOD_OPERATORS\n"


@dataclass(frozen=True)
class KernelFiles:
    """A kernel file and its host file, with the text of each that has to be created."""

    kernel_file: str
    host_file: str
    created: tuple[tuple[str, str], ...] = ()

    @property
    def header(self) -> str:
        """The header beside the kernel file, for what both sides use."""
        return str(PurePosixPath(self.kernel_file).with_suffix(".h"))


def find_files(checkout: Checkout, family: MacroFamily) -> KernelFiles:
    """Returns the files named after a family, else those that launch its kernels, else a pair like the binary one.

    Raises PTR093 if there is no binary one either.
    """
    usual = _name_files(family)
    others = [(path, f"{OPERATIONS}/{PurePosixPath(path).stem}.mm") for path in checkout.list(KERNELS, ".metal")]
    for kernels, host in [usual, *others]:
        if checkout.exists(kernels) and checkout.exists(host):
            launches = f"exec_{family.value}_kernel" in checkout.read(host)
            if launches or (kernels, host) == usual:
                return KernelFiles(kernels, host)
    return _write_pair(checkout, *_name_files(family))


def read_kernel_style(checkout: Checkout, kernel_file: str) -> FunctorStyle:
    """Returns how a kernel file writes functors; without any, how the binary one does."""
    text = checkout.read(kernel_file)
    model, _ = _name_files(MacroFamily.BINARY)
    style = FunctorStyle.of(text if "_functor {" in text or not checkout.exists(model) else checkout.read(model))
    has_traits = checkout.exists(UTILS) and SCALAR_TRAIT in checkout.read(UTILS)
    return replace(style, scalar_traits=style.scalar_traits or has_traits, qualifies=USES_C10 not in text)


def has_macros(checkout: Checkout, kernel_file: str, lines: Iterable[Line]) -> bool:
    """Whether a kernel file has the macros of these lines itself, or includes the header that has them.

    Kernel files of releases before that header do neither.
    """
    book = MacroBook.read(read_macros(checkout.read(kernel_file)))
    if all(book.expand(line.macro, line.arguments) for line in lines):
        return True
    headers = {path for folder in (KERNELS, METAL_HEADERS) for path in checkout.list(folder, ".h", ".metal")}
    pending, seen = [kernel_file], {kernel_file}
    while pending:
        included = {header.path for header in read_includes(checkout.read(pending.pop()))}
        paths = (headers & {path for header in included for path in (header, f"{ATEN_ROOT}/{header}")}) - seen
        pending += paths
        seen |= paths
    return INDEXING in seen


def read_host_style(checkout: Checkout, host_file: str) -> HostStyle:
    """Returns how a host file names its kernels; without any, how the binary one does."""
    text = checkout.read(host_file)
    _, model = _name_files(MacroFamily.BINARY)
    has_own = has_registrations(text) or not checkout.exists(model)
    return replace(HostStyle.of(text if has_own else checkout.read(model)), used=list_kernels(text))


def find_library(checkout: Checkout, host_file: str) -> str:
    """Returns the lines by which a host file names its library of kernels, or "" if it does not."""
    found = _LIBRARY.search(checkout.read(host_file)) if checkout.exists(host_file) else None
    return found[0] if found else ""


def qualify_library(library: str) -> str:
    """The definition of a library as a place outside of namespace mps spells it."""
    return library.replace("= MetalShaderLibrary", "= mps::MetalShaderLibrary")


def name_library_scope(source: Source, offset: int) -> str:
    """`mps::` for a place of a host file from which its library is not seen: that is in namespace mps, as in 2.7."""
    library = _LIBRARY.search(source.text)
    is_inside = library is not None and "mps" in source.list_scopes(library.start())
    return "mps::" if is_inside and not sees_helpers(source, offset) else ""


def _name_files(family: MacroFamily) -> tuple[str, str]:
    usual = f"{family.value.capitalize()}Kernel"
    return f"{KERNELS}/{usual}.metal", f"{OPERATIONS}/{usual}.mm"


def create_pair(checkout: Checkout, stem: str) -> tuple[tuple[str, str], ...]:
    """Returns the paths and texts of a kernel file and a host file of this name, or none if the fork has them.

    Raises PTR093 if there is no binary pair to write them like.
    """
    kernels, host = f"{KERNELS}/{stem}.metal", f"{OPERATIONS}/{stem}.mm"
    if checkout.exists(kernels) and checkout.exists(host):
        return ()
    return _write_pair(checkout, kernels, host).created


def _write_pair(checkout: Checkout, kernels: str, host: str) -> KernelFiles:
    model_kernels, model_host = _name_files(MacroFamily.BINARY)
    models = [path for path in (model_kernels, model_host) if checkout.exists(path)]
    library = _LIBRARY.search(checkout.read(model_host)) if len(models) == 2 else None
    if library is None or checkout.exists(kernels) or checkout.exists(host):
        what = f"no file found for kernels of {PurePosixPath(kernels).stem}"
        raise PorterError("PTR093", what, Place(kernels), "Create it and its host file first.")
    head = "".join(_METAL_HEAD.findall(checkout.read(model_kernels)))
    metal = f"#include <{spell_include(INDEXING)}>\n{head}"
    written = _write_host_file(library, checkout.read(model_host), PurePosixPath(host).stem)
    return KernelFiles(kernels, host, ((kernels, metal), (host, written)))


def _write_host_file(library: re.Match[str], model: str, stem: str) -> str:
    """Returns a host file without kernels, which names its library as the binary one does."""
    named = library[0].replace("= MetalShaderLibrary", "= mps::MetalShaderLibrary")
    named = named.replace(PurePosixPath(_name_files(MacroFamily.BINARY)[0]).stem, stem)
    iterator = re.search(r"^#include <ATen/(?:native/)?TensorIterator\.h>\n", model, re.M)
    return (
        f"{_ONLY_METHODS if _ONLY_METHODS in model else ''}"
        f"{iterator[0] if iterator else '#include <ATen/TensorIterator.h>' + chr(10)}"
        "#include <ATen/native/mps/MetalShaderLibrary.h>\n\n"
        f"namespace at::native {{\n\n{named}}} // namespace at::native\n"
    )
