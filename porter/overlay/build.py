"""Builds what an edit touched: each host file and registration on its own, cached by the digest of all that goes in.

A failed compilation is an error with the file and line of the fork; nothing older is ever loaded in its place.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from porter.checkout import NATIVE_FUNCTIONS
from porter.errors import Place, PorterError
from porter.overlay import registration, sources
from porter.overlay.tree import Tree
from porter.overlay.verdict import VerifyTarget

_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<what>.*)$", re.M)
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`']?(?P<symbol>[^'\n]+)")


@dataclass(frozen=True)
class Recipe:
    """How host code is compiled and linked: the compiler, its flags, what they depend on, and the libraries."""

    compiler: Path
    flags: tuple[str, ...]
    link: tuple[str, ...]
    digest: str


@dataclass(frozen=True)
class Built:
    """A loadable library with an operator's host code and registrations, and the rows that it serves."""

    library: Path
    kernels: tuple[registration.Kernel, ...]
    compiled: tuple[str, ...]


def build(tree: Tree, target: VerifyTarget, recipe: Recipe, cache: Path) -> Built:
    """The library for one operator of a tree.

    Raises what `registration.generate` and `sources.operation_files` raise, PTR166 (the fork's host code does not
    compile) and PTR167 (it does not link).
    """
    yaml_text = tree.read(NATIVE_FUNCTIONS)
    made = cache / "generated" / _digest(tree.root.name, target.base)
    found = registration.generate(yaml_text, [target.base], made)
    files = [*sources.library_files(tree), *sources.operation_files(tree, found.kernels, target.stubs)]
    registration.native_headers(yaml_text, sources.native_headers(tree, files), found.include)
    shared = _digest(recipe.digest, *recipe.flags, tree.headers_digest(), _folder_digest(found.include))
    objects, compiled = [], []
    for path, name in [*((tree.root / f, f) for f in files), *((s, s.name) for s in found.sources)]:
        include = ("-I", str(found.include), "-I", str(path.parent))
        built, fresh = _object(path, name, include, recipe, shared, cache)
        objects.append(built)
        compiled += [name] if fresh else []
    return Built(_library(objects, recipe, cache, found.kernels), found.kernels, tuple(compiled))


def _object(
    path: Path, name: str, include: Sequence[str], recipe: Recipe, shared: str, cache: Path
) -> tuple[Path, bool]:
    """The object of one source, and whether it was compiled just now."""
    target = cache / "objects" / f"{_digest(shared, name, path.read_bytes())}.o"
    if target.is_file():
        return target, False
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}")
    language = ("-x", "objective-c++") if path.suffix == ".mm" else ("-x", "c++")
    command = [str(recipe.compiler), *include, *recipe.flags, *language, "-c", str(path), "-o", str(part)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        part.unlink(missing_ok=True)
        raise _compile_error(name, done.stderr)
    part.replace(target)
    return target, True


def _library(objects: Sequence[Path], recipe: Recipe, cache: Path, kernels: Iterable[registration.Kernel]) -> Path:
    target = cache / "libraries" / f"lib{_digest(recipe.digest, *recipe.link, *(o.name for o in objects))}.so"
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}")
    command = [str(recipe.compiler), "-shared", "-Wl,-z,defs", *map(str, objects), *recipe.link, "-o", str(part)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        part.unlink(missing_ok=True)
        raise _link_error(done.stderr, kernels)
    part.replace(target)
    return target


def _compile_error(name: str, errors: str) -> PorterError:
    """The first error, at its place in the fork: the compiler names files by their path in the private tree."""
    match = _ERROR.search(errors)
    if match is None:
        return PorterError("PTR166", f"the host code does not compile:\n{errors.strip()[-1500:]}", Place(name))
    found = match["file"]
    known = next((found[at:] for top in ("/aten/", "/c10/") if (at := found.find(top)) >= 0), f"/{name}")[1:]
    total = len(_ERROR.findall(errors))
    more = f" (and {total - 1} more errors)" if total > 1 else ""
    return PorterError(
        "PTR166", f"the host code does not compile: {match['what']}{more}", Place(known, int(match["line"]))
    )


def _link_error(errors: str, kernels: Iterable[registration.Kernel]) -> PorterError:
    missing = list(dict.fromkeys(m["symbol"].strip() for m in _UNDEFINED.finditer(errors)))
    place = next((k.place for k in kernels if any(f"{k.symbol}::" in s or f"{k.symbol}(" in s for s in missing)), None)
    told = "; ".join(missing[:5]) or errors.strip()[-1500:]
    return PorterError("PTR167", f"the host code does not link: nothing defines {told}", place)


def _digest(*parts: str | bytes) -> str:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


def _folder_digest(folder: Path) -> str:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return _digest(*(part for p in files for part in (str(p.relative_to(folder)), p.read_bytes())))
