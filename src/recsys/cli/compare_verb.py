"""`recsys compare`: which of several models is better, and how surely; from their lists or saved results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings
from recsys.cli.output import check_target, note_cautions, print_csv, print_json, print_page, progress_bar
from recsys.cli.shared_options import FileOptions, MetricOptions
from recsys.cli.verb_options import CHANCE, INPUT, LEVEL, OUTPUT, Given, argument, command, option
from recsys.stats.comparison_table import EFFECTS, TESTS
from recsys.stats.multiple_comparisons import CORRECTIONS

if TYPE_CHECKING:
    from recsys.comparison.compare import Comparison
    from recsys.evaluation.results import Evaluation

_SHORTEST_LIST = 20  # of a model, for its report


# Options of `compare` by the same names.
_TESTS = (
    option(
        "--statistic", "The paired test.", CHANCE, name="test", type=click.Choice(TESTS), default=TESTS[0]
    ),
    option(
        "--correction",
        "Over the models on the headline, and apart from it on all other metrics.",
        CHANCE,
        type=click.Choice([*CORRECTIONS, "max-t"]),
        default="holm",
    ),
    option("--effect", "The effect size.", CHANCE, type=click.Choice(list(EFFECTS)), default="d_z"),
    option("--confidence", "Of intervals and tests.", CHANCE, type=LEVEL, default=0.95),
    option("--margin", "Also test for equivalence within this difference.", CHANCE, type=float),
    option("--no-worse-than", "Also test for non-inferiority: worse by less than this.", CHANCE, type=float),
    option("--rope", "Also give the Bayesian view: practically equal within this.", CHANCE, type=float),
)


@command(
    "compare",
    argument("paths", "A B …", nargs=-1, required=True),
    option("--truth FILE", "What was relevant; not needed for saved results.", INPUT),
    shared_options.decision_options,
    shared_options.name_option,
    shared_options.metric_options,
    shared_options.file_options_for("files of lists", "--truth"),
    shared_options.data_options,
    _TESTS,
    option("--users FILE", "Table of the users, for --covariate and --strata.", INPUT),
    option("--covariate COLUMN ...", "Number in --users to adjust for (CUPED); repeatable.", CHANCE),
    option("--strata COLUMN", "Groups in --users to stratify by.", CHANCE),
    shared_options.seed_option,
    shared_options.cautions_option,
    option("--markdown", "Print a Markdown table.", OUTPUT, name="table_form", flag_value="markdown"),
    option("--latex", "Print a LaTeX table.", OUTPUT, name="table_form", flag_value="latex"),
    option("--csv", "Print CSV, with all digits.", OUTPUT, name="table_form", flag_value="csv"),
    option("--json", "Print JSON, with all digits.", OUTPUT, name="table_form", flag_value="json"),
    shared_options.raw_option,
    option("--report FILE", "Also write the report (.html).", OUTPUT, type=shared_options.FILE),
    option(
        "--methods FILE",
        "Also write a methods paragraph with BibTeX, for papers (.md, .tex, .txt).",
        OUTPUT,
        type=shared_options.FILE,
    ),
    shared_options.quiet_option,
)
def compare_command(given: Given) -> None:
    """Compare models, paired user by user: A, B, … are list files (with --truth) or saved results.

    A saved result is a file (.json) or the folder of --per-user-to, which is compared piece by piece.

    recsys compare als.csv bpr.csv --truth test.csv --baseline als -m ndcg@10 -m recall@10
    """
    from recsys.comparison.compare import compare
    from recsys.stats.inference_results import notes_only

    metrics = given.gather(MetricOptions)
    files = given.gather(FileOptions)
    if len(given.paths) < 2:
        raise click.UsageError("there is nothing to compare: name two files or more.")
    models = files_by_model(given.paths, given.names)
    inputs = (*given.paths, given.truth, given.seen, given.train, given.users)
    if given.report is not None:
        check_target(given.report, "report", inputs=inputs, makes_folder=True)
    if given.methods is not None:
        check_target(given.methods, "methods", inputs=inputs)
    cautions = shared_options.silenced_cautions(given.silenced)
    given.baseline = baseline_name(given.baseline, models)
    if given.baseline is not None and given.baseline not in models:
        raise click.UsageError(f"--baseline {given.baseline} is none of {', '.join(models)}.")
    columns = {"covariates": given.covariate, "strata": (given.strata,) if given.strata else ()}
    if (given.users is None) == any(columns.values()):
        raise click.UsageError("--covariate COLUMN and --strata COLUMN go with --users FILE, which has them.")
    with print_warnings(quiet=given.quiet), progress_bar("resampling", quiet=given.quiet) as progress:
        results, tables = evaluate_files(models, given, cautions, reports=given.report is not None)
        with notes_only() if given.table_form is None else nullcontext():  # the table has the notes below it
            comparison = compare(
                results,
                given.baseline,
                [str(request) for request in metrics.requests()] if metrics.metrics else None,
                cautions=cautions,
                progress=progress,
                rng=given.seed,
                **given.pick("headline", *_TESTS),
                **{
                    key: files.read_attributes(given.users, "user", own)
                    for key, own in columns.items()
                    if own
                },
            )
    _write_pages(
        comparison, tables | {"baseline": given.baseline}, given.report, given.methods, quiet=given.quiet
    )
    if given.table_form is None:
        print_page(comparison)
    elif given.table_form == "json":
        print_json(comparison.to_json())
    else:
        if given.table_form == "csv":
            print_csv(comparison.to_frame().to_dict("list"), raw=given.raw)
        else:
            click.echo(getattr(comparison, f"to_{given.table_form}")())
        note_cautions(comparison, quiet=given.quiet)


def _write_pages(
    comparison: Comparison, options: Any, report: Path | None, methods: Path | None, *, quiet: bool
) -> None:
    """Write what was asked for beside the table, and say where it is."""
    said = []
    if report is not None:
        from recsys.report import write_report

        said.append(f"report {write_report(report, comparison, **options)}")
    if methods is not None:
        paragraph = comparison.methods()
        said.append(f"methods {' and '.join(map(str, paragraph.write(methods)))}")
        said += ["to add to the methods: " + what for what in paragraph.to_add]
    for line in said if not quiet else ():
        note(line)


class ModelFile(NamedTuple):
    """A file of a model: lists, a model of `recsys train`, or a saved result, which is then read already."""

    path: str
    result: Evaluation | None

    @property
    def stem(self) -> str:
        """The name without its endings; of a glob what stands before the pattern, or its folder."""
        from recsys.inputs.files.formats import is_glob

        place = Path(self.path)
        if is_glob(place):
            return re.sub(r"\W*[*?\[].*", "", place.name) or place.parent.name or self.path
        return place.name.split(".")[0] or self.path


def files_by_model(paths: Sequence[str], names: Sequence[str]) -> dict[str, ModelFile]:
    """{model: file}: named by `names`, else as the saved result says, else by the file.

    Two that would have the same name are told apart by their files.
    """
    if names and len(names) != len(paths):
        raise click.UsageError(
            f"{len(names)} names for {len(paths)} files: give one --name per file, or none."
        )
    from recsys.evaluation.results import load

    files = [ModelFile(path, load(path) if _is_result(path) else None) for path in paths]
    models = list(names)
    if not names:
        saved = [None if file.result is None else file.result.name for file in files]
        short = [name or file.stem for name, file in zip(saved, files, strict=True)]
        for name, model, file in zip(saved, short, files, strict=True):
            place = file.path if file.path == "-" else str(Path(file.path).parent / Path(file.path).stem)
            full = place if name in (None, file.stem) else f"{name} ({place})"
            models.append(model if short.count(model) == 1 else full)
        if len(set(models)) < len(models):  # als.csv and als.json
            models = list(paths)
    if len(set(models)) < len(models):
        raise click.UsageError(
            "two models have the same name: give each file once, with a --name of its own."
        )
    return dict(zip(models, files, strict=True))


def baseline_name(baseline: str | None, models: Mapping[str, ModelFile]) -> str | None:
    """The model that --baseline means, which may name its file, with or without folder and suffix."""
    if baseline is None or baseline in models:
        return baseline
    matches = [name for name, file in models.items() if baseline in (file.path, file.stem)]
    return matches[0] if len(matches) == 1 else baseline


def evaluate_files(
    models: Mapping[str, ModelFile], given: Given, cautions: str | list[str] | None = None, *, reports: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """{model: evaluation} of list files, models and saved results; and what a report shows besides.

    That is lists, truth and train by these names; a model gets lists only where it `reports`.
    """
    from recsys.evaluation.evaluate import evaluate, recommend
    from recsys.inputs.files.formats import open_file
    from recsys.ranks.sources import is_model_path
    from recsys.records.arrays import Lists

    files, metrics = given.gather(FileOptions), given.gather(MetricOptions)
    conventions, requests = metrics.conventions(), metrics.requests()
    train, seen = given.train, given.seen
    list_paths = [file.path for file in models.values() if file.result is None]
    for path in list_paths:
        # A pipe is read once only.
        if path != "-" and (Path(path).is_file() or not Path(path).exists()) and not is_model_path(path):
            open_file(path)  # a misspelt name is reported before anything else that is missing
    if list_paths and given.truth is None:
        raise click.UsageError(f"{list_paths[0]} holds lists: say what was relevant with --truth FILE.")
    context: dict[str, Any] = {}
    if list_paths or reports:
        named = {"truth": given.truth, "seen": None if seen in ("", "none") else seen, "train": train or None}
        context = {name: files.read(path, "truth") for name, path in named.items()}
    results, lists = {}, {}
    model_met = False
    for name, (path, result) in models.items():
        if result is not None:
            results[name] = result
            continue
        ranked = files.read_ranked(path)
        own = context
        if isinstance(ranked, Lists):
            lists[name] = ranked
        elif shared_options.seen_file(seen, train, is_model=True, quiet=given.quiet or model_met) == train:
            own = context | {"seen": context["train"]}
        model_met = model_met or not isinstance(ranked, Lists)  # what it does not rank is said once
        results[name] = evaluate(
            ranked,
            metrics=requests,
            conventions=conventions,
            cautions=cautions,
            **given.pick("catalogue", "full_ranking"),
            **own,
        )
        if reports and name not in lists:
            users = context["truth"].cases.values
            known = users[ranked.user_rows.row_of(users) >= 0]
            length = max(_SHORTEST_LIST, *(request.k or 0 for request in requests))
            lists[name] = recommend(ranked, length, users=known, seen=own["seen"])
    return results, {"lists": lists or None, "truth": context.get("truth"), "train": context.get("train")}


def _is_result(path: str) -> bool:
    """Whether a file or folder is a saved result rather than lists, judged by its first bytes."""
    place = Path(path)
    place = place / "manifest.json" if place.is_dir() else place
    if place.suffix.lower() != ".json" or not place.is_file():
        return False
    with place.open("rb") as file:
        head = file.read(200).lstrip(b"\xef\xbb\xbf \r\n\t{")
    return re.match(rb'("format":\s*\d+,\s*)?"result"|"recsys":"rows"', head) is not None
