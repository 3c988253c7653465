"""Whose software a page and the kernels hold: each part with its version and licence, also in the page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

import pytest

import recsys
from recsys.report import offline_page

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "requirements").is_dir():
    pytest.skip("a source distribution comes without the lock", allow_module_level=True)
vl_convert = pytest.importorskip("vl_convert.vl_convert", reason="vl-convert is not installed")
LICENCES = (ROOT / "src/recsys/report/third_party.txt").read_text("utf-8")
LOCKED = dict(
    re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements/lock.txt").read_text("utf-8"), re.MULTILINE)
)


class Parts(HTMLParser):
    """The comments of a page, and how many scripts it has."""

    def __init__(self, text):
        super().__init__()
        self.comments, self.n_scripts = [], 0
        self.feed(text)

    def handle_comment(self, data):
        self.comments.append(data)

    def handle_starttag(self, tag, _attributes):
        self.n_scripts += tag == "script"


@pytest.fixture
def releases(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import releases

    return releases


@pytest.fixture
def page():
    """A report with charts, as text."""
    result = recsys.evaluate({1: [2, 3], 2: [3]}, {1: [3], 2: [3]}, ["mrr", "recall@1"])

    def written(folder):
        return recsys.report.write_report(folder / "page.html", {"model": result}).read_text("utf-8")

    return written


def test_every_embedded_part_is_named_with_its_version(releases):
    assert f"scripts of vl-convert-python {LOCKED['vl-convert-python']}:" in LICENCES
    named = releases.third_party()
    assert named["nanobind"][0] == LOCKED["nanobind"]
    if version("vl-convert-python") != LOCKED["vl-convert-python"]:
        pytest.skip("another vl-convert than the locked one, and the list is of that")
    held = releases.embedded_scripts(Path(vl_convert.__file__))
    assert held["vega"] == vl_convert.get_vega_version()
    assert held["vega-embed"] == vl_convert.get_vega_embed_version()
    assert held["vega-themes"] == vl_convert.get_vega_themes_version()
    assert held["vega-lite"].startswith(f"{vl_convert.get_vegalite_versions()[-1]}.")
    of_kernels = {"nanobind", "robin-map"}
    assert held == {name: row[0] for name, row in named.items() if row[0] != "-" and name not in of_kernels}
    bundle = vl_convert.javascript_bundle(offline_page._GLOBALS)
    assert all(f'"{held[name]}"' in bundle for name in ("vega", "vega-lite", "vega-themes"))


def test_every_licence_is_quoted(releases):
    for name, (_, licence, owner) in releases.third_party().items():
        assert f"\n{licence}\n{'=' * len(licence)}\n" in LICENCES, name
        assert owner.startswith("Copyright") or licence == "Unlicense", name


def test_a_page_with_charts_holds_the_licences_of_its_scripts(page, tmp_path):
    (comment,) = [text for text in Parts(page(tmp_path)).comments if "vega-lite" in text]
    assert comment.strip() == LICENCES.strip()


def test_no_licence_can_end_its_comment(page, tmp_path, monkeypatch):
    before, assets = Parts(page(tmp_path)), offline_page._asset
    hostile = "vega-lite --><script>alert(1)</script> --!><b>"
    monkeypatch.setattr(
        offline_page, "_asset", lambda name: hostile if name == "third_party.txt" else assets(name)
    )
    after = Parts(page(tmp_path))
    assert after.n_scripts == before.n_scripts
    assert len(after.comments) == len(before.comments)
    assert any("alert(1)" in text for text in after.comments)
