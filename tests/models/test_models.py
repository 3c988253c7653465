"""Networks agree with the kernels, training learns a simple world, files give models back."""

from __future__ import annotations

import numpy as np
import pytest

import recsys
from recsys.errors import FileError, InputError, MissingExtraError, UnknownNameError
from recsys.models.implicit_feedback import Pairs
from worlds.pairs import two_tastes

torch = pytest.importorskip("torch")

from recsys.models import (  # noqa: E402
    GMF,
    MF,
    MLP,
    BiasedMF,
    NeuMF,
    als,
    bpr,
    load_model,
    load_network,
    network,
    save_model,
    train,
    training,
)

NETWORKS = {
    "gmf": {"factors": 4},
    "mlp": {"layers": [8, 4]},
    "neumf": {"factors": 4, "layers": [8, 4]},
    "mf": {"factors": 4},
    "biased_mf": {"factors": 4},
}


def randomise(model, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator))
    return model


def all_scores(model):
    users = torch.arange(model.n_users).repeat_interleave(model.n_items)
    items = torch.arange(model.n_items).repeat(model.n_users)
    with torch.no_grad():
        return model(users, items).reshape(model.n_users, model.n_items).numpy()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_gives_one_logit_per_pair(name):
    model = network(name, 5, 7, **NETWORKS[name])
    out = model(torch.tensor([0, 4]), torch.tensor([6, 0]))
    assert out.shape == (2,)
    assert out.requires_grad
    assert all(p.requires_grad for p in model.parameters())
    out.sum().backward()
    assert all(p.grad is not None for p in model.parameters())  # every parameter takes part


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_seed_makes_the_same_network_and_leaves_torch_alone(name):
    state = torch.random.get_rng_state()
    first, second = (network(name, 5, 7, seed=3, **NETWORKS[name]) for _ in range(2))
    other = network(name, 5, 7, seed=4, **NETWORKS[name])
    assert torch.equal(torch.random.get_rng_state(), state)
    assert np.array_equal(all_scores(first), all_scores(second))
    assert not np.array_equal(all_scores(first), all_scores(other))


@pytest.mark.parametrize("kind", [GMF, MF, BiasedMF])
def test_factors_are_the_logits(kind):
    model = randomise(kind(6, 9, factors=3))
    product = model.user_factors.astype(float) @ model.item_factors.astype(float).T
    assert np.allclose(product, all_scores(model), atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_whole_catalogue_is_ranked_exactly(name):
    model = randomise(network(name, 30, 50, **NETWORKS[name]))
    rng = np.random.default_rng(0)
    truth = {u: {int(rng.integers(50))} for u in range(30)}
    seen = {u: [i for i in rng.choice(50, 5, replace=False).tolist() if i not in truth[u]] for u in range(30)}
    best = {"ties": "best"}  # a dead layer gives many pairs the same score
    result = recsys.evaluate(recsys.from_model(model), truth, ["average_rank"], seen=seen, conventions=best)
    scores = all_scores(model).astype(float)
    for user in range(30):
        (item,) = truth[user]
        row = scores[user].copy()
        row[seen[user]] = -np.inf
        assert result.values_of("average_rank")[user] == 1 + (row > row[item]).sum()
    if hasattr(model, "user_factors"):
        assert isinstance(recsys.from_model(model), recsys.Factors)
        assert recsys.evaluate(model, truth, ["average_rank"], seen=seen, conventions=best) == result


def test_neumf_starts_as_the_mean_of_its_two_parts():
    gmf, mlp = randomise(GMF(6, 9, factors=3)), randomise(MLP(6, 9, layers=[8, 4]), 1)
    joined = NeuMF.of(gmf, mlp, alpha=0.3)
    assert np.allclose(all_scores(joined), 0.3 * all_scores(gmf) + 0.7 * all_scores(mlp), atol=1e-5)
    with pytest.raises(InputError, match="6 x 9"):
        NeuMF.of(gmf, MLP(6, 10, layers=[8, 4]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GMF(0, 5), "make no model"),
        (lambda: MLP(3, 5, layers=[7, 4]), "cannot be built"),
        (lambda: MLP(3, 5, layers=[8]), "cannot be built"),
        (lambda: network("svd", 3, 5), "unknown model"),
    ],
)
def test_networks_that_cannot_be_built_are_refused(make, words):
    with pytest.raises((InputError, UnknownNameError), match=words):
        make()


@pytest.mark.parametrize("name", NETWORKS)
def test_training_learns_the_two_tastes(name):
    pairs = two_tastes()
    model = network(name, 60, 40, **NETWORKS[name])
    history = train(model, pairs, epochs=40, batch=128, learning_rate=0.02, device="cpu")
    assert history.epochs[-1].loss < 0.8 * history.epochs[0].loss
    mine = np.arange(60)[:, None] % 2 == np.arange(40)[None, :] // 20
    scores = all_scores(model)
    assert scores[mine].mean() > scores[~mine].mean() + 1


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_training_is_repeatable_and_leaves_torch_alone(dropout):
    pairs = two_tastes()

    def weights(seed):
        model = MLP(60, 40, layers=[8, 4], dropout=dropout)
        train(model, pairs, epochs=3, batch=64, seed=seed, device="cpu")
        return all_scores(model.eval())

    first = weights(1)
    state = torch.random.get_rng_state()
    torch.rand(3)
    torch.random.set_rng_state(state)
    torch.rand(7)  # another global state
    assert np.array_equal(first, weights(1))
    assert not np.array_equal(first, weights(2))


@pytest.mark.parametrize("bitmap", [True, False])
def test_negatives_are_fresh_uniform_and_never_a_users_own(monkeypatch, bitmap):
    if not bitmap:
        monkeypatch.setattr(training, "_MAX_BITMAP", 0)
    monkeypatch.setattr(training, "_CHUNK", 100)
    pairs = two_tastes()
    epoch_batches = training._Batches(pairs, 5, 64, torch.device("cpu"), 0)
    own = set(zip(pairs.users.tolist(), pairs.items.tolist(), strict=True))
    epochs = []
    for _ in range(2):
        batches = [torch.stack([u, i, y.long()], dim=1) for u, i, y in epoch_batches]
        assert max(len(b) for b in batches) == 64
        rows = torch.cat(batches)
        positive = rows[rows[:, 2] == 1][:, :2]
        assert sorted(map(tuple, positive.tolist())) == sorted(own)
        negative = rows[rows[:, 2] == 0][:, :2]
        assert len(negative) == 5 * len(pairs)
        assert not own & set(map(tuple, negative.tolist()))
        epochs.append(sorted(map(tuple, negative.tolist())))
    assert epochs[0] != epochs[1]
    counts = np.bincount([i for _, i in epochs[0] + epochs[1]], minlength=40)
    assert counts.min() > 0.5 * counts.mean()


def test_a_user_without_other_items_has_no_negatives_and_it_is_counted():
    pairs = Pairs.of([0, 0, 0, 1], [0, 1, 2, 0], n_items=3)
    history = train(GMF(2, 3), pairs, epochs=2, negatives=2, device="cpu")
    assert history.negatives_left_out == 2 * 3 * 2


def test_the_callback_and_the_progress_are_called():
    seen, steps = [], []

    def after(number, model):
        seen.append((number, model.training))
        return number == 2

    history = train(
        GMF(60, 40), two_tastes(), epochs=9, device="cpu", after_epoch=after,
        progress=lambda done, whole: steps.append((done, whole)), batch=512,
    )  # fmt: skip
    assert [n for n, _ in seen] == [1, 2]
    assert history.stopped
    assert len(history.epochs) == 2
    assert steps[-1] == (2 * 480 * 5, 9 * 480 * 5)
    assert steps == sorted(steps)


@pytest.mark.parametrize(
    "wrong", [{"epochs": 0}, {"batch": 0}, {"negatives": -1}, {"device": "nowhere"}, {"learning_rate": 1e30}]
)
def test_invalid_options_of_training_are_refused(wrong):
    with pytest.raises(InputError):
        train(GMF(60, 40), two_tastes(), **{"device": "cpu", "epochs": 2, **wrong})


class TestPairs:
    def test_the_last_is_set_aside_for_users_with_two(self):
        pairs = Pairs.of([0, 0, 0, 1, 2, 2], [4, 1, 2, 0, 3, 4], order=[3, 9, 9, 1, 5, 2])
        rest, last = pairs.without_last()
        assert list(zip(last.users, last.items, strict=True)) == [(0, 2), (2, 3)]
        assert len(rest) == 4
        assert (rest.n_users, rest.n_items) == (pairs.n_users, pairs.n_items)
        assert pairs.tied_last() == 1

    def test_without_an_order_nothing_is_last(self):
        with pytest.raises(InputError, match="order="):
            Pairs.of([0, 0], [1, 2]).without_last()

    def test_unseen_items_are_different_and_not_the_users_own(self):
        pairs = two_tastes()
        unseen = pairs.unseen(np.arange(60), 12, seed=1)
        assert unseen.shape == (60, 12)
        for user, row in enumerate(unseen):
            assert len(set(row.tolist())) == 12
            assert not set(row.tolist()) & set(pairs.items[pairs.users == user].tolist())
        assert np.array_equal(unseen, pairs.unseen(np.arange(60), 12, seed=1))
        counts = np.bincount(unseen.reshape(-1), minlength=40)
        assert counts.min() > 0
        with pytest.raises(InputError, match="fewer than 33"):
            pairs.unseen(np.arange(60), 33)

    def test_interactions_keep_their_ids(self):
        pairs = Pairs.from_interactions(recsys.read_interactions({"b": ["y"], "a": ["x", "y"]}))
        assert pairs.user_ids.tolist() == ["a", "b"]
        assert list(zip(pairs.users, pairs.items, strict=True)) == [(0, 0), (0, 1), (1, 1)]

    @pytest.mark.parametrize(
        ("users", "items", "words"),
        [
            ([0, 1], [1], "make no pairs"),
            ([], [], "float64"),
            (np.zeros(0, dtype=int), np.zeros(0, dtype=int), "nothing to learn"),
            ([0, -1], [1, 2], "Rows count from 0"),
            (["a"], [1], "whole numbers"),
        ],
    )
    def test_invalid_pairs_are_refused(self, users, items, words):
        with pytest.raises(InputError, match=words):
            Pairs.of(users, items)

    def test_ids_get_rows(self):
        pairs = Pairs.of_ids([30, 10, 30], [7, 5, 5], more_users=[20], more_items=[9])
        assert pairs.user_ids.tolist() == [10, 20, 30]
        assert pairs.rows_of([9, 5], "items").tolist() == [2, 0]
        with pytest.raises(InputError, match="1 items are unknown, 6 for one"):
            pairs.rows_of([5, 6], "items")
        with pytest.raises(InputError, match=r"whole numbers \('a' or 3\)"):
            Pairs.of_ids(["a"], [1], more_users=[3])


class TestFiles:
    @pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
    @pytest.mark.parametrize("name", NETWORKS)
    def test_a_model_comes_back(self, tmp_path, name, suffix):
        model = randomise(network(name, 5, 7, **NETWORKS[name]))
        model.user_ids, model.item_ids = np.arange(10, 15), [*"abcdefg"]
        save_model(tmp_path / f"m{suffix}", model)
        back = load_network(tmp_path / f"m{suffix}")
        assert np.array_equal(all_scores(back), all_scores(model))
        assert not back.training
        assert back.user_ids.tolist() == [10, 11, 12, 13, 14]
        assert back.item_ids.tolist() == [*"abcdefg"]
        source = recsys.from_model(back)
        assert source.catalogue.values.tolist() == [*"abcdefg"]

    @pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
    @pytest.mark.parametrize("name", NETWORKS)
    def test_a_file_scores_without_pytorch_what_the_network_scores(self, tmp_path, name, suffix):
        model = randomise(network(name, 5, 7, **NETWORKS[name]))
        model.user_ids, model.item_ids = np.arange(10, 15), [*"abcdefg"]
        source = load_model(save_model(tmp_path / f"m{suffix}", model))
        lists = recsys.recommend(source, 7)
        scores = np.empty((5, 7))
        scores[np.repeat(np.arange(5), 7), lists.codes] = lists.scores
        assert lists.cases.values.tolist() == [10, 11, 12, 13, 14]
        assert lists.items.values.tolist() == [*"abcdefg"]
        np.testing.assert_allclose(scores, all_scores(model), rtol=1e-4, atol=1e-5)

    def test_equal_models_are_equal_files(self, tmp_path):
        for name in ("a.npz", "b.npz"):
            save_model(tmp_path / name, GMF(5, 7, seed=1))
        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()

    def test_other_files_are_refused(self, tmp_path):
        (tmp_path / "a.safetensors").write_bytes(b"no")
        np.savez(tmp_path / "b.npz", x=np.zeros(3))
        np.savez(tmp_path / "c.npz", recsys=np.array({"model": "gmf"}, dtype=object), allow_pickle=True)
        for name in ("a.safetensors", "b.npz", "c.npz", "missing.npz"):
            with pytest.raises(FileError):
                load_network(tmp_path / name)
        with pytest.raises(FileError, match="Linear is not a network"):
            save_model(tmp_path / "d.npz", torch.nn.Linear(2, 2))
        with pytest.raises(FileError, match="are kept as"):
            save_model(tmp_path / "d.pt", GMF(2, 3))
        save_model(tmp_path / "e.npz", recsys.Scores([[0.1, 0.9]]))
        with pytest.raises(FileError, match="'scores', which is not a network"):
            load_network(tmp_path / "e.npz")

    def test_a_file_that_does_not_fit_itself(self, tmp_path):
        path = save_model(tmp_path / "a.npz", GMF(5, 7))
        with np.load(path) as archive:
            arrays = {n: archive[n] for n in archive.files}
        arrays["users.weight"] = arrays["users.weight"][:2]
        np.savez(path, **arrays)
        with pytest.raises(FileError, match="does not fit"):
            load_network(path)


@pytest.mark.parametrize(("fit", "rate"), [(als, {}), (bpr, {"learning_rate": 0.1})])
def test_implicits_models_come_as_factors_with_ids(fit, rate):
    pytest.importorskip("implicit")
    pairs = two_tastes()
    train_set = recsys.read_interactions(
        {f"u{u:02}": [f"i{i:02}" for i in pairs.items[pairs.users == u]] for u in range(60)}
    )
    model = fit(train_set, factors=8, iterations=200, num_threads=1, **rate)
    truth = {f"u{u:02}": [f"i{20 * (u % 2) + i:02}" for i in range(20)] for u in range(60)}
    result = recsys.evaluate(model, truth, ["precision@10"])
    assert result["precision@10"] > 0.8
    again = fit(train_set, factors=8, iterations=200, num_threads=1, **rate)
    assert np.allclose(again.item_factors, model.item_factors)


def test_without_torch_the_line_that_installs_it(monkeypatch):
    import subprocess
    import sys

    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from recsys.errors import MissingExtraError\n"
        "import recsys.models\n"
        "from recsys.models import Pairs, als\n"
        "try: recsys.models.GMF\n"
        "except MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "pip install 'recsys-evaluation[torch]'" in done.stdout
    assert issubclass(MissingExtraError, ImportError)


def test_pairs_of_row_numbers_and_their_limits():
    with pytest.raises(InputError, match=r"n_users=2, but row 2 occurs.*n_users=3 or more"):
        Pairs.of([0, 2], [0, 1], n_users=2)
    with pytest.raises(InputError, match="n_items=1, but row 1 occurs"):
        Pairs.of([0, 2], [0, 1], n_items=1)
    assert Pairs.of([0, 2], [0, 1]).rows_of([[1, 0]], "items").tolist() == [[1, 0]]


def test_an_optimiser_of_your_own_is_used():
    model = MF(60, 40, seed=0)
    before = [weights.detach().clone() for weights in model.parameters()]
    still = torch.optim.SGD(model.parameters(), lr=0.0)
    train(model, two_tastes(), epochs=1, device="auto", optimiser=still)
    for old, new in zip(before, model.parameters(), strict=True):
        assert torch.equal(old, new.detach().cpu())


@pytest.mark.parametrize("ratings", [[], [3.0, float("nan")], [3.0, float("inf")]])
def test_ratings_that_are_no_numbers_are_refused(ratings):
    rows = list(range(len(ratings)))
    with pytest.raises(InputError, match="ratings are missing or not finite"):
        training.fit_ratings(BiasedMF(2, 2, factors=2), rows, rows, ratings)


def test_a_network_without_ids_comes_back_without(tmp_path):
    save_model(tmp_path / "plain.safetensors", GMF(2, 3, factors=2), {})
    found = load_network(tmp_path / "plain.safetensors")
    assert (found.n_users, found.n_items) == (2, 3)
    assert not hasattr(found, "user_ids")
    assert not hasattr(found, "item_ids")
