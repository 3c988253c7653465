"""Batches of users come to what one call of evaluate gives, to the last bit, whatever a batch lacks."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from recsys.errors import ColumnError, ConventionError, InputError, MergeError, UnknownNameError
from recsys.evaluation.engine import merge
from recsys.metrics.registry import METRICS
from worlds.lists import World, known_of, list_frame, truth_frame, worlds

# The worlds are full of ties, which is no news here.
pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")

EXAMPLES = settings.default.max_examples
RULES = {"max_grade": 5}


def assert_same_result(batches: Any, whole: Any) -> None:
    """The same bits of every number, per user, overall and by group, and the same counts."""
    assert [(name, value.hex()) for name, value in batches.items()] == [
        (name, value.hex()) for name, value in whole.items()
    ]
    one, other = batches.per_case, whole.per_case
    assert one.ids.tolist() == other.ids.tolist()
    assert list(one.columns) == list(other.columns)
    for name in one.columns:
        assert one.columns[name].tobytes() == other.columns[name].tobytes(), name
    for name, terms in whole.partial.terms.items():
        for term, same in zip(terms, batches.partial.terms[name], strict=True):
            assert term.tobytes() == same.tobytes(), name
    for column in ("clusters", "weights"):
        same, expected = (getattr(rows, column) for rows in (one, other))
        assert (same is None) == (expected is None)
        assert same is None or same.tolist() == expected.tolist()
    assert dict(batches.counts) == dict(whole.counts)
    assert batches.truth_keys.tolist() == whole.truth_keys.tolist()
    assert list(batches.by) == list(whole.by)
    assert repr(batches.by) == repr(whole.by)
    assert batches.by_sizes == whole.by_sizes
    if whole.by:
        assert repr(batches.gaps()) == repr(whole.gaps())


def of_users(frame: pd.DataFrame, users: list[Any]) -> pd.DataFrame:
    return frame[frame["user"].isin(users)]


def all_requests(k: int) -> list[str]:
    """Every metric that reads no complete ranking, with a cut-off where it may have one."""
    metrics = [metric for metric in METRICS.values() if "candidates" not in metric.needs]
    return [metric.name if metric.at_k == "never" else f"{metric.name}@{k}" for metric in metrics]


def context_of(world: World) -> dict[str, Any]:
    known = known_of(world)
    worth = {item: float(len(kind)) for item, kind in known.kinds.items()}
    return {**known.keywords(), "items": {"worth": worth}, "intents": "worth", "catalogue": 1100}


def test_every_keyword_of_evaluate_that_a_batch_can_have_is_taken():
    from recsys.evaluation.evaluate_keywords import BatchKeywords, EvaluateKeywords
    from recsys.evaluation.in_pieces.evaluator import _REFUSED

    assert {*BatchKeywords.__annotations__, *_REFUSED} == set(EvaluateKeywords.__annotations__)


@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
@pytest.mark.parametrize("rules", [{}, {"no_truth": "zero", "no_list": "skip"}, {"no_truth": "unjudged"}])
@pytest.mark.parametrize(
    ("empty", "backend"), [("dicts", "native"), ("tables", "reference"), ("tables of the other kind", "auto")]
)
def test_every_metric_takes_a_batch_without_lists_or_truth(text, rules, empty, backend):
    name = "u{}".format if text else int
    users, items = [name(at) for at in range(6)], [name(at) for at in range(100, 108)]
    world = World(
        lists={users[at]: [*items[at:], *items[:at]][:4] for at in (0, 1, 2, 4)},
        truth={users[at]: {items[at + 1]: 1.0, items[(3 * at) % 8]: 2.0} for at in (0, 1, 3, 5)},
        k=3,
        catalogue=items,
        case_weights=dict.fromkeys(users, 1.0),
        item_weights=dict.fromkeys(items, 1.0),
        clusters={},
    )
    lists, truth = list_frame(world), truth_frame(world)
    asked = {"metrics": all_requests(3), "conventions": {**RULES, **rules}, **context_of(world)}
    whole = recsys.evaluate(lists, truth, **asked)
    nothing = {"lists": {}, "truth": {}}
    if empty != "dicts":
        dtype = "int64" if text == (empty == "tables of the other kind") else "object"
        ids = {"user": pd.Series([], dtype=dtype), "item": pd.Series([], dtype=dtype)}
        nothing = {"lists": pd.DataFrame({**ids, "rank": []}), "truth": pd.DataFrame({**ids, "grade": []})}
    batches = recsys.Evaluator(**asked, backend=backend)
    batches.update(of_users(lists, [users[2], users[4]]), nothing["truth"])
    batches.update(nothing["lists"], nothing["truth"])
    batches.update(nothing["lists"], of_users(truth, [users[3], users[5]]))
    batches.update(of_users(lists, users[:2]), of_users(truth, users[:2]))
    assert_same_result(batches.result(), whole)


def test_every_metric_of_a_whole_ranking_takes_a_batch_without_truth():
    rng = np.random.default_rng(1)
    model = recsys.Factors(rng.standard_normal((8, 3)), rng.standard_normal((12, 3)))
    truth = {user: {user + 1: 1.0, user + 3: 2.0} for user in range(8)}
    seen = {user: [user, user + 2] for user in range(0, 8, 2)}
    world = World({}, truth, 3, range(12), dict.fromkeys(range(8), 1.0), dict.fromkeys(range(12), 1.0), {})
    asked = {"metrics": all_requests(3), "conventions": RULES, **context_of(world)}
    asked["metrics"] += [name for name, metric in METRICS.items() if "candidates" in metric.needs]
    asked["metrics"] = [
        name + "@3" if METRICS[name.partition("@")[0]].at_k == "required" and "@" not in name else name
        for name in asked["metrics"]
    ]
    del asked["catalogue"]
    whole = recsys.evaluate(model, truth, seen=seen, **asked)
    of_batch, of_all = recsys.Evaluator(**asked), recsys.Evaluator(seen=seen, **asked)
    for users in ((0, 1, 2, 3), (), (4,), (7,), (5, 6)):
        part = {user: truth[user] for user in users}
        of_batch.update(model, part, seen={user: seen[user] for user in users if user in seen})
        of_all.update(model, part)
    assert_same_result(of_batch.result(), whole)
    assert_same_result(of_all.result(), whole)


BROAD = [
    *("recall@2", "precision@3", "ndcg@3", "ndcg(gain=exp2)@5", "map@3", "mrr", "hit@1", "dcg@4", "rbp@3"),
    *("f1@2", "gmap@3", "r_precision", "err@3", "coverage@2", "gini@3", "entropy@2", "personalisation@3"),
    *("distinct_items@2", "novelty@3", "intra_list_diversity@3", "unseen@3", "serendipity@3", "judged@3"),
]
BROAD = [name for name in BROAD if name.partition("(")[0].partition("@")[0] in METRICS]


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(), data=st.data())
def test_any_cut_of_the_users_gives_what_one_call_gives(world, data):
    users, lists, truth = world.cases, list_frame(world), truth_frame(world)
    if not len(lists) or not len(truth) or not set(lists["user"]) & set(truth["user"]):
        return
    present = sorted({*lists["user"], *truth["user"]})
    asked: dict[str, Any] = {
        "metrics": BROAD,
        "conventions": {**RULES, "average": data.draw(st.sampled_from(["macro", "pooled"]))},
        **context_of(world),
    }
    groups = dict(zip(users, ["new", "old", "new", None, 7], strict=False))
    asked["by"] = data.draw(
        st.sampled_from([None, groups, lambda user: str(user)[-1], "activity(bins=2)", "popularity(bins=2)"])
    )
    if data.draw(st.booleans()):
        asked["case_weights"] = world.case_weights
    if data.draw(st.booleans()):
        asked["clusters"] = world.clusters
    if data.draw(st.booleans()):
        asked["item_weights"] = world.item_weights
        asked["metrics"] = ["recall@2", "hits@3", "dcg@4", "ndcg@3", "coverage@2", "novelty@3"]
    seen = data.draw(st.sampled_from([None, {}, known_of(world).train]))
    batch_of = {user: data.draw(st.integers(0, 5)) for user in present}
    sides = data.draw(st.booleans())  # the lists and the truth of a user in one batch, or tables without rows
    whole = recsys.evaluate(lists, truth, seen=seen, **asked)
    evaluators = [recsys.Evaluator(seen=seen if number else None, **asked) for number in range(2)]
    for batch in range(6):
        mine = [user for user in present if batch_of[user] == batch]
        of_batch = None if seen is None else {user: seen[user] for user in mine if user in seen}
        tables = of_users(lists, mine), of_users(truth, mine)
        if sides:  # an empty side as an empty dict
            tables = tuple(table if len(table) else {} for table in tables)
        evaluators[0].update(*tables, seen=of_batch)
        evaluators[1].update(*tables)
    assert_same_result(evaluators[0].result(), whole)
    assert_same_result(pickled_if_possible(evaluators[1], asked["by"]).result(), whole)


def pickled_if_possible(evaluator: Any, by: Any) -> Any:
    return evaluator if callable(by) else pickle.loads(pickle.dumps(evaluator))  # noqa: S301 - our own


@pytest.mark.parametrize("lists_too", [True, False])
def test_cases_of_users_come_in_tables(lists_too):
    lists = pd.DataFrame(
        {"case": [1, 1, 2, 3, 4], "user": list("xxxyz"), "item": [5, 6, 5, 7, 8], "rank": [1, 2, 1, 1, 1]}
    )
    truth = pd.DataFrame({"case": [1, 2, 3, 4], "user": list("xxyz"), "item": [6, 5, 9, 8]})
    lists = lists if lists_too else lists.drop(columns="user")
    whole = recsys.evaluate(lists, truth, ["recall@2", "coverage@1"])
    batches = recsys.Evaluator(["recall@2", "coverage@1"])
    for cases in ([1], [4], [], [2, 3]):
        batches.update(lists[lists["case"].isin(cases)], truth[truth["case"].isin(cases)])
    assert_same_result(batches.result(), whole)
    assert batches.result().intervals()["recall@2"] == whole.intervals()["recall@2"]


def test_a_side_without_rows_does_not_hide_whose_cases_they_are():
    truth = pd.DataFrame({"case": [1, 2, 3], "user": list("xxy"), "item": [6, 5, 9]})
    lists = truth.assign(rank=1)
    batches = recsys.Evaluator(["recall@1"])
    batches.update(lists[:0], truth[:1]).update(lists[1:], truth[1:2])
    assert batches.result().per_case.clusters.tolist() == ["x", "x", "y"]


def test_a_case_without_a_user_is_an_error():
    lists = pd.DataFrame({"case": [1, 2, 9], "item": [5, 6, 7], "rank": 1})
    truth = pd.DataFrame({"case": [1, 2], "user": ["x", "x"], "item": [6, 5]})
    with pytest.raises(InputError, match="case 9 has no user"):
        recsys.evaluate(lists, truth, ["recall@1"])
    named = recsys.evaluate(lists, truth, ["recall@1"], clusters={1: "x", 2: "x", 9: "y"})
    assert named.per_case.clusters.tolist() == ["x", "x", "y"]
    batches = recsys.Evaluator(["recall@1"]).update(lists[:2], truth)
    with pytest.raises(MergeError, match="some parts have users"):
        batches.update(lists[2:], truth[:0])
    assert len(batches.result().per_case) == 2


def test_weights_are_not_lost_where_some_parts_have_none():
    weighted = recsys.evaluate({1: [2], 3: [4]}, {1: [2]}, ["mrr"], case_weights={1: 1.0, 3: 2.0})
    with pytest.raises(MergeError, match="weights"):
        weighted.merge(recsys.evaluate({2: [2]}, {2: [2]}, ["mrr"]))


@pytest.mark.parametrize("text", [False, True])
def test_a_user_met_twice_is_an_error_at_once(text):
    name = "user {:03d}".format if text else int
    batches = recsys.Evaluator(["mrr"])
    for start in range(0, 60, 4):
        batches.update({name(start + at): [1] for at in range(4)}, {name(start): [1]})
    expected = dict(batches.result())
    for again in (0, 17, 59):
        with pytest.raises(MergeError, match=f"user {name(again)!r} is in two"):
            batches.update({name(again): [1], name(100): [2]}, {})
    other = recsys.Evaluator(["mrr"]).update({}, {name(17): [3]})
    with pytest.raises(MergeError, match=f"user {name(17)!r} is in two"):
        batches.merge(other)
    with pytest.raises(MergeError, match="different types"):
        batches.update({7 if text else "7": [1]}, {})
    assert dict(batches.result()) == expected
    assert len(batches.result().per_case) == 60


def test_columns_are_checked_although_there_are_no_rows():
    batches = recsys.Evaluator(["mrr"])
    with pytest.raises(ColumnError, match="recognised as the item"):
        batches.update(pd.DataFrame({"user": [], "thing": []}), {})
    batches.update(pa.table({"user": pa.array([], pa.string()), "item": pa.array([], pa.int64())}), {})
    with pytest.raises(InputError, match="nothing has been evaluated"):
        batches.result()
    with pytest.raises(InputError, match="no rows"):
        recsys.evaluate({1: [2]}, pd.DataFrame({"user": [], "item": []}), ["mrr"])
    with pytest.raises(InputError, match="lists is empty"):
        recsys.evaluate({}, {1: [2]}, ["mrr"])


def test_what_was_given_for_all_users_does_not_come_again():
    model, truth = recsys.Scores(np.eye(3)), {0: [1]}
    for name in ("seen", "eligible"):
        batches = recsys.Evaluator(["mrr"], **{name: {0: [1, 2]}})
        with pytest.raises(InputError, match=f"{name}= was given for all users"):
            batches.update(model, truth, **{name: {0: [2]}})
    whole = recsys.evaluate(model, {0: [1], 2: [0]}, ["mrr"], eligible={0: [1, 2], 2: [0, 1]})
    batches = recsys.Evaluator(["mrr"]).update(model, truth, eligible={0: [1, 2]})
    assert_same_result(batches.update(model, {2: [0]}, eligible={2: [0, 1]}).result(), whole)


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("stop_when", InputError, "all users at once"),
        ("progress", InputError, "after each update"),
        ("trian", UnknownNameError, "mean 'train'"),
        ("sen", UnknownNameError, "mean 'seen'"),
    ],
)
def test_a_keyword_that_is_not_taken_is_named(name, error, words):
    with pytest.raises(error, match=words):
        recsys.Evaluator(["hit@1"], **{name: {1: [2]}})


def test_inputs_are_read_once():
    class Counted(dict):
        reads = 0

        def items(self):
            Counted.reads += 1
            return super().items()

        def values(self):
            Counted.reads += 1
            return super().values()

    batches = recsys.Evaluator(["novelty@1"], train=Counted({1: [3], 2: [3, 4]}))
    reads = Counted.reads
    batches.update({1: [3]}, {1: [3]}).update({2: [4]}, {2: [4]})
    assert Counted.reads == reads > 0
    once = iter([2])
    model, truth = recsys.Scores(np.eye(3) + 1), {user: [0] for user in range(3)}
    whole = recsys.evaluate(model, truth, ["mrr"], exclude=[2])
    batches = recsys.Evaluator(["mrr"], exclude=once)
    for user in truth:
        batches.update(model, {user: [0]})
    assert_same_result(batches.result(), whole)


def test_a_model_as_reference_is_ranked_once_for_all_batches():
    rng = np.random.default_rng(3)
    model, other = (
        recsys.Factors(rng.standard_normal((6, 2)), rng.standard_normal((9, 2))) for _ in range(2)
    )
    truth = {user: [user, user + 2] for user in range(6)}
    metrics = [f"{name}@3" for name, metric in METRICS.items() if "reference" in metric.needs]
    metrics = [name for name in metrics if not {"train", "embeddings"} & set(METRICS[name[:-2]].needs)]
    assert metrics
    whole = recsys.evaluate(model, truth, metrics, reference=other)
    batches = recsys.Evaluator(metrics, reference=other)
    for user, items in truth.items():
        batches.update(model, {user: items})
    assert_same_result(batches.result(), whole)
    with pytest.raises(InputError, match="Give the reference its ids"):
        batches.update({77: [1]}, {77: [1]})


def test_a_model_that_recommends_is_asked_for_each_batch():
    class Model:
        def recommend(self, user, k):
            return [user, user + 1, 3][:k]

    truth = {user: [3, user] for user in range(5)}
    batches = recsys.Evaluator(["ndcg@3"])
    for users in ((0, 1), (), (2, 3, 4)):
        batches.update(Model(), {user: truth[user] for user in users})
    assert_same_result(batches.result(), recsys.evaluate(Model(), truth, ["ndcg@3"]))


def test_weights_of_a_batch_may_be_zero_but_not_all():
    weights = {1: 0.0, 2: 0.0, 3: 2.0}
    batches = recsys.Evaluator(["mrr"], case_weights=weights)
    batches.update({1: [5]}, {1: [5]}).update({2: [4]}, {2: [6]})
    with pytest.raises(InputError, match="every weight"):
        batches.result()
    assert batches.update({3: [4, 7]}, {3: [7]}).result()["mrr"] == 0.5


def test_the_highest_grade_must_be_said():
    batches = recsys.Evaluator(["err@2"])
    with pytest.raises(ConventionError, match="highest grade"):
        batches.update({1: [2]}, {1: {2: 3.0}})
    with pytest.raises(ConventionError, match=r"and sdcg@2, sdcg@3 need it"):
        recsys.Evaluator(["sdcg@2", "sdcg@3", "mrr"]).update({1: [2]}, {1: {2: 3.0}})


def lists_of(users: range, length: int) -> dict[int, list[int]]:
    return {user: [user % 7 + at for at in range(length)] for user in users}


def test_a_caution_stays_where_half_of_the_users_give_cause():
    short, long = lists_of(range(10), 3), lists_of(range(10, 16), 12)
    truth = {user: [user % 7, 40] for user in range(40)}

    def cautions(*batches: dict[int, list[int]]) -> dict[str, str]:
        evaluator = recsys.Evaluator(["recall@11"])
        for lists in batches:
            evaluator.update(lists, {user: truth[user] for user in lists})
        return {one.code: one.sentence for one in evaluator.update({}, {}).result().cautions}

    (alone,) = recsys.evaluate(short, {u: truth[u] for u in short}, ["recall@11"]).cautions
    assert cautions(short) == {alone.code: alone.sentence}
    assert cautions(long, short) == {alone.code: f"in the largest such batch, {alone.sentence}"}
    assert cautions(long, lists_of(range(20, 24), 2), short)[alone.code].endswith(alone.sentence)
    assert cautions(lists_of(range(3), 3), long) == {}
    silent = recsys.Evaluator(["recall@11"], cautions="ignore").update(short, truth)
    assert silent.result().cautions == ()


def test_notes_add_up():
    lists = pd.DataFrame({"user": [1, 2, 3, 3], "item": [4, 4, 5, 6], "rank": [1, 1, 1, 2]})
    truth = pd.DataFrame({"user": [1, 1, 2, 3, 3], "item": [4, 4, 9, 5, 5]})
    whole = recsys.evaluate(lists, truth, ["mrr"])
    batches = recsys.Evaluator(["mrr"]).update(lists[:0], truth[:0])
    for user in (1, 2, 3):
        batches.update(of_users(lists, [user]), of_users(truth, [user]))
    assert whole.notes["truth"]["repeated_rows"] == 2
    assert batches.result().notes == whole.notes


def test_a_piece_may_be_measured_without_being_kept():
    names = "abcdefghi"
    lists = dict(zip(names, lists_of(range(9), 3).values(), strict=True))
    truth = {name: [at % 7, 40] for at, name in enumerate(names)}
    asked = {"metrics": ["recall@2", "coverage@2"], "by": {name: name > "c" for name in names}}
    evaluator, whole = recsys.Evaluator(**asked), recsys.evaluate(lists, truth, **asked)
    pieces = []
    for users in (range(0), range(4), range(4, 9)):
        of_piece = [{names[at]: table[names[at]] for at in users} for table in (lists, truth)]
        piece = evaluator.measured(*of_piece)
        pieces.append(piece.partial)
        assert len(piece.partial.rows) == len(users) == len(piece.run.truth.cases)
        assert piece.truth_keys.tolist() == whole.truth_keys[users.start : users.stop].tolist()
    merged = merge(pieces)
    assert merged.counts == whole.counts
    assert merged.rows.columns["recall@2"].tobytes() == whole.values_of("recall@2").tobytes()
    with pytest.raises(InputError, match="nothing has been evaluated"):
        evaluator.result()


def test_an_evaluator_that_has_met_nobody_adds_nobody():
    one, other = recsys.Evaluator("mrr"), recsys.Evaluator("mrr")
    one.update({1: ["b", "a"]}, {1: ["a"]})
    result = one.merge(other).result()
    assert (result["mrr"], result.n_cases["mrr"]) == (0.5, 1)
    assert other.merge(one).result() == result
