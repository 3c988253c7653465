"""Write the pages of docs/ that come from the registry and the presets; `--check` says if they are stale."""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import recsys
from recsys.cli.reference_verbs import (
    all_metrics,
    all_presets,
    bounds_text,
    choices,
    decisions,
    metric_facts,
    parameter_texts,
)
from recsys.comparison import compare_keywords
from recsys.comparison.compare_keywords import CompareOptions
from recsys.comparison.standard import VERSION, families, family_of, standard_metrics
from recsys.comparison.transcriptions import EVALUATORS
from recsys.conventions.decisions import DECISIONS, Conventions, describe
from recsys.evaluation.cautions import CAUTIONS
from recsys.evaluation.evaluate_keywords import GROUPS, BatchKeywords, EvaluateKeywords, RunKeywords
from recsys.inputs.files import FORMATS, write_text
from recsys.metrics import METRICS, Metric
from recsys.metrics.registry import NEEDS
from recsys.metrics.traits import Between, quotient
from recsys.records.keywords import read_keywords

DOCS = Path(__file__).resolve().parent.parent / "docs"
MADE = "<!-- Written by scripts/write_docs.py; do not edit. -->"
# Each name occurs on a page of the reference more often than on the page that explains it.
BELOW_IN_SEARCH = ["---", "search: { boost: 0.1 }", "---", ""]
NAMES = [*DECISIONS, "relevant_from", "max_grade"]

# One user with everything in place, one with more relevant items than places, one with a short list, one
# without relevant items, one without a list, one who is shown an item twice, one with tied scores.
LISTS = {
    "ann": [("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6), ("e", 0.5)],
    "ben": [("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6), ("e", 0.5)],
    "cat": [("b", 0.9), ("a", 0.8)],
    "dan": [("a", 0.9), ("b", 0.8)],
    "eve": [],
    "flo": [("a", 0.9), ("b", 0.8), ("a", 0.7), ("c", 0.6)],
    "guy": [("d", 0.5), ("a", 0.5), ("b", 0.5), ("c", 0.1)],
}
TRUTH = {
    "ann": {"a": 2, "c": 1},
    "ben": {"b": 3, "d": 1, "f": 1, "g": 2, "h": 1, "i": 1},
    "cat": {"a": 1},
    "dan": {},
    "eve": {"a": 1},
    "flo": {"a": 1, "c": 2, "x": 1, "y": 1},
    "guy": {"a": 3},
}
COMPARED = ("precision@4", "recall@4", "f1@4", "map@4", "mrr", "ndcg@4")


def metrics_page() -> str:
    rows = all_metrics()
    lines = [
        MADE,
        "",
        "# Metrics",
        "",
        "Ranking metrics are functions of where the relevant items landed; others are about the items shown",
        "([beyond accuracy](beyond-accuracy.md)) and name the data that they need. `@k` cuts the list; a",
        "metric without it reads the whole list. Parameters and conventions go into brackets:",
        '`"ndcg(gain=exp2)@10"`. The same page in the terminal: `recsys metrics`, `recsys metrics ndcg`.',
        "",
        "| metric | meaning | @k | better | bounds |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| [{r['name']}](#{r['name']}) | {r['meaning']} | {r['at_k']} | {r['better']} | {bounds_text(r)} |"
        for r in rows
    ]
    lines += [
        "",
        "These conventions move every ranking metric, because they decide which users and items are counted:",
        f"{', '.join(f'`{name}`' for name in _common(rows))}.",
        "[Conventions](conventions.md) says what each may be.",
        "",
    ]
    for row in rows:
        lines += _metric_section(row, _common(rows))
    return "\n".join(lines)


def _common(rows: list[dict[str, Any]]) -> list[str]:
    ranking = [row for row in rows if not row["about_lists"]]
    return [name for name in ranking[0]["conventions"] if all(name in row["conventions"] for row in ranking)]


def _metric_section(row: dict[str, Any], common: list[str]) -> list[str]:
    words = [row["meaning"], "", *([row["details"], ""] if row["details"] else [])]
    lines = [f"## {row['name']}", "", *words, f"    {row['formula']}", ""]
    better = f"{row['better']} is better"
    lines.append(f"- {bounds_text(row)}, {better}; cut-off: {row['at_k']}")
    if row["aliases"]:
        lines.append(f"- also called {', '.join(f'`{alias}`' for alias in row['aliases'])}")
    if row["parameters"]:
        lines.append("- parameters: " + ", ".join(f"`{text}`" for text in parameter_texts(row)))
    own = [name for name in row["conventions"] if name not in common]
    if not set(common) <= set(row["conventions"]):
        lines.append("- moved by " + ", ".join(f"[`{n}`](conventions.md#{n})" for n in row["conventions"]))
    elif own:
        lines.append("- also moved by " + ", ".join(f"[`{name}`](conventions.md#{name})" for name in own))
    lines += [f"- needs {need}" for need in row["needs"]]
    lines.append(f"- equal scores under `ties=expected`: {row['ties']}")
    lines.append(f"- under `ties=best` and `ties=worst`: {row['tie_order']}")
    if row["item_weights"]:
        lines.append("- takes item weights")
    return [*lines, f"- {row['reference']}", ""]


def conventions_page() -> str:
    lines = [
        MADE,
        "",
        "# Conventions",
        "",
        "What a metric's name leaves open is a decision. All decisions together are a `Conventions` value",
        "that is printed with every result; a preset is the set of decisions of another library, checked on",
        "the version named. Where a library's number is a defect, the preset does not copy it and says so.",
        "[The same lists under every preset](conventions-explained.md) shows what the decisions do.",
        "",
        "## Decisions",
        "",
        "The first value of each is the default.",
        "",
    ]
    for name in NAMES:
        default = getattr(Conventions(), name)
        lines += [f"### {name}", ""]
        ordered = sorted(choices(name).items(), key=lambda pair: pair[0] not in (default, "none"))
        lines += [f"- `{value}`: {words}" for value, words in ordered]
        lines += [""]
    lines += [
        "## Your own gains and discounts",
        "",
        "`gain=` also takes a mapping of grades to gains, or a function that gets a NumPy array of",
        "grades and returns their gains; `discount=` the weights of places 1, 2, … (later places count",
        "0), or a function of an array of places. All are finite and at least 0. A function is printed",
        "and saved by its name, so two results agree only if it is the same function.",
        "",
        "```python",
        "import recsys",
        "",
        'lists, truth = {1: ["a", "b", "c"]}, {1: {"a": 1, "c": 3}}',
        "for rules in (",
        '    {"gain": {1: 1, 3: 10}},',
        '    {"gain": lambda grades: grades**2},',
        '    {"discount": (1, 0.5, 0.25)},',
        '    {"discount": lambda places: 1 / places},',
        "):",
        '    print(round(recsys.evaluate(lists, truth, ["dcg@3"], conventions=rules)["dcg@3"], 4))',
        "```",
        "",
        "```text",
        "6.0",
        "5.5",
        "1.75",
        "2.0",
        "```",
        "",
        "## Decisions of single metrics",
        "",
        "`per_metric` holds the exceptions: `{metric: {decision: value}}` for metrics that decide",
        "otherwise than the rest, as some libraries do. A decision in the brackets of a request, such as",
        "`ndcg(relevant_from=none)@10`, comes before both; one that is changed with `but(...)` is changed",
        "for every metric, exceptions too.",
        "",
        "```python",
        'rules = recsys.Conventions(relevant_from=2, per_metric={"ndcg": {"relevant_from": None}})',
        "for conventions in (rules, rules.but(relevant_from=2)):",
        '    result = recsys.evaluate(lists, truth, ["recall@1", "ndcg@1"], conventions=conventions)',
        '    print(result["recall@1"], round(result["ndcg@1"], 4))',
        "```",
        "",
        "```text",
        "0.0 0.3333",
        "0.0 0.0",
        "```",
        "",
        "## Presets",
        "",
    ]
    lines += [
        "`cf_evaluation`, `recommender_evaluator`, `ncf_evaluator`, `rating_threshold` and",
        "`rating_and_ranking` are the decisions of the five design documents, 000 to 004, that",
        "`recsys.cf.evaluation` follows.",
        "",
        "| preset | library | version | decisions that differ from the default |",
        "|---|---|---|---|",
    ]
    for row in all_presets():
        changed = ", ".join(f"{n}={d['value']}" for n, d in row["decisions"].items()) or "none"
        for metric, changes in row["per_metric"].items():
            changed += f"; {metric}: " + ", ".join(f"{n}={v}" for n, v in changes.items())
        lines.append(f"| [{row['name']}](#{row['name']}) | {row['library']} | {row['version']} | {changed} |")
    lines.append("")
    for row in all_presets():
        lines += _preset_section(row)
    return "\n".join(lines)


def _preset_section(row: dict[str, Any]) -> list[str]:
    lines = [f"### {row['name']}", "", f"{row['library']} {row['version']}, checked {row['checked']}."]
    if row["aliases"]:
        lines[-1] += f" Also `{'`, `'.join(row['aliases'])}`."
    lines.append("")
    lines += [f"- `{name}={d['value']}`: {d['words']}" for name, d in row["decisions"].items()]
    for metric, changes in row["per_metric"].items():
        words = "; ".join(f"`{n}={v}`: {describe(n, v)}" for n, v in changes.items())
        lines.append(f"- for {metric} only, {words}")
    lines += [f"- **Not copied:** {defect}" for defect in row["defects"]]
    lines += [f"- {fact}" for fact in row["facts"]]
    return [*lines, ""]


def explained_page() -> str:
    lines = [
        MADE,
        "",
        "# One set of lists, every preset",
        "",
        "Seven users: one plain, one with more relevant items than places, one with a short list, one",
        "without relevant items, one without a list, one who is shown an item twice, one whose items tie.",
        "The lists and the truth are the same in every row; only the conventions differ.",
        "",
        f"| preset | {' | '.join(COMPARED)} |",
        "|---|" + "---:|" * len(COMPARED),
    ]
    names = ["default", *(row["name"] for row in all_presets())]
    lines += [f"| {name} | {' | '.join(_value(name, metric) for metric in COMPARED)} |" for name in names]
    lines += ["", "## Why", "", "The decisions of each preset that differ from the default.", ""]
    for row in all_presets():
        words = "; ".join(d["words"] for d in decisions(Conventions.named(row["name"])).values())
        lines.append(f"- **{row['name']}**: {words or 'none'}.")
    lines += ["", "`recsys.explain(a, b)` says which of these moved a number, on your own data.", ""]
    return "\n".join(lines)


def _value(preset: str, metric: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f"{recsys.evaluate(LISTS, TRUTH, metric, conventions=preset)[metric]:.4f}"


def evaluators_page() -> str:
    """What the sources of evaluators outside the field decide, by metric."""
    lines = ["# What other evaluators do", "", _OF_EVALUATORS]
    for name, row in EVALUATORS.items():
        source = f"[{row.repository}](https://github.com/{row.repository}), {row.version}: `{row.file}`"
        lines += ["", f"## {name}", "", source]
        lines += ["", "| metric | decisions | what it does besides |", "|---|---|---|"]
        for metric in row.metrics:
            decided = ", ".join(f"`{n}={v}`" for n, v in row.decisions(metric).items())
            lines.append(f"| {metric} | {decided} | {'; '.join(row.deviations(metric))} |")
    return "\n".join(lines) + "\n"


_OF_EVALUATORS = """
Read in their sources at the version named, not run: gains, cut-offs, repeats, users without relevant items. A
decision that is not named is not theirs to take, mostly since they are handed one list at a time; where they
have no cut-off of their own, they are handed the first k. [Conventions](conventions.md) says what the
decisions mean, and [`recsys identify`](identify.md) finds them by asking; what it names an evaluator of yours
after is this table. The libraries behind the [presets](conventions.md) were run and are not repeated here.
""".strip()


def files_page() -> str:
    """The page as it is, with the table of formats made anew."""
    text = (DOCS / "files.md").read_text(encoding="utf-8")
    before, start, rest = text.partition("<!-- formats: written by scripts/write_docs.py -->\n")
    _, end, after = rest.partition("<!-- end of formats -->\n")
    lines = ["| format | recognised by | lists | truth |", "|---|---|---|---|"]
    taken: set[str] = set()  # formats may share an ending, as `ratings` and `csv`: the first is known by it
    for row in FORMATS.values():
        endings = [f"`{suffix}`" for suffix in row.suffixes if suffix not in taken]
        taken.update(row.suffixes)
        known_by = ", ".join(endings) + (", or " if endings else "") + row.help
        lines.append(f"| `{row.name}` | {known_by} | {row.lists} | {row.truth} |")
    return before + start + "\n" + "\n".join(lines) + "\n\n" + end + after


def cautions_page() -> str:
    lines = [
        MADE,
        "",
        "# Cautions",
        "",
        "A number can be right and answer another question than the one you meant: ids that are off by",
        "one, lists shorter than the cut-off, one-star ratings that count as relevant. `result.cautions`",
        "holds what was noticed, as (code, sentence, page); it is printed below the table, in the report,",
        "by the command and in `--json`, and kept in result files. `comparison.cautions` and",
        "`gate.cautions` hold their own and those of their models.",
        "",
        "A caution is a question, not an error. Once you have answered it, silence it:",
        "",
        '    recsys.evaluate(lists, truth, cautions=["k_beyond_lists"])   # these codes',
        '    recsys.evaluate(lists, truth, cautions="ignore")             # all of them',
        "    recsys evaluate lists.csv truth.csv --cautions ignore",
        "",
    ]
    for code, rule in CAUTIONS.items():
        about = "" if rule.about != "comparison" else " (of `compare` and `gate`)"
        raised, not_raised = (" ".join(part.split()) for part in rule.find.__doc__.split("Silent:"))
        lines += [
            f"## {code}",
            "",
            f"**Raised**{about}: {raised}",
            "",
            f"**Not raised**: {not_raised}",
            "",
        ]
    return "\n".join(lines)


ROOMS = recsys._ROOMS  # noqa: SLF001 - the modules of the API reference
VERBS = {
    "evaluation": "Evaluate",
    "comparison": "Compare",
    "ranks": "Models as sources of rankings",
    "inputs": "Read data",
    "records": "Data once read",
    "splits": "Split",
    "audits": "Audit",
    "stats": "Online experiments",
}


def reference_page() -> str:
    """The names of `recsys` itself, by subject, and a table of the rooms."""
    lines = [
        *BELOW_IN_SEARCH,
        MADE,
        "",
        "# API reference",
        "",
        "Every public name with its signature. This page has the names of `recsys` itself; the others are in",
        "modules that `import recsys` brings along, so `recsys.splits.leave_last` needs no second import.",
        "",
        "| module | about |",
        "|---|---|",
    ]
    for name, path in sorted(ROOMS.items()):
        about = inspect.getdoc(import_module(path)) or ""
        lines.append(f"| [`{name}`]({name}.md) | {' '.join(about.partition(chr(10) * 2)[0].split())} |")
    lines.append("")
    homes = {name: _home(recsys, name).split(".")[1] for name in recsys.__all__}
    for room in dict.fromkeys([*VERBS, *sorted(homes.values())]):
        names = sorted((n for n, home in homes.items() if home == room), key=lambda n: n[0].isupper())
        if names:
            entries = _entries(recsys, names, "recsys", 3, {})
            lines += [f"## {VERBS.get(room, room.capitalize())}", "", *entries]
    return "\n".join(lines)


def room_page(name: str) -> str:
    """The names of one room, and of the modules that are public names of it."""
    room = import_module(ROOMS[name])
    known = {_home(recsys, verb): (f"recsys.{verb}", "index.md") for verb in recsys.__all__}
    lines = [
        *BELOW_IN_SEARCH,
        MADE,
        "",
        f"# recsys.{name}",
        "",
        *_directive(ROOMS[name], docstring_only=True),
    ]
    lines += _entries(room, room.__all__, f"recsys.{name}", 2, known)
    for inner in room.__all__:
        module = getattr(room, inner)
        if isinstance(module, ModuleType):
            lines += [f"## recsys.{name}.{inner}", "", *_directive(module.__name__, docstring_only=True)]
            lines += _entries(module, module.__all__, f"recsys.{name}.{inner}", 3, known)
    return "\n".join(lines)


def _entries(
    room: ModuleType, names: Sequence[str], shown: str, level: int, known: dict[str, tuple[str, str]]
) -> list[str]:
    """One entry per name; what has one already, by another name, is linked. `known`: {home: (name, page)}."""
    lines = []
    for name in sorted(names, key=lambda name: not _home(room, name).endswith(f".{name}")):  # aliases last
        home = _home(room, name)
        if isinstance(getattr(room, name), ModuleType):
            continue
        if home in known:
            other, page = known[home]
            lines += [f"{'#' * level} {shown}.{name}", "", f"[`{other}`]({page}#{home})", ""]
        else:
            lines += _directive(home, heading=f"{shown}.{name}", toc_label=name, heading_level=level)
            known[home] = f"{shown}.{name}", ""
    return lines


def _home(room: ModuleType, name: str) -> str:
    """Where a function or a class is defined; other values by the name they have here."""
    value = getattr(room, name)
    own = inspect.isfunction(value) or inspect.isclass(value)
    return f"{value.__module__}.{value.__qualname__}" if own else f"{room.__name__}.{name}"


def _directive(path: str, *, docstring_only: bool = False, **options: Any) -> list[str]:
    if docstring_only:
        options = {"members": "false", "show_root_heading": "false", "show_root_toc_entry": "false"}
    return [f"::: {path}", "    options:", *(f"      {key}: {value}" for key, value in options.items()), ""]


def recipes_page() -> str:
    """The files of examples/recipes, with what their docstrings say above the code."""
    lines = [
        MADE,
        "",
        "# Recipes: SASRec, two-tower, LightGBM, RecBole, Hugging Face",
        "",
        "Whole programs of fewer than 60 lines that take seconds, and that the tests run. Your model",
        "replaces theirs: whatever ranks is passed as `recsys.Scores` (a function of blocks of",
        "users), `recsys.Factors` (two matrices) or a table of lists ([other tools](ecosystem.md)).",
        "",
    ]
    for path in sorted((DOCS.parent / "examples" / "recipes").glob("*.py")):
        docstring, _, code = path.read_text(encoding="utf-8").removeprefix('"""').partition('"""\n')
        title = docstring.partition(":")[0].partition(",")[0]
        note = f"<!-- not run: the tests run examples/recipes/{path.name} -->"
        lines += [f"## {title}", "", docstring, note, "", "```python", code.strip("\n"), "```", ""]
    return "\n".join(lines)


# What the words of a decision leave open for an implementation.
EFFECTS = {
    "gain": "Only relevant items have a gain. A table of gains may take the place of a name, in the "
    "vectors a list of `[grade, gain]`; a relevant item whose grade is not in the table is an error.",
    "discount": "The weight of place r is 1 / discount. The weights of places 1, 2, … may take the place "
    "of a name, in the vectors a list of numbers; places beyond its end weigh 0.",
    "ideal": "The gains of all relevant items, listed or not, are sorted, highest first; the ideal is "
    "the sum over the first m of them of gain / discount(r), r = 1 … m. `reachable`: m = min(k, "
    "relevant). `list`: m = min(k, relevant, length). `all`: m = relevant. `k`: the sum over r = 1 … k of "
    "1 / discount(r), whatever is relevant; a relevant item of any case, listed or not, with a gain above 1 "
    "is then an error, so `gain=binary` goes with it.",
    "precision_over": "Without a cut-off, `min` is min(length, relevant).",
    "recall_over": "Without a cut-off, `min` is relevant.",
    "ap_over": "Without a cut-off, `min` is relevant and `list` is min(length, relevant). Under `hits`, "
    "and `ties=expected`, numerator and divisor belong to the same order: the value is the mean of the "
    "quotients.",
    "f1_of": "`means`: the formula of f is applied once, to the mean precision and the mean recall of "
    "the cases in the mean. The values of the cases stay those of `case`.",
    "no_truth": "[Who is in the mean](index.md#who-is-in-the-mean) has the exact order of the rules.",
    "no_list": "[Who is in the mean](index.md#who-is-in-the-mean) has the exact order of the rules. A "
    "list that `judged_only` emptied is empty, but was given: this decision does not apply to it.",
    "ties": "[Equal scores](index.md#equal-scores) defines the last three. `given` is the order of the run.",
    "duplicates": "Under `all` every entry counts, also as an item shown; a case whose value leaves the "
    "bounds of the metric because of that, by more than rounding, is an error. `error` refuses a run in "
    "which any list repeats an item, beyond k too. `collapse` is done to the lists in step 5: no repeat is "
    "left for any metric to see, and length, ties and places are those of the shorter lists.",
    "unknown_items": "Only if the catalogue is given as ids. It is about every judged item, relevant or not, "
    "but those of a negative grade. Like `negative_grades` it is done to the truth before any metric: "
    "`error` refuses the input for every metric.",
    "seen_truth": "Only if `seen` is given. It is about every judged item, relevant or not, but those of a "
    "negative grade. `error` refuses the input for every metric.",
    "average": "For metrics that are a ratio; the values of the cases stay the same. A case whose value is "
    "set to 0 ([who is in the mean](index.md#who-is-in-the-mean)) has the numerator 0 and the "
    "denominator that the formula gives.",
    "judged_only": "`yes`: an entry whose item is not in the truth of its case, as steps 2 to 4 left it, "
    "is taken out of the list; the others move up, and the length is the number that is left.",
    "negative_grades": "`unjudged`: such items are taken out of the truth; inf_ap alone remembers them.",
    "accuracy_over": "`k`: FP = k - TP; `list`: FP = min(k, length) - TP.",
    "rank_gaps": "Only for a run of ranks. `closed`: the entry of the lowest rank has place 1, the next one "
    "place 2, and so on. `kept`: the place of an entry is its rank, and the length is the highest rank; "
    "places in between are empty. An empty place counts wherever places, entries or the length are counted, "
    "as an entry that is not a hit, a judged item or an item shown (but not for valid). `kept` is an error "
    "with `full_ranking` if a rank is left out, and `judged_only=yes` closes the gaps. Ranks are whole "
    "numbers from 1 on; others are an error.",
    "gini_over": "`catalogue`: n is the size of the catalogue. "
    "`recommended`: n counts the items whose exposure is above 0.",
    "relevant_from": "`null` is the default. A grade of 0 or less is never relevant.",
    "max_grade": "`null`, the default, is the highest grade of the whole truth, before anything is dropped.",
}


def standard_decisions_page() -> str:
    """Every decision of the standard: its values, its exact effect, and who reads it."""
    metrics = standard_metrics()
    lines = [
        MADE,
        "",
        f"# Decisions of the standard, version {VERSION}",
        "",
        "What a metric's name leaves open. The first value of each decision is the default. Words such as k,",
        "hit and relevant are [defined](index.md#words-of-the-formulas); [the steps](index.md#the-steps) say",
        "when each decision is read.",
        "",
    ]
    for name in NAMES:
        default = getattr(Conventions(), name)
        readers = [metric.name for metric in metrics if name in metric.reads]
        ordered = sorted(choices(name).items(), key=lambda pair: pair[0] not in (default, "none"))
        lines += [f"## {name}", "", *(f"- `{value}`: {words}" for value, words in ordered), ""]
        lines += [*textwrap.wrap(EFFECTS[name], 118, break_long_words=False, break_on_hyphens=False), ""]
        lines += textwrap.wrap(f"Read by {', '.join(readers)}.", 118, break_on_hyphens=False)
        lines.append("")
    return "\n".join(lines)


def standard_metrics_page() -> str:
    """Every metric of the standard, with all that is needed to implement it."""
    metrics = standard_metrics()
    lines = [
        MADE,
        "",
        f"# Metrics of the standard, version {VERSION}",
        "",
        "A metric is given by its formula, in [words that are defined](index.md#words-of-the-formulas).",
        "x / 0 is 0 unless stated otherwise. [Who is in the mean](index.md#who-is-in-the-mean) says what",
        "becomes of a case with an empty list or without relevant items.",
        "",
    ]
    for family in dict.fromkeys(map(family_of, metrics)):
        file = f"vectors/{family}.json"
        lines += [f"## Family {family}", "", f"Vectors: [{file}]({file}).", ""]
        for metric in (m for m in metrics if family_of(m) == family):
            if family != "predictions" or not metric.name.startswith("user_"):
                lines += _standard_section(metric)
    return "\n".join(lines)


def _standard_section(metric: Metric) -> list[str]:
    predicted = "predictions" in metric.needs
    name = f"{metric.name} of predictions" if predicted and metric.name in METRICS else metric.name
    paragraphs = [metric.meaning, metric.details]
    lines = [f"### {name}", "", f"    {metric.formula}", ""]
    for paragraph in filter(None, paragraphs):
        lines += [*textwrap.wrap(paragraph, 118, break_long_words=False, break_on_hyphens=False), ""]
    facts = metric_facts(metric)
    better = {"higher": "higher is better", "lower": "lower is better", "zero": "0 is best"}[metric.better]
    lines.append(f"- bounds: {bounds_text(facts)}; {better}")
    if predicted:
        if metric.kind in ("pooled", "rows"):
            lines.append(
                f"- `{metric.name}` is over all rows at once, `user_{metric.name}` the mean over the users "
                "of the value of their own rows; a user without a value is left out"
            )
        else:
            lines.append("- over all users as the formula says; a user without a value is left out")
    else:
        cut = {"never": "none: it reads the whole list", "required": "required", "optional": "optional"}
        lines.append(f"- cut-off: {cut[metric.at_k]}")
        lines.append(f"- overall: {_overall_words(metric)}")
        if metric.kind != "catalogue":
            empty = metric.empty
            words = "what the formula gives" if empty is None else f"{empty:g}".replace("nan", "left out")
            about = {
                "relevant": "is about relevant items",
                "judged": "is about judged items",
                "listed": "is about the items shown: it does not ask for relevant items",
            }
            lines.append(f"- value for an empty list: {words}; it {about[metric.population]}")
        lines.append(f"- `ties=expected`: {_expected_words(metric)}")
    for parameter, default in metric.params.items():
        choices = metric.choices.get(parameter, ())
        words = [] if isinstance(choices, Between) else [word for word in choices if word is not callable]
        named = all(isinstance(word, str) for word in words) and words
        plain = [f"`{word}`" for word in words if str(word).isidentifier()]
        one_of = f", one of {', '.join(plain)}" if named else ""
        one_of += f", {choices}" if isinstance(choices, Between) else ""
        one_of += "".join(f", or written as `{word}`" for word in words if named and f"`{word}`" not in plain)
        value = f"`{default:g}`" if isinstance(default, float) else f"`{default}`"
        not_set = "null, the only column" if parameter in ("by", "of") and "items" in metric.needs else "null"
        lines.append(f"- parameter `{parameter}`: default {not_set if default is None else value}{one_of}")
    if metric.needs and not predicted:
        needs = [NEEDS[need].words for need in metric.needs if need != "lists"]
        lines += [f"- needs {need}" for need in needs]
    if metric.reads:
        lines.append("- decisions: " + ", ".join(f"[{n}](decisions.md#{n})" for n in metric.reads))
    return [*lines, ""]


def _overall_words(metric: Metric) -> str:
    if metric.kind == "catalogue":
        return "one number over all cases, and none per case"
    if metric.pooling.combine_if == "always":
        return "always pooled: sum of numerators / sum of denominators of the cases in the mean"
    if metric.pooling.summary is not None:
        return "as the formula says"
    words = "the mean of the cases"
    if metric.pooling.combine_if is not None:
        decision, value = metric.pooling.combine_if
        is_ratio = metric.pooling.combine is quotient
        how = "sum of numerators / sum of denominators" if is_ratio else "as the formula says"
        words += f"; under `{decision}={value}`: {how}"
    return words


def _expected_words(metric: Metric) -> str:
    if metric.tied.ties == "refuse":
        return "refused where any list has a tie"
    return "the order by id" if metric.tied.ties == "shown" else "the mean over all orders"


def vectors_file(family: str) -> str:
    """One file of test vectors: an input and a vector per line."""
    file = families()[family]

    def lines(rows: Iterable[str]) -> str:
        return ",\n".join(rows)

    inputs = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in file["inputs"].items())
    head = f'{{"standard": {file["standard"]}, "family": {json.dumps(family)},'
    vectors = map(json.dumps, file["vectors"])
    return f'{head}\n"inputs": {{\n{lines(inputs)}\n}},\n"vectors": [\n{lines(vectors)}\n]}}\n'


def keywords_page() -> str:
    """The keywords of evaluate and compare under their headings: meaning, default, takers, option."""
    tables = {
        "evaluate": EvaluateKeywords,
        "Evaluator": BatchKeywords,
        "race": RunKeywords,
        "spark.evaluate": BatchKeywords,
    }
    lines = [
        MADE,
        "",
        "# Keywords of evaluate and compare",
        "",
        "`recsys.evaluate(lists, truth, metrics)` takes these keywords. Editors and notebooks complete them,",
        "type checkers check them, and a misspelt one is an error that names the nearest. `Evaluator`,",
        "`race` and `recsys.spark.evaluate` take those that mean the same there. The last three tables are",
        "those of `recsys.compare` and `recsys.spark.compare`.",
        "",
    ]
    heading, groups = None, [*GROUPS, *compare_keywords.GROUPS]
    declared = [*read_keywords(tables).values()]
    declared += read_keywords({"compare": CompareOptions, "spark.compare": CompareOptions}).values()
    for keyword in sorted(declared, key=lambda one: groups.index(one.group)):
        if keyword.group != heading:
            heading = keyword.group
            rows = ["| keyword | meaning | option | also taken by |", "|---|---|---|---|"]
            lines += [*([""] if lines[-1] else []), f"## {heading}", "", *rows]
        default = "" if keyword.default is None else f" Default: `{keyword.default!r}`."
        others = ", ".join(f"`{name}`" for name in keyword.taken_by if name not in ("evaluate", "compare"))
        words = (keyword.words[0].upper() + keyword.words[1:]).replace("|", "\\|")
        option = f"`{keyword.option}`" if keyword.option else ""
        lines.append(f"| `{keyword.name}` | {words}{default} | {option} | {others} |")
    return "\n".join([*lines, ""])


PAGES = {
    "standard/decisions.md": standard_decisions_page,
    "standard/metrics.md": standard_metrics_page,
    **{
        f"standard/vectors/{name}.json": partial(vectors_file, name)
        for name in dict.fromkeys(map(family_of, standard_metrics()))
    },
    "cautions.md": cautions_page,
    "evaluators.md": evaluators_page,
    "files.md": files_page,
    "keywords.md": keywords_page,
    "metrics.md": metrics_page,
    "conventions.md": conventions_page,
    "conventions-explained.md": explained_page,
    "recipes.md": recipes_page,
    "api/index.md": reference_page,
    **{f"api/{name}.md": partial(room_page, name) for name in ROOMS},
}


def main() -> int:
    stale = [name for name, made in PAGES.items() if not _is(DOCS / name, made())]
    if "--check" in sys.argv[1:]:
        print("\n".join(f"docs/{name} is stale: run make docs" for name in stale) or "docs are up to date")
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).parent.mkdir(exist_ok=True, parents=True)
        write_text(DOCS / name, PAGES[name]())
        print(f"wrote docs/{name}")
    return 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
