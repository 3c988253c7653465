"""The command: results on standard output, all else on standard error, exit codes a script can read."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pandas as pd
import pytest
from click.testing import CliRunner

import recsys
from recsys.cli.app import VERBS, cli
from recsys.cli.error_messages import as_option
from recsys.conventions.presets import PRESETS
from recsys.display.text_tables import fitted
from recsys.errors import wording
from recsys.metrics import METRICS

LISTS = "user_id,item_id,score\nann,a,0.9\nann,b,0.8\nann,c,0.7\nbob,b,0.9\nbob,d,0.1\n"
TRUTH = "user_id,item_id,rating\nann,a,1\nann,c,3\nbob,d,2\n"


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "lists.csv").write_text(LISTS)
    (tmp_path / "truth.csv").write_text(TRUTH)
    return command


def assert_failed(result, code, *words):
    """The exit code, nothing on standard output, and one paragraph without a traceback on standard error."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def test_evaluate_prints_what_the_library_prints(run, tmp_path):
    arguments = ("evaluate", "lists.csv", "truth.csv", "-m", "ndcg@2", "-m", "recall@2,mrr")
    frames = pd.read_csv(tmp_path / "lists.csv"), pd.read_csv(tmp_path / "truth.csv")
    for options, cautions in (([], None), (["--cautions", "ignore"], "ignore")):
        expected = recsys.evaluate(*frames, ["ndcg@2", "recall@2", "mrr"], cautions=cautions)
        result = run(*arguments, *options)
        assert (result.exit_code, result.stderr) == (0, "")
        with fitted(100), wording(as_option):
            assert result.stdout == f"{expected.to_text(intervals=None)}\n"


def test_the_items_that_entries_stand_for(run, tmp_path):
    (tmp_path / "codes.csv").write_text("code,item_id\na,x\na,y\nb,c\nd,d\n")
    (tmp_path / "wanted.csv").write_text("user_id,item_id\nann,y\nbob,d\n")
    arguments = ("evaluate", "lists.csv", "wanted.csv", "-m", "hit@1,hit@2", "--set", "ties=expected")
    shown = run(*arguments, "--items-of", "codes.csv", "--json")
    values = {row["metric"]: row["value"] for row in json.loads(shown.stdout)["result"]["metrics"]}
    assert values == {"hit@1": 0.25, "hit@2": 1.0}
    assert_failed(run(*arguments, "--items-of", "truth.csv"), 3, "Call that of the entries 'entry'")


def test_cautions_are_printed_kept_and_silenced_by_code(run, tmp_path):
    (tmp_path / "two.csv").write_text("user_id,item_id,rank\nann,a,1\nann,b,2\nbob,b,1\nbob,d,2\n")
    arguments = ("evaluate", "two.csv", "truth.csv", "-m", "recall@20")
    shown = run(*arguments)
    assert "[k_beyond_lists]" in shown.stdout
    assert "--set relevant_from" in shown.stdout  # the words of the command
    codes = [caution["code"] for caution in json.loads(run(*arguments, "--json").stdout)["cautions"]]
    assert codes == ["k_beyond_lists", "relevant_from_unset"]
    as_csv = run(*arguments, "--csv")
    assert [line.split("[")[-1] for line in as_csv.stderr.splitlines()] == [f"{code}]" for code in codes]
    assert run(*arguments, "--csv", "-q").stderr == ""
    for options in (["--cautions", "k_beyond_lists, relevant_from_unset"], ["--cautions", "ignore"]):
        assert json.loads(run(*arguments, "--json", *options).stdout)["cautions"] == []
    one = run(*arguments, "--json", "--cautions", "k_beyond_lists")
    assert [caution["code"] for caution in json.loads(one.stdout)["cautions"]] == ["relevant_from_unset"]
    assert_failed(run(*arguments, "--cautions", "k_beyond_list"), 2, "k_beyond_lists")


def test_cuts_conventions_and_changes(run):
    options = ["-m", "ndcg", "-k", 1, "-k", 2, "--conventions", "trec_eval", "--set", "gain=exp2"]
    result = run("evaluate", "lists.csv", "truth.csv", *options, "--set", "relevant_from=2", "--json")
    document = json.loads(result.stdout)["result"]
    assert [row["metric"] for row in document["metrics"]] == ["ndcg@1", "ndcg@2"]
    decisions = document["conventions"]
    assert (decisions["gain"], decisions["relevant_from"], decisions["ties"]) == ("exp2", 2.0, "by_id_desc")


def test_an_aggregate_of_the_users(run):
    arguments = ("evaluate", "lists.csv", "truth.csv", "-m", "ndcg@2", "--aggregate")
    document = json.loads(run(*arguments, "median", "--json").stdout)["result"]
    lowest, highest = (json.loads(run(*arguments, name, "--json").stdout)["result"] for name in ("p1", "p99"))
    assert document["aggregate"] == "median"
    assert document["metrics"] == lowest["metrics"] != highest["metrics"]
    assert "value: the median over users" in run(*arguments, "median").stdout
    assert_failed(run(*arguments, "mode"), 2, "aggregate", "trimmed(0.1)")


def test_csv_has_every_digit(run):
    result = run("evaluate", "lists.csv", "truth.csv", "-m", "ndcg@3", "--csv")
    (row,) = csv.DictReader(io.StringIO(result.stdout))
    assert (row["metric"], row["cases"], len(row["value"]) > 10) == ("ndcg@3", "2", True)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_per_user_files(run, tmp_path, suffix):
    result = run("evaluate", "lists.csv", "truth.csv", "-m", "recall@2", "--per-user", f"users.{suffix}")
    assert result.exit_code == 0
    path = tmp_path / f"users.{suffix}"
    table = pd.read_parquet(path) if suffix == "parquet" else pd.read_csv(path, sep=None, engine="python")
    assert table.to_dict("list") == {"user": ["ann", "bob"], "recall@2": [0.5, 1.0]}
    assert len(list(tmp_path.iterdir())) == 3


def test_a_user_outside_the_mean_has_an_empty_cell(run, tmp_path):
    (tmp_path / "more.csv").write_text(LISTS + "eve,a,1\n")
    run("evaluate", "more.csv", "truth.csv", "-m", "recall@2", "--per-user", "users.csv")
    assert (tmp_path / "users.csv").read_text().splitlines()[-1] == "eve,"


def test_columns_ids_and_seen(run, tmp_path):
    (tmp_path / "a.csv").write_text("who,what\n1,10\n2,20\n")
    (tmp_path / "b.csv").write_text("person;thing\n1;10\n2;30\n")
    columns = ["--user", "who", "--item", "what", "--truth-user", "person", "--truth-item", "thing"]
    result = run(
        "evaluate", "a.csv", "b.csv", *columns, "--ids", "int", "--seen", "b.csv", "-m", "hit@1", "--json"
    )
    document = json.loads(result.stdout)["result"]
    assert (document["metrics"][0]["value"], document["counts"]["seen_truth"]) == (0.5, 2)


def test_standard_input_and_formats(run, tmp_path):
    (tmp_path / "qrels").write_text("q 0 d1 1\nq 0 d2 -1\n")
    found = "q Q0 d2 1 0.9 t\nq Q0 d1 2 0.5 t\n"
    remedy = ("--set", "negative_grades=unjudged")
    assert_failed(run("evaluate", "-", "qrels", "-m", "mrr", input=found), 3, " ".join(remedy))
    arguments = ("evaluate", "-", "qrels", "-m", "mrr", "--csv", *remedy)
    result = run(*arguments, input=found)
    assert result.stdout == "metric,value,cases\nmrr,0.5,1\n"
    unless = f"an error, unless {' '.join(remedy)} or a preset reads them as not judged"
    assert result.stderr == f"note: qrels: negative grades ({unless}): 1\n"
    result = run(*arguments, "-q", "--format", "trec", input="q Q0 d1 1 0.9 t\n")
    assert (result.stdout, result.stderr) == ("metric,value,cases\nmrr,1.0,1\n", "")


def test_catalogue_and_complete(run):
    result = run(
        "evaluate",
        "lists.csv",
        "truth.csv",
        "-m",
        "auc",
        "-m",
        "accuracy@1",
        "--full-ranking",
        "--catalogue",
        9,
    )
    assert result.exit_code == 0
    assert "accuracy@1" in result.stdout


def test_warnings_are_one_line_each(run, tmp_path):
    (tmp_path / "tied.csv").write_text(LISTS.replace("0.8", "0.9"))
    result = run("evaluate", "tied.csv", "truth.csv", "-m", "ndcg@2")
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: ")
    assert "--set ties=expected" in line
    assert run("evaluate", "tied.csv", "truth.csv", "-m", "ndcg@2", "--quiet").stderr == ""


def test_usage_errors(run):
    two = ("evaluate", "lists.csv", "truth.csv")
    assert_failed(run(*two, "-m", "ndgc@10"), 2, "error: ", "'ndcg'", "recsys metrics")
    assert_failed(run(*two, "-m", "ndcg@0"), 2, "k=0")
    assert_failed(run(*two, "-m", "auc"), 2, "--full-ranking")
    assert_failed(run(*two, "-m", "mcc@3"), 2, "Pass --catalogue (ids, or how many)")
    assert_failed(run(*two, "--conventions", "rectool"), 2, "'rectools'")
    assert_failed(run(*two, "--set", "tie=best"), 2, "'ties'")
    assert_failed(run(*two, "--set", "ties=bets"), 2, "'best'")
    assert_failed(run(*two, "--set", "ties"), 2, "--set ties=expected")
    assert_failed(run(*two, "--set", "max_grade=high"), 2, "not a finite number")
    assert_failed(run(*two, "--format", "xls"), 2, "xls")
    assert_failed(run(*two, "--json", "--csv"), 2, "exclude")
    assert_failed(run(*two, "--per-user", "out.xls"), 2, ".parquet")
    assert_failed(run("evaluate", "lists.csv"), 2, "TRUTH")
    assert_failed(run("evalute"), 2, "unknown command 'evalute'")
    assert_failed(run("metrics", "ndgc"), 2, "'ndcg'")


def test_data_errors(run, tmp_path):
    (tmp_path / "bad.csv").write_text("user,item,score\nu,a,1\nu,b\n")
    (tmp_path / "numbers.json").write_text('{"ann": {"1": 2}}')
    assert_failed(run("evaluate", "list.csv", "truth.csv"), 3, "no file list.csv", "Did you mean lists.csv?")
    assert_failed(run("evaluate", "bad.csv", "truth.csv"), 3, "bad.csv, line 3")
    assert_failed(run("evaluate", "lists.csv", "truth.csv", "--user", "uid"), 3, "user_id, item_id, score")
    assert_failed(run("evaluate", "lists.csv", "truth.csv", "--ids", "int"), 3, "line 2: 'ann'", "--ids str")
    assert_failed(run("evaluate", "lists.csv", "truth.csv", "--encoding", "ascii", "--grade", "x"), 3, "'x'")
    assert_failed(
        run("evaluate", "lists.csv", "truth.csv", "--set", "no_truth=error", "--set", "relevant_from=3"),
        3,
        "'bob'",
    )


def test_a_missing_package_is_exit_4(run, tmp_path, monkeypatch):
    pd.DataFrame({"user": [1], "item": [2]}).to_parquet(tmp_path / "lists.parquet")
    for name in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    assert_failed(run("evaluate", "lists.parquet", "truth.csv"), 4, "recsys-evaluation[arrow]")


def test_a_defect_is_exit_5_and_debug_shows_where(run, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("recsys.evaluation.evaluate.evaluate", broken)
    assert_failed(
        run("evaluate", "lists.csv", "truth.csv"), 5, "internal error: ZeroDivisionError: oops", "--debug"
    )
    result = run("--debug", "evaluate", "lists.csv", "truth.csv")
    assert (result.exit_code, result.stdout) == (5, "")


def test_too_little_memory_is_exit_3(run, monkeypatch):
    def large(*_, **__):
        raise MemoryError

    monkeypatch.setattr("recsys.evaluation.evaluate.evaluate", large)
    assert_failed(run("evaluate", "lists.csv", "truth.csv"), 3, "not enough memory", "--memory")


def test_an_interrupt_is_exit_130(run, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("recsys.files.read_file", stopped)
    assert_failed(run("evaluate", "lists.csv", "truth.csv"), 130, "interrupted")


def test_names_cannot_steer_the_terminal(run, tmp_path):
    (tmp_path / "evil.csv").write_text("user,item,score\nu,\x1b[2Ja,x\n")
    result = run("evaluate", "evil.csv", "truth.csv")
    assert result.exit_code == 3
    assert "\x1b" not in result.output


def test_metrics_lists_the_registry(run):
    listed = run("metrics")
    assert listed.exit_code == 0
    assert set(METRICS) <= {line.split(" ")[0] for line in listed.stdout.splitlines()}
    document = json.loads(run("metrics", "--json").stdout)
    assert [row["name"] for row in document] == sorted(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_each_metric_describes_itself(run, name):
    text = run("metrics", name, env={"COLUMNS": "1000"}).stdout
    metric = METRICS[name]
    for part in (metric.meaning, metric.formula, metric.reference, *metric.aliases, *metric.reads):
        assert part in text
    assert json.loads(run("metrics", name, "--json").stdout)["formula"] == metric.formula


def test_metrics_takes_aliases_and_cuts(run):
    assert run("metrics", "f1@10").stdout == run("metrics", "f").stdout
    assert "by=…, target=catalogue, " in run("metrics", "awrf").stdout


def test_conventions(run):
    assert set(PRESETS) <= set(run("conventions").stdout.split())
    assert {row["name"] for row in json.loads(run("conventions", "--json").stdout)} == set(PRESETS)
    assert "not copied: " in run("conventions", "rectools").stdout
    assert "- ideal: reachable -> k, " in run("conventions", "default", "rectools").stdout
    assert "no decision differs" in run("conventions", "trec_eval", "pytrec_eval").stdout
    assert_failed(run("conventions", "rectool"), 2, "'rectools'")


def test_help_names_every_verb(run):
    text = run("--help").stdout
    assert all(verb in text for verb in VERBS)
    for verb in VERBS:
        assert run(verb, "--help").exit_code == 0
    assert run("--version").stdout == f"recsys {recsys.__version__}\n"


def test_a_real_process(tmp_path):
    (tmp_path / "lists.csv").write_text(LISTS)
    (tmp_path / "truth.csv").write_text(TRUTH)
    command = [
        sys.executable,
        "-m",
        "recsys.cli",
        "evaluate",
        "lists.csv",
        "truth.csv",
        "-m",
        "recall@2",
        "--csv",
        "--cautions",
        "ignore",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "metric,value,cases\nrecall@2,0.75,2\n", "")


def test_help_needs_no_optional_package():
    optional = "duckdb implicit jinja2 jsonschema matplotlib polars pyarrow safetensors torch vl_convert"
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({optional.split()}))\n"
        "from recsys.cli import main; main()"
    )
    for arguments in (["--help"], ["evaluate", "--help"], ["run", "--help"]):
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "Usage: recsys" in done.stdout


def test_per_user_rows_never_replace_an_input(tmp_path):
    lists, truth = tmp_path / "l.csv", tmp_path / "t.csv"
    lists.write_text("user,item\n1,a\n")
    truth.write_text("user,item\n1,a\n")
    for target in (lists, truth):
        done = CliRunner().invoke(
            cli, ["evaluate", str(lists), str(truth), "-m", "mrr", "--per-user", str(target)]
        )
        assert done.exit_code == 2
        assert "overwrite an input file" in done.output
    assert lists.read_text() == "user,item\n1,a\n"


def test_a_verb_that_is_nearly_one(run):
    assert_failed(run("evalute", "lists.csv", "truth.csv"), 2, "Did you mean 'evaluate'")
    assert_failed(run("zzz"), 2, "unknown command 'zzz'. Known: audit, ")


@pytest.mark.parametrize("words", ["recsys evaluate li", "recsys compare a b --truth tr", "recsys history f"])
def test_shells_complete_names_of_files(run, words):
    done = run(env={
        "_RECSYS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1),
    })  # fmt: skip
    assert done.stdout == f"file,{words.split()[-1]}\n"


def test_an_error_of_the_system_is_not_an_internal_error(run, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("recsys.cli.scoring_verbs.show", full)
    assert_failed(run("evaluate", "lists.csv", "truth.csv"), 3, "No space left on device")


def test_standard_input_is_read_once(run):
    assert_failed(run("evaluate", "-", "-", input=LISTS), 2, "once only")


def test_groups_by_a_column_of_users_are_in_every_form(run, tmp_path):
    (tmp_path / "people.csv").write_text("user,sex\nann,F\nbob,M\n")
    arguments = ("evaluate", "lists.csv", "truth.csv", "-m", "ndcg@2", "--users", "people.csv", "--by", "sex")
    shown = run(*arguments).stdout
    rows = [*csv.DictReader(io.StringIO(run(*arguments, "--csv").stdout))]
    by = json.loads(run(*arguments, "--json").stdout)["result"]["by"]
    assert [row["group"] for row in rows] == ["overall", "F", "M"]
    assert [float(row["value"]) for row in rows[1:]] == [group["metrics"]["ndcg@2"] for group in by]
    assert all(line in [row.split()[0] for row in shown.splitlines() if row] for line in "FM")
    assert_failed(run(*arguments[:-1], "age"), 2, "Pass --users or --items")


def test_the_help_of_most_verbs_needs_no_numpy():
    # The others list file formats, ways to split, tests or models, which are declared beside their functions.
    of_files = {"audit", "bench", "compare", "evaluate", "explain", "fuse", "init", "inspect", "report"}
    verbs = sorted(set(VERBS) - of_files - {"split", "train"})
    code = (
        "import sys; from recsys.cli.app import cli\n"
        f"for verb in {verbs}: cli([verb, '--help'], standalone_mode=False)\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")


def test_links_that_lead_to_themselves_and_names_without_a_stem(run, tmp_path):
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    assert_failed(run("fuse", "loop.csv", "lists.csv", "-o", "out.csv"), 3, "no file loop.csv. Check")
    assert_failed(run("fuse", "lists.csv", "lists.csv", "-o", "loop.csv"), 3, "loop.csv is a symbolic link")
    assert run("compare", "..", "..", "--truth", "truth.csv").exit_code in (2, 3)


def test_a_board_is_refreshed_after_some_seconds(run):
    assert run("evaluate", "lists.csv", "truth.csv", "--save", "a.json").exit_code == 0
    assert run("board", "a.json", "-o", "b.html", "--refresh", "5").exit_code == 0
    for seconds in ("inf", "nan", "0", "-1"):
        assert run("board", "a.json", "-o", "b.html", "--refresh", seconds).exit_code in (2, 3)
