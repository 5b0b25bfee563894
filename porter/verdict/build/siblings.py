"""The fork's native operators of the same kind as one under test: those whose kernels the same function launches.

What none of them can do is a limit of that function, such as results in another floating type than the operands'
(`atan2_dense_float_bfloat` of PyTorch 2.14). A port that only calls it does not touch the limit; one that edits the
function does, and so does one whose kernels lack a form that a sibling's have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from porter.core import dtypes
from porter.core.layout import OPERATIONS
from porter.languages.identifiers import find_words
from porter.verdict.build.kernel_files import list_kernel_names
from porter.verdict.build.sources import LAUNCH, find_definitions
from porter.verdict.build.tree import Tree
from porter.verdict.result import ForkFinding, VerifyTarget

_TYPES = frozenset(dtype.metal for dtype in dtypes.ALL)


@dataclass(frozen=True)
class Siblings:
    """What launches the kernels under test, where the fork defines it, and which forms its other kernels have.

    `kernels` are the functors under test and `names` what is instantiated of them; `forms` are what follows the names
    of each other functor in those of its kernels, such as `dense_float_bfloat`.
    """

    function: str
    place: str
    kernels: tuple[str, ...]
    names: tuple[str, ...]
    forms: tuple[frozenset[str], ...]

    def find_gap(self, message: str) -> ForkFinding | None:
        """The finding that an error is, if it names a kernel under test that is not there and that no sibling has."""
        for name in find_words(message):
            form = _find_form(name, self.kernels)
            if form and name not in self.names:
                what = f"{self.function} asks for `{name}`, and launches no native with a kernel of this form"
                return None if self._has_like(form) else ForkFinding(what, self.place)
        return None

    def _has_like(self, form: str) -> bool:
        """Whether a sibling has a form beside those that the kernels under test have for the same operands.

        `atan2_dense_float_int` alone is no kernel for results that were asked for in another type: its own are floats.
        """
        forms, operands = {_find_form(name, self.kernels) for name in self.names}, _drop_result(form)
        usual = {same for same in forms if _drop_result(same) == operands}
        return any(form in sibling and usual <= sibling for sibling in self.forms)


def find_siblings(tree: Tree, target: VerifyTarget) -> Siblings | None:
    """The natives that the function launches which launches a target's kernels; None where there are none, several
    functions launch these, or a plan edits the function.
    """
    files = tree.files(OPERATIONS, ".mm", ".cpp")
    launches = _list_launches(tree.read(path) for path in files)
    functions = {function for function, kernel in launches if kernel in target.kernels}
    if len(functions) != 1:
        return None
    [function] = functions
    definitions = find_definitions(tree, function)
    before = {text for _, _, text in find_definitions(tree, function, before=True)}
    if not definitions or any(text not in before for _, _, text in definitions):
        return None
    there = (tree.before(path) for path in files if tree.in_checkout(path))
    others = {kernel for other, kernel in _list_launches(there) if other == function and kernel not in target.kernels}
    names = list_kernel_names(tree, VerifyTarget(target.base, kernels=(*target.kernels, *sorted(others))))
    of_each: dict[str, set[str]] = {}
    for name in names:
        if owner := _find_owner(name, others):
            of_each.setdefault(owner, set()).add(name[len(owner) + 1 :])
    forms = tuple(map(frozenset, of_each.values()))
    own = tuple(name for name in names if _find_form(name, target.kernels))
    path, line, _ = definitions[0]
    return Siblings(function, f"{path}:{line}", target.kernels, own, forms) if forms else None


def _list_launches(texts: Iterable[str]) -> set[tuple[str, str]]:
    return {(match["function"], match["kernel"]) for text in texts for match in LAUNCH.finditer(text)}


def _find_owner(name: str, kernels: Collection[str]) -> str:
    """The longest of these functors that a kernel's name begins with; empty if it is of none of them."""
    return max((kernel for kernel in kernels if name.startswith(f"{kernel}_")), key=len, default="")


def _find_form(name: str, kernels: Collection[str]) -> str:
    """What follows its functor in a kernel's name; empty if it is of none of these."""
    owner = _find_owner(name, kernels)
    return name[len(owner) + 1 :] if owner else ""


def _drop_result(form: str) -> tuple[str, ...]:
    """The words of a form without the first type, that of the results."""
    words = form.split("_")
    result = next((at for at, word in enumerate(words) if word in _TYPES), len(words))
    return (*words[:result], *words[result + 1 :])
