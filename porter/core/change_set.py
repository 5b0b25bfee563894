"""A change set: edits that can be applied, combined and printed as a unified diff."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from porter.core.edits import Edit, check, compose, splice
from porter.core.errors import Place, PorterError
from porter.core.unified_diff import file_diff


@dataclass(frozen=True)
class ChangeSet:
    """Edits with the texts they apply to. Edits of a file missing from `base` create it; one left empty is deleted.

    Edits may touch but not overlap. Insertions at the same offset keep their order and precede a replacement that
    starts there. Raises PTR050 (overlap), PTR051 (outside the file) or PTR052 (an edit of a deleted file, or a deleted
    file that does not exist).
    """

    base: Mapping[str, str]
    edits: tuple[Edit, ...]
    deleted: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        for file in self.deleted:
            if file not in self.base or any(e.file == file for e in self.edits):
                raise PorterError("PTR052", "a deleted file must exist and cannot be edited", Place(file))
        for file, edits in self._by_file.items():
            check(file, self.base.get(file, ""), edits)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the change set touches, sorted."""
        return tuple(sorted({e.file for e in self.edits} | self.deleted))

    @property
    def created(self) -> tuple[str, ...]:
        """The files that the change set creates."""
        return tuple(f for f in self.files if f not in self.base)

    @property
    def gone(self) -> frozenset[str]:
        """The files that are deleted, as such or by edits that leave no text."""
        return self.deleted | {file for file, text in self._applied.items() if not text and self.base.get(file)}

    def apply(self) -> dict[str, str]:
        """Returns the new text of every edited or created file."""
        return dict(self._applied)

    @cached_property
    def _applied(self) -> dict[str, str]:
        return {file: splice(self.base.get(file, ""), edits) for file, edits in self._by_file.items()}

    def combine(self, later: ChangeSet) -> ChangeSet:
        """Returns one change set that does what this one and then `later` do. `later` applies to this one's result.

        Raises PTR053 if `later` applies to other texts.
        """
        after = {**self.base, **self.apply()}
        base = dict(self.base)
        for file, text in later.base.items():
            if file in self.deleted or after.get(file, text) != text:
                raise PorterError("PTR053", "the plan has read two versions of this file", Place(file))
            if file not in after:
                base[file] = text
        theirs = later._by_file
        files = [file for file in dict.fromkeys((*self.files, *theirs)) if file not in later.deleted | self.deleted]
        edits = [edit for file in files for edit in self._compose(file, base.get(file), theirs.get(file, []))]
        again = self.deleted & theirs.keys()
        edits += [Edit(file, 0, len(base[file]), later.apply()[file]) for file in sorted(again)]
        gone = (self.deleted - again) | (later.deleted & base.keys())
        combined = ChangeSet(base, tuple(edits), gone)
        texts = {**self._applied, **later._applied}
        vars(combined)["_applied"] = {file: texts[file] for file in combined._by_file}  # known: not spliced again
        return combined

    def _compose(self, file: str, text: str | None, later: list[Edit]) -> tuple[Edit, ...]:
        first = self._by_file.get(file, [])
        edits = tuple(compose(file, text or "", first, later) if later else first)
        return edits or ((Edit(file, 0, 0, ""),) if text is None else ())

    def diff(self, context: int = 3) -> str:
        """Returns a unified diff with a/ and b/ prefixes that `git apply` accepts."""
        edits = self._by_file
        return "".join(
            file_diff(file, self.base.get(file), edits.get(file, []), file in self.gone, context) for file in self.files
        )

    @cached_property
    def _by_file(self) -> dict[str, list[Edit]]:
        groups: dict[str, list[Edit]] = {}
        for edit in self.edits:
            groups.setdefault(edit.file, []).append(edit)
        return {file: sorted(group, key=lambda e: (e.start, e.end)) for file, group in groups.items()}
