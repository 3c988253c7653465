"""Nothing asks the network: every module, every verb and a tour of the functions, where nobody answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
GUARD = TESTS / "worlds" / "no_network"
# Addresses that are kept free for examples, so that nothing is asked where the guard should fail.
PYTHON = "import socket; socket.create_connection(('192.0.2.1', 9), 1)"
NAME = "import urllib.request; urllib.request.urlopen('http://recsys.invalid/')"
COMPILED = (
    "import vl_convert; chart = {'data': {'url': 'http://192.0.2.1/x.csv'}, 'mark': 'bar'};"
    "vl_convert.vegalite_to_svg(chart, allowed_base_urls=['http://192.0.2.1/'])"
)


@pytest.fixture
def guarded(tmp_path):
    """Runs Python where other machines are refused: its exit status, what it printed, and whom it asked."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(GUARD), str(TESTS)]),
        "RECSYS_NETWORK_LOG": str(tmp_path / "asked.log"),
        "MPLBACKEND": "Agg",
    }
    compiler = shutil.which("cc")
    if compiler and sys.platform == "linux":
        library = tmp_path / "no_network.so"
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-o", library, GUARD / "no_network.c", "-ldl"], check=True
        )
        environment["LD_PRELOAD"] = str(library)
    folder = tmp_path / "work"
    folder.mkdir()

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        log = Path(environment["RECSYS_NETWORK_LOG"])
        return done.returncode, done.stdout, log.read_text("utf-8") if log.exists() else ""

    return run


def test_nothing_asks_the_network(guarded):
    status, printed, asked = guarded(GUARD / "calls.py")
    assert asked == ""
    assert status == 0, printed[-4000:]


@pytest.mark.parametrize(("code", "whom"), [(PYTHON, "192.0.2.1"), (NAME, "recsys.invalid")])
def test_the_guard_refuses_python(guarded, code, whom):
    status, printed, asked = guarded("-c", code)
    assert status != 0
    assert "nothing may ask the network here" in printed
    assert whom in asked


@pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="the guard of compiled code is compiled"
)
def test_the_guard_refuses_compiled_code(guarded):
    pytest.importorskip("vl_convert")
    _, _, asked = guarded("-c", COMPILED)
    assert asked.startswith("connect 192.0.2.1")
