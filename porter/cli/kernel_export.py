"""`porter kernel export` and `porter kernel import`."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.kernel_promote import instantiate, read_values
from porter.cli.options import command
from porter.cli.output import DONE, Output

ATEN = "aten"
_OUT = click.option(
    "--out", default=".", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Where to write it."
)


@command(
    "export",
    ("porter kernel export softmax.py --kernel softmax --to mlx", "for MLX's metal_kernel"),
    ("porter kernel export silu.py --to aten --op fast_silu --out silu", "an operator of PyTorch, as files"),
    ("porter kernel export add.py --to kernel-builder --out add", "a project for Hugging Face's kernel-builder"),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--to", "form", required=True, metavar="FORM",
    help="compile_shader, mlx, coreai, extension, kernel-builder, aten.",
)  # fmt: skip
@click.option("--kernel", metavar="NAME", help="Which kernel, if the script has several.")
@click.option("--without-vjp", is_flag=True, help="Leave out the gradient that the kernel defines itself.")
@click.option("--op", metavar="NAME", help="For aten: the name of the operator. Default: that of the stage.")
@click.option("--stage", metavar="NAME", help="For aten: which stage, if the script has several.")
@instantiate
@_OUT
def export(
    output: Output,
    file: Path,
    form: str,
    kernel: str | None,
    without_vjp: bool,
    op: str | None,
    stage: str | None,
    instantiate: tuple[str, ...],
    out: Path,
) -> int:
    """Write a kernel in the form that another ecosystem wants.

    Types come from a call that the script's SCRIPT makes. FILE is run as Python, and no file is overwritten.
    """
    if form == ATEN:
        from porter.plan.promotion.promotion import ScriptWish
        from porter.workflows.promote import export_operator

        wish = ScriptWish(op or "", stage, instantiate=read_values(instantiate))
        return _tell(output, export_operator(output.find_checkout(), file, wish, out))
    from porter.workflows.kernel_forms import export_kernel

    return _tell(output, export_kernel(file, form, kernel, out, without_vjp))


@command(
    "import",
    ("porter kernel import --from mlx exp.py --out kernels", "a MetalKernel script from an MLX one"),
)
@click.option("--from", "form", required=True, metavar="FORM", help="mlx or coreai.")
@click.argument("file", type=click.Path(path_type=Path))
@_OUT
def import_(output: Output, file: Path, form: str, out: Path) -> int:
    """Write a kernel of another ecosystem as a script of porter.

    FILE is read, not run. No file is overwritten.
    """
    from porter.workflows.kernel_forms import import_kernel

    return _tell(output, import_kernel(file, form, out))


def _tell(output: Output, paths: list[Path]) -> int:
    if output.json:
        output.object({"files": [str(path) for path in paths]})
    else:
        output.text("\n".join(str(path) for path in paths))
    return DONE
