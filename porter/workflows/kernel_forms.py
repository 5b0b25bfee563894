"""`porter kernel export` and `import`: a kernel of a script in another ecosystem's form, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from porter.core.errors import Place, PorterError
from porter.core.files import read_named
from porter.workflows.kernel import start_device
from porter.workflows.templates import create_file

ATEN = "aten"  # the form that `porter.workflows.promote` writes


def export_kernel(path: Path, form: str, name: str | None, folder: Path, without_vjp: bool = False) -> list[Path]:
    """Writes a kernel of a script in another form.

    Raises PTR228, PTR231, PTR232, PTR236, PTR238, PTR240, and PTR256 unless `without_vjp`.
    """
    start_device()
    from porter.kernels.export import export, find_form
    from porter.kernels.loading import find_kernel, load_kernels

    find_form(form, [ATEN])
    found = find_kernel(path, load_kernels(path), name)
    return _write(export(found.kernel, form, None, found.call, without_vjp, found.use), folder)


def import_kernel(path: Path, form: str, folder: Path) -> list[Path]:
    """Writes the kernel of a file in another form as porter's own. Raises PTR229-PTR232, PTR236 and PTR238."""
    start_device()
    from porter.kernels.export import export, find_form, read_back
    from porter.kernels.loading import require_script

    find_form(form)
    require_script(path)
    text = read_named(path, "PTR238")
    try:
        kernel = read_back(text, form)
    except PorterError as error:
        place = Place(str(path), error.place.line if error.place else 0)
        raise PorterError(error.code, error.what, place, error.hint) from error
    return _write(export(kernel, "porter"), folder)


def _write(files: Mapping[str, str], folder: Path) -> list[Path]:
    paths = [folder / name for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        create_file(path, text)
    return paths
