"""The charts as static figures for papers and notebooks: matplotlib Axes from plain data.

matplotlib is imported when something is drawn. The functions of `charts` have the same names and arguments.
"""

from recsys.report.figures.canvas import save
from recsys.report.figures.contrasts import duel, forest, headtail, winloss
from recsys.report.figures.items_and_time import embedding, heat, history
from recsys.report.figures.per_model import bars, curve, distribution, strata, tradeoff

__all__ = [
    "bars",
    "curve",
    "distribution",
    "duel",
    "embedding",
    "forest",
    "headtail",
    "heat",
    "history",
    "save",
    "strata",
    "tradeoff",
    "winloss",
]


def __dir__() -> list[str]:
    return __all__
