"""Fusion: every method and normalisation against its plain twin, and what happens at the edges."""

from __future__ import annotations

import inspect
import math
import warnings
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from oracles import fusion as plain
from recsys.errors import DuplicateError, InputError, RecsysWarning, TunedOnItselfWarning, UnknownNameError
from recsys.ranks import fusion
from recsys.ranks.fusion import FUSIONS, NORMALISATIONS

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
USERS, ITEMS = ("u1", "u2", "u3"), tuple("abcdefg")
RUN_A = {"u1": {"a": 3.0, "b": 2.0, "c": 1.0}, "u2": {"b": 2.0, "a": 1.0}}
RUN_B = {"u1": {"b": 3.0, "d": 2.0}, "u2": {"c": 5.0}}
TRUTH = {"u1": {"b"}, "u2": {"a", "c"}}

# Few different scores, so that many are equal; as whole quarters they are exact.
rankings = st.dictionaries(
    st.sampled_from(ITEMS), st.integers(-8, 12).map(lambda n: n / 4), max_size=len(ITEMS)
).map(plain.best_first)
runs_of_users = st.dictionaries(st.sampled_from(USERS), rankings, min_size=1)
several_runs = st.lists(runs_of_users, min_size=2, max_size=4).filter(
    lambda runs: any(ranking for run in runs for ranking in run.values())
)


def as_dicts(lists: recsys.Lists) -> plain.Run:
    items = lists.items.values[lists.codes].tolist()
    out = {}
    for at, case in enumerate(lists.cases.values.tolist()):
        rows = slice(lists.indptr[at], lists.indptr[at + 1])
        out[case] = dict(zip(items[rows], lists.scores[rows].tolist(), strict=True))
    return out


def of_each_user(runs: list[plain.Run]) -> dict[str, list[plain.Ranking]]:
    users = sorted({user for run in runs for user in run})
    return {user: [run.get(user, {}) for run in runs] for user in users}


def agree(ours: plain.Run, theirs: plain.Run) -> None:
    assert list(ours) == list(theirs)
    for user, ranking in theirs.items():
        assert ours[user].keys() == ranking.keys(), user
        assert [ours[user][item] for item in ranking] == pytest.approx(
            list(ranking.values()), rel=1e-12, abs=1e-12
        )
        # Equal to the last bit: in the same order. Nearly equal ones may be equal to one side only.
        if list(ours[user].values()) == list(ranking.values()):
            assert list(ours[user]) == list(ranking)


def parameters_for(row: fusion.Fusion, n_runs: int, data) -> dict:
    numbers = st.integers(0, 10).map(lambda n: n / 10)
    tables = st.lists(numbers, min_size=10, max_size=10)
    values = {
        "weights": st.lists(numbers, min_size=n_runs, max_size=n_runs),
        "map_scores": st.lists(numbers, min_size=n_runs, max_size=n_runs),
        "gamma": numbers,
        "sigma": numbers,
        "phi": numbers,
        "k": st.integers(0, 100),
        "w": st.integers(1, 4),
        "probs": st.lists(tables, min_size=n_runs, max_size=n_runs),
        "log_odds": st.lists(tables, min_size=n_runs, max_size=n_runs),
    }
    return {name: data.draw(values[name], label=name) for name in row.parameters}


@pytest.mark.filterwarnings("ignore:.*have a list in another run")
@pytest.mark.parametrize("name", FUSIONS)
@given(runs=several_runs, data=st.data())
def test_a_method_and_its_plain_twin(name, runs, data):
    given_parameters = parameters_for(FUSIONS[name], len(runs), data)
    ours = recsys.fuse(runs, name, None, **given_parameters)
    each = of_each_user(runs).items()
    agree(as_dicts(ours), {user: plain.fused(name, lists, **given_parameters) for user, lists in each})


@pytest.mark.filterwarnings("ignore:.*have a list in another run")
@pytest.mark.parametrize("norm", NORMALISATIONS)
@given(runs=several_runs)
def test_a_normalisation_and_its_plain_twin(norm, runs):
    each = {user: plain.normalised(norm, lists) for user, lists in of_each_user(runs).items()}
    for method, parameters in (("comb_sum", {}), ("rrf", {"k": 2})):
        ours = recsys.fuse(runs, method, norm, **parameters)
        agree(
            as_dicts(ours), {user: plain.fused(method, lists, **parameters) for user, lists in each.items()}
        )


@pytest.mark.parametrize("name", [name for name, row in FUSIONS.items() if row.train and name != "mapfuse"])
@given(
    run=runs_of_users,
    truth=st.dictionaries(st.sampled_from(USERS), st.sets(st.sampled_from(ITEMS), min_size=1), min_size=1),
)
def test_what_a_method_is_trained_to_and_its_plain_twin(name, run, truth):
    if not any(run.values()):
        return
    row, settings = FUSIONS[name], {"n_segments": 3} if name == "probfuse" else {}
    judged = recsys.read_interactions(truth)
    pool = fusion.pool_runs([recsys.read_lists(run)] * 2, judged.cases)
    relevant = fusion.np.ones(len(judged.codes), dtype=bool)
    for ours in row.train(fusion.JudgedPool.of(pool, judged, relevant, list), **settings):
        theirs = plain.trained(name, run, {user: truth[user] for user in sorted(truth)}, **settings)
        assert list(ours) == pytest.approx(theirs, abs=1e-12)


def test_every_row_says_what_it_does_and_where_it_is_from():
    for row in FUSIONS.values():
        assert row.summary, row.name
        assert row.reference, row.name
        assert row.train is None or row.trained in row.parameters
        required = [name for name, default in row.parameters.items() if default is inspect.Parameter.empty]
        assert set(required) <= {row.tuned, row.trained}, f"nothing finds {required} of {row.name}"
    assert all(row.summary for row in NORMALISATIONS.values())


def test_the_page_has_every_row():
    page = (Path(__file__).parents[2] / "docs" / "fusion.md").read_text("utf-8").lower()
    for row in (*FUSIONS.values(), *NORMALISATIONS.values()):
        assert f"| {row.name} | {row.aliases[0] if row.aliases else ''}".rstrip() in page
        assert row.summary.lower() in page


def test_tables_files_ranks_and_lists_are_runs_too(tmp_path):
    expected = as_dicts(recsys.fuse([RUN_A, RUN_B], "rrf"))
    table = pd.DataFrame(
        [(u, i, s) for u, row in RUN_B.items() for i, s in row.items()], columns=["user", "item", "score"]
    )
    table.to_csv(tmp_path / "b.csv", index=False)
    ranks_only = {user: list(row) for user, row in RUN_A.items()}
    for a in (ranks_only, recsys.read_lists(RUN_A)):
        for b in (table, tmp_path / "b.csv"):
            assert as_dicts(recsys.fuse([a, b], "rrf")) == expected


def test_fused_lists_can_be_evaluated():
    result = recsys.evaluate(recsys.fuse([RUN_A, RUN_B]), TRUTH, ["mrr"])
    assert result["mrr"] == 0.75  # b and c are equal for u2, and b is not relevant
    assert result.notes["lists"]["fused"] == {"method": "rrf", "norm": None, "runs": 2}


def test_methods_that_read_scores_say_so_where_there_are_none():
    with pytest.raises(InputError, match=r"reads scores, and runs\[0\] has none.*rrf"):
        recsys.fuse([{"u1": ["a", "b"]}, RUN_B], "comb_sum", None)
    with pytest.raises(InputError, match="norm='min-max' reads scores"):
        recsys.fuse([{"u1": ["a", "b"]}, RUN_B], "comb_sum")
    by_rank = as_dicts(recsys.fuse([{"u1": ["a", "b"]}, {"u1": ["b"]}], "comb_sum", "rank"))
    assert by_rank == {"u1": {"b": 1.5, "a": 1.0}}


def test_a_user_that_one_run_lacks():
    without = {"u1": RUN_B["u1"]}
    assert list(as_dicts(recsys.fuse([RUN_A, without], "comb_sum", None))["u2"]) == ["b", "a"]
    with pytest.raises(InputError, match=r"runs\[1\] has no list for 1 of the users of runs\[0\]"):
        recsys.fuse([RUN_A, without], missing="error")


def test_equal_fused_scores_stay_in_the_order_of_the_runs():
    lists = as_dicts(recsys.fuse([{1: ["x", "y"]}, {1: ["z", "y"]}], "rbc", phi=0.0))
    assert list(lists[1].items()) == [("x", 1.0), ("z", 1.0), ("y", 0.0)]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"runs": [RUN_A]}, InputError, "list of 1"),
        ({"runs": RUN_A}, InputError, "runs came as dict"),
        ({"runs": [RUN_A, {"u1": ["a", "a"]}]}, DuplicateError, r"runs\[1\] lists item 'a' twice"),
        ({"method": "rff"}, UnknownNameError, "rrf"),
        ({"norm": "minmax"}, UnknownNameError, "min-max"),
        ({"phi": 1}, UnknownNameError, "parameter of rrf"),
        ({"method": "wsum"}, InputError, "wsum needs weights=.*tune_fusion"),
        ({"method": "wsum", "weights": [1]}, InputError, "weights has 1 entries for 2 runs"),
        ({"missing": "skip"}, UnknownNameError, "empty"),
        ({"k": -1}, InputError, "divide by zero"),
        ({"runs": [RUN_A, {}]}, InputError, r"runs\[1\]: lists is empty"),
        ({"k": None}, InputError, "k of rrf came as None. Pass a number"),
        ({"k": "60"}, InputError, "k of rrf came as '60'. Pass a number"),
        ({"method": "wsum", "weights": 0.5}, InputError, "came as 0.5. Pass one number for each run"),
        ({"method": "wsum", "weights": ["a", "b"]}, InputError, "Pass one number for each run"),
        ({"method": "posfuse", "probs": 3}, InputError, "Pass what tune_fusion found"),
        ({"method": "wsum", "weights": [1, math.nan]}, InputError, "wsum gives nan for item .*finite"),
    ],
)  # fmt: skip
def test_what_cannot_be_fused_is_said(wrong, error, words):
    with pytest.raises(error, match=words):
        recsys.fuse(**{"runs": [RUN_A, RUN_B], **wrong})


def test_aliases_of_methods_and_normalisations():
    names = as_dicts(recsys.fuse([RUN_A, RUN_B], "w_bordafuse", weights=[1, 2]))
    assert names == as_dicts(recsys.fuse([RUN_A, RUN_B], "weighted-bordafuse", weights=[1, 2]))
    assert as_dicts(recsys.fuse([RUN_A, RUN_B], "sum", "min_max")) == as_dicts(
        recsys.fuse([RUN_A, RUN_B], "comb_sum")
    )


def test_cases_keep_their_users():
    rows = pd.DataFrame(
        {
            "case": ["s1", "s1", "s2"],
            "user": ["u", "u", "v"],
            "item": ["a", "b", "a"],
            "score": [2.0, 1.0, 1.0],
        }
    )
    fused = recsys.fuse([rows, rows])
    assert fused.clusters.tolist() == ["u", "v"]


def test_another_package_adds_a_method_in_one_place(monkeypatch):
    monkeypatch.delitem(FUSIONS, "loudest", raising=False)

    @fusion.fusion("loudest", reads="scores", reference="nowhere")
    def loudest(pool):
        """The greatest score of any run, whoever lists the item."""
        return pool.score.max(axis=0)

    try:
        assert as_dicts(recsys.fuse([RUN_A, RUN_B], "loudest", None))["u1"]["d"] == 2.0
    finally:
        del FUSIONS["loudest"]


# ---------------------------------------------------------------------------------------- tuning
@pytest.mark.parametrize("name", [name for name, row in FUSIONS.items() if row.trials or row.train])
def test_every_method_with_parameters_is_tuned_and_used_elsewhere(name):
    tuned = recsys.tune_fusion([RUN_A, RUN_B], TRUTH, name, "mrr")
    assert set(tuned.parameters) == {
        p for p in FUSIONS[name].parameters if p in (FUSIONS[name].tuned, FUSIONS[name].trained)
    }
    other = [{"u9": {"a": 1.0, "b": 0.5}}, {"u9": {"c": 2.0}}]
    assert as_dicts(tuned.fuse(other)) == as_dicts(recsys.fuse(other, name, **tuned.parameters))
    fused_here = recsys.fuse([RUN_A, RUN_B], name, **tuned.parameters)
    assert recsys.evaluate(fused_here, TRUTH, ["mrr"])["mrr"] == pytest.approx(tuned.value)
    if tuned.trials:
        assert tuned.value == max(value for _, value in tuned.trials)


def test_the_metric_decides_and_the_last_of_equals_wins():
    runs = [{"u": {"a": 1.0, "b": 0.0}}, {"u": {"b": 1.0, "a": 0.0}}]
    tuned = recsys.tune_fusion(runs, {"u": {"b"}}, "wsum", "mrr", norm=None)
    assert tuned.value == 1.0
    assert tuned.parameters == {"weights": (0.4, 0.6)}
    worst = recsys.tune_fusion(runs, {"u": {"b"}}, "wsum", "mrr", norm=None, trials=[(1, 0), (0.9, 0.1)])
    assert worst.parameters == {"weights": (0.9, 0.1)}
    assert worst.value == 0.5


def test_users_without_a_truth_do_not_train():
    more = {**RUN_A, "u3": {"a": 1.0}}
    ours = recsys.tune_fusion([more, RUN_B], TRUTH, "posfuse", "mrr").parameters["probs"]
    theirs = recsys.tune_fusion([RUN_A, RUN_B], TRUTH, "posfuse", "mrr").parameters["probs"]
    assert [list(table) for table in ours] == [list(table) for table in theirs]


def test_mapfuse_is_trained_on_average_precision():
    found = recsys.tune_fusion([RUN_A, RUN_B], TRUTH, "mapfuse", "mrr").parameters["map_scores"]
    assert found == [recsys.evaluate(run, TRUTH, ["map"])["map"] for run in (RUN_A, RUN_B)]


def test_tuning_says_that_its_value_is_of_the_data_it_was_tuned_on():
    tuned = recsys.tune_fusion([RUN_A, RUN_B], TRUTH, "wsum", "mrr")
    assert "on the 2 cases it was tuned on, the best of 11 trials" in str(tuned)
    with pytest.warns(TunedOnItselfWarning, match="chosen on"):
        tuned.fuse([RUN_A, RUN_B])


def test_what_cannot_be_tuned_is_said():
    with pytest.raises(InputError, match="comb_sum has no parameters to find"):
        recsys.tune_fusion([RUN_A, RUN_B], TRUTH, "comb_sum")
    with pytest.raises(InputError, match="trials is empty"):
        recsys.tune_fusion([RUN_A, RUN_B], TRUTH, "wsum", "mrr", trials=[])
    with pytest.raises(InputError, match="wsum gives nan"):
        recsys.tune_fusion([RUN_A, RUN_B], TRUTH, "wsum", "mrr", trials=[(math.nan, 1.0)])
    with pytest.raises(InputError, match=r"no user of the truth \('stranger', …\) has a list in any run"):
        recsys.tune_fusion([RUN_A, RUN_B], {"stranger": {"a"}}, "wsum", "mrr")


def test_weights_in_steps():
    assert len(fusion.weight_trials(3)) == math.comb(12, 2)
    assert all(math.isclose(sum(weights), 1) for weights in fusion.weight_trials(3))


def test_runs_that_leave_out_users_or_say_too_little_of_them_are_refused():
    run = {1: ["a", "b"], 2: ["b", "c"]}
    assert recsys.fuse([run, run], "rrf", missing="error").sizes.tolist() == [2, 2]
    with pytest.raises(InputError, match=r"runs\[1\] has no list for 1 of the users of runs\[0\], such as 2"):
        recsys.fuse([run, {1: ["a"]}], "rrf", missing="error")
    cases = pd.DataFrame({"case": [1, 2], "user": [1, 1], "item": ["a", "b"], "score": [1.0, 2.0]})
    with pytest.raises(InputError, match="case 3 has a user in no run, and other cases have one") as caught:
        recsys.fuse([cases, {3: [("a", 1.0)]}], "rrf")
    assert "Give every run the columns case and user." in str(caught.value)


@pytest.mark.parametrize("sigma", [-0.1, 2])
def test_sigma_is_a_share(sigma):
    runs = [{1: ["a", "b"]}, {1: ["b"]}]
    with pytest.raises(InputError, match=f"sigma={sigma} is not between 0 and 1"):
        recsys.fuse(runs, "logn_isr", sigma=sigma)
    fused = recsys.fuse(runs, "logn_isr", sigma=0.5)
    assert fused.items.values[fused.codes].tolist() == ["b", "a"]
    assert fused.scores == pytest.approx([1.25 * np.log(2.5), np.log(1.5)])


@pytest.mark.parametrize("phi", [-0.1, 2, float("nan")])
def test_phi_is_a_share(phi):
    runs = [{1: ["a", "b"]}, {1: ["b"]}]
    with pytest.raises(InputError, match=f"phi={phi} is not between 0 and 1"):
        recsys.fuse(runs, "rbc", phi=phi)
    assert recsys.fuse(runs, "rbc", phi=1).scores.tolist() == [0.0, 0.0]
    assert recsys.fuse(runs, "rbc", phi=0).scores.tolist() == [1.0, 1.0]


def test_logarithms_and_powers_are_rounded_correctly():
    """NumPy's differ in the last bit between processors."""
    n, phi, gamma = 300, 0.83, 1.7
    with localcontext() as context:
        context.prec = 50
        powers = [float(Decimal(phi) ** place) for place in range(n)]
        power, logarithm = float(Decimal(3) ** Decimal(gamma)), float(Decimal(3).ln())
    fused = recsys.fuse([{1: [*range(n)]}, {1: [n]}], "rbc", phi=phi).to_frame().set_index("item")["score"]
    assert fused[[*range(n)]].tolist() == [(1 - phi) * each for each in powers]
    runs = [{1: [("a", 1.0), ("b", 0.5)]}] * 3
    assert recsys.fuse(runs, "comb_gmnz", None, gamma=gamma).scores[0] == 3.0 * power
    assert recsys.fuse(runs, "log_isr").scores[0] == 3.0 * logarithm


def test_runs_that_share_hardly_any_user_are_told():
    many = {f"u{n}": ["a", "b"] for n in range(40)}
    others = {f"user {n}": ["b"] for n in range(40)} | {"u0": ["b"]}
    with pytest.warns(RecsysWarning, match=r"only 1 of the 40 users of runs\[0\] have a list in another run"):
        recsys.fuse([many, others])
    with pytest.warns(RecsysWarning, match=r"none of the 1 users of runs\[2\] .*'bob' there, 'u0' elsewhere"):
        recsys.fuse([many, many, {"bob": ["a"]}])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recsys.fuse([many, {"u3": ["b"]}])  # lists for few users are no other ids


def test_trials_that_are_all_equal_have_no_best():
    runs = [{1: {"a": 3.0}}, {1: {"b": 9.0}}]
    assert "on the 1 case it was tuned on, all 11 trials are equal;" in str(
        recsys.tune_fusion(runs, {1: {"z"}}, "wsum", "mrr")
    )


def test_errors_name_the_files_of_runs(tmp_path):
    (tmp_path / "a.csv").write_text("user,item,rank\n1,2,1\n")
    (tmp_path / "b.csv").write_text("user,item,score\n1,2,1\n")
    with pytest.raises(InputError, match=r"wsum|min-max.* reads scores, and .*a\.csv has none"):
        recsys.fuse([tmp_path / "a.csv", tmp_path / "b.csv"], "wsum", weights=[0.5, 0.5])
