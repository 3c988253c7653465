"""Why "better" is decided by sign flips, and gates by Gaffke's bound: level and power of the candidates.

    python scripts/decision_rules.py rates.jsonl               every cell, 2,000 worlds each; some take fewer
    python scripts/decision_rules.py rates.jsonl --table       prints the rates
    python scripts/decision_rules.py --picture                 draws docs/images/verdicts.png

A cell is one world with one number of users, in which all candidates judge the same samples. `cliff` is the
rule that was replaced: the t-test and its bound, but where fewer than 20 units differ (for a bound also where
large losses are rare) sign flips and Gaffke's bound together.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from proofs import ROOT
from scipy import stats
from scipy.special import stdtr

from recsys.stats.gaffke import mean_bounds, mean_p
from recsys.stats.samples import FEW, Sample, count_differing
from recsys.stats.sign_flips import SignFlips

sys.path.insert(0, str(ROOT / "tests"))
from worlds.metric_values import MARGINALS, Marginal, correlated

PICTURE = ROOT / "docs" / "images" / "verdicts.png"
ALPHA = 0.05
GAINS = 0.85
SIZES = {"small differences (0.04)": 0.04, "one hit more or less (0.63)": 0.63}


# --- candidates ----------------------------------------------------------------------------------------


def t_p(d: np.ndarray, *, one_sided: bool = False) -> float:
    n, deviation = len(d), float(d.std(ddof=1))
    if deviation == 0:
        return float(d[0] < 0) if one_sided else 1.0
    t = float(d.mean()) * math.sqrt(n) / deviation
    return float(stdtr(n - 1, -t)) if one_sided else 2.0 * float(stdtr(n - 1, -abs(t)))


def is_few(d: np.ndarray) -> bool:
    n = count_differing(d)
    return n < FEW and (2 * n < len(d) or bool(np.isin(d, (-1.0, 0.0, 1.0)).all()))


def differs_by_cliff(d: np.ndarray) -> bool:
    if not is_few(d):
        return t_p(d) < ALPHA
    return SignFlips.of(d).p_value() < ALPHA and mean_p(d, 0.0, -1.0, 1.0) < ALPHA


def mid_p(d: np.ndarray) -> float:
    """Sign flips in which sums equal to the observed one count half, for sizes that are all the same."""
    sizes = np.abs(d[d != 0])
    p = SignFlips.of(d).p_value()
    if not len(sizes) or np.ptp(sizes) > 1e-12 * sizes[0]:
        return p
    wins = int(np.count_nonzero(d > 0))
    return p - float(stats.binom.pmf(wins, len(sizes), 0.5))


def passes_by_cliff(x: np.ndarray, low: float, differing: int) -> bool:
    centred = x - x.mean()
    skewed = -0.11 * (centred**3).sum() >= 0.005 * (centred**2).sum() ** 1.5
    if differing < FEW or count_differing(x) < FEW or skewed:
        return mean_p(x, 0.0, low, 1.0, "greater") <= ALPHA
    return t_p(x, one_sided=True) <= ALPHA


class HalfUnseen(Sample):
    """Gaffke's bound with an unseen unit of half the weight."""

    @property
    def unseen(self) -> float:
        return 0.5


def passes_by_bets(x: np.ndarray, low: float, rng: np.random.Generator) -> bool:
    """Bets against "the mean is at most 0" in random order, as large as the values before suggest."""
    y = rng.permutation(x)
    n, prior = len(y), low * low / 4.0
    means = np.append(0.0, np.cumsum(y)[:-1]) / np.arange(1, n + 1)
    squares = (prior + np.append(0.0, np.cumsum(y * y)[:-1])) / np.arange(1, n + 1)
    least = math.sqrt(math.log(1 / ALPHA) / (2.0 * n)) * np.sqrt(squares)
    bets = np.clip(np.maximum(means, least) / squares, 0.0, 0.5 / -low)
    return bool(np.cumsum(np.log1p(bets * y)).max() >= -math.log(ALPHA))


def cover(values: np.ndarray, mean: float) -> dict[str, float]:
    """Whether intervals of one mean miss it, and the width of Gaffke's beside that of t."""
    n = len(values)
    centre, reach = float(values.mean()), float(stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / math.sqrt(n))
    found = mean_bounds(values, 0.0, 1.0)
    return {
        "t": abs(centre - mean) > reach,
        "Gaffke": mean not in found,
        "width": (found.high - found.low) / (2.0 * reach) if reach else 1.0,
    }


def judge(old: np.ndarray, new: np.ndarray) -> dict[str, float]:
    d = new - old
    return {
        "t": t_p(d) < ALPHA,
        "cliff": differs_by_cliff(d),
        "sign flips": SignFlips.of(d).p_value() < ALPHA,
        "mid-p": mid_p(d) < ALPHA,
        "Gaffke": mean_p(d, 0.0, -1.0, 1.0) < ALPHA,
    }


def gate(
    old: np.ndarray, new: np.ndarray, margin: float, rng: np.random.Generator, *, relative: bool
) -> dict[str, float]:
    x = new - (1.0 - margin) * old if relative else new - old + margin
    low = -(1.0 - margin) if relative else margin - 1.0
    sample = Sample.of(x)
    half = HalfUnseen(sample.values, None, sample.counts)
    return {
        "t": t_p(x, one_sided=True) <= ALPHA,
        "cliff": passes_by_cliff(x, low, int(np.count_nonzero(new != old))),
        "Gaffke": mean_p(x, 0.0, low, 1.0, "greater") <= ALPHA,
        "half unseen": mean_p(half, 0.0, low, 1.0, "greater") <= ALPHA,
        "bets": passes_by_bets(x, low, rng),
    }


# --- worlds --------------------------------------------------------------------------------------------

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def alike(old: Marginal, new: Marginal, correlation: float) -> Draw:
    """Two models whose values depend on scores of this correlation."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        first, second = correlated(rng, (1, n), correlation)
        return old.at(first)[0], new.at(second)[0]

    return draw


def few(n_differing: int, gains: float, *, graded: bool) -> Draw:
    """So many users differ and a share of them gains: some hundredths, or a hit."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        old, new = np.full((2, n), 0.5)
        gain = rng.random(n_differing) < gains
        if graded:
            new[:n_differing] += np.where(gain, 1.0, -1.0) * rng.choice([0.02, 0.03, 0.05, 0.08], n_differing)
        else:
            old[:n_differing], new[:n_differing] = ~gain, gain
        return old, new

    return draw


def shifted(share: float, *, level: bool = False) -> Draw:
    """Half of the users gain or lose a little and a share loses all; `level`: the others make up for it."""
    loss = 0.58

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        old = np.full(n, loss)
        move = rng.choice([0.04, -0.04, 0.0, 0.0], n) + (share * loss / (1 - share) if level else 0.0)
        return old, np.where(rng.random(n) < share, 0.0, old + move)

    return draw


@dataclass(frozen=True)
class Cell:
    """A question to all candidates; `margin` is that of a gate, or the mean that an interval is to hold."""

    question: str
    world: str
    n: int
    draw: Draw
    margin: float = 0.0
    relative: bool = False

    @property
    def name(self) -> str:
        return f"{self.question}: {self.world}, {self.n}"

    @staticmethod
    def name_of(line: Mapping[str, Any]) -> str:
        return f"{line['question']}: {line['world']}, {line['n']}"

    def run(self, worlds: int) -> dict[str, Any]:
        worlds = worlds if self.n == 1000 or "shift" in self.world else min(worlds // 2, 3_000_000 // self.n)
        rng = np.random.default_rng(np.frombuffer(hashlib.sha256(self.name.encode()).digest(), np.uint32))
        tally: dict[str, list[float]] = {}
        for _ in range(worlds):
            old, new = self.draw(rng, self.n)
            if self.question == "interval misses":
                found = cover(old, self.margin)
            elif self.margin:
                found = gate(old, new, self.margin, rng, relative=self.relative)
            else:
                found = judge(old, new)
            for rule, verdict in found.items():
                tally.setdefault(rule, []).append(verdict)
        rates = {rule: float(np.mean(verdicts)) for rule, verdicts in tally.items()}
        return {"question": self.question, "world": self.world, "n": self.n, "worlds": worlds, "rates": rates}


def cells() -> list[Cell]:
    out = []
    kinds = {name: MARGINALS[name] for name in ("hit, 2%", "ndcg@10, 70% zeros", "ndcg@10, 90% zeros")}
    kinds["hit, 20%"] = Marginal("hit", 0.8)
    for k, graded in itertools.product((6, 8, 12, 16, 19, 20, 24, 40, 100, 200), (True, False)):
        world, gains = f"{k} differ, {'graded' if graded else 'hits'}", 0.5 + 1.6 / math.sqrt(k + 10)
        out += [
            Cell("equal", world, 1000, few(k, 0.5, graded=graded)),
            Cell("finds", world, 1000, few(k, gains, graded=graded)),
        ]
    for share, n in itertools.product((0.01, 0.003), (100, 300, 1000, 3000)):
        world = f"shift, {share:.1%} lose all"
        out += [
            Cell("equal", world, n, shifted(share, level=True)),
            Cell("gate at the margin", world, n, shifted(share), share * 0.58),
        ]
    places = ((0.8, 100), (0.99, 100), (0.2, 1000), (0.8, 1000), (0.95, 1000), (0.99, 1000))
    margins = ((0.01, False), (0.03, True), (0.1, True))
    for (name, old), (correlation, n) in itertools.product(kinds.items(), places):
        world, pair = f"{name}, rho {correlation}", alike(old, old, correlation)
        out.append(Cell("equal", world, n, pair))
        for margin, relative in margins[:: 1 if n == 1000 else 2]:
            worse = alike(old, old.times(1 - margin / (1.0 if relative else old.mean)), correlation)
            kind = f"{margin:.0%}" if relative else str(margin)
            out.append(Cell("gate at the margin", f"{world}, {kind}", n, worse, margin, relative))
        if n == 1000:
            better = alike(old, old.times(1.5 if old.mean < 0.05 else 1.15), correlation)
            out.append(Cell("gate of equals", f"{world}, 10%", n, pair, 0.1, relative=True))
            out.append(Cell("finds", world, n, better))
    for name, old in kinds.items():
        for correlation in (0.8, 0.99):
            world = f"{name}, rho {correlation}, 10%"
            out.append(
                Cell("gate of equals", world, 10_000, alike(old, old, correlation), 0.1, relative=True)
            )
        same = alike(old, old, 1.0)
        out.append(Cell("gate of equals", f"{name}, identical, 10%", 1000, same, 0.1, relative=True))
        out += [
            Cell("interval misses", name, n, alike(old, old, 0.0), old.mean) for n in (30, 100, 300, 1000)
        ]
    return out


def verdict_rates(size: float, differing: Iterable[int]) -> dict[str, list[float]]:
    """How often each rule says better if so many of 1,000 users differ by this size, 85% of them upwards.

    Wins alone decide, so the rates are sums over their binomial chances.
    """
    found: dict[str, list[float]] = {"before": [], "after": []}
    for n in differing:
        wins = np.arange(n + 1)
        chances = stats.binom.pmf(wins, n, GAINS)
        verdicts = []
        for won in wins.tolist():
            d = np.repeat([size, -size, 0.0], [won, n - won, 1000 - n])
            is_more = 2 * won > n
            verdicts.append((is_more and differs_by_cliff(d), is_more and SignFlips.of(d).p_value() < ALPHA))
        for name, rate in zip(found, np.array(chances) @ np.array(verdicts, dtype=float), strict=True):
            found[name].append(float(rate))
    return found


def draw_verdicts() -> None:
    """The picture in docs/statistics.md; its numbers are kept in it."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 2.9), layout="constrained", sharey=True)
    differing = range(1, 41)
    rates = {title: verdict_rates(size, differing) for title, size in SIZES.items()}
    for ax, (title, by_rule) in zip(axes, rates.items(), strict=True):
        for name, color in (("before", "#bc4749"), ("after", "#2a6f97")):
            ax.plot(differing, [100 * rate for rate in by_rule[name]], color=color, linewidth=1.8, label=name)
        ax.set_title(title, loc="left", fontsize=10.5)
        ax.set(xlabel="users who differ, of 1,000", xlim=(0, 41), ylim=(-2, 103))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel('"better", % of test sets')
    axes[1].legend(frameon=False, loc="lower right")
    figure.savefig(PICTURE, dpi=160, metadata={"Description": json.dumps(rates)})


def show(lines: Iterable[Mapping[str, Any]]) -> str:
    """All rates as a Markdown table, in percent."""
    rows = ["| question | world | users | worlds | rates, % |", "|---|---|---|---|---|"]
    for line in lines:
        rates = ", ".join(f"{rule} {100 * rate:.1f}" for rule, rate in line["rates"].items())
        rows.append(
            f"| {line['question']} | {line['world']} | {line['n']:,} | {line['worlds']:,} | {rates} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, help="one line per finished cell")
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--cells", default="", help="those whose name contains this")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--picture", action="store_true")
    args = parser.parse_args()
    if args.picture:
        draw_verdicts()
    if args.file is None:
        return
    lines = [json.loads(line) for line in args.file.read_text().splitlines()] if args.file.exists() else []
    if args.table:
        print(show(lines))
        return
    done = {Cell.name_of(line) for line in lines}
    for cell in cells():
        if args.cells in cell.name and cell.name not in done:
            line = cell.run(args.worlds)
            with args.file.open("a") as out:
                out.write(json.dumps(line) + "\n")
            print(show([line]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
