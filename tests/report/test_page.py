"""The report without a browser: what is in the page, what is left out, and that its numbers are right."""

import base64
import csv
import html
import io
import json
import math
import re
import sys
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.audits import Audit, Finding
from recsys.errors import FileError, InputError, MissingExtraError, UnknownNameError
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.result_facts import ResultFacts
from recsys.report import example_users, report_html, section_numbers, write_report
from recsys.report.decision import decide, price
from recsys.report.glossary import WORDS, Glossary
from recsys.report.html_tables import cell, html_table
from recsys.report.model_tables import comparisons, overview, ranking, selection
from recsys.report.offline_page import json_for_script
from recsys.report.study import findings_of, history_by_metric, make_study, turned_row
from recsys.stats.corrections import adjust
from recsys.stats.paired_tests import sign_flip
from worlds.report import HOSTILE, evaluations, world

AUDIT = [
    {"name": "duplicates", "severity": "ok", "count": 0},
    {
        "name": "leak",
        "severity": "error",
        "count": 7,
        "examples": ["user 3, item 4"],
        "todo": "Split by time.",
    },
]
HISTORY = [
    {"time": f"2026-01-{d:02d}", "metric": "ndcg@10", "model": "m", "value": 0.3, "low": 0.2, "high": 0.4,
     "change": d == 3}
    for d in range(1, 6)
]  # fmt: skip


class Page(HTMLParser):
    """Elements of a page, and the text of those that are no script or style."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.words, self._quiet = [], [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [v for n, v in attrs if n == "id"]
        self._quiet += tag in {"script", "style"}

    def handle_endtag(self, tag):
        self._quiet -= tag in {"script", "style"}

    def handle_data(self, data):
        if not self._quiet:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def full():
    """A page with every section."""
    lists, truth, train, items = world()
    vectors = np.random.default_rng(1).standard_normal((len(items), 2))
    return report_html(
        evaluations(lists, truth), baseline="model 0", lists=lists, truth=truth, train=train, items=items,
        embeddings=vectors, audit=AUDIT, history=HISTORY,
    )  # fmt: skip


def data_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    )


def test_every_section_is_there_and_nothing_is_said_to_be_missing(full):
    section_ids = {
        "summary", "differences", "curves", "tradeoff", "distribution", "strata", "headtail", "winloss",
        "users", "map", "history", "audit", "conventions", "provenance",
    }  # fmt: skip
    assert section_ids <= set(Page(full).ids)
    assert "absent" not in Page(full).ids


def test_a_single_evaluation_leaves_out_what_it_has_no_inputs_for_and_says_so():
    lists, truth, *_ = world(n_models=1)
    text = Page(report_html(evaluations(lists, truth, k=(10,))["model 0"])).text
    assert "Not in this report" in text
    assert "Map of items needs --embeddings (in Python embeddings=)" in text
    assert "Differences needs a second model" in text


def test_the_card_says_which_model_by_how_much_and_how_surely(full):
    lists, truth, *_ = world()
    row = recsys.compare(evaluations(lists, truth), "model 0")["model 2", "ndcg@10"]
    card = full[full.index('id="decision"') : full.index("<nav")]
    text = Page(card).text
    assert "model 2 leads, but the audit found errors" in text
    assert f"over model 0, the baseline {100 * row.relative:+.1f}%" in text
    assert "over model 1, the next best" in text
    assert (
        f"{row.losses:,} of {row.n_units:,} users are served worse than by model 0, {row.wins:,} better"
        in text
    )
    assert "1 audit error" in text
    assert "p < 0.0001 ( Holm over 2 comparisons on" in text.replace("\u00a0", " ")
    quiet = Page(report_html(evaluations(lists, truth))).text
    assert "Ship model 2" in quiet
    assert "Not audited" in quiet


def test_a_page_of_medians_says_where_it_speaks_of_means():
    lists, truth, *_ = world()
    medians = evaluations(lists, truth, aggregate="median")
    page = report_html(medians, baseline="model 0")
    card = Page(page[page.index('id="decision"') : page.index("<nav")]).text
    row = recsys.compare(medians, baseline="model 0")["model 2", "ndcg@10"]
    assert f"the highest ndcg@10, {medians['model 2']['ndcg@10']:.4f}" in card
    assert f"mean ndcg@10 {row.value:.4f} against {row.baseline_value:.4f}" in card
    spread = section_numbers.spread(make_study(medians))
    assert {name: row["50%"] for name, row in spread.items()} == {n: r["ndcg@10"] for n, r in medians.items()}


def test_the_card_says_of_what_its_interval_and_its_p_are():
    lists, truth, *_ = world()
    results = evaluations(lists, truth, k=(10,))
    tile = decide(make_study(results)).tiles[0]
    row = recsys.compare(results)["model 2", "model 1", "ndcg@10"]
    ends = f"{100 * row.relative_interval.low:+.1f} to {100 * row.relative_interval.high:+.1f}%"
    assert f"95% simultaneous interval {ends}, p" in tile.small
    assert "(Holm over 2 comparisons on ndcg@10)" in tile.small
    assert row.own_interval.low > row.interval.low > 0
    two = {name: results[name] for name in ("model 0", "model 1")}
    assert decide(make_study(two)).tiles[0].small.startswith("95% interval")
    bare = recsys.compare(results, correction="none", confidence=0.9, effect="cliffs_delta")
    data = make_study(bare, baseline="model 0")
    assert decide(data).tiles[0].small.startswith("90% interval")
    assert "(not corrected), Cliff's delta" in decide(data).tiles[0].small
    assert ranking(data).heads[4] == selection(data)["effect"] == "Cliff's delta"
    assert "a clear difference, not corrected; ≈ none is clear." in Page(report_html(bare)).text


def test_a_lift_without_an_interval_is_shown_with_that_of_the_difference():
    lists, truth, *_ = world()
    first, second, other = (
        recsys.evaluate(lists[f"model {n}"], truth, ["ndcg@10"], cautions="ignore") for n in range(3)
    )
    data = make_study({"a": [first, second], "b": [second, other]})
    row = data.rows["b", "a", "ndcg@10"]
    assert not math.isfinite(row.relative_interval.high)
    ends = f"{row.interval.low:+.4f} to {row.interval.high:+.4f}"
    assert f"95% interval of the difference {ends}, p" in decide(data).tiles[0].small
    assert ranking(data).heads[2] == "difference from a"
    assert "inf" not in "".join(cell.small for line in ranking(data).rows for cell in line)


def test_a_price_where_less_is_better_says_how_much_more_it_is():
    truth = {u: {u, 100 + u} for u in range(40)}
    narrow = {u: [u, 100 + u, *range(200, 208)] for u in truth}
    wide = {u: [u, *range(300 + 9 * u, 309 + 9 * u)] for u in truth}
    items, metrics = list(range(1400)), ["ndcg@10", "gini@10", "coverage@10"]
    results = {
        n: recsys.evaluate(own, truth, metrics, catalogue=items)
        for n, own in {"narrow": narrow, "wide": wide}.items()
    }
    more, less = results["narrow"]["gini@10"], results["wide"]["gini@10"]
    (gini,) = (one for one in price(make_study(results)) if one.label == "gini@10")
    assert gini.says == f"gini@10 {more:.2f}, {more / less:.1f} times wide's {less:.2f}"
    assert gini.leader == "wide"
    covered = decide(make_study(results, headline="coverage@10"))
    assert covered.heading == "wide leads on coverage@10"  # which is no merit as such, so nothing is shipped
    assert covered.price == ["costs nothing measured here: no other model is ahead on gini@10"]
    twice = {"a": [results["wide"]] * 2, "b": [results["wide"]] * 2}
    same = decide(make_study(twice, headline="coverage@10"))
    assert same.heading == "a and b are identical on coverage@10"
    assert same.says.startswith("All 2 models have coverage@10 0.2")


@pytest.mark.filterwarnings("ignore::recsys.stats.SmallSampleWarning")
def test_one_user_and_names_that_are_numbers_make_a_card():
    results = {n: recsys.evaluate({7: [n, 2]}, {7: {2, 3}}, ["ndcg@2", "recall@2"]) for n in (3, 4)}
    compared = recsys.compare(results, baseline=4, cautions="ignore")
    card = decide(make_study(compared))
    assert card.heading == "Nothing separates 3 and 4"
    assert [tile.label for tile in card.tiles][:2] == ["over 4, the baseline and the next best", "who loses"]
    assert compared.chart.forest().spec["concat"]
    assert card.says.endswith("over 1 user. No test separates 4 from it: evaluate with more users.")
    assert "More users: the two best differ for 1 of 1 only." in card.changes
    assert not {"nan", "inf"} & set(re.split(r"\W+", Page(report_html(compared)).text))


def test_a_value_that_is_missing_has_the_least_merit():
    lists, truth, train, _ = world()
    results = evaluations(lists, truth, metrics=("ndcg", "average_popularity"), k=(10,), train=train)
    data = make_study(results)
    assert data.merit(math.nan, "average_popularity@10") == -math.inf
    assert data.merit(2.0, "average_popularity@10") < data.merit(1.0, "average_popularity@10")
    nobody = recsys.evaluate(lists["model 0"], {u: set() for u in truth}, ["ndcg@10"])
    some = make_study({"none": nobody, "some": results["model 1"]})
    assert decide(some).says.endswith("Without a value of it: none.")
    assert decide(make_study({"a": nobody, "b": nobody})).heading == "No model has a value of ndcg@10"


@pytest.mark.parametrize("baseline", [None, "model 0", "model 2"])
def test_the_page_says_what_compare_says(baseline):
    lists, truth, *_ = world()
    results = evaluations(lists, truth)
    compared = recsys.compare(results, baseline)
    for shown in (results, compared):
        data = make_study(shown, baseline=baseline)
        assert data.comparison.family == compared.family
        for row in compared:
            seen = data.rows[row.model, row.baseline, row.metric]
            names = ("adjusted_p", "interval", "relative_interval", "verdict", "family")
            assert [getattr(seen, name) for name in names] == [getattr(row, name) for name in names]
        assert compared.family.partition(";")[0][1:] in Page(report_html(shown, baseline=baseline)).text


def test_neither_metrics_nor_cut_offs_change_the_verdict_on_the_headline():
    lists, truth, *_ = world()
    one = evaluations(lists, truth, metrics=("ndcg",), k=(10,))
    many = evaluations(lists, truth, metrics=("recall", "mrr", "ndcg"), k=(1, 5, 10, 20))
    decisions = [decide(make_study(results, headline="ndcg@10")) for results in (one, many)]
    assert decisions[0].heading == decisions[1].heading
    assert decisions[0].tiles == decisions[1].tiles
    rows = [
        recsys.compare(results, headline="ndcg@10")["model 2", "model 1", "ndcg@10"]
        for results in (one, many)
    ]
    assert rows[0] == rows[1]


def test_a_baseline_that_the_comparison_given_does_not_have_is_compared_anew():
    lists, truth, *_ = world()
    results = evaluations(lists, truth)
    data = make_study(recsys.compare(results, "model 0"), baseline="model 1")
    row = recsys.compare(results, "model 1")["model 0", "ndcg@10"]
    assert data.rows["model 0", "model 1", "ndcg@10"].verdict == row.verdict
    of_pairs = recsys.compare(results).pairs()
    assert make_study(of_pairs, baseline="model 1").comparison.family == of_pairs.family


def test_a_headline_that_cannot_be_compared_leaves_the_others_to_compare():
    rng = np.random.default_rng(0)
    actual = {u: {i: int(rng.integers(1, 6)) for i in range(8)} for u in range(40)}
    predicted = {
        f"m{n}": {
            u: {i: value + rng.normal(0, 1 + n) for i, value in row.items()} for u, row in actual.items()
        }
        for n in range(3)
    }
    results = {
        n: recsys.evaluate_ratings(own, actual, ["rmse", "fcp", "user_rmse"]) for n, own in predicted.items()
    }
    data = make_study(results, headline="fcp")
    assert (data.comparison.headline, decide(data).heading) == ("rmse", "m0 leads on fcp, untested")
    assert "fcp" not in {row.metric for row in data.comparison}
    assert "fcp decides" not in Page(report_html(results, headline="fcp")).text


@pytest.mark.filterwarnings("ignore::recsys.stats.ZeroVarianceWarning")
def test_a_model_twice_and_a_model_without_values_make_a_card():
    lists, truth, *_ = world()
    results = evaluations(lists, truth, k=(10,))
    twins = {"a": results["model 2"], "b": results["model 2"], "c": results["model 0"]}
    assert decide(make_study(twins)).heading == "Nothing separates a and b"
    assert "Nothing separates a and b" in Page(report_html(recsys.compare(twins))).text
    same = dict.fromkeys("abc", results["model 1"])
    assert decide(make_study(same)).heading == "a, b and c are identical on ndcg@10"
    nobody = recsys.evaluate(lists["model 0"], {u: set() for u in truth}, ["ndcg", "recall", "mrr"], k=[10])
    card = decide(make_study(results | {"none": nobody}))
    assert card.heading == "model 2 leads on ndcg@10, untested"
    assert card.says.endswith("Without a value of it: none.")


def test_a_comparison_turned_over_is_the_one_made_the_other_way():
    lists, truth, *_ = world()
    results = evaluations(lists, truth)
    two = {name: results[name] for name in ("model 0", "model 2")}
    for metric in ("ndcg@10", "mrr@5", "recall@1"):
        there, back = (recsys.compare(two, baseline, metric) for baseline in two)
        turned, made = turned_row(there["model 2", metric]), back["model 0", metric]
        for name in ("model", "baseline", "value", "wins", "ties", "losses", "p_value"):
            assert getattr(turned, name) == getattr(made, name)
        assert turned.difference == pytest.approx(made.difference)
        assert turned.relative == pytest.approx(made.relative)
        for ends in ("interval", "relative_interval"):
            ours, theirs = getattr(turned, ends), getattr(made, ends)
            if math.isfinite(ours.high):  # a lift of -100% turned is one without bounds
                assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
        assert turned.effect.value == pytest.approx(made.effect.value)
        assert (turned.verdict.kind, turned.verdict.word) == (made.verdict.kind, made.verdict.word)


def test_models_come_by_merit_and_what_ties_with_the_best_is_marked():
    lists, truth, *_ = world()
    lists = {"worst": lists["model 0"], "middle": lists["model 1"], "best": lists["model 2"]}
    lists["twin"] = {u: row[:8] + row[:7:-1] for u, row in lists["best"].items()}  # two places exchanged
    results = evaluations(lists, truth, k=(10,))
    data = make_study(results, baseline="worst")
    assert data.names[2:] == ["middle", "worst"]
    assert data.ties_with_best == [data.names[1]]
    decision = decide(data)
    assert decision.heading == f"Nothing separates {data.names[0]} and {data.names[1]}"
    leak = {"name": "leak", "severity": "error", "message": "The test was trained on."}
    warned = make_study(results, baseline="worst", audit=[leak])
    assert decide(warned).heading == f"{decision.heading}, and the audit found errors"
    table = ranking(data)
    assert [row[0].text for row in table.rows] == data.names
    assert "ties with the best" in table.rows[1][0].small
    assert "ties" not in table.rows[2][0].small
    summary, _ = overview(data)
    at = summary.heads.index("ndcg@10")
    assert [row[at].tone for row in summary.rows] == ["best", "tied", "", ""]


def test_a_baseline_that_wins_is_kept():
    lists, truth, *_ = world()
    data = make_study(evaluations(lists, truth), baseline="model 2")
    decision = decide(data)
    assert decision.heading == "Keep model 2: nothing beats it"
    assert (data.best, data.rival) == ("model 2", "model 1")
    assert decision.tiles[0].label == "over model 1, the next best"


def test_the_price_is_told_against_the_best_of_each_that_comes_near():
    truth = {u: {u, 100 + u} for u in range(40)}
    narrow = {u: [u, 100 + u, *range(200, 208)] for u in truth}
    wide = {u: [u, *range(300 + 9 * u, 309 + 9 * u)] for u in truth}
    idle = {u: list(range(900 + 10 * u, 910 + 10 * u)) for u in truth}  # finds nothing, shows the most
    items = list(range(1400))
    results = {
        n: recsys.evaluate(own, truth, ["ndcg@10", "coverage@10"], catalogue=items)
        for n, own in {"narrow": narrow, "wide": wide, "idle": idle}.items()
    }
    data = make_study(results, baseline="idle")
    (one,) = price(data)
    mine, other = results["narrow"]["coverage@10"], results["wide"]["coverage@10"]
    assert one.says == f"coverage@10 {mine:.3f}, a fifth of wide's {other:.2f}"
    assert mine / other == pytest.approx(0.22, abs=0.01)
    assert "Another goal: wide is ahead on coverage@10." in decide(data).changes
    shown = {row[-1].text for row in comparisons(data)[0].rows if row[0].text == "coverage@10"}
    assert "▼ lower" in shown  # than idle's, and neither better nor worse
    assert not {"▲ better", "▼ worse"} & shown


def test_what_would_change_the_verdict_names_the_metrics_where_another_leads():
    truth = {u: {u, 100 + u} for u in range(60)}
    early = {u: [u, 900, 901, 902] for u in truth}  # one hit, at the top
    many = {u: [900, 901, u, 100 + u] for u in truth}  # two hits, further down
    results = {
        n: recsys.evaluate(own, truth, ["mrr@4", "recall@4"]) for n, own in (("early", early), ("many", many))
    }
    changes = decide(make_study(results, headline="mrr@4")).changes
    assert changes[0] == "A secondary metric or cut-off: many is ahead on recall@4 (clearly)."
    assert decide(make_study({"early": results["early"]})).changes == ()


def test_where_nothing_was_found_the_page_stops_with_likely_causes():
    lists = {u: [f"i{u}", f"i{u + 1}"] for u in range(30)}
    truth = {u: {f"j{u}"} for u in range(30)}
    results = {n: recsys.evaluate(lists, truth, ["ndcg@2", "hit@2"]) for n in ("a", "b")}
    page = report_html(results, lists={"a": lists, "b": lists}, truth=truth, audit=AUDIT)
    text = Page(page).text
    assert "No model found anything" in text
    assert (
        "Items: 0 of the 30 relevant ones occur in the lists of a: they are new, or their ids are written "
        "in another way."
    ) in text
    assert "of the truth have a list" not in text  # all of them do, so that is no cause
    assert "may be swapped" not in text
    assert "The grades" not in text  # every user has relevant items
    assert data_of(page)["charts"] == {}
    sections = {a["id"] for tag, a in Page(page).tags if tag == "section"}
    assert sections == {"audit", "conventions", "provenance", "words"}
    assert "Not in this report" not in text


def test_the_causes_where_nothing_was_found_are_those_the_inputs_show():
    lists = {u: [100 + u, 200 + u] for u in range(30)}
    truth = {u: {u} for u in range(30)}

    def causes(shown, wanted, **inputs):
        result = recsys.evaluate(shown, wanted, ["ndcg@2"])
        return " ".join(decide(make_study({"a": result}, **inputs)).causes)

    train = {u: {(u + 1) % 30, 100 + u} for u in range(30)}
    said = causes(lists, truth, lists={"a": lists}, truth=truth, train=train)
    assert "Items: 0 of the 30 relevant ones occur in the lists of a; the ids match, as 30 of them" in said
    new = {u: {1000 + u} for u in range(30)}
    said = causes(lists, new, lists={"a": lists}, truth=new, train=train)
    assert "occur in the lists of a, nor in training: they are new, or" in said
    between = {u: {100 if u % 2 else 103} for u in range(30)}  # small whole ids, of which training has no row
    other = {u: {99, 200} for u in range(30)}
    said = causes({u: [7] for u in range(30)}, between, lists={"a": {0: [7]}}, truth=between, train=other)
    assert "nor in training" in said
    further = {u: [100 + u, 200 + u, u] for u in range(30)}
    said = causes(further, truth, lists={"a": further}, truth=truth)
    assert said == "The cut-off: only the first 2 places count; 30 relevant items are further down."
    assert "Ids that do not match" in causes(lists, truth)  # without lists and truth that may be
    assert "Ids that do not match" not in causes(further, truth)  # but not where items were found


def test_notes_on_the_headline_stand_with_the_comparisons():
    truth = {u: {u} for u in range(300)}
    lists = {n: {u: [u] if u < n else [-1] for u in truth} for n in (30, 38)}
    results = {f"first {n}": recsys.evaluate(own, truth, ["ndcg@10", "mrr@10"]) for n, own in lists.items()}
    compared = recsys.compare(results)
    (row,) = (row for row in compared if row.metric == "ndcg@10")
    assert any("8 of 300 users differ" in str(note) for note in row.notes)
    for shown in (results, compared):
        page = report_html(shown)
        section = page[page.index('id="differences"') :]
        assert "ndcg@10: 8 of 300 users differ" in Page(section).text


def test_groups_count_the_users_that_are_in_their_means():
    lists, truth, train, _ = world()
    empty = list(truth)[::4]
    judged = {u: dict.fromkeys(row, 0 if u in empty else 1) for u, row in truth.items()}
    results = {n: recsys.evaluate(own, judged, ["ndcg@10"]) for n, own in lists.items()}
    data = make_study(results, lists=lists, truth=judged, train=train)
    n_measured = data.first(data.best).n_cases["ndcg@10"]
    assert n_measured == len(truth) - len(empty)
    activity = {s.name: s for s in data.strata}["activity"]
    assert sum(activity.sizes.values()) == n_measured
    for group in selection(data)["groups"]:
        rows = [row for row in group["rows"] if row]
        assert {sum(row[8:11]) for row in rows} == ({group["n"]} if group["n"] >= 20 else set())
    page = report_html(results, lists=lists, truth=judged, train=train)
    left_out = f"{len(empty)} of {len(truth)} users have no relevant items"
    assert f"{left_out}: they are in no mean" in Page(page).text


def test_the_inspector_drops_what_a_browser_or_terminal_obeys():
    lists, truth, train, _ = world()
    titles = {i: f"film \u202e{i}\x1b[31m" for row in lists["model 0"].values() for i in row}
    page = report_html(evaluations(lists, truth), lists=lists, truth=truth, train=train, items=titles)
    shown = json.dumps(data_of(page)["inspector"], ensure_ascii=False)
    assert "film " in shown
    assert "\u202e" not in shown
    assert "\\u001b" not in shown


def test_every_word_of_statistics_is_explained_once_and_linked(full):
    page = Page(full)
    hrefs = {a["href"][1:] for tag, a in page.tags if tag == "a" and "term" in a.get("class", "")}
    assert hrefs <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    titles = {a["title"] for tag, a in page.tags if tag == "a" and "term" in a.get("class", "")}
    from recsys.metrics.registry import lookup

    assert {lookup(name)[0].meaning for name in ("ndcg", "recall", "mrr")} <= titles
    for word in ("Holm", "d_z", "adjusted p", "baseline", "conventions: default"):
        assert WORDS[word] in titles
    assert all(meaning in page.text for meaning in WORDS.values())
    assert str(Glossary().linked("<b> d_z p = 0.2")).startswith("&lt;b&gt; <a ")


def test_the_selection_holds_every_metric_and_group():
    lists, truth, train, _ = world()
    results = evaluations(lists, truth)
    data = make_study(results, baseline="model 1", lists=lists, truth=truth, train=train)
    held = selection(data)
    names = held["models"]
    assert names == ["model 2", "model 1", "model 0"]
    assert held["metrics"][held["headline"]]["name"] == "ndcg@10"
    for metric in held["metrics"]:
        for model in (0, 2):
            row = recsys.compare(results, baseline="model 1")[names[model], metric["name"]]
            lift, low, high, *_ = seen = metric["rows"][model]
            ends = row.relative_interval.low, row.relative_interval.high
            if math.isfinite(row.relative) and math.isfinite(ends[0]):
                percents = [100 * end for end in (row.relative, *ends)]
                assert (lift, low, high) == pytest.approx(percents, abs=0.051)
            assert seen[3] == pytest.approx(row.difference, abs=5.1e-5)
            assert seen[8:11] == [row.wins, row.ties, row.losses]
            assert metric["values"][model][0] == pytest.approx(row.value, abs=5.1e-5)
        assert metric["rows"][1] is None


def test_the_selection_tests_the_groups_against_the_reference_over_all_of_them():
    lists, truth, train, _ = world(400)
    data = make_study(
        evaluations(lists, truth), baseline="model 0", headline="ndcg@10", truth=truth, train=train
    )
    held = selection(data)
    best, *_, base = held["models"]
    assert (best, base, held["reference"]) == ("model 2", "model 0", 2)
    masks = {(s.title, label): mask for s in data.strata for label, mask in s.masks.items()}
    assert {(g["by"], g["name"]) for g in held["groups"]} == set(masks)
    rows = [(group, model, group["rows"][model]) for group in held["groups"] for model in (0, 1)]
    tests = []
    for group, model, row in rows:
        gaps = data.aligned.differences(held["models"][model], base, "ndcg@10")
        inside = gaps[masks[group["by"], group["name"]]]
        tests.append(sign_flip(inside, confidence=1 - 0.05 / len(rows)))
        ends = tests[-1].interval
        assert row[3:6] == pytest.approx([inside.mean(), ends.low, ends.high], abs=5.1e-5)
        assert row[8:11] == [(inside > 0).sum(), (inside == 0).sum(), (inside < 0).sum()]
        assert group["rows"][2] is None
    adjusted = adjust([test.p_value for test in tests], "holm")
    assert [row[6] for *_, row in rows] == pytest.approx(adjusted, rel=0.06)
    assert {group["ahead"] for group in held["groups"]} == {None}


def test_the_selection_names_who_is_ahead_of_the_best_in_a_group():
    truth = {u: {u} for u in range(80)}
    by = {u: "late" if u >= 50 else "early" for u in truth}
    first = {u: [u] if u < 50 else [900] for u in truth}
    second = {u: [u] if u >= 50 else [900] for u in truth}
    results = {
        name: recsys.evaluate(own, truth, ["ndcg@10"], by=by)
        for name, own in (("first", first), ("second", second))
    }
    held = selection(make_study(results))
    assert {group["name"]: group["ahead"] for group in held["groups"]} == {"early": None, "late": 1}


def test_all_metrics_of_many_models_can_be_chosen():
    lists, truth, train, _ = world(n_users=25, n_models=2)
    many = {f"m{n}": lists[f"model {n % 2}"] for n in range(13)}
    held = selection(make_study(evaluations(many, truth, k=(5, 10)), truth=truth, train=train))
    chosen = {metric["name"] for metric in held["metrics"] if metric["rows"]}
    assert chosen == {f"{name}@{k}" for name in ("ndcg", "recall", "mrr") for k in (5, 10)}
    assert {len(group["rows"]) for group in held["groups"]} == {13}


def test_not_worse_is_not_turned_over():
    lists, truth, *_ = world()
    row = recsys.compare(evaluations(lists, truth, k=(10,)), "model 2", ["ndcg@10"])["model 0", "ndcg@10"]
    for kind, turned in {"worse": "better", "no_worse": "no_difference", "equivalent": "equivalent"}.items():
        assert turned_row(replace(row, verdict=replace(row.verdict, kind=kind))).verdict.kind == turned


def test_shares_of_users_by_hits_agree_with_counting():
    lists, truth, *_ = world()
    data = make_study(evaluations(lists, truth), lists=lists, truth=truth)
    for name, shares in section_numbers.hit_shares(data).items():
        hits = [len(set(lists[name][u][:10]) & truth[u]) for u in truth]
        expected = [hits.count(0), hits.count(1), sum(n > 1 for n in hits)]
        assert shares == pytest.approx([n / len(hits) for n in expected])
    assert section_numbers.hit_shares(make_study(evaluations(lists, truth))) is None
    assert (
        "of the users have a ndcg@10 of 0 with model 2" in Page(report_html(evaluations(lists, truth))).text
    )


def test_a_headline_can_be_asked_for():
    lists, truth, *_ = world(n_models=1)
    results = evaluations(lists, truth)
    assert "headline metric mrr@5" in Page(report_html(results, headline="mrr@5")).text


def test_a_study_prints_its_models_and_is_reported_as_it_is():
    lists, truth, train, _ = world()
    study = make_study(evaluations(lists, truth), lists=lists, truth=truth, train=train)
    assert study.to_frame()["model"].tolist() == study.names
    assert make_study(study) is study
    again = make_study(study, headline="mrr@5", audit=[{"severity": "error", "name": "leak"}])
    assert (again.headline, again.lists, again.history) == ("mrr@5", study.lists, study.history)
    assert [one["name"] for one in again.audited] == ["leak"]
    assert again.names == sorted(again.names, key=lambda name: -again.value(name, "mrr@5"))
    assert study.headline != "mrr@5"


def test_the_summary_holds_each_value_with_its_interval(full):
    lists, truth, *_ = world()
    results = evaluations(lists, truth)
    text = Page(full).text
    for result in results.values():
        value = result["ndcg@10"]
        bounds = result.intervals()["ndcg@10"].interval
        assert f"{value:.4f}" in text
        assert f"[{bounds.low:.4f}, {bounds.high:.4f}]" in text


def test_conventions_and_provenance_are_there_in_full(full):
    lists, truth, *_ = world()
    result = evaluations(lists, truth)["model 0"]
    text = Page(full).text
    for name in result.conventions.to_dict():
        if name != "per_metric":
            assert name in text
    assert json.loads(result.to_json())["sha256"] in text
    assert recsys.__version__ in text


def test_models_of_one_page_were_finished_at_one_moment(monkeypatch):
    """Those of this session are asked for their time once, not each as the clock goes on."""
    moments = iter(range(100))
    monkeypatch.setattr("recsys.report.sections.run_facts", lambda: {"finished": f"moment {next(moments)}"})
    lists, truth, *_ = world()
    text = Page(report_html(evaluations(lists, truth))).text
    assert "moment 0" in text
    assert "moment 1" not in text


def test_downloads_hold_the_same_numbers_in_four_forms(full):
    links = {a["download"]: a["href"] for tag, a in Page(full).tags if tag == "a" and "download" in a}
    assert {f"summary.{end}" for end in ("csv", "json", "md", "tex")} <= set(links)

    def read_file(name):
        return base64.b64decode(links[name].split(",", 1)[1]).decode()

    rows = list(csv.DictReader(io.StringIO(read_file("values.csv"))))
    lists, truth, *_ = world()
    results = evaluations(lists, truth)
    assert len(rows) == sum(map(len, results.values()))
    assert all(float(r["value"]) == results[r["model"]][r["metric"]] for r in rows)
    again = json.loads(read_file("values.json"))
    assert [r["value"] for r in again] == [float(r["value"]) for r in rows]
    assert read_file("summary.md").count("\n") == 2 + len(results)
    assert read_file("summary.tex").startswith(r"\begin{tabular}")


def test_findings_come_worst_first_with_what_to_do(full):
    text = Page(full).text
    audit = text.index("What was checked about the data")
    assert text.index("leak", audit) < text.index("duplicates", audit)
    assert "To do: Split by time." in text
    assert "user 3, item 4" in text


def test_a_caution_stands_at_the_top_when_candidates_were_sampled():
    lists, truth, *_ = world(n_models=1)
    result = evaluations(lists, truth)["model 0"]
    assert "Sampled metrics" not in Page(report_html(result)).text
    sampled = ResultFacts(sampled="each positive was ranked among 99 candidates")
    result.origin = StoredOrigin(facts=sampled)
    text = Page(report_html(result)).text
    assert text.index("Sampled metrics") < text.index("Models and metrics")
    assert "ranked among 99 candidates" in text


def test_names_are_shown_and_never_markup():
    lists, truth, _, _ = world(n_users=20, n_models=1)
    names = dict(zip(HOSTILE, [next(iter(lists.values()))] * len(HOSTILE), strict=True))
    titles = {i: HOSTILE[i % len(HOSTILE)] for i in range(60)}
    audit = [
        {"name": n, "severity": "error", "count": n, "message": n, "examples": [n], "todo": n}
        for n in HOSTILE
    ]
    text = report_html(
        evaluations(names, truth, k=(5, 10)), lists=names, truth=truth, items=titles, title=HOSTILE[1],
        audit=audit, embeddings=np.arange(120.0).reshape(60, 2),
    )  # fmt: skip
    page = Page(text)
    kinds = {tag for tag, _ in page.tags}
    assert not kinds & {"img", "iframe", "svg", "math", "link", "base", "object", "embed", "form"}
    assert sum(tag == "script" for tag, _ in page.tags) == 3
    assert all(not n.startswith("on") for _, attrs in page.tags for n in attrs)
    assert "<script>window.owned=1</script>" in html.unescape(page.text)
    block = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]
    assert not set("<>&\u2028\u2029") & set(block)


def test_the_policy_allows_nothing_but_the_pages_own_scripts(full):
    (policy,) = (a["content"] for tag, a in Page(full).tags if tag == "meta" and "http-equiv" in a)
    rules = {part.split()[0]: part.split()[1:] for part in policy.split(";")}
    assert rules["default-src"] == ["'none'"]
    assert all(s.startswith("'sha256-") for s in rules["script-src"] + rules["style-src-elem"])
    assert "unsafe-eval" not in policy
    assert "http" not in policy
    assert not re.search(r'(?:src|href)="(?!#|data:)', full)


def test_json_in_the_page_cannot_end_its_element():
    hostile = {"a": "</script><!-- & \u2028 \u2029", "b": [1.5, None]}
    assert json.loads(json_for_script(hostile)) == hostile
    assert not set("<>&\u2028\u2029") & set(json_for_script(hostile))
    with pytest.raises(ValueError, match="JSON"):
        json_for_script({"a": float("nan")})


def test_a_cell_that_looks_like_a_formula_is_no_formula_in_the_csv():
    columns = {"model": ["=1+1", "@x", "-2", "als"], "value": [-1.0, 2.0, None, 3.0]}
    files = html_table("t", "T", columns).files
    (text,) = (base64.b64decode(link.split(",")[1]).decode() for kind, _, link in files if kind == "CSV")
    assert text.splitlines() == ["model,value", "'=1+1,-1.0", "'@x,2.0", "-2,", "als,3.0"]


def test_p_values_are_read_as_people_read_them():
    values = [1e-9, 0.0312, float("nan")]
    assert [cell(value, "p").text for value in values] == ["< 0.0001", "0.031", ""]
    table = html_table("t", "T", {"p": values})
    (line,) = (
        base64.b64decode(link.split(",")[1]).decode() for kind, _, link in table.files if kind == "CSV"
    )
    assert line.splitlines()[1] == "1e-09"


def plain_mean(values):
    return sum(values) / len(values)


@pytest.mark.parametrize("seed", range(4))
def test_strata_are_plain_means_over_the_users_of_a_group(seed):
    lists, truth, train, items = world(seed=seed)
    data = make_study(evaluations(lists, truth), lists=lists, truth=truth, train=train, items=items)
    sizes = train.groupby("user_id").size().to_dict()
    strata = {s.name: s for s in data.strata}
    assert set(strata) == {
        "activity",
        "cold and warm users",
        "popularity of what they want",
        "relevant items",
    }
    result = evaluations(lists, truth)["model 1"]
    values = dict(zip(result.per_case.ids.tolist(), result.values_of("ndcg@10").tolist(), strict=True))
    for label, (value, low, high) in strata["activity"].values["model 1"].items():
        ends = [int(part) for part in label.split("–")]  # noqa: RUF001
        inside = [v for u, v in values.items() if ends[0] <= sizes.get(u, 0) <= ends[-1]]
        assert len(inside) == strata["activity"].sizes[label]
        assert value == pytest.approx(plain_mean(inside))
        assert low < value < high
    cold = strata["cold and warm users"]
    assert cold.sizes["cold (none)"] == sum(u not in sizes for u in values)
    assert sum(strata["popularity of what they want"].sizes.values()) == len(values)
    for label, (value, *_) in strata["relevant items"].values["model 1"].items():
        ends = [int(part) for part in label.split("–")]  # noqa: RUF001
        inside = [v for u, v in values.items() if ends[0] <= len(truth[u]) <= ends[-1]]
        assert value == pytest.approx(plain_mean(inside))


@pytest.mark.parametrize("seed", range(4))
def test_head_and_tail_agree_with_counting_by_hand(seed):
    lists, truth, train, _ = world(seed=seed)
    data = make_study(evaluations(lists, truth, k=(5,)), lists=lists, truth=truth, train=train)
    shares, found = section_numbers.head_and_tail(data)
    counts = train.groupby("item_id").size().to_dict()
    fifth = -(-len(counts) // 5)
    heads = {least: sum(n >= least for n in counts.values()) for least in {*counts.values(), math.inf}}
    least = min(heads, key=lambda level: (abs(heads[level] - fifth), heads[level]))

    def group(item):
        taken = counts.get(item, 0)
        return "head" if taken >= least else "tail" if taken else "never seen"

    for name, lists_by_user in lists.items():
        places = [group(i) for items in lists_by_user.values() for i in items[:5]]
        relevant = [(u, i) for u, items in truth.items() for i in items]
        for kind in ("head", "tail"):
            assert shares[name][kind] == pytest.approx(places.count(kind) / len(places))
            mine = [(u, i) for u, i in relevant if group(i) == kind]
            hits = sum(i in lists_by_user[u][:5] for u, i in mine)
            assert found[name][kind] == pytest.approx(hits / len(mine))
    assert sum(shares["(the truth)"].values()) == pytest.approx(1)


def test_coverage_is_the_share_of_the_catalogue_in_the_first_k_places():
    lists, truth, *_ = world()
    name, values = section_numbers.coverage(
        make_study(evaluations(lists, truth, k=(5,)), lists=lists, truth=truth)
    )
    every = {i for lists_by_user in lists.values() for items in lists_by_user.values() for i in items}
    every |= {i for items in truth.values() for i in items}
    assert name == "coverage@5"
    for model, lists_by_user in lists.items():
        assert values[model] == pytest.approx(
            len({i for items in lists_by_user.values() for i in items[:5]}) / len(every)
        )


def test_curves_come_from_the_lists_where_results_have_one_cut_off():
    lists, truth, *_ = world()
    alone = section_numbers.curves(make_study(evaluations(lists, truth, k=(10,))))
    assert alone == {}
    curves = section_numbers.curves(make_study(evaluations(lists, truth, k=(10,)), lists=lists, truth=truth))
    assert curves["ndcg"]["model 1"][5][0] == evaluations(lists, truth, k=(5,))["model 1"]["ndcg@5"]


def test_the_inspector_holds_at_most_300_users_and_shows_what_they_were_shown():
    lists, truth, train, items = world(n_users=900)
    data = make_study(evaluations(lists, truth), lists=lists, truth=truth, train=train, items=items)
    inspector = example_users.inspector_users(data)
    assert 200 < len(inspector["users"]) <= 300
    assert {why for user in inspector["users"] for why in user["why"]} == {
        "worst", "best", "lost most", "won most", "random",
    }  # fmt: skip
    ids = [int(user["id"]) for user in inspector["users"]]
    assert len(set(ids)) == len(ids)
    names = [title[-1] for title in inspector["items"]]
    for user in inspector["users"][:40]:
        key = int(user["id"])
        assert [names[n] for n in user["lists"][0]] == [str(i) for i in lists["model 2"][key]]
        assert {names[n] for n in user["wanted"]} == {str(i) for i in truth[key]}
        assert user["n_had"] == int((train["user_id"] == key).sum())
    values = evaluations(lists, truth)["model 2"].per_user["ndcg@10"]
    worst = [int(u["id"]) for u in inspector["users"] if "worst" in u["why"]]
    assert values.loc[worst].max() <= values.sort_values().iloc[len(worst) - 1]


def test_failures_are_the_largest_losses_against_the_baseline():
    lists, truth, *_ = world()
    results = evaluations(lists, truth)
    data = make_study(results, baseline="model 0", truth=truth)
    gap = results["model 2"].per_user["ndcg@10"] - results["model 0"].per_user["ndcg@10"]
    rows = example_users.failures(data)
    assert [r["value"] - r["base"] for r in rows] == pytest.approx(
        gap[gap < 0].sort_values().tolist()[: len(rows)]
    )


def test_several_runs_several_cases_and_weights_are_reported():
    lists, truth, *_ = world()
    runs = {n: [evaluations({n: lists_by_user}, truth)[n]] * 2 for n, lists_by_user in lists.items()}
    assert "model 2" in report_html(runs)
    clustered = evaluations(lists, truth, clusters={u: f"c{u // 2}" for u in truth})
    text = Page(report_html(clustered, truth=truth)).text
    assert "120 cases of 60 users" in text
    assert "over 120 cases." in text
    weighted = evaluations(lists, truth, case_weights={u: 1.0 + u % 3 for u in truth})
    assert f"{weighted['model 1']['ndcg@10']:.4f}" in Page(report_html(weighted)).text
    spread = section_numbers.spread(make_study(weighted))
    assert spread["model 1"]["mean"] == pytest.approx(weighted["model 1"]["ndcg@10"])
    assert spread["model 1"]["50%"] == weighted["model 1"].quantiles([0.5])["ndcg@10"][0.5]
    covered = recsys.evaluate(lists["model 0"], truth, ["coverage@10"], catalogue=range(60))
    assert "120 users 1 model" in Page(report_html(covered)).text


def test_groups_of_an_evaluation_are_a_stratum():
    lists, truth, *_ = world()
    results = evaluations(lists, truth, by=lambda user: "even" if user % 2 == 0 else "odd")
    text = Page(report_html(results)).text
    assert "By group of the evaluation" in text
    assert f"{results['model 0'].by['even']['ndcg@10']:.4f}" in text


def test_a_comparison_brings_its_baseline_and_its_models():
    lists, truth, *_ = world()
    comparison = recsys.compare(evaluations(lists, truth), baseline="model 1")
    assert "over model 1, the baseline and the next best" in Page(report_html(comparison)).text
    assert "model 0" in Page(report_html(recsys.compare(evaluations(lists, truth)))).text
    text = Page(report_html(list(evaluations(lists, truth).values()))).text
    assert "model 3" in text


def test_a_history_that_was_recorded_is_drawn(tmp_path):
    from recsys.comparison.history import history, record

    lists, truth, *_ = world(n_models=1)
    for _ in range(2):
        record(tmp_path, evaluations(lists, truth)["model 0"], "m")
    histories = history_by_metric(history(tmp_path, "ndcg@10"))
    assert list(histories) == ["ndcg@10"]
    assert len(histories["ndcg@10"].by_model["m"]) == 2
    page = report_html(evaluations(lists, truth), history=history(tmp_path, "ndcg@10"))
    assert "history-0" in data_of(page)["charts"]
    frame = pd.DataFrame(HISTORY)
    assert history_by_metric(frame)["ndcg@10"].changes == ["2026-01-03"]
    other = recsys.evaluate(lists["model 0"], truth, ["ndcg@10"], conventions={"ideal": "k"})
    other.run = {"finished": "2999-01-01T00:00:00+00:00"}
    record(tmp_path, other, "m")
    page = report_html(evaluations(lists, truth), history=history(tmp_path, "ndcg@10"))
    assert "(ideal: reachable, now k), so 2 nights are shown and not compared" in Page(page).text


@pytest.mark.parametrize(
    ("inputs", "error"),
    [
        ({"baseline": "nobody"}, UnknownNameError),
        ({"headline": "ndcg@99"}, UnknownNameError),
        ({"lists": {"nobody": {1: [2]}}}, InputError),
        ({"items": 3}, InputError),
        ({"embeddings": [1.0, 2.0]}, InputError),
        ({"audit": 3}, InputError),
        ({"audit": [3]}, InputError),
        ({"audit": [{"name": "leak", "severity": "<b>"}]}, UnknownNameError),
        ({"history": 3}, InputError),
        ({"history": [{"value": 1.0}]}, InputError),
    ],
)
def test_inputs_that_cannot_be_reported_are_refused(inputs, error):
    lists, truth, *_ = world()
    with pytest.raises(error):
        report_html(evaluations(lists, truth), **inputs)


@pytest.mark.parametrize("results", [{}, [], 3, {"a": 3}, {"a": []}, "text"])
def test_results_that_are_none_are_refused(results):
    with pytest.raises(InputError):
        report_html(results)


def test_findings_of_an_audit_object_and_of_its_dictionary_are_the_same():
    leak = Finding("error", "the test is in train", 7, (("ann", 4),), "Split by time.", name="test_leak")
    cold = Finding("info", "3 items are cold", 3, name="cold_items")
    audit = Audit([cold, leak])
    rows = findings_of(audit)
    assert rows == findings_of([cold, leak])
    assert [{**row, "examples": []} for row in rows] == [
        {**row, "examples": []} for row in findings_of(json.loads(audit.to_json()))
    ]
    assert rows[0] == {
        "name": "test leak", "severity": "error", "count": 7, "message": "the test is in train",
        "todo": "Split by time.", "examples": ["('ann', 4)"],
    }  # fmt: skip
    assert rows[1]["severity"] == "note"
    assert [f["severity"] for f in findings_of(AUDIT)] == ["error", "ok"]


def test_the_table_of_a_history_is_read_like_the_history_itself(tmp_path):
    from recsys.comparison.history import history, record

    lists, truth, *_ = world(n_models=1)
    for _ in range(2):
        record(tmp_path, evaluations(lists, truth)["model 0"], "m")
    stored = history(tmp_path, "ndcg@10")
    assert history_by_metric(stored.to_frame()) == history_by_metric(stored)


@pytest.mark.parametrize(("package", "named"), [("jinja2", "jinja2"), ("vl_convert", "vl-convert")])
def test_a_missing_package_is_named_with_the_line_that_installs_it(package, named, monkeypatch, tmp_path):
    from recsys.report import offline_page as room

    room._vega.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    lists, truth, *_ = world()
    with pytest.raises(MissingExtraError, match=re.escape("recsys-evaluation[report]")) as caught:
        write_report(tmp_path / "r.html", evaluations(lists, truth))
    assert named in str(caught.value)
    assert not (tmp_path / "r.html").exists()


def test_the_file_appears_whole_and_its_folder_is_made(tmp_path):
    lists, truth, *_ = world(n_models=1)
    path = write_report(tmp_path / "new" / "report.html", evaluations(lists, truth))
    assert path.read_text(encoding="utf-8").endswith("</html>")
    with pytest.raises(FileError):
        write_report(tmp_path, evaluations(lists, truth))


def test_the_comparison_given_decides_the_headline_unless_a_metric_is_named():
    lists, truth, *_ = world()
    comparison = recsys.compare(evaluations(lists, truth), baseline="model 0", metrics=["recall@10"])
    page = Page(report_html(comparison)).text
    assert "has the highest recall@10" in page
    assert "2 pairs of models on recall@10, holm" in page
    assert "has the highest mrr@5" in Page(report_html(comparison, headline="mrr@5")).text


def test_accuracy_and_coverage_say_which_way_is_better():
    lists, truth, *_ = world()
    whole = {n: {u: [*own[u], *(set(range(60)) - set(own[u]))] for u in own} for n, own in lists.items()}
    results = {
        n: recsys.evaluate(own, truth, ["average_rank", "ndcg@10", "coverage@10"], full_ranking=True)
        for n, own in whole.items()
    }
    assert "Lower is more accurate" in Page(report_html(results, headline="average_rank")).text
    assert "Higher is more accurate" in Page(report_html(results, headline="ndcg@10")).text
    assert "coverage needs a metric of accuracy" in Page(report_html(results, headline="coverage@10")).text


def test_a_metric_that_is_better_when_lower_is_read_that_way():
    lists, truth, train, _ = world()
    results = evaluations(lists, truth, metrics=("average_popularity", "recall"), k=(10,), train=train)
    page = report_html(results, headline="average_popularity@10")
    lowest = min(results, key=lambda name: results[name]["average_popularity@10"])
    assert f"{lowest} has the lowest average_popularity@10" in Page(page).text
    assert data_of(page)["selection"]["models"][0] == lowest
    base = results["model 0"]["average_popularity@10"]
    panels = data_of(page)["charts"]["differences-0"]["concat"]
    (panel,) = (p for p in panels if p["title"]["text"] == "average_popularity@10")
    for row in panel["data"]["values"]:
        expected = "better" if results[row["label"]]["average_popularity@10"] < base else "worse"
        assert row["side"] in {expected, "unclear"}


def test_small_and_odd_results_are_reported():
    nobody = recsys.evaluate({1: [2, 3], 2: [3]}, {1: {}, 2: {}}, ["ndcg@2"])
    assert "no user is in its mean" in Page(report_html(nobody)).text
    alone = recsys.evaluate({1: [2, 3]}, {1: {3}}, ["ndcg@2"])
    assert (
        "reaches ndcg@2"
        in Page(report_html({"a": alone}, baseline="a", lists={1: [2, 3]}, truth={1: {3}})).text
    )
    lists, truth, train, _ = world()
    results = evaluations(lists, truth)
    same = Page(report_html({"a": results["model 0"], "b": results["model 0"]})).text
    assert "a and b are identical on ndcg@10" in same
    nothing = recsys.evaluate({1: [2], 2: [3], 3: [2]}, {1: {5}, 2: {5}, 3: {5}}, ["hit@1"])
    assert "hit@1 is 0 for everybody" in Page(report_html({"a": nothing, "b": nothing})).text
    half = {u: truth[u] for u in range(60)}
    some = evaluations({"a": {u: lists["model 0"][u] for u in half}}, half) | {"b": results["model 1"]}
    text = Page(report_html(some, truth=truth, train=train)).text
    assert "lacks 60" in text


def test_results_write_their_own_report(tmp_path):
    lists, truth, *_ = world(n_models=2)
    results = evaluations(lists, truth)
    assert results["model 0"].report(tmp_path / "a.html").exists()
    comparison = recsys.compare(results, baseline="model 0")
    assert "model 1" in comparison.report(tmp_path / "b.html", title="Two").read_text(encoding="utf-8")


@pytest.mark.slow
def test_ten_models_and_a_hundred_thousand_users_stay_under_two_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    n_users, n_items, k = 100_000, 20_000, 10
    users = np.repeat(np.arange(n_users), k)
    truth = pd.DataFrame(
        {"user_id": np.repeat(np.arange(n_users), 3), "item_id": rng.zipf(1.3, 3 * n_users) % n_items}
    )
    truth = truth.drop_duplicates()
    train = pd.DataFrame({"user_id": users, "item_id": rng.zipf(1.3, len(users)) % n_items}).drop_duplicates()
    lists = {
        f"model {m}": pd.DataFrame({
            "user_id": users, "item_id": rng.zipf(1.2 + 0.03 * m, len(users)) % n_items,
            "rank": np.tile(np.arange(1, k + 1), n_users),
        })
        for m in range(10)
    }  # fmt: skip
    results = {
        n: recsys.evaluate(frame, truth, ["ndcg", "recall", "precision", "map", "hit", "mrr"], k=[1, 5, 10])
        for n, frame in lists.items()
    }
    titles = {i: f"The rather long title of product number {i}, second edition" for i in range(n_items)}
    path = write_report(
        tmp_path / "big.html", results, lists=lists, truth=truth, train=train, items=titles,
        embeddings=rng.standard_normal((n_items, 2)),
    )  # fmt: skip
    assert path.stat().st_size < 2_000_000


def test_lifts_of_the_catalogue_have_an_axis_of_their_own_and_no_mark_of_the_best():
    lists, truth, *_ = world()
    results = {
        n: recsys.evaluate(lists_by_user, truth, ["ndcg@10", "coverage@10"])
        for n, lists_by_user in lists.items()
    }
    page = report_html(results)
    panels = data_of(page)["charts"]["differences-0"]["concat"]
    assert [panel["title"]["text"] for panel in panels] == ["ndcg@10", "coverage@10"]
    summary, _ = overview(make_study(results))
    at = summary.heads.index("coverage@10")
    assert {row[at].tone for row in summary.rows} == {"apart"}
    (full,) = comparisons(make_study(results))
    verdicts = {"ndcg@10": set(), "coverage@10": set()}
    for row in full.rows:
        verdicts[row[0].text].add(row[-1].text)
    assert verdicts["ndcg@10"] == {"▼ worse"}  # than the best
    assert verdicts["coverage@10"] <= {
        "▲ higher",
        "▼ lower",
        "≈ no clear difference",
        "≈ identical in this sample",
    }
    assert len(full.rows) == 4
    lines, best = comparisons(make_study(results, baseline="model 0"))
    assert [row[1].text for row in best.rows] == ["model 1", "model 0"]
    assert [row[0].small for row in lines.rows] == ["headline", "headline", "secondary", "secondary"]


def test_a_metric_that_nobody_has_a_value_for_leaves_a_page_all_the_same():
    empty = recsys.evaluate({1: [2], 2: [3]}, {1: [], 2: []}, ["hit@1", "coverage@1"])
    text = Page(report_html(empty)).text
    assert "headline metric coverage@1" in text
    assert "Accuracy and coverage needs a metric of accuracy with a value" in text


def test_the_cautions_of_the_results_open_the_page():
    lists = {user: [user + 1, user + 2, user + 3] for user in range(5)}
    short = recsys.evaluate(lists, {0: {2}, 4: {9}}, ["recall@20"])
    (caution,) = short.cautions
    enough = recsys.evaluate(lists, {0: {2}, 4: {9}}, ["recall@20"], cautions="ignore")
    for results in (short, {"a": short, "b": short}, {"a": short, "b": enough}):
        page = report_html(results)
        opening = page[: page.index("<main")]
        assert html.escape(caution.sentence, quote=False) in html.unescape(opening)
        assert caution.code in opening
    assert caution.code not in report_html(enough)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recsys.errors.RecsysWarning)  # two equal users are no test
        silent = recsys.compare({"a": short, "b": short}, "a", cautions=["k_beyond_lists"])
    assert caution.code not in report_html(silent)
    assert caution.code not in report_html(silent, baseline="b")  # compared anew


def test_a_finding_without_a_count_shows_none():
    result = recsys.evaluate({1: [3, 5]}, {1: {5}}, ["mrr"])
    findings = [{"name": "leak", "severity": "error", "count": 3}, {"name": "bias", "count": 0}]
    page = report_html(result, audit=findings)
    assert re.findall(r'<span class="count">(.*?)</span>', page) == ["3"]
