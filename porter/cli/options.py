"""The global options, and the decorators that make commands and their help."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from porter.cli.output import Output, Settings
from porter.core import cache

if TYPE_CHECKING:
    from porter.report.results import Shard

Run = Callable[..., int]
Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_SHARED = ("checkout", "json", "no_color", "help")


class Command(click.Command):
    """A command whose help lists its own options, the global ones, then examples."""

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click omits it if an option lacks its value
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                formatter.write_dl(self.examples, col_max=48)


class Group(click.Group):
    """A command with commands of its own, and the global options before or after its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        write_options(ctx, formatter)


def group(name: str, told: str, *commands: click.Command) -> Group:
    """Makes a group of commands, listed in this order."""

    def settle(checkout: Path | None, json: bool, no_color: bool) -> None:
        context = click.get_current_context()
        context.obj = (context.obj or Settings()).merge(Settings(checkout, json, no_color))

    settings = {"help_option_names": ["-h", "--help"]}
    made = Group(name, callback=shared(settle), help=told, no_args_is_help=True, context_settings=settings)
    made.params = list(getattr(made.callback, "__click_params__", ()))[::-1]
    for each in commands:
        made.add_command(each)
    return made


def write_options(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Writes the options of a command to its help, in sections."""
    params = [param for param in ctx.command.get_params(ctx) if isinstance(param, click.Option)]
    for title, shared in (("Options", False), ("Global options", True)):
        records = [p.get_help_record(ctx) for p in params if (p.name in _SHARED) is shared]
        lines = [record for record in records if record]
        if lines:
            with formatter.section(title):
                formatter.write_dl(lines)


def command(
    name: str, *examples: tuple[str, str], runs_program: bool = False, on_device: bool = False
) -> Callable[[Run], Command]:
    """Makes a command from a function of an Output and the command's own options. Its docstring is the help.

    One that runs a program hands it all words from its name on, and its `--json` takes a file: stdout is the program's.
    One that is run on the mps device runs where the device is up, if this process is there for it alone.
    """

    def make(run: Run) -> Command:
        @wraps(run)
        def with_output(checkout: Path | None, no_color: bool, json: bool = False, **own: Any) -> int:
            before = click.get_current_context().obj or Settings()
            output = Output(before.merge(Settings(checkout, json, no_color)))
            file = own.get("file")
            is_missing = file is not None and not file.is_file()  # no server has to start to say so
            if on_device and before.words is not None and own.get("device", "mps") == "mps" and not is_missing:
                from porter.server.command import run_elsewhere

                code = run_elsewhere("porter.__main__", before.words, output.report_progress)
                output.finish()
                if code is not None:
                    return code
            try:
                cache.keep_bounded()
                return run(output, **own)
            finally:
                output.finish()

        settings = {"help_option_names": ["-h", "--help"], "allow_interspersed_args": not runs_program}
        add = shared_with_program if runs_program else shared
        return click.command(name, cls=Command, examples=examples, context_settings=settings)(add(with_output))

    return make


_CHECKOUT, _JSON, _NO_COLOR = (
    click.option(
        "--checkout",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The PyTorch fork to work on, or embedded: the miniature one in porter.",
    ),
    click.option("--json", is_flag=True, help="Print JSON, one object per line."),
    click.option("--no-color", is_flag=True, help="Disable color, as $NO_COLOR does."),
)


def shared(function: Decorated) -> Decorated:
    """Adds the global options."""
    return _CHECKOUT(_JSON(_NO_COLOR(function)))


def shared_with_program(function: Decorated) -> Decorated:
    """Adds the global options that say nothing of stdout."""
    return _CHECKOUT(_NO_COLOR(function))


def operators(required: bool) -> Callable[[Decorated], Decorated]:
    """The argument OP, which may be repeated."""
    metavar = "OP..." if required else "[OP...]"
    return click.argument("ops", metavar=metavar, nargs=-1, required=required, shell_complete=complete_operator)


def proof(function: Run) -> Run:
    """Adds the options of commands that verify, which come as one `proof`."""

    @wraps(function)
    def with_proof(
        output: Output,
        expr: str | None,
        backend: str,
        arithmetic: str,
        large: bool,
        thorough: bool | None,
        strict: bool,
        **others: Any,
    ) -> int:
        from porter.verdict.result import Proof

        if expr:
            from porter.verdict.test_names import require_names

            require_names(expr, repr(others))
        return function(output, proof=Proof(expr, backend, arithmetic, large, thorough, strict), **others)

    run: Run = with_proof
    for option in (
        click.option(
            "--thorough/--no-thorough",
            default=None,
            help="Also run the variations of samples that take longer. Default: only where one operator is written.",
        ),
        click.option("--strict", is_flag=True, help="Also fail for faults of the fork that the port does not touch."),
        click.option("--large", is_flag=True, help="Also test offsets beyond 32 bits, on sparse memory."),
        sanitize,
        shuffle,
        family,
        metal,
        macos,
        arithmetic,
        click.option(
            "--backend",
            default="auto",
            metavar="NAME",
            callback=_choose_backend,
            shell_complete=_complete_backend,
            help="Where the tests run: host, kernels, mps or cuda. Default: the most complete one available.",
        ),
        click.option("-k", "expr", metavar="EXPR", help="Only run tests whose name matches, as in pytest."),
    ):
        run = option(run)
    return run


@dataclass(frozen=True)
class Together:
    """How many operators are verified together, and what is written of them."""

    jobs: int | None
    shard: Shard | None
    scheduler: str | None
    insecure: bool
    results: Path | None
    recorded: bool


def together(function: Run) -> Run:
    """Adds the options of commands that verify many operators, which come as one `many`."""

    @wraps(function)
    def with_many(output: Output, **given: Any) -> int:
        many = Together(**{each.name: given.pop(each.name) for each in fields(Together)})
        return function(output, many=many, **given)

    run: Run = with_many
    for option in (
        click.option(
            "--recorded", is_flag=True, help="With --all, also port from recorded runs what no dispatch stub serves."
        ),
        click.option("--results", type=click.Path(path_type=Path), metavar="FILE", help="Write results as JSON."),
        click.option(
            "--scheduler", metavar="ADDRESS", help="Run --all on the workers of a dask.distributed scheduler."
        ),
        click.option("--insecure", is_flag=True, help="With --scheduler, also connect to another machine without TLS."),
        click.option("--shard", callback=_choose_shard, metavar="I/N", help="Only the I-th of N shares of --all."),
        click.option(
            "--jobs",
            type=click.IntRange(1),
            metavar="N",
            help="Verdicts at a time. Default: as many as there are cores.",
        ),
    ):
        run = option(run)
    return run


def _choose_shard(_ctx: click.Context, _param: click.Parameter, text: str | None) -> Shard | None:
    if text is None:
        return None
    from porter.report.results import parse_shard

    return parse_shard(text)


def _choose_backend(_ctx: click.Context, param: click.Parameter, name: str) -> str:
    """Refuses a name that no backend has, before anything is planned."""
    if name != param.default:
        from porter.verdict.backends.choice import find_backend

        find_backend(name)
    return name


def _choose_arithmetic(_ctx: click.Context, param: click.Parameter, name: str) -> str:
    """Refuses a name that no arithmetic has, before anything is planned."""
    if name != param.default:
        from porter.verdict.verify import find_arithmetics

        find_arithmetics(name)
    return name


def _setting(choose: Callable[[Any], tuple[str, str]]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Makes a callback that sets a variable of the environment, for this process and those that it starts.

    `choose` gives the variable and its text; an option that is left out sets none.
    """

    def hand_over(_ctx: click.Context, _param: click.Parameter, value: Any) -> Any:
        if value is not None and value is not False:
            from porter.verdict.errors import raising_porter_errors

            with raising_porter_errors():
                variable, text = choose(value)
            os.environ[variable] = text
        return value

    return hand_over


@_setting
def _choose_family(text: str) -> tuple[str, str]:
    from aten_overlay.metal.family import VARIABLE, parse

    parse(text)
    return VARIABLE, text


@_setting
def _choose_checks(text: str) -> tuple[str, str]:
    from aten_overlay.metal.sanitizer.checks import VARIABLE, parse

    parse(text)
    return VARIABLE, text


@_setting
def _choose_seed(seed: int) -> tuple[str, str]:
    from aten_overlay.cuda.seed import VARIABLE

    return VARIABLE, str(seed)


@_setting
def _allow_bytes(_allowed: bool) -> tuple[str, str]:
    from aten_overlay.metal.sanitizer.checks import ALLOW_BYTES

    return ALLOW_BYTES, "1"


def _choose_language(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Hands the version of Metal to what compiles kernels, in this process and in those that it starts."""
    from aten_overlay.metal.language import VARIABLE, choose
    from porter.verdict.errors import raising_porter_errors

    if text is not None:
        texts = ctx.meta.setdefault(VARIABLE, {})
        texts[param.name] = text
        with raising_porter_errors():
            os.environ[VARIABLE] = choose(**texts).name
    return text


def _complete_family(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from aten_overlay.metal.family import FAMILIES

    return [family.name for family in FAMILIES if family.name.startswith(incomplete)]


def _complete_checks(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from aten_overlay.metal.sanitizer.checks import ALL, KNOWN, NONE

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in (*KNOWN, ALL, NONE) if name.startswith(last)]


family = click.option(
    "--family",
    metavar="NAME",
    callback=_choose_family,
    expose_value=False,
    shell_complete=_complete_family,
    help="The GPU family to compile for, as $PORTER_FAMILY: apple7 to apple10, or paravirtual.",
)
metal = click.option(
    "--metal",
    metavar="VERSION",
    callback=_choose_language,
    expose_value=False,
    help="The version of Metal to compile for, as $PORTER_METAL: 3.1, 3.2 or 4.0.",
)
macos = click.option(
    "--macos",
    metavar="RELEASE",
    callback=_choose_language,
    expose_value=False,
    help="Compile for the newest Metal that a release of macOS has, such as 15 or 26.2.",
)
sanitize = click.option(
    "--sanitize",
    metavar="CHECKS",
    callback=_choose_checks,
    expose_value=False,
    shell_complete=_complete_checks,
    help="Checks to run, as $PORTER_SANITIZE: races, bounds, all or none.",
)


def _choose_large(_ctx: click.Context, _param: click.Parameter, asked: bool) -> bool:
    """Hands the choice to the program that is run, with the checks that tell where none are chosen."""
    from aten_overlay import LARGE
    from aten_overlay.metal.sanitizer.checks import VARIABLE

    if asked:
        os.environ[LARGE] = "1"
        os.environ.setdefault(VARIABLE, "bounds,overflow")
    return asked


allow_bytes = click.option(
    "--allow-bytes",
    is_flag=True,
    callback=_allow_bytes,
    expose_value=False,
    help="Let kernels read tensors as integers of another width, and integers as anything, as $PORTER_ALLOW_BYTES.",
)
large_tensors = click.option(
    "--large",
    is_flag=True,
    callback=_choose_large,
    expose_value=False,
    help="Give large tensors addresses alone, as $PORTER_LARGE, and check bounds and overflow unless told which.",
)
as_mac = click.option(
    "--as-mac", is_flag=True, help="Let the program's own files see macOS on arm64 in sys, platform and os."
)
device = click.option(
    "--device",
    type=click.Choice(["mps", "cuda"]),
    default="mps",
    show_default=True,
    help="Where kernels run: on the mps device, or on an NVIDIA GPU.",
)
shuffle = click.option(
    "--shuffle",
    type=click.IntRange(0),
    metavar="SEED",
    callback=_choose_seed,
    expose_value=False,
    help="On an NVIDIA GPU, run threadgroups in orders made of SEED, as $PORTER_SHUFFLE.",
)


def complete_operator(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The base names of the operators that MPS serves; empty if the checkout cannot be read."""
    return [base for base in _list_operators(ctx, served=True) if base.startswith(incomplete)]


def complete_missing(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The base names of the operators with kernels that MPS lacks; empty if the checkout cannot be read."""
    return [base for base in _list_operators(ctx, served=False) if base.startswith(incomplete)]


def _list_operators(ctx: click.Context, served: bool) -> list[str]:
    from porter.aten.declarations import MPS_KEY
    from porter.aten.native_functions import NativeFunctions
    from porter.core.checkout import find_checkout
    from porter.core.errors import PorterError

    named = next((c.params["checkout"] for c in (ctx, ctx.parent) if c and c.params.get("checkout")), None)
    try:
        entries = NativeFunctions.read(find_checkout(named, Path.cwd(), dict(os.environ))).all
    except PorterError:  # completion has nowhere to print it
        return []
    there = dict.fromkeys(entry.base for entry in entries if entry.entry_for(MPS_KEY))
    return list(there) if served else list(dict.fromkeys(e.base for e in entries if e.dispatch and e.base not in there))


def _complete_backend(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from porter.verdict.backends.choice import BACKENDS
    from porter.verdict.result import AUTO

    return [name for name in (AUTO, *BACKENDS) if name.startswith(incomplete)]


def _complete_arithmetic(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from porter.verdict.result import ALL, ARITHMETICS, FAST

    return [name for name in (*ARITHMETICS, FAST, ALL) if name.startswith(incomplete)]


arithmetic = click.option(
    "--arithmetic",
    default="default",
    metavar="NAME",
    callback=_choose_arithmetic,
    shell_complete=_complete_arithmetic,
    help="Arithmetic a GPU may use: default, fused, flush, reorder, fast, or all.",
)
