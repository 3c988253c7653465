"""The charts as static figures for papers and notebooks: matplotlib Axes from plain data.

matplotlib is imported when something is drawn. The functions of `charts` have the same names and arguments.
"""

from recsys.report.drawn.against import duel, forest, headtail, winloss
from recsys.report.drawn.canvas import save
from recsys.report.drawn.models import bars, curve, distribution, strata, tradeoff
from recsys.report.drawn.places import embedding, heat, history

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
