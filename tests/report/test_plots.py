"""Figures and charts: each is drawn, shows its numbers and can be saved; colours can be distinguished."""

import base64
import inspect
import json
import math
import re
import sys

import numpy as np
import pytest

import recsys
from recsys.errors import InputError, MissingExtraError, UnknownNameError
from recsys.report import charts, figures, style, write_report
from worlds.report import HOSTILE, evaluations, world

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

NAMES = ["popularity", "als", "bpr"]
RNG = np.random.default_rng(0)
CALLS = {
    "bars": ({n: {"ndcg@10": (0.2, 0.1, 0.3), "mrr": 0.3} for n in NAMES}, {"baseline": "popularity"}),
    "curve": ({n: {1: 0.1, 5: (0.2, 0.1, 0.3), 10: 0.3, 20: 0.4} for n in NAMES}, {"metric": "ndcg@k"}),
    "tradeoff": ({n: (0.1 * i, 0.2) for i, n in enumerate(NAMES)}, {"x": "coverage@10", "y": "ndcg@10"}),
    "distribution": ({n: RNG.beta(1, 3, 200) for n in NAMES}, {"metric": "ndcg@10"}),
    "strata": ({n: {"few": (0.2, 0.1, 0.3), "many": 0.4} for n in NAMES}, {"sizes": {"few": 3, "many": 4}}),
    "headtail": ({n: {"head": 0.7, "tail": 0.3} for n in NAMES}, {}),
    "winloss": (dict.fromkeys(NAMES, (3, 2, 1)), {"baseline": "popularity"}),
    "forest": (dict.fromkeys(NAMES, (0.1, -0.1, 0.3)), {"unit": "%"}),
    "embedding": (RNG.standard_normal((20, 2)), {"groups": ["a", "b"] * 10, "labels": ["i"] * 20}),
    "history": ({"als": [("2026-01-01", 0.3), ("2026-01-02", (0.4, 0.3, 0.5))]}, {"changes": ["2026-01-02"]}),
    "heat": ({n: {"a": 0.1, "b": 0.2} for n in NAMES}, {"title": "Values"}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def closed():
    """Every figure is closed: an open one is a leak, and matplotlib says so."""
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def results():
    lists, truth, *_ = world()
    return evaluations(lists, truth, by=lambda user: "even" if user % 2 == 0 else "odd")


def test_a_picture_is_in_both_rooms_with_the_same_arguments():
    pictures = set(charts.__all__) - {"Chart"}
    assert pictures == set(figures.__all__) - {"save"} == {*CALLS, "duel"}
    for name in pictures:
        chart, figure = (
            list(inspect.signature(getattr(room, name)).parameters) for room in (charts, figures)
        )
        assert figure == [*chart, "ax"], name


@pytest.mark.parametrize("name", CALLS)
def test_both_rooms_draw_it_from_the_same_arguments(name, tmp_path):
    data, options = CALLS[name]
    axes = getattr(figures, name)(data, **options)
    for kind, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        assert figures.save(axes, tmp_path / f"f.{kind}").read_bytes().startswith(start)
    chart = getattr(charts, name)(data, **options)
    for kind, start in (
        ("png", b"\x89PNG"),
        ("pdf", b"%PDF"),
        ("svg", b"<svg"),
        ("html", b"<!doctype html>"),
    ):
        assert chart.save(tmp_path / f"c.{kind}").read_bytes().startswith(start)
    assert json.loads(chart.save(tmp_path / "c.json").read_text(encoding="utf-8")) == chart.spec
    assert list(tmp_path.glob("*.part")) == []


def test_a_duel_is_drawn_by_both_and_counts_every_pair(tmp_path):
    first, second = RNG.random(500), RNG.random(500)
    first[:7] = np.nan
    chart = charts.duel(first, second, names=("a", "b"), metric="ndcg@10")
    assert sum(row["users"] for row in chart.spec["data"]["values"]) == 493
    axes = figures.duel(first, second, names=("a", "b"), metric="ndcg@10")
    assert axes.get_ylabel() == "ndcg@10 of b"
    assert chart.save(tmp_path / "c.svg").exists()


@pytest.mark.parametrize("name", CALLS)
def test_a_figure_can_be_drawn_into_given_axes_and_leaves_the_settings_alone(name):
    before = dict(matplotlib.rcParams)
    _, ax = pyplot.subplots()
    data, options = CALLS[name]
    assert getattr(figures, name)(data, **options, ax=ax) is ax
    assert dict(matplotlib.rcParams) == before


def axis_names(chart, field):
    """The names on the axis of a field, in order, in the first layer that has one."""
    for layer in chart.spec["layer"]:
        for encoded in layer.get("encoding", {}).values():
            if isinstance(encoded, dict) and encoded.get("field") == field:
                return [str(name) for name in encoded.get("sort") or encoded["scale"]["domain"]]
    raise AssertionError(field)


@pytest.mark.parametrize(("name", "field"), [("bars", "metric"), ("strata", "group"), ("heat", "column")])
def test_a_column_without_values_is_in_both_and_empty_in_both(name, field):
    values = {n: {"a": 0.1, "none": np.nan, "b": (0.3, 0.2, 0.4)} for n in NAMES}
    chart, axes = getattr(charts, name)(values), getattr(figures, name)(values)
    ticks = [label.get_text().split("\n")[0] for label in axes.get_xticklabels()]
    assert axis_names(chart, field) == ticks == ["a", "none", "b"]
    assert {row[field] for row in chart.spec["data"]["values"]} == {"a", "b"}


def test_a_cut_off_without_values_and_models_without_any_are_treated_alike():
    values = {n: {1: 0.1, 5: 0.2, 10: np.nan} for n in NAMES}
    chart, axes = charts.curve(values), figures.curve(values)
    x = chart.spec["layer"][-1]["encoding"]["x"]
    assert (x["axis"]["values"], x["scale"]["domain"]) == ([1, 5, 10], [1, 10])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "5", "10"]
    points = {"als": (0.1, 0.2), "gone": (np.nan, 0.2)}
    assert [row["model"] for row in charts.tradeoff(points).spec["data"]["values"]] == ["als"]
    assert [text.get_text() for text in figures.tradeoff(points).texts] == ["als"]
    nights = {"als": [("2026-01-01", 0.3), ("2026-01-02", np.nan)]}
    assert len(charts.history(nights).spec["data"]["values"]) == 1


def test_any_number_of_groups_has_a_shade_of_its_own(tmp_path):
    shares = {n: {f"group {g}": 1 / 7 for g in range(7)} for n in NAMES}
    chart, axes = charts.headtail(shares), figures.headtail(shares)
    scale = chart.spec["layer"][0]["encoding"]["color"]["scale"]
    assert len(scale["domain"]) == len(set(scale["range"])) == 7
    drawn = {matplotlib.colors.to_hex(patch.get_facecolor()) for patch in axes.patches}
    assert drawn == set(scale["range"])
    assert chart.save(tmp_path / "c.svg").exists()


@pytest.mark.parametrize("bad", HOSTILE)
def test_hostile_names_are_drawn_and_not_read_as_markup_or_expressions(bad, tmp_path):
    names = [bad, "other"]
    calls = {
        "bars": {n: {bad: 0.2} for n in names},
        "curve": {n: {1: 0.1, 5: 0.2} for n in names},
        "tradeoff": dict.fromkeys(names, (0.1, 0.2)),
        "distribution": dict.fromkeys(names, (0.1, 0.2)),
        "strata": {n: {bad: 0.2, "x": 0.1} for n in names},
        "winloss": dict.fromkeys(names, (3, 2, 1)),
        "forest": dict.fromkeys(names, (0.1, 0.0, 0.2)),
    }
    for kind, data in calls.items():
        text = getattr(charts, kind)(data).save(tmp_path / "c.svg").read_text(encoding="utf-8")
        assert not re.search(r"<(script|img|iframe|a|link|foreignObject)\b", text)
        figures.save(getattr(figures, kind)(data), tmp_path / "f.svg")
        pyplot.close("all")


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
    assert [r["label"] for r in rows] == ["model 1", "model 2"]
    assert rows[1]["value"] == pytest.approx(row.relative, rel=1e-5)
    users = comparison.chart.winloss("ndcg@10").spec["data"]["values"]
    assert [r["users"] for r in users if r["who"] == "model 2"] == [row.wins, row.ties, row.losses]
    assert comparison.plot.duel("model 2").get_xlabel() == "ndcg@10 of model 0"
    assert comparison.plot.tradeoff("recall@10").get_ylabel() == "ndcg@10"
    assert comparison.plot.forest() is not None
    assert comparison.plot.winloss() is not None
    pairs = recsys.compare(results)
    assert "model 2 – model 1" in [r["label"] for r in pairs.chart.forest("mrr@10").spec["data"]["values"]]  # noqa: RUF001


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
        assert shown.startswith("<div><table>")
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
    names = [f"m{i}" for i in range(12)]
    looks = list(zip(style.colours(names), style.shapes(names), style.dashes(names), strict=True))
    assert len(set(looks)) == len(names)


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
