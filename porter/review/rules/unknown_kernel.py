"""A kernel name that no library has fails when it is called: "Failed to create function state object" (188129)."""

from __future__ import annotations

from collections.abc import Iterator

from porter.review.change import Change, ChangedFile, Remark
from porter.review.finding import Severity
from porter.review.host_facts import NamedKernel, find_named_kernels
from porter.review.metal_facts import list_functors, list_words
from porter.review.rule import Case, Rule, host_case


def _check(change: Change) -> Iterator[Remark]:
    touched = any(file.is_metal for file in change.files)
    for file in change.host:
        for named in find_named_kernels(file):
            relevant = file.is_added(named.token.start) or touched
            if relevant and named.prefix and not _exists(change, named, file.after):
                what = f"no kernel file has a kernel of the name {named.token.text}"
                yield file.remark(named.token.start, what, "Register it, or name one that is there.")
    yield from _check_removed(change)


def _check_removed(change: Change) -> Iterator[Remark]:
    """Names in host files that the change leaves as they are, of kernels that it takes away."""
    gone = set[str]()
    for file in change.files:
        if file.is_metal:
            gone |= list_words(file.before) - list_words(file.after)
    changed = {file.path for file in change.host}
    for path, text in change.host_texts.items():
        if path in changed or not any(word in text for word in gone):
            continue
        file = _unchanged(path, text)
        for named in find_named_kernels(file):
            lost = any(word == named.prefix or word.startswith(named.prefix) for word in gone)
            if named.prefix and lost and not _exists(change, named, text):
                what = f"the change removes the kernel {named.token.text}, which this still names"
                yield file.remark(named.token.start, what, "Keep the kernel, or change what calls it.")


def _unchanged(path: str, text: str) -> ChangedFile:
    return ChangedFile(path, text, text)


def _exists(change: Change, named: NamedKernel, host: str) -> bool:
    """Whether a functor is registered by a name, or a kernel of a name is made: outright, or of the parts of one.

    A file of host code may have its kernels in a string.
    """
    functors = list_functors(change)
    if named.family:
        return named.prefix in functors if named.is_whole else any(f.startswith(named.prefix) for f in functors)
    stem = named.prefix.rstrip("_")
    if not stem or any(stem == f or stem.startswith(f"{f}_") for f in functors):
        return True
    inline = host[host.index('R"') :] if 'R"' in host else ""
    texts = (inline, *(text for path, text in change.kernel_texts.items() if path.endswith(".metal")))
    return any(_matches(stem, word) for text in texts for word in list_words(text))


def _matches(stem: str, word: str) -> bool:
    """Whether a word is a kernel's name, begins as it, or is what a macro makes the beginning of a name of."""
    return (
        word == stem or word.startswith(f"{stem}_") or (word.endswith("_") and len(word) > 2 and stem.startswith(word))
    )


_OPERATIONS = "aten/src/ATen/native/mps/operations"
_KERNELS = "aten/src/ATen/native/mps/kernels"
_HOST = """static void planted_kernel(TensorIteratorBase& iter) {
  lib.exec_unary_kernel(iter, "exq");
}
"""
RULE = Rule(
    "unknown-kernel",
    Severity.ERROR,
    "Host code names a kernel that no kernel file has, or the change removes one that host code names.",
    _check,
    bad=(
        Case(edits=((f"{_OPERATIONS}/BinaryKernel.mm", '"copysign"', '"copysgn"'),)),
        host_case(_HOST),
        host_case('void f() {\n  auto state = lib.getPipelineStateForFunc(fmt::format("cumsum_{}", t));\n}\n'),
        Case(files={f"{_KERNELS}/UnaryKernel.metal": ""}),
    ),
    good=(
        host_case(_HOST.replace("exq", "exp")),
        host_case(
            _HOST.replace('exec_unary_kernel(iter, "exq")', 'getMTLFunction("bloom")'), "kernel void bloom() {}\n"
        ),
    ),
)
