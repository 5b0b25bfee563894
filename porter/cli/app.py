"""`porter`: the command group, the global options and the exit codes."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import click

from porter import __version__
from porter.cli.add import add
from porter.cli.bench import bench
from porter.cli.extension import extension
from porter.cli.kernel import kernel
from porter.cli.mac import mac
from porter.cli.mcp import mcp
from porter.cli.migrate import migrate
from porter.cli.options import shared, write_options
from porter.cli.output import DONE, NOT_PLANNED, Output, Settings
from porter.cli.review import lint, review
from porter.cli.run import run
from porter.cli.status import explain, report, status
from porter.cli.toolbelt import toolbelt
from porter.cli.upkeep import cache, doctor, setup, undo
from porter.cli.verify import verify, watch
from porter.core.errors import PorterError, refused
from porter.report.console import ANY_ENCODING

INTERRUPTED = 130
USAGE = "PTR006"
NAME, COMPLETION = "porter", "_PORTER_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
GROUPS = {
    "Port": (migrate, add, undo),
    "Inspect": (status, explain, report),
    "Verify": (verify, watch, bench),
    "Run": (run,),
    "Review": (review, lint),
    "Write": (kernel, extension),
    "Witness": (mac,),
    "Set up": (setup, doctor, cache, mcp, toolbelt),
}
EXAMPLES = (
    ("porter setup", "install a compiler and build what verdicts share"),
    ("porter status --portable", "list what can be ported"),
    ("porter migrate atan2", "plan a port, show the diff and verify it"),
    ("porter migrate atan2 --write", "the same, then write it"),
)


class App(click.Group):
    """The commands, in groups."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`porter help COMMAND` is `porter COMMAND --help`."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, self.commands)
            hint = f"Did you mean {', '.join(near)}?" if near else f"Run `{NAME} --help` for a list of commands."
            raise PorterError(USAGE, f"there is no command named {name}", hint=hint)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(entry.name or "", entry.get_short_help_str(100)) for entry in commands])
        write_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            formatter.write_dl(EXAMPLES, col_max=48)

    def invoke(self, ctx: click.Context) -> int:
        try:
            return int(super().invoke(ctx))
        except BrokenPipeError:
            sys.stderr.close()
            return DONE


def _print_completion(ctx: click.Context, _param: click.Parameter, shell: str | None) -> None:
    if shell is None or ctx.resilient_parsing:
        return
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.command, {}, NAME, COMPLETION).source())
    ctx.exit()


# Packages that porter plans without, and the extra that has each.
_EXTRAS = dict.fromkeys(("torch", "numpy", "expecttest", "pytest"), "verify") | dict.fromkeys(("anyio", "mcp"), "mcp")


@click.group(
    NAME, cls=App, no_args_is_help=True, subcommand_metavar="COMMAND ...",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
@click.version_option(__version__, message="%(prog)s %(version)s", help="Show the version and exit.")
@click.option(
    "--completion",
    type=click.Choice(SHELLS),
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help='Print a shell completion script: eval "$(porter --completion bash)".',
)
@shared
@click.pass_context
def app(ctx: click.Context, checkout: Path | None, json: bool, no_color: bool) -> None:
    """Port PyTorch operators from MPSGraph to native Metal, and verify each port."""
    ctx.obj = Settings(checkout, json, no_color, words=ctx.obj)


for _commands in GROUPS.values():
    for _command in _commands:
        app.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns 0 if done, 1 if the plan is incomplete or the verdict failed, 2 if there is no plan."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=ANY_ENCODING)  # a diff keeps the bytes of the fork
    try:
        words = tuple(sys.argv[1:]) if arguments is None else None
        code = app.main(arguments, prog_name=NAME, complete_var=COMPLETION, standalone_mode=False, obj=words)
        return int(code or DONE)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else NAME
        Output(Settings()).error(PorterError(USAGE, error.format_message(), hint=f"Run `{path} --help` for usage."))
    except PorterError as error:
        Output(Settings()).error(error)
    except OSError as error:
        if (what := refused(error)) is None:
            raise
        Output(Settings()).error(what)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        hint = f"Run `pip install 'torch-porter[{_EXTRAS[error.name]}]'`."
        Output(Settings()).error(PorterError("PTR191", f"{error.name} is not installed", hint=hint))
    except click.Abort:
        return INTERRUPTED
    return NOT_PLANNED
