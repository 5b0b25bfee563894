"""Compiles Metal source for the Metal API stand-in, through `aten_overlay.metal.build`: each kernel on first use."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from aten_overlay import cache, metal, toolchain
from aten_overlay.errors import OverlayError
from aten_overlay.lint import Finding, MetalWarning, lint, warn, warn_of_launch
from aten_overlay.metal import compiler as metal_compiler
from aten_overlay.metal.build import Options, compile_kernels, host_names, preprocess, read_unit
from aten_overlay.metal.language import write_flags
from aten_overlay.metal.source.table import Value
from aten_overlay.runs.journal import note_kernels
from aten_overlay.runs.origin import EXTENSION, OPERATOR

_INCLUDES_SOURCE = re.compile(rb'#\s*include\s*[<"][^>"]*\.metal[>"]')

_LONGEST_PATH = 4096

_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int)
_COMPILE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
_HEAR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t)
# How many calls host code's caller is away, through the functions that C calls here.
_OPENING, _LAUNCHING = 7, 6


@dataclass
class Compiler:
    """The libraries opened so far: where each kernel's source is, and what has been compiled ahead.

    `bundle` are the files of the bundled library and the kernels of each. Kernels that do not compile ahead are
    not compiled again. `_open_findings` are what the lint says of a library's kernels that a launch has to decide.
    """

    frameworks: ctypes.CDLL
    options: Options = field(default_factory=Options)
    bundle: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    _libraries: list[Mapping[str, Path | str]] = field(default_factory=list)
    _open_findings: dict[int, list[Finding]] = field(default_factory=dict)
    _ready: dict[str, Path] = field(default_factory=dict)
    _failed: dict[str, OverlayError] = field(default_factory=dict)
    _callbacks: list[object] = field(default_factory=list)

    def install(self) -> None:
        """Makes this the compiler of every library made from now on."""
        functions = (_OPEN(self._open), _COMPILE(self._compile))
        hear = _HEAR(self._hear)
        self._callbacks += (*functions, hear)
        self.frameworks.porter_set_compiler(*functions)
        self.frameworks.porter_set_listener(hear)

    def set_bundle(self, kernels: Iterable[Path], options: Options, headers: str = "") -> Mapping[Path, OverlayError]:
        """Makes these `.metal` files what the bundled library holds, compiled with `options`; returns what is wrong
        with those that cannot be read, whose kernels it then lacks.

        With a digest of all `headers` that they may include, the names of their kernels are cached.
        """
        bundle, unread = dict[Path, tuple[str, ...]](), dict[Path, OverlayError]()
        for path in kernels:
            try:
                bundle[path] = find_names(path, options, headers)
            except OverlayError as error:
                unread[path] = error
        self.bundle, self.options = bundle, options
        self._ready.clear()
        self._failed.clear()
        self.frameworks.porter_set_bundle("\n".join(map(str, self.bundle)).encode())
        return unread

    def compile_ahead(self, wanted: Callable[[str], bool]) -> Mapping[Path, OverlayError]:
        """Compiles the bundled kernels whose name is wanted, each file's at once; returns what is wrong with files
        that do not compile, which is raised again where one of these kernels is asked for.
        """
        failed: dict[Path, OverlayError] = {}
        for path, bundled in self.bundle.items():
            names = [name for name in bundled if wanted(name)]
            try:
                if names:
                    self._ready.update(dict.fromkeys(names, self._compile_noted(path, names, self.options)))
            except OverlayError as error:
                failed[path] = error
                self._failed.update(dict.fromkeys(names, error))
        return failed

    def _open(self, source: bytes, bundled: int) -> int:
        return self._answer(lambda: self._open_library(source.decode("utf-8", "surrogateescape"), bool(bundled)))

    def _open_library(self, source: str, bundled: bool) -> tuple[int, str]:
        kernels: dict[str, Path | str]
        if bundled:
            kernels = {name: file for file, names in self.bundle.items() for name in names}
        else:
            unit = read_unit(preprocess(source, self.options))
            kernels = {instance.host_name: source for instance in unit.instances}
            findings = lint(unit)
            self._open_findings[len(self._libraries)] = [finding for finding in findings if not finding.is_certain]
            warn(findings, _OPENING)
        self._libraries.append(kernels)
        return len(self._libraries) - 1, "\n".join(kernels)

    def _compile(self, library: int, name: bytes, constants: bytes) -> int:
        def compile_one() -> tuple[int, str]:
            path = self._compile_one(library, name.decode(), constants.decode())
            return int(any(f.kernel == name.decode() for f in self._open_findings.get(library, ()))), str(path)

        return self._answer(compile_one)

    def _hear(self, library: int, kernel: bytes, *group: int) -> int:
        """A launch of a kernel of which the lint could not be certain."""

        def warn_of_it() -> tuple[int, str]:
            findings = [f for f in self._open_findings[library] if f.kernel == kernel.decode()]
            warn_of_launch(findings, group, _LAUNCHING)
            return 0, ""

        return self._answer(warn_of_it)

    def _compile_one(self, library: int, name: str, constants: str) -> Path:
        source = self._libraries[library][name]
        if not constants and isinstance(source, Path):
            if name in self._failed:
                raise self._failed[name]
            if name in self._ready:
                return self._ready[name]
        pairs = (line.split("=", 1) for line in constants.splitlines())
        options = replace(self.options, constants=tuple((int(k) if k.isdigit() else k, _value(v)) for k, v in pairs))
        return self._compile_noted(source, [name], options)

    def _compile_noted(self, source: Path | str, names: Sequence[str], options: Options) -> Path:
        library = compile_kernels(source, names, options)
        note_kernels(library, names, source, OPERATOR if self.bundle else self._name_extension())
        return library

    def _name_extension(self) -> str:
        """The producer of a kernel that compiled code asks for: an extension, by the file of its library."""
        text = ctypes.create_string_buffer(_LONGEST_PATH)
        self.frameworks.porter_find_caller(text, ctypes.c_size_t(len(text)))
        name = Path(text.value.decode(errors="replace")).name
        return f"{EXTENSION} {name}" if name else EXTENSION

    def _answer(self, make: Callable[[], tuple[int, str]]) -> int:
        """Hands a number and a text to C, or -1 and the error."""
        try:
            number, text = make()
        except (OverlayError, OSError, MetalWarning) as error:  # a warning where `python -W error` makes it one
            self.frameworks.porter_set_error(str(error).encode())
            return -1
        self.frameworks.porter_answer(text.encode())
        return number


def find_names(source: Path, options: Options, headers: str) -> tuple[str, ...]:
    """`host_names`, cached if there is a digest of the `headers` that the source may include, and it includes no other
    source.
    """
    text = source.read_bytes()
    if not headers or _INCLUDES_SOURCE.search(text):
        return host_names(source, options)
    own = (repr(options.defines), repr(options.metal_version), *write_flags(), digest_front_end())
    path = cache.root() / "kernel_names" / f"{cache.digest(headers, source.name, text, *own)}.json"
    if not cache.is_intact(path):
        with toolchain.locked(path):  # processes that run the same kernels ask for their names at once
            if not cache.is_intact(path):
                cache.seal(cache.write(path, json.dumps(host_names(source, options)).encode()))
    found: list[str] = json.loads(path.read_text())
    return tuple(found)


@lru_cache(maxsize=1)
def digest_front_end() -> str:
    """A digest of what reads the names of kernels: this package's code, its Metal headers and the compiler."""
    here = Path(metal.__file__).resolve().parent
    code = (path.read_bytes() for path in sorted(here.rglob("*.py")))
    found = metal_compiler.find_clang()
    return cache.digest(*code, metal_compiler.library_digest(), metal_compiler.version(found))


def _value(text: str) -> Value:
    numbers = tuple(float(number) if set(number) & set(".en") else int(number) for number in text.split(","))
    return numbers if len(numbers) > 1 else numbers[0]
