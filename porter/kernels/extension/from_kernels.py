"""An extension from a file of kernels: each becomes an operator of the same name, called as its MetalKernel is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from porter.core.errors import Place, PorterError
from porter.core.files import require_regular
from porter.kernels.export.forms import check_gradient
from porter.kernels.extension import files
from porter.kernels.extension.project import Project, check_name, names_of
from porter.kernels.extension.reference import HEADER, write_reference
from porter.kernels.extension.sources import Exported, cpp_registration, cpp_source, python_kernel
from porter.kernels.kernel import Kernel
from porter.kernels.loading import run_file
from porter.kernels.metal_kernel import MetalKernel
from porter.kernels.references import Reference
from porter.kernels.torch_metal_kernel import TorchMetalKernel
from porter.kernels.uses import AnyKernel


def project_of_file(name: str, path: Path, without_vjp: bool = False) -> Project:
    """The extension `name` with the kernels of a file.

    Raises PTR251, PTR253-PTR255, PTR256 for a vjp unless `without_vjp`, and what making kernels raises.
    """
    check_name(name)
    kernels = find_kernels(path)
    if not without_vjp:
        for kernel in kernels:
            check_gradient(kernel)
    return project_of_kernels(name, [(each.kernel, each.reference) for each in kernels])


def find_kernels(path: Path) -> tuple[AnyKernel, ...]:
    """The kernels that are values of a file, in their order. Raises PTR253 if it has none, PTR238 if it stops."""
    place = Place(str(path))
    require_regular(path, "PTR253")
    values = run_file(path).values()
    found = tuple(dict.fromkeys(value for value in values if isinstance(value, MetalKernel | TorchMetalKernel)))
    if not found:
        hint = "Give the file a module-level `MetalKernel(name, input_names, output_names, source)`."
        raise PorterError("PTR253", "the file has no MetalKernel", place, hint)
    return found


def project_of_kernels(name: str, kernels: Sequence[tuple[Kernel, Reference | None]]) -> Project:
    """The extension `name` with these kernels and what they compute. Raises PTR254 and PTR255."""
    exported = [_export(kernel, reference) for kernel, reference in kernels]
    names = [each.kernel.name for each in exported]
    for each in names:
        if names.count(each) > 1:
            raise PorterError("PTR255", f"two kernels are named `{each}`", hint="Rename one of them.")
    references = dict.fromkeys(e.reference.text for e in exported if e.reference)
    filled = {
        **names_of(name),
        "names": ", ".join(sorted(names)),
        "quoted": ", ".join(f'"{each}"' for each in sorted(names)),
        "sources": "\n".join(cpp_source(each.kernel) for each in exported),
        "registrations": "\n".join(cpp_registration(each.kernel, i) for i, each in enumerate(exported)),
        "kernels": "\n".join(map(python_kernel, exported)),
        "with_reference": repr([each.kernel.name for each in exported if each.reference]),
    }
    made = files.fill(files.KERNEL, filled)
    made[f"{name}/references.py"] = "\n\n".join((HEADER, *references)).rstrip() + "\n"
    return Project(name, made)


def _export(kernel: Kernel, reference: Reference | None) -> Exported:
    if not kernel.outputs:
        raise PorterError(
            "PTR255", f"kernel `{kernel.name}` gets its inputs and outputs only when it is called",
            hint="Give it input_names and output_names.",
        )  # fmt: skip
    return Exported(kernel, write_reference(kernel.name, reference) if reference else None)
