"""The tool that runs the kernels of packages for MLX, without MLX."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import mlx_sites
from mlx_sites import Row, Site


def test_every_call_of_a_package_is_a_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "sites_of_mlx"
    package.mkdir()
    (package / "__init__.py").write_text("from mlx.core.fast import metal_kernel\nmetal_kernel()\n")
    (package / "inner.py").write_text("import mlx.core as mx\n\n\ndef make():\n    return mx.fast.metal_kernel()\n")
    monkeypatch.syspath_prepend(tmp_path)
    sites = list(mlx_sites._list_sites("sites_of_mlx"))
    assert [(Path(site.file).name, site.line) for site in sites] == [("__init__.py", 2), ("inner.py", 5)]
    assert "sites_of_mlx" not in sys.modules
    with pytest.raises(SystemExit, match="pip install no-such"):
        list(mlx_sites._list_sites("no_such"))


def test_only_sites_of_calls_within_their_bound_count() -> None:
    sites = [Site("p", "a.py", 1), Site("p", "a.py", 2), Site("p", "b.py", 3)]
    rows = [
        Row("p.a", frozenset({("a.py", 1)}), 2e-6, 1e-5),
        Row("p.a, otherwise", frozenset({("a.py", 2)}), 2e-4, 1e-5),
        Row("p.b", frozenset({("b.py", 3)}), None, 1e-5, "launches no kernel"),
    ]
    assert [row.ok for row in rows] == [True, False, False]
    assert str(rows[2]) == "FAIL p.b: launches no kernel (1 sites)"
    assert list(mlx_sites._tabulate(sites, rows, True))[2:] == ["| p | 3 | 1 | 2e-04 |"]
    assert list(mlx_sites._tabulate(sites, rows, False))[1:] == ["not reached: a.py:2", "not reached: b.py:3"]
