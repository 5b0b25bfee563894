"""`porter kernel export`, `import` and `promote`: a kernel in another form."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from porter.cli.options import arithmetic, command, family, sanitize
from porter.cli.output import DONE, INCOMPLETE, Output

if TYPE_CHECKING:
    from porter.plan.promotion.planner import PromotionPlan


_NUMBERS = re.compile(r"[0-9]{1,9}(?:,[0-9]{1,9})*,?")

instantiate = click.option(
    "--instantiate",
    multiple=True,
    metavar="NAME=N,...",
    help="For an operator: the values of a template parameter that depends on the call.",
)


def read_values(given: tuple[str, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The values of template parameters, from texts such as `D=64,128`."""
    found: dict[str, tuple[int, ...]] = {}
    for text in given:
        name, _, values = text.partition("=")
        if not name.isidentifier() or not _NUMBERS.fullmatch(values):
            raise click.BadParameter(f"{text!r} is not NAME=NUMBER,...", param_hint="--instantiate")
        found[name] = tuple(int(each) for each in values.split(",") if each)
    return tuple(found.items())


@command(
    "promote",
    ("porter kernel promote softmax.py --op softmax_rows", "show the operator and verify it"),
    ("porter kernel promote silu.py --op fast_silu --write", "write it to the checkout"),
    on_device=True,
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--op", required=True, metavar="NAME", help="The name of the new operator.")
@click.option("--stage", metavar="NAME", help="Which stage of the script, if it has several.")
@click.option("--simple", is_flag=True, help="Promote the simple tier of the stage.")
@click.option("--schema", metavar="TEXT", help="Its schema. Default: from the stage's arguments and results.")
@instantiate
@click.option("--write", is_flag=True, help="Write the change set to the checkout.")
@click.option("--force", is_flag=True, help="Write even if a touched file has uncommitted changes.")
@click.option("--no-verify", is_flag=True, help="Only plan; do not verify.")
@sanitize
@family
@arithmetic
def promote(
    output: Output,
    file: Path,
    op: str,
    stage: str | None,
    simple: bool,
    schema: str | None,
    instantiate: tuple[str, ...],
    write: bool,
    force: bool,
    no_verify: bool,
    arithmetic: str,
) -> int:
    """Make a kernel of a script an operator of the fork.

    Plans kernel file, host code, meta function, rows, OpInfo and tests as one change set, and verifies it. FILE is run
    as Python. Nothing is written without --write.
    """
    from porter.plan.promotion.planner import PromotionPlan
    from porter.plan.promotion.promotion import ScriptWish
    from porter.verdict.result import Verdict
    from porter.workflows.migrate import Wrote
    from porter.workflows.promote import Request
    from porter.workflows.promote import promote as run

    wish = ScriptWish(op, stage, simple, schema, read_values(instantiate))
    request = Request(file, wish, write, force, not no_verify, arithmetic)
    code = DONE
    for found in run(output.open_checkout(write), request, output.report_progress):
        match found:
            case PromotionPlan():
                _show(output, found, no_verify)
            case Verdict():
                output.verdict(found)
                code = code if found.ok else INCOMPLETE
            case Wrote(files):
                output.note(f"wrote {len(files)} files; `porter undo` reverts them")
    return code


def _show(output: Output, plan: PromotionPlan, alone: bool) -> None:
    from porter.report.as_json import promotion_object
    from porter.report.terminal import promotion_summary

    if output.json:
        output.object(promotion_object(plan))
        return
    output.diff(plan.changes.diff())
    (output.note if alone else output.text)(promotion_summary(plan))


ATEN = "aten"
_OUT = click.option(
    "--out", default=".", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Where to write it."
)


@command(
    "export",
    ("porter kernel export softmax.py --kernel softmax --to mlx", "for MLX's metal_kernel"),
    ("porter kernel export silu.py --to aten --op fast_silu --out silu", "an operator of PyTorch, as files"),
    ("porter kernel export add.py --to kernel-builder --out add", "a project for Hugging Face's kernel-builder"),
    on_device=True,
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
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where to write it. Default: a folder of its own, such as softmax-mlx.",
)
def export(
    output: Output,
    file: Path,
    form: str,
    kernel: str | None,
    without_vjp: bool,
    op: str | None,
    stage: str | None,
    instantiate: tuple[str, ...],
    out: Path | None,
) -> int:
    """Write a kernel in the form that another ecosystem wants.

    Types come from a call that the script's SCRIPT makes. FILE is run as Python, and no file is overwritten.
    """
    folder = out or Path(f"{file.stem}-{form}")
    if form == ATEN:
        from porter.plan.promotion.promotion import ScriptWish
        from porter.workflows.promote import export_operator

        wish = ScriptWish(op or "", stage, instantiate=read_values(instantiate))
        return _tell(output, export_operator(output.find_checkout(), file, wish, folder))
    from porter.workflows.kernel import export_kernel

    return _tell(output, export_kernel(file, form, kernel, folder, without_vjp))


@command(
    "import",
    ("porter kernel import --from mlx exp.py --out kernels", "a MetalKernel script from an MLX one"),
    (
        "porter kernel import --from mlx norms.py --call 'rms_norm(mx.ones((4, 64)), mx.ones(64))' --out kernels",
        "the kernels that this call makes, each with its launch",
    ),
    on_device=True,
)
@click.option("--from", "form", required=True, metavar="FORM", help="mlx or coreai.")
@click.option("--run", is_flag=True, help="Run FILE, and take the kernels that it makes: mlx only.")
@click.option("--call", "calls", multiple=True, metavar="CODE", help="Python that --run runs in the module of FILE.")
@click.option("--kernel", metavar="NAME", help="The one of several kernels of --run.")
@click.argument("file", type=click.Path(path_type=Path))
@_OUT
def import_(
    output: Output, file: Path, form: str, run: bool, calls: tuple[str, ...], kernel: str | None, out: Path
) -> int:
    """Write kernels of another ecosystem as scripts of porter.

    FILE is read, not run, unless --run, --call or --kernel is given. No file is overwritten.
    """
    from porter.workflows.kernel import import_kernel, import_running

    if not (run or calls or kernel):
        return _tell(output, import_kernel(file, form, out))
    paths, notes = import_running(file, form, out, kernel, calls)
    for note in notes:
        output.note(note)
    return _tell(output, paths)


def _tell(output: Output, paths: list[Path]) -> int:
    names = [str(path) for path in paths]
    output.show({"files": names}, names)
    return DONE
