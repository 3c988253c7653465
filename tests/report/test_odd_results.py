"""What the report says of results that lack something, or were handed over in another form."""

from __future__ import annotations

import base64

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.comparison.compare import Comparison
from recsys.errors import InputError
from recsys.report import report_html, section_numbers
from recsys.report.decision import decide, price
from recsys.report.html_tables import html_table
from recsys.report.model_tables import ranking
from recsys.report.study import make_study

TRUTH = {user: [user] for user in range(9)}
LISTS = {user: [user, 100] for user in TRUTH}


@pytest.fixture(scope="module")
def result():
    return recsys.evaluate(LISTS, TRUTH, ["ndcg@2", "mrr@2"])


UNLIKE = "; the ids do not match: text on one side, numbers on the other."


@pytest.mark.parametrize(
    ("lists", "cause"),
    [
        ({1: ["a"], 2: ["b"]}, f"Items: 0 of the 2 relevant ones occur in the lists of m{UNLIKE}"),
        ({1: [6], 2: [3]}, "Items: 1 of the 2 relevant ones occur in the lists of m."),
    ],
)
def test_why_nothing_was_found_without_a_cut_off(lists, cause):
    truth = {1: [5], 2: [6]}
    nothing = recsys.evaluate({1: [2], 2: [3]}, truth, ["mrr"])
    data = make_study({"m": nothing}, lists={"m": lists}, truth=truth)
    assert decide(data).causes == [cause]


def test_two_files_that_were_exchanged_are_a_cause_where_nothing_was_found():
    rated = pd.DataFrame({"user": [1, 2], "item": [2, 3], "rating": [4, 5]})
    scored = pd.DataFrame({"user": [1, 2], "item": [5, 6], "score": [0.5, 0.5]})
    nothing = recsys.evaluate(rated, scored, ["mrr"])
    causes = decide(make_study({"m": nothing})).causes
    assert "The two files may be swapped: recommendations come first, the truth second." in causes


def test_a_price_below_a_tenth_is_told_in_words():
    truth = {u: {u, 100 + u} for u in range(40)}
    narrow = {u: [u, 100 + u, *range(200, 208)] for u in truth}
    wide = {u: [u, *range(300 + 40 * u, 339 + 40 * u)] for u in truth}
    results = {
        name: recsys.evaluate(own, truth, ["recall@40", "coverage@40"], catalogue=range(2000))
        for name, own in {"narrow": narrow, "wide": wide}.items()
    }
    (one,) = price(make_study(results, baseline="wide"))
    assert one.says == "coverage@40 0.044, less than a tenth of wide's 0.80"


def test_one_model_is_ranked_without_columns_of_a_comparison(result):
    table = ranking(make_study(result))
    assert (table.title, table.heads) == ("The models on ndcg@2", ["model", "ndcg@2"])
    assert [[cell.text for cell in line] for line in table.rows] == [["model", "1.0000"]]
    assert list(table.columns) == ["model", "ndcg@2", "low", "high"]


def test_results_that_do_not_belong_together(result, tmp_path):
    other = recsys.evaluate(LISTS, TRUTH, ["recall@2"])
    with pytest.raises(InputError, match="the models share no metric"):
        make_study({"a": result, "b": other})
    worse = recsys.evaluate({user: own[::-1] if user % 2 else own for user, own in LISTS.items()}, TRUTH,
                            ["ndcg@2", "mrr@2"])  # fmt: skip
    alone = Comparison(recsys.compare({"a": result, "b": worse}).table)
    with pytest.raises(InputError, match="does not hold the evaluations it was made from"):
        make_study(alone)
    result.save(tmp_path / "als.json")
    namesakes = [recsys.load(tmp_path / "als.json") for _ in range(2)]
    assert make_study(namesakes).names == ["model 1", "model 2"]
    assert make_study([namesakes[0], result]).names == ["als", "model 2"]


def test_what_needs_the_truth_is_left_out_without_it(result):
    train = {user: [100, 101, 102][: user % 4] for user in TRUTH}
    data = make_study({"a": result}, lists={"a": LISTS}, train=train)
    shares, found = section_numbers.head_and_tail(data)
    assert list(shares) == ["a"]
    assert shares["a"]["never seen"] == 0.5
    assert found == {}
    groups = [stratum.name for stratum in data.strata]
    assert groups == ["activity", "cold and warm users"]


def test_lists_of_one_place_have_no_curve():
    first = {user: own[:1] for user, own in LISTS.items()}
    data = make_study({"a": recsys.evaluate(first, TRUTH, ["hit@1"])}, lists={"a": first}, truth=TRUTH)
    assert section_numbers.curves(data) == {}


def test_a_map_of_items_reads_tables_and_needs_two_columns(result):
    names = make_study(result).items
    table = pd.DataFrame({"item": [7, 8], "z": [1, 1], "y": [2.0, 3.0], "x": [0.5, 1.0]})
    ids, places, n_items = section_numbers.coordinates_of(table, names, 10)
    assert (ids, places.tolist(), n_items) == ([7, 8], [[0.5, 2.0], [1.0, 3.0]], 2)
    ids, places, _ = section_numbers.coordinates_of(table[["x", "y"]], names, 10)
    assert (ids, places.tolist()) == ([0, 1], [[0.5, 2.0], [1.0, 3.0]])
    with pytest.raises(InputError, match="embeddings have one column; a map needs two or more"):
        section_numbers.coordinates_of({7: [1.0], 8: [2.0]}, names, 10)


def test_files_of_a_table_hold_numbers_of_numpy():
    table = html_table("t", "T", {"n": [np.int64(3)], "x": [np.float32("nan")], "y": [np.float32(0.5)]})
    kinds = {kind: base64.b64decode(link.split(",")[1]).decode() for kind, _, link in table.files}
    assert kinds["JSON"] == '[\n{"n":3,"x":null,"y":0.5}\n]\n'


def test_a_page_without_lists_and_truth_draws_the_map_and_counts_cold_users(result):
    pytest.importorskip("jinja2")
    table = pd.DataFrame({"item": [1, 2, 3], "x": [0.0, 1.0, 2.0], "y": [2.0, 3.0, 1.0]})
    page = report_html({"a": result}, train={user: [100] for user in (1, 2)}, embeddings=table)
    assert "Items that are near each other have similar embeddings." in page
    assert "are recommended more often" not in page
    assert "7 of 9 users have no history in training (cold)." in page
    assert "(cold items)" not in page
