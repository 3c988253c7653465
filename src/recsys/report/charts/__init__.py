"""Charts as Vega-Lite specifications: plain dictionaries that a report, a notebook or vl-convert draws.

Every function takes plain data and aggregates before it embeds: a chart of a million users holds as many
numbers as one of a hundred. The functions of `figures` have the same names and arguments.
"""

from recsys.report.charts.chart import Chart
from recsys.report.charts.contrasts import duel, forest, headtail, winloss
from recsys.report.charts.items_and_time import embedding, heat, history
from recsys.report.charts.per_model import bars, curve, distribution, strata, tradeoff

__all__ = [
    "Chart",
    "bars",
    "curve",
    "distribution",
    "duel",
    "embedding",
    "forest",
    "headtail",
    "heat",
    "history",
    "strata",
    "tradeoff",
    "winloss",
]


def __dir__() -> list[str]:
    return __all__
