"""A Metal kernel runs on every macOS that PyTorch supports: branches on its version go with the graph."""

from __future__ import annotations

from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.host_facts import find_metal_functions, find_words_in
from porter.review.rule import Rule, host_case

_WORDS = ("is_macos_at_least", "is_macos_13_or_newer", "is_macos_14_or_newer", "is_macos_15_or_newer", "MacOSVersion")


def _check(change: Change) -> Iterator[Remark]:
    for file, function in find_metal_functions(change):
        for token in find_words_in(file, function.start, function.end):
            if token.text in _WORDS[:-1] or token.text.startswith("is_macos_"):
                what = f"`{function.name}` launches a kernel and asks which macOS it is on"
                yield file.remark(token.start, what, "Remove the branch: a kernel needs none.")
                break


_BAD = """static void planted_kernel(TensorIteratorBase& iter) {
  TORCH_CHECK(is_macos_at_least(MacOSVersion::MACOS_15_0), "planted needs macOS 15");
  lib.exec_unary_kernel(iter, "exp");
}
"""
RULE = Rule(
    "macos-branch",
    Severity.WARNING,
    "Host code that launches a kernel and builds no graph branches on the version of macOS.",
    _check,
    bad=(host_case(_BAD),),
    good=(
        host_case(
            _BAD.replace('TORCH_CHECK(is_macos_at_least(MacOSVersion::MACOS_15_0), "planted needs macOS 15");', "")
        ),
    ),
)
