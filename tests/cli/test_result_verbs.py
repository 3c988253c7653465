"""Verbs about results: compare, explain, gate, history, report, doctor, and factors from files."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import recsys
from recsys.cli.app import cli
from recsys.models.trainable import TRAINABLE
from worlds.report import evaluations, world


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    rng = np.random.default_rng(0)
    truth = pd.DataFrame({"user": np.arange(300), "item": np.arange(300) % 20})
    truth.to_csv("truth.csv", index=False)
    for name, share in (("old", 0.3), ("new", 0.6)):
        first = np.where(rng.random(300) < share, truth.item, 99)
        frame = pd.DataFrame(
            {"user": np.repeat(truth.user, 2), "item": np.c_[first, np.full(300, 98)].ravel()}
        )
        frame.assign(rank=np.tile([1, 2], 300)).to_csv(f"{name}.csv", index=False)
    return command


def save_results(run):
    for name in ("old", "new"):
        done = run(
            "evaluate", f"{name}.csv", "truth.csv", "-m", "hit@1", "-m", "ndcg@2", "--save", f"{name}.json"
        )
        assert done.exit_code == 0, done.output


def test_compare_lists(run):
    done = run("compare", "old.csv", "new.csv", "--truth", "truth.csv", "--baseline", "old", "-m", "hit@1")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "better" in done.stdout
    reverse = run(
        "compare", "old.csv", "new.csv", "--truth", "truth.csv", "--baseline", "new.csv", "-m", "hit@1"
    )
    assert "worse" in reverse.stdout


def test_compare_saved_results_equals_lists(run):
    save_results(run)
    arguments = ("--baseline", "old", "-m", "hit@1")
    from_results = run("compare", "old.json", "new.json", *arguments, "--json")
    from_lists = run("compare", "old.csv", "new.csv", "--truth", "truth.csv", *arguments, "--json")
    assert json.loads(from_results.stdout) == json.loads(from_lists.stdout)


@pytest.mark.parametrize(
    ("form", "mark"), [("--markdown", "| model |"), ("--latex", "\\toprule"), ("--csv", "model,")]
)
def test_compare_forms(run, form, mark):
    save_results(run)
    assert mark in run("compare", "old.json", "new.json", form).stdout


def test_compare_writes_a_methods_paragraph(run, tmp_path):
    save_results(run)
    done = run("compare", "old.json", "new.json", "-m", "hit@1", "--methods", "paper.tex")
    assert done.exit_code == 0
    assert done.stderr.startswith("note: methods paper.tex and paper.bib\nnote: to add to the methods: ")
    assert r"hit@1~\cite{deshpande2004item}" in (tmp_path / "paper.tex").read_text()
    assert "@article{deshpande2004item," in (tmp_path / "paper.bib").read_text()
    assert run("compare", "old.json", "new.json", "--methods", "paper.docx").exit_code == 2


def test_compare_usage(run):
    assert run("compare", "old.csv", "new.csv").exit_code == 2
    assert run("compare", "old.csv").exit_code == 2
    assert run("compare", "old.csv", "new.csv", "--truth", "truth.csv", "--baseline", "x").exit_code == 2
    assert run("compare", "old.csv", "new.csv", "--truth", "truth.csv", "--name", "a").exit_code == 2
    assert run("compare", "old.csv", "gone.csv", "--truth", "truth.csv").exit_code == 3


def test_gate_writes_a_comment(run, tmp_path):
    save_results(run)
    done = run("gate", "new.json", "--against", "old.json", "-m", "hit@1", "--comment", "comment.md")
    assert done.exit_code == 0
    comment = (tmp_path / "comment.md").read_text()
    assert comment.startswith("### Recommendation quality: passed\n")
    printed = run("gate", "new.json", "--against", "old.json", "-m", "hit@1", "--markdown")
    assert printed.stdout == comment


def test_gate_codes(run):
    save_results(run)
    bad = run("gate", "old.json", "--against", "new.json", "-m", "hit@1=5%", "-m", "ndcg@2", "--json")
    assert bad.exit_code == 1
    document = json.loads(bad.stdout)
    assert [c["margin"] for c in document["checks"]] == [0.05, 0.01]
    assert run("gate", "new.json", "--against", "old.json", "-m", "hit@1", "--better").exit_code == 0
    assert run("gate", "new.json", "--against", "gone.json", "-m", "hit@1").exit_code == 3
    assert run("gate", "new.json", "--against", "old.json", "-m", "hit@1=x%").exit_code in (2, 3)


def test_explain(run):
    words = run("explain", "default", "rectools")
    assert (words.exit_code, "ideal" in words.stdout) == (0, True)
    tried = run(
        "explain", "default", "rectools", "--lists", "new.csv", "--truth", "truth.csv", "-m", "ndcg@2"
    )
    assert "ndcg@2" in tried.stdout
    save_results(run)
    assert "lists or the truth differ" in run("explain", "old.json", "new.json").stdout
    assert run("explain", "default", "rectools", "--lists", "new.csv").exit_code == 2
    assert run("explain", "default", "nonsense").exit_code == 2


def test_explain_with_a_decision_changed_on_both_sides(run):
    pd.read_csv("truth.csv").assign(grade=np.tile([1, 5], 150)).to_csv("truth.csv", index=False)
    data = ("--lists", "new.csv", "--truth", "truth.csv", "-m", "dcg@2")
    done = run("explain", "default", "rectools", *data, "--set", "relevant_from=4")
    ends = [
        recsys.evaluate(
            "new.csv", "truth.csv", "dcg@2", conventions=recsys.Conventions.of(name).but(relevant_from=4.0)
        )["dcg@2"]
        for name in ("default", "rectools")
    ]
    assert done.stdout.startswith("default but relevant_from=4 -> rectools but relevant_from=4\n")
    assert "- gain: dcg@2 {:.4f} -> {:.4f}, ".format(*ends) in done.stdout
    assert "'nonsense'" in run("explain", "default", "rectools", "--set", "nonsense=3").stderr
    assert "--conventions" in run("explain", "default", "rectools", "--conventions", "lenskit").stderr
    save_results(run)
    assert "a saved result" in run("explain", "old.json", "rectools", "--set", "ties=worst").stderr


def test_history(run):
    save_results(run)
    done = run("history", ".", "-m", "hit@1")
    assert (done.exit_code, done.stdout.count("hit@1") >= 2) == (0, True)
    rows = list(csv.DictReader(io.StringIO(run("history", ".", "--csv").stdout)))
    assert {row["name"] for row in rows} == {"old", "new"}
    assert json.loads(run("history", ".", "--json", "--name", "old").stdout)["nights"][0]["name"] == "old"
    assert run("history", "nowhere").exit_code == 3


def test_doctor(run):
    done = run("doctor")
    assert (done.exit_code, "numpy" in done.stdout, "in use:" in done.stdout) == (0, True, True)
    assert json.loads(run("doctor", "--json").stdout)["extras"]["cli"]["jsonschema"]


def test_factors(run, tmp_path):
    rng = np.random.default_rng(1)
    users, items = rng.normal(size=(300, 4)), rng.normal(size=(20, 4))
    np.save("U.npy", users)
    np.savez("V.npz", V=items)
    pd.DataFrame({"user": [0, 1], "item": [3, 4]}).to_csv("seen.csv", index=False)
    arguments = (
        "--factors",
        "U.npy",
        "V.npz",
        "--truth",
        "truth.csv",
        "--seen",
        "seen.csv",
        "-m",
        "ndcg@5,auc",
        "--csv",
    )
    done = run("evaluate", *arguments)
    assert done.exit_code == 0, done.output
    truth = pd.read_csv("truth.csv")
    expected = recsys.evaluate(
        recsys.Factors(users, items), truth, ["ndcg@5", "auc"], seen={0: [3], 1: [4]}
    )  # fmt: skip
    rows = {row["metric"]: float(row["value"]) for row in csv.DictReader(io.StringIO(done.stdout))}
    assert rows == dict(expected)
    (tmp_path / "users.txt").write_text("\n".join(map(str, range(300))) + "\n")
    (tmp_path / "items.txt").write_text("\n".join(map(str, range(20))))
    named = run("evaluate", *arguments, "--user-ids", "users.txt", "--item-ids", "items.txt")
    assert named.stdout == done.stdout
    assert run("evaluate", "old.csv", "truth.csv", *arguments).exit_code == 2
    assert run("evaluate", "--factors", "U.npy", "gone.npy", "--truth", "truth.csv").exit_code == 3
    assert run("evaluate", "old.csv", "truth.csv", "--save", "old.csv").exit_code == 2


def test_gate_counts_the_looks_at_a_candidate(run):
    save_results(run)
    asked = ("gate", "results/2.json", "--against", "old.json", "-m", "hit@1")
    users = pd.read_csv("truth.csv")
    for at in (1, 2):
        users[: 300 // at].to_csv("some.csv", index=False)
        saved = ("--save", f"results/{at}.json", "--name", "als-7")
        Path("results").mkdir(exist_ok=True)
        assert run("evaluate", "new.csv", "some.csv", "-m", "hit@1", *saved).exit_code == 0
    users[:150].to_csv("truth.csv", index=False)
    save_results(run)
    done = run(*asked, "--history", "results")
    assert done.exit_code == 0, done.output
    assert (
        "look 2 at als-7, and the confidence is that of one. Plan all looks from the first on (--looks)."
        in (" ".join(done.stdout.split()))
    )
    planned = run(*asked, "--history", "results", "--looks", "14")
    assert "95% over 14 planned looks" in " ".join(planned.stdout.split())
    assert "look 2" not in planned.stdout
    late = run(*asked, "--history", "results", "--looks", "1")
    assert (late.exit_code, "(--looks)" in late.stderr) == (3, True)
    assert run(*asked, "--looks", "0").exit_code == 2
    assert run(*asked, "--history", "gone").exit_code == 3


def test_gate_margins_of_metrics_with_settings(run):
    for name in ("old", "new"):
        run("evaluate", f"{name}.csv", "truth.csv", "-m", "f(beta=2)@1", "--save", f"{name}.json")
    for margin in ("", "=.5%", "=0.01"):
        done = run("gate", "new.json", "--against", "old.json", "-m", f"f(beta=2)@1{margin}")
        assert done.exit_code == 0, done.output
    assert run("gate", "new.json", "--against", "old.json", "-m", "f2@1=-3%").exit_code == 3
    assert (
        run("gate", "new.json", "--against", "old.json", "-m", "f2@1", "--comment", "no/s.md").exit_code == 2
    )


def test_files_that_are_not_there_or_share_a_name(run):
    done = run("compare", "nowhere.csv", "new.csv")
    assert (done.exit_code, "no file nowhere.csv" in done.stderr) == (3, True)
    assert "no file nowhere.json" in run("report", "nowhere.json").stderr
    pd.read_csv("new.csv").to_csv("new.tsv", sep="\t", index=False)
    done = run("compare", "new.csv", "new.tsv", "--truth", "truth.csv", "-m", "hit@1", "-q", "--csv")
    assert next(csv.DictReader(io.StringIO(done.stdout)))["model"] == "new.tsv"
    done = run("compare", "new.csv", "new.csv", "--truth", "truth.csv")
    assert (done.exit_code, "--name" in done.stderr) == (2, True)


def test_compare_says_where_the_report_is(run):
    arguments = [
        "compare",
        "old.csv",
        "new.csv",
        "--truth",
        "truth.csv",
        "-m",
        "hit@1",
        "--report",
        "page.html",
    ]
    assert run(*arguments).stderr == "note: report page.html\n"
    assert run(*arguments, "-q").stderr == ""


def test_tables_about_items_and_ratings(run, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "items.csv").write_text("item,title\n1,Ä\n98,B\n")
    assert run("inspect", "1", "new.csv", "--items", "empty.csv").exit_code == 3
    done = run("inspect", "1", "new.csv", "--items", "items.csv", "--column", "colour")
    assert (done.exit_code, "item, title" in done.stderr) == (3, True)
    assert "B" in run("inspect", "1", "new.csv", "--items", "items.csv").stdout
    done = run("ratings", "-", "-m", "rmse", "--csv", input="user,rating,prediction\n1,4,3\n1,2,3\n")
    assert done.stdout.splitlines()[1] == "rmse,1.0,1"


def test_ids_that_are_numbers_are_shown_as_names(run):
    table = pd.DataFrame({"user": [5, 5], "item": [12345, 7], "rank": [1, 2]})
    table.to_csv("many.csv", index=False)
    assert "12345" in run("inspect", "5", "many.csv", "--ids", "int").stdout


def test_factors_are_two_files(run):
    done = run("evaluate", "--factors", "U.npy", "--truth", "truth.csv")
    assert (done.exit_code, "two files" in done.stderr) == (2, True)


def test_compare_answers_what_else_it_is_asked(run):
    save_results(run)
    margins = ("--margin", "0.2", "--no-worse-than", "0.05", "--rope", "0.01")
    arguments = ("--baseline", "old", "-m", "hit@1", *margins)
    (row,) = json.loads(run("compare", "old.json", "new.json", *arguments, "--json").stdout)["rows"]
    assert {name for name in row if "equivalen" in name or "worse" in name or "better" in name}
    text = run("compare", "old.json", "new.json", *arguments).stdout
    assert "1 pair of models on " in text


@pytest.mark.parametrize("baseline", [(), ("--baseline", "old")])
def test_compare_and_report_say_the_same_of_the_same_results(run, baseline):
    save_results(run)
    table = pd.read_csv("new.csv")
    table[table.index % 7 > 0].to_csv("third.csv", index=False)
    run("evaluate", "third.csv", "truth.csv", "-m", "hit@1", "-m", "ndcg@2", "--save", "third.json")
    models = ("old.json", "new.json", "third.json", *baseline)
    for headline in ((), ("--headline", "hit@1"), ("--headline", "ndcg@2")):
        compared = json.loads(run("compare", *models, *headline, "--json").stdout)
        deciding = [row for row in compared["rows"] if row["family"] == "headline"]
        assert {row["metric"] for row in deciding} == {headline[-1] if headline else "hit@1"}
        assert {row["metric"] for row in compared["rows"]} == {"hit@1", "ndcg@2"}
        page = run("report", *models, *headline, "-o", "page.html")
        assert page.exit_code == 0, page.output
        link = r'download="comparison.json" href="[^"]*base64,([^"]*)"'
        (held,) = re.findall(link, Path("page.html").read_text("utf-8"))
        shown = {
            tuple(row[n] for n in ("model", "baseline", "metric")): row
            for row in json.loads(base64.b64decode(held))
        }
        for row in compared["rows"]:
            seen = shown.get((row["model"], row["baseline"], row["metric"]))
            turned = shown.get((row["baseline"], row["model"], row["metric"]))
            assert (seen or turned)["adjusted_p"] == row["adjusted_p"]
            assert (seen or turned)["family"] == row["family"]
            if seen:
                assert [seen[end] for end in ("low", "high", "own_low")] == [
                    row[end] for end in ("low", "high", "own_low")
                ]
            else:
                assert (turned["low"], turned["high"]) == (-row["high"], -row["low"])
    assert run("compare", *models, "--headline", "mrr").exit_code != 0


def test_compare_adjusts_for_what_is_known_of_users(run):
    rng = np.random.default_rng(1)
    users = pd.DataFrame(
        {
            "user_id": np.arange(3000),
            "age": rng.integers(20, 60, 3000),
            "land": rng.choice(["a", "b"], 3000),
            "name": "somebody",
        }
    )
    users.to_csv("users.csv", index=False)
    arguments = ("compare", "old.csv", "new.csv", "--truth", "truth.csv", "--baseline", "old", "-m", "hit@1")
    done = run(*arguments, "--users", "users.csv", "--covariate", "age", "--strata", "land", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    (row,) = json.loads(done.stdout)["rows"]
    results = {
        name: recsys.evaluate(pd.read_csv(f"{name}.csv"), pd.read_csv("truth.csv"), ["hit@1"])
        for name in ("old", "new")
    }
    same = recsys.compare(results, "old", covariates=users[["user_id", "age", "land"]], strata="land")[0]
    assert row["difference"] == pytest.approx(same.difference, abs=1e-12)
    assert row["variance_saved"] == pytest.approx(same.variance_saved, abs=1e-12)
    assert run(*arguments, "--users", "users.csv").exit_code == 2
    assert run(*arguments, "--strata", "land").exit_code == 2
    wrong = run(*arguments, "--users", "users.csv", "--covariate", "agee")
    assert wrong.exit_code == 3
    assert "age" in wrong.stderr
    text = run(*arguments, "--users", "users.csv", "--covariate", "land")
    assert "--strata land" in text.stderr
    users[:300].to_csv("few.csv", index=False)
    few = run(*arguments, "--users", "few.csv", "--covariate", "age")
    assert few.stderr == ""  # said once, below the table
    assert few.stdout.count("adjusted for age at these users' values") == 1
    few = run(*arguments, "--users", "few.csv", "--covariate", "age", "--csv")
    assert "warning: adjusted for age at these users' values" in few.stderr
    assert "or covariate_means= in Python)" in few.stderr


def test_saved_results_are_explained_in_words(run):
    for name in ("default", "rectools"):
        run(
            "evaluate",
            "old.csv",
            "truth.csv",
            "-m",
            "ndcg@2",
            "--conventions",
            name,
            "--save",
            f"{name}.json",
        )
    done = run("explain", "default.json", "rectools.json")
    assert done.exit_code == 0, done.output
    assert "- ideal: the ideal assumes k hits" in done.stdout
    assert "the lists behind the results are gone" in done.stdout
    tried = run("explain", "default.json", "rectools.json", "--lists", "old.csv", "--truth", "truth.csv")
    assert "because the ideal assumes k hits" in tried.stdout
    assert "gone" not in tried.stdout


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


def run_report(*arguments):
    return CliRunner().invoke(cli, ["report", *map(str, arguments)], prog_name="recsys")


def test_lists_and_everything_about_them_become_a_page(folder):
    done = run_report(
        "model_0.csv", "model_1.csv", "--truth", "truth.csv", "--train", "train.csv", "--items", "items.csv",
        "--embeddings", "vectors.npy", "-m", "ndcg", "-m", "recall", "-k", "5", "-k", "10",
        "--baseline", "model_0.csv", "--title", "Two <models>",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(Path("recsys-report") / "report.html")
    text = Path("recsys-report/report.html").read_text(encoding="utf-8")
    assert "<h1>Two &lt;models&gt;</h1>" in text
    assert re.search(r"Ship\s+model_1", re.sub("<[^>]+>", "", text))
    assert "Item number 3" in text
    assert "Not in this report" in text
    assert 'id="map"' in text


@pytest.mark.parametrize("verb", ["report", "compare"])
def test_the_lists_of_models_are_in_their_report(verb, folder):
    history = recsys.read_file("train.csv", "truth")
    for name in ("popularity", "random"):
        recsys.models.save_model(f"{name}.npz", TRAINABLE[name].fit(history))
    done = CliRunner().invoke(cli, [
        verb, "popularity.npz", "random.npz", "--truth", "truth.csv", "--train", "train.csv", "-m", "ndcg@10",
        "-o" if verb == "report" else "--report", "page.html",
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    text = Path("page.html").read_text(encoding="utf-8")
    for section in ("curves", "tradeoff", "strata", "headtail"):
        assert f'<section id="{section}"' in text
    held = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])["inspector"]
    had = {str(u): set(map(str, own)) for u, own in pd.read_csv("train.csv").groupby("user_id")["item_id"]}
    for user in held["users"]:
        shown = [{held["items"][n][0] for n in own} for own in user["lists"] if own]
        assert all(len(own) >= 10 and not own & had.get(user["id"], set()) for own in shown)


def test_ids_may_be_whole_numbers(folder):
    done = run_report(
        "model_0.csv", "--truth", "truth.csv", "--items", "items.csv", "--ids", "int", "-o", "r.html"
    )
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
    done = run_report(
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
    done = run_report(*arguments)
    assert done.exit_code == code, done.output
    assert says in done.output
    assert "Traceback" not in done.output
    assert not Path("recsys-report").exists()


def cells(path):
    """The rows of a CSV file by column."""
    return list(csv.DictReader(io.StringIO(Path(path).read_text(encoding="utf-8"))))


# The name in a saved result, and which file it is.


def test_the_name_a_result_was_saved_under_stands(run):
    for file, name in (("old", "popularity"), ("new", "als")):
        saving = ("--save", f"r_{file}.json", "--name", name)
        assert run("evaluate", f"{file}.csv", "truth.csv", "-m", "hit@1", *saving).exit_code == 0
    done = run("compare", "r_old.json", "r_new.json", "--baseline", "popularity", "--csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["model"], row["baseline"]) == ("als", "popularity")
    for baseline in ("r_old", "r_old.json"):  # the file may be named as well
        assert (
            run("compare", "r_old.json", "r_new.json", "--baseline", baseline, "--csv").stdout == done.stdout
        )
    done = run("compare", "r_old.json", "r_new.json", "--name", "a", "--name", "b", "--csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert {row["model"], row["baseline"]} == {"a", "b"}
    done = run("report", "r_old.json", "r_new.json", "--baseline", "popularity", "-o", "page.html")
    assert done.exit_code == 0, done.output
    title = re.search("<title>(.*?)</title>", Path("page.html").read_text(encoding="utf-8"), re.DOTALL)[1]
    assert {"als", "popularity"} <= set(title.split())


def test_the_report_of_a_comparison_is_about_that_comparison(run):
    arguments = ("compare", "old.csv", "new.csv", "--truth", "truth.csv", "--baseline", "old", "-m", "hit@20")
    done = run(*arguments, "--statistic", "wilcoxon", "--report", "page.html")
    assert done.exit_code == 0, done.output
    page = Path("page.html").read_text(encoding="utf-8")
    assert "[k_beyond_lists]" in done.stdout
    assert "[k_beyond_lists]" in page
    assert run(*arguments, "--report", "quiet.html", "--cautions", "k_beyond_lists").exit_code == 0
    assert "[k_beyond_lists]" not in Path("quiet.html").read_text(encoding="utf-8")


def test_models_of_one_name_are_told_apart_by_their_files(run):
    for folder, file in (("n1", "old"), ("n2", "new")):
        Path(folder).mkdir()
        for name in ("als", "result"):
            saving = ("--save", f"{folder}/result.json", "--name", name)
            assert run("evaluate", f"{file}.csv", "truth.csv", "-m", "hit@1", *saving).exit_code == 0
        done = run("evaluate", f"{file}.csv", "truth.csv", "-m", "hit@1", "--save", f"{folder}/x.json")
        assert done.exit_code == 0
        recsys.load(f"{folder}/x.json").save(f"{folder}/named.json", name="als")

    def names(*paths):
        (row,) = csv.DictReader(io.StringIO(run("compare", *paths, "--csv").stdout))
        return {row["model"], row["baseline"]}

    assert names("n1/named.json", "n2/named.json") == {"als (n1/named)", "als (n2/named)"}
    assert names("n1/x.json", "n2/x.json") == {"n1/x", "n2/x"}
    assert names("n1/named.json", "n2/x.json") == {"als", "x"}


def test_a_model_name_is_no_image_in_markdown_and_no_command_in_a_terminal(run):
    name = "![x](http://a.b)\x1b[31m\u202e"
    for file in ("old", "new"):
        save = ("--save", f"{file}.json", "--name", name if file == "new" else "old")
        assert run("evaluate", f"{file}.csv", "truth.csv", "-m", "hit@1", *save).exit_code == 0
    shown = run("compare", "old.json", "new.json", "--markdown").stdout
    assert "\\!\\[x\\](http" in shown
    assert "http://a.b" not in shown  # which would be a link of its own
    for arguments in (["compare", "old.json", "new.json"], ["history", "."]):
        for options in ([], ["--json"]):
            shown = run(*arguments, *options).stdout
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown), (arguments, options)
    rows = json.loads(run("compare", "old.json", "new.json", "--json").stdout)["rows"]
    assert name in rows[0].values()  # in JSON it is escaped, not lost


def test_history_prints_no_escapes_of_file_names(run):
    save_results(run)
    Path("c\x1b[31mZ\u202e.json").write_text("{}")
    for options in ([], ["--csv"], ["--json"]):
        done = run("history", ".", *options)
        assert done.exit_code == 0, done.output
        assert "\x1b" not in done.output
        assert "\u202e" not in done.output


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_csv_in_a_terminal_has_no_escapes_and_in_a_pipe_every_character(run):
    pd.DataFrame({"user": range(300), "g": ["a\x1b]0;title\x07", "b"] * 150}).to_csv("users.csv", index=False)
    arguments = (
        "evaluate",
        "new.csv",
        "truth.csv",
        "-m",
        "hit@1",
        "--users",
        "users.csv",
        "--by",
        "g",
        "--csv",
    )
    assert "a\x1b]0;title\x07" in run(*arguments).stdout
    reader, terminal = os.openpty()
    command = [sys.executable, "-m", "recsys.cli", *arguments]
    subprocess.run(command, stdout=terminal, stderr=subprocess.DEVNULL, check=True)
    os.close(terminal)
    shown = os.read(reader, 10_000).decode()
    os.close(reader)
    assert "a]0;title" in shown
    assert "\x1b" not in shown


def test_cells_that_a_spreadsheet_would_run_get_an_apostrophe(run):
    ids = ["=1+1", "-2", "-3+4", "@SUM(A1)", "plain"]
    pd.DataFrame({"user": ids, "item": ["=a"] * 5}).to_csv("t.csv", index=False)
    pd.DataFrame({"user": ids, "item": ["=a"] * 5, "score": [-1.5] * 5}).to_csv("l.csv", index=False)
    arguments = ("evaluate", "l.csv", "t.csv", "-m", "mrr", "--per-user", "out.csv")
    assert run(*arguments).exit_code == 0
    safe = [row["user"] for row in cells("out.csv")]
    assert not [name for name in safe if name.startswith(("=", "@", "-3"))]
    assert "-2" in safe  # a number is a number
    assert {name.lstrip("'") for name in safe} == set(ids)
    assert run(*arguments, "--raw").exit_code == 0
    assert {row["user"] for row in cells("out.csv")} == set(ids)
    shown = run("inspect", "@SUM(A1)", "l.csv", "--csv").stdout
    assert "'=a" in shown
    assert "-1.5" in shown
    assert "'-1.5" not in shown  # a number is a number
    assert "'" not in run("inspect", "@SUM(A1)", "l.csv", "--csv", "--raw").stdout


def test_users_of_cases_are_whole_numbers_in_the_file(run):
    Path("cl.csv").write_text("case,user,item,rank\n7,3,1,1\n8,3,2,1\n9,4,1,1\n")
    Path("ct.csv").write_text("case,user,item\n7,3,1\n8,3,1\n9,4,1\n")
    options = ("-m", "mrr", "--ids", "int", "--case", "case", "--per-user", "out.csv")
    done = run("evaluate", "cl.csv", "ct.csv", *options)
    assert done.exit_code == 0, done.output
    assert [row["user"] for row in cells("out.csv")] == ["3", "3", "4"]


def test_the_audit_reads_interactions_by_the_columns_of_the_truth(run):
    Path("train.csv").write_text("uid,iid\nann,a\nbob,b\n")
    Path("test.csv").write_text("uid,iid\nann,b\nbob,a\n")
    Path("lists.csv").write_text("user,item,rank\nann,b,1\nbob,a,1\n")
    names = ("--user", "user", "--item", "item", "--truth-user", "uid", "--truth-item", "iid")
    done = run("audit", "train.csv", "test.csv", "--lists", "lists.csv", *names, "--json")
    assert "findings" in json.loads(done.stdout)
    done = run("audit", "train.csv", "test.csv", "--truth-user", "nowhere")
    assert done.exit_code == 3
    assert "nowhere" in done.stderr


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("s3://bucket/x.csv", "s3://bucket/x.csv is an address"),
        ("https://a.b/x.csv", "https://a.b/x.csv is an address"),
        ("nosuch.csv", "no file nosuch.csv. Check the path."),
        ("treth.csv", "no file treth.csv. Did you mean truth.csv?"),
        ("truth.tsv", "no file truth.tsv. Did you mean truth.csv?"),
    ],
)
def test_a_file_that_is_not_there_is_named_as_it_was_typed(run, path, words):
    for arguments in (["evaluate", path, "truth.csv"], ["compare", path, "new.csv", "--truth", "truth.csv"]):
        done = run(*arguments)
        assert done.exit_code == 3
        assert words in done.stderr


def test_rank_shows_the_places_of_results_folders_and_tables(run, tmp_path):
    save_results(run)
    done = run("rank", "old.json", "new.json", "--metric", "hit@1")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [line.split()[::2] for line in done.stdout.splitlines()[2:4]] == [["new", "1"], ["old", "2"]]
    for name in ("old", "new"):
        for folder in ("monday", "tuesday"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{name}.json").write_bytes((tmp_path / f"{name}.json").read_bytes())
    paths = [f"{folder}/{name}.json" for folder in ("monday", "tuesday") for name in ("old", "new")]
    assert json.loads(run("rank", *paths, "--by-folder", "--json").stdout)["users"] == 600
    assert "two results are called 'old'" in run("rank", *paths).stderr
    rows = [(m, q, int(q % n == 0)) for m, n in (("a", 2), ("b", 9)) for q in range(80)]
    pd.DataFrame(rows, columns=["system", "topic", "points"]).to_csv("board.csv", index=False)
    assert "--value COLUMN" in run("rank", "board.csv").stderr
    columns = ("--value", "points", "--case", "topic")
    assert "| a | 0.5000 | 1 |" in run("rank", "board.csv", *columns, "--markdown").stdout
    assert run("rank", "board.csv", *columns, "--lower-is-better", "--csv").stdout.splitlines()[1][0] == "b"


def test_groups_are_evaluated_compared_and_gated(run):
    users = pd.DataFrame({"user": np.arange(300), "country": np.where(np.arange(300) % 2, "FR", "DE")})
    users.assign(age=np.arange(300) % 3).to_csv("users.csv", index=False)
    for name in ("old", "new"):
        by = ("--users", "users.csv", "--by", "country", "--by", "country,age")
        done = run("evaluate", f"{name}.csv", "truth.csv", "-m", "hit@1", *by, "--save", f"{name}.json")
        assert done.exit_code == 0, done.stderr
        assert "country x age: DE, 0" in done.stdout
    compared = ("compare", "old.json", "new.json", "--baseline", "old", "--by")
    rows = list(csv.DictReader(io.StringIO(run(*compared, "country", "--csv").stdout)))
    assert [(row["country"], row["model"], row["metric"]) for row in rows] == [
        (c, "new", "hit@1") for c in ("DE", "FR")
    ]
    assert "Did you mean 'country'" in run(*compared, "county").stderr
    gated = ("gate", "new.json", "--against", "old.json", "-m", "hit@1")
    assert run(*gated, "--group", "country:hit@1=5%").exit_code == 0
    failed = run(
        "gate", "old.json", "--against", "new.json", "-m", "hit@1=99%", "--group", "country:hit@1=10%"
    )
    assert failed.exit_code == 1
    assert failed.stdout.count("FAIL") >= 2
    assert "GROUPING:METRIC=MARGIN" in run(*gated, "--group", "hit@1").stderr
