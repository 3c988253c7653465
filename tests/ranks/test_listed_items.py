"""Lists of codes, chunks and titles against every order of the items that they stand for."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.errors import ColumnError, InputError

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
ITEMS = "abcdef"
METRICS = ["hit@1", "hits@2", "recall@3", "mrr@2", "map@3", "ndcg@3", "precision@2"]


@st.composite
def generated(draw, several=True):
    """A table of entries, lists of them with repeats, unknown ones and maybe scores, and what users had."""
    size = st.lists(st.sampled_from(ITEMS), min_size=1, max_size=3 if several else 1, unique=True)
    table = {f"e{n}": draw(size) for n in range(draw(st.integers(1, 5)))}
    entries = st.lists(st.sampled_from([*table, "bad"]), min_size=1, max_size=4)
    lists = {user: draw(entries) for user in (1, 2)}
    lists[3] = [next(iter(table))]  # some entry is known
    if draw(st.booleans()):
        score = st.sampled_from([3.0, 2.0, 1.0])
        scored = {user: [(entry, draw(score)) for entry in entries] for user, entries in lists.items()}
        lists = {user: sorted(pairs, key=lambda pair: -pair[1]) for user, pairs in scored.items()}
    relevant = st.sets(st.sampled_from([*ITEMS, "z"]), min_size=1, max_size=3)
    truth = {user: draw(relevant) for user in (1, 2)} | {3: {table[lists_first(lists)][0]}}
    seen = {user: draw(st.sets(st.sampled_from(ITEMS), max_size=2)) for user in (1, 2)}
    return table, lists, truth, {user: items for user, items in seen.items() if items}


def lists_first(lists):
    first = lists[3][0]
    return first[0] if isinstance(first, tuple) else first


def groups_of(entries, table, taken_out):
    """The groups of tied items of one list, best first."""
    groups, first = [], {}
    for place, entry in enumerate(entries):
        name, score = entry if isinstance(entry, tuple) else (entry, -place)
        items = table.get(name, [f"{name} (no item)"])
        left = []
        for item in (i for i in items if i not in taken_out):
            if item not in first:
                first[item] = len(items) > 1
            elif len(items) > 1 or first[item]:
                continue
            left.append(item)
        if groups and groups[-1][0] == score:
            groups[-1][1].extend(left)
        else:
            groups.append((score, left))
    return [items for _, items in groups]


def values(order, relevant):
    """The metrics of one list of items by their definitions, exactly but for ndcg; a repeat is a miss."""
    gain = [int(item in relevant and item not in order[:at]) for at, item in enumerate(order)] + [0] * 3
    places = [at + 1 for at, one in enumerate(gain) if one]
    ideal = sum(1 / math.log2(r + 1) for r in range(1, min(3, len(relevant)) + 1))
    return {
        "hit@1": gain[0],
        "hits@2": sum(gain[:2]),
        "recall@3": Fraction(sum(gain[:3]), len(relevant)),
        "mrr@2": Fraction(1, places[0]) if places and places[0] <= 2 else 0,
        "map@3": Fraction(sum(Fraction(sum(gain[:r]), r) for r in places if r <= 3), min(3, len(relevant))),
        "ndcg@3": sum(1 / math.log2(r + 1) for r in places if r <= 3) / ideal,
        "precision@2": Fraction(sum(gain[:2]), 2),
    }


def orders(groups):
    return [[i for g in chosen for i in g] for chosen in product(*(permutations(g) for g in groups))]


@pytest.mark.parametrize("ties", ["expected", "best", "worst", "given"])
@given(world=generated(), exclude=st.sets(st.sampled_from(ITEMS), max_size=1))
def test_a_group_is_judged_over_all_its_orders(ties, world, exclude):
    table, lists, truth, seen = world
    options = {"seen": seen} if seen else {}
    options |= {"exclude": sorted(exclude)} if exclude else {}
    result = recsys.evaluate(
        lists, truth, METRICS, items_of=table, conventions={"ties": ties, "duplicates": "collapse"}, **options
    )
    for user in lists:
        groups = groups_of(lists[user], table, seen.get(user, set()) | exclude)
        once, above = [], set()
        for group in groups:
            once.append([i for i in dict.fromkeys(group) if i not in above])
            above |= set(group)
        tried = orders(once) if ties != "given" else [[i for g in once for i in g]]
        found = [values(order, truth[user]) for order in tried]
        for name in METRICS:
            column = [one[name] for one in found]
            wanted = {"best": max, "worst": min}.get(ties, lambda v: sum(v) / len(v))(column)
            assert math.isclose(result.per_user[name][user], wanted, abs_tol=1e-12), (user, name)


@given(world=generated(several=False), duplicates=st.sampled_from(["first", "collapse"]))
def test_chunks_of_one_document_are_repeats(world, duplicates):
    table, lists, truth, _ = world
    result = recsys.evaluate(
        lists, truth, METRICS, items_of=table, conventions={"ties": "given", "duplicates": duplicates}
    )
    for user in lists:
        order = [item for group in groups_of(lists[user], table, ()) for item in group]
        wanted = values(order if duplicates == "first" else list(dict.fromkeys(order)), truth[user])
        for name in METRICS:
            assert math.isclose(result.per_user[name][user], wanted[name], abs_tol=1e-12), (user, name)


@given(world=generated())
def test_a_table_of_pairs_is_the_mapping(world):
    table, lists, truth, _ = world
    pairs = pd.DataFrame([(i, e) for e, items in table.items() for i in items], columns=["item_id", "code"])
    asked = {"conventions": {"ties": "expected", "duplicates": "collapse"}, "metrics": METRICS}
    by_table = recsys.evaluate(lists, truth, items_of=pairs, **asked)
    assert dict(by_table) == dict(recsys.evaluate(lists, truth, items_of=table, **asked))


def test_one_code_for_all_items_scores_as_chance():
    items = [f"i{n:02}" for n in range(40)]
    lists, truth = {u: ["all"] for u in range(20)}, {u: [items[u], items[-1 - u]] for u in range(20)}
    result = recsys.evaluate(
        lists, truth, ["hit@10", "recall@10"], items_of={"all": items}, conventions={"ties": "expected"}
    )
    assert result["recall@10"] == pytest.approx(10 / 40)
    assert result["hit@10"] == pytest.approx(1 - 30 * 29 / (40 * 39))
    assert result.notes["of_entries"] == {"hit@10": 1.0, "recall@10": 1.0}
    assert "if entries were the items: hit@10 1.0000, recall@10 1.0000" in str(result)
    assert [one.code for one in result.cautions] == ["codes_of_several_items"]


def test_codes_of_parts_and_their_prefixes():
    table = {(1, 1): "a", (1, 2): "b", (2, 1): ["c", "d"]}
    truth = {1: ["b"], 2: ["c"]}
    asked = {"items_of": table, "conventions": {"ties": "expected"}, "metrics": ["hit@1", "hit@2"]}
    by_tuples = recsys.evaluate({1: [(1,), (2, 1)], 2: [(9, 9), (2, 1)]}, truth, **asked)
    assert by_tuples.per_user["hit@1"].tolist() == [0.5, 0]
    assert by_tuples.per_user["hit@2"].tolist() == [1, 0.5]
    whole = np.array([[[1, 2], [2, 1]], [[2, 1], [1, 1]]])
    by_array = recsys.evaluate(whole, {0: ["b"], 1: ["c"]}, **asked)
    assert by_array.per_user["hit@1"].tolist() == [1, 0.5]
    pairs = {1: [((1, 1), 0.5), ((1, 2), 2.0)], 2: [((2, 1), 1.0)]}
    scored = recsys.evaluate(pairs, truth, **asked)
    by_code = {user: dict(entries) for user, entries in pairs.items()}
    assert dict(recsys.evaluate(by_code, truth, **asked)) == dict(scored)
    assert scored.per_user["hit@1"].tolist() == [1, 0.5]


def test_an_unknown_entry_takes_a_place_and_is_not_valid():
    lists, truth = {1: ["what", "x"], 2: ["x", "x"]}, {1: [7], 2: [7]}
    result = recsys.evaluate(lists, truth, ["hit@1", "hit@2", "valid@2"], items_of={"x": 7, "y": 8})
    assert result.per_user["hit@1"].tolist() == [0, 1]
    assert result.per_user["hit@2"].tolist() == [1, 1]
    assert result.per_user["valid@2"].tolist() == [0.5, 0.5]
    read = result.notes["lists"]
    assert (read["entries"], read["entries_without_item"], read["unknown_entries"]) == (4, 1, ("what",))
    assert "4 entries listed: 1 without an item" in str(result)


def test_beams_that_repeat_are_counted_and_take_no_place():
    lists, truth = {1: ["x", "x", "y"], 2: ["y", "x"]}, {1: ["c"], 2: ["a"]}
    result = recsys.evaluate(
        lists, truth, ["hit@3"], items_of={"x": ["a", "b"], "y": "c"}, conventions={"ties": "expected"}
    )
    assert result["hit@3"] == 1
    read = result.notes["lists"]
    assert (read["entries_repeated"], read["entries_used_up"], read["entries_of_several"]) == (1, 1, 3)
    assert "3 of several items; 1 repeated; 1 with nothing left" in str(result)


def test_nested_dicts_of_many_users_are_read_like_lists():
    table = {"x": ["a", "b"], "y": "c", "z": "d"}
    lists = {f"u{n}": {"x": 3.0, "y": float(n % 4), "q": 1.5} for n in range(40)}
    truth = {f"u{n}": {"abcd"[n % 4]: 1} for n in range(40)}
    asked = {"items_of": table, "conventions": {"ties": "expected"}, "metrics": ["hit@1", "ndcg@3"]}
    pairs = {user: [*scores.items()] for user, scores in lists.items()}
    assert dict(recsys.evaluate(lists, truth, **asked)) == dict(recsys.evaluate(pairs, truth, **asked))
    chunks = recsys.evaluate(lists, truth, ["hit@1"], items_of={"x": "a", "y": "c", "z": "d"})
    assert chunks["hit@1"] == 0.25


def test_users_in_batches_give_the_same():
    table = {"x": ["a", "b"], "y": ["c"], "z": ["d", "e", "f"]}
    lists = {n: [["x", "q"], ["y", "z"], ["q"], ["z", "x", "y"]][n % 4] for n in range(12)}
    truth = {n: [ITEMS[n % 6], ITEMS[(n + 2) % 6]] for n in range(12)}
    options = {"items_of": table, "conventions": {"ties": "expected"}}
    whole = recsys.evaluate(lists, truth, ["recall@2", "coverage@2"], **options)
    pieces = recsys.Evaluator(["recall@2", "coverage@2"], **options)
    for users in (range(5), [6], range(7, 12), [5]):
        pieces.update({u: lists[u] for u in users}, {u: truth[u] for u in users})
    assert dict(pieces.result()) == dict(whole)


@pytest.mark.parametrize(
    ("table", "lists", "words"),
    [
        ({}, {1: ["x"]}, "items_of is empty"),
        (pd.DataFrame({"item": [], "code": []}), {1: ["x"]}, "no rows"),
        ({"x": []}, {1: ["x"]}, "'x' stands for no item"),
        ({"x": {"a", "b"}}, {1: ["x"]}, "came as set"),
        ({"y": "a"}, {1: ["x"]}, r"no entry of the lists \('x', …\) is in items_of \('y', …\)"),
        ({"a": "x"}, {1: ["x"]}, r"turn it round, \{entry: items\}"),
        ({7: "a"}, {1: ["7"]}, "Its entries are int, those of the lists str"),
        ({"x": "doc9"}, {1: ["x"]}, r"no item of items_of \('doc9', …\) occurs in the truth"),
        ({(1, 2): "a", (1,): "b"}, {1: [(1, 2)]}, "have 2 and 1 parts"),
        ({(1, 2): "a", "x": "b"}, {1: [(1, 2)]}, "is not a tuple of parts"),
        ({(1, 2): "a", (2, 1): "a"}, {1: [(1, 2)]}, r"'a' has two codes, \(1, 2\) and \(2, 1\)"),
        (7, {1: ["x"]}, "items_of came as int"),
    ],
)
def test_bad_tables_are_named(table, lists, words):
    with pytest.raises(InputError, match=words):
        recsys.evaluate(lists, {1: ["a"]}, ["hit@1"], items_of=table)


def test_other_bad_input_is_named():
    with pytest.raises(ColumnError, match="no column was recognised as the entry"):
        recsys.evaluate(
            {1: ["x"]}, {1: ["a"]}, ["hit@1"], items_of=pd.DataFrame({"item": ["a"], "p": ["x"], "q": ["y"]})
        )
    with pytest.raises(InputError, match="the model ranks items already"):
        recsys.evaluate(recsys.Scores(np.eye(2)), {0: [1]}, ["hit@1"], items_of={0: 1})
    gaps = pd.DataFrame({"user": [1, 1], "item": ["x", "y"], "rank": [1, 3]})
    with pytest.raises(InputError, match="leave ranks out"):
        recsys.evaluate(gaps, {1: ["a"]}, ["hit@1"], items_of={"x": ["a", "b"], "y": "c"})
