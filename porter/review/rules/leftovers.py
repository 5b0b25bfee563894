"""What a port leaves behind: code of the old path, and limits that only the old path had."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.languages.identifiers import find_words
from porter.languages.source import Function
from porter.review.change import Change, ChangedFile, Remark
from porter.review.metal_facts import (
    builds_graph,
    find_metal_functions,
    find_named_kernels,
    find_words_in,
    launches_kernel,
    list_dispatched,
    list_registered,
)
from porter.review.rule import Case, Severity, edit_case, host_case, rule
from porter.review.rules.registrations import ERF, ERF_ROW, UNARY

_MACRO = "MPS_CHECK_INT64_OP_SUPPORTED"
_LIMIT = re.compile(r"MPS (?:does not|doesn't) support|not supported (?:on|by) MPS|MPSGraph", re.I)
_CONDITION = re.compile(r"k?Long\b|kInt\b|ScalarType::Long|ndimension|\bdim\(\)")
_LIMITED = """static void planted_kernel(TensorIteratorBase& iter) {
  MPS_CHECK_INT64_OP_SUPPORTED(iter.common_dtype(), true, "planted");
  lib.exec_unary_kernel(iter, "exp");
}
"""
_CHECK = """TORCH_CHECK(self.scalar_type() != kLong, "MPS does not support planted with int64 input");"""


@rule(
    Severity.WARNING,
    "Host code that launches a kernel and builds no graph keeps a limit of MPSGraph.",
    bad=(
        host_case(_LIMITED),
        host_case(_LIMITED.replace('MPS_CHECK_INT64_OP_SUPPORTED(iter.common_dtype(), true, "planted");', _CHECK)),
    ),
    good=(
        host_case(_LIMITED.replace('  MPS_CHECK_INT64_OP_SUPPORTED(iter.common_dtype(), true, "planted");\n', "")),
        host_case(_LIMITED.replace("lib.exec_unary_kernel(iter", "MPSGraphTensor* t; lib.exec_unary_kernel(iter")),
    ),
)
def graph_limit(change: Change) -> Iterator[Remark]:
    """What MPSGraph could not do is no reason for a kernel to refuse it: int64, macOS releases, five dimensions."""
    for file, function in find_metal_functions(change):
        for token in find_words_in(file, function.start, function.end):
            limit = token.text == _MACRO or (token.text == "TORCH_CHECK" and _states_limit(file.after, token.start))
            if limit:
                what = f"`{function.name}` launches a kernel and keeps a limit of MPSGraph"
                yield file.remark(token.start, what, "Remove it where the kernel has the type, and register the type.")


def _states_limit(text: str, start: int) -> bool:
    statement = text[start : text.find(";", start)]
    return _LIMIT.search(statement) is not None and _CONDITION.search(statement) is not None


_WORDS = ("is_macos_at_least", "is_macos_13_or_newer", "is_macos_14_or_newer", "is_macos_15_or_newer", "MacOSVersion")
_BRANCHING = """static void planted_kernel(TensorIteratorBase& iter) {
  TORCH_CHECK(is_macos_at_least(MacOSVersion::MACOS_15_0), "planted needs macOS 15");
  lib.exec_unary_kernel(iter, "exp");
}
"""


@rule(
    Severity.WARNING,
    "Host code that launches a kernel and builds no graph branches on the version of macOS.",
    bad=(host_case(_BRANCHING),),
    good=(
        host_case(
            _BRANCHING.replace(
                'TORCH_CHECK(is_macos_at_least(MacOSVersion::MACOS_15_0), "planted needs macOS 15");', ""
            )
        ),
    ),
)
def macos_branch(change: Change) -> Iterator[Remark]:
    """A Metal kernel runs on every macOS that PyTorch supports: branches on its version go with the graph."""
    for file, function in find_metal_functions(change):
        for token in find_words_in(file, function.start, function.end):
            if token.text in _WORDS[:-1] or token.text.startswith("is_macos_"):
                what = f"`{function.name}` launches a kernel and asks which macOS it is on"
                yield file.remark(token.start, what, "Remove the branch: a kernel needs none.")
                break


_PORT = ((NATIVE_FUNCTIONS, ERF_ROW, "    CPU, CUDA, MPS, MTIA: erf_out\n"), (UNARY, ERF, ""))


@rule(
    Severity.ERROR,
    "The old path is not deleted: an implementation without a row, a helper without a use, a graph beside the kernel.",
    bad=(edit_case(_PORT[0]),),
    good=(edit_case(*_PORT),),
)
def old_path_left(change: Change) -> Iterator[Remark]:
    """The old path is really deleted: no function, macro or helper of the graph stays that nothing calls any more."""
    lost = list_dispatched(change.earlier_rows) - list_dispatched(change.rows)
    yield from _find_undispatched(change, lost)
    for file in change.host:
        if file.before and file.is_readable:
            yield from _find_dead(change, file)
            yield from _find_both(file)


def _find_undispatched(change: Change, lost: frozenset[str]) -> Iterator[Remark]:
    """Implementations to which a row dispatched before the change, and none does now."""
    for path, text in change.host_texts.items():
        if not any(name in text for name in lost):
            continue
        file = change.host_file(path)
        spans = [(f.name, f.start) for f in (file.source.functions() if file.is_readable else ())]
        spans += [(use.arguments[0], use.start) for use in file.source.macro_uses() if use.arguments]
        for name, start in spans:
            if name in lost and not _is_called(change, name):
                what = f"no row dispatches to `{name}` any more, and it is still there"
                yield file.remark(start, what, "Delete the old path.")


def _is_called(change: Change, name: str) -> bool:
    """Whether host code calls a function besides defining it."""
    called = re.compile(rf"\b{re.escape(name)}\s*\((?!.*\)\s*\{{)")
    texts = change.host_texts.values()
    return sum(len(called.findall(text)) for text in texts) > 1


def _find_dead(change: Change, file: ChangedFile) -> Iterator[Remark]:
    """Static functions and macros of a changed file that were used before the change, and are not now."""
    uses, before = Counter(find_words(file.after)), Counter(find_words(file.before))
    helpers = {f.name: f.start for f in file.source.functions() if f.static and f.name.isidentifier()}
    helpers |= {macro.name: file.after.find(f"#define {macro.name}") for macro in file.source.function_macros}
    for name, start in helpers.items():
        if uses[name] == 1 and before[name] > 1 and not _is_used_elsewhere(change, file, name):
            yield file.remark(start, f"nothing in this file uses `{name}` any more", "Delete it with the old path.")


def _is_used_elsewhere(change: Change, file: ChangedFile, name: str) -> bool:
    is_shared = file.path.endswith(".h")
    return is_shared and any(name in text for path, text in change.host_texts.items() if path != file.path)


def _find_both(file: ChangedFile) -> Iterator[Remark]:
    """Functions that launch a kernel since the change, and build a graph still."""
    for function in file.functions():
        text, earlier = file.text_of(function), file.earlier.find_again(function)
        if earlier is None or not (builds_graph(text) and launches_kernel(text)):
            continue
        old = file.before[earlier.start : earlier.end]
        if builds_graph(old) and not launches_kernel(old):
            what = f"`{function.name}` launches a kernel now, and builds a graph still"
            yield file.remark(function.start, what, "Delete the old path, or say in the text what it is still for.")


_HEADER = re.compile(r"ATen/ops/(\w+?)(_native|_meta|_ops|_compositeexplicitautograd_dispatch)?\.h")


@rule(
    Severity.WARNING,
    "A file includes the header of an operator that it no longer names.",
    bad=(edit_case(*_PORT),),
    good=(edit_case(*_PORT, (UNARY, "#include <ATen/ops/erf_native.h>\n", "")),),
)
def stale_include(change: Change) -> Iterator[Remark]:
    """An include of an operator's header stays behind when the code that needed it goes."""
    for file in change.host:
        if not file.before:
            continue
        after, before = _list_code_words(file, now=True), _list_code_words(file, now=False)
        for include in file.source.includes():
            header = _HEADER.fullmatch(include.path)
            if not header:
                continue
            # What code calls an operator by: its functions, and what its rows dispatch to, before the change and now
            base = header[1]
            kernels = {
                entry.kernel.rsplit("::", 1)[-1]
                for rows in (change.rows, change.earlier_rows)
                if rows.has(base)
                for row in rows.find_overloads(base)
                for entry in row.dispatch
            }
            names = frozenset({base, f"{base}_", f"{base}_out", f"{base}_outf", *kernels})
            if _uses(before, names, header[1]) and not _uses(after, names, header[1]):
                what = f"nothing in this file needs <{include.path}> any more"
                line = file.after[include.start : include.end].rstrip("\n")
                yield file.remark(include.start, what, "Remove the include.", line, "")


def _list_code_words(file: ChangedFile, now: bool) -> frozenset[str]:
    source = file.source if now else file.earlier
    words = {token.text for token in source.code}
    return frozenset(words.union(*(find_words(macro.body) for macro in source.macros())))


def _uses(words: frozenset[str], names: frozenset[str], base: str) -> bool:
    return not words.isdisjoint(names) or any(word.startswith((f"{base}_", f"structured_{base}")) for word in words)


_CHECKING = re.compile(r"\b(?:TORCH_CHECK\w*|resize_output)\(([^,;]*)")
_ABOUT_TYPES = re.compile(
    r"dtype|scalar_type|ScalarType|isFloatingType|isIntegralType|isComplexType|is_complex|sizes\(\)"
)
_TENSOR = re.compile(r"(\w+)(?:\.|->)(?:is_complex|scalar_type|dtype|is_floating_point)\b")
_COMPLEX = re.compile(r"!\s*[\w.:>-]*(?:is_complex|isComplexType)\(")
_REFUSING = """void planted_mps(const Tensor& self, Tensor& out) {
  TORCH_CHECK(self.scalar_type() != kDouble, "no float64");
  resize_output(out, self.sizes());
  lib.exec_unary_kernel(iter, "exp");
}
"""
_NO_DOUBLE = "self.scalar_type() != kDouble"


def _is_rewritten(condition: str, earlier: str, text: str) -> bool:
    """Whether a check that was not there asks for the type of the same tensor."""
    old_text = "".join(earlier.split())
    tensors = set(_TENSOR.findall(condition))
    new = (match[1] for match in _CHECKING.finditer(text) if "".join(match[1].split()) not in old_text)
    return any(tensors & set(_TENSOR.findall(check)) for check in new)


def _is_served(change: Change, file: ChangedFile, function: Function, condition: str) -> bool:
    """Whether complex numbers were refused, and a functor that is launched has a kernel for them now."""
    if not _COMPLEX.match(condition.strip()):
        return False
    functors = {named.prefix for named in find_named_kernels(file, function.start, function.end)}
    return any(i.functor in functors and i.input in ("float2", "half2") for i in list_registered(change))


@rule(
    Severity.WARNING,
    "A change takes a check of types away, or what gives a result its shape, from code that launches a kernel.",
    bad=(
        Case(
            {f"{OPERATIONS}/Planted.mm": re.sub(r"  TORCH_CHECK.*\n", "", _REFUSING)},
            before={f"{OPERATIONS}/Planted.mm": _REFUSING},
        ),
        Case(
            {f"{OPERATIONS}/Planted.mm": re.sub(r"  resize_output.*\n", "", _REFUSING)},
            before={f"{OPERATIONS}/Planted.mm": _REFUSING},
        ),
    ),
    good=(
        Case(
            {f"{OPERATIONS}/Planted.mm": _REFUSING.replace('"no float64"', '"float64 is not supported"')},
            before={f"{OPERATIONS}/Planted.mm": _REFUSING},
        ),
        Case(
            {f"{OPERATIONS}/Planted.mm": _REFUSING.replace(_NO_DOUBLE, "!c10::isComplexType(self.scalar_type())")},
            before={f"{OPERATIONS}/Planted.mm": _REFUSING.replace(_NO_DOUBLE, "!self.is_complex()")},
        ),
        Case(
            {f"{OPERATIONS}/Planted.mm": re.sub(r"  TORCH_CHECK.*\n", "", _REFUSING)},
            before={f"{OPERATIONS}/Planted.mm": _REFUSING.replace(_NO_DOUBLE, "!self.is_complex()")},
        ),
        Case(
            {f"{OPERATIONS}/Planted.mm": re.sub(r"  (?:TORCH_CHECK|resize).*\n", "", _REFUSING)},
            before={f"{OPERATIONS}/Planted.mm": _REFUSING.replace("lib.exec_unary_kernel(iter, ", "graph(")},
        ),
    ),
)
def lost_check(change: Change) -> Iterator[Remark]:
    """What host code refused or resized reaches the kernel: an opaque error of Metal's, or a wrong shape (184743)."""
    for file in change.host:
        after = "".join(file.after.split())
        for function in file.functions():
            earlier = file.text_before(function)
            launches = launches_kernel(earlier) and launches_kernel(file.text_of(function))
            gone = set(find_words(earlier)) - set(find_words(file.after))
            for match in _CHECKING.finditer(earlier):
                resizes = match[0].startswith("resize")
                # A result may be resized elsewhere where more of the function is another
                statement = earlier[match.start() : earlier.find(";", match.end())]
                asked = gone <= set(find_words(statement)) if resizes else launches and _ABOUT_TYPES.search(match[1])
                is_kept = "".join(match[not resizes].split()) in after or _states_limit(earlier, match.start())
                if asked and not resizes and not is_kept:
                    is_kept = _is_rewritten(match[1], earlier, file.text_of(function)) or _is_served(
                        change, file, function, match[1]
                    )
                if asked and not is_kept:
                    what = f"`{' '.join(match[0].split())}` is gone from `{function.name}`"
                    yield file.remark(function.name_start, what, "Keep it, or say in the text what refuses such calls.")
