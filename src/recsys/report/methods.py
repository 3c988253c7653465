"""The methods paragraph of a paper: what results know about how they were made, with citations and BibTeX.

It claims nothing that a result does not know: what the author has to add is marked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import recsys
from recsys.comparison.compare import Comparison
from recsys.conventions.decisions import Conventions, describe
from recsys.display.cells import printable
from recsys.display.markup import latex_text, markdown_text
from recsys.display.number_words import plural
from recsys.errors import FileError, InputError, NoRowsError, came_as, notes_only
from recsys.evaluation.files.result_files import document_of, run_facts
from recsys.evaluation.result_facts import ResultFacts, footnotes_of
from recsys.evaluation.results import Evaluation, Reported
from recsys.evaluation.uncertainty import Intervals
from recsys.inputs.files import write_text
from recsys.metrics.registry import Request

# In a sentence, keys between these marks are citations, and a text between the others is to be added.
_CITED, _ADDED = ("\ue000", "\ue001"), ("\ue002", "\ue003")
_CITATION = re.compile(f" ?{_CITED[0]}(.*?){_CITED[1]}")
_TO_ADD = re.compile(f"{_ADDED[0]}(.*?){_ADDED[1]}")
_FIELD = re.compile(r"\b(\w+) = \{((?:[^{}]|\{[^{}]*\})*)\}")
_STATISTICS = "statistics: "
# What a test or an interval is called, by what its label contains; others are called by their label.
_TESTS = {
    "corrected resampled t": "the corrected resampled t-test", "paired t": "the paired t-test",
    "jackknife": "a t-test with jackknife variance", "Wilcoxon": "",
    "sign flips": "the sign-flip permutation test", "sign": "the sign test", "studentised": "", "bca": "",
    "Gaffke": "one by Gaffke's bounds",
}  # fmt: skip
_INTERVALS = {
    "t": "Student's t", "normal": "the normal distribution", "studentised": "the studentised bootstrap",
    "bca": "the BCa bootstrap", "percentile": "the percentile bootstrap", "jackknife": "the jackknife",
    "Gaffke": "Gaffke's bounds", "Clopper-Pearson": "Clopper and Pearson's limits",
    "Fieller": "Fieller's theorem", "rule of three": "the rule of three",
}  # fmt: skip
_CORRECTIONS = {
    "holm": "Holm's method", "bonferroni": "Bonferroni's method", "hochberg": "Hochberg's method",
    "bh": "Benjamini and Hochberg's method", "by": "Benjamini and Yekutieli's method",
    "max-t": "the step-down max-T method",
}  # fmt: skip


class Reference(NamedTuple):
    """A publication: its BibTeX entry, the key of that, and authors and year as a text cites them."""

    key: str
    bibtex: str
    short: str


@cache
def references() -> dict[str, Reference | None]:
    """Return {reference of a metric, or "statistics: " and a method: the publication}.

    The publication is None where there is none.

    >>> references()["Steck, Calibrated recommendations (2018)"].short
    'Steck 2018'
    """
    text = files("recsys.report").joinpath("references.txt").read_text(encoding="utf-8")
    known: dict[str, Reference | None] = {}
    for block in text.split("\n\n")[1:]:
        above, at, entry = block.strip().partition("\n@")
        found = _read_entry(f"@{entry.rstrip()}") if at else None
        known |= dict.fromkeys(above.split("\n"), found)
    return known


def _read_entry(entry: str) -> Reference:
    key = entry[entry.index("{") + 1 : entry.index(",")]
    fields = dict(_FIELD.findall(entry))
    names = [name.split(",")[0].strip("{}") for name in fields["author"].split(" and ")]
    authors = " & ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return Reference(key, entry, f"{authors} {fields['year']}")


@dataclass(frozen=True, repr=False)
class Methods:
    """A paragraph and the publications it cites; prints as plain text.

    >>> import recsys
    >>> result = recsys.evaluate({1: [3, 5], 2: [4]}, {1: {5}, 2: {4}}, ["ndcg@2"])
    >>> text = result.methods(data="two users", split="by hand")
    >>> text.to_add
    ('from which items each list was chosen, and whether items of the training data were left out',)
    >>> [each.key for each in text.cited]
    ['jarvelin2002cumulated', 'gaffke2005three', 'recsys']
    """

    sentences: tuple[str, ...]
    cited: tuple[Reference, ...]
    to_answer: tuple[str, ...] = ()  # the cautions

    @property
    def to_add(self) -> tuple[str, ...]:
        """What the result does not know and the author has to say."""
        return (*_TO_ADD.findall(" ".join(self.sentences)), *self.to_answer)

    @property
    def bibtex(self) -> str:
        """The entries of all publications cited."""
        return "\n\n".join(reference.bibtex for reference in self.cited) + "\n"

    def __str__(self) -> str:
        short = {reference.key: reference.short for reference in self.cited}
        return self._written(printable, lambda keys: f" ({'; '.join(short[key] for key in keys)})", "[{}]")

    __repr__ = __str__

    def to_markdown(self) -> str:
        """Markdown with citations as Pandoc writes them, [@key], and the BibTeX below."""
        text = self._written(
            markdown_text, lambda keys: f" [{'; '.join(f'@{key}' for key in keys)}]", "**[{}]**"
        )
        return f"{text}\n\n```bibtex\n{self.bibtex}```\n"

    def to_latex(self) -> str:
        r"""LaTeX with \cite{key}; the entries are in `bibtex`."""
        return self._written(latex_text, lambda keys: rf"~\cite{{{','.join(keys)}}}", r"\textbf{{[{}]}}")

    def write(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the paragraph as .md, .txt or .tex; with .tex and .txt also the BibTeX, as .bib."""
        target = Path(path)
        makers = {".md": self.to_markdown, ".txt": self.__str__, ".tex": self.to_latex}
        if target.suffix not in makers:
            raise FileError(
                f"{target} has the ending {target.suffix or 'none'!r}.",
                hint=f"A methods paragraph is written as {', '.join(makers)}.",
            )
        write_text(target, makers[target.suffix]().rstrip("\n") + "\n")
        if target.suffix == ".md":
            return [target]
        write_text(target.with_suffix(".bib"), self.bibtex)
        return [target, target.with_suffix(".bib")]

    def _written(self, escape: Callable[[str], str], cite: Callable[[list[str]], str], add: str) -> str:
        """Return the sentences with everything escaped but citations and what is to be added."""
        # Citations have no space before them, so that each form puts its own.
        text = " ".join([*self.sentences, *map(_to_add, self.to_answer)])
        text = _CITATION.sub(lambda found: f"{_CITED[0]}{found[1]}{_CITED[1]}", text)
        parts = re.split(f"({_CITED[0]}.*?{_CITED[1]}|{_ADDED[0]}.*?{_ADDED[1]})", text)
        written = []
        for part in parts:
            if part[:1] == _CITED[0]:
                written.append(cite(part[1:-1].split(",")))
            elif part[:1] == _ADDED[0]:
                written.append(add.format(f"TO ADD: {escape(part[1:-1])}"))
            else:
                written.append(escape(part))
        return "".join(written)


class MethodsFacts(TypedDict, total=False):
    """What `methods_paragraph` takes besides the results."""

    data: str | None
    split: Any
    candidates: str | None
    intervals: Intervals | None


def methods_paragraph(
    results: Reported | Mapping[str, Evaluation],
    *,
    data: str | None = None,
    split: Any = None,
    candidates: str | None = None,
    intervals: Intervals | None = None,
) -> Methods:
    """Return a methods paragraph about a result, a comparison, or {model: result}.

    Args:
        results: what evaluate or compare returned, or `recsys.load` read.
        data: the data set in your words, such as "MovieLens 1M".
        split: how training and test data were parted: what recsys.split returned, its manifest, or words.
        candidates: which items were excluded, such as "but for the items of the training data".
        intervals: those you report with one result; by default what `result.intervals()` gives.

    What is missing is marked in the text, and listed in `to_add`.
    """
    comparison = results if isinstance(results, Comparison) else None
    given: Any = {"": results} if isinstance(results, Evaluation) else results
    models: dict[str, Sequence[Evaluation]] = {}
    if comparison is not None:
        models = dict(comparison.evaluations)
    elif isinstance(given, Mapping) and all(isinstance(one, Evaluation) for one in given.values()):
        models = {name: [one] for name, one in given.items()}
    if not models:
        raise InputError(
            f"a methods paragraph was asked for of {type(results).__name__}.",
            hint="Pass what recsys.evaluate or recsys.compare returned.",
        )
    first = {name: runs[0] for name, runs in models.items()}
    cites = _Citations()
    if comparison is not None:
        how = _comparison_sentences(comparison, cites)
    elif len(models) == 1:
        how = _interval_sentences(next(iter(first.values())), intervals, cites)
    else:
        how = iter(())
    sentences = [
        *_data_sentences(first, data, split),
        *_candidate_sentences(first, candidates, cites),
        *_metric_sentences(first, comparison, cites),
        *how,
        *_run_sentences(models, cites),
    ]
    found = dict.fromkeys(one.sentence for one in (comparison or next(iter(first.values()))).cautions)
    to_answer = tuple("an answer to this caution: " + sentence for sentence in found)
    return Methods(tuple(sentences), tuple(cites.found.values()), to_answer)


class _Citations:
    """The publications cited so far, in their order."""

    def __init__(self) -> None:
        self.found: dict[str, Reference] = {}

    def of(self, *names: str) -> str:
        """Return the marks that cite what `names` stand for; a name without a publication in brackets."""
        known = references()
        cited = list(dict.fromkeys(entry for name in names if (entry := known.get(name)) is not None))
        self.found |= {entry.key: entry for entry in cited}
        words = [name for name in names if known.get(name) is None and not name.startswith(_STATISTICS)]
        text = f" ({'; '.join(words)})" if words else ""
        return text + (f" {_CITED[0]}{','.join(e.key for e in cited)}{_CITED[1]}" if cited else "")

    def method(self, *names: str) -> str:
        """Return the marks that cite statistical methods."""
        return self.of(*(_STATISTICS + name for name in names))


def _to_add(what: str) -> str:
    return f"{_ADDED[0]}{what}{_ADDED[1]}"


def _by_model(values: Mapping[str, str]) -> str:
    """Return what all models have in common, or the value of each."""
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return "; ".join(f"{model}: {value}" for model, value in values.items())


def _data_sentences(models: Mapping[str, Evaluation], data: str | None, split: Any) -> Iterator[str]:
    yield f"The data set is {data or _to_add('its name, version and filters')}."
    yield _split_sentence(split)
    protocols = {name: str(e.run.get("protocol", "")) for name, e in models.items()}
    if all(protocols.values()):
        yield f"The protocol is that of the file with the SHA-256 {_by_model(protocols)}."
    yield f"The test data hold {_by_model({name: _size_words(e) for name, e in models.items()})}."
    if any("rows" in e.counts for e in models.values()):
        return
    weighted = [e.partial.per_case is not None and e.per_case.weights is not None for e in models.values()]
    if any(weighted):
        yield f"Users are weighted {_to_add('by what')}."
    stops = {n: e.facts.stopped for n, e in models.items()}
    early = {n: f"{s.n_seen:,} of {s.n_total:,}" for n, s in stops.items() if s and s.share_saved > 0}
    if early:
        yield f"The evaluation was stopped early, after {_by_model(early)} users."
    thresholds = {n: describe("relevant_from", e.conventions.relevant_from) for n, e in models.items()}
    yield f"{_sentence_start(_by_model(thresholds))}."


def _size_words(evaluation: Evaluation) -> str:
    """Return how many users, cases and judged items, and who of them counts in no mean."""
    counts = evaluation.counts
    if "rows" in counts:
        return f"{counts['rows']:,} ratings of {plural(counts['cases'], 'user')}"
    line = footnotes_of(counts, evaluation.conventions, ResultFacts(), n_users=evaluation.n_users)[0]
    judged = plural(counts.get("judged", 0), "judged item")
    return f"{judged} of {line}"


def _split_sentence(split: Any) -> str:
    if split is None:
        return f"It was split into training and test data {_to_add('how, and with which seed')}."
    if isinstance(split, str):
        return f"It was split into training and test data {split.rstrip('.')}."
    manifest = split if isinstance(split, Mapping) else getattr(split, "manifest", None)
    if not isinstance(manifest, Mapping) or "how" not in manifest:
        raise came_as(
            "the split", split, hint="Pass what recsys.split returned, its manifest, or your own words."
        )
    settings = ", ".join(f"{name}={value}" for name, value in manifest["parameters"].items())
    rows = manifest["counts"]["rows"].items()
    parts = _enumerate(f"{n:,} rows of {part}" for part, n in rows if n and part != "input")
    return f"It was split by the strategy {manifest['how']} of recsys ({settings}) into {parts}."


def _candidate_sentences(
    models: Mapping[str, Evaluation], candidates: str | None, cites: _Citations
) -> Iterator[str]:
    """Yield what was ranked.

    That is the whole catalogue, sampled candidates, or lists of which nothing more is known.
    """
    if any("rows" in e.counts for e in models.values()):
        return
    words = {name: _candidate_words(e, candidates, cites) for name, e in models.items()}
    yield f"{_sentence_start(_by_model(words))}."
    catalogues = {n: e.partial.catalogue for n, e in models.items() if e.partial.catalogue is not None}
    if catalogues:
        sizes = {}
        for name, one in catalogues.items():
            tables = models[name].facts.catalogue_of or ()
            sources = ["training data" if table == "train" else table for table in tables]
            how = f" (those of {_enumerate(sources)})" if sources else ""
            sizes[name] = plural(one.n, "item") + how
        yield f"The catalogue has {_by_model(sizes)}."


def _candidate_words(evaluation: Evaluation, candidates: str | None, cites: _Citations) -> str:
    if evaluation.facts.sampled is not None:
        return f"{evaluation.facts.sampled}{cites.method('sampled')}"
    if "repeated_items" in evaluation.counts:  # which only lists can have
        unknown = (
            "from which items each list was chosen, and whether items of the training data were left out"
        )
        return f"ready lists were evaluated as they came {_to_add(unknown)}"
    words = "every candidate of a user was ranked, without sampling"
    if evaluation.facts.training_items == "ranked":  # a model may rule items out by their score
        return f"{words}; items of the training data were not left out"
    if candidates is not None:
        return f"{words}, {candidates.rstrip('.')}"
    return f"{words} {_to_add('which items were not candidates, such as those of the training data')}"


def _metric_sentences(
    models: Mapping[str, Evaluation], comparison: Comparison | None, cites: _Citations
) -> Iterator[str]:
    evaluation = next(iter(models.values()))
    compared = evaluation if comparison is None else {row.metric for row in comparison.rows}
    shared = [
        r for r in evaluation.requests if str(r) in compared and all(str(r) in e for e in models.values())
    ]
    by_metric: dict[str, list[Request]] = {}
    for request in shared:
        by_metric.setdefault(request.metric.name, []).append(request)
    named = [
        _enumerate(map(str, requests)) + cites.of(requests[0].metric.reference)
        for requests in by_metric.values()
    ]
    yield f"We report {_enumerate(named, ';' if any(' and ' in one for one in named) else ',')}."
    if evaluation.aggregate is not None and comparison is None:
        yield f"Values are the {evaluation.aggregate.words} over users."
    if "rows" in evaluation.counts:
        return
    default, differing = Conventions(), dict[tuple[str, str], list[str]]()
    for request in shared:
        own = request.conventions(evaluation.conventions)
        for name in request.metric.reads:
            value = getattr(own, name)
            if name != "relevant_from" and value != getattr(default, name):
                differing.setdefault((name, describe(name, value)), []).append(str(request))
    rules = f"the conventions “{evaluation.conventions}” of recsys"
    if not differing:
        yield f"Where a definition leaves a decision open, {rules} hold."
        return
    of_all = len(shared)
    changes = [
        words + ("" if len(metrics) == of_all else f" (in {_enumerate(metrics)})")
        for (_, words), metrics in differing.items()
    ]
    yield (
        f"Where a definition leaves a decision open, {rules} hold; unlike its defaults, {'; '.join(changes)}."
    )


def _comparison_sentences(comparison: Comparison, cites: _Citations) -> Iterator[str]:
    options, rows = comparison.table.options, comparison.rows
    baselines = list(dict.fromkeys(row.baseline for row in rows))
    others = list(dict.fromkeys(row.model for row in rows))
    is_chosen = len(others) == 1 < len(baselines)
    if len(baselines) == 1:
        pairs = f"{_enumerate(others)} with {baselines[0]}"
    elif is_chosen:
        pairs = f"{others[0]}, which has the best {comparison.headline}, with {_enumerate(baselines)}"
    else:
        pairs = "every pair of models"
    n_runs = sorted({len(runs) for runs in comparison.evaluations.values()})
    runs = "" if n_runs == [1] else f", over {_enumerate(map(str, n_runs))} runs of each model"
    n_users = sorted({row.n_units for row in rows if row.effect.name})
    users = f" ({_enumerate(f'{n:,}' for n in n_users)} users)" if n_users else ""
    yield f"We compared {pairs}, paired by user{users}{runs}."
    tests = _grouped((row.test, row.metric) for row in rows)
    yield f"The two-sided test of a difference is {_with_metrics(tests, _test_words, cites)}."
    ends = _grouped((row.interval.method, row.metric) for row in rows)
    lifts = _grouped((r.relative_interval.method, r.metric) for r in rows if r.relative == r.relative)
    methods = _with_metrics(ends, _interval_words, cites)
    if lifts:
        methods += f", and of a relative difference by {_with_metrics(lifts, _interval_words, cites)}"
    yield f"Confidence intervals of {options.confidence:.0%} are, of a difference, by {methods}."
    correction = _CORRECTIONS.get(options.correction)
    if len(rows) == 1:
        yield "There is one comparison, so that its p-value needs no correction."
    elif correction is None:
        yield f"P-values are not corrected for multiple comparisons: there are {len(rows)}."
    else:
        correction += cites.method(options.correction) + ", for the choice of the best too," * is_chosen
        yield f"P-values are corrected by {correction} within each family: {comparison.table.families}."
        if any(row.interval.confidence > options.confidence for row in rows):
            yield "The intervals of a family hold together (Bonferroni)."
    if any(row.effect.name for row in rows):
        yield f"The effect size is {options.effect}{cites.method(options.effect)}."
    yield from _further_tests(comparison, cites)


def _test_words(label: str, cites: _Citations) -> str:
    for name, words in _TESTS.items():
        if name in label:
            return (words or f"the {label} test") + cites.method(name)
    return f"that of {label}"


def _interval_words(label: str, cites: _Citations) -> str:
    return _INTERVALS.get(label, label) + cites.method("paired t" if label == "t" else label)


def _further_tests(comparison: Comparison, cites: _Citations) -> Iterator[str]:
    """Yield what options added to the comparison."""
    options = comparison.table.options
    if options.margin is not None:
        yield (
            f"Equivalence within {options.margin:g} is tested by two one-sided tests"
            f"{cites.method('equivalence')}."
        )
    if options.no_worse_than is not None:
        yield f"Non-inferiority is tested with a margin of {options.no_worse_than:g}."
    if options.rope is not None:
        yield f"The region of practical equivalence is ±{options.rope:g}{cites.method('rope')}."
    if options.covariates is not None:
        yield f"Differences are adjusted for covariates of users{cites.method('covariates')}."
    if options.strata is not None:
        yield f"Differences are post-stratified by groups of users{cites.method('strata')}."


def _interval_sentences(
    evaluation: Evaluation, intervals: Intervals | None, cites: _Citations
) -> Iterator[str]:
    if intervals is None:
        try:
            with notes_only():
                intervals = evaluation.intervals()
        except NoRowsError:  # then there are none to report
            return
    ends = _grouped((found.interval.method, name) for name, found in intervals.items())
    levels = sorted({found.interval.confidence for found in intervals.values()})
    yield (
        f"Confidence intervals of {_enumerate(f'{level:.0%}' for level in levels)} take the users as a "
        f"sample; they are by {_with_metrics(ends, _interval_words, cites)}."
    )


def _run_sentences(models: Mapping[str, Sequence[Evaluation]], cites: _Citations) -> Iterator[str]:
    everything = [one for runs in models.values() for one in runs]
    facts = [one.run or run_facts() for one in everything]
    versions = list(dict.fromkeys(str(fact.get("recsys", recsys.__version__)) for fact in facts))
    own = Reference(
        "recsys",
        "@misc{recsys,\n  author = {{The recsys developers}},\n"
        "  title = {recsys-evaluation: Evaluate recommender systems},\n"
        f"  note = {{Python package, version {', '.join(versions)}}}\n}}",
        f"The recsys developers, version {', '.join(versions)}",
    )
    cites.found[own.key] = own
    others = [
        f"{label} {_enumerate(dict.fromkeys(str(fact[name]) for fact in facts if name in fact))}"
        for name, label in (("python", "Python"), ("numpy", "NumPy"))
        if any(name in fact for fact in facts)
    ]
    others_cited = f" with {_enumerate(others)}" if others else ""
    hashes = []
    for model, runs in models.items():
        digests = _enumerate(document_of(one)["sha256"][:12] for one in runs)
        hashes.append(f"{digests} ({model})" if model else digests)
    yield (
        f"Everything was computed by recsys-evaluation {_enumerate(versions)} "
        f"{_CITED[0]}{own.key}{_CITED[1]}{others_cited}; the SHA-256 of the result begins with "
        f"{_enumerate(hashes)}."
    )


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return {first: every second paired with it, each once}."""
    groups: dict[str, list[str]] = {}
    for first, second in pairs:
        of_first = groups.setdefault(first, [])
        if second not in of_first:
            of_first.append(second)
    return groups


def _with_metrics(
    groups: Mapping[str, Sequence[str]], words: Callable[[str, _Citations], str], cites: _Citations
) -> str:
    """Write what holds for all metrics, or each with its metrics."""
    if len(groups) == 1:
        return words(next(iter(groups)), cites)
    return _enumerate((f"{words(one, cites)} for {_enumerate(of)}" for one, of in groups.items()), ";")


def _enumerate(words: Iterable[str], comma: str = ",") -> str:
    """Words with commas and a last "and".

    >>> _enumerate(["a", "b", "c"]), _enumerate(["a, b", "c"], ";"), _enumerate(["a"])
    ('a, b and c', 'a, b; and c', 'a')
    """
    *before, last = words
    return f"{f'{comma} '.join(before)}{comma.strip(',')} and {last}" if before else last


def _sentence_start(words: str) -> str:
    return words[:1].upper() + words[1:]
