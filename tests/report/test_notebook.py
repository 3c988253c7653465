"""A notebook in a kernel of its own: what its cells show."""

import html

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

VEGA = "application/vnd.vegalite.v5+json"
SETUP = """
import recsys
from recsys.splits.datasets.demo_world import demo_world

truth = {user: [user % 5, 3] for user in range(30)}
lists = {"a": {u: [0, 1, 2, 3, 4] for u in truth}, "b": {u: [4, 3, 2, 1, 0] for u in truth}}
metrics = ["ndcg@3", "ndcg@5", "recall@5", "coverage@3"]
results = {name: recsys.evaluate(own, truth, metrics, catalogue=range(9)) for name, own in lists.items()}
comparison = recsys.compare(results, baseline="a")
"""
CELLS = [
    SETUP,
    'results["a"].plot.bars()',
    'results["a"].plot.bars()',
    'comparison.plot.forest(metric="ndcg@3")',
    'comparison.plot.tradeoff("coverage@3")',
    "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\nresults['b'].plot.curve(ax=axes)",
    "figure = plt.figure(figsize=(2, 1))\n_ = plt.plot([1, 2])",
    "comparison.chart.forest()",
    "comparison",
    "found = recsys.bench(demo_world().events, baselines=['item-knn'], trials=1)\nfound",
    "print(found.decision.heading)\nprint(*[tile.text for tile in found.decision.tiles], sep='\\n')",
]


@pytest.fixture(scope="module")
def shown():
    """{cell: [{type of what is shown: it}]}, in the order of the notebook."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=240).execute()
    return [[output.get("data", output) for output in cell.outputs] for cell in notebook.cells]


@pytest.mark.parametrize("number", range(1, 7))
def test_every_picture_appears_once(shown, number):
    pictures = [output for output in shown[number] if "image/png" in output]
    assert len(pictures) == 1, CELLS[number]


def test_a_chart_is_an_svg_beside_its_specification(shown):
    (output,) = shown[7]
    assert output[VEGA]["$schema"].endswith("/v5.json")
    assert output["image/svg+xml"].startswith("<svg")
    assert "recall@5" in output["image/svg+xml"]
    assert output["text/plain"].startswith("Chart: ")


def test_a_comparison_shows_its_table(shown):
    (output,) = shown[8]
    assert "<table" in output["text/html"]


def test_bench_shows_its_decision_above_its_table(shown):
    page = html.unescape(shown[9][-1]["text/html"])
    heading, *tiles = shown[10][0]["text"].splitlines()
    assert tiles
    assert page.index(heading) < min(map(page.index, tiles)) < page.index("<table")
