"""Problems that users met when they followed the docs and then left the path, as they typed them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.comparison.history import record
from recsys.errors import ColumnError, FileError, IdTypeError, InputError, MergeError
from recsys.inputs.files.reader import read_table, write_table
from recsys.ranks.sources import read_factors
from recsys.report import report_html
from recsys.report.example_users import inspector_users
from recsys.report.section_numbers import head_and_tail
from recsys.report.study import make_study

LISTS = "user,item,score\na,x,2\na,y,1\nb,y,2\nb,x,1\n"
TRUTH = "user,item\na,x\nb,x\n"


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists.csv").write_text(LISTS)
    (tmp_path / "truth.csv").write_text(TRUTH)
    return command


def failed(result, code, *words):
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert "internal error" not in result.stderr
    for word in words:
        assert word in result.stderr


class TestFiles:
    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
    @pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
    def test_a_pipe_is_read_whole_and_once(self, tmp_path, packed):
        """`recsys evaluate <(zcat run.gz) …`: detecting the format of the file must not lose a line."""
        lines = "".join(f"q{n} Q0 d{n % 7} 1 0.5 tag\n" for n in range(20_000)).encode()
        pipe = tmp_path / "run"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(lines) if packed else lines,))
        writer.start()
        read = recsys.read_file(pipe)
        writer.join()
        assert (len(read.cases), read.facts.format) == (20_000, "trec")

    def test_a_shell_gives_pipes_to_the_command(self, run, tmp_path):
        del run
        line = f"{sys.executable} -m recsys.cli evaluate <(cat lists.csv) <(cat truth.csv) -m mrr --csv"
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stdout == "metric,value,cases\nmrr,0.75,2\n", done.stderr

    def test_parquet_gzipped_under_its_own_name(self, tmp_path):
        pd.DataFrame({"user": ["a"], "item": ["x"]}).to_parquet(tmp_path / "t.parquet")
        packed = gzip.compress((tmp_path / "t.parquet").read_bytes())
        (tmp_path / "packed.parquet").write_bytes(packed)
        assert recsys.read_file(tmp_path / "packed.parquet", "truth").items.values.tolist() == ["x"]

    def test_strings_arrow_keeps_as_views(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        texts = pa.array(["b", "a"]).cast(pa.string_view())
        parquet.write_table(pa.table({"user": texts, "item": texts}), tmp_path / "v.parquet")
        read = recsys.read_file(tmp_path / "v.parquet", "truth")
        assert (read.cases.values.tolist(), read.items.values.tolist()) == (["a", "b"], ["a", "b"])

    def test_inter_files_have_no_quotes(self, tmp_path):
        """What is written is what was read, quotes and commas in ids included."""
        (tmp_path / "a.inter").write_text('user_id:token\titem_id:token\nu\tx"y\nu\t"z"\nv\tp,q\n')
        frame, _ = read_table(tmp_path / "a.inter", text=True)
        write_table(tmp_path / "b.inter", frame)
        assert (tmp_path / "b.inter").read_bytes() == (tmp_path / "a.inter").read_bytes()
        for wrong in ("x\ty", "x\ny"):
            with pytest.raises(FileError, match="no tabs or line breaks in cells"):
                write_table(tmp_path / "c.inter", pd.DataFrame({"user": ["u"], "item": [wrong]}))
            write_table(tmp_path / "c.tsv", pd.DataFrame({"user": ["u"], "item": [wrong]}))
            assert recsys.read_file(tmp_path / "c.tsv").items.values.tolist() == [wrong]

    def test_gzipped_twice_is_said(self, tmp_path):
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(gzip.compress(TRUTH.encode())))
        with pytest.raises(FileError, match="gzipped twice"):
            recsys.read_file(tmp_path / "t.csv.gz", "truth")

    def test_arrays_in_place_of_lists_are_told_as_factors(self, run):
        np.save("U.npy", np.ones((2, 2)))
        np.savez("UV.npz", U=np.ones((2, 2)))
        for name, words in (("U.npy", "NumPy arrays"), ("UV.npz", "holds no item matrix; found U.")):
            failed(run("evaluate", name, "truth.csv"), 3, words, "--factors U V")

    @pytest.mark.parametrize("number", [-(2**63), 2**63 - 1])
    def test_the_outermost_whole_numbers_are_ids(self, tmp_path, number):
        (tmp_path / "t.csv").write_text(f"user,item\n{number},1\n")
        read = recsys.read_file(tmp_path / "t.csv", "truth", ids="int")
        assert read.cases.values.tolist() == [number]
        (tmp_path / "t.csv").write_text("user,item\n-9223372036854775809,1\n")
        with pytest.raises(IdTypeError, match="64 bits"):
            recsys.read_file(tmp_path / "t.csv", "truth", ids="int")

    def test_a_column_that_stands_twice_is_nobodys_choice(self, run, tmp_path):
        (tmp_path / "two.csv").write_text("user,item,score,score\na,x,1,2\n")
        for named in ((), ("--score", "score")):
            failed(run("evaluate", "two.csv", "truth.csv", *named), 3, "'score' occurs twice", "Rename")
        table = pd.DataFrame({"user": ["a"], "item": ["x"], "other": [1]})
        with pytest.raises(ColumnError, match="occurs twice"):
            recsys.inputs.frames.find_columns(["uid", "uid", "item"], ("user", "item"), None, "t")
        assert recsys.read_lists(table).cases.values.tolist() == ["a"]

    def test_a_rank_beyond_reason_is_shown_as_it_came(self, run, tmp_path):
        (tmp_path / "far.csv").write_text("user,item,rank\na,x,1e300\n")
        made = run("evaluate", "far.csv", "truth.csv")
        failed(made, 3, "the rank 1e+300 ")
        assert "invalid value" not in made.stderr

    def test_text_that_is_no_unicode_is_named_alone(self):
        with pytest.raises(IdTypeError, match=r"user id '\\ud800' is"):
            recsys.evaluate({"b": ["x"], "\ud800": ["x"]}, {"b": ["x"]})


class TestFactors:
    @pytest.fixture
    def model(self, run, tmp_path):
        np.save("U.npy", np.eye(2))
        np.save("V.npy", np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0]]))
        (tmp_path / "people.txt").write_text("ann\nbob\n")
        (tmp_path / "truth.csv").write_text("user,item\nann,0\nbob,1\n")
        return lambda *more: run(
            "evaluate", "--factors", "U.npy", "V.npy", "--truth", "truth.csv", "-m", "mrr", "--csv", *more
        )

    def test_ids_of_one_side_only(self, model):
        """Ann's item 0 is first; bob's item 1 is second: (1 + 1/2) / 2."""
        assert model("--user-ids", "people.txt").stdout == "metric,value,cases\nmrr,0.75,2\n"

    @pytest.mark.parametrize("ids", ["str", "int", "auto"])
    @pytest.mark.parametrize("kind", [np.int64, "U2", "S2"])
    def test_ids_of_every_kind_match_the_files(self, model, tmp_path, ids, kind):
        np.save("people.npy", np.array([10, 20]).astype(kind))
        np.save("things.npy", np.array([5, 6, 7]).astype(kind))
        (tmp_path / "truth.csv").write_text("user,item\n10,5\n20,6\n")
        done = model("--user-ids", "people.npy", "--item-ids", "things.npy", "--ids", ids)
        if (ids, kind) == ("auto", np.int64):  # numbers in one file, text in the other
            failed(done, 3, "files are read so with --ids str")
        else:
            assert done.stdout == "metric,value,cases\nmrr,0.75,2\n", done.output

    def test_ids_that_are_floats_are_refused(self, model):
        np.save("people.npy", np.array([10.0, 20.0]))
        failed(model("--user-ids", "people.npy"), 3, "float64", "astype(np.int64)")

    def test_nobody_known_is_an_error_and_not_zero(self, model, tmp_path):
        (tmp_path / "people.txt").write_text("ann \nbob \n")
        failed(model("--user-ids", "people.txt"), 3, "no user of the truth ('ann', …)", "('ann ', …)")
        one_known = recsys.Factors(np.eye(2), np.eye(2), user_ids=["a", "b"], item_ids=["x", "y"])
        assert recsys.evaluate(one_known, {"a": {"x"}, "z": {"x"}}, ["mrr"])["mrr"] == 0.5
        # A batch of unknown users alone is no mistake, nor is a user who has seen every item.
        assert recsys.Evaluator(["mrr"]).update(one_known, {"z": {"x"}}).result()["mrr"] == 0.0
        assert recsys.evaluate(one_known, {"a": {"x"}}, ["mrr"], seen={"a": ["x", "y"]})["mrr"] == 0.0

    def test_an_item_that_is_no_row_is_an_error(self, model, tmp_path):
        (tmp_path / "truth.csv").write_text("user,item\nann,i0\nbob,i1\n")
        refused = model("--user-ids", "people.txt")
        assert refused.exit_code == 3
        assert "item 'i0' of the truth does not exist in the model" in refused.stderr
        assert "--item-ids" in refused.stderr

    def test_python_keeps_row_numbers(self, model, tmp_path):
        del model
        made = read_factors("U.npy", "V.npy", user_ids=tmp_path / "people.txt")
        assert recsys.evaluate(made, {"ann": [0], "bob": [1]}, ["mrr"])["mrr"] == 0.75

    def test_a_folder_is_a_folder(self, model):
        del model
        with pytest.raises(FileError, match="is a folder"):
            read_factors(".", "V.npy")


class TestGate:
    @pytest.fixture
    def results(self, run):
        for name in ("new", "old"):
            assert (
                run("evaluate", "lists.csv", "truth.csv", "-m", "mrr", "--save", f"{name}.json").exit_code
                == 0
            )
        return lambda *more: run("gate", "new.json", "--against", "old.json", *more)

    def test_a_metric_has_one_margin(self, results):
        failed(results("-m", "mrr=1%", "-m", "mrr=90%"), 2, "-m mrr is given twice")
        failed(results("-m", "mrr=1%", "-m", "MRR=90%"), 3, "mrr has two margins")

    def test_the_metrics_there_are_are_named(self, results):
        failed(results("-m", "ndcg@10"), 3, "no metric 'ndcg@10'", "It has: mrr.")

    def test_a_summary_never_overwrites_a_result(self, results, tmp_path):
        before = (tmp_path / "new.json").read_text()
        failed(results("-m", "mrr", "--comment", "new.json"), 2, "would overwrite an input")
        assert (tmp_path / "new.json").read_text() == before

    def test_json_is_json(self, run, tmp_path):
        """Over 0 there is no change in per cent, and JSON knows no infinity."""
        (tmp_path / "one.csv").write_text("user,item\na,x\n")
        (tmp_path / "other.csv").write_text("user,item\na,y\n")
        run("evaluate", "one.csv", "other.csv", "-m", "mrr", "--save", "one.json")
        made = run("gate", "one.json", "--against", "one.json", "-m", "mrr", "--json")
        assert made.exit_code == 1

        def refuse(word):
            raise AssertionError(word)

        assert json.loads(made.stdout, parse_constant=refuse)["checks"][0]["change"] is None

    def test_margins_are_a_mapping(self):
        result = recsys.evaluate({1: [2]}, {1: [2]}, ["mrr"])
        with pytest.raises(InputError, match="came as list"):
            recsys.gate(result, result, ["mrr"])


class TestResults:
    def test_nights_of_one_model_are_one_series(self, run):
        for night in ("2026-11-01", "2026-11-02"):
            run("evaluate", "lists.csv", "truth.csv", "-m", "mrr", "--save", f"{night}.json", "--name", "als")
        nights = json.loads(run("history", ".", "--json").stdout)["nights"]
        assert [night["name"] for night in nights] == ["als", "als"]
        failed(run("evaluate", "lists.csv", "truth.csv", "--name", "als"), 2, "--save FILE")

    def test_what_history_skips_is_said_in_every_form(self, run, tmp_path):
        run("evaluate", "lists.csv", "truth.csv", "-m", "mrr", "--save", "als.json")
        (tmp_path / "cut.json").write_text('{"result"')
        assert "cut.json" in json.loads(run("history", ".", "--json").stdout)["skipped"][0]
        assert "cut.json" in run("history", ".", "--csv").stderr
        failed(run("history", ".", "--csv", "--json"), 2, "exclude each other")
        assert len(recsys.history(".")) == 1

    def test_merge_takes_results_one_by_one(self):
        parts = [recsys.evaluate({u: [u]}, {u: [u]}, ["mrr"]) for u in (1, 2)]
        with pytest.raises(MergeError, match=r"first\.merge\(\*rest\)"):
            parts[0].merge(parts[1:])
        other = recsys.evaluate({3: [3]}, {3: [3]}, ["mrr", "coverage@1"])
        with pytest.raises(MergeError, match="mrr and mrr, coverage@1"):
            parts[0].merge(other)

    def test_a_byte_order_mark_before_a_result(self, run, tmp_path):
        run("evaluate", "lists.csv", "truth.csv", "-m", "mrr", "--save", "als.json")
        (tmp_path / "marked.json").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "als.json").read_bytes())
        assert recsys.load("marked.json")["mrr"] == 0.75

    def test_explain_takes_a_name_with_an_ending_for_a_file(self, run):
        failed(run("explain", "nope.json", "default"), 3, "there is no file nope.json")
        failed(run("explain", "lists.csv", "default"), 3, "lists.csv is not JSON")

    def test_the_default_is_described_like_any_preset(self, run):
        made = run("conventions", "default")
        assert made.exit_code == 0
        assert "ties=by_id: " in made.stdout
        differs = json.loads(run("conventions", "default", "recpack", "--json").stdout)
        assert (differs["gain"]["from"], differs["gain"]["to"]) == ("grade", "binary")

    def test_nothing_is_lost_when_many_record_at_once(self, tmp_path):
        result = recsys.evaluate({1: [2]}, {1: [2]}, ["mrr"])
        writers = [threading.Thread(target=record, args=(tmp_path, result, "ü/als")) for _ in range(12)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert len(recsys.history(tmp_path)) == 12
        assert {path.suffix for path in tmp_path.iterdir()} == {".json"}

    def test_recording_where_there_are_no_hard_links(self, tmp_path, monkeypatch):
        def none_here(*_):
            raise PermissionError("no links")

        monkeypatch.setattr(Path, "hardlink_to", none_here)
        result = recsys.evaluate({1: [2]}, {1: [2]}, ["mrr"])
        assert record(tmp_path, result, "als") != record(tmp_path, result, "als")
        assert len(recsys.history(tmp_path)) == 2

    def test_facts_are_kept_as_json_or_refused(self, tmp_path):
        result = recsys.evaluate({1: [2]}, {1: [2]}, ["mrr"])
        result.save(tmp_path / "a.json", seed=np.int64(4), commit="1f3a")
        assert recsys.load(tmp_path / "a.json").run["seed"] == 4
        for value in (object(), float("nan"), np.arange(2)):
            with pytest.raises(InputError, match="the fact seed="):
                result.save(tmp_path / "b.json", seed=value)

    def test_arrow_in_pieces(self):
        pa = pytest.importorskip("pyarrow")
        table = pa.table({"user": [1, 2], "item": [3, 4]})
        for held in (table.to_batches()[0], table.to_reader()):
            assert recsys.evaluate(held, {1: [3], 2: [5]}, ["hit@1"])["hit@1"] == 0.5
        with pytest.raises(InputError, match="came as"):
            recsys.evaluate(pa.array([1]), {1: [3]})

    def test_what_was_asked_of_a_comparison_is_printed(self, run):
        pair = ("compare", "lists.csv", "lists.csv", "--name", "a", "--name", "b", "--truth", "truth.csv")
        plain = run(*pair, "-m", "mrr").stdout.splitlines()[0]
        asked = run(*pair, "-m", "mrr", "--no-worse-than", "0.1", "--rope", "0.1").stdout.splitlines()[0]
        assert set(asked.split("  ")) - set(plain.split("  ")) == {
            "p, no worse", "P(worse)", "P(equal)", "P(better)",
        }  # fmt: skip

    def test_audits_name_their_models_and_items(self, run, tmp_path):
        (tmp_path / "n.csv").write_text("user,item\n1,2\n")
        (tmp_path / "items.csv").write_text("item\n2\ni0\n")
        audit = ("audit", "n.csv", "n.csv", "--ids", "int")
        failed(run(*audit, "--items", "items.csv"), 3, "row 1: 'i0' is not a whole number")
        failed(run(*audit, "--items", "."), 3, "items.csv has item. The files of one table have the same")
        failed(run(*audit, "--model", "a=n.csv", "--model", "a=n.csv"), 2, "--model a is given twice")

    def test_ratings_spare_their_file(self, run, tmp_path):
        (tmp_path / "p.csv").write_text("user,rating,prediction\na,3,2\n")
        failed(run("ratings", "p.csv", "--per-user", "p.csv"), 2, "would overwrite an input")


class TestReport:
    @pytest.fixture
    def files(self, run, tmp_path):
        """Ann rated x 5 and y 1; the train's times are dates in two zones."""
        (tmp_path / "truth.csv").write_text("user,item,rating\na,x,5\na,y,1\nb,x,4\nb,y,2\n")
        (tmp_path / "train.csv").write_text(
            "user,item,timestamp\na,p,2020-01-01T00:30:00+02:00\na,q,2020-01-01T00:00:00+01:00\n"
            "b,p,2020-01-01T00:00:00+01:00\n"
        )
        return run

    def test_dates_as_times(self, files):
        asked = ("--truth", "truth.csv", "--train", "train.csv", "-m", "mrr", "-o", "r.html")
        made = files("report", "lists.csv", *asked)
        assert (made.exit_code, made.stderr) == (0, ""), made.output

    def test_a_history_is_latest_first_whatever_the_zone(self, files):
        """23:00 UTC is later than 22:30 UTC, though its text is smaller."""
        result = recsys.evaluate("lists.csv", "truth.csv", ["mrr"])
        material = make_study(result, truth=recsys.read_file("truth.csv", "truth"),
                            train=recsys.read_file("train.csv", "truth"))  # fmt: skip
        made = inspector_users(material)
        (ann,) = [user for user in made["users"] if user["id"] == "a"]
        assert [made["items"][n][0] for n in ann["had"]] == ["q", "p"]
        shown = files("inspect", "a", "lists.csv", "--train", "train.csv", "--csv").stdout
        assert [line.split(",")[-1] for line in shown.splitlines()[1:]] == ["q", "p"]

    def test_relevant_is_what_the_conventions_say(self, files):
        """From 4 on, each user wanted x alone; a has it first, b second: half of it is found at 1."""
        del files
        truth, train = recsys.read_file("truth.csv", "truth"), {"a": ["x", "y"], "b": ["x"]}
        lists = recsys.read_file("lists.csv")
        result = recsys.evaluate(lists, truth, ["recall@1"], conventions={"relevant_from": 4})
        material = make_study(result, lists=lists, truth=truth, train=train)
        assert [user["n_wanted"] for user in inspector_users(material)["users"]] == [1, 1]
        shares, found = head_and_tail(material)
        assert shares["(the truth)"] == {"head": 1.0, "tail": 0.0}
        assert found == {"model": {"head": 0.5}}
        assert result["recall@1"] == 0.5

    def test_users_who_want_nothing_are_in_no_group(self):
        """Users with low ratings only are in no mean, and have no taste to be grouped by."""
        truth = pd.DataFrame({"user": range(60), "item": [u % 6 for u in range(60)],
                              "rating": [1 + 4 * (u % 3 > 0) for u in range(60)]})  # fmt: skip
        lists = {u: [u % 6, 0] for u in range(60)}
        train = {u: list(range(u % 5 + 1)) for u in range(60)}
        result = recsys.evaluate(lists, truth, ["mrr"], conventions={"relevant_from": 4})
        for one in make_study(result, lists=lists, truth=truth, train=train).strata:
            values = [value for held in one.values.values() for value, _, _ in held.values()]
            assert not np.isnan(values).any(), one.name
            if one.name.startswith("popularity"):
                assert sum(one.sizes.values()) == 40

    def test_train_serves_the_metrics_too(self, files):
        asked = ("--truth", "truth.csv", "--train", "train.csv", "-m", "novelty@1", "--ids", "str")
        assert files("report", "lists.csv", *asked, "-o", "r.html").exit_code == 0
        pair = ("compare", "lists.csv", "lists.csv", "--name", "a", "--name", "b")
        assert files(*pair, *asked).exit_code == 0
        told = files(*pair, *asked[:2], *asked[4:])
        failed(told, 2, "--train")
        assert "popularity= in Python" in told.stderr

    def test_pages_end_in_html_and_spare_their_inputs(self, files):
        files("evaluate", "lists.csv", "truth.csv", "-m", "mrr", "--save", "als.json")
        failed(files("report", "als.json", "-o", "page.pdf"), 2, "must end in .html")
        Path("als.json").rename("als.html")
        failed(files("report", "als.html", "--truth", "truth.csv", "-o", "als.html"), 2, "overwrite an input")

    def test_a_history_of_words_is_refused(self):
        result = recsys.evaluate({1: [2]}, {1: [2]}, ["mrr"])
        with pytest.raises(InputError, match="'high', not a number"):
            report_html(result, history=[{"time": "2026-01-01", "value": "high"}])

    def test_items_are_read_in_the_encoding_asked_for(self, files, tmp_path):
        (tmp_path / "items.csv").write_bytes("item,title\nx,zér\n".encode("latin-1"))
        asked = ("--truth", "truth.csv", "--items", "items.csv", "--encoding", "latin-1", "-o", "r.html")
        assert files("report", "lists.csv", *asked).exit_code == 0
        assert "zér" in (tmp_path / "r.html").read_text(encoding="utf-8")


class TestTimes:
    ZONED = ("2020-01-01T00:30:00+02:00", "2020-01-01T00:00:00+01:00", "2020-01-01T01:00:00+01:00")

    def table(self, times):
        return pd.DataFrame({"user": [1, 1, 2], "item": ["p", "q", "r"], "timestamp": times})

    def test_ages_do_not_depend_on_how_times_are_written(self):
        stamps = pd.to_datetime(list(self.ZONED), utc=True)
        forms = (list(self.ZONED), stamps, stamps.tz_localize(None), stamps.as_unit("s").astype("int64"))
        lists, truth = {1: ["p", "q", "r"]}, {1: ["p", "r"]}
        made = []
        for times in forms:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = recsys.evaluate(lists, truth, ["recall@1"], train=self.table(times), by="item_age")
            counted = recsys.baselines.training_counts(self.table(times), half_life=1800)
            made.append((dict(result.by), counted.values.round(12).tolist()))
        assert all(str(one) == str(made[0]) for one in made)
        assert made[0][1] == [0.125, 0.25, 1.0]  # 90, 60 and 0 minutes old, halved every 30

    def test_studies_compare_moments_not_texts(self):
        pytest.importorskip("torch")
        from recsys.benching.studies import setting_of

        setting = setting_of(self.table(self.ZONED).assign(rating=[3, 4, 5]))
        assert np.diff(setting.frame["timestamp"]).tolist() == [1800.0, 3600.0]

    def test_recency_needs_every_time(self):
        with pytest.raises(InputError, match="1 events have no time"):
            recsys.baselines.training_counts(self.table(["2020-01-01", None, "2020-01-02"]), half_life=60)


def test_predictions_without_a_user_are_refused(run, tmp_path):
    (tmp_path / "p.csv").write_text("user,rating,prediction\na,3,2\n,4,3\n")
    failed(run("ratings", "p.csv"), 3, "user id is missing")
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"user": [1.0, 2.0], "rating": [1.0, 2.0], "prediction": [1.0, 2.0]})
    table.to_parquet(tmp_path / "p.parquet")
    made = run("ratings", "p.parquet", "--per-user", "users.csv")
    assert "came as floats" in made.stderr
    assert [line.split(",")[0] for line in (tmp_path / "users.csv").read_text().splitlines()[1:]] == [
        "1",
        "2",
    ]


@pytest.mark.parametrize("who", ["²", "a", "1.5"])
def test_a_user_that_is_no_number(run, who, tmp_path):
    (tmp_path / "numbers.csv").write_text("user,item,score\n1,2,0.5\n")
    failed(run("inspect", who, "numbers.csv", "--ids", "int"), 2, "is not a whole number")
