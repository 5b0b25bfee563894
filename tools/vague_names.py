"""Names that carry nothing, counted by file against a ledger that may only shrink.

    python tools/vague_names.py            # fails where a file has more of them than the ledger says
    python tools/vague_names.py --write    # writes lower counts to the ledger, never higher ones

A comprehension of at most two lines may use such a name. Everything wider names what it holds.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from shared.arguments import parser

ROOT = Path(__file__).resolve().parents[1]
LEDGER = Path(__file__).with_name("vague_names.json")
FOLDERS = ("aten_overlay", "benchmarks", "porter", "templates", "tests", "tools")
# PyTorch's code, and projects with $name in place of names.
LEFT_OUT = ("aten_overlay/fork/", "templates/extension/")
VAGUE = frozenset(("each", "found", "made", "given", "own", "beside", "known", "told", "taken", "left"))
COMPREHENSION_LINES = 2
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Counts = Mapping[str, int]


def find_vague(tree: ast.Module) -> list[tuple[int, str]]:
    """Returns the line and the name of each binding of a vague name: assignments, loops and parameters.

    Keyword arguments, attributes and imports bind no local. A lambda counts as a comprehension does.
    """
    return sorted(_walk(tree))


def count_files(root: Path) -> Counts:
    """Returns the number of bindings of each file that has any, by its path below `root`."""
    paths = (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py")))
    files = (path.relative_to(root).as_posix() for path in paths)
    counts = {file: len(_places(root / file)) for file in files if not file.startswith(LEFT_OUT)}
    return {file: count for file, count in counts.items() if count}


def find_growth(ledger: Counts, counts: Counts) -> list[str]:
    """Returns a sentence for each file that has more vague names than the ledger says."""
    return [
        f"{file}: {count} vague names, {ledger.get(file, 0)} before"
        for file, count in counts.items()
        if count > ledger.get(file, 0)
    ]


def shrink(ledger: Counts, counts: Counts) -> Counts:
    """Returns the next ledger. Raises ValueError if a file grew and the sum did too.

    A file that moves takes its count along: then the sum stays.
    """
    growth = find_growth(ledger, counts)
    if growth and sum(counts.values()) > sum(ledger.values()):
        raise ValueError("\n".join(growth))
    return dict(sorted(counts.items()))


def _walk(node: ast.AST) -> Iterator[tuple[int, str]]:
    short = isinstance(node, (*_COMPREHENSIONS, ast.Lambda)) and _lines(node) <= COMPREHENSION_LINES
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE:
        yield node.lineno, node.id
    if isinstance(node, ast.arg) and node.arg in VAGUE:
        yield node.lineno, node.arg
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name in VAGUE:
        yield node.lineno, str(node.name)
    for child in ast.iter_child_nodes(node):
        if not (short and isinstance(child, (ast.comprehension, ast.arguments))):
            yield from _walk(child)
        elif isinstance(child, ast.comprehension):
            yield from _walk(child.iter)


def _lines(node: ast.AST) -> int:
    return getattr(node, "end_lineno", 0) - getattr(node, "lineno", 0) + 1


def main() -> int:
    """Returns 1 if a file grew."""
    options_parser = parser(__doc__)
    options_parser.add_argument("--write", action="store_true", help="Write lower counts to the ledger.")
    options = options_parser.parse_args()
    ledger, counts = json.loads(LEDGER.read_text()), count_files(ROOT)
    growth = find_growth(ledger, counts)
    if options.write:
        try:
            LEDGER.write_text(json.dumps(shrink(ledger, counts), indent=1) + "\n")
            growth = []
        except ValueError as error:
            growth = [str(error)]
    for line in growth:
        print(line)
    if growth:
        places = [
            (file, *place) for file in counts if counts[file] > ledger.get(file, 0) for place in _places(ROOT / file)
        ]
        print(*(f"  {file}:{line} {name}" for file, line, name in places), sep="\n")
        print("Name what it holds; a comprehension of at most two lines may use such a name.")
    else:
        print(f"{sum(counts.values())} vague names in {len(counts)} files, none more than before")
    return 1 if growth else 0


def _places(path: Path) -> list[tuple[int, str]]:
    return find_vague(ast.parse(path.read_text()))


if __name__ == "__main__":
    sys.exit(main())
