"""The options of a verb under headings in its help, and options that have had another name."""

from __future__ import annotations

import click

# An option means the same in every verb, so it has its heading here once; others come first, as "Options".
_SECTIONS = {
    "Input": (
        "--lists", "--model", "--factors", "--user-ids", "--item-ids", "--truth", "--train", "--seen",
        "--test", "--against", "--items", "--users", "--reference", "--embeddings", "--audit", "--history",
        "--tune-on",
        "--catalogue", "--full-ranking", "--sampled",
    ),
    "Columns and file formats": (
        "--user", "--item", "--score", "--rank", "--grade", "--case", "--time", "--actual", "--prediction",
        "--truth-user", "--truth-item", "--ids", "--format", "--encoding", "--unit", "--bad-rows",
    ),
    "Metrics and conventions": (
        "--metric", "-k", "--conventions", "--set", "--headline", "--by", "--aggregate", "--bounds",
        "--intervals", "--cautions",
    ),
    "Statistics and chance": (
        "--baseline", "--statistic", "--correction", "--effect", "--confidence", "--margin",
        "--no-worse-than", "--rope", "--covariate", "--strata", "--looks", "--seed", "--seeds",
    ),
    "Tables larger than memory": ("--memory", "--per-user-to", "--checkpoint"),
    "Output": (
        "--output", "--report", "--methods", "--comment", "--save", "--name", "--title", "--per-user", "--to",
        "--markdown", "--latex", "--csv", "--raw", "--json", "--quiet", "--help",
    ),
}  # fmt: skip
_SECTION_OF = {option: section for section, options in _SECTIONS.items() for option in options}
_FEW = 12  # so many options need no headings


class VerbCommand(click.Command):
    """A verb whose help has its options under headings where they are many."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Options", *_SECTIONS)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections = [_SECTION_OF[name] for name in param.opts if name in _SECTION_OF]
                records[sections[0] if sections else "Options"].append(record)
        rows = [row for own in records.values() for row in own]
        if len(rows) <= _FEW:
            records = {"Options": rows}
        widest = max(len(name) for name, _ in rows if len(name) <= 26)
        for section, own in records.items():
            if own:
                with formatter.section(section):  # descriptions begin in one column under all headings
                    formatter.write_dl([(name.ljust(widest), text) for name, text in own], col_max=widest)
