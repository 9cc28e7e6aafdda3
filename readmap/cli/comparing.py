"""The options of readmap compare, and which of them contradict each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from readmap.cli.conflicts import refuse
from readmap.cli.options import FLAG, given_options, in_range, one_of, parse_size
from readmap.cli.output import BAM_ENDING
from readmap.cli.report import refuse_same_output
from readmap.errors import UsageError
from readmap.formats.samtools_output import CRAM_ENDING
from readmap.pairwise.formats import Format, promised
from readmap.pairwise.parameters import Mode, Scores, Settings
from readmap.strand import Strand

LONG_PANEL = "Every query with every target"
PAIRS_PANEL = "Pairs"
ALIGNMENT_PANEL = "Alignments"
OUTPUT_PANEL = "Output"

LARGEST_SCORE = 1000

#: Of plots.
ENDINGS = (".png", ".svg", ".pdf")

DEFAULT = Scores()


def _option(panel: str, *names: str, what: str, metavar: str = FLAG, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=what, show_default=False, rich_help_panel=panel, **more)


def _score(name: str, what: str, default: int, least: int, most: int = LARGEST_SCORE) -> Any:
    what = f"{what} (default: {default})."
    return _option(ALIGNMENT_PANEL, name, what=what, metavar="N", callback=in_range(least, most))


Match = Annotated[int, _score("--match", "Score of a match", DEFAULT.match, 1)]
Mismatch = Annotated[int, _score("--mismatch", "Penalty of a mismatch", DEFAULT.mismatch, 0)]
GapFirst = Annotated[
    int,
    _score(
        "--gap-first", "Penalty of a gap's first letter", DEFAULT.gap_open + DEFAULT.gap_extend, 1, 2 * LARGEST_SCORE
    ),
]
GapExtend = Annotated[int, _score("--gap-extend", "Penalty of each further letter", DEFAULT.gap_extend, 1)]

StrandName = Annotated[
    str,
    _option(
        ALIGNMENT_PANEL,
        "--strand",
        what="forward (the queries as they are), reverse (their reverse complements) or both, of which the better one "
        "is told (default: forward).",
        metavar="NAME",
        callback=one_of(Strand),
    ),
]
ScoreOnly = Annotated[
    bool, _option(ALIGNMENT_PANEL, "--score-only", what="Find the scores and where they end, without the alignments.")
]
NoPruning = Annotated[
    bool,
    _option(
        LONG_PANEL,
        "--no-pruning",
        what="Compute also what cannot reach the best score: slower, the output is the same.",
    ),
]
Memory = Annotated[
    str | None,
    _option(
        LONG_PANEL,
        "--memory",
        what="Memory for rows from which an alignment is traced back, as 8G or 500M (default: a quarter "
        "of what the GPU has free, or 1G on the CPU). The output is the same.",
        metavar="SIZE",
    ),
]
Checkpoint = Annotated[
    str | None,
    _option(
        LONG_PANEL,
        "--checkpoint",
        what="A folder to keep the work in, from which the same command goes on when it was interrupted.",
        metavar="DIR",
    ),
]
InPairs = Annotated[
    bool, _option(PAIRS_PANEL, "--pairs", what="Align each query with the target of the same number, and no other.")
]
ModeName = Annotated[
    str,
    _option(
        PAIRS_PANEL,
        "--mode",
        what="local (any part of both), global (all of both) or semiglobal (all of the query, any part of the target) "
        "(default: local).",
        metavar="NAME",
        callback=one_of(Mode),
    ),
]
OutputName = Annotated[
    str | None,
    _option(
        OUTPUT_PANEL,
        "-o",
        "--output",
        what="The output file (default: standard output); .gz compresses with bgzip.",
        metavar="FILE",
    ),
]
FormatName = Annotated[
    str | None,
    _option(
        OUTPUT_PANEL,
        "--format",
        what="summary, text (all columns), paf, sam, tsv or json (default: by -o's ending, .txt being text, else "
        "summary).",
        metavar="NAME",
        callback=one_of(Format),
    ),
]
PlotName = Annotated[
    str | None,
    _option(
        OUTPUT_PANEL,
        "--plot",
        what="Draw the alignments there as a dot plot: .png, .svg or .pdf (needs matplotlib).",
        metavar="FILE",
    ),
]


def refuse_conflicts(context: typer.Context) -> None:
    """Raise UsageError where options of readmap compare contradict each other.

    An option belongs to that way of comparing in whose panel the help shows it.
    """
    given, values = given_options(context), context.params

    def shown_in(panel: str) -> list[str]:
        return [name for name in given if getattr(given[name], "rich_help_panel", None) == panel]

    output, plot, in_pairs = values["output"], values["plot"], values["in_pairs"]
    named = format_of(values["named_format"], output)
    refuse(
        given,
        (
            (shown_in(LONG_PANEL), in_pairs, "not with --pairs, which are short"),
            (["mode"], not in_pairs, "only with --pairs; without them alignments are local"),
            (["score_only"], named.needs_operations, f"{named} tells alignments: choose summary, tsv or json"),
            (["plot"], values["score_only"], "not with --score-only: there is no alignment to draw"),
            (
                ["plot"],
                plot is not None and not plot.endswith(ENDINGS),
                f"{plot}: expected a name that ends with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}",
            ),
            (
                ["output"],
                (output or "").endswith((BAM_ENDING, CRAM_ENDING)),
                f"{output}: SAM is written: name it so, or pipe --format sam to samtools view",
            ),
        ),
    )


def format_of(named: str | None, output: str | None) -> Format:
    """What is written."""
    return Format(named) if named else promised(output) or Format.SUMMARY


def settings_of(
    scores: Scores, score_only: bool, no_pruning: bool, memory: str | None, checkpoint: str | None
) -> Settings:
    """How long sequences are to be compared."""
    size = parse_size("--memory", memory) if memory is not None else None
    return Settings(scores, score_only, not no_pruning, size, Path(checkpoint) if checkpoint else None)


def check_files(query: str, target: str, output: str | None, plot: str | None, record: str | None) -> None:
    """Raise UsageError where one file is asked to be two, OSError where a file of sequences cannot be read.

    output, plot, record: what -o, --plot and --json name.
    """
    _check_names(query, target, {"-o": output, "--plot": plot, "--json": record})
    refuse_same_output("--json", record, output)
    refuse_same_output("--plot", plot, output)
    if plot is not None:  # None is the standard output, where no plot goes
        refuse_same_output("--json", record, plot, "the plot goes")


def _check_names(query: str, target: str, outputs: dict[str, str | None]) -> None:
    """outputs: their files by their options."""
    if query == target == "-":
        raise UsageError("- and - are one file: only one of the two can be standard input")
    for path in (query, target):
        if path != "-":
            os.stat(path)
    for option, output in outputs.items():
        if output is not None and os.path.isfile(output) and any(_are_same(output, path) for path in (query, target)):
            raise UsageError(f"{option} {output} is a file of the sequences")


def _are_same(one: str, other: str) -> bool:
    return other != "-" and os.path.samefile(one, other)
