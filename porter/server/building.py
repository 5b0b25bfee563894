"""Builds one library for many operators, so that each is tested without a build of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from porter.core import cache
from porter.core.errors import PorterError
from porter.core.layout import KERNELS
from porter.core.progress import Progress
from porter.server.worker import find_lint
from porter.verdict.backends import host
from porter.verdict.build.tree import Tree, materialise, metal_include
from porter.verdict.errors import raising_porter_errors
from porter.verdict.messages import BuildAnswer, BuildRequest
from porter.verdict.result import VerifyTarget


def build_together(request: BuildRequest, progress: Progress) -> BuildAnswer:
    """Builds the ports of a request, or says what is broken; of old code, where it has no texts, what can be built."""
    try:
        with raising_porter_errors():
            return _build_many(request, progress)
    except PorterError as error:
        return BuildAnswer((), str(error))


def _build_many(request: BuildRequest, progress: Progress) -> BuildAnswer:
    tree = materialise(request.root, request.texts, cache.root())
    progress("build")
    if not request.texts:
        by_base = dict(_build_parts(tree, request.targets))
        return BuildAnswer(tuple(by_base[target.base] for target in request.targets))
    found = find_lint(tree)
    if found:
        return BuildAnswer((), f"{found[0].place}: {found[0].reason}")
    _compile_first_kernels(tree)
    built = host.build_many(tree, request.targets, missing_ok=False)
    libraries = tuple(str(built.library) for _ in request.targets)
    return BuildAnswer(libraries, fork=str(tree.root), findings=built.findings)


def _build_parts(tree: Tree, targets: Sequence[VerifyTarget]) -> Iterator[tuple[str, str]]:
    """The library of each operator: one for all, and halves where that does not build."""
    try:
        with raising_porter_errors():
            library = str(host.build_many(tree, targets, missing_ok=True).library)
    except PorterError:
        if len(targets) == 1:
            yield targets[0].base, ""
            return
        middle = len(targets) // 2
        yield from _build_parts(tree, targets[:middle])
        yield from _build_parts(tree, targets[middle:])
        return
    yield from ((target.base, library) for target in targets)


def _compile_first_kernels(tree: Tree) -> None:
    """Compiles one kernel of each edited file: what is no instance of a template is compiled with any of them."""
    from aten_overlay.metal.build import QUICK, Options, compile_kernels, host_names

    options = Options(include=metal_include(tree.root), optimization=QUICK)
    for path in tree.texts:
        names = host_names(tree.root / path, options) if path.startswith(KERNELS) and path.endswith(".metal") else ()
        if names:
            compile_kernels(tree.root / path, names[:1], options)
