"""The lines below a table of metrics: who was counted, what was left out, under which conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recsys.conventions.decisions import Conventions
from recsys.display.number_words import plural
from recsys.records.arrays import Catalogue

_TREATMENTS = {
    "skip": "left out",
    "zero": "count as 0",
    "unjudged": "left out if nothing is judged, else count as 0",
    "empty": "count as an empty list",
}
_REPEATS = {
    "first": ": each counts at its first place, and its repeats take places as misses",
    "all": ": each counts at all its places",
    "collapse": ": each stays at its first place, and the lists close up",
}
_COUNT_NOTES = {
    "repeated_items": "item|items listed more than once",
    "repeated_rows": "repeated truth row|rows merged",
    "conflicting_grades": "pair|pairs with conflicting grades (the highest was kept)",
    "unknown_items": "judged item|items outside the catalogue",
    "seen_truth": "judged item|items the users had already seen",
    "negative_grades": "item|items of a negative grade read as unjudged",
    "not_candidates": "judged item|items that is|are not among the candidates"
    " (seen, ineligible, unknown or not ranked)",
    "without_vector": "item|items shown that has|have no vector",
    "without_facts": "item|items shown that the items table says nothing about",
    "positive_among_negatives": "relevant item|items that is|are also among its|their own negatives",
    "repeated_negatives": "negative|negatives that its|their case held already",
    "tied": "judged item|items found that shares|share its|their score with another item",
}
_RATING_COUNT_NOTES = {
    "clipped": "prediction|predictions moved to the border of the scale",
    "outside_scale": "prediction|predictions outside the scale",
    "certain_and_wrong": "prediction|predictions of exactly 0 or 1 that was|were wrong (moved by 2^-52)",
    "without_prediction": "rating|ratings without a prediction (left out)",
    "without_rating": "prediction|predictions without a rating (left out)",
}


def footnotes_of(
    counts: Mapping[str, int],
    conventions: Conventions,
    notes: Mapping[str, Any],
    *,
    n_users: int | None = None,
    catalogue: Catalogue | None = None,
) -> list[str]:
    """Return what a reader must know to trust the numbers; `n_users` is set if users have several cases."""
    if "rows" in counts:
        return _rating_footnotes(counts)
    n_cases = counts.get("cases", 0)
    lines = [plural(n_cases, "user")]
    if n_users is not None:
        lines = [f"{plural(n_cases, 'case')} of {plural(n_users, 'user')}"]
    for name, words in (
        ("without_truth", "without relevant items ({})"),
        ("without_list", "without recommendations ({})"),
    ):
        if counts.get(name):
            rule = conventions.no_truth if name == "without_truth" else conventions.no_list
            treatment = _TREATMENTS.get(rule, rule)
            lines[0] += f", {counts[name]:,} " + words.format(treatment)
    for name, words in _COUNT_NOTES.items():
        if counts.get(name):
            rule = _REPEATS.get(conventions.duplicates, "") if name == "repeated_items" else ""
            lines.append(plural(counts[name], words) + rule)
    if counts.get("found") == 0 and counts.get("judged"):
        lines.append("no listed item is in its user's truth: do both sides have the same ids, and split?")
    read = notes.get("lists", {}).get("read", {})
    lines += [f"lists {read['order']}"] if "order" in read else []
    if "users_with_gaps" in read:
        what = "with empty places" if conventions.rank_gaps == "kept" else "closed up"
        who = plural(read["users_with_gaps"], "user|users leaves|leave")
        lines.append(f"lists {what} where the ranks of {who} places out")
    lines += ["lists in the order of their rows"] if read.get("rows") == "grouped" else []
    lines += notes.get("stopped", {}).get("says", "").splitlines()
    lines += [str(notes[name]) for name in ("sampled", "seen", "backend") if isinstance(notes.get(name), str)]
    if catalogue is not None:
        *sources, last = notes.get("catalogue_of", [""])
        how = f" (those of {', '.join(sources)} and {last})" if sources else ""
        lines.append(f"catalogue: {plural(catalogue.n, 'item')}{how}")
    return [*lines, f"conventions: {conventions}"]


def _rating_footnotes(counts: Mapping[str, int]) -> list[str]:
    """Return the footnotes of rating metrics, which have rows instead of lists, and no conventions."""
    users = plural(counts.get("cases", 0), "user")
    lines = [f"{plural(counts['rows'], 'row')} of {users}"]
    lines += [plural(counts[n], words) for n, words in _RATING_COUNT_NOTES.items() if counts.get(n)]
    return [*lines, "a plain name is over all rows, user_ the mean over users"]
