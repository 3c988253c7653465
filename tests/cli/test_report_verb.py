"""`recsys report`: files in, a page out, its path on standard output."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from recsys.cli.app import cli
from worlds.report import evaluations, world


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with lists, truth, train and items as files, which the command runs in."""
    monkeypatch.chdir(tmp_path)
    lists, truth, train, items = world(n_models=2)
    for name, by_user in lists.items():
        rows = [f"{u},{i},{place}" for u, row in by_user.items() for place, i in enumerate(row, 1)]
        Path(f"{name.replace(' ', '_')}.csv").write_text("user_id,item_id,rank\n" + "\n".join(rows) + "\n")
    pairs = [f"{u},{i}" for u, row in truth.items() for i in sorted(row)]
    Path("truth.csv").write_text("user_id,item_id\n" + "\n".join(pairs) + "\n")
    train.to_csv("train.csv", index=False)
    items.to_csv("items.csv", index=False)
    np.save("vectors.npy", np.random.default_rng(0).standard_normal((len(items), 2)))
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, ["report", *map(str, arguments)], prog_name="recsys")


def test_lists_and_everything_about_them_become_a_page(folder):
    done = run(
        "model_0.csv", "model_1.csv", "--truth", "truth.csv", "--train", "train.csv", "--items", "items.csv",
        "--embeddings", "vectors.npy", "-m", "ndcg", "-m", "recall", "-k", "5", "-k", "10",
        "--baseline", "model_0.csv", "--title", "Two <models>",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(Path("recsys-report") / "report.html")
    text = Path("recsys-report/report.html").read_text(encoding="utf-8")
    assert "<h1>Two &lt;models&gt;</h1>" in text
    assert "model_1 is better than model_0" in text
    assert "Item number 3" in text
    assert "Not in this report" in text
    assert 'id="map"' in text


def test_ids_may_be_whole_numbers(folder):
    done = run("model_0.csv", "--truth", "truth.csv", "--items", "items.csv", "--ids", "int", "-o", "r.html")
    assert done.exit_code == 0, done.output
    assert "Item number 3" in Path("r.html").read_text(encoding="utf-8")


def test_saved_results_audits_and_histories_become_a_page(folder):
    from recsys.comparison.history import record

    lists, truth, *_ = world(n_models=2)
    for name, result in evaluations(lists, truth).items():
        result.save(f"{name.replace(' ', '_')}.json", name=name)
        record("nights", result, name)
    findings = [{"name": "leak", "severity": "error", "count": 3, "todo": "Look."}]
    Path("audit.json").write_text(json.dumps({"findings": findings}))
    done = run(
        "model_0.json", "model_1.json", "--audit", "audit.json", "--history", "nights",
        "--headline", "recall@5", "-o", "out/report.html",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    text = Path("out/report.html").read_text(encoding="utf-8")
    assert "headline metric recall@5" in text
    assert 'id="history"' in text
    assert "leak" in text


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "Missing argument"),
        (("model_0.csv",), 2, "--truth"),
        (("model_0.csv", "--truth", "nothing.csv"), 3, "nothing.csv"),
        (("model_0.csv", "--truth", "truth.csv", "--baseline", "nobody"), 2, "nobody"),
        (("model_0.csv", "--truth", "truth.csv", "--headline", "auc"), 2, "auc"),
        (("model_0.csv", "--truth", "truth.csv", "--audit", "items.csv"), 3, "audit"),
        (("model_0.csv", "--truth", "truth.csv", "--items", "nothing.csv"), 3, "nothing.csv"),
        (("model_0.csv", "--truth", "truth.csv", "--embeddings", "nothing.npy"), 3, "nothing.npy"),
        (("model_0.csv", "--truth", "truth.csv", "--history", "nowhere"), 3, "nowhere"),
    ],
)
def test_an_error_is_one_paragraph_and_an_exit_code(folder, arguments, code, says):
    done = run(*arguments)
    assert done.exit_code == code, done.output
    assert says in done.output
    assert "Traceback" not in done.output
    assert not Path("recsys-report").exists()
