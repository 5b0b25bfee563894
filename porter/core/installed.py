"""Files of the repository that no package holds: a clone has them beside the packages, a wheel in `share/porter`."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

_DISTRIBUTION = "torch-porter"  # the name `porter` is another project's on PyPI
_REPOSITORY = Path(__file__).resolve().parents[2]


def find_installed(folder: str) -> dict[str, Path]:
    """The files under `folder` of the repository, such as "docs/errors", by their path below it."""
    # Of an installed package, the folder above is site-packages, where somebody's `docs` or `templates` may stand.
    if (_REPOSITORY / "pyproject.toml").is_file():
        files = {p.relative_to(_REPOSITORY / folder).as_posix(): p for p in (_REPOSITORY / folder).rglob("*")}
    else:
        start = f"share/porter/{folder}/"
        listed = [path for path in metadata.files(_DISTRIBUTION) or () if start in path.as_posix()]
        files = {path.as_posix().partition(start)[2]: Path(str(path.locate())) for path in listed}
    return {name: path for name, path in sorted(files.items()) if path.is_file() and "__pycache__" not in name}
