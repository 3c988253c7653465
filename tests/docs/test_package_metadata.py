"""What a package index shows: no link of the README leads nowhere, the command needs no extra."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from importlib.metadata import version
from pathlib import Path

import pytest

import recsys

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "https://git.example.org/us/recsys"
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    """The metadata of a pure wheel, by the address it was built with."""

    def built(source):
        folder = tmp_path_factory.mktemp("wheel")
        command = "import sys; from scikit_build_core.build import build_wheel; build_wheel(sys.argv[1])"
        environment = os.environ | {"RECSYS_PURE": "1", "RECSYS_SOURCE_URL": source}
        subprocess.run(
            [sys.executable, "-c", command, str(folder)],
            check=True,
            capture_output=True,
            cwd=ROOT,
            env=environment,
        )
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return message_from_bytes(wheel.read(name))

    return {source: built(source) for source in ("", SOURCE)}


def test_links_and_pictures_are_absolute(metadata):
    text = metadata[SOURCE].get_payload()
    targets = LINK.findall(text)
    assert len(targets) > 10
    assert all(target.startswith(f"{SOURCE}/") for target in targets)
    assert f"]({SOURCE}/raw/HEAD/docs/images/report.png)" in text
    for target in targets:  # the file is there
        assert (ROOT / re.sub(rf"^{SOURCE}/(blob|raw)/HEAD/", "", target).partition("#")[0]).exists(), target
    assert {line.partition(",")[0] for line in metadata[SOURCE].get_all("Project-URL")} == {
        "Homepage",
        "Documentation",
        "Source",
        "Changelog",
        "Issues",
    }


def test_without_an_address_there_are_no_links(metadata):
    text = metadata[""].get_payload()
    assert "pip install recsys-evaluation" in text
    assert not LINK.findall(text)
    assert "docs/conventions.md" in text
    assert metadata[""].get_all("Project-URL") is None


@pytest.mark.parametrize(
    ("origin", "address"),
    [
        ("https://git.example.org/us/recsys.git", SOURCE),
        ("https://me:secret@git.example.org/us/recsys", SOURCE),
        ("git@git.example.org:us/recsys.git", SOURCE),
        ("ssh://git@git.example.org/us/recsys.git", SOURCE),
        ("/srv/recsys", ""),
        ("../recsys.git", ""),
        ("file:///srv/recsys", ""),
    ],
)
def test_the_address_is_that_of_the_clone(tmp_path, monkeypatch, origin, address):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    from package_metadata import source_address

    config = tmp_path / "config"
    config.write_text(f'[core]\n\tbare = false\n[remote "origin"]\n\tfetch = +x:y\n\turl = {origin}\n')
    assert source_address(None, config) == address
    assert source_address(f"{SOURCE}/", config) == SOURCE
    assert source_address("", config) == source_address(None, tmp_path / "none") == ""


def test_the_version_stands_in_one_place(metadata):
    """That of pyproject.toml, also for an editable installation, the wheel and the command."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert recsys.__version__ == version("recsys-evaluation") == metadata[""]["Version"] == stated
    number = re.compile(rf"(?<![\d.]){re.escape(stated)}(?![\d.])")
    assert [path for path in (ROOT / "src").rglob("*.py") if number.search(path.read_text("utf-8"))] == []


def test_sources_that_are_not_installed_have_no_version(tmp_path):
    """They may be of any: the working copy of another day."""
    code = (
        "import importlib.metadata as m, sys\n"
        "def gone(name): raise m.PackageNotFoundError(name)\n"
        "m.version = gone\n"
        "import recsys; print(recsys.__version__)\n"
        "from recsys.cli.app import cli; cli(['--version'], prog_name='recsys')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("unknown\nrecsys unknown\n", "")


def test_the_command_is_core_and_all_is_small(metadata):
    needs = metadata[""].get_all("Requires-Dist")
    core = {re.match(r"[\w-]+", need).group() for need in needs if "extra ==" not in need}
    assert core == {"numpy", "scipy", "pandas", "narwhals", "click", "rich"}
    everything = next(need for need in needs if need.endswith('extra == "all"'))
    extras = set(metadata[""].get_all("Provides-Extra")) - {"all", "torch", "spark"}
    assert set(re.search(r"\[(.+)\]", everything).group(1).split(",")) == extras
