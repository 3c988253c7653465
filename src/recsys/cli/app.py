"""The verbs, one row each; the module of a verb is imported when it is called."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Any, NamedTuple

import click

import recsys
from recsys.cli.error_messages import as_option, exit_on_errors
from recsys.errors import InputError, check_choice, wording
from recsys.records.registry import Registry


class Verb(NamedTuple):
    """A verb: its line in the help, where its click command is, imported when it is called, and its group."""

    help: str
    module: str
    command: str = "command"
    group: str = "Plug-ins"


# The verbs by the groups of the help: name, module and line.
_OWN_VERBS = {
    "Start": (
        ("demo", "experiment_verbs", "Compare recommenders on the embedded demo world."),
        ("bench", "bench_verbs", "Train, compare and decide: from a file of ratings to what to ship."),
        ("init", "bench_verbs", "Write a protocol file from what a file of ratings says of itself."),
        ("run", "experiment_verbs", "Execute a protocol file and keep its results."),
    ),
    "Data": (
        ("split", "split_verb", "Split interactions into parts that do not leak."),
        ("audit", "diagnostic_verbs", "Look for leaks and biases in a split and its recommendations."),
        ("train", "train_verb", "Train a baseline or a small network on a file."),
        ("fuse", "fusion_verb", "Make one list per user from those of several recommenders."),
    ),
    "Score": (
        ("evaluate", "scoring_verbs", "Score recommendation lists against the truth."),
        ("ratings", "scoring_verbs", "Score predicted ratings or click probabilities."),
        ("inspect", "diagnostic_verbs", "Show one user's recommendations next to their history."),
    ),
    "Compare": (
        ("compare", "compare_verb", "Say whether models differ, by how much and how surely."),
        ("gate", "result_verbs", "Pass or fail a new result against the one in force."),
        ("rank", "result_verbs", "Show which places of a board are really different."),
        ("explain", "result_verbs", "Say why two numbers differ, decision by decision."),
        ("identify", "evaluator_verbs", "Say which conventions an evaluator in any language follows."),
        ("conform", "evaluator_verbs", "Score an evaluator in any language against the standard."),
    ),
    "Show": (
        ("report", "result_verbs", "Write the report of one or many models as one HTML file."),
        ("board", "result_verbs", "Write one page over many saved results."),
        ("history", "result_verbs", "Show stored results over time and where they moved."),
    ),
    "Look up": (
        ("metrics", "reference_verbs", "List the metrics, or describe one."),
        ("conventions", "reference_verbs", "List the presets, describe one, or say how two differ."),
        ("study", "experiment_verbs", "Run one of five small studies of evaluation itself."),
        ("doctor", "reference_verbs", "Show kernels, versions and optional packages."),
    ),
}
VERBS: Registry[Verb] = Registry("verb", "recsys.verbs")
VERBS.update({
    name: Verb(line, f"recsys.cli.{module}", f"{name}_command", group)
    for group, verbs in _OWN_VERBS.items()
    for name, module, line in verbs
})  # fmt: skip


class LazyGroup(click.Group):
    """Knows its verbs by name and imports them late, so that --help and --version are instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(VERBS.load_plugins())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in VERBS and cmd_name not in VERBS.load_plugins():
            return None
        verb = VERBS[cmd_name]
        try:
            command: click.Command = getattr(import_module(verb.module), verb.command)
        except (Exception, SystemExit) as error:
            owner = VERBS.owner_of(verb.module)
            if owner is None:
                raise
            raise InputError(
                f"the verb {cmd_name!r} of {owner} cannot be imported ({type(error).__name__}: {error}).",
                hint="Update or uninstall that package.",
            ) from error
        command.short_help = verb.help
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and not ctx.resilient_parsing:
            check_choice("command", args[0], VERBS.load_plugins())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, verb in VERBS.load_plugins().items():
            groups.setdefault(verb.group, []).append((name, verb.help))
        longest = max(len(name) for name in VERBS)  # descriptions begin in one column in every group
        for group, rows in groups.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(longest), line) for name, line in rows])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a file's name may hold bytes that are not text
                stream.reconfigure(errors="backslashreplace")
        with exit_on_errors(debug=bool(ctx.params.get("debug"))), wording(as_option):
            return super().invoke(ctx)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`recsys VERB --help` describes a verb.",
)
@click.option("--version", is_flag=True, help="Show the version and exit.")
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
@click.pass_context
def cli(ctx: click.Context, *, version: bool, debug: bool) -> None:
    """Evaluate recommender systems: every ranking metric, under named conventions."""
    del debug
    if version:
        click.echo(f"recsys {recsys.__version__}")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
