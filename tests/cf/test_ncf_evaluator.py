"""NCFEvaluator: ranks equal those of a plain loop, for any kind of model and test set."""

from __future__ import annotations

import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.errors import CutoffError, InputError, TieWarning, UnknownNameError
from recsys.evaluation.candidates import Candidates, evaluate_candidates
from recsys.ranks.sources.candidate_sets import read_candidates

torch = pytest.importorskip("torch")

from recsys.cf.evaluation import NCFEvaluator, NCFTestDataset  # noqa: E402
from recsys.models import GMF, MLP  # noqa: E402


def random_cases(n=40, n_items=60, n_negatives=9, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.choice(n_items, 1 + n_negatives, replace=False) for _ in range(n)])
    return rng.permutation(n), rows[:, 0], rows[:, 1:]


def with_spread_scores(model):
    """Scale the weights, so that scores differ."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(20)
    return model


def ranks_by_hand(own, others, duplicates, item, items):
    """(best place, worst place, number of candidates) of one positive, counted by hand."""
    seen, scores = set(), []
    for score, negative in zip(others, items, strict=True):
        if duplicates == "collapse" and (negative == item or negative in seen):
            continue
        seen.add(negative)
        scores.append(math.inf if negative == item else score)
    above, equal = sum(s > own for s in scores), sum(s == own for s in scores)
    return above + 1, above + 1 + equal, len(scores) + 1


@st.composite
def small_tests(draw):
    n_cases = draw(st.integers(1, 6))
    ragged = draw(st.booleans())
    width = draw(st.integers(1, 6))
    rows = [
        draw(st.lists(st.integers(0, 8), min_size=1 if ragged else width, max_size=6 if ragged else width))
        for _ in range(n_cases)
    ]
    users = draw(st.lists(st.integers(0, 9), min_size=n_cases, max_size=n_cases, unique=draw(st.booleans())))
    positives = draw(st.lists(st.integers(0, 8), min_size=n_cases, max_size=n_cases))
    return users, positives, rows


@given(small_tests(), st.sampled_from(["collapse", "pessimistic"]), st.integers(0, 5))
def test_counting_is_what_a_loop_over_cases_finds(world, duplicates, seed):
    users, positives, rows = world
    table = np.random.default_rng(seed).integers(0, 4, (10, 9)).astype(np.float32)
    cases = Candidates.of(users, positives, rows)
    counted = cases.judge(lambda u, i: table[u, i], duplicates=duplicates)
    for at, (user, item, row) in enumerate(zip(users, positives, rows, strict=True)):
        place = at if len(set(users)) < len(users) else sorted(users).index(user)
        others = [table[user, negative] for negative in row]
        first, last, n = ranks_by_hand(table[user, item], others, duplicates, item, row)
        assert counted.above[place] + 1 == first
        assert counted.above[place] + counted.tied[place] == last
        assert counted.n_candidates[place] == n


def test_scores_and_a_model_that_returns_them_agree():
    users, positives, negatives = random_cases()
    table = np.random.default_rng(1).random((40, 60))
    matrix = table[users[:, None], np.c_[positives, negatives]]
    cases = Candidates.of(users, positives, negatives)
    by_model = evaluate_candidates(lambda u, i: torch.as_tensor(table)[u, i], cases, ["mrr", "auc"])
    assert by_model == evaluate_candidates(matrix, cases, ["mrr", "auc"])
    assert by_model == evaluate_candidates((matrix[:, 0], matrix[:, 1:]), cases, ["mrr", "auc"])


def test_every_metric_is_the_one_evaluate_gives_on_complete_lists():
    users, positives, negatives = random_cases()
    table = np.random.default_rng(2).random((40, 60))
    cases = Candidates.of(users, positives, negatives)
    result = NCFEvaluator(lambda u, i: torch.as_tensor(table)[u, i], cases).evaluate_all()
    lists = {
        int(u): sorted(map(int, (p, *row)), key=lambda i, u=u: -table[u, i])
        for u, p, row in zip(users, positives, negatives, strict=True)
    }  # fmt: skip
    truth = {int(u): {int(p)} for u, p in zip(users, positives, strict=True)}
    whole = recsys.evaluate(lists, truth, list(result), full_ranking=True)
    assert {m: pytest.approx(v) for m, v in whole.items()} == dict(result)
    assert {"hit@10", "ndcg@5", "mrr", "auc", "average_rank", "pauc@5"} <= set(result)
    assert len(result.per_user) == 40
    interval = result.intervals(metrics=["ndcg@10"])["ndcg@10"].interval
    assert interval.low < result["ndcg@10"] < interval.high


def test_values_come_in_the_order_of_the_test_set():
    users, positives, negatives = random_cases()
    table = np.random.default_rng(2).random((40, 60))
    scorer = lambda u, i: torch.as_tensor(table)[u, i]  # noqa: E731
    hits, ndcgs = NCFEvaluator(scorer, Candidates.of(users, positives, negatives), top_k=3).evaluate()
    for at, (u, p, row) in enumerate(zip(users, positives, negatives, strict=True)):
        above = int((table[u, row] > table[u, p]).sum())
        assert hits[at] == (above < 3)
        assert ndcgs[at] == pytest.approx(1 / math.log2(above + 2) if above < 3 else 0)


def as_dataset(rows):
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return len(rows)

        def __getitem__(self, at):
            return rows[at]

    return Rows()


@pytest.mark.parametrize("batch", [None, 1, 7, 9])
@pytest.mark.parametrize("kind", ["tensors", "numbers", "one-element tensors"])
def test_any_dataset_loader_or_iterable_is_read_alike(batch, kind):
    users, positives, negatives = random_cases()
    rows = list(zip(users.tolist(), positives.tolist(), negatives.tolist(), strict=True))
    if kind == "tensors":
        rows = [(torch.tensor(u), p, torch.tensor(n)) for u, p, n in rows]
    if kind == "one-element tensors":
        rows = [(torch.tensor([u]), torch.tensor([p]), torch.tensor(n)) for u, p, n in rows]
    data = as_dataset(rows)
    if batch:
        data = torch.utils.data.DataLoader(data, batch_size=batch)
    for test_set in (data, rows, (row for row in rows)):
        read = read_candidates(test_set)
        assert read.users.tolist() == users.tolist()
        assert read.items.tolist() == positives.tolist()
        assert read.negatives.reshape(-1, 9).tolist() == negatives.tolist()


def test_a_dataset_without_a_length_ends_where_it_says():
    class Endless(torch.utils.data.Dataset):
        def __getitem__(self, at):
            if at == 3:
                raise IndexError
            return at, 1, [2, 3]

    class Streamed(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([(0, 1, [2, 3]), (1, 1, [2, 3]), (2, 1, [2, 3])])

    for data in (Endless(), Streamed(), torch.utils.data.DataLoader(Streamed(), batch_size=2)):
        assert read_candidates(data).users.tolist() == [0, 1, 2]


def test_cases_may_have_different_numbers_of_negatives():
    read = read_candidates([(0, 1, [2, 3]), (1, 2, [0]), (0, 3, [])])
    assert read.sizes.tolist() == [2, 1, 0]
    result = evaluate_candidates(lambda _u, i: i.float(), read, ["mrr"])
    assert result.values_of("mrr").tolist() == [1 / 3, 1.0, 1.0]
    assert result.per_case.clusters.tolist() == [0, 1, 0]  # a user with two cases is one cluster


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "no case"),
        ([(1, 2)], "three parts"),
        ("test.csv", "came as str"),
        (7, "cannot be read"),
        ([(0, 1.5, [2])], "whole numbers"),
        ([(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([[1, 2]]))], "2 users, 1 positives"),
    ],
)
def test_invalid_test_sets_are_refused_with_a_reason(data, message):
    with pytest.raises(InputError, match=message):
        read_candidates(data)


def test_a_positive_among_its_negatives_is_counted_and_ranked_by_the_duplicates_rule():
    cases = [(0, 5, [5, 1, 2]), (1, 3, [1, 1, 2])]
    score = lambda _u, i: i.float()  # noqa: E731
    collapsed = NCFEvaluator(score, cases, top_k=1).evaluate_all(["hit@1", "average_rank"])
    assert collapsed.values_of("hit@1").tolist() == [1.0, 1.0]
    assert collapsed.counts["positive_among_negatives"] == 1
    assert collapsed.counts["repeated_negatives"] == 1
    harsh = NCFEvaluator(score, cases, top_k=1, duplicates="pessimistic").evaluate_all(["hit@1"])
    assert harsh.values_of("hit@1").tolist() == [0.0, 1.0]
    with pytest.raises(UnknownNameError, match="collapse"):
        NCFEvaluator(score, cases, duplicates="drop").evaluate()


@pytest.mark.parametrize(("ties", "value"), [("expected", 0.5), ("best", 1.0), ("worst", 0.0)])
def test_ties_raise_a_warning_and_count_by_rule(ties, value):
    with pytest.warns(TieWarning, match=r"1 of 1 positives \(100\.0%\)"):
        hits, _ = NCFEvaluator(
            lambda u, _i: torch.zeros(len(u)), [(0, 1, [2])], top_k=1, ties=ties
        ).evaluate()
    assert hits == [value]


def test_tied_models_get_every_metric_that_has_an_expectation():
    with pytest.warns(TieWarning):
        result = NCFEvaluator(lambda u, _i: torch.zeros(len(u)), [(0, 1, [2, 3])]).evaluate_all()
    assert "bpref" not in result
    assert result["auc"] == 0.5
    assert result.counts["tied"] == 1


class TestTheModelIsRestored:
    def test_modes_of_all_its_parts(self):
        model = with_spread_scores(MLP(40, 60, layers=[8, 4], dropout=0.5)).train()
        model.layers[0].eval()  # a frozen part
        modes = [part.training for part in model.modules()]
        seen = []
        model.register_forward_hook(lambda m, *_: seen.append((m.training, torch.is_grad_enabled())))
        NCFEvaluator(model, Candidates.of(*random_cases())).evaluate()
        assert set(seen) == {(False, False)}
        assert [part.training for part in model.modules()] == modes

    def test_after_an_error_too(self):
        model = GMF(3, 5).train()
        with pytest.raises(InputError, match="users 0 to 39"):
            NCFEvaluator(model, Candidates.of(*random_cases())).evaluate()
        assert model.training

    def test_device(self):
        devices = []

        class Elsewhere:
            """A module that claims to be on a GPU and records where it is moved."""

            def parameters(self):
                return [SimpleNamespace(device=torch.device("cuda", 1))]

            def buffers(self):
                return []

            def to(self, device):
                devices.append(str(device))

            def __call__(self, _users, items):
                return items.float() if devices == ["cpu"] else None

        NCFEvaluator(Elsewhere(), Candidates.of(*random_cases()), device="cpu").evaluate()
        assert devices == ["cpu", "cuda:1"]

    def test_a_model_in_two_places_is_refused(self):
        def model(_users, _items):
            return None

        model.parameters = lambda: [torch.zeros(1), SimpleNamespace(device=torch.device("cuda", 0))]
        model.buffers = list
        with pytest.raises(InputError, match="several devices"):
            NCFEvaluator(model, Candidates.of(*random_cases())).evaluate()


@pytest.mark.parametrize("shape", ["(n,)", "(n, 1)"])
@pytest.mark.parametrize("form", ["logits", "probabilities"])
def test_shapes_and_forms_rank_alike(shape, form):
    model = with_spread_scores(GMF(40, 60))
    cases = Candidates.of(*random_cases())

    def other(users, items):
        out = model(users, items)
        out = torch.sigmoid(out.double() / 10) if form == "probabilities" else out
        return out[:, None] if shape == "(n, 1)" else out

    assert NCFEvaluator(other, cases).evaluate() == NCFEvaluator(model, cases).evaluate()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda u, _i: torch.zeros(len(u), 2), r"gave \(\d+, 2\)"),
        (lambda _u, _i: torch.zeros(3), r"gave \(3,\)"),
        (lambda u, i: (u, i), "gave tuple"),
        (lambda u: u, "TypeError"),
        (lambda u, _i: torch.full((len(u),), math.nan), "is nan"),
        (lambda u, _i: torch.full((len(u),), math.inf), "is inf"),
    ],
)
def test_a_wrong_answer_of_the_model_is_named(model, message):
    with pytest.raises(InputError, match=message):
        NCFEvaluator(model, Candidates.of(*random_cases())).evaluate()


def test_minus_infinity_is_no_candidate():
    def masked(users, items):
        return torch.where(items == 2, -math.inf, items.float())

    result = evaluate_candidates(masked, [(0, 1, [2, 3]), (1, 2, [0, 1])], ["average_rank", "hit@1"])
    assert result.counts["not_candidates"] == 1
    assert result.values_of("average_rank")[0] == 2


@pytest.mark.parametrize(
    "device", ["cuda:7", "nowhere", "meta", "cuda" if not torch.cuda.is_available() else "hip"]
)
def test_a_device_that_does_not_exist(device):
    with pytest.raises(InputError, match=r"This machine has cpu"):
        NCFEvaluator(GMF(2, 3), [], device=device)


def test_the_reason_ends_before_the_advice_begins():
    with pytest.raises(InputError, match=r"[^.]\. This machine has cpu"):
        NCFEvaluator(GMF(2, 3), [], device="nowhere")


def test_metrics_about_judged_items_are_left_out():
    """No negative is judged: bpref would always be 1, and judged@k would be precision@k."""
    cases = [(0, 1, [2, 3]), (1, 2, [0, 3])]
    scores = np.array([[0.9, 0.1, 0.2], [0.5, 0.7, 0.1]])
    result = NCFEvaluator(scores, cases).evaluate_all()
    assert {name.partition("@")[0] for name in result}.isdisjoint({"bpref", "judged"})
    assert "ndcg@1" in result


@pytest.mark.parametrize("size", [0, -1, 2.5, "many"])
def test_a_batch_that_holds_nothing_is_refused(size):
    with pytest.raises(CutoffError, match="batch_size"):
        NCFEvaluator(GMF(2, 3), [(0, 1, [2])], batch_size=size)
    with pytest.raises(InputError, match="batch="):
        evaluate_candidates(GMF(2, 3), [(0, 1, [2])], batch=size)


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_a_wrong_cutoff(k):
    with pytest.raises(CutoffError, match="top_k"):
        NCFEvaluator(GMF(2, 3), [], top_k=k)


def test_mixed_precision_is_optional_and_named():
    model, cases = with_spread_scores(GMF(40, 60)), Candidates.of(*random_cases())
    with pytest.warns(TieWarning) if _ties(model, cases) else _no_warning():
        rough, _ = NCFEvaluator(model, cases, autocast="bfloat16").evaluate()
    assert np.mean(rough) == pytest.approx(np.mean(NCFEvaluator(model, cases).evaluate()[0]), abs=0.2)
    with pytest.raises(UnknownNameError, match="autocast"):
        NCFEvaluator(model, cases, autocast="int8").evaluate()


def _ties(model, cases):
    from recsys.ranks.sources.fitted_models import scoring

    with scoring(model, autocast="bfloat16") as score:
        return bool((cases.judge(score).tied > 1).any())


def _no_warning():
    import contextlib

    return contextlib.nullcontext()


def test_the_batch_follows_from_memory_and_changes_nothing():
    model, cases = with_spread_scores(MLP(40, 60, layers=[256, 64])), Candidates.of(*random_cases())
    sizes = []
    model.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
    whole = NCFEvaluator(model, cases).evaluate()
    assert sizes == [256, 400]  # a small batch to measure memory, then all pairs
    sizes.clear()
    assert np.allclose(NCFEvaluator(model, cases, batch_size=64).evaluate(), whole)
    assert max(sizes) == 64


def test_blocks_of_cases_give_what_all_at_once_gives(monkeypatch):
    from recsys.ranks.sources import candidate_sets

    users, positives, negatives = random_cases()
    table = np.random.default_rng(3).integers(0, 5, (40, 60)).astype(float)
    whole = Candidates.of(users, positives, negatives).judge(lambda u, i: table[u, i])
    monkeypatch.setattr(candidate_sets, "_PAIRS_PER_BLOCK", 33)
    parts = Candidates.of(users, positives, negatives).judge(lambda u, i: table[u, i])
    for name in ("above", "tied", "ahead", "n_candidates"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()


def test_results_compare_by_user():
    cases = Candidates.of(*random_cases(200))
    good = evaluate_candidates(lambda _u, i: -(i % 7).float() - i / 1000, cases, ["ndcg@5"])
    bad = evaluate_candidates(lambda _u, i: (i % 7).float() + i / 1000, cases, ["ndcg@5"])
    assert len(recsys.compare({"good": good, "bad": bad}, baseline="bad")) == 1
    assert "not among the whole catalogue" in good.notes["sampled"]
    assert good.under({"ties": "best"}) == evaluate_candidates(
        lambda _u, i: -(i % 7).float() - i / 1000, cases, ["ndcg@5"], conventions={"ties": "best"}
    )


def test_estimates_of_the_whole_catalogue_come_in_the_order_of_the_set():
    users, positives, negatives = random_cases(300, n_items=400, n_negatives=20)
    table = np.random.default_rng(5).random((300, 400))
    evaluator = NCFEvaluator(
        lambda u, i: torch.as_tensor(table)[u, i], Candidates.of(users, positives, negatives)
    )
    n_items = np.where(np.arange(300) < 150, 400, 200)
    by_case = evaluator.estimate_full(n_items, ["hit@10"], methods=["bv"])["hit@10"]["bv"]
    moved = NCFEvaluator(
        lambda u, i: torch.as_tensor(table)[u, i],
        Candidates.of(users[::-1], positives[::-1], negatives[::-1]),
    ).estimate_full(n_items[::-1], ["hit@10"], methods=["bv"])["hit@10"]["bv"]
    assert by_case.value == pytest.approx(moved.value)


@pytest.mark.shared
def test_the_authors_own_test_set_has_156_positives_among_its_negatives(shared_dir):
    import pyarrow.parquet as pq

    folder = shared_dir / "data" / "ml-1m"
    negatives = np.load(folder / "ncf_negatives.npz")["negatives"]
    test = pq.read_table(folder / "ncf_test.parquet")
    cases = Candidates.of(
        test["user"].to_numpy().astype(int) - 1,
        test["ncf_item"].to_numpy().astype(int),
        negatives.astype(int),
    )
    rank = np.random.default_rng(0).permutation(negatives.max() + 4000).astype(np.float32)
    result = evaluate_candidates(lambda _u, i: rank[i], cases, ["hit@10"])
    assert result.counts["positive_among_negatives"] == 156
    harsh = evaluate_candidates(lambda _u, i: rank[i], cases, ["hit@10"], duplicates="pessimistic")
    assert harsh["hit@10"] <= result["hit@10"]


def test_the_two_modules_are_importable_and_import_nothing_early():
    code = (
        "import sys, NCF_evaluation, ml_1m_dataset\n"
        "from recsys.cf.evaluation import NCFEvaluator, NCFTestDataset\n"
        "assert NCF_evaluation.NCFEvaluator is NCFEvaluator\n"
        "assert ml_1m_dataset.NCFTestDataset is NCFTestDataset\n"
        "assert 'torch' not in sys.modules and 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_dataset_is_one_for_loaders(tmp_path):
    (tmp_path / "a.rating").write_text("0\t5\n1\t6\n2\t7\n")
    (tmp_path / "a.negative").write_text("(0,5)\t1\t2\n(1,6)\t1\t3\n(2,7)\t4\t5\n")
    data = NCFTestDataset(tmp_path / "a.rating", tmp_path / "a.negative")
    assert len(data) == 3
    assert int(data[-1][0]) == 2
    with pytest.raises(IndexError):
        data[3]
    users, positives, negatives = next(iter(torch.utils.data.DataLoader(data, batch_size=2)))
    assert (users.tolist(), positives.tolist(), negatives.tolist()) == ([0, 1], [5, 6], [[1, 2], [1, 3]])
    assert [int(user) for user, _, _ in data] == [0, 1, 2]
