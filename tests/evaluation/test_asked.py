"""The question of a result: the same however its tables came, kept in files, and compared."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.errors import FileError, InputError
from recsys.evaluation.asked import Asked, Content, differences
from recsys.evaluation.files.result_files import fingerprint
from recsys.evaluation.in_pieces.evaluator import Evaluator

pytestmark = pytest.mark.filterwarnings("ignore::recsys.stats.results.StatisticsWarning")
RNG = np.random.default_rng(5)
N, M = 120, 60
PAIRS = pd.DataFrame(
    [(u, (u * 7 + 11 * j) % M) for u in range(N) for j in range(9)], columns=["user", "item"]
)
PART = np.tile(np.arange(9), N)
TRUTH, SEEN, ELIGIBLE = PAIRS[PART < 2], PAIRS[(PART > 1) & (PART < 5)], PAIRS[(PART < 2) | (PART > 4)]
TRUTH = TRUTH.assign(grade=1.0 + TRUTH["item"] % 3)
LISTS = PAIRS.assign(rank=PART + 1)
SCORES = RNG.normal(size=(N, M))
OTHER = pd.DataFrame({"user": np.arange(N), "item": M - 1})


def evaluated(ranking=None, truth=TRUTH, metrics=("ndcg@5",), **options):
    return recsys.evaluate(
        recsys.Scores(SCORES) if ranking is None else ranking, truth, list(metrics), **options
    )


@pytest.mark.parametrize(
    "table", [SEEN.sample(frac=1, random_state=1), SEEN.groupby("user")["item"].apply(list).to_dict(), "file"]
)
def test_the_same_table_is_the_same_content(table, tmp_path):
    if isinstance(table, str):
        table = tmp_path / "seen.csv"
        SEEN.to_csv(table, index=False)
        found = evaluated(LISTS, TRUTH, seen=SEEN).asked.seen
        as_text = {
            "lists": LISTS.astype({"user": str, "item": str}),
            "truth": TRUTH.astype({"user": str, "item": str}),
        }
        assert recsys.evaluate(*as_text.values(), ["ndcg@5"], seen=table).asked.seen == found
        return
    assert evaluated(seen=table).asked == evaluated(seen=SEEN).asked


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("truth", {"truth": TRUTH.assign(grade=TRUTH["grade"].to_numpy()[::-1])}),
        ("truth", {"truth": TRUTH.iloc[1:]}),
        ("users", {"truth": TRUTH[TRUTH["user"] > 0]}),
        ("seen", {"seen": SEEN.iloc[1:]}),
        ("seen", {"seen": SEEN.assign(user=SEEN["user"].to_numpy()[::-1])}),
        ("eligible", {"eligible": ELIGIBLE}),
        ("excluded", {"exclude": [3]}),
        ("train", {"train": SEEN}),
        ("case_weights", {"case_weights": {u: 1 + u % 2 for u in range(N)}}),
        ("item_weights", {"item_weights": dict.fromkeys(range(M), 2.0)}),
        ("catalogue", {"ranking": recsys.Scores(SCORES[:, : M - 1], n_items=None)}),
    ],
)
def test_each_part_of_the_question_is_told_from_others(name, changed):
    given = {"seen": SEEN} | ({"truth": TRUTH[TRUTH["item"] < M - 1]} if name == "catalogue" else {})
    if name == "catalogue":
        given["seen"] = SEEN[SEEN["item"] < M - 1]
    one, other = evaluated(**given).asked, evaluated(**given | changed).asked
    assert getattr(one, name) != getattr(other, name)


def in_pieces(**options):
    evaluator = Evaluator(["ndcg@5"], **{name: table for name, table in options.items() if name == "train"})
    for start in range(0, N, 50):
        of_users = {
            name: table[table["user"].between(start, start + 49)]
            for name, table in {"lists": LISTS, "truth": TRUTH, **options}.items()
            if name != "train"
        }
        evaluator.update(of_users.pop("lists"), of_users.pop("truth"), **of_users)
    return evaluator.result()


def with_common_seen(**options):
    evaluator = Evaluator(["ndcg@5"], **options)
    for start in range(0, N, 50):
        at = [table[table["user"].between(start, start + 49)] for table in (LISTS, TRUTH)]
        evaluator.update(*at)
    return evaluator.result()


def merged(**options):
    halves = [
        recsys.evaluate(LISTS[half], TRUTH[half.loc[TRUTH.index]], ["ndcg@5"], **options)
        for half in (LISTS["user"] < 50, LISTS["user"] >= 50)
    ]
    return halves[0].merge(halves[1])


def beyond_memory(**options):
    return recsys.evaluate(LISTS, TRUTH, ["ndcg@5"], memory="8GB", **options)


def in_another_process(**options):
    return pickle.loads(pickle.dumps(recsys.evaluate(LISTS, TRUTH, ["ndcg@5"], **options)))  # noqa: S301 - our own


@pytest.mark.parametrize("make", [in_pieces, with_common_seen, merged, beyond_memory, in_another_process])
def test_the_question_is_the_same_in_pieces(make):
    options = {"seen": SEEN, "train": SEEN}
    whole = recsys.evaluate(LISTS, TRUTH, ["ndcg@5"], **options)
    assert make(**options).asked == whole.asked
    assert whole.asked.seen.rows == whole.asked.train.rows == len(SEEN)


def test_models_in_pieces_ask_what_they_ask_at_once():
    options = {"seen": SEEN, "exclude": [1, 2], "case_weights": {u: 1 + u % 3 for u in range(N)}}
    whole, found = evaluated(**options), evaluated(memory="8GB", **options)
    assert found.asked == whole.asked
    assert (whole.asked.candidates, whole.asked.catalogue.rows, whole.asked.excluded.rows) == (
        "all items",
        M,
        2,
    )


def test_the_question_is_in_the_file_and_in_its_hash(tmp_path):
    result = evaluated(eligible=ELIGIBLE)
    result.save(tmp_path / "a.json")
    assert recsys.load(tmp_path / "a.json").asked == result.asked
    assert result.under("trec_eval").asked == result.asked
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["result"]["question"]["candidates"] == "eligible items"
    assert document["result"]["question"]["eligible"]["rows"] == len(ELIGIBLE)
    del document["result"]["question"]["eligible"]
    (tmp_path / "b.json").write_text(json.dumps(document))
    with pytest.raises(FileError):
        recsys.load(tmp_path / "b.json")


def test_a_file_without_a_question_opens(tmp_path):
    result = evaluated()
    result.save(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    del document["result"]["question"]
    document["sha256"] = fingerprint(document["result"])
    (tmp_path / "old.json").write_text(json.dumps(document))
    old = recsys.load(tmp_path / "old.json")
    assert old.asked is None
    assert recsys.compare({"old": old, "new": evaluated(eligible=ELIGIBLE)}).cautions == ()


@pytest.mark.parametrize(
    "question", [[], 3, {"what": 1}, {"seen": {"rows": 1}}, {"seen": {"rows": [], "key": {}}}]
)
def test_a_damaged_question_is_an_error(question, tmp_path):
    evaluated().save(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    document["result"]["question"] = question
    (tmp_path / "b.json").write_text(json.dumps(document))
    with pytest.raises(FileError):
        recsys.load(tmp_path / "b.json")


QUESTIONS = {
    "lists": (LISTS, {}),
    "lists with seen": (LISTS, {"seen": SEEN}),
    "all": (None, {}),
    "masked": (recsys.Scores(np.where(SCORES > 2, -np.inf, SCORES)), {}),
    "seen": (None, {"seen": SEEN}),
    "seen = nothing": (None, {"seen": {}}),
    "other seen": (None, {"seen": SEEN.iloc[5:]}),
    "eligible": (None, {"eligible": ELIGIBLE}),
    "other eligible": (None, {"eligible": pd.concat([ELIGIBLE, OTHER])}),
    "exclude": (None, {"exclude": [9]}),
    "train": (None, {"train": SEEN}),
    "other train": (None, {"train": SEEN.iloc[5:]}),
    "weights": (None, {"item_weights": dict.fromkeys(range(M), 2.0)}),
}
UNLIKE = {
    ("all", "seen"): {"seen_differs"},
    ("seen", "other seen"): {"seen_differs"},
    ("all", "eligible"): {"candidates_differ"},
    ("eligible", "other eligible"): {"candidates_differ"},
    ("all", "exclude"): {"candidates_differ"},
    ("train", "other train"): {"trains_differ"},
    ("all", "weights"): {"weights_differ"},
    ("lists", "all"): set(),
    ("lists", "seen"): set(),
    ("lists", "eligible"): set(),
    ("lists", "lists with seen"): set(),
    ("masked", "seen"): set(),
    ("masked", "eligible"): set(),
    ("all", "seen = nothing"): set(),
    ("all", "train"): set(),
}
REFUSED = {("all", "seen"), ("all", "eligible"), ("eligible", "other eligible"), ("all", "exclude")}


@pytest.mark.parametrize("pair", UNLIKE, ids=" and ".join)
def test_what_two_questions_differ_in_is_said_and_a_gate_refuses_other_quantities(pair):
    results = {name: evaluated(QUESTIONS[name][0], **QUESTIONS[name][1]) for name in pair}
    about = {"candidates_differ", "seen_differs", "trains_differ", "weights_differ", "ranked_items_differ"}
    for names in (pair, pair[::-1]):
        compared = recsys.compare({name: results[name] for name in names})
        assert {one.code for one in compared.cautions} & about == UNLIKE[pair]
        if pair in REFUSED:
            with pytest.raises(InputError, match=r"different questions.*Evaluate both with the same"):
                recsys.gate(*(results[name] for name in names), {"ndcg@5": "5%"})
        else:
            gate = recsys.gate(*(results[name] for name in names), {"ndcg@5": "5%"})
            assert {one.code for one in gate.cautions} & about == UNLIKE[pair]


def test_another_night_has_other_rows_and_the_same_question():
    nights = []
    for night in range(2):
        truth = TRUTH.assign(item=(TRUTH["item"] + night) % M)
        nights.append(evaluated(truth=truth, seen=SEEN.iloc[night:], train=SEEN.iloc[night:]).asked)
    assert not differences(*nights, ("old", "new"))
    kept = evaluated(truth=truth, train=SEEN).asked
    assert [*differences(nights[0], kept, ("old", "new"))] == ["seen"]


def test_contents_add_up_in_any_order():
    keys = RNG.integers(0, 1 << 62, 30).astype(np.uint64)
    parts = [Content.of_keys(keys[start : start + 10]) for start in (0, 10, 20)]
    for first, second, third in itertools.permutations(parts):
        assert first.joined(second).joined(third) == Content.of_keys(keys[::-1])
    assert Asked.read(Asked(seen=parts[0]).to_dict()) == Asked(seen=parts[0])
