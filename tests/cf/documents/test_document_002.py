"""Document 002: every code block runs as written and gives the results the document states.

The fences are read from the document, in order. A block that uses the API is executed verbatim with the names
it leaves undefined supplied; one that defines a function is an oracle that our function must agree with; the
one that is not valid Python (it ends in a bare `with`) is completed.
"""

from __future__ import annotations

import heapq
import math
import re
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.errors import TieWarning

torch = pytest.importorskip("torch")

from NCF_evaluation import NCFEvaluator  # noqa: E402
from recsys.models import GMF  # noqa: E402

pytestmark = pytest.mark.shared

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TABLE = ["formula", "oracle", "formula", "oracle", "fixed", "run", "run", "run"]
N_USERS, N_ITEMS, N_NEGATIVES = 30, 200, 99


@pytest.fixture(scope="module")
def fences(shared_dir):
    (path,) = (shared_dir / "seeds").glob("002_*.txt")
    return [code for _, code in FENCE.findall(path.read_text("utf-8"))]


@pytest.fixture
def model():
    network = GMF(N_USERS, N_ITEMS, factors=8, seed=3)
    with torch.no_grad():
        network.users.weight.mul_(100)
    return network


@pytest.fixture
def cases():
    rng = np.random.default_rng(1)
    return np.stack([rng.choice(N_ITEMS, 1 + N_NEGATIVES, replace=False) for _ in range(N_USERS)])


@pytest.fixture
def files(tmp_path, monkeypatch, cases):
    """The two CSV files the document names, in the layout of the dataset they come from."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{user},{row[0]},5,{978300760 + user}" for user, row in enumerate(cases)]
    (tmp_path / "test_data.csv").write_text("UserID,ItemID,Rating,Timestamp\n" + "\n".join(rows) + "\n")
    rows = [f'{user},{row[0]},"{row[1:].tolist()}"' for user, row in enumerate(cases)]
    (tmp_path / "test_negative_data.csv").write_text("UserID,ItemID,NegativeItems\n" + "\n".join(rows) + "\n")
    return tmp_path


def oracle(code, name):
    """A method the document defines, as a function of (ranklist, item)."""
    names = {"math": math}
    exec(textwrap.dedent(code), names)  # noqa: S102
    return lambda ranklist, item: names[name](None, ranklist, item)


def as_described(fences, model, cases, k, device="cpu"):
    """The evaluation built from the blocks of the document, one case at a time."""
    hit, ndcg = oracle(fences[1], "getHitRate"), oracle(fences[3], "getNDCG")
    hits, ndcgs = [], []
    self = SimpleNamespace(model=model, device=device, top_k=k)
    with torch.no_grad():
        for user, row in enumerate(cases):
            names = {
                "self": self, "torch": torch, "heapq": heapq, "user": torch.tensor(user),
                "pos_item": int(row[0]), "neg_items": torch.from_numpy(row[1:]),
            }  # fmt: skip
            exec(fences[5], names)  # noqa: S102
            hits.append(hit(names["ranklist"], row[0]))
            ndcgs.append(ndcg(names["ranklist"], row[0]))
    return hits, ndcgs


def test_every_fence_has_its_row(fences):
    assert len(fences) == len(TABLE)


@given(st.lists(st.integers(0, 12), unique=True, max_size=12), st.integers(0, 12))
def test_the_two_methods_are_those_of_the_document(shared_dir, ranklist, item):
    (path,) = (shared_dir / "seeds").glob("002_*.txt")
    codes = [code for _, code in FENCE.findall(path.read_text("utf-8"))]
    ours = NCFEvaluator(None, [])
    assert ours.getHitRate(ranklist, item) == oracle(codes[1], "getHitRate")(ranklist, item)
    assert ours.getNDCG(ranklist, item) == pytest.approx(oracle(codes[3], "getNDCG")(ranklist, item))


def test_the_model_is_prepared(fences, model):
    code = fences[4]
    with pytest.raises(SyntaxError):
        compile(code, "document", "exec")
    code = code.rstrip() + "\n    pass\n"
    exec(code, {"self": SimpleNamespace(model=model), "torch": torch})  # noqa: S102
    assert not model.training


def test_basic_evaluation_runs_as_written(fences, files, model, cases, capsys):
    names = {"trained_model": model}
    exec(fences[6], names)  # noqa: S102
    hits, ndcgs = as_described(fences, model, cases, 10)
    assert names["hits"] == hits
    assert names["ndcgs"] == pytest.approx(ndcgs)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [f"Hit Rate @10: {np.mean(hits):.4f}", f"NDCG @10: {np.mean(ndcgs):.4f}"]


def test_integration_with_training_runs_as_written(fences, files, model, capsys):
    from ml_1m_dataset import NCFTestDataset

    test_dataset = NCFTestDataset("test_data.csv", "test_negative_data.csv")
    names = {"NCFEvaluator": NCFEvaluator, "model": model.train(), "test_dataset": test_dataset, "epoch": 3}
    exec(fences[7], names)  # noqa: S102
    assert re.fullmatch(r"Epoch 3: HR=0\.\d{4}, NDCG=0\.\d{4}\n", capsys.readouterr().out)
    assert model.training


def test_the_batch_block_takes_the_datasets_own_entries(fences, files, model):
    from ml_1m_dataset import NCFTestDataset

    user, pos_item, neg_items = NCFTestDataset("test_data.csv", "test_negative_data.csv")[4]
    names = {
        "self": SimpleNamespace(model=model.eval(), device="cpu", top_k=10), "torch": torch, "heapq": heapq,
        "user": user, "pos_item": pos_item, "neg_items": neg_items,
    }  # fmt: skip
    with torch.no_grad():
        exec(fences[5], names)  # noqa: S102
    assert len(names["ranklist"]) == 10
    assert len(names["scores"]) == N_NEGATIVES + 1


def test_a_constant_model_scores_as_chance_does_unless_ties_are_best(fences, cases):
    def constant(users, items):
        del users
        return torch.zeros(len(items))

    rows = [(user, int(row[0]), row[1:]) for user, row in enumerate(cases)]
    described = as_described(fences, constant, cases, 10)[0]
    assert described == [1] * N_USERS  # the positive is listed first, and ties keep the order
    with pytest.warns(TieWarning, match="30 of 30 positives"):
        hits, _ = NCFEvaluator(constant, rows).evaluate()
    assert hits == pytest.approx([0.1] * N_USERS)
    with pytest.warns(TieWarning):
        best, _ = NCFEvaluator(constant, rows, ties="best").evaluate()
    assert best == described
