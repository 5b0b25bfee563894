"""One kernel, every door: writes a kernel in the form that another ecosystem wants, and reads two of them back.

A form is one file here. `register` adds others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from porter.core.errors import Place, PorterError
from porter.kernels.call import Call, Value
from porter.kernels.export import compile_shader, coreai, kernel_builder, mlx, script
from porter.kernels.export.forms import Files, Form, check_gradient, source_of
from porter.kernels.loading import AnyKernel, StageUse
from porter.kernels.metal_kernel import MetalKernel
from porter.kernels.torch_metal_kernel import TorchMetalKernel

_forms: dict[str, Form] = {
    form.name: form for form in (compile_shader.FORM, mlx.FORM, coreai.FORM, kernel_builder.FORM, script.FORM)
}


def register(form: Form) -> None:
    """Adds a form, or replaces the one of its name."""
    _forms[form.name] = form


def forms() -> tuple[str, ...]:
    """The names of every form."""
    return tuple(_forms)


def export(
    kernel: AnyKernel,
    form: str,
    inputs: Sequence[Value] | None = None,
    call: Call | None = None,
    without_vjp: bool = False,
    use: StageUse | None = None,
    others: Sequence[Call] = (),
) -> Files:
    """The files of `kernel` in `form`, by path; `inputs` are like those of a call; or `call` is one, which a script
    makes by `use`, and `others` are calls of other element types, for a form that holds several.

    Raises PTR228 without inputs that the form needs, PTR231 for a kernel that the form cannot hold, PTR232 for an
    unknown form, PTR256 for a vjp that would be lost, unless `without_vjp`, PTR284 for what is no kernel.
    """
    if not isinstance(kernel, (MetalKernel, TorchMetalKernel)):
        raise PorterError("PTR284", f"what is exported is a {type(kernel).__name__}, not a kernel",
                          hint="Give a MetalKernel or a TorchMetalKernel.")  # fmt: skip
    if not without_vjp:
        check_gradient(kernel)
    source = source_of(kernel, inputs)
    return find_form(form).write(
        source if call is None else replace(source, example=call, use=use, others=tuple(others))
    )


def read_back(text: str, form: str) -> AnyKernel:
    """The kernel in a file of `form`. Raises PTR229, PTR230 and PTR232."""
    read = find_form(form).read
    if read is None:
        readable = ", ".join(each.name for each in _forms.values() if each.read)
        raise PorterError("PTR232", f"kernels cannot be read from the form `{form}`", hint=f"Use one of {readable}.")
    return read(text)


def take_running(
    path: Path, form: str, kernel: str | None = None, calls: Sequence[str] = ()
) -> tuple[Files, tuple[str, ...]]:
    """The scripts of the kernels that a file of `form` makes while it runs, or of the one of that name, and notes.

    Raises PTR223, PTR229, PTR232, PTR238 and PTR240.
    """
    run = find_form(form).run
    if run is None:
        runnable = ", ".join(name for name, other in _forms.items() if other.run)
        raise PorterError("PTR232", f"files of the form `{form}` are read, not run", hint=f"Only {runnable} is run.")
    gathered = run(path, calls)
    if kernel is not None and kernel not in gathered.kernels:
        raise PorterError("PTR240", f"the run made no kernel {kernel}", Place(str(path)),
                          f"It made {', '.join(gathered.kernels)}.")  # fmt: skip
    chosen = gathered.kernels if kernel is None else {kernel: gathered.kernels[kernel]}
    files = [export(MetalKernel.of(made.kernel), script.FORM.name, call=made.call) for made in chosen.values()]
    return {name: text for written in files for name, text in written.items()}, gathered.notes


def find_form(name: str, others: Sequence[str] = ()) -> Form:
    """The form of that name. Raises PTR232, which says the names of `others` too, which are written elsewhere."""
    if name not in _forms:
        hint = f"Use one of {', '.join((*_forms, *others))}."
        raise PorterError("PTR232", f"there is no form `{name}`", hint=hint)
    return _forms[name]
