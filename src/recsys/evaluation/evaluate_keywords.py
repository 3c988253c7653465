"""The keywords of evaluate, each declared once: its type, default, heading and what it means.

Evaluator, race, explain and recsys.spark take some of them, the command makes its options of them, and help
and documentation list them.
"""

# Annotations are values here, not texts, so that the declarations in them can be read.
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from recsys.conventions.decisions import AnyConventions
from recsys.errors import Phrase
from recsys.records.keywords import Keyword, declarations

if TYPE_CHECKING:
    from recsys.evaluation.stopping import StopWhen
    from recsys.inputs.ids import IdKind

MEASURED = "What is measured"
RANKED = "What is ranked"
KNOWN = "What is known about items and users"
COUNTED = "Who and what counts"
READ = "How inputs are read"
RUN = "How it runs"
BEYOND = "Inputs larger than memory"
GROUPS = (MEASURED, RANKED, KNOWN, COUNTED, READ, RUN, BEYOND)


class ConventionsKeyword(TypedDict, total=False):
    """The conventions; explain and race take them in their own way."""

    conventions: Annotated[
        AnyConventions,
        Keyword(
            'a preset\'s name ("trec_eval", "rectools", …), a dict of decisions, or Conventions.',
            group=MEASURED,
            option="--conventions NAME",
            line="A preset, see `recsys conventions`.",
        ),
    ]


class LengthKeywords(TypedDict, total=False):
    """Cut-offs and what users had; a scorer of scikit-learn takes them in its own way."""

    k: Annotated[
        int | Sequence[int] | None, Keyword("cut-offs for metrics that name none.", None, MEASURED, "-k")
    ]
    seen: Annotated[
        Any,
        Keyword(
            "what each user had already: never recommended by factors and scores; with ready lists it only "
            "counts relevant items among it.",
            group=RANKED,
            option="--seen FILE",
            line="What a model does not rank again, where that is not --train; counted among the relevant "
            "items. none: nothing.",
        ),
    ]


class MainKeywords(TypedDict, total=False):
    """What most calls need: evaluate has them in its signature."""

    by: Annotated[
        str | tuple[str, ...] | Mapping[Any, Any] | Callable[[Any], Any] | list[Any] | None,
        Keyword(
            'results per group: {user: group}, a function of the user id, "activity", "cold_user", '
            '"popularity", "cold_item", "item_age" (built from train), or a column of users or items; a '
            "tuple of names of users' groups for their combinations, a list for several groupings.",
            group=MEASURED,
            option="--by GROUP",
            line="Per group: activity, cold_user, popularity, cold_item, item_age, a column of items or "
            "users; A,B for combinations; repeatable.",
        ),
    ]
    catalogue: Annotated[
        int | Iterable[Any] | None,
        Keyword(
            "how many items there are, or all item ids. Some metrics and conventions need them.",
            group=RANKED,
            option="--catalogue N",
            line="How many items there are.",
        ),
    ]
    full_ranking: Annotated[
        bool,
        Keyword(
            "each list ranks every candidate (for auc, average_rank, …).", False, RANKED, "--full-ranking"
        ),
    ]
    train: Annotated[
        Any,
        Keyword(
            "what each user had before, like `truth`: popularity, novelty, histories, strata.",
            group=KNOWN,
            option="--train FILE",
            line="What users had before: not ranked again by a model; for novelty and other metrics.",
        ),
    ]
    items: Annotated[
        Any,
        Keyword(
            "attributes of the items: a table with an item column, or {column: {item: value}}.",
            group=KNOWN,
            option="--items FILE",
            line="Table of the items: for calibration, value, exposure, --by.",
        ),
    ]
    users: Annotated[
        Any,
        Keyword(
            "attributes of the users: a table with a user column, or {column: {user: value}}.",
            group=KNOWN,
            option="--users FILE",
            line="Table of the users: for --by.",
        ),
    ]
    columns: Annotated[
        Mapping[str, Any] | None,
        Keyword(
            'column names if detection fails: {"user": "uid", "item": "sku"}, or one such mapping under '
            '"lists" and one under "truth".',
            group=READ,
        ),
    ]


class FurtherKeywords(TypedDict, total=False):
    """What some calls need, and means the same for some of the users as for all."""

    popularity: Annotated[Any, Keyword("{item: how many users had it}, if there is no train.", None, KNOWN)]
    embeddings: Annotated[
        Any,
        Keyword(
            "a vector for each item: {item: vector}, (ids, matrix), or a matrix with one row per item.",
            group=KNOWN,
        ),
    ]
    profiles: Annotated[
        Any,
        Keyword(
            "a vector for each user, likewise; by default the mean of the user's items in train.", group=KNOWN
        ),
    ]
    reference: Annotated[
        Any,
        Keyword(
            "other lists to compare these with: like `lists`, or one list for everybody.",
            group=KNOWN,
            option="--reference FILE",
            line="Another model's lists: for serendipity, overlap and rbo.",
        ),
    ]
    intents: Annotated[
        Any,
        Keyword(
            "what a relevant item is relevant for: a column of items, or {user: {item: [intents]}}.",
            group=KNOWN,
        ),
    ]
    items_of: Annotated[
        Any,
        Keyword(
            "what the entries of lists stand for: {entry: item or items}, a table with a column of entries "
            "(or codes) and one of items, or `recsys.titles(table)`. Several items of one entry are tied; "
            "seen and excluded ones leave it.",
            group=RANKED,
            option="--items-of FILE",
            line="What the entries of LISTS stand for: a table of entries (codes, chunks) and items.",
        ),
    ]
    exclude: Annotated[
        Iterable[Any] | None,
        Keyword("items no user may be recommended (factors and scores).", group=RANKED),
    ]
    eligible: Annotated[
        Any,
        Keyword(
            "the only items each user may be recommended, like `truth` (factors and scores).", group=RANKED
        ),
    ]
    aggregate: Annotated[
        str | None,
        Keyword(
            'what makes one number of the values per user: "mean" (the default), "median", a percentile such '
            'as "p90", or "trimmed(0.1)", the mean without the lowest and the highest tenth. Metrics that '
            "are one number of all users stay as they are.",
            group=COUNTED,
            option="--aggregate NAME",
            line="The number over all users: mean (the default), median, p90 or trimmed(0.1).",
        ),
    ]
    clusters: Annotated[
        Mapping[Any, Any] | None, Keyword("user of each case, if users have several cases.", None, COUNTED)
    ]
    case_weights: Annotated[
        Mapping[Any, float] | None, Keyword("weight of each user in the means.", None, COUNTED)
    ]
    item_weights: Annotated[
        Mapping[Any, float] | None,
        Keyword("weight of each relevant item (recall, hits, dcg, ndcg).", group=COUNTED),
    ]
    ids: Annotated[
        "IdKind | None",
        Keyword(
            'how the ids of files are read: "str" as text, "int" as whole numbers, "auto" as the file stores '
            "them: numbers of Parquet and Arrow files stay numbers, ids of text files stay text. The default "
            'is "auto" where all files are Parquet or Arrow, otherwise "str", so that files always match. '
            'The ids of data in memory keep their type. `result.notes["ids"]` says what they are.',
            group=READ,
            option="--ids",
            line="Read ids as text, as whole numbers, or (auto) as the file stores them; by default auto if "
            "all files are Parquet or Arrow, otherwise str.",
        ),
    ]
    backend: Annotated[
        str,
        Keyword(
            '"auto", "native" (compiled), "reference" (NumPy) or "cuda" (a GPU, through torch; ready lists '
            "are matched on the CPU); the result has the same bits.",
            default="auto",
            group=RUN,
        ),
    ]
    threads: Annotated[int | None, Keyword("how many threads; the result is the same.", group=RUN)]
    cautions: Annotated[
        str | Iterable[str] | None,
        Keyword(
            '"ignore", or the codes of the cautions that are not to be printed (`result.cautions`).',
            group=RUN,
            option="--cautions TEXT",
            line="Cautions not to give: ignore for all, or their codes, separated by commas; repeatable.",
        ),
    ]


class ProgressKeyword(TypedDict, total=False):
    """Who is to hear how far one call over all users is."""

    progress: Annotated[
        Callable[[int, int], object] | None,
        Keyword("called with (blocks done, blocks in all) while factors or scores are ranked.", group=RUN),
    ]


class StorageKeywords(TypedDict, total=False):
    """What only one call over all users can do."""

    stop_when: Annotated[
        "float | StopWhen | None",
        Keyword(
            "take users in random order and stop when the intervals are this narrow (0.01), or as a StopWhen "
            "says; the intervals are valid whenever it stops, and the share of work saved is printed.",
            group=RUN,
        ),
    ]
    memory: Annotated[
        str | int | None,
        Keyword(
            'how much memory the evaluation may take ("1GB") on top of what the process holds when it '
            "begins: users are then evaluated piece by piece. Lists, truth, seen and eligible are Parquet or "
            "CSV files (globs and folders, too), queries of DuckDB or its relations, and need not fit; or "
            "lists is a model, such as Factors of memory-mapped arrays.",
            group=BEYOND,
            option="--memory SIZE",
            line="Such as 1GB: evaluate Parquet or CSV files, or factors, piece by piece, with at most so "
            "much memory on top of what Python takes.",
        ),
    ]
    per_user: Annotated[
        str | os.PathLike[str] | None,
        Keyword(
            "with memory=, a folder for the values per user, which are not kept otherwise; "
            "`recsys.load(folder)` opens it. Neither this folder nor that of checkpoint= is inside the "
            "other.",
            group=BEYOND,
            option="--per-user-to FOLDER",
            line="With --memory, keep the values per user here, for compare, gate and report.",
        ),
    ]
    checkpoint: Annotated[
        str | os.PathLike[str] | None,
        Keyword(
            "with memory=, a folder for the pieces that are done: the same call goes on from there if it was "
            "stopped. It is removed at the end.",
            group=BEYOND,
            option="--checkpoint FOLDER",
            line="With --memory, keep what is done here: the same command goes on from it.",
        ),
    ]


class ScorerKeywords(ConventionsKeyword, MainKeywords, FurtherKeywords, ProgressKeyword, total=False):
    """The keywords of a scorer of scikit-learn, which has a `k` and `seen` of its own."""


class RunKeywords(LengthKeywords, MainKeywords, FurtherKeywords, ProgressKeyword, total=False):
    """The keywords that decide what is read and ranked; the conventions come after it."""


class ScoreKeywords(ConventionsKeyword, RunKeywords, total=False):
    """The keywords of one call over all users that holds them in memory."""


class BatchKeywords(ConventionsKeyword, LengthKeywords, MainKeywords, FurtherKeywords, total=False):
    """The keywords that mean the same for a batch of users."""


class OptionalKeywords(FurtherKeywords, ProgressKeyword, StorageKeywords, total=False):
    """The keywords of evaluate that its signature does not name."""


class EvaluateKeywords(ScoreKeywords, StorageKeywords, total=False):
    """All keywords of evaluate."""


OF_MODELS = dict.fromkeys(
    ("user_ids", "item_ids"),
    Phrase("Factors, Scores and from_model take {Factors.user_ids=} and {Factors.item_ids=}."),
)
DEFAULTS = {name: keyword.default for name, keyword in declarations(RunKeywords).items()}
CONTEXT = tuple(name for name, keyword in declarations(RunKeywords).items() if keyword.group == KNOWN)
