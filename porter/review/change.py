"""A change to a fork as a value: the files that differ, and which of their lines are new."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from porter.aten.native_functions import NativeFunction, NativeFunctions
from porter.aten.skip_lists import SkipList, read_lists
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, METAL_HEADERS, MPS, NATIVE_FUNCTIONS, TEST_LISTS
from porter.languages.lexer import Token
from porter.languages.source import Function, Source, parse_source
from porter.metal.lint_checks import Unit, metal_code


@dataclass(frozen=True)
class Remark:
    """What a rule says of a place, before the rule's name and severity are added to it: see `Finding`."""

    path: str
    line: int
    what: str
    hint: str = ""
    char: int = 0
    original: str = ""
    replacement: str = ""


@dataclass(frozen=True)
class ChangedFile:
    """A file before and after; an empty text stands for no file."""

    path: str
    before: str
    after: str

    @cached_property
    def source(self) -> Source:
        """The file as it is now."""
        return parse_source(self.path, self.after)

    @cached_property
    def earlier(self) -> Source:
        """The file as it was."""
        return parse_source(self.path, self.before)

    @cached_property
    def unit(self) -> Unit:
        """The Metal code of the file as it is now, without what only the host compiles."""
        return Unit(self.source, tuple(metal_code(self.source)))

    @cached_property
    def _blocks(self) -> tuple[tuple[int, int, int, int], ...]:
        """The spans of lines that differ: of the text before, and of the text now."""
        matcher = SequenceMatcher(None, self.before.splitlines(), self.after.splitlines(), autojunk=False)
        return tuple(block[1:] for block in matcher.get_opcodes() if block[0] != "equal")

    @cached_property
    def added(self) -> frozenset[int]:
        """The lines of the text now that are new or different, counted from 1."""
        return frozenset(line + 1 for _, _, start, end in self._blocks for line in range(start, end))

    @cached_property
    def _seams(self) -> tuple[int, ...]:
        """The lines of the text now behind which lines are gone and none is new."""
        return tuple(start for _, _, start, end in self._blocks if start == end)

    def find_rewritten(self, pattern: re.Pattern[str], replacement: str) -> Iterator[tuple[int, str]]:
        """The new lines, by number, that are a line which is gone but for what a pattern replaces; with that line."""
        for start, end, new, new_end in self._blocks:
            gone = self.before.splitlines()[start:end]
            rewritten = {"".join(pattern.sub(replacement, line).split()): line for line in gone if pattern.search(line)}
            for number, line in enumerate(self.after.splitlines()[new:new_end], new + 1):
                if (earlier := rewritten.get("".join(line.split()))) and "".join(earlier.split()) != "".join(
                    line.split()
                ):
                    yield number, earlier.strip()

    @cached_property
    def removed(self) -> tuple[str, ...]:
        """The lines of the text before that are gone or different."""
        lines = self.before.splitlines()
        return tuple(line for start, end, _, _ in self._blocks for line in lines[start:end])

    @cached_property
    def is_metal(self) -> bool:
        """Whether it is compiled as Metal."""
        return self.path.endswith(".metal") or (self.path.startswith(f"{METAL_HEADERS}/") and self.path.endswith(".h"))

    @cached_property
    def is_host(self) -> bool:
        """Whether it is host code of the MPS backend."""
        return self.path.startswith(f"{MPS}/") and self.path.endswith((".mm", ".cpp", ".h")) and not self.is_kernel_file

    @property
    def is_kernel_file(self) -> bool:
        return self.path.startswith(f"{KERNELS}/")

    @property
    def is_test(self) -> bool:
        """Whether it is one of PyTorch's tests or their lists."""
        return self.path.startswith("test/") or self.path in TEST_LISTS

    @cached_property
    def is_readable(self) -> bool:
        """Whether functions can be listed: porter says elsewhere why a file cannot be read."""
        return self.source.is_readable

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.after.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def find_new(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """The matches of a pattern in which a line is new or different."""
        return (match for match in pattern.finditer(self.after) if self.touches(*match.span()))

    def line_at(self, offset: int) -> int:
        """The line of an offset into the text now."""
        return bisect_right(self._starts, offset)

    def is_added(self, offset: int) -> bool:
        """Whether the line of an offset is new or different."""
        return self.line_at(offset) in self.added

    def touches(self, start: int, end: int) -> bool:
        """Whether a line of a span is new or different, or one within it is gone."""
        first, last = self.line_at(start), self.line_at(max(end - 1, start))
        return any(line in self.added for line in range(first, last + 1)) or any(
            first <= line < last for line in self._seams
        )

    def functions(self) -> tuple[Function, ...]:
        """The functions in which a line is new or different; those compiled for Metal in a Metal file."""
        functions = (self.unit.functions if self.is_metal else self.source.functions()) if self.is_readable else ()
        return tuple(function for function in functions if self.touches(function.start, function.end))

    def added_tokens(self) -> Iterator[tuple[int, Token]]:
        """The code tokens on new lines, with their places in `unit.code` or in the code of the source."""
        code = self.unit.code if self.is_metal else self.source.code
        return ((at, token) for at, token in enumerate(code) if self.is_added(token.start))

    def text_of(self, function: Function) -> str:
        return self.after[function.start : function.end]

    def text_around(self, line: int) -> str:
        """The function in which a line is, or nothing where it is in none."""
        inside = (f for f in self.functions() if self.line_at(f.start) <= line <= self.line_at(f.end))
        return "\n".join(map(self.text_of, inside))

    def text_before(self, function: Function) -> str:
        """The text before the change of the functions of this name."""
        named = (f for f in self.earlier.functions() if f.name == function.name) if self.earlier.is_readable else ()
        return "\n".join(self.before[f.start : f.end] for f in named)

    def remark(self, offset: int, what: str, hint: str = "", original: str = "", replacement: str = "") -> Remark:
        """A remark on an offset into the text now."""
        line = self.line_at(offset)
        return Remark(self.path, line, what, hint, offset - self._starts[line - 1] + 1, original, replacement)


@dataclass(frozen=True)
class Change:
    """What a review reads: the fork before and after, and the files that differ."""

    before: Checkout
    after: Checkout
    files: tuple[ChangedFile, ...]

    @staticmethod
    def between(before: Checkout, after: Checkout, paths: Iterable[str]) -> Change:
        """The change of these files between two snapshots. Raises as `Checkout.read` does."""
        files = (ChangedFile(path, _read(before, path), _read(after, path)) for path in sorted(set(paths)))
        return Change(before, after, tuple(file for file in files if file.before != file.after))

    def start_over(self) -> Change:
        """The code before the change, with every line of its files new."""
        files = (ChangedFile(file.path, "", file.before) for file in self.files if file.before)
        return Change(self.before, self.before, tuple(files))

    @property
    def metal(self) -> Iterator[ChangedFile]:
        """The changed files that are compiled as Metal and still there."""
        return (file for file in self.files if file.is_metal and file.after)

    @property
    def host(self) -> Iterator[ChangedFile]:
        """The changed host files of the backend that are still there."""
        return (file for file in self.files if file.is_host and file.after)

    @property
    def tests(self) -> Iterator[ChangedFile]:
        return (file for file in self.files if file.is_test and file.after)

    @cached_property
    def rows(self) -> NativeFunctions:
        return NativeFunctions.read(self.after)

    @cached_property
    def earlier_rows(self) -> NativeFunctions:
        return NativeFunctions.read(self.before)

    @cached_property
    def changed_rows(self) -> tuple[NativeFunction, ...]:
        """The rows that are new, or whose declaration is another."""
        yaml = next((file for file in self.files if file.path == NATIVE_FUNCTIONS), None)
        if yaml is None:
            return ()
        earlier = {row.declaration for row in self.earlier_rows.all}
        return tuple(row for row in self.rows.all if row.declaration not in earlier)

    @cached_property
    def lists(self) -> tuple[SkipList, ...]:
        """The test lists now; none where they cannot be read."""
        return _read_lists(self.after)

    @cached_property
    def earlier_lists(self) -> tuple[SkipList, ...]:
        return _read_lists(self.before)

    @cached_property
    def kernel_texts(self) -> Mapping[str, str]:
        """The text of every kernel file and header of Metal now, by path."""
        paths = (*self.after.list(KERNELS, ".metal", ".h"), *self.after.list(METAL_HEADERS, ".h"))
        return {path: self.after.read(path) for path in paths}

    @cached_property
    def host_texts(self) -> Mapping[str, str]:
        """The text of every host file of the backend now, by path."""
        folders = (MPS, f"{MPS}/operations")
        return {
            path: self.after.read(path) for folder in folders for path in self.after.list(folder, ".mm", ".h", ".cpp")
        }

    def host_file(self, path: str) -> ChangedFile:
        """A host file of the backend that is there now, changed or not."""
        text = self.host_texts[path]
        return next((file for file in self.host if file.path == path), None) or ChangedFile(path, text, text)


def _read(checkout: Checkout, path: str) -> str:
    return checkout.read(path) if checkout.exists(path) else ""


def _read_lists(checkout: Checkout) -> tuple[SkipList, ...]:
    try:
        return read_lists(checkout)
    except PorterError:
        return ()
