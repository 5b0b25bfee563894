"""`porter kernel`: the group of commands for kernels that a person writes."""

from __future__ import annotations

import json
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from porter.cli.kernel_export import export, import_, promote
from porter.cli.options import allow_bytes, arithmetic, command, device, family, group, macos, metal, sanitize, shuffle
from porter.cli.output import DONE, INCOMPLETE, Output


def _complete_template(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from porter.workflows.templates import find_templates

    return [CompletionItem(t.name, help=t.summary) for t in find_templates() if t.name.startswith(incomplete)]


@command(
    "new",
    ("porter kernel new rms_norm", "a copy in this folder"),
    ("porter kernel new softmax --name masked", "under another name, functions too"),
    ("porter kernel new --blank swiglu", "a kernel of your own, to fill in"),
)
@click.argument("template", required=False, shell_complete=_complete_template)
@click.option("--blank", metavar="NAME", help="Start from nothing: a script NAME.py that runs and copies its input.")
@click.option("--name", metavar="NAME", help="What to call the script and its functions.")
@click.option(
    "--out", default=".", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Where to write it."
)
def new(output: Output, template: str | None, blank: str | None, name: str | None, out: Path) -> int:
    """Start a kernel from a template, or from nothing.

    TEMPLATE is a name that `porter kernel list` shows. No file is overwritten.
    """
    from porter.workflows.templates import BLANK, write_new

    if (template is None) is (blank is None) or (blank and name):
        raise click.UsageError("give TEMPLATE or --blank NAME")
    template, name = template or BLANK, name or blank
    path = write_new(template, name, out)
    if output.json:
        output.object({"file": str(path)})
    else:
        output.text(str(path))
        output.note(f"Check it: porter kernel check {path}")
    return DONE


@command("list", ("porter kernel list", "name, kind and summary"), ("porter kernel list --json", "one object each"))
def list_templates(output: Output) -> int:
    """List the templates that a kernel can start from."""
    from porter.report.kernel import template_lines, template_object
    from porter.workflows.templates import find_templates

    templates = find_templates()
    if output.json:
        for template in templates:
            output.object(template_object(template))
    else:
        output.text("\n".join(template_lines(templates)))
    return DONE


@command(
    "check",
    ("porter kernel check rms_norm.py", "every case of the script"),
    ("porter kernel check rms_norm.py --arithmetic all", "also as Apple's compiler may compute"),
    ("porter kernel check rms_norm.py --large", "also on tensors whose offsets pass 2^31 and 2^32"),
    ("porter kernel check rms_norm.py --json", "as JSON"),
    on_device=True,
)
@click.argument("file", type=click.Path(path_type=Path))
@sanitize
@allow_bytes
@shuffle
@family
@metal
@macos
@arithmetic
@click.option("--large", is_flag=True, help="Also run on tensors with offsets beyond 32 bits, on sparse memory.")
@device
@click.option(
    "--hidden",
    type=click.IntRange(0),
    metavar="SEED",
    help="Also judge the script: cases made of SEED, and rules against cheats.",
)
@click.option(
    "--mutants",
    type=click.IntRange(0, 1000),
    metavar="N",
    default=0,
    help="Also try N slips in the script's Metal: does a case catch each?",
)
@click.option(
    "--problem",
    type=click.Path(path_type=Path),
    metavar="SCRIPT",
    help="FILE is an answer to it: a function for each of its stages, and cases and references are the problem's.",
)
def check(
    output: Output,
    file: Path,
    device: str,
    arithmetic: str,
    large: bool,
    hidden: int | None,
    mutants: int,
    problem: Path | None,
) -> int:
    """Compare a script's kernels with their references.

    Runs every case of the script's SCRIPT: sizes, element types and layouts, in both tiers, with accesses out of
    bounds refused; then threadgroups of other sizes, where launches take any. FILE is run as Python.
    """
    from porter.core.files import write_whole
    from porter.report.kernel import check_lines, check_object, mutant_lines
    from porter.workflows.judging import keeping_sources, take_verdict_file, try_mutants
    from porter.workflows.kernel import answering_to, backend_name, check_script

    if mutants and device != "mps":
        raise click.UsageError("--mutants runs on the host: omit --device")
    verdict_file = take_verdict_file()
    with keeping_sources() as list_sources, answering_to(problem):
        results = list(check_script(file, output.report_step, device, arithmetic, large, hidden))
        sources = list_sources() if mutants else ()
        failing = [result.case for result in results if not result.ok]
        report = try_mutants(file, sources, failing, mutants, hidden or 0, output.report_step) if mutants else None
    verdict = check_object(file.name, results, report)
    if verdict_file is not None:
        write_whole(verdict_file, json.dumps(verdict))
    if output.json:
        output.object(verdict)
    else:
        lines = mutant_lines(file.name, report) if report else []
        output.text("\n".join((*lines, *check_lines(file.name, results, backend_name(device)))))
    return DONE if all(result.ok for result in results) else INCOMPLETE


@command(
    "judge",
    ("porter kernel judge answers", "every script of a folder"),
    ("porter kernel judge answers --seed 7 --mutants 20", "other hidden cases, and slips in the Metal"),
    ("porter kernel judge answers --problems problems", "answers to these problems, by their names"),
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(0), metavar="SEED", default=0, help="What hidden cases are made of.")
@click.option(
    "--mutants", type=click.IntRange(0, 1000), metavar="N", default=0, help="Slips to try in each script's Metal."
)
@click.option(
    "--problems",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Problems that the files of FOLDER answer, each in the file of the same name.",
)
def judge(output: Output, folder: Path, seed: int, mutants: int, problems: Path | None) -> int:
    """Judge kernel scripts that somebody else wrote.

    Checks each Python file of FOLDER in a process of its own, as `porter kernel check --hidden` does, and prints a
    table: PASS, FAIL (a case differs), CHEAT (a rule is broken) or ERROR (it does not run). Each file is run as Python.
    """
    from porter.report.kernel import Ruling, judgement_lines, judgement_object
    from porter.workflows.judging import judge_folder

    judgements = []
    for judgement in judge_folder(folder, seed, mutants, output.report_step, problems):
        judgements.append(judgement)
        if output.json:
            output.object(judgement_object(judgement))
    if not output.json:
        output.text("\n".join(judgement_lines(judgements)))
    return DONE if all(judgement.ruling is Ruling.PASS for judgement in judgements) else INCOMPLETE


@command(
    "bench",
    ("porter kernel bench softmax.py", "one script"),
    ("porter kernel bench --all", "every template, in one run"),
    ("porter kernel bench softmax.py --device cuda", "on an NVIDIA GPU"),
    ("porter kernel bench softmax.py --emit bench.py", "a script that times it on a Mac, without porter"),
    on_device=True,
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--all", "every", is_flag=True, help="Time every template.")
@click.option(
    "--emit",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Instead of times, write a script that takes them on a Mac, and needs torch alone.",
)
@device
def bench(output: Output, file: Path | None, every: bool, emit: Path | None, device: str) -> int:
    """Time a script's kernels beside the torch operator.

    Prints milliseconds and ratios. On the host the operator runs on the CPU, so that a ratio says what the host makes
    of a kernel, not what a GPU would. On an NVIDIA GPU both run there, and the share of a copy's bandwidth is printed
    too. FILE is run as Python.
    """
    from porter.report.kernel import TIMING_HEADING, timing_line, timing_object
    from porter.workflows.kernel import backend_name, time_scripts

    if (file is None) is not every:
        raise click.UsageError("give FILE or --all")
    if emit is not None:
        if file is None or device != "mps":
            raise click.UsageError(f"--emit goes with FILE: omit {'--all' if file is None else '--device'}.")
        return _emit(output, file, emit)
    if backend_name(device) == "host":
        output.note("kernels and torch's operators both run on one core of this CPU: no ratio is that of a GPU")
    for number, (name, timing) in enumerate(time_scripts((file,) if file else (), output.report_step, device)):
        line = timing_line(name, timing)
        output.show(timing_object(name, timing), line if number else f"{TIMING_HEADING}\n{line}")
    return DONE


def _emit(output: Output, file: Path, out: Path) -> int:
    """Writes a script that times kernels on a Mac, and says which of its rows lack torch's time."""
    from porter.workflows.emit import emit_kernel_benchmark

    left_out = emit_kernel_benchmark(file, out, output.report_step)
    if output.json:
        output.object({"file": str(out), "left_out": dict(left_out)})
        return DONE
    output.text(str(out))
    for stage, reason in left_out.items():
        output.note(f"no time of torch for stage {stage}: {reason}")
    output.note(f"on a Mac: python {out.name}, which prints a table")
    return DONE


@command(
    "trace",
    ("porter kernel trace sort.py", "where a pipeline first goes wrong"),
    ("porter kernel trace sort.py --shuffle 7", "in another order of lanes and threadgroups"),
    ("porter kernel trace softmax.py --watch nan", "up to the first NaN or infinity"),
    on_device=True,
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--shuffle", type=int, metavar="SEED", help="Run lanes and threadgroups in an order made of SEED, one by one."
)
@sanitize
@click.option("--watch", type=click.Choice(["nan"]), help="Also stop where a kernel makes NaN or infinity.")
def trace(output: Output, file: Path, shuffle: int | None, watch: str | None) -> int:
    """Run a script stage by stage, up to the first that is wrong.

    Shows the first element that differs from the stage's reference: its index, what was expected, what came, and who
    wrote it. Accesses out of bounds are refused. `--watch nan` names the line that makes NaN or infinity of finite
    numbers. FILE is run as Python.
    """
    import os

    from aten_overlay.metal.sanitizer.checks import VARIABLE
    from porter.report.kernel import trace_lines, trace_object
    from porter.workflows.kernel import trace_script

    if watch is not None:
        os.environ[VARIABLE] = f"{os.environ.get(VARIABLE, '')},{watch}"
    code = DONE
    for result in trace_script(file, shuffle):
        output.show(trace_object(result), trace_lines(result))
        code = code if result.difference is None else INCOMPLETE
    return code


@command(
    "compile",
    ("porter kernel compile softmax.py", "one script"),
    ("porter kernel compile --all", "every template"),
)
@click.argument("files", type=click.Path(path_type=Path), nargs=-1)
@click.option("--all", "every", is_flag=True, help="Compile every template.")
def compile_kernels(output: Output, files: tuple[Path, ...], every: bool) -> int:
    """Compile a script's kernels for NVIDIA GPUs.

    Needs no GPU. The PTX goes into the cache; a machine with a GPU and no clang finds it in a copy of the cache, which
    $PORTER_CACHE names. Each FILE is run as Python.
    """
    from porter.workflows.kernel import compile_scripts

    if bool(files) is every:
        raise click.UsageError("give FILE or --all")
    for name, count in compile_scripts(files, output.report_step):
        output.show({"script": name, "sources": count}, f"{name}: {count} sources compiled")
    return DONE


kernel = group(
    "kernel",
    "Start, check, time, trace, export and promote Metal kernels of your own.",
    new,
    list_templates,
    check,
    judge,
    bench,
    trace,
    compile_kernels,
    export,
    import_,
    promote,
)
