"""The sentences of the card, in worlds where it is known what they must say."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recsys
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.results import Evaluation
from recsys.report import section_numbers
from recsys.report.decision import decide, price
from recsys.report.study import make_study
from recsys.stats.corrections import adjust
from recsys.stats.paired_tests import sign_flip
from worlds.metric_values import DISCOUNTS, Marginal, evaluation_of

N = 60
TRUTH = {u: {u, 100 + u} for u in range(N)}
CATALOGUE = list(range(3000))


def shown(results, **inputs):
    return decide(make_study(results, **inputs))


def evaluated(lists, metrics=("ndcg@10", "coverage@10"), **options):
    options = {"catalogue": CATALOGUE} | options
    return {n: recsys.evaluate(own, TRUTH, list(metrics), **options) for n, own in lists.items()}


def hits(share, first=1000):
    """Lists of ten that find both items of a share of the users, and show items of their own beside them."""
    return {
        u: [*(TRUTH[u] if u < share * N else ()), *range(first + 10 * u, first + 10 * u + 8)] for u in TRUTH
    }


ALIKE = {
    u: [u, 100 + u, *range(200, 208)] for u in TRUTH
}  # finds everything, shows everybody the same beside
IDLE = {u: list(range(1000 + 10 * u, 1010 + 10 * u)) for u in TRUTH}  # finds nothing, shows the most


class TestOneRun:
    WORDS = "trained with one seed: what others would change is open (recsys bench --seeds 5 tests it)."

    def drawn(self, lists, *names):
        results = evaluated(lists)
        for name in names:
            results[name].run = {"seed": 7}
        return results

    def test_models_that_draw_and_may_be_the_best_are_named(self):
        results = self.drawn({"best": hits(0.8), "next": hits(0.75), "last": IDLE}, "best", "next", "last")
        assert f" best and next were {self.WORDS}" in shown(results).says
        results = self.drawn({"best": hits(0.8), "next": hits(0.75), "last": IDLE}, "next", "last")
        assert f" next was {self.WORDS}" in shown(results).says

    def test_a_model_that_lost_or_draws_nothing_or_has_several_runs_is_not(self):
        results = self.drawn({"best": hits(0.8), "last": IDLE}, "last")
        assert "seed" not in shown(results).says
        several = results | {"best": [self.drawn({"best": hits(0.8)}, "best")["best"]] * 2}
        says = shown(several).says
        assert "one seed" not in says
        assert ", the mean of 2 runs, over 60 users" in says


class TestPrice:
    def test_nothing_is_paid_where_the_best_has_the_most(self):
        lists = {"best": hits(1.0), "half": {u: [u, *range(200, 209)] for u in TRUTH}}
        assert shown(evaluated(lists)).price == [
            "costs nothing measured here: no other model is ahead on coverage@10"
        ]

    def test_a_model_far_below_that_has_more_is_named_with_its_value(self):
        results = evaluated({"best": ALIKE, "near": ALIKE, "random": IDLE})
        (line,) = shown(results, baseline="random").price
        more = results["random"]["coverage@10"]
        assert more > results["best"]["coverage@10"]
        assert line == (
            "costs nothing measured here: no other model with at least half of its ndcg@10 is ahead on "
            f"coverage@10; random is ahead on coverage@10 ({more:.2f}), with ndcg@10 0.0000"
        )
        assert "nobody" not in line

    def test_values_that_print_alike_are_no_price(self):
        lists = {"best": ALIKE, "near": {u: [u, *range(200, 206), 900 + u % 2] for u in TRUTH}}
        results = evaluated(lists, catalogue=range(2_000_000))
        best, near = (results[name]["coverage@10"] for name in ("best", "near"))
        assert best != near
        assert f"{best:.3f}" == f"{near:.3f}" == "0.000"
        assert price(make_study(results)) == []

    def test_what_is_paid_is_said_against_who_has_more(self):
        results = evaluated({"best": ALIKE, "wide": hits(0.8)})
        (line,) = shown(results).price
        assert line.startswith("coverage@10 0.043, ")
        assert line.endswith(f" wide's {results['wide']['coverage@10']:.2f}")

    def test_no_price_and_nothing_measured_is_no_sentence(self):
        assert shown(evaluated({"best": ALIKE, "half": hits(0.5)}, ["ndcg@10"])).price == []


class TestWhoIsCounted:
    def test_users_without_anything_relevant_are_explained(self):
        truth = {**TRUTH, **{1000 + u: {} for u in range(15)}}
        results = {n: recsys.evaluate(ALIKE, truth, ["ndcg@10"]) for n in "ab"}
        assert "over 60 users (the other 15 of 75 have nothing relevant)." in shown(results).says

    def test_all_users_need_no_explanation(self):
        assert shown(evaluated({"a": ALIKE, "b": hits(0.5)})).says.startswith(
            "Of 2 models, a has the highest"
        )
        assert " over 60 users." in shown(evaluated({"a": ALIKE, "b": hits(0.5)})).says


class TestWhoLoses:
    def test_the_group_where_most_lose_is_part_of_a_sentence(self):
        # Twenty users want what everybody had, twenty what one user had, and twenty what is new.
        train = pd.DataFrame([(u, 500) for u in range(N)] + [(1000 + u, 600 + u) for u in range(20, 40)])
        train.columns = ["user", "item"]
        truth = {u: {500} if u < 20 else {600 + u} for u in range(N)}
        popular = {u: [500] for u in truth}
        personal = {u: [600 + u] for u in truth} | {u: [500] for u in range(5)}
        results = {
            n: recsys.evaluate(own, truth, ["ndcg@10"])
            for n, own in {"popular": popular, "personal": personal}.items()
        }
        card = shown(results, baseline="popular", train=train, truth=truth)
        (tile,) = (one for one in card.tiles if one.label == "who loses")
        assert tile.text == "15 of 60 users are served worse than by popular, 40 better"
        assert tile.small == "Most often among users whose relevant items are mainstream (75%, 15 of 20)."

    @pytest.mark.parametrize(
        ("group", "label", "phrase"),
        [
            ("activity", "1", "with 1 training interaction"),
            ("activity", "2\u20134", "with 2\u20134 training interactions"),
            ("cold and warm users", "cold (none)", "who are cold in training"),
            ("relevant items", "1", "with 1 relevant item"),
            ("of the caller", "1", "of the group 1"),
        ],
    )
    def test_groups_are_phrases(self, group, label, phrase):
        from recsys.report.section_numbers import GroupValues
        from recsys.report.study import make_study

        had = {u: range(n) for u, n in enumerate([0, 0, 0, 1, 1, 1, 2, 3, 4, 7, 7, 7])}
        truth = {u: {100 + u, *([200] if u % 2 else [])} for u in range(12)}
        result = recsys.evaluate({u: [100 + u] for u in truth}, truth, ["ndcg@10"])
        data = make_study({"a": result}, train=had, truth=truth)
        strata = {one.name: one for one in data.strata}
        strata["of the caller"] = GroupValues("", "", {}, {}, "", {})
        assert strata[group].who(label) == phrase

    def test_another_group_names_its_users(self):
        truth = {u: {u} for u in range(80)}
        first = {u: [u] if u < 50 else [900] for u in truth}
        second = {u: [u] if u >= 50 else [900] for u in truth}
        by = {u: "late" if u >= 50 else "early" for u in truth}
        results = {
            n: recsys.evaluate(own, truth, ["ndcg@10"], by=by)
            for n, own in {"first": first, "second": second}.items()
        }
        assert (
            "Who your users are: in some groups another model is ahead of first (second for users of the "
            "group late), by sign flips, Holm over 2 comparisons in groups." in shown(results).changes
        )

    def test_small_groups_and_a_metric_whose_best_is_zero_are_not_claimed(self):
        first, second, by = np.ones(60), np.ones(60), np.repeat(["few", "many"], [19, 41])
        first[:19], second[30:] = 0.0, 0.0
        data = by_group([first, second], by)
        assert [key[2] for key in data.group_rows[data.best]] == ["many"]
        assert who_is_ahead(data) == {}


def by_group(hits, by):
    """The report's data on the hits of models x users."""
    results = {}
    origin = StoredOrigin(ranges={"hit@1": (0.0, 1.0)})
    masks = {str(group): by == group for group in dict.fromkeys(by.tolist())}
    for number, row in enumerate(hits):
        made = evaluation_of("hit", row[None].astype(float))
        parts = made.partial, made.requests, made.conventions
        results[f"model {number}"] = Evaluation(*parts, by=masks, origin=origin)
    return make_study(results)


def who_is_ahead(data):
    """{group: the model that is said to be ahead of the best of all users}."""
    (stratum,) = data.strata
    ahead = {label: section_numbers.ahead_in_group(data, stratum, label) for label in stratum.masks}
    return {label: model for label, model in ahead.items() if model is not None}


class TestWhoIsAheadInGroups:
    """All groups and models could have been named, so a claim is of a test over all of them."""

    @pytest.mark.parametrize(("n_models", "n_groups"), [(2, 8), (5, 20)])
    def test_equal_models_are_not_ahead_of_each_other(self, n_models, n_groups):
        rng, by = np.random.default_rng(0), np.arange(80 * n_groups) % n_groups
        worlds = rng.random((25, n_models, len(by))) < 0.3
        claims = sum(bool(who_is_ahead(by_group(hits, by))) for hits in worlds)
        assert claims <= stats.binom.isf(0.001, 25, 0.05)

    def test_a_model_that_is_better_in_one_group_of_eight_is_named(self):
        rng, by = np.random.default_rng(0), np.arange(2400) % 8
        chance = np.full((3, 2400), 0.3)
        chance[0] += 0.05
        chance[1, by == 5] = 0.5
        claims = [who_is_ahead(by_group(hits, by)) for hits in rng.random((20, 3, 2400)) < chance]
        assert sum(claim == {"5": "model 1"} for claim in claims) >= 13

    def test_the_p_values_of_all_groups_and_models_are_one_family(self):
        rng, by = np.random.default_rng(0), np.arange(240) % 4
        data = by_group(rng.random((3, 240)) < 0.5, by)
        rows, (best, *others) = data.group_rows[data.best], data.names
        values = {name: data.first(name).values_of("hit@1") for name in data.names}
        pairs = [(name, group) for group in range(4) for name in others]
        tests = [sign_flip((values[name] - values[best])[by == group]) for name, group in pairs]
        adjusted = adjust([test.p_value for test in tests], "holm")
        found = [rows[name, "group of the evaluation", str(group)] for name, group in pairs]
        assert [row.adjusted_p for row in found] == pytest.approx(adjusted)
        assert [row.pair.sample.mean for row in found] == pytest.approx([test.difference for test in tests])
        assert all(row.wins + row.ties + row.losses == 60 for row in found)


class TestWhatWouldChangeIt:
    def test_the_same_values_are_not_a_lead(self):
        changes = shown(evaluated({"a": ALIKE, "b": ALIKE}, ["ndcg@10", "recall@10"])).changes
        assert "No secondary metric of accuracy: no model is ahead on the other." in changes

    def test_a_lead_on_the_others_is_one(self):
        changes = shown(evaluated({"a": ALIKE, "b": hits(0.5)}, ["ndcg@10", "recall@10", "mrr"])).changes
        assert "No secondary metric of accuracy: a leads on the other 2 as well." in changes

    def test_all_users_differ_and_more_are_not_asked_for(self):
        lists = {"a": {u: [u] for u in range(300)}, "b": {u: [900] for u in range(300)}}
        truth = {u: {u} for u in range(300)}
        results = {n: recsys.evaluate(own, truth, ["hit@10"]) for n, own in lists.items()}
        card = shown(results)
        assert not [line for line in card.changes if line.startswith("More users")]

    def test_few_that_differ_are_counted(self):
        results = evaluated({"a": ALIKE, "b": {**ALIKE, 0: [900]}})
        assert "More users: the two best differ for 1 of 60 only." in shown(results).changes


class TestHowItWasSplit:
    @pytest.mark.parametrize(
        ("split", "is_said"),
        [
            ({"how": "per_user_ratio", "parameters": {}}, True),
            ({"how": "random_ratio", "parameters": {}}, True),
            ({"how": "leave_one_out", "parameters": {"which": "random"}}, True),
            ({"how": "leave_one_out", "parameters": {"which": "last"}}, False),
            ({"how": "global_temporal", "parameters": {"test": 0.1}}, False),
            ("by hand", False),
            (None, False),
        ],
    )
    def test_a_drawn_test_is_said(self, split, is_said):
        card = shown(evaluated({"a": ALIKE, "b": hits(0.5)}), methods={"split": split})
        assert (
            "The test was drawn at random, so this says nothing about the future." in card.says
        ) == is_said

    def test_bench_says_it_on_its_card(self):
        rng = np.random.default_rng(0)
        rows = [(u, i) for u in range(40) for i in rng.choice(30, 10, replace=False)]
        result = recsys.bench(pd.DataFrame(rows, columns=["user", "item"]), baselines=["random"], trials=1)
        assert result.plan.how == "per_user_ratio"
        assert "The test was drawn at random" in result.decision.says


def test_small_whole_ids_that_training_lacks_are_not_ids_that_match():
    train = pd.DataFrame({"user": [1, 2], "item": [2, 9]})  # 5 and 6 lie between, and never occur
    truth = {1: [5], 2: [6]}
    lists = {1: [2], 2: [3]}
    nothing = recsys.evaluate(lists, truth, ["mrr"])
    causes = " ".join(shown({"m": nothing}, lists={"m": lists}, truth=truth, train=train).causes)
    assert "nor in training: they are new, or their ids are written in another way." in causes
    assert "the ids match" not in causes


class TestPromises:
    """How often the card names a model: five models of 1,000 users, one relevant item each."""

    HIT, SHARED = 0.2, 0.6

    def drawn(self, rng, best=1.0, n=1000):
        """Five models whose hits go together; the last one finds `best` times as much."""
        scores = np.sqrt(self.SHARED) * rng.standard_normal(n)
        scores = scores + np.sqrt(1 - self.SHARED) * rng.standard_normal((5, n))
        chances = [self.HIT] * 4 + [best * self.HIT]
        first = [
            Marginal("ndcg", 1 - p, tuple(DISCOUNTS)).at(z) for p, z in zip(chances, scores, strict=True)
        ]
        more = Marginal("ndcg", 1 - self.HIT, tuple(DISCOUNTS)).at(rng.standard_normal((5, 9, n)))
        return [
            {
                f"m{at}": evaluation_of("ndcg", np.stack([own, *rest][:k]))
                for at, (own, rest) in enumerate(zip(first, more, strict=True))
            }
            for k in (1, 10)
        ]

    def test_a_best_by_a_quarter_is_found_with_one_metric_and_with_ten_alike(self):
        rng, found = np.random.default_rng(0), []
        for world in range(60):
            one, ten = self.drawn(rng, best=1.25)
            card = shown(one)
            found.append(card.heading)
            if world % 5 == 0:
                with_ten = shown(ten)
                assert (with_ten.heading, with_ten.tiles[0]) == (card.heading, card.tiles[0])
        assert found.count("Ship m4") >= 40  # four in five on average
        assert not [heading for heading in found if heading.startswith("Ship") and heading != "Ship m4"]

    def test_one_of_five_equal_models_is_seldom_named(self):
        rng = np.random.default_rng(1)
        found = [shown(self.drawn(rng)[0]).heading for _ in range(60)]
        assert sum(heading.startswith("Ship") for heading in found) <= 3  # 5%
