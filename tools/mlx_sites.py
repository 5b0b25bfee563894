"""Runs the Metal kernels of packages for MLX against the packages' own reference paths, under MLX's CPU backend.

    python tools/mlx_sites.py [PACKAGE...] [-k NAME] [--sanitize] [--markdown]

A call site is a line of a package that calls `metal_kernel`. tools/mlx_sites.yaml says how one is reached: Python that
calls the kernel, and Python that computes the same without it. PACKAGE is a folder in which modules are found, mlx_lm
and mlx_vlm unless given. Prints a row for each call, and the sites that no call reaches. Exit code 1 if a kernel is not
within its bound.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from shared.arguments import parser

TABLE = Path(__file__).parent / "mlx_sites.yaml"
_KERNEL = "metal_kernel"
_WITHIN = 1e-5  # of the largest value


@dataclass(frozen=True)
class Site:
    """A line that calls `metal_kernel`."""

    package: str
    file: str
    line: int


@dataclass(frozen=True)
class Row:
    """What became of one call: how far its results are from the reference, or the reason that there are none; and what
    the sanitizer finds.
    """

    name: str
    sites: frozenset[tuple[str, int]]
    error: float | None
    within: float
    reason: str = ""
    finding: str = ""

    @property
    def ok(self) -> bool:
        return self.error is not None and self.error <= self.within

    def __str__(self) -> str:
        result = self.reason or f"{self.error:.1e}, bound {self.within:.0e}"
        finding = f"; {self.finding}" if self.finding else ""
        return f"{'ok  ' if self.ok else 'FAIL'} {self.name}: {result} ({len(self.sites)} sites){finding}"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("packages", nargs="*", metavar="PACKAGE", default=["mlx_lm", "mlx_vlm"])
    options.add_argument("-k", dest="name", default="", help="only modules whose name has this in it")
    options.add_argument("--sanitize", action="store_true", help="watch every launch")
    options.add_argument("--markdown", action="store_true", help="print a table for docs")
    arguments = options.parse_args()
    import porter.mlx  # brings the device up, before torch

    sites = [site for package in arguments.packages for site in _list_sites(package)]
    rows = []
    for entry in yaml.safe_load(TABLE.read_text()):
        for name in entry["modules"]:
            if name.partition(".")[0] in arguments.packages and arguments.name in name:
                rows.append(_try_entry(porter.mlx, name, entry, arguments.sanitize))
                print(rows[-1], file=sys.stderr, flush=True)
    print("\n".join(_tabulate(sites, rows, arguments.markdown)))
    return 0 if all(row.ok for row in rows) else 1


def _list_sites(package: str) -> Iterator[Site]:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed: pip install {package.replace('_', '-')}")
    for path in sorted(Path(spec.submodule_search_locations[0]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == _KERNEL:
                yield Site(package, str(path), node.lineno)


def _try_entry(porter_mlx: ModuleType, name: str, entry: dict[str, Any], sanitize: bool) -> Row:
    from porter.kernels.launch import Mode, running

    mx = sys.modules["mlx.core"]
    reached: set[tuple[str, int]] = set()
    again: list[object] = []
    error, reason, finding = None, "", ""
    mx.random.seed(0)
    values: dict[str, Any] = {"mx": mx, "nn": importlib.import_module("mlx.nn")}
    try:
        values["m"] = importlib.import_module(name)
        exec(entry.get("values", ""), values)
        with porter_mlx.watching(lambda one: reached.add((one.origin.file, one.origin.line))):
            results = _flatten(eval(entry["kernel"], values))
            mx.eval(results)
        with porter_mlx.without_metal(), porter_mlx.watching(again.append):
            expected = _flatten(eval(entry["reference"], values))
        error = max(_measure(*pair) for pair in zip(results, expected, strict=True))
    except Exception as problem:  # the package's, or porter's: a row says which
        reason = _describe(problem)
    if error is not None and (again or not reached):
        error, reason = None, "the reference launches a kernel too" if again else "launches no kernel"
    if sanitize and error is not None:
        with running(Mode(sanitize=True)):
            try:
                mx.eval(_flatten(eval(entry["kernel"], values)))
            except RuntimeError as problem:
                finding = _describe(problem)
    bound = float(entry.get("within", _WITHIN))
    return Row(entry.get("name", "{module}").format(module=name), frozenset(reached), error, bound, reason, finding)


def _describe(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}".partition("\n")[0][:160]


def _flatten(results: Any) -> list[Any]:
    listed = list(results) if isinstance(results, (list, tuple)) else [results]
    return [result for result in listed if result is not None]


def _measure(result: Any, expected: Any) -> float:
    """The largest difference, in parts of the largest value."""
    mx = sys.modules["mlx.core"]
    if result.shape != expected.shape:
        raise ValueError(f"the shape is {result.shape}, not {expected.shape}")
    result, expected = result.astype(mx.float32), expected.astype(mx.float32)
    difference = float(mx.abs(result - expected).max()) / max(float(mx.abs(expected).max()), 1e-6)
    return difference if difference == difference else float("inf")


def _tabulate(sites: Sequence[Site], rows: Sequence[Row], markdown: bool) -> Iterator[str]:
    ran = {site for row in rows if row.ok for site in row.sites}
    total = Counter(site.package for site in sites)
    done = Counter(site.package for site in sites if (site.file, site.line) in ran)
    if markdown:
        yield "| package | call sites | run, and right | largest error |"
        yield "| --- | --- | --- | --- |"
    for package in total:
        errors = [row.error for row in rows if row.error is not None and row.name.startswith(f"{package}.")]
        worst = f"{max(errors):.0e}" if errors else "-"
        cells = (package, str(total[package]), str(done[package]), worst)
        yield f"| {' | '.join(cells)} |" if markdown else "  ".join(cells)
    if not markdown:
        for site in sites:
            if (site.file, site.line) not in ran:
                yield f"not reached: {site.file}:{site.line}"


if __name__ == "__main__":
    sys.exit(main())
