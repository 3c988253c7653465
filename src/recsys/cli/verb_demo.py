"""`recsys demo`: the demo world, evaluated."""

from __future__ import annotations

import click


@click.command("demo", short_help="Compare toy recommenders on the embedded demo world.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another world.")
def command(seed: int) -> None:
    """Compare a few toy recommenders on a small synthetic world; nothing is downloaded."""
    from recsys.cli.demo import demo_text

    click.echo(demo_text(seed))
