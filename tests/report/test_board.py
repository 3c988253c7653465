"""The board: what is in the page, the page in a browser, and that it follows a folder."""

import base64
import csv
import datetime as dt
import json
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.errors import FileError, InputError
from recsys.report import board, watch_board, write_board
from recsys.report.board import Run, board_html
from worlds.browser import Visit
from worlds.report import HOSTILE

METRICS = ("ndcg@5", "hit@5", "mrr")


def evaluation(share, seed, *, metrics=METRICS, users=80, relevant=1, night=None, **options):
    """A model that puts the relevant item first with this probability."""
    rng = np.random.default_rng(seed)
    truth = {user: {relevant} for user in range(users)}
    lists = {user: [relevant, 8, 9] if rng.random() < share else [7, 8, 9] for user in truth}
    result = recsys.evaluate(lists, truth, list(metrics), **options)
    if night is not None:
        moment = dt.datetime(2026, 1, 1, 2, tzinfo=dt.UTC) + dt.timedelta(days=night)
        result.run = {"finished": moment.isoformat()}
    return result


def save(folder, name, result, model="als"):
    result.save(folder / f"{name}.json", name=model)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Fourteen nights of als, which falls on the ninth, and one run each that answers another question."""
    place = tmp_path_factory.mktemp("results")
    for night in range(14):
        save(place, f"als-{night:02d}", evaluation(0.8 if night < 8 else 0.3, night, night=night))
    more = {
        "truth": evaluation(0.5, 90, relevant=2, night=20),
        "users": evaluation(0.5, 91, users=60, night=21),
        "decisions": evaluation(0.5, 92, conventions="rectools", night=22),
        "short": evaluation(0.5, 93, metrics=["ndcg@5", "recall@3"], night=23),
        "same": evaluation(0.6, 94, night=24),
    }
    for name, result in more.items():
        save(place, name, result, name)
    (place / "note.json").write_text("{}")
    (place / "half.json").write_text((place / "same.json").read_text()[:400])
    (place / "older").mkdir()
    (place / "older" / "als.json").write_text("{}")
    return place


@pytest.fixture(scope="module")
def page(folder, tmp_path_factory):
    return write_board(tmp_path_factory.mktemp("board") / "board.html", folder, title="Nights")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A board whose every name is an attack, files included where a file may be called so."""
    place = tmp_path_factory.mktemp("hostile")
    for number, name in enumerate(HOSTILE):
        for night in range(2):
            file = f"{name.replace('/', '_')[:40]}{number}-{night}"
            save(place, file, evaluation(0.5, number, night=night), name)
    (place / "<img src=x onerror=window.owned=1>.json").write_text("{}")
    return write_board(place / "board.html", place, title=HOSTILE[1])


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


# The file


def test_the_table_holds_every_run_newest_first_and_the_metrics_of_all(page):
    text = page.read_text(encoding="utf-8")
    rows = re.findall(r'<tr><th scope="row">([^<]+)', text)
    assert rows == ["same", "short", "decisions", "users", "truth", *["als"] * 14]
    heads = re.findall(r'class="n" title="[^"]+">([^<]+)', text)
    assert heads == ["ndcg@5", "hit@5", "mrr", "recall@3"]
    short = next(line for line in text.splitlines() if ">short<" in line).split("<td>")
    assert [bool(cell.strip()) for cell in short[-4:]] == [True, False, False, True]
    assert "<title>Nights</title>" in text


def test_a_name_whose_runs_differ_in_conventions_says_so(tmp_path):
    for night, conventions in enumerate(("default", "rectools")):
        save(tmp_path, str(night), evaluation(0.5, 0, night=night, conventions=conventions))
    text = write_board(tmp_path / "board.html", tmp_path).read_text(encoding="utf-8")
    assert "als: ndcg@5" in text
    assert "ideal: reachable, now k" in text
    assert "so 1 night is shown and not compared." in text


def test_values_and_hashes_are_those_of_the_results(folder, page):
    data = data_of(page.read_text(encoding="utf-8"))
    values = np.frombuffer(base64.b64decode(data["values"]), "<f8").reshape(len(data["metrics"]), -1)
    for at, (file, name, finished, sha256, users, conventions, cautions) in enumerate(data["runs"]):
        result = recsys.load(folder / file)
        assert (name, conventions, users) == (result.name, str(result.conventions), result.counts["cases"])
        assert sha256 == json.loads((folder / file).read_text())["sha256"]
        assert dt.datetime.fromisoformat(finished) == dt.datetime.fromisoformat(result.run["finished"])
        assert [data["cautions"][n].rpartition(" ")[0] for n in cautions] == [
            c.sentence for c in result.cautions
        ]
        held = {m["name"]: v for m, v in zip(data["metrics"], values[:, at], strict=True) if not np.isnan(v)}
        assert held == dict(result)


def test_what_does_not_open_is_listed_with_its_reason(page):
    text = page.read_text(encoding="utf-8").partition('id="unopened"')[2]
    listed = dict(re.findall(r"<li><strong>(.*?)</strong>: (.*?)</li>", text))
    assert set(listed) == {"note.json", "half.json", "older"}
    assert "is not a result that recsys saved" in listed["note.json"]
    assert "is not JSON" in listed["half.json"]
    assert listed["older"] == "a folder with 1 JSON file, which is not searched. Name it as well."


def test_a_folder_of_something_else_is_named_in_words(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "manifest.json").write_text('{"format": "another"}')
    with pytest.raises(recsys.errors.InputError, match="it lacks 'recsys'"):
        write_board(tmp_path / "board.html", tmp_path / "parts")


def test_rows_in_a_folder_are_a_run_and_files_can_be_named_alone(tmp_path):
    truth = pd.DataFrame({"user": range(20), "item": 1})
    lists = truth.assign(rank=1)
    recsys.evaluate(lists, truth, ["mrr"], memory="4GB", per_user=tmp_path / "rows")
    save(tmp_path, "alone", recsys.evaluate(lists, truth, ["mrr"]))
    whole = data_of(write_board(tmp_path / "board.html", tmp_path).read_text(encoding="utf-8"))
    assert {run[0] for run in whole["runs"]} == {"rows", "alone.json"}
    assert whole["questions"]["truth"] == [0, 0]  # the same question, wherever the rows are kept
    places = [tmp_path / "rows", tmp_path / "alone.json"]
    named = data_of(write_board(tmp_path / "board.html", places).read_text(encoding="utf-8"))
    assert {run[0] for run in named["runs"]} == {str(place) for place in places}


def test_results_in_memory(tmp_path):
    first, second = evaluation(0.5, 0), evaluation(0.6, 1)
    for given, names in (
        ({"als": first, "bpr": second}, {"als", "bpr"}),
        ([first, second], {"run 1", "run 2"}),
        (first, {"run 1"}),
    ):
        data = data_of(write_board(tmp_path / "board.html", given).read_text(encoding="utf-8"))
        assert {run[1] for run in data["runs"]} == names
    with pytest.raises(InputError, match="als came as float"):
        write_board(tmp_path / "board.html", {"als": 0.5})
    with pytest.raises(InputError, match="run 2 came as str"):
        write_board(tmp_path / "board.html", [first, "als.json"])


def test_no_result_at_all(tmp_path):
    with pytest.raises(InputError, match="no result to show"):
        write_board(tmp_path / "board.html", tmp_path)
    (tmp_path / "note.json").write_text("[]")
    with pytest.raises(InputError, match=r"no result to show: .*note\.json"):
        write_board(tmp_path / "board.html", tmp_path)
    with pytest.raises(FileError, match="there is no folder"):
        write_board(tmp_path / "board.html", tmp_path / "results")
    assert not (tmp_path / "board.html").exists()
    with pytest.raises(InputError, match="not a time to wait"):
        write_board(tmp_path / "board.html", evaluation(0.5, 0), refresh=0)


def thousand_runs():
    """A thousand runs of ten names with thirty metrics each."""
    one = evaluation(0.5, 0, metrics=["ndcg", "recall", "precision", "hit", "map", "mrr"], k=[1, 2, 3, 4, 5])
    made = Run.of(one, "")
    rng = np.random.default_rng(0)
    start = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
    return [
        made._replace(
            file=f"{number:04d}-model-{number % 10}.json",
            name=f"model-{number % 10}",
            finished=(start + dt.timedelta(hours=7 * number)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            sha256=rng.bytes(32).hex(),
            values=dict(zip(one, rng.random(30).tolist(), strict=True)),
        )
        for number in range(1000)
    ]


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    path = tmp_path_factory.mktemp("thousand") / "board.html"
    path.write_text(board_html(thousand_runs()), encoding="utf-8")
    return path


def test_a_thousand_runs_of_thirty_metrics_stay_below_two_megabytes(thousand):
    assert len(data_of(thousand.read_text(encoding="utf-8"))["metrics"]) == 30
    assert thousand.stat().st_size < 2_000_000


# Watching a folder


def test_the_page_follows_the_folder(tmp_path, monkeypatch):
    opened = []
    load = board.load
    monkeypatch.setattr(board, "load", lambda path: (opened.append(path.name), load(path))[1])
    place = tmp_path / "results"
    place.mkdir()
    target = tmp_path / "board.html"
    states = watch_board(target, place, every=0.01)
    assert next(states) == (0, 0)
    assert "There is no result yet." in target.read_text(encoding="utf-8")
    save(place, "first", evaluation(0.5, 0))
    assert next(states) == (1, 0)
    whole = (place / "first.json").read_text()
    (place / "second.json").write_text(whole[:500])  # still being written
    assert next(states) == (1, 1)
    assert "second.json" in target.read_text(encoding="utf-8").partition('id="unopened"')[2]
    (place / "second.json").write_text(whole)
    assert next(states) == (2, 0)
    (place / "first.json").unlink()
    assert next(states) == (1, 0)
    assert opened == ["first.json", "second.json", "second.json"]  # what did not change is not read again
    assert not list(tmp_path.glob(".*.part"))


def test_a_folder_that_is_replaced_is_waited_for(tmp_path):
    place, other = tmp_path / "results", tmp_path / "other"
    place.mkdir()
    save(place, "first", evaluation(0.5, 0))
    states = watch_board(tmp_path / "board.html", place, every=0.01)
    assert next(states) == (1, 0)
    place.rename(other)
    save(other, "second", evaluation(0.5, 1))
    back = threading.Timer(0.3, other.rename, [place])
    back.start()
    assert next(states) == (2, 0)
    back.join()
    with pytest.raises(FileError, match="there is no folder"):
        next(watch_board(tmp_path / "board.html", tmp_path / "nowhere"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("name", ["pipe.json", "folder/manifest.json"])
def test_a_pipe_that_is_called_like_a_result_is_refused(name, tmp_path, command):
    """It waits for somebody to write: nothing may wait for it."""
    place = tmp_path / "results"
    (place / "folder").mkdir(parents=True)
    save(place, "first", evaluation(0.5, 0))
    os.mkfifo(place / name)
    told = "it is a pipe, not a file"
    assert told in write_board(tmp_path / "board.html", place).read_text(encoding="utf-8")
    assert next(watch_board(tmp_path / "board.html", place)) == (1, 1)
    assert told in recsys.history(place).skipped[0]
    path = place / name if name == "pipe.json" else place / "folder"
    with pytest.raises(FileError, match=told):
        recsys.load(path)
    for arguments in (
        ("gate", path, "--against", place / "first.json", "-m", "mrr"),
        ("explain", path, place / "first.json"),
    ):
        done = command(*arguments)
        assert (done.exit_code, told in done.stderr) == (3, True), done.output


def test_a_failed_writing_leaves_the_old_page(tmp_path, monkeypatch):
    save(tmp_path, "first", evaluation(0.5, 0))
    target = tmp_path / "board.html"
    states = watch_board(target, tmp_path, every=0.01)
    next(states)
    before = target.read_bytes()
    save(tmp_path, "second", evaluation(0.5, 1))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FileError, match="No space left"):
        next(states)
    assert target.read_bytes() == before


def test_the_verb_writes_the_page_and_says_where(folder, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command("board", str(folder), "-o", "board.html", "--refresh", "30")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "board.html\n", "")
    text = (tmp_path / "board.html").read_text(encoding="utf-8")
    assert f"<title>Results in {folder.name}</title>" in text
    assert '<noscript><meta http-equiv="refresh" content="30"></noscript>' in text
    assert command("board").exit_code == 3  # there is no folder ./results
    assert "must end in .html" in command("board", str(folder), "-o", "board.txt").stderr


def test_watching_ends_with_ctrl_c(tmp_path):
    place = tmp_path / "results"
    place.mkdir()
    save(place, "first", evaluation(0.5, 0))
    arguments = [sys.executable, "-m", "recsys", "board", "results", "-o", "board.html", "--watch"]
    with subprocess.Popen(
        arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr.readline() == "written: 1 run; Ctrl-C ends\n"
        save(place, "second", evaluation(0.5, 1))
        assert process.stderr.readline() == "written: 2 runs; Ctrl-C ends\n"
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=600)
    assert (process.returncode, out, errors) == (0, "board.html\n", "")


# In a browser


def names(visit):
    return visit.page.locator("#table tbody th").evaluate_all(
        "heads => heads.map(head => [...head.childNodes].find(one => one.nodeType === 3).textContent.trim())"
    )


def column(visit, at):
    return visit.page.locator("#table tbody tr").evaluate_all(
        f"rows => rows.map(row => row.cells[{at}].textContent.trim())"
    )


def test_it_loads_without_a_word_on_the_console_or_the_network(browser, page):
    with Visit(browser, page) as visit:
        assert visit.messages == []
        assert visit.requests == [page.as_uri()]
        assert visit.count("#plot svg") == 1
        assert visit.page.locator("#count").inner_text() == "19 runs"


def test_a_board_without_results_is_a_page_too(browser, tmp_path):
    path = tmp_path / "board.html"
    path.write_text(board_html([], [("half.json", "is not JSON")]), encoding="utf-8")
    with Visit(browser, path, drawn=False) as visit:
        assert "There is no result yet." in visit.page.locator("#runs").inner_text()
        assert "half.json: is not JSON" in visit.page.locator("#unopened").inner_text()
        assert visit.messages == []


def test_headings_sort_by_mouse_and_by_keyboard_and_empty_cells_stay_last(browser, page):
    with Visit(browser, page) as visit:
        heads = visit.page.locator("#table thead th")
        assert heads.nth(1).get_attribute("aria-sort") == "descending"
        hit = heads.nth(6)
        hit.locator("button").click()
        assert hit.get_attribute("aria-sort") == "descending"
        values = column(visit, 6)
        assert values[-1] == ""
        assert values[:-1] == sorted(values[:-1], reverse=True)
        hit.locator("button").press("Enter")
        assert hit.get_attribute("aria-sort") == "ascending"
        values = column(visit, 6)
        assert values[-1] == ""
        assert values[:-1] == sorted(values[:-1])
        heads.nth(0).locator("button").press("Space")
        assert names(visit) == sorted(names(visit))
        assert hit.get_attribute("aria-sort") == "none"


def test_a_filter_takes_words_and_leaves_out_others(browser, page):
    with Visit(browser, page) as visit:
        find, count = visit.page.locator("#find"), visit.page.locator("#count")
        find.fill("2026-01 rectools")
        assert names(visit) == ["decisions"]
        assert count.inner_text() == "1 of 19 runs"
        find.fill("-als -short")
        assert names(visit) == ["same", "decisions", "users", "truth"]
        find.fill("nothing like it")
        assert names(visit) == []
        find.fill("")
        assert visit.count("#table tbody tr") == 19


def test_metrics_are_chosen(browser, page):
    with Visit(browser, page) as visit:
        visit.page.locator("#columns summary").click()
        visit.page.locator('.boxes [value="hit@5"]').uncheck()
        assert visit.page.locator("#columns summary").inner_text() == "Metrics: 3 of 4"
        shown = [
            head.inner_text() for head in visit.page.locator("#table thead th").all() if head.is_visible()
        ]
        assert shown[5:] == ["ndcg@5", "mrr", "recall@3"]
        assert not visit.page.locator("#table tbody tr").first.locator("td").nth(5).is_visible()
        visit.page.keyboard.press("Escape")
        assert visit.page.locator("#columns").get_attribute("open") is None


def tick(visit, *files):
    visit.page.locator("#find").fill("")
    for file in files:
        visit.page.locator(f"#table tr:has(small:text-is('{file}.json')) input").check()


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("truth", "Another truth: the same users, but not the same relevant items."),
        ("users", "Other users: 80 in the first and 60 in the second, not the same ones."),
        ("decisions", "Other conventions: default and rectools."),
        ("als-03", None),
    ],
)
def test_two_runs_side_by_side_say_where_they_answer_different_questions(browser, folder, page, file, words):
    with Visit(browser, page) as visit:
        two = visit.page.locator("#two")
        assert two.inner_text() == "Tick two runs in the table to see their values side by side."
        tick(visit, "same")
        assert two.inner_text() == "Tick one more run in the table."
        tick(visit, file)
        cautions = visit.page.locator("#two .caution p").all_inner_texts()
        assert (words is None) == (cautions == [])
        if words:
            assert cautions[0].endswith("[different_questions]")
            assert cautions[1].startswith(words)
            assert len(cautions) == 2
        first, second = recsys.load(folder / "same.json"), recsys.load(folder / f"{file}.json")
        rows = [row.split("\t") for row in visit.page.locator("#two tbody tr").all_inner_texts()]
        assert [row[0] for row in rows] == list(METRICS)
        for name, left, right, gap, share in rows:
            assert (left, right) == (f"{first[name]:.4f}", f"{second[name]:.4f}")
            difference = second[name] - first[name]
            assert float(gap.replace("\u2212", "-")) == pytest.approx(difference, abs=6e-5)
            assert float(share.replace("\u2212", "-")) == pytest.approx(
                100 * difference / first[name], abs=0.06
            )
        command = f"recsys compare {folder}/same.json {folder}/{file}.json"
        assert visit.page.locator("#two code").inner_text() == command
        visit.page.get_by_role("button", name="Swap").click()
        command = f"recsys compare {folder}/{file}.json {folder}/same.json"
        assert visit.page.locator("#two code").inner_text() == command


def test_a_caution_of_the_page_is_one_of_recsys_compare(folder):
    """The page says that two runs have another truth where `compare` does, and not where it does not."""
    for file, warns in (("truth", True), ("als-03", False)):
        results = {name: recsys.load(folder / f"{name}.json") for name in ("same", file)}
        found = {caution.code for caution in recsys.compare(results).cautions}
        assert ("different_questions" in found) == warns


def test_the_address_keeps_what_was_chosen(browser, page):
    with Visit(browser, page) as visit:
        visit.page.locator("#find").fill("2026-01")
        visit.page.locator("#table thead button").nth(7).click()
        visit.page.locator("#columns summary").click()
        visit.page.locator('.boxes [value="hit@5"]').uncheck()
        visit.page.keyboard.press("Escape")
        visit.page.locator("#over").select_option("mrr")
        visit.page.locator("#table tbody input").nth(0).check()
        visit.page.locator("#table tbody input").nth(2).check()
        visit.page.locator("nav a").nth(1).click()  # a link within the page does not lose it
        before, pair = names(visit), visit.page.locator("#two").inner_text()
        address = visit.page.url.partition("#")[2]
        visit.page.reload()
        assert (names(visit), visit.page.locator("#two").inner_text()) == (before, pair)
    with Visit(browser, page, fragment=f"#{address}") as other:
        assert (names(other), other.page.locator("#two").inner_text()) == (before, pair)
        assert other.page.locator("#table thead th").nth(7).get_attribute("aria-sort") == "descending"
        assert other.page.locator("#columns summary").inner_text() == "Metrics: 3 of 4"
        assert other.page.locator("#over").input_value() == "mrr"
        other.page.get_by_label("ticked only").check()
        assert len(names(other)) == 2


def test_an_address_of_another_board_harms_nothing(browser, page):
    with Visit(browser, page, fragment="#sort=constructor&run=gone.json&metric=x&over=__proto__") as visit:
        assert visit.count("#table tbody tr") == 19
        assert visit.messages == []


def test_the_selection_is_exported_with_all_digits(browser, folder, page, tmp_path):
    with Visit(browser, page) as visit:
        visit.page.locator("#find").fill("-als")
        visit.page.locator("#table thead button").nth(5).click()
        visit.page.locator("#columns summary").click()
        visit.page.locator('.boxes [value="mrr"]').uncheck()
        visit.page.keyboard.press("Escape")
        shown = names(visit)
        texts = {}
        for kind in ("csv", "json"):
            with visit.page.expect_download() as download:
                visit.page.locator(f'.export [data-kind="{kind}"]').click()
            download.value.save_as(tmp_path / kind)
            texts[kind] = (tmp_path / kind).read_text(encoding="utf-8")
        assert visit.messages == []
    records = json.loads(texts["json"])
    rows = list(csv.DictReader(texts["csv"].splitlines()))
    assert [row["run"] for row in rows] == [record["run"] for record in records] == shown
    for row, record in zip(rows, records, strict=True):
        result = recsys.load(folder / record["file"])
        assert list(record)[6:] == ["ndcg@5", "hit@5", "recall@3"]
        assert {name: record[name] for name in list(record)[6:]} == {
            name: result.to_dict().get(name) for name in list(record)[6:]
        }
        assert float(row["ndcg@5"]) == result["ndcg@5"]


def test_a_name_that_a_spreadsheet_would_run_is_exported_as_text(browser, tmp_path):
    path = write_board(tmp_path / "board.html", {'=1+"1"': evaluation(0.5, 0)})
    with Visit(browser, path, drawn=False) as visit:
        with visit.page.expect_download() as download:
            visit.page.locator('.export [data-kind="csv"]').click()
        download.value.save_as(tmp_path / "runs.csv")
    (row,) = csv.DictReader((tmp_path / "runs.csv").read_text(encoding="utf-8").splitlines())
    assert row["run"] == '\'=1+"1"'


def test_changes_of_level_are_those_of_history(browser, folder, page):
    changes = recsys.history(folder).changes()
    ((night, change),) = changes["als", "hit@5"]
    with Visit(browser, page) as visit:
        visit.page.locator("#over").select_option("hit@5")
        visit.page.wait_for_selector('html[data-drawn="hit@5"]')
        rows = [
            row.inner_text().split("\t")
            for row in visit.page.locator("#changes tbody tr").all()
            if row.is_visible()
        ]
        assert [row[:5] for row in rows] == [
            [
                "als",
                "hit@5",
                night.finished[:16].replace("T", " "),
                f"{change.before:.4f}",
                f"{change.after:.4f}",
            ]
        ]
        assert visit.count("#plot line[stroke-dasharray]") == 1


def test_one_name_is_drawn_alone_with_its_own_changes(browser, folder, tmp_path):
    for night in range(12):
        save(tmp_path, f"als-{night:02d}", evaluation(0.8 if night < 6 else 0.2, night, night=night))
        save(tmp_path, f"bpr-{night:02d}", evaluation(0.5, night, night=night), "bpr")
    path = write_board(tmp_path / "board.html", tmp_path)
    points, rules = "#plot .mark-symbol path", "#plot line[stroke-dasharray]"
    with Visit(browser, path) as visit:
        assert (visit.count(points), visit.count(rules)) == (24, 1)
        for name, n_rules in (("als", 1), ("bpr", 0)):
            visit.page.locator("#who").select_option(name)
            visit.page.wait_for_selector(f'html[data-drawn="ndcg@5 {name}"]')
            assert (visit.count(points), visit.count(rules)) == (12, n_rules)
            assert visit.page.locator("#changes").is_visible() == bool(n_rules)
        assert "name=bpr" in visit.page.url


def test_names_that_are_attacks_are_shown_and_not_run(browser, hostile):
    with Visit(browser, hostile) as visit:
        for button in visit.page.locator("#table thead button").all():
            button.click()
        for at in (0, 3):
            visit.page.locator("#table tbody input").nth(at).check()
        for kind in ("csv", "json"):
            with visit.page.expect_download():
                visit.page.locator(f'.export [data-kind="{kind}"]').click()
        for at in range(1, visit.count("#who option")):
            name = visit.page.locator("#who").select_option(index=at)[0]
            visit.page.wait_for_function(
                "name => document.documentElement.dataset.drawn.endsWith(name.trim())", arg=name
            )
            assert visit.count("#plot .mark-symbol path") == 2
        assert visit.page.evaluate("window.owned === undefined")
        assert visit.page.locator("iframe, img, base, link, math").count() == 0
        assert "<script>window.owned=1</script>" in visit.page.locator("#table").inner_text()
        assert visit.messages == []
        assert visit.requests[0] == hostile.as_uri()
        assert all(url.startswith("blob:") for url in visit.requests[1:])


@pytest.mark.parametrize("width", [360, 414, 768])
def test_no_horizontal_scroll_on_small_screens(browser, page, hostile, width):
    for path in (page, hostile):
        with Visit(browser, path, viewport={"width": width, "height": 740}) as visit:
            for at in (0, 1):
                visit.page.locator("#table tbody input").nth(at).check()
            visit.page.locator("#columns summary").click()
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_every_run_is_a_card_that_names_its_values(browser, page):
    with Visit(browser, page, viewport={"width": 390, "height": 800}) as visit:
        assert not visit.page.locator("#table thead").is_visible()
        label = "getComputedStyle(document.querySelector('#table tbody tr').cells[5], '::before').content"
        assert visit.page.evaluate(label).strip('"') == "ndcg@5"
        visit.page.locator("#by").select_option("users")
        visit.page.locator("#turn").click()
        assert names(visit)[0] == "users"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_axe_finds_nothing_serious(browser, page, scheme, width):
    size = {"width": width, "height": 900}
    with Visit(browser, page, color_scheme=scheme, viewport=size, bypass_csp=True) as visit:
        tick(visit, "same", "truth")
        visit.page.locator("#columns summary").click()
        assert visit.serious_findings() == []


def test_everything_can_be_reached_by_keyboard(browser, page):
    with Visit(browser, page) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.className") == "skip"
        visit.page.keyboard.press("Enter")
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.id") == "find"
        visit.page.locator("#table tbody input").first.focus()
        visit.page.keyboard.press("Space")
        assert visit.page.evaluate("document.activeElement.closest('tr').className") == "ticked"


def test_without_scripts_the_table_is_there_newest_first(browser, page):
    with Visit(browser, page, drawn=False, java_script_enabled=False) as visit:
        assert names(visit)[:5] == ["same", "short", "decisions", "users", "truth"]
        assert visit.page.locator("#table tbody tr").last.locator("td").nth(6).is_visible()
        assert visit.page.locator("#changes").is_visible()
        for control in ("#find", "#columns", ".export", "#pair", "#over", "#theme"):
            assert not visit.page.locator(control).is_visible()
        assert visit.messages == []


def test_printing_is_black_on_white_without_controls(browser, page, tmp_path):
    with Visit(browser, page, color_scheme="dark") as visit:
        visit.page.emulate_media(media="print")
        assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        for selector in ("nav", ".controls", "#table input", "#bar", "#pair"):
            assert not visit.page.locator(selector).first.is_visible()
        assert visit.page.locator("#table tbody tr").last.is_visible()
        assert visit.page.pdf(path=tmp_path / "board.pdf").startswith(b"%PDF")


def test_a_long_board_shows_some_rows_first_and_sorts_all(browser, thousand):
    with Visit(browser, thousand) as visit:
        assert visit.count("#table tbody tr") == 100
        assert visit.page.locator("#count").inner_text() == "1,000 runs, the first 100 shown"
        assert visit.page.locator("#columns summary").inner_text() == "Metrics: 8 of 30"
        visit.page.locator("#table thead button").nth(5).click()
        first = column(visit, 5)
        assert first == sorted(first, reverse=True)
        visit.page.get_by_role("button", name="Show all 1,000").click()
        whole = column(visit, 5)
        assert len(whole) == 1000
        assert whole == sorted(whole, reverse=True)
        assert whole[:100] == first
        assert not visit.page.locator("#more").is_visible()


def test_the_page_reads_its_file_again_only_if_it_was_asked_to(browser, folder, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    asked = write_board(tmp_path / "asked.html", folder, refresh=1)
    still = write_board(tmp_path / "still.html", folder)
    with Visit(browser, asked, fragment="#find=same") as visit, Visit(browser, still) as other:
        for path in (asked, still):
            write_board(path, folder, title="Newer")
        sync_api.expect(visit.page).to_have_title("Newer", timeout=120_000)
        assert names(visit) == ["same"]
        assert other.page.title() == f"Results in {folder.name}"
        assert other.requests == [still.as_uri()]


def test_what_was_ranked_is_part_of_the_question_of_a_run():
    truth = {user: {user % 30} for user in range(60)}
    model = recsys.Scores(np.sin(np.arange(1800.0)).reshape(60, 30))

    def question(ranking=model, **options):
        return Run.of(recsys.evaluate(ranking, truth, ["mrr"], **options), "a.json").question

    eligible = {user: [user % 30, 1, 2, 3] for user in truth}
    whole, chosen = question(), question(eligible=eligible)
    assert whole["candidates"] == "ranked all items"
    assert chosen["candidates"].startswith("ranked 234 pairs of user and item (eligible items)")
    assert (
        chosen["candidates"]
        != question(eligible={user: [user % 30, 4, 5, 6] for user in truth})["candidates"]
    )
    assert whole["seen"] != question(seen=eligible)["seen"]
    lists = question({user: [user % 30] for user in truth})
    assert (lists["candidates"], lists["seen"]) == (None, None)
    assert lists["truth"] == whole["truth"]


def test_the_page_says_what_two_models_ranked(browser, tmp_path):
    truth = {user: {user % 30} for user in range(60)}
    model = recsys.Scores(np.sin(np.arange(1800.0)).reshape(60, 30))
    save(tmp_path, "all", recsys.evaluate(model, truth, ["mrr"]))
    save(tmp_path, "few", recsys.evaluate(model, truth, ["mrr"], exclude=[1, 2]))
    save(tmp_path, "lists", recsys.evaluate({user: [1] for user in truth}, truth, ["mrr"]))
    with Visit(browser, write_board(tmp_path / "board.html", tmp_path)) as visit:
        tick(visit, "all", "few")
        cautions = visit.page.locator("#two .caution p").all_inner_texts()
        assert len(cautions) == 2
        assert "ranked all items" in cautions[1]
        assert "ranked all items but 2 excluded ones" in cautions[1]
        visit.page.get_by_role("button", name="Untick all").click()
        tick(visit, "all", "lists")
        assert visit.page.locator("#two .caution p").count() == 0
