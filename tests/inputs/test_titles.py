"""Titles that a model wrote, and the items they are."""

import pandas as pd
import pytest

import recsys
from recsys.errors import InputError, UnknownNameError

FILMS = {
    "Matrix, The (1999)": 1, "Amélie (Fabuleux destin d'Amélie Poulain, Le) (2001)": 2, "Toy Story (1995)": 3,
    "Hamlet (1990)": 5, "Hamlet (1996)": 6, "Toy Story 2 (1999)": 4,
    "Good, the Bad and the Ugly, The (1966)": 7,
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "text", "items"),
    [
        ("exact", "Toy Story (1995)", [3]),
        ("exact", "toy story (1995)", []),
        ("normalised", "the  MATRIX", [1]),
        ("normalised", "The Matrix (1999)", [1]),
        ("normalised", "Toy Story", [3]),
        ("normalised", "Toy-Story 2!", [4]),
        ("normalised", "hamlet", [5, 6]),
        ("normalised", "The Good, the Bad and the Ugly", [7]),
        ("normalised", "Amelie (Fabuleux destin d\u2019Amelie Poulain, Le)", [2]),
        ("normalised", "Toy", []),
        ("tokens", "good bad and the ugly", [7]),
        ("tokens", "Story of a Toy", []),
        ("tokens", "2: Toy Story", [4]),
        ("tokens", "", []),
    ],
)
def test_each_rule(rule, text, items):
    assert recsys.titles(FILMS, rule=rule).resolve(text) == items


def test_the_threshold_is_the_share_of_words_in_common():
    table = {"e b c d": 1, "e b c x": 2, "p q": 3}
    assert recsys.titles(table, rule="tokens", threshold=0.6).resolve("e b c") == [1, 2]
    assert recsys.titles(table, rule="tokens", threshold=0.75).resolve("e b c") == [1, 2]
    assert recsys.titles(table, rule="tokens", threshold=0.76).resolve("e b c") == []
    assert recsys.titles(table, rule="tokens", threshold=0.5).resolve("p q r s") == [3]


def test_lists_of_titles_are_lists_of_items():
    lists = {"u": ["The Matrix", "Hamlet", "The Matrix Resurrected"], "v": ["Toy Story"]}
    table = pd.DataFrame({"movieId": FILMS.values(), "title": FILMS.keys()})
    titles = recsys.titles(table, rule="normalised")
    assert repr(titles) == "titles(7 of 7 items, rule='normalised')"
    asked = {"items_of": titles, "conventions": {"ties": "expected"}}
    result = recsys.evaluate(lists, {"u": [6], "v": [3]}, ["hit@2", "valid@4"], **asked)
    assert result.per_user["hit@2"].tolist() == [0.5, 1]
    assert result.per_user["valid@4"].tolist() == [0.75, 1]
    read = result.notes["lists"]
    assert read["unknown_entries"] == ("The Matrix Resurrected",)
    assert read["shared_entries"] == ("Hamlet",)


def test_bad_titles_are_named():
    with pytest.raises(UnknownNameError, match="normalised"):
        recsys.titles(FILMS, rule="normalized")
    with pytest.raises(InputError, match="titles is empty"):
        recsys.titles({})
    with pytest.raises(InputError, match="threshold= is not above 0"):
        recsys.titles(FILMS, rule="tokens", threshold=0)
    with pytest.raises(InputError, match="titles must be text"):
        recsys.titles({7: 1})
    with pytest.raises(InputError, match="titles came as int"):
        recsys.titles(7)
