"""Figures and charts: each is drawn, shows its numbers and can be saved; colours can be distinguished."""

import base64
import inspect
import itertools
import json
import math
import re
import sys
from datetime import UTC, date, datetime

import numpy as np
import pytest

import recsys
from recsys.errors import InputError, MissingExtraError, UnknownNameError
from recsys.report import charts, figures, pictures, style, write_report
from recsys.report.pictures import PICTURES, Mark, Panel, Picture, Series
from recsys.report.pictures.vocabulary import model_series, names_axis, number_axis, number_text, spread
from worlds.report import HOSTILE, evaluations, world

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")
vl_convert = pytest.importorskip("vl_convert", reason="vl-convert is not installed")

NAMES = ["popularity", "als", "bpr"]
RNG = np.random.default_rng(0)


def calls(names, scale=1.0, word="few"):
    """Data and options of every picture, for these models: values are multiples of `scale`."""

    def triple(i):
        return (scale * (0.2 + 0.01 * i), scale * (0.18 + 0.01 * i), scale * (0.23 + 0.01 * i))

    numbered = list(enumerate(names))
    by_k = {
        n: {1: triple(i), 5: 2 * scale * (i + 1), 10: triple(i + 2), 20: triple(i + 3)} for i, n in numbered
    }
    nights = [
        date(2026, 1, 1),
        "2026-01-02T04:00:00+00:00",
        np.datetime64("2026-01-05T03"),
        datetime(2026, 1, 9, tzinfo=UTC),
    ]
    return {
        "bars": ({n: {word: triple(i), "mrr": scale * 0.3} for i, n in numbered}, {"baseline": names[0]}),
        "curve": (by_k, {"metric": "ndcg@k"}),
        "cutoffs": ({word: by_k, "recall": by_k, "mrr": by_k}, {"baseline": names[0], "order": names}),
        "lines": ({n: {0.0: triple(i), 0.5: triple(i + 1)} for i, n in numbered}, {"x": "noise", "y": "it"}),
        "tradeoff": ({n: (scale * 0.1 * i, scale * 0.2) for i, n in numbered}, {"x": "coverage", "y": "mrr"}),
        "distribution": ({n: scale * RNG.beta(1, 3, 200) for n in names}, {"metric": "ndcg@10"}),
        "strata": (
            {n: {word: triple(i), "many": scale * 0.4} for i, n in numbered},
            {"sizes": {word: 3, "many": 4}, "title": word, "metric": "ndcg@10"},
        ),
        "headtail": ({n: {word: 0.7, "tail": 0.3} for n in names}, {}),
        "hits": (dict.fromkeys(names, (0.7, 0.2, 0.1)), {"k": 10}),
        "winloss": (dict.fromkeys(names, (30, 20, 10)), {"baseline": names[0]}),
        "places": (dict.fromkeys(names, (1, max(len(names), 2))), {"metric": word, "baseline": names[0]}),
        "forest": (
            {word: {n: triple(i) for i, n in numbered}, "map": dict.fromkeys(names, (scale, 0, 7 * scale))},
            {"unit": {word: "%"}, "title": word},
        ),
        "sorted_differences": (scale * RNG.normal(0, 1, 300).round(1), {"names": (word, names[0])}),
        "duel": ((scale * RNG.random(300), scale * RNG.random(300)), {"names": (names[0], word)}),
        "embedding": (
            scale * RNG.standard_normal((20, 2)),
            {"groups": [word, "b"] * 10, "labels": [word] * 20, "sizes": range(20), "title": word},
        ),
        "history": (
            {n: list(zip(nights, [triple(i + j) for j in range(4)], strict=True)) for i, n in numbered},
            {"changes": nights[2:3]},
        ),
        "heat": ({n: {word: scale * 0.1, "b": scale * 0.2} for n in names}, {"title": word}),
    }  # fmt: skip


CALLS = calls(NAMES)
TEN = [f"a model with number {i}" for i in range(10)]
WORLDS = {
    "one model": calls(["als"]),
    "ten models": calls(TEN),
    "no values": calls(NAMES, math.nan),
    "all zero": calls(NAMES, 0.0),
    "huge": calls(NAMES, 1e12),
    "small": calls(NAMES, 3e-9),
    "negative": calls(NAMES, -1.0),
}


def describe(name, data, options):
    return PICTURES[name](*(data if name == "duel" else (data,)), **options)


def draw(room, name, data, options, **more):
    return getattr(room, name)(*(data if name == "duel" else (data,)), **options, **more)


def all_axes(axes):
    return list(np.asarray(axes, dtype=object).flat)


def overlaps(boxes):
    """Pairs of boxes (left, bottom, right, top) that share more than a pixel."""
    pairs = itertools.combinations(boxes, 2)
    return [(a, b) for a, b in pairs if all(min(a[i + 2], b[i + 2]) - max(a[i], b[i]) > 1 for i in (0, 1))]


def text_boxes(axes, kind="texts"):
    """The boxes of the texts (or tick labels) of Axes in pixels; the figure must be laid out."""
    texts = {"texts": axes.texts, "x": axes.get_xticklabels(), "y": axes.get_yticklabels()}[kind]
    return [text.get_window_extent().extents for text in texts if text.get_text()]


@pytest.fixture(autouse=True)
def closed():
    """Every figure is closed: an open one is a leak, and matplotlib says so."""
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def results():
    lists, truth, *_ = world()
    return evaluations(lists, truth, by=lambda user: "even" if user % 2 == 0 else "odd")


def test_a_picture_is_described_in_one_place_and_drawn_by_both(monkeypatch):
    monkeypatch.setitem(PICTURES, "moon", None)

    @pictures.picture
    def moon(phase, *, title=""):
        """How much of the moon is seen."""
        rows = [{"what": title, "share": phase}]
        axis = number_axis(rows, ("share",), "seen", percent=True)
        panel = Panel(rows, [Mark("bar", "what", "share")], names_axis([title]), axis,
                      Series("what", [title], [style.INK]))  # fmt: skip
        return Picture("The moon.", [panel])

    assert charts.moon(0.3, title="tonight").spec["data"]["values"] == [{"what": "tonight", "share": 0.3}]
    assert [bar.get_height() for bar in figures.moon(0.3, title="tonight").patches] == [0.3]
    assert list(inspect.signature(charts.moon).parameters) == ["phase", "title"]
    assert list(inspect.signature(figures.moon).parameters) == ["phase", "title", "ax"]
    assert "moon" in dir(charts)
    assert "moon" in dir(figures)
    assert charts.moon.__doc__ == figures.moon.__doc__ == moon.__doc__


def test_every_picture_has_its_calls_here():
    assert set(CALLS) == set(charts.__all__) - {"Chart"} == set(figures.__all__) - {"save"}
    with pytest.raises(AttributeError, match="no attribute 'pie'"):
        charts.pie()


def test_both_save_files_of_every_kind(tmp_path):
    axes, chart = draw(figures, "forest", *CALLS["forest"]), draw(charts, "forest", *CALLS["forest"])
    for kind, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        assert figures.save(axes, tmp_path / f"f.{kind}").read_bytes().startswith(start)
    for kind, start in (
        ("png", b"\x89PNG"),
        ("pdf", b"%PDF"),
        ("svg", b"<svg"),
        ("html", b"<!doctype html>"),
    ):
        assert chart.save(tmp_path / f"c.{kind}").read_bytes().startswith(start)
    assert json.loads(chart.save(tmp_path / "c.json").read_text(encoding="utf-8")) == chart.spec
    assert list(tmp_path.glob("*.part")) == []


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", WORLDS)
def test_any_values_are_drawn_by_both(name, kind):
    data, options = WORLDS[kind][name]
    chart = draw(charts, name, data, options)
    json.dumps(chart.spec, allow_nan=False)
    svg = vl_convert.vegalite_to_svg(chart.spec, allowed_base_urls=[])
    assert "NaN" not in svg
    assert "undefined" not in svg
    for axes in all_axes(draw(figures, name, data, options)):
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()
        for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
            words = [text.get_text() for text in ticks if text.get_text()]
            assert len(set(words)) == len(words)
        legend = axes.get_legend()
        if legend is not None and kind == "ten models":  # outside of the data
            axes.figure.draw_without_rendering()
            for covered in (axes, axes.yaxis.label, axes.title):
                boxes = legend.get_window_extent().extents, covered.get_window_extent().extents
                assert not overlaps(boxes)


@pytest.mark.parametrize("name", CALLS)
def test_nothing_at_all_is_drawn_too(name):
    data = {"duel": ([], []), "sorted_differences": [], "embedding": np.empty((0, 2))}.get(name, {})
    vl_convert.vegalite_to_svg(draw(charts, name, data, {}).spec, allowed_base_urls=[])
    for axes in all_axes(draw(figures, name, data, {})):
        axes.figure.draw_without_rendering()


@pytest.mark.parametrize("name", CALLS)
def test_a_figure_can_be_drawn_into_given_axes_and_leaves_the_settings_alone(name):
    before = dict(matplotlib.rcParams)
    data, options = CALLS[name]
    n = len(describe(name, data, options).panels)
    _, ax = pyplot.subplots(1, n)
    assert draw(figures, name, data, options, ax=ax) is ax
    assert dict(matplotlib.rcParams) == before


def test_panels_and_axes_must_be_as_many():
    with pytest.raises(InputError, match=r"3 panels, ax= has 1") as caught:
        draw(figures, "cutoffs", *CALLS["cutoffs"], ax=pyplot.subplots()[1])
    assert "plt.subplots(1, 3)" in str(caught.value)


def test_a_duel_counts_every_pair():
    first, second = RNG.random(500), RNG.random(500)
    first[:7] = np.nan
    chart = charts.duel(first, second, names=("a", "b"), metric="ndcg@10")
    assert sum(row["users"] for row in chart.spec["data"]["values"]) == 493
    assert figures.duel(first, second, names=("a", "b"), metric="ndcg@10").get_ylabel() == "ndcg@10 of b"


def axis_names(chart, field):
    """The names on the axis of a field, in order, in the first layer that has one."""
    for layer in chart.spec["layer"]:
        for encoded in layer.get("encoding", {}).values():
            if isinstance(encoded, dict) and encoded.get("field") == field:
                return [str(name) for name in encoded["scale"]["domain"]]
    raise AssertionError(field)


@pytest.mark.parametrize(("name", "field"), [("bars", "metric"), ("strata", "at"), ("heat", "column")])
def test_a_column_without_values_is_in_both_and_empty_in_both(name, field):
    values = {n: {"a": 0.1, "none": np.nan, "b": (0.3, 0.2, 0.4)} for n in NAMES}
    chart, axes = getattr(charts, name)(values), getattr(figures, name)(values)
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert axis_names(chart, field) == ticks == ["a", "none", "b"]
    assert {row[field] for row in chart.spec["data"]["values"]} == {"a", "b"}


def test_a_cut_off_without_values_and_models_without_any_are_treated_alike():
    values = {n: {1: 0.1, 5: 0.2, 10: np.nan} for n in NAMES}
    chart, axes = charts.curve(values), figures.curve(values)
    x = chart.spec["layer"][0]["encoding"]["x"]
    assert (x["axis"]["values"], x["scale"]["domain"][0]) == ([1, 5, 10], 1)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "5", "10"]
    points = {"als": (0.1, 0.2), "gone": (np.nan, 0.2)}
    assert [row["model"] for row in charts.tradeoff(points).spec["data"]["values"]] == ["als"]
    assert [text.get_text() for text in figures.tradeoff(points).texts] == ["als"]
    nights = {"als": [("2026-01-01", 0.3), ("2026-01-02", np.nan)]}
    assert len(charts.history(nights).spec["data"]["values"]) == 1


def test_any_number_of_groups_has_a_shade_of_its_own():
    shares = {n: {f"group {g}": 1 / 7 for g in range(7)} for n in NAMES}
    chart, axes = charts.headtail(shares), figures.headtail(shares)
    scale = chart.spec["layer"][0]["encoding"]["color"]["scale"]
    assert len(scale["domain"]) == len(set(scale["range"])) == 7
    drawn = {matplotlib.colors.to_hex(patch.get_facecolor()) for patch in axes.patches}
    assert drawn == set(scale["range"])


def test_hits_are_stacked_shares_of_users():
    shares = {"als": (0.5, 0.3, 0.2), "bpr": (0.8, 0.15, 0.05)}
    rows = charts.hits(shares, k=10).spec["data"]["values"]
    assert [(r["group"], r["from"], r["to"]) for r in rows if r["who"] == "als"] == [
        ("no hit", 0, 0.5), ("1 hit", 0.5, 0.8), ("2+ hits", 0.8, 1.0)
    ]  # fmt: skip
    axes = figures.hits(shares, k=10)
    assert axes.get_xlabel() == "share of users by hits in the first 10"
    assert [t.get_text() for t in axes.texts] == ["50%", "30%", "20%", "80%", "15%"]
    assert figures.hits({"als": (0.9, 0.6, 0.5)}).get_xlim() == (0, 2)  # too much is seen, not cut off


@pytest.mark.parametrize("lower", [False, True])
def test_sorted_differences_say_who_wins_and_do_not_grow_with_the_users(lower):
    gaps = np.r_[np.full(3000, 0.5), np.zeros(5000), np.linspace(-0.4, -0.1, 2000), [np.nan] * 9]
    chart = charts.sorted_differences(
        -gaps if lower else gaps, names=("pop", "als"), metric="mrr", lower=lower
    )
    rows = chart.spec["data"]["values"]
    assert len(rows) <= 3 * 81
    assert "3,000 won, 5,000 tied, 2,000 lost" in chart.description
    words = chart.spec["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert words == ["won 30%", "tied 50%", "lost 20%"]
    places = [[r["x"] for r in rows if r["users"] == word] for word in words]
    assert [(min(at), max(at)) for at in places] == [(0, 0.3), (0.3, 0.8), (0.8, 1.0)]
    values = [r["value"] for r in rows]
    assert values == sorted(values, reverse=not lower)


def test_times_of_any_kind_are_put_on_one_axis():
    times = [
        "2026-01-31T05:00:00+01:00",
        datetime(2026, 1, 31, 4, tzinfo=UTC),
        np.datetime64("2026-01-31T04"),
    ]
    rows = charts.history({"als": [(time, 0.3) for time in times]}).spec["data"]["values"]
    assert {row["x"] for row in rows} == {"2026-01-31T04:00:00"}
    with pytest.raises(InputError, match=r"'last night' is not a time\."):
        charts.history({"als": [("last night", 0.3)]})


@pytest.mark.parametrize("kind", CALLS)
def test_hostile_names_are_drawn_and_not_read_as_markup_or_expressions(kind):
    words = HOSTILE if kind in {"forest", "strata"} else HOSTILE[list(CALLS).index(kind) :][:1]
    for word in words:
        chart = draw(charts, kind, *calls([*HOSTILE] if word == words[0] else ["a"], word=word)[kind])
        text = vl_convert.vegalite_to_svg(chart.spec, allowed_base_urls=[])
        assert not re.search(r"<(script|img|iframe|a|link|foreignObject)\b", text)
        expressions = re.findall(
            r'"(?:expr|test|filter|labelExpr)": "((?:[^"\\]|\\.)*)"', json.dumps(chart.spec)
        )
        assert not any("owned" in one or "signal" in one or "constructor" in one for one in expressions)


def test_a_figure_takes_hostile_names_as_they_are(tmp_path):
    for kind in ("bars", "curve", "forest"):
        data, options = calls([*HOSTILE[::4], "$x^$"], word="$\\frac{1}{$")[kind]
        figures.save(draw(figures, kind, data, options), tmp_path / "f.svg")


def test_a_distribution_adds_up_and_holds_no_single_user():
    values = {"a": RNG.random(5000), "b": np.append(RNG.random(300), np.nan)}
    chart = charts.distribution(values, metric="ndcg@10")
    rows = [r for r in chart.spec["data"]["values"] if "to" in r]
    assert len(chart.spec["data"]["values"]) <= 2 * (style.N_BINS + 1)
    for name in values:
        assert sum(r["share"] for r in rows if r["model"] == name) == pytest.approx(1, abs=1e-4)


def test_a_chart_shows_itself_in_a_notebook():
    chart = charts.curve(*[CALLS["curve"][0]], metric="ndcg@k")
    bundle = chart._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v5+json"]["$schema"].endswith("/v5.json")
    assert "ndcg@k" in bundle["text/plain"]
    assert "popularity" in bundle["image/svg+xml"]


def test_a_chart_shows_itself_without_vl_convert(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    bundle = charts.curve(CALLS["curve"][0], metric="ndcg@k")._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.vegalite.v5+json", "text/plain"}


def test_saving_to_another_kind_of_file_is_refused(tmp_path):
    chart = charts.bars(CALLS["bars"][0])
    with pytest.raises(InputError, match="endings"):
        chart.save(tmp_path / "c.gif")
    with pytest.raises(InputError, match="endings"):
        figures.save(figures.bars(CALLS["bars"][0]), tmp_path / "c.gif")


def test_an_svg_keeps_its_text_and_is_the_same_twice(tmp_path):
    one = figures.save(figures.bars(CALLS["bars"][0]), tmp_path / "a.svg").read_bytes()
    two = figures.save(figures.bars(CALLS["bars"][0]), tmp_path / "b.svg").read_bytes()
    assert one == two
    assert b"popularity</text>" in one


def test_an_evaluation_draws_itself(results):
    result = results["model 2"]
    axes = result.plot.curve("ndcg")
    (line,) = axes.get_lines()
    assert line.get_ydata().tolist() == [result["ndcg@1"], result["ndcg@5"], result["ndcg@10"]]
    assert len(result.plot.bars(["ndcg@10", "mrr@10"]).patches) == 2
    assert [axes.get_title("left") for axes in result.plot.cutoffs()] == ["ndcg@k", "recall@k", "mrr@k"]
    assert result.plot.distribution("recall@5").get_xlabel() == "recall@5"
    rows = result.chart.strata(metric="ndcg@10").spec["data"]["values"]
    assert {r["group"]: r["value"] for r in rows} == pytest.approx(
        {g: v["ndcg@10"] for g, v in result.by.items()}, abs=1e-5
    )
    half = result.chart.strata(by={user: user < 60 for user in range(120)}).spec["data"]["values"]
    assert {r["group"] for r in half} == {"True", "False"}


def test_a_comparison_draws_its_differences(results):
    comparison = recsys.compare(results, baseline="model 0")
    row = comparison["model 2", "ndcg@10"]
    rows = comparison.chart.forest("ndcg@10").spec["data"]["values"]
    assert [r["label"] for r in rows] == ["model 2", "model 1"]  # the best first
    assert rows[0]["value"] == pytest.approx(row.relative, rel=1e-5)
    users = comparison.chart.winloss("ndcg@10").spec["data"]["values"]
    assert [r["users"] for r in users if r["who"] == "model 2"] == [row.wins, row.ties, row.losses]
    says = comparison.chart.sorted_differences("model 2").description
    assert f"{row.wins} won, {row.ties} tied, {row.losses} lost" in says
    assert comparison.plot.duel("model 2").get_xlabel() == "ndcg@10 of model 0"
    assert comparison.plot.tradeoff("recall@10").get_ylabel() == "ndcg@10"
    panels = comparison.plot.forest()
    assert [axes.get_title("left") for axes in panels] == [
        m for m in results["model 0"] if m.endswith(("@1", "@5", "@10"))
    ]
    assert comparison.chart.winloss().spec["data"]["values"] == users  # of the headline metric
    pairs = recsys.compare(results)
    assert "model 2 – model 1" in [r["label"] for r in pairs.chart.forest("mrr@10").spec["data"]["values"]]  # noqa: RUF001


def test_a_tradeoff_is_by_default_of_coverage_and_the_headline_metric(results):
    lists, truth, train, _ = world()
    covered = {n: recsys.evaluate(own, truth, ["ndcg@10", "mrr", "coverage@10"], train=train)
               for n, own in lists.items()}  # fmt: skip
    axes = recsys.compare(covered, baseline="model 0").plot.tradeoff()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("coverage@10", "ndcg@10")
    comparison = recsys.compare(results, baseline="model 0")
    assert not any(metric.startswith("coverage") for metric in results["model 0"])
    with pytest.raises(UnknownNameError, match="coverage") as raised:
        comparison.plot.tradeoff()
    assert all(metric in str(raised.value) for metric in results["model 0"])


def test_bars_hold_by_default_what_one_axis_can():
    lists, truth, train, _ = world()
    metrics = ["ndcg@10", "novelty@10", "coverage@10"]
    results = {n: recsys.evaluate(own, truth, metrics, train=train) for n, own in lists.items()}
    compared = recsys.compare(results, baseline="model 0")
    ticks = [tick.get_text() for tick in compared.plot.bars().get_xticklabels()]
    assert ticks == ["ndcg@10", "coverage@10"]
    assert [tick.get_text() for tick in compared.plot.bars("novelty@10").get_xticklabels()] == ["novelty@10"]
    rows = compared.chart.winloss().spec["data"]["values"]
    assert {row["who"] for row in rows} == {"model 1", "model 2"}
    with pytest.raises(InputError, match="no value for each user"):
        compared.plot.winloss("coverage@10")


def test_what_cannot_be_drawn_is_refused(results):
    lists, truth, *_ = world(n_models=1)
    single = evaluations(lists, truth, k=(10,))["model 0"]
    with pytest.raises(InputError, match="several cut-offs"):
        single.plot.curve()
    with pytest.raises(InputError, match="groups"):
        single.plot.strata()
    with pytest.raises(UnknownNameError):
        results["model 0"].plot.curve("auc")
    with pytest.raises(UnknownNameError):
        results["model 0"].plot.distribution("ndcg@77")
    with pytest.raises(UnknownNameError):
        recsys.compare(results, baseline="model 0").plot.duel("nobody")
    with pytest.raises(InputError, match="two columns"):
        charts.embedding(np.ones((3, 3)))


def test_a_missing_package_is_named(monkeypatch, results, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=re.escape("recsys-evaluation[plot]")):
        results["model 0"].plot.curve()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError, match=re.escape("recsys-evaluation[report]")):
        results["model 0"].chart.curve().save(tmp_path / "c.svg")


def test_results_are_tables_in_notebooks(results):
    hostile = recsys.compare({HOSTILE[0]: results["model 0"], "b": results["model 1"]})
    for shown in (results["model 0"]._repr_html_(), hostile._repr_html_()):
        assert "<table" in shown
        assert "<script" not in shown


def linear(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    weights = np.array([0.2126, 0.7152, 0.0722])
    a, b = sorted((float(weights @ linear(one)), float(weights @ linear(other))))
    return (b + 0.05) / (a + 0.05)


@pytest.mark.parametrize("paper", ["#ffffff", "#14171c"])
def test_marks_stand_out_on_light_and_on_dark_paper(paper):
    for colour in (style.GREY, *style.COLOURS, style.BETTER, style.WORSE):
        assert contrast(colour, paper) >= 3.0, colour


# Machado, Oliveira and Fernandes (2009), severity 1: how the three kinds of dichromats see linear RGB.
SEEN_BY = {
    "protanope": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranope": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanope": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lab(rgb):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(
        rgb, 0, 1
    )
    scaled = xyz / [0.95047, 1.0, 1.08883]
    f = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("who", SEEN_BY)
def test_the_first_colours_are_told_apart_by_everyone(who):
    """Beyond these, shape and dash carry the difference; better and worse must never need them."""
    seen = {c: lab(np.array(SEEN_BY[who]) @ linear(c)) for c in (style.GREY, *style.COLOURS[:5])}
    for one, a in seen.items():
        for other, b in seen.items():
            assert one == other or np.linalg.norm(a - b) > 12, (one, other)
    gap = np.linalg.norm(
        lab(np.array(SEEN_BY[who]) @ linear(style.BETTER)) - lab(np.array(SEEN_BY[who]) @ linear(style.WORSE))
    )
    assert gap > 30


def test_no_two_models_of_twelve_look_alike():
    series = model_series([f"m{i}" for i in range(12)])
    looks = list(zip(series.colours, series.shapes, series.dashes, strict=True))
    assert len(set(looks)) == len(series.names)


def test_eight_models_and_the_baseline_differ_in_colour_and_in_shape():
    seen = [lab(linear(c)) for c in (style.GREY, *style.COLOURS[:8])]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 25
    assert len(set(style.SHAPES[:8])) == 8


def test_of_a_crowd_the_first_and_the_baseline_are_named():
    names = [f"model {i}" for i in range(50)]
    by_model = {name: {5: 0.01 * i, 10: 0.02 * i} for i, name in enumerate(names)}
    picture = PICTURES["cutoffs"]({"ndcg": by_model}, baseline="model 49", order=names)
    (panel,) = picture.panels
    named = [*names[: style.N_OF_CROWD], "model 49"]
    assert panel.series.highlighted == named
    text = next(mark for mark in panel.marks if mark.kind == "text")
    assert sorted(row["label"] for row in text.rows) == sorted(named)
    assert {row["model"] for row in panel.rows} == set(names)  # all are drawn
    groups = {name: {"old": 0.2, "new": 0.1} for name in names}
    legend = json.dumps(charts.strata(groups, baseline="model 49", order=names).spec)
    assert json.dumps({"values": named})[1:-1] in legend
    assert len(figures.strata(groups, baseline="model 49").get_legend().get_texts()) == len(named)


def test_one_colour_has_one_meaning():
    shades = {style.BETTER, style.SAME, style.WORSE, *style.STEPS, style.GREY}
    assert shades.isdisjoint(style.COLOURS)
    seen = {c: lab(linear(c)) for c in (*style.COLOURS, style.BETTER, style.WORSE)}
    for verdict, model in itertools.product((style.BETTER, style.WORSE), style.COLOURS):
        assert np.linalg.norm(seen[verdict] - seen[model]) > 25, (verdict, model)
    for colour in style.STEPS:
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        assert max(red, green, blue) - min(red, green, blue) < 25, colour


def test_a_model_has_the_same_colour_in_every_picture_of_a_page():
    everyone, some = calls(NAMES), calls(["bpr", "als"])
    order = {"order": NAMES, "baseline": "popularity"}
    for name in (
        "bars",
        "curve",
        "cutoffs",
        "lines",
        "tradeoff",
        "distribution",
        "strata",
        "forest",
        "history",
    ):
        for data, options in (everyone[name], some[name]):
            for panel in describe(name, data, options | order).panels:
                colours = dict(zip(panel.series.names, panel.series.colours, strict=True))
                wanted = {"popularity": style.GREY, "als": style.COLOURS[1], "bpr": style.COLOURS[2]}
                assert colours.items() <= wanted.items(), name


@pytest.mark.parametrize("low", [0.0, -0.3, 0.1, 1e-7, 123456.0])
@pytest.mark.parametrize("width", [1e-9, 3e-4, 0.07, 0.9, 4.17, 77, 1e4, 3e9])
@pytest.mark.parametrize("percent", [False, True])
def test_ticks_lie_on_the_axis_and_no_two_read_alike(low, width, percent):
    rows = [{"v": low}, {"v": low + width}]
    for options in ({"zero": True}, {"zero": False, "pad": 0.1}, {"zero": False, "signed": True}):
        axis = number_axis(rows, ("v",), percent=percent, **options)
        labels = [number_text(tick, axis.format) for tick in axis.ticks]
        assert len(set(labels)) == len(labels) >= 2
        start, end = axis.domain
        hair = 1e-8 * (end - start)
        assert start - hair <= min(*axis.ticks, low) <= max(*axis.ticks, low + width) <= end + hair


def test_axes_of_shares_stay_between_0_and_1():
    for pad in (0.0, 0.2):
        low, high = number_axis([{"v": 0.01}, {"v": 0.99}], ("v",), zero=False, pad=pad).domain
        assert 0 <= low < high <= 1
    picture = pictures.PICTURES["tradeoff"]({"a": (0.0, 0.001), "b": (0.9, 0.3)})
    assert picture.panels[0].x.domain[0] == picture.panels[0].y.domain[0] == 0


def svg_texts(chart, role, width=560):
    """The texts of a role in the drawn chart with their boxes, as far as Vega tells them: by letters."""
    svg = vl_convert.vegalite_to_svg({**chart.spec, "width": width}, allowed_base_urls=[])
    found = []
    for group in re.findall(rf'<g class="mark-text role-{role}[^>]*>(.*?)</g>', svg):
        for anchor, x, y, text in re.findall(
            r'<text text-anchor="(\w+)" transform="translate\(([-\d.e]+),([-\d.e]+)\)[^>]*>([^<]*)<', group
        ):
            wide = 6.2 * len(text)
            left = float(x) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
            found.append((text, (left, float(y) - 9, left + wide, float(y) + 3)))
    return found


@pytest.mark.parametrize("low", [0.0, -1.2e-4, 2.5e-8])
def test_both_write_the_ticks_alike(low):
    rows = {"a": (low + 1e-4, low, low + 3e-4), "b": (low, low, low)}
    for unit in ("", "%"):
        chart = charts.forest(rows, unit=unit)
        svg = [text for text, _ in svg_texts(chart, "axis-label") if text not in rows]
        axes = figures.forest(rows, unit=unit)
        assert [text.get_text() for text in axes.get_xticklabels()] == svg
        assert "0" in svg
        assert not {"+0", "+0%", "+0.0000"} & {*svg, *(text.get_text() for text in axes.texts)}


NEAR = {
    "in a heap": {f"model {i}": (0.3 + 0.002 * (i % 3), 0.2 + 0.001 * (i // 3)) for i in range(9)},
    "at the edges": {"left": (0.0, 0.0), "right": (1.0, 1.0), "top left": (0.0, 1.0), "low": (1.0, 0.0)},
    "the same": {"als": (0.5, 0.2), "hybrid of two": (0.5, 0.2), "far": (0.1, 0.1)},
    "in a row": {f"model {i}": (0.1 * i, 0.2) for i in range(10)},
    "in a column": {f"model {i}": (0.2, 0.03 * i) for i in range(10)},
}


@pytest.mark.parametrize("kind", NEAR)
def test_labels_of_points_do_not_collide(kind):
    chart = charts.tradeoff(NEAR[kind], x="coverage", y="ndcg")
    for width in (320, 560, 1000):
        boxes = [box for _, box in svg_texts(chart, "mark", width)]
        assert len(boxes) == len(NEAR[kind])
        assert overlaps(boxes) == []
    axes = figures.tradeoff(NEAR[kind], x="coverage", y="ndcg")
    axes.figure.draw_without_rendering()
    assert overlaps(text_boxes(axes)) == []


def test_a_crowd_of_points_has_no_label_over_another():
    angles = np.linspace(0, np.pi / 2, 40)
    crowd = {f"alpha {a:.3f}, MMR 0.5": (float(np.sin(a)), float(np.cos(a)) / 9) for a in angles}
    axes = figures.tradeoff(crowd)
    axes.figure.draw_without_rendering()
    assert overlaps(text_boxes(axes)) == []
    assert 3 < len(axes.texts) <= style.N_OF_CROWD
    assert len(charts.tradeoff(crowd).spec["data"]["values"]) == len(crowd)


@pytest.mark.parametrize("values", [[0.2] * 10, np.linspace(0, 0.01, 10), [0.0] * 10, [0.1, *[0.9] * 9]])
def test_names_at_the_ends_of_lines_do_not_collide(values):
    by_model = {name: {5: 0.05, 10: value} for name, value in zip(TEN, values, strict=True)}
    picture = PICTURES["cutoffs"]({"ndcg": by_model, "mrr": by_model})
    for panel in picture.panels:
        low, high = panel.y.domain
        names = next(mark for mark in panel.marks if mark.kind == "text").rows
        places = sorted(panel.height * (row["at"] - low) / (high - low) for row in names)
        assert np.diff(places).min() > 13.9
        assert 0 <= places[0] < places[-1] <= panel.height + 1e-6
    ndcg, mrr = figures.cutoffs({"ndcg": by_model, "mrr": by_model})
    ndcg.figure.draw_without_rendering()
    assert overlaps([*text_boxes(ndcg), *text_boxes(mrr), *text_boxes(mrr, "y")]) == []


@pytest.mark.parametrize("name", ["forest", "cutoffs", "sorted_differences", "hits", "winloss", "history"])
@pytest.mark.parametrize("kind", ["ten models", "one model", "all zero"])
def test_no_text_of_a_figure_covers_another(name, kind):
    panels = all_axes(draw(figures, name, *WORLDS[kind][name]))
    panels[0].figure.draw_without_rendering()
    for part in ("texts", "x", "y"):
        assert overlaps([box for axes in panels for box in text_boxes(axes, part)]) == [], part


def test_places_are_spread_as_little_as_needed():
    places = [0.5, 0.52, 0.1, 0.5]
    found = spread(places, 0.1, 0.0, 1.0)
    assert sorted(found) == pytest.approx([0.1, 0.5067 - 0.1, 0.5067, 0.5067 + 0.1], abs=1e-3)
    assert np.argsort(found, kind="stable").tolist() == np.argsort(places, kind="stable").tolist()
    assert spread([0.5] * 11, 0.3, 0.0, 1.0) == pytest.approx(np.linspace(0, 1, 11))


def test_a_forest_has_an_axis_for_each_metric():
    values = {
        "ndcg@10": {"als": (0.05, 0.02, 0.08), "bpr": (0.0, -0.01, 0.01)},
        "coverage": {"als": (4.17, 4.0, 4.3)},
    }
    chart = charts.forest(values, unit="%", title="lift over popularity", order=["popularity", "als", "bpr"])
    first, second = chart.spec["concat"]
    domains = [view["layer"][1]["encoding"]["x"]["scale"]["domain"] for view in (first, second)]
    assert domains[0][1] < 0.1
    assert domains[1][1] > 4.3
    assert [row["shown"] for row in first["data"]["values"]] == ["+5.0%", "0"]
    assert second["data"]["values"][0]["shown"] == "+417.0%"
    assert chart.spec["usermeta"]["panel"] > 100
    ndcg, coverage = figures.forest(values, unit="%")
    assert (ndcg.get_title("left"), coverage.get_title("left")) == ("ndcg@10", "coverage")
    assert ndcg.get_xlim()[1] < 0.1 < coverage.get_xlim()[1]
    assert [label.get_text() for label in ndcg.get_yticklabels()] == ["als", "bpr"]
    assert ndcg.get_ylim()[0] > ndcg.get_ylim()[1]  # the first on top


def test_nothing_grows_with_the_users():
    few, many = (calls(NAMES) | {
        "distribution": ({n: RNG.random(size) for n in NAMES}, {}),
        "duel": ((RNG.random(size), RNG.random(size)), {}),
        "sorted_differences": (RNG.normal(size=size), {}),
    } for size in (2_000, 200_000))  # fmt: skip
    for name in ("distribution", "duel", "sorted_differences"):
        sizes = [len(draw(charts, name, *world_[name]).to_json(indent=None)) for world_ in (few, many)]
        assert sizes[1] < 1.3 * sizes[0] < 60_000, name


def test_the_page_of_a_chart_holds_it(tmp_path):
    text = charts.bars(CALLS["bars"][0]).save(tmp_path / "c.html").read_text(encoding="utf-8")
    assert base64.b64decode(re.search(r'id="vega">(.*?)</script>', text)[1])[:2] == b"\x1f\x8b"
    assert json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["charts"]["chart-0"][
        "layer"
    ]


def test_an_interval_without_an_end_is_left_out_and_its_side_is_kept():
    rows = {"open": (0.5, 0.4, math.inf), "unknown": (0.1, -math.inf, math.inf), "closed": (0.2, 0.1, 0.3)}
    spec = charts.forest(rows).spec
    assert [row["side"] for row in spec["data"]["values"]] == ["better", "unclear", "better"]
    assert "Infinity" not in json.dumps(spec)
    assert "Infinity" not in json.dumps(charts.bars({"model": rows}).spec)
    for axes in (figures.forest(rows), figures.bars({"model": rows})):
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()


def test_a_report_and_a_history_of_a_metric_without_an_end(tmp_path, monkeypatch):
    from recsys.comparison.history import history, record
    from recsys.evaluation.results import Evaluation

    monkeypatch.setattr(Evaluation, "ranges", {"dcg@5": (0.0, math.inf), "hit@5": (0.0, 1.0)})
    lists = {user: [user if user < 3 else -1] for user in range(60)}
    result = recsys.evaluate(lists, {user: [user] for user in lists}, ["dcg@5", "hit@5"])
    record(tmp_path, result, "model")
    assert result.intervals()["dcg@5"].interval.high == math.inf
    assert "no greatest value is known" in str(result.intervals())
    assert result.intervals().to_frame()["high"].tolist()[0] == math.inf
    assert write_report(tmp_path / "page.html", {"model": result}).exists()
    night = json.loads(history(tmp_path, "dcg@5").to_json())["nights"][0]
    assert (night["high"], night["low"] > 0) == (None, True)
