"""The options of readmap scan, and which of them contradict each other."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from readmap.cli.comparing import ENDINGS
from readmap.cli.conflicts import refuse
from readmap.cli.options import FLAG, RESOURCES, given_options, in_range, one_of
from readmap.cli.output import BAM_ENDING
from readmap.database.formats import Format, promised, tab
from readmap.database.matrices import STANDARD
from readmap.database.parameters import EVALUE, MATCH, MATRIX, MISMATCH, MOST_HITS
from readmap.errors import UsageError
from readmap.formats.samtools_output import CRAM_ENDING
from readmap.strand import Strand

SCORES_PANEL = "Scores"
HITS_PANEL = "Hits"
OUTPUT_PANEL = "Output"

LARGEST_SCORE = 1000


def _option(panel: str, *names: str, what: str, metavar: str = FLAG, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=what, show_default=False, rich_help_panel=panel, **more)


def _score(name: str, what: str, least: int) -> Any:
    return _option(SCORES_PANEL, name, what=what, metavar="N", callback=in_range(least, LARGEST_SCORE))


MatrixName = Annotated[
    str | None,
    _option(
        SCORES_PANEL,
        "--matrix",
        what=f"{', '.join(STANDARD)}, or a file in NCBI's format (default: {MATRIX}; of nucleotides a match and a "
        "mismatch).",
        metavar="NAME",
    ),
]
Match = Annotated[int | None, _score("--match", f"Of nucleotides, the score of a match (default: {MATCH}).", 1)]
Mismatch = Annotated[
    int | None, _score("--mismatch", f"Of nucleotides, the penalty of a mismatch (default: {MISMATCH}).", 0)
]
GapOpen = Annotated[
    int | None,
    _score(
        "--gap-open",
        "Penalty of a gap, beside that of its letters: a gap of k letters costs this and k times --gap-extend "
        "(default: as BLAST's, 11 with BLOSUM62, 5 with +2/-3).",
        0,
    ),
]
GapExtend = Annotated[
    int | None, _score("--gap-extend", "Penalty of each letter of a gap (default: as BLAST's, 1 and 2).", 1)
]
StrandName = Annotated[
    str | None,
    _option(
        SCORES_PANEL,
        "--strand",
        what="Of nucleotides, the database's strands: forward, reverse or both (default: both).",
        metavar="NAME",
        callback=one_of(Strand),
    ),
]
Evalue = Annotated[
    float | None,
    _option(HITS_PANEL, "--evalue", what=f"Highest E-value of a hit (default: {EVALUE:g}).", metavar="X"),
]
MaxHits = Annotated[
    int,
    _option(
        HITS_PANEL,
        "--max-hits",
        what=f"Most hits of a query, the best ones (default: {MOST_HITS}).",
        metavar="N",
        callback=in_range(1, 1 << 31),
    ),
]
MinScore = Annotated[
    int,
    _option(
        HITS_PANEL,
        "--min-score",
        what="Lowest score of a hit (default: 1).",
        metavar="N",
        callback=in_range(1, 1 << 30),
    ),
]
DatabaseSize = Annotated[
    int | None,
    _option(
        HITS_PANEL,
        "--dbsize",
        what="Letters of the database that E-values count with (default: those that it has).",
        metavar="N",
        callback=in_range(1, 1 << 60),
    ),
]
FormatName = Annotated[
    str | None,
    _option(
        OUTPUT_PANEL,
        "--format",
        what="text (pairwise alignments), tab (BLAST's table), json or sam (default: by -o's ending, else text).",
        metavar="NAME",
        callback=one_of(Format),
    ),
]
OutFormat = Annotated[
    str | None,
    _option(
        OUTPUT_PANEL,
        "--outfmt",
        what="As BLAST's: 6 is --format tab, 0 is --format text; '6 qseqid sseqid evalue' names columns too.",
        metavar="N",
    ),
]
ColumnNames = Annotated[
    str | None,
    _option(
        OUTPUT_PANEL,
        "--columns",
        what="Columns of --format tab, by BLAST's names, as qseqid,sseqid,evalue,score,cigar; std is the usual twelve.",
        metavar="NAMES",
    ),
]
PlotName = Annotated[
    str | None,
    _option(
        OUTPUT_PANEL,
        "--plot",
        what="Draw the scores of all subjects there, the hits marked: .png, .svg or .pdf (needs matplotlib).",
        metavar="FILE",
    ),
]
Gpus = Annotated[
    int | None,
    _option(
        RESOURCES,
        "--gpus",
        what="GPUs that share the work (default: all). The output is the same.",
        metavar="N",
        callback=in_range(1, 1024),
    ),
]


def layout_of(context: typer.Context) -> tuple[Format, tuple[str, ...]]:
    """What is written, and the columns of a table.

    Raises UsageError where the options of readmap scan contradict each other.
    """
    given, values = given_options(context), context.params
    named, columns = values["named_format"], values["columns"]
    if values["outfmt"] is not None:
        number, more = _numbered(values["outfmt"])
        refuse(given, ((["named_format"], True, "not with --outfmt, which says the same"),))
        refuse(given, ((["columns"], more is not None, "not with the columns of --outfmt"),))
        named, columns = number, more or columns
    output, plot = values["output"], values["plot"]
    format = Format(named) if named else promised(output) or Format.TEXT
    refuse(
        given,
        (
            (["columns"], format is not Format.TAB, f"only with --format tab, and {format} is written"),
            (["match", "mismatch"], "matrix" in given, "not with --matrix, which scores all letters"),
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
    return format, tab.parse_columns(columns) if columns is not None else tab.STANDARD


def _numbered(option: str) -> tuple[Format, str | None]:
    """The format and the columns that --outfmt names."""
    found = re.fullmatch(r"\s*(0|6)(?:\s+(\S.*?))?\s*", option)
    if not found or (found[1] == "0" and found[2]):
        raise UsageError(f"--outfmt {option}: expected 0 (text), 6 (table), or 6 and names of columns")
    return (Format.TEXT if found[1] == "0" else Format.TAB), found[2]
