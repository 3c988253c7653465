"""What a retriever returns, dicts or objects with an id and a score, and judgements in a folder of BEIR."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import recsys
from recsys.errors import FileError, InputError


@dataclass
class Node:
    """As LlamaIndex has it."""

    node_id: str
    score: float | None = None
    text: str = "x"


@dataclass
class Document:
    """As Haystack has it: the id is a hash of the content."""

    id: str
    score: float | None = None


PLAIN = {"q1": [("d1", 0.5), ("d2", 0.9), ("d3", 0.1)], "q2": [("d2", 0.7)], "q3": []}
TRUTH = {"q1": {"d2": 2, "d4": 1}, "q2": {"d2": 1}, "q3": {"d1": 1}}
METRICS = ["ndcg@2", "recall@3", "mrr@3"]
FORMS = {
    "id": lambda i, s: {"id": i, "score": s, "content": "x"},
    "doc_id": lambda i, s: {"doc_id": i, "score": s},
    "_id": lambda i, s: {"_id": i, "score": s},
    "nodes": Node,
    "documents": Document,
}


def values(lists, truth=TRUTH):
    return dict(recsys.evaluate(lists, truth, METRICS))


@pytest.mark.parametrize("form", FORMS)
def test_documents_are_read_as_pairs(form):
    documents = {query: [FORMS[form](i, s) for i, s in pairs] for query, pairs in PLAIN.items()}
    assert values(documents) == values(PLAIN)
    in_order = list(documents.values())
    assert values(in_order, list(TRUTH.values())) == values(PLAIN)


@pytest.mark.parametrize("form", FORMS)
def test_without_scores_the_order_ranks(form):
    documents = {query: [FORMS[form](i, None) for i, _ in pairs] for query, pairs in PLAIN.items()}
    assert values(documents) == values({query: [i for i, _ in pairs] for query, pairs in PLAIN.items()})


def test_truth_is_read_as_grades():
    for name in ("grade", "relevance", "score"):
        truth = {q: [{"id": i, name: g} for i, g in grades.items()] for q, grades in TRUTH.items()}
        assert values(PLAIN, truth) == values(PLAIN)
    documents = {q: [Document(i, g) for i, g in grades.items()] for q, grades in TRUTH.items()}
    assert values(PLAIN, documents) == values(PLAIN)
    flat = {q: [Document(i) for i in grades] for q, grades in TRUTH.items()}
    assert values(PLAIN, flat) == values(PLAIN, {q: list(grades) for q, grades in TRUTH.items()})


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ({"q1": [Node("d1", 0.5), Node("d2")]}, "document 2 of user q1 has no score"),
        ({"q1": [{"id": "d1"}], "q2": [{"id": "d1"}, {"name": "d2"}]}, "document 2 of user q2 has no id"),
        ({"q1": [{"id": "d1"}], "q2": "d2"}, "user q2 holds str"),
        ({"q1": [{"name": "d1"}]}, "is of type dict"),
        ({"q1": [{"id": "d1", "score": "high"}]}, "score column holds"),
    ],
)
def test_documents_that_cannot_be_read_are_named(lists, words):
    with pytest.raises(InputError, match=words):
        recsys.evaluate(lists, TRUTH, METRICS)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "x"}\n')
    (tmp_path / "qrels").mkdir()
    rows = [f"{q}\t{i}\t{g}\n" for q, grades in TRUTH.items() for i, g in grades.items()]
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return tmp_path


def test_judgements_of_beir_are_read_from_their_folder(folder):
    for truth in (folder, folder / "qrels", folder / "qrels" / "test.tsv"):
        assert values(PLAIN, str(truth)) == values(PLAIN)
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq9\td9\t1\n")
    assert values(PLAIN, str(folder)) == values(PLAIN)


def test_a_folder_of_beir_that_cannot_be_read_is_named(folder):
    with pytest.raises(FileError, match="holds judgements, not lists"):
        recsys.evaluate(str(folder), TRUTH, METRICS)
    test = folder / "qrels" / "test.tsv"
    for name in ("dev", "train"):
        (folder / "qrels" / f"{name}.tsv").write_text(test.read_text())
    test.unlink()
    with pytest.raises(FileError, match=r"dev\.tsv, train\.tsv, and none called test\.tsv"):
        recsys.evaluate(PLAIN, str(folder), METRICS)
    for file in (folder / "qrels").iterdir():
        file.unlink()
    with pytest.raises(FileError, match="a corpus without judgements"):
        recsys.evaluate(PLAIN, str(folder), METRICS)


def test_the_score_of_other_tables_stays_no_grade(tmp_path):
    """Only where the items are those of a corpus is the score of a judgement its grade."""
    (tmp_path / "truth.tsv").write_text("user\titem\tscore\nq1\td2\t2\nq1\td4\t1\n")
    truth = {"q1": ["d2", "d4"]}
    assert values(PLAIN, str(tmp_path / "truth.tsv")) == values(PLAIN, truth)
