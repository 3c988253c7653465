"""The site, built once for all tests of a run."""

import os
import subprocess
import sys

import pytest
from filelock import FileLock

from worlds.pages import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, built strictly: no broken link or anchor, and every page has its place in the navigation."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # by the workers of this run
    folder = shared / "site"
    with FileLock(shared / "site.lock"):
        if not (folder / "built").exists():
            # Not --quiet: it would silence the warnings before they are counted.
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
            environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment
            )
            assert done.returncode == 0, done.stdout + done.stderr
            (folder / "built").touch()
    return folder
