"""Models in files: what comes back scores the same, and what is no model says what it is."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

import recsys
from recsys.errors import FileError, IdTypeError, InputError
from recsys.models import describe_model, load_model, load_network, save_model
from recsys.models.model_files import fingerprint, is_model_file
from recsys.ranks.sources import HistoryScores, RandomScores
from recsys.ranks.sources.source_files import write_model_file

IDS = {"user_ids": ["b", "a", "ü"], "item_ids": [7, 3, -1, 40]}
RNG = np.random.default_rng(3)
WEIGHTS = RNG.random((4, 4)) * RNG.integers(2, size=(4, 4))
SOURCES = {
    "factors": recsys.Factors(RNG.random((3, 2)), RNG.random((4, 2)), **IDS),
    "biased": recsys.Factors(RNG.random((3, 2)), RNG.random((4, 2)), item_bias=RNG.random(4), **IDS),
    "scores": recsys.Scores(RNG.random((3, 4)), **IDS),
    "no ids": recsys.Scores(RNG.random((3, 4)).astype(np.float32)),
    "dense": HistoryScores(csr_array(RNG.random((3, 4)) < 0.5, dtype=np.float32), RNG.random((4, 4)), **IDS),
    "sparse": HistoryScores(csr_array(RNG.random((3, 4)) < 0.5, dtype=float), csr_array(WEIGHTS), **IDS),
    "random": RandomScores(4, seed=8, **IDS),
}  # fmt: skip
MLP = {
    "users.weight": np.ones((3, 2)), "items.weight": np.ones((4, 2)),
    "layers.0.weight": np.ones((3, 4)), "layers.0.bias": np.ones(3),
    "layers.2.weight": np.ones((2, 3)), "layers.2.bias": np.ones(2),
}  # fmt: skip
NETWORKS = {
    "mlp": {**MLP, "output.weight": np.ones((1, 2)), "output.bias": np.ones(1)},
    "neumf": {
        **{f"mlp.{name}": array for name, array in MLP.items()},
        "gmf.users.weight": np.ones((3, 2)), "gmf.items.weight": np.ones((4, 2)),
        "output.weight": np.ones((1, 4)), "output.bias": np.ones(1),
    },
}  # fmt: skip


def listed(source):
    lists = recsys.recommend(source, 4)
    return lists.to_frame().to_dict("list")


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("name", SOURCES)
def test_a_source_comes_back_as_it_was(tmp_path, name, suffix):
    if suffix == ".safetensors":
        pytest.importorskip("safetensors")
    path = save_model(tmp_path / f"m{suffix}", SOURCES[name], {"name": name, "settings": {"k": 1}})
    assert is_model_file(path)
    back = load_model(path)
    assert listed(back) == listed(SOURCES[name])
    assert type(back) is type(SOURCES[name])
    about = describe_model(path)
    assert (about["name"], about["settings"], about["format"]) == (name, {"k": 1}, 1)
    assert listed(recsys.from_model(path)) == listed(back)
    assert listed(recsys.from_model(str(path))) == listed(back)


def test_equal_models_are_equal_files(tmp_path):
    for name in ("a.npz", "b.npz"):
        save_model(tmp_path / name, SOURCES["sparse"], {"name": "x"})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_ids_may_be_read_as_text_as_numbers_or_replaced(tmp_path):
    path = save_model(tmp_path / "m.npz", recsys.Scores(np.eye(2), user_ids=[5, 6], item_ids=["01", "2"]))
    kinds = {
        ids: [rows.ids.values.tolist() for rows in (source.user_rows, source.item_rows)]
        for ids, source in ((ids, load_model(path, ids=ids)) for ids in (None, "auto", "str"))
    }
    assert kinds[None] == kinds["auto"] == [[5, 6], ["01", "2"]]
    assert kinds["str"] == [["5", "6"], ["01", "2"]]
    with pytest.raises(IdTypeError, match=r"item ids of x\.npz, row 0: 'a' is not a whole number"):
        load_model(save_model(tmp_path / "x.npz", recsys.Scores(np.eye(2), item_ids=["a", "b"])), ids="int")
    other = load_model(path, user_ids=["x", "y"])
    assert other.user_rows.ids.values.tolist() == ["x", "y"]
    numbered = load_model(save_model(tmp_path / "n.npz", recsys.Scores(np.eye(2))), ids="str")
    assert numbered.user_rows.ids.values.tolist() == ["0", "1"]


def test_a_path_is_a_model_wherever_lists_are(tmp_path):
    path = save_model(tmp_path / "m.npz", recsys.Scores([[0.9, 0.1]], user_ids=["ann"], item_ids=["a", "b"]))
    other = {"ann": ["b"]}
    result = recsys.evaluate(path, {"ann": ["a"]}, ["mrr", "overlap@1"], reference=path)
    assert dict(result) == {"mrr": 1.0, "overlap@1": 1.0}
    assert recsys.evaluate(other, {"ann": ["b"]}, ["overlap@1"], reference=str(path))["overlap@1"] == 0.0
    text = recsys.recommend(path, 1, seen={"ann": ["a"]}).to_frame()["item"].tolist()
    assert text == ["b"]
    numbers = save_model(tmp_path / "i.npz", recsys.Scores([[0.9, 0.1]], user_ids=[4], item_ids=[8, 9]))
    assert recsys.evaluate(numbers, {4: [8]}, ["mrr"], ids="int")["mrr"] == 1.0
    assert recsys.evaluate(numbers, {"4": ["8"]}, ["mrr"])["mrr"] == 1.0  # files are text by default


@pytest.mark.parametrize(
    ("source", "change", "words"),
    [
        ("factors", {"items": None}, "it lacks 'items'"),
        ("factors", {"items": np.ones((4, 9))}, "the factors do not fit"),
        ("factors", {"description user_ids": ["a"]}, "for 3 rows"),
        ("factors", {"description format": 7}, "of format 7, and this version reads format 1"),
        ("factors", {"description format": None}, "its description cannot be read"),
        ("factors", {"description model": "sasrec"}, "of the kind 'sasrec', which this version"),
        ("sparse", {"weights.indices": 99}, "does not fit its own description"),
        ("sparse", {"history.indices": -5}, "does not fit its own description"),
        ("sparse", {"history.indptr": 1}, "does not fit its own description"),
        ("dense", {"weights": np.ones(4)}, "does not fit its own description"),
        ("random", {"description seed": "x"}, "does not fit its own description"),
        ("random", {"ids.item_ids": None, "description n_items": 2**31 - 1}, "does not fit its own"),
        ("factors", {"users": np.ones((2**31 - 1, 0)), "items": np.ones((4, 0))}, "the shape"),
        ("factors", {"description others": 3}, "row 3 is not one of the 3 rows"),
        ("mlp", {"layers.2.weight": np.ones((2, 9))}, r"the shapes .* do not follow each other"),
        ("mlp", {"output.weight": np.ones((1, 7))}, r"the shapes .* do not follow each other"),
        ("neumf", {"gmf.users.weight": np.ones((2, 2))}, r"the shapes .* do not follow each other"),
    ],
)
def test_a_damaged_model_is_refused(tmp_path, source, change, words):
    path = tmp_path / "m.npz"
    if source in ("mlp", "neumf"):
        write_model_file(path, source, NETWORKS[source], ids={})
        assert recsys.recommend(load_model(path), 1).codes.shape == (3,)
    else:
        save_model(path, SOURCES[source])
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    description = json.loads(bytes(arrays.pop("recsys")))
    for name, value in change.items():
        target, key = (description, name.split()[1]) if " " in name else (arrays, name)
        if value is None:
            del target[key]
        elif isinstance(value, int) and target is arrays:
            target[key][0] = value  # one entry that leads elsewhere
        else:
            target[key] = value
    np.savez(path, recsys=np.frombuffer(json.dumps(description).encode(), np.uint8), **arrays)
    with pytest.raises(FileError, match=words):
        load_model(path)


def test_a_description_of_any_shape_is_no_crash(tmp_path):
    def write(text):
        arrays = {"users": np.ones((2, 2)), "items": np.ones((3, 2))}
        np.savez(tmp_path / "m.npz", recsys=np.frombuffer(text.encode(), np.uint8), **arrays)
        return tmp_path / "m.npz"

    with pytest.raises(FileError, match="its description cannot be read"):
        load_model(write("[" * 100_000))
    odd = write('{"format": 1, "model": "factors", "about": [1]}')
    assert describe_model(odd) == {"kind": "factors", "format": 1}
    assert load_model(odd).n_items == 3
    pytest.importorskip("torch")
    for text in ('{"format": 1}', '{"format": 1, "model": ["mf"]}'):
        with pytest.raises(FileError, match="which is not a network"):
            load_network(write(text))
    claims = {"n_users": 10**12, "n_items": 10**12, "factors": 10**6}  # no memory is taken for them
    with pytest.raises(FileError, match="does not fit its own description"):
        load_network(write(json.dumps({"format": 1, "model": "mf", "shape": claims})))


def test_sparse_weights_of_any_layout_come_back(tmp_path):
    source = HistoryScores(csc_array(np.eye(4)[:3]), csc_array(WEIGHTS))
    assert np.array_equal(load_model(save_model(tmp_path / "m.npz", source)).weights.toarray(), WEIGHTS)


def test_a_foreign_file_says_what_it_holds(tmp_path):
    np.savez(tmp_path / "ab.npz", a=np.ones((2, 3)), b=np.ones((4, 3)))
    with pytest.raises(FileError, match=r"ab\.npz holds no user matrix; found a, b\. .*read_factors"):
        load_model(tmp_path / "ab.npz")
    with pytest.raises(FileError, match="holds no user matrix; found a, b"):
        recsys.evaluate(tmp_path / "ab.npz", {1: [2]})
    (tmp_path / "text.npz").write_text("user,item\n1,2\n")
    with pytest.raises(FileError, match=r"text\.npz"):
        load_model(tmp_path / "text.npz")
    with pytest.raises(FileError, match="there is no model at"):
        load_model(tmp_path / "nowhere.npz")
    np.savez(tmp_path / "pickle.npz", recsys=np.array({"model": "factors"}, dtype=object))
    with pytest.raises(FileError, match="pickle"):
        load_model(tmp_path / "pickle.npz")
    (tmp_path / "lists.csv").write_text("user,item\n1,2\n")
    with pytest.raises(FileError, match="not a file of matrices"):
        load_model(tmp_path / "lists.csv")


def test_what_cannot_be_kept_is_refused(tmp_path):
    with pytest.raises(InputError, match="a function of scores cannot be kept"):
        save_model(
            tmp_path / "m.npz", recsys.Scores(lambda rows: np.ones((len(rows), 2)), n_users=1, n_items=2)
        )
    with pytest.raises(InputError, match="a dict is not a model"):
        save_model(tmp_path / "m.npz", {"ann": ["a"]})
    with pytest.raises(InputError, match=r"save_model\(path, model\)"):
        save_model(SOURCES["factors"], tmp_path / "m.npz")
    with pytest.raises(FileError, match=r"are kept as .safetensors or .npz"):
        save_model(tmp_path / "m.pt", SOURCES["factors"])
    assert not list(tmp_path.iterdir())


def test_a_fingerprint_is_that_of_the_pairs_in_any_order():
    one = recsys.read_interactions({"ann": ["a", "b"], "bob": ["a"]})
    same = recsys.read_interactions({"bob": ["a"], "ann": ["b", "a"]})
    other = recsys.read_interactions({"bob": ["b"], "ann": ["b", "a"]})
    assert fingerprint(one) == fingerprint(same)
    assert fingerprint(one)["pairs"] != fingerprint(other)["pairs"]
    assert {key: fingerprint(one)[key] for key in ("users", "items", "interactions")} == {
        "users": 2, "items": 2, "interactions": 3,
    }  # fmt: skip


def test_reading_a_model_needs_no_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    from recsys.models import NeuMF

    with torch.no_grad():
        model = NeuMF(3, 5, factors=2, layers=[4, 2])
    path = save_model(tmp_path / "neumf.npz", model)
    code = (
        "import sys, recsys; source = recsys.from_model(sys.argv[1]); recsys.recommend(source, 2); "
        "assert 'torch' not in sys.modules and 'implicit' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=600)


@pytest.mark.parametrize(
    ("name", "header", "ours"),
    [
        ("ours.safetensors", '{"__metadata__": {"recsys": "{}"}}', True),
        ("OURS.SAFETENSORS", '{"__metadata__": {"recsys": "{}"}}', True),
        ("foreign.safetensors", '{"__metadata__": {"format": "pt"}}', False),
        ("bare.safetensors", "{}", False),
        ("odd.safetensors", '{"__metadata__": "recsys"}', False),
        ("list.safetensors", '["recsys"]', False),
        ("broken.safetensors", "{", False),
        ("ours.bin", '{"__metadata__": {"recsys": "{}"}}', False),
        ("ours.npz", '{"__metadata__": {"recsys": "{}"}}', False),
    ],
)
def test_a_model_file_is_known_by_its_table_of_contents(tmp_path, name, header, ours):
    file = tmp_path / name
    file.write_bytes(len(header).to_bytes(8, "little") + header.encode())
    assert is_model_file(file) is ours
    assert not is_model_file(tmp_path / "missing.safetensors")


def test_a_description_that_is_no_text_and_an_archive_of_another_time(tmp_path):
    path = save_model(tmp_path / "m.npz", SOURCES["factors"])
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    looks_like_utf_32 = np.frombuffer(b"\0\0\0{\xff\xff\xff\xff\xff\xff\xff\xff", np.uint8)
    for no_text in (looks_like_utf_32, np.int64(2**60)):
        np.savez(tmp_path / "other.npz", **(arrays | {"recsys": no_text}))
        with pytest.raises(FileError, match="is not a model file"):
            load_model(tmp_path / "other.npz")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\1\2") + 6] = 127  # the version of zip that is needed to read it
    (tmp_path / "later.npz").write_bytes(data)
    with pytest.raises(FileError, match=r"later\.npz"):
        load_model(tmp_path / "later.npz")
    with pytest.raises(FileError, match=r"later\.npz"):
        recsys.evaluate(tmp_path / "later.npz", {0: [1]}, ["mrr"])
