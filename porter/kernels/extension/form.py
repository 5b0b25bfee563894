"""The form `extension` of `porter.kernels.export`: a project named after the kernel, with one operator."""

from __future__ import annotations

from porter.kernels.export.forms import Files, Form, Source
from porter.kernels.extension.from_kernels import project_of_kernels
from porter.kernels.extension.project import check_name


def write(source: Source) -> Files:
    """The files of the project by path. Raises PTR251, PTR254 and PTR255."""
    name = check_name(f"{source.kernel.name}_extension")
    return project_of_kernels(name, [(source.kernel, source.reference)]).files


FORM = Form("extension", write, runs_here=True)
