"""What the headers of a newer MPS runtime declare, and neither the fork nor porter's device defines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from porter.core.errors import Place, PorterError
from porter.core.files import read_regular
from porter.core.layout import ATEN_ROOT
from porter.verdict.build.missing import MissingSymbol
from porter.verdict.build.objects import Recipe
from porter.verdict.build.tree import Tree

_FOLDERS = ("ATen/mps", "ATen/native/mps")
_NAMED = 5  # functions, by their headers


def find_new_runtime(tree: Tree, symbols: Sequence[MissingSymbol], recipe: Recipe) -> PorterError | None:
    """PTR168 where the runtime's headers declare all that nothing defines; None where they do not.

    The headers are the fork's, and for what it has none the installed torch's.
    """
    places = {symbol: _find_declaration(tree, symbol, recipe) for symbol in symbols}
    if not places or None in places.values():
        return None
    named = "; ".join(f"{symbol.name} ({place})" for symbol, place in list(places.items())[:_NAMED])
    more = f"; and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    what = f"the MPS headers declare what neither the fork nor porter's device defines: {named}{more}"
    hint = "The headers are newer than this porter: update it, install the torch that they are of, or define these."
    return PorterError("PTR168", what, next(iter(places.values())), hint)


def _find_declaration(tree: Tree, symbol: MissingSymbol, recipe: Recipe) -> Place | None:
    """Where a header declares a function of a symbol's name."""
    name = symbol.name.partition("(")[0].rsplit("::", 1)[-1]
    if not symbol.is_function or not name.isidentifier():
        return None
    declared = re.compile(rf"\b{name}\s*\(")
    for place, text in _list_headers(tree, recipe):
        if found := declared.search(text):
            return Place(place, text.count("\n", 0, found.start()) + 1)
    return None


def _list_headers(tree: Tree, recipe: Recipe) -> Iterator[tuple[str, str]]:
    """The headers of the runtime, by their paths in the fork or in torch, and their texts."""
    own = [path for folder in _FOLDERS for path in tree.files(f"{ATEN_ROOT}/{folder}", ".h")]
    yield from ((path, tree.read(path)) for path in own)
    known = {path.removeprefix(f"{ATEN_ROOT}/") for path in own}
    roots = (Path(flag) for flag in recipe.flags if flag.startswith("/"))
    for path in (path for root in roots for folder in _FOLDERS for path in sorted(root.glob(f"{folder}/*.h"))):
        name = path.as_posix().rpartition("/ATen/")[2]
        if f"ATen/{name}" not in known:
            yield f"ATen/{name}", read_regular(path).decode(errors="replace")
