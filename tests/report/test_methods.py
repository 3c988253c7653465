"""The methods paragraph says what results know, marks what they do not, and cites real publications."""

from __future__ import annotations

import html
import re

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.errors import FileError, InputError, hush
from recsys.metrics import METRICS
from recsys.metrics.registry import RATINGS
from recsys.report import methods_paragraph
from recsys.report.methods import references
from recsys.stats.comparison_table import EFFECTS, TESTS
from recsys.stats.corrections import CORRECTIONS

METRICS_ASKED = ["ndcg@5", "ndcg@10", "recall@10", "coverage@10"]


@pytest.fixture(scope="module")
def world():
    """A split, and a function that evaluates a model with some noise on it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "user_id": np.repeat(np.arange(120), 12),
            "item_id": np.concatenate([rng.permutation(40)[:12] for _ in range(120)]),
            "rating": rng.integers(1, 6, 1440),
            "timestamp": np.arange(1440),
        }
    )
    split = recsys.split(frame, "leave_last", n=4)
    users, items = rng.normal(size=(120, 4)), rng.normal(size=(40, 4))

    def result(noise, **options):
        model = recsys.Factors(users + noise * np.random.default_rng(1).normal(size=users.shape), items)
        choices = {"seen": split.train, "conventions": {"relevant_from": 2}, **options}
        return recsys.evaluate(model, split.test, METRICS_ASKED, **choices)

    return split, result


def test_it_says_what_a_result_knows_and_marks_the_rest(world):
    _, result = world
    made = result(0, conventions={"relevant_from": 4, "gain": "exp2"})
    text = str(made.methods())
    n_without = made.counts["without_truth"]
    assert f"480 judged items of 120 users, {n_without} without relevant items (left out)" in text
    assert "An item is relevant from grade 4 on." in text
    assert "Every candidate of a user was ranked, without sampling" in text
    assert "The catalogue has 40 items." in text
    assert "ndcg@5 and ndcg@10 (Järvelin & Kekäläinen 2002); recall@10 (Manning et al. 2008)" in text
    assert "unlike its defaults, the gain of a hit is 2^grade - 1 (in ndcg@5 and ndcg@10)" in text
    assert "Confidence intervals of 95%" in text
    assert f"begins with {made.methods().sentences[-1].split()[-1]}" in text
    assert [what.split()[0] for what in made.methods().to_add] == ["its", "how,", "which"]
    for what in made.methods().to_add:
        assert f"[TO ADD: {what}]" in text
    assert "leave_last" not in text, "the split was not told"


def test_what_is_told_is_not_marked(world):
    split, result = world
    made = result(0, seen=None).methods(data="ML_1M & more", split=split)
    assert made.to_add == ()
    text = str(made)
    assert "The data set is ML_1M & more." in text
    assert (
        "strategy leave_last of recsys (n=4, validation=0) into 960 rows of train and 480 rows of test"
        in text
    )
    assert "items of the training data were not left out" in text
    assert str(result(0, seen=None).methods(data="ML_1M & more", split=split.manifest)) == text
    assert "test data at random." in str(result(0).methods(split="at random."))


def test_latex_and_markdown_escape_what_they_must(world):
    split, result = world
    made = result(0).methods(data="ML_1M & more", split=split)
    latex, markdown = made.to_latex(), made.to_markdown()
    assert r"ML\_1M \& more" in latex
    assert (
        r"ndcg@5 and ndcg@10~\cite{jarvelin2002cumulated}; recall@10~\cite{manning2008introduction}" in latex
    )
    assert r"\textbf{[TO ADD: which items were not candidates" in latex
    assert "95\\%" in latex
    assert r"ML\_1M & more" in markdown
    assert "ndcg@5 and ndcg@10 [@jarvelin2002cumulated];" in markdown
    assert "**[TO ADD: which items were not candidates" in markdown
    assert markdown.count("\n@article{jarvelin2002cumulated,") == 1
    cited = set(re.findall(r"\\cite\{([^}]*)\}", latex))
    assert {key for keys in cited for key in keys.split(",")} == {each.key for each in made.cited}
    assert set(re.findall(r"^@\w+\{(\w+),", made.bibtex, re.MULTILINE)) == {each.key for each in made.cited}


def test_a_comparison_says_its_test_interval_and_correction(world):
    _, result = world
    compared = recsys.compare({"a_b": result(0), "new": result(0.5), "old": result(1.0)}, "old", margin=0.1)
    text = str(compared.methods())
    assert "We compared a_b and new with old, paired by user (120 users)." in text
    assert "is the sign-flip permutation test (Smucker et al. 2007) for ndcg@5, ndcg@10 and" in text
    families = "2 pairs of models on ndcg@5; secondary: the same on 3 other metrics, 6 comparisons."
    assert f"corrected by Holm's method (Holm 1979) within each family: {families}" in text
    assert "The intervals of a family hold together (Bonferroni)." in text
    assert "Equivalence within 0.1 is tested by two one-sided tests (Schuirmann 1987)." in text
    hashes = re.findall(r"([0-9a-f]{12}) \((\w+)\)", text)
    assert [name for _, name in hashes] == ["a_b", "new", "old"]
    chosen = str(recsys.compare({"a": result(0), "b": result(0.5), "c": result(1.0)}).methods())
    assert "which has the best ndcg@5, with" in chosen
    assert "(Holm 1979), for the choice of the best too, within each family: the best of 3 models" in chosen
    pairs = compared.pairs(correction="none", test="t", effect="cliffs_delta")
    text = str(pairs.methods())
    assert "We compared every pair of models" in text
    assert "is the paired t-test (Student 1908)" in text
    assert "not corrected for multiple comparisons: there are 12." in text
    assert "cliffs_delta (Cliff 1993)" in text
    one = recsys.compare({"new": result(0.5), "old": result(1.0)}, metrics=["recall@10"]).methods()
    assert "ndcg" not in str(one)
    assert "There is one comparison" in str(one)
    assert "holm1979simple" not in one.bibtex


def test_a_catalogue_that_was_found_names_what_was_given():
    lists, truth = {user: [user % 7] for user in range(30)}, {user: {0} for user in range(30)}
    without = recsys.evaluate(lists, truth, ["coverage@1"])
    assert "The catalogue has 7 items (those of lists and truth)." in str(without.methods())
    given = recsys.evaluate(lists, truth, ["coverage@1"], train={1: [8]})
    assert "has 8 items (those of training data, lists and truth)." in str(given.methods())


def test_lists_and_sampled_candidates_claim_no_catalogue():
    lists = recsys.evaluate({1: [3, 5], 2: [4]}, {1: {5}, 2: {4}}, ["mrr"]).methods()
    assert "ready lists were evaluated as they came" in str(lists).lower()
    assert any("from which items each list was chosen" in what for what in lists.to_add)
    assert "catalogue" not in str(lists)
    scores = np.array([[0.9, 0.1, 0.2], [0.1, 0.5, 0.3]])
    ruled_out = recsys.evaluate(recsys.Scores(scores), {0: [1], 1: [2]}, ["mrr"]).methods()
    assert "not left out" not in str(ruled_out), "some scores may be -inf"
    assert any("which items were not candidates" in what for what in ruled_out.to_add)
    sampled = recsys.evaluate_candidates(scores, [(0, 1, [3, 4]), (1, 2, [3, 4])], ["mrr"])
    assert "ranked among 3 candidates, not among the whole catalogue (Krichene & Rendle 2020)" in str(
        sampled.methods()
    )


def test_cautions_and_ratings(world):
    lists = {user: [user + 1, user + 2, user + 3] for user in range(5)}
    short = recsys.evaluate(lists, {0: {2}, 4: {9}}, ["recall@20"])
    assert [what for what in short.methods().to_add if what.startswith("an answer to this caution: ")]
    table = pd.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "rating": [4, 3, 5], "prediction": [4, 4, 4]})
    rated = str(recsys.evaluate_ratings(table, metrics=["rmse"]).methods())
    assert "3 ratings of 2 users" in rated
    assert "rmse (Herlocker et al. 2004)" in rated
    assert "relevant" not in rated


def test_files(world, tmp_path):
    _, result = world
    made = result(0).methods()
    assert made.write(tmp_path / "m.md") == [tmp_path / "m.md"]
    assert made.write(tmp_path / "m.tex") == [tmp_path / "m.tex", tmp_path / "m.bib"]
    assert (tmp_path / "m.tex").read_text() == made.to_latex() + "\n"
    assert (tmp_path / "m.bib").read_text() == made.bibtex
    with pytest.raises(FileError, match=r"\.md, \.txt, \.tex"):
        made.write(tmp_path / "m.docx")
    for wrong in (42, {}, {"a": 1}):
        with pytest.raises(InputError, match="methods paragraph"):
            methods_paragraph(wrong)
    with pytest.raises(InputError, match="split came as int"):
        result(0).methods(split=3)
    assert "(als)" in str(methods_paragraph({"als": result(0), "bpr": result(1)}))


def test_the_report_has_it_folded(world):
    pytest.importorskip("jinja2")
    _, result = world
    compared = recsys.compare({"a<b>": result(0), "old": result(1.0)}, "old")
    page = recsys.report.report_html(compared)
    folded = page[page.index('<section id="methods"') :].partition("</section>")[0]
    texts = [html.unescape(text) for text in re.findall(r'<pre class="copy">(.*?)</pre>', folded, re.DOTALL)]
    assert texts == [str(compared.methods()), compared.methods().bibtex]
    assert folded.count("<details") == 2
    assert "a&lt;b&gt;" in folded


def test_every_reference_of_the_registry_is_an_entry_or_listed_as_none():
    used = {metric.reference for registry in (METRICS, RATINGS) for metric in registry.values()}
    known = references()
    assert used <= set(known)
    assert {name for name in known if not name.startswith("statistics: ")} == used, (
        "no entry that nothing cites"
    )
    # A reference with a year is a publication; the others name a program.
    assert {name for name in used if known[name] is None} == {
        "Accuracy of RecTools", "MAR@K of recmetrics 0.1.5", "RecTools 0.19, Serendipity",
        "RecTools 0.19, SufficientReco", *(name for name in used if "trec_eval" in name),
    }  # fmt: skip


def test_entries_agree_with_the_references_they_stand_for():
    keys = set()
    for name, entry in references().items():
        if entry is None:
            continue
        keys.add(entry.key)
        assert entry.bibtex.count("{") == entry.bibtex.count("}"), name
        for field in ("author", "title", "year"):
            assert re.search(rf"\b{field} = \{{", entry.bibtex), f"{name} has no {field}"
        year = re.search(r"\((\d{4})\)", name)
        if year:
            assert f"year = {{{year[1]}}}" in entry.bibtex, name
            first = re.search(r"author = \{([^,}]*)", entry.bibtex)[1]
            assert first in name, name
    assert len(keys) == len({entry.bibtex for entry in references().values() if entry})


def test_every_statistical_choice_has_its_publication():
    names = {name.removeprefix("statistics: ") for name in references()}
    assert set(EFFECTS) <= names
    assert set(CORRECTIONS) - {"none"} | {"max-t"} <= names
    labels = {"t": "paired t", "wilcoxon": "Wilcoxon"}
    assert {labels.get(test, test) for test in TESTS} <= names


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"no_worse_than": 0.02}, "Non-inferiority is tested with a margin of 0.02."),
        ({"rope": 0.01}, "The region of practical equivalence is ±0.01 (Benavoli et al. 2017)."),
        (
            {"covariates": {u: float(u % 5) for u in range(120)}},
            "Differences are adjusted for covariates of users (Deng et al. 2013).",
        ),
        (
            {"strata": {u: "xy"[u % 2] for u in range(120)}},
            "Differences are post-stratified by groups of users (Miratrix et al. 2013).",
        ),
    ],
)
def test_options_of_a_comparison_are_told_with_their_publication(world, options, words):
    _, result = world
    results = {"new": result(0.5), "old": result(1.0)}
    with hush(recsys.errors.RecsysWarning):  # an adjustment holds for users with the same values
        compared = recsys.compare(results, "old", metrics=["ndcg@5"], **options)
    assert words in str(compared.methods())


def test_a_metric_of_the_catalogue_has_no_effect_size_and_nothing_no_lift(world):
    _, result = world
    results = {"new": result(0.5), "old": result(1.0)}
    assert "The effect size is" in str(recsys.compare(results, "old").methods())
    assert "effect size" not in str(recsys.compare(results, "old", metrics=["coverage@10"]).methods())
    nothing = {
        name: recsys.evaluate({u: [9, item] for u in range(30)}, {u: [1] for u in range(30)}, ["mrr"])
        for name, item in (("new", 1), ("old", 2))
    }
    with pytest.warns(recsys.errors.RecsysWarning, match="zero variance"):
        text = str(recsys.compare(nothing, "old").methods())
    assert "Confidence intervals of 95% are, of a difference, by" in text
    assert "relative difference" not in text


def test_a_stopped_evaluation_and_intervals_of_your_own_are_told(world):
    split, result = world
    rng = np.random.default_rng(2)
    model = recsys.Factors(rng.normal(size=(120, 4)), rng.normal(size=(40, 4)))
    stopped = recsys.evaluate(model, split.test, ["recall@10"], stop_when=0.2)
    seen = stopped.notes["stopped"]["n_seen"]
    assert f"The evaluation was stopped early, after {seen} of 120 users." in str(stopped.methods())
    made = result(0)
    text = str(made.methods(intervals=made.intervals(confidence=0.9)))
    assert "Confidence intervals of 90% take the users as a sample" in text
