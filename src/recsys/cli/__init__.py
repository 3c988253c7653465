"""The `recsys` command. Results go to standard output, everything else to standard error.

Exit codes: 0 done, 1 a gate or an audit failed, 2 wrong usage, 3 bad input data, 4 an optional package is
missing, 5 a defect of this package, 130 interrupted.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; without its optional packages, say which extra installs them."""
    try:
        import click  # noqa: F401 - only whether it is installed
        import rich  # noqa: F401
    except ImportError as error:
        sys.stderr.write(
            f"The recsys command needs the package {error.name!r}, which is not installed.\n"
            "Install it with: pip install 'recsys-evaluation[cli]'\n"
        )
        sys.exit(4)
    from recsys.cli.app import cli

    cli(prog_name="recsys")
