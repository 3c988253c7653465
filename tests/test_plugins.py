"""Another package adds a metric, a split, a format, a backend, a check, a model, a picture, a verb and more.

It is one module and the entry points that name it. Each addition is then found wherever ours are: by name, in
listings and in the command.
"""

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import recsys

PACKAGE = '''
import click
import numpy as np

from recsys.audits import Finding
from recsys.audits.check_registry import check
from recsys.cli.app import VERBS, Verb
from recsys.evaluation.cautions import caution_rule
from recsys.inputs.files.formats import Format, add_format
from recsys.kernels.backend import BACKENDS, Backend
from recsys.metrics import metric
from recsys.models.trainable import TRAINABLE, Trainable
from recsys.ranks.sources import Scores
from recsys.report import pictures
from recsys.report.sections import Section, section
from recsys.splits import leave_last
from recsys.splits.job import strategy


@metric("first_item", formula="1 if the first item is relevant", reference="this test", bounds=(0.0, 1.0))
def first_item(h, k, c):
    """Whether the first item is relevant."""
    return np.bincount(h.hits.case[h.hits.rank == 1], minlength=h.hits.n_cases).astype(float)


@strategy("keep_latest", makes="one", help="each user's last row")
def keep_latest(data, **options):
    """The last row of each user."""
    return leave_last(data, 1, **options)


def read_pairs(content, options):
    rows = [line.split("~") for line in content.data.decode().split()]
    items = {}
    for user, item in rows:
        items.setdefault(user, []).append(item)
    return options.finish(items, None, content.name)


add_format(Format("pairs", read_pairs, suffixes=(".pairs",), help="user~item"))


def scan(problem, execution):
    calls.append("scan")
    return BACKENDS["reference"].scan(problem, execution)


calls = []
BACKENDS["echo"] = Backend("echo", why_not=lambda: None, scan=scan)


@check("ids")
def seven_items(e):
    """A catalogue of seven items."""
    return Finding("info", "there are seven items", 1) if e.n_items == 7 else None


@caution_rule("evaluation")
def two_users(question):
    """There are two users.

    Silent: there are more.
    """
    return "there are two users" if question.partial.counts["cases"] == 2 else None


def fit_alphabet(history, *, catalogue=None, seed=0):
    scores = np.tile(-np.arange(len(history.items.values), dtype=float), (len(history.cases.values), 1))
    return Scores(scores, user_ids=history.cases.values, item_ids=history.items.values)


TRAINABLE["alphabet"] = Trainable(fit_alphabet, help="Items by their names.")


@pictures.picture
def sunflowers(values):
    """A picture of ours under another name."""
    return pictures.bars(values)


@section("moon", "Phase of the moon", needs="a sky")
def moon(data):
    return Section("It is full.")


VERBS["greet"] = Verb("Say hello.", "recsys_plugin")


@click.command("greet")
def command():
    """Say hello."""
    click.echo("hello")
'''
GROUPS = (
    "metrics",
    "splits",
    "formats",
    "backends",
    "checks",
    "cautions",
    "trainable",
    "pictures",
    "sections",
    "verbs",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the package, as pip leaves it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "recsys_plugin.py").write_text(PACKAGE)
    info = folder / "recsys_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: recsys-plugin\nVersion: 1.0\n")
    entries = "".join(f"[recsys.{group}]\nplugin = recsys_plugin\n\n" for group in GROUPS)
    (info / "entry_points.txt").write_text(entries)
    return folder


@pytest.fixture
def run(site):
    """Code run in a new process that has the package beside recsys; what it printed."""

    def printed(code):
        start = f"import sys; sys.path.insert(0, {str(site)!r})\n"
        done = subprocess.run(
            [sys.executable, "-c", start + textwrap.dedent(code)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return printed


def command(*arguments):
    """Code that calls the command."""
    return f"from recsys.cli.app import cli; cli({list(arguments)!r}, standalone_mode=False)"


def test_a_metric_is_evaluated_parsed_and_listed(run):
    code = """
        import recsys
        print(recsys.evaluate({1: [3, 4], 2: [5]}, {1: [3], 2: [6]}, ["first_item", "hit@1"]).overall)
    """
    assert "'first_item': 0.5" in run(code)
    assert "first_item" in run(command("metrics"))
    assert "this test" in run(command("metrics", "first_item"))


def test_a_caution_speaks_and_can_be_silenced(run):
    code = """
        import recsys
        two = {1: [3, 4], 2: [5]}, {1: [3], 2: [6]}, ["hit@1"]
        print(recsys.evaluate(*two))
        print(recsys.evaluate(*two, cautions=["two_users"]).cautions)
    """
    assert run(code).endswith("caution: there are two users [two_users]\n()\n")


def test_a_split_is_called_by_name_and_is_a_choice_of_the_command(run):
    code = """
        import recsys
        data = {"ann": ["a", "b", "c"], "bob": ["a", "d"]}
        print(recsys.split(data, "keep_latest").test == recsys.splits.keep_latest(data).test)
        print(recsys.split(data, "keep_latest").test)
    """
    assert run(code) == "True\n{'ann': ['c'], 'bob': ['d']}\n"
    assert "keep_latest" in run(command("split", "--help"))


def test_a_format_is_told_by_its_ending_and_named_in_the_help(run, tmp_path):
    path = tmp_path / "truth.pairs"
    path.write_text("ann~a\nann~b\nbob~a\n")
    code = f"""
        import recsys
        print(recsys.read_file({str(path)!r}, "truth"), "pairs" in recsys.files.FORMATS)
    """
    assert run(code) == "Interactions(2 cases, 2 items, 3 rows) True\n"
    assert "pairs" in run(command("evaluate", "--help"))


def test_a_backend_runs_the_kernels_it_has(run):
    code = """
        import recsys
        source = recsys.Factors([[1.0, 0.5]], [[3.0, 1.0], [2.0, 2.0], [1.0, 1.0]])
        print(recsys.evaluate(source, {0: [1]}, ["mrr"], backend="echo")["mrr"])
        import recsys_plugin
        print(recsys_plugin.calls[:1], recsys.evaluate({0: [1]}, {0: [1]}, ["mrr"], backend="echo")["mrr"])
    """
    assert run(code) == "0.5\n['scan'] 1.0\n"


def test_a_check_runs_with_the_others_and_by_name(run):
    code = """
        import recsys
        train, test = {u: [u, u + 1, u + 2] for u in range(5)}, {0: [4]}
        print("seven_items" in recsys.audit(train, test).checked)
        print([f.name for f in recsys.audit(train, test, checks=["seven_items"])])
    """
    assert run(code) == "True\n['seven_items']\n"


def test_a_model_is_trained_by_name_and_by_the_command(run, tmp_path):
    code = """
        import recsys
        from recsys.models.trainable import train_model
        history = {"ann": ["b", "c"], "bob": ["a"]}
        model = train_model("alphabet", history)
        print(recsys.recommend(model, 1, seen=history).to_frame()["item"].tolist())
    """
    assert run(code) == "['a', 'b']\n"
    assert "Items by their names." in run(command("train", "--help"))
    (tmp_path / "t.csv").write_text("user,item\nann,b\nann,c\nbob,a\n")
    run(command("train", "alphabet", str(tmp_path / "t.csv"), "-o", str(tmp_path / "model.npz"), "-q"))
    assert (tmp_path / "model.npz").exists()


def test_a_picture_is_a_chart_and_a_figure(run):
    code = """
        import recsys
        values = {"a": {"ndcg@10": 0.5}}
        print(type(recsys.report.charts.sunflowers(values)).__name__)
        print(type(recsys.report.figures.sunflowers(values)).__name__)
    """
    assert run(code) == "Chart\nAxes\n"


def test_a_section_stands_on_the_page_before_the_conventions(run):
    code = """
        import recsys
        result = recsys.evaluate({1: [3, 4], 2: [5]}, {1: [3], 2: [6]}, ["hit@1"])
        page = recsys.report.report_html(result)
        print("It is full." in page, 0 < page.index("Phase of the moon") < page.index(">Conventions<"))
    """
    assert run(code) == "True True\n"


def test_a_verb_is_in_the_help_and_called(run):
    assert "Say hello." in run(command("--help"))
    assert run(command("greet")) == "hello\n"


def test_help_imports_no_verb_of_ours(run):
    code = "; import sys; print([m for m in sys.modules if m.endswith(('_verb', '_verbs'))])"
    assert run(command("--help") + code).endswith("[]\n")


# Packages that are broken.

BROKEN = {
    "absent": "import a_package_that_is_not_installed",
    "leaving": "import sys; sys.exit(3)",
    "halfway": "import numpy; 1 / 0",
}
FAILING = '''
import numpy as np
import recsys
from recsys.cli.app import VERBS, Verb
from recsys.evaluation.cautions import caution_rule


@recsys.metric("nothing_known", formula="nan", reference="this test", bounds=(0.0, 1.0))
def nothing_known(h, k, c):
    """A metric without a value for anybody."""
    return np.full(h.hits.n_cases, np.nan)


@caution_rule("evaluation")
def speechless(question):
    """Never. Silent: always."""
    raise KeyError("words")


VERBS["fail"] = Verb("Fail.", "failing_plugin.absent")
'''


@pytest.fixture(scope="module")
def broken_site(tmp_path_factory):
    """A folder with packages that cannot be imported in some groups, and fail in use in others."""
    folder = tmp_path_factory.mktemp("broken")
    for name, code in {**BROKEN, "failing": FAILING}.items():
        (folder / f"{name}_plugin.py").write_text(code)
        info = folder / f"{name}_plugin-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-plugin\nVersion: 1.0\n")
        groups = GROUPS if name in BROKEN else ("metrics", "cautions", "verbs")
        entries = "".join(f"[recsys.{group}]\nentry = {name}_plugin\n\n" for group in groups)
        (info / "entry_points.txt").write_text(entries)
    return folder


@pytest.fixture
def run_broken(broken_site):
    """Code run in a new process beside the packages that are broken: what it printed on its two outputs."""

    def printed(code):
        start = f"import sys; sys.path.insert(0, {str(broken_site)!r})\n"
        done = subprocess.run(
            [sys.executable, "-W", "always", "-c", start + textwrap.dedent(code)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return printed


def test_plugins_that_cannot_be_imported_are_named_and_left_out(run_broken):
    code = """
        import recsys
        result = recsys.evaluate({1: [3, 4], 2: [5]}, {1: [3], 2: [6]}, ["nothing_known", "hit@1"])
        print(result["hit@1"])
        print(sorted(recsys.split({"ann": ["a", "b", "c"]}, "leave_last").test))
    """
    out, err = run_broken(code)
    assert out == "0.5\n['ann']\n"
    for name, reason in (
        ("absent", "ModuleNotFoundError: No module named"),
        ("leaving", "SystemExit: 3"),
        ("halfway", "ZeroDivisionError: division by zero"),
    ):
        words = f"the plug-in 'entry' (recsys.metrics) of {name}-plugin is left out, as it fails ({reason}"
        assert words in err


def test_what_fails_in_use_is_named_and_left_out(run_broken):
    code = """
        import recsys
        result = recsys.evaluate({1: [3, 4], 2: [5]}, {1: [3], 2: [6]}, ["nothing_known", "hit@1"])
        print(result, result.cautions)
    """
    out, err = run_broken(code)
    plugin = "the plug-in 'entry' (recsys.metrics) of failing-plugin"
    assert f"nothing_known of {plugin} has no value for anybody" in " ".join(out.split())
    assert out.endswith("()\n")
    assert f"the caution 'speechless' of {plugin} is left out, as it fails (KeyError: 'words')" in err


def test_help_and_other_verbs_live_beside_a_broken_one(run_broken):
    out, err = run_broken(command("--help"))
    assert "Fail." in out
    assert "evaluate" in out
    assert "the plug-in 'entry' (recsys.verbs) of leaving-plugin is left out" in err
    assert "ndcg" in run_broken(command("metrics"))[0]
    code = "from click.testing import CliRunner; from recsys.cli.app import cli; d = CliRunner().invoke"
    out, _ = run_broken(f"{code}(cli, ['fail']); print(d.exit_code, d.output)")
    assert out.startswith("3 ")
    assert "the verb 'fail' of the plug-in 'entry' (recsys.verbs) of failing-plugin cannot be imported" in out


def test_a_metric_of_ones_own_without_any_value_gets_a_word():
    @recsys.metric("always_unknown", formula="nan", reference="this test", bounds=(0.0, 1.0))
    def always_unknown(h, k, c):
        """Nothing."""
        return np.full(h.hits.n_cases, np.nan)

    try:
        found = recsys.evaluate({1: [3]}, {1: [3]}, ["always_unknown", "hit@1"])
        assert f"always_unknown of {__name__} has no value for anybody" in str(found)
        assert "no value for anybody" not in str(recsys.evaluate({1: [3]}, {1: []}, ["ndcg@1"]))
    finally:
        del recsys.metrics.METRICS["always_unknown"]


# The package of examples/plugin, installed as a user would install it.

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"
ITS_METRICS = re.findall(r'@recsys\.metric\(\n    "(\w+)"', (EXAMPLE / "recsys_more_metrics.py").read_text())


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Code run in a new process that has the installed example; what it printed. Nothing is downloaded."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(
        EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    )
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
    done = subprocess.run(
        [*pip, "--target", folder / "site", folder / "source"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    shutil.rmtree(folder / "source")

    def printed(code):
        start = f"import sys; sys.path.insert(0, {str(folder / 'site')!r})\n"
        done = subprocess.run(
            [sys.executable, "-c", start + textwrap.dedent(code)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return printed


def test_the_example_is_installed_and_imported_only_when_it_is_asked_for(installed):
    code = """
        import recsys
        from recsys.metrics import METRICS
        recsys.evaluate({1: [3]}, {1: [3]}, ["ndcg@1"])
        print("recsys_more_metrics" in sys.modules, "efd" in METRICS)
        print(recsys.evaluate({1: [3]}, {1: [3]}, ["aclt@1"], train={1: [4], 2: [3]})["aclt@1"])
        print("recsys_more_metrics" in sys.modules, recsys.metrics.lookup("r_score")[0].name)
    """
    assert installed(code) == "False False\n0.0\nTrue half_life_utility\n"


def test_all_metrics_of_the_example_are_listed_and_documented(installed):
    listed = installed(command("metrics"))
    assert len(ITS_METRICS) == 12
    assert [name for name in ITS_METRICS if name not in listed.split()] == []
    assert "Breese" in installed(command("metrics", "r_score"))
    code = """
        import math
        from recsys.metrics import METRICS
        METRICS.load_plugins()
        for metric in METRICS.values():
            if metric.body.__module__ == "recsys_more_metrics":
                limits = metric.kind == "catalogue" or metric.attainable.range
                limits = limits or all(map(math.isfinite, metric.bounds))
                words = metric.meaning.endswith(".") and metric.formula and metric.reference
                print(metric.name, bool(words and limits))
    """
    assert installed(code).split() == [word for name in ITS_METRICS for word in (name, "True")]


def test_the_page_of_the_example_prints_what_it_shows(installed):
    page = (EXAMPLE / "README.md").read_text()
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL).groups()
    assert installed(code).strip() == shown.strip()
    assert [name for name in ITS_METRICS if f"`{name}`" not in page] == []


def test_the_tests_of_the_example_pass_where_it_is_installed(installed):
    file = EXAMPLE / "tests" / "test_more_metrics.py"
    arguments = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--noconftest",
        f"--rootdir={file.parent}",
        "-c",
        "/dev/null",
        str(file),
    ]
    assert "passed" in installed(f"import pytest; sys.exit(pytest.main({arguments!r}))")
