"""The options of readmap scan, by the panels of its help, and which of them contradict each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import typer

from readmap.cli.common.alignments import output_conflicts, output_option
from readmap.cli.common.conflicts import refuse
from readmap.cli.common.folders import DATABASES, molecule_option
from readmap.cli.common.options import LARGEST_SCORE, argument, choice, no_check_option, number, option
from readmap.cli.common.report import ReportOptions
from readmap.cli.common.resources import SharedResources, gpus_option
from readmap.database.formats import ENDINGS, ScanFormat, tab
from readmap.database.matrices import STANDARD
from readmap.database.parameters import EVALUE, MATCH, MATRIX, MAX_HITS, MISMATCH
from readmap.errors import UsageError
from readmap.formats.output import format_by_ending
from readmap.strand import Strand


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """The scores of alignments, and the strands that are aligned."""

    panel: ClassVar = "Scores"

    matrix: str | None = option(
        "--matrix",
        f"{', '.join(STANDARD)}, or a file in NCBI's format (default: {MATRIX}; of nucleotides a match and a "
        "mismatch).",
        "NAME",
    )
    match: int | None = number("--match", f"Of nucleotides, the score of a match (default: {MATCH}).", 1, LARGEST_SCORE)
    mismatch: int | None = number(
        "--mismatch", f"Of nucleotides, the penalty of a mismatch (default: {MISMATCH}).", 0, LARGEST_SCORE
    )
    gap_open: int | None = number(
        "--gap-open",
        "Penalty of a gap, beside that of its letters: a gap of k letters costs this and k times --gap-extend "
        "(default: as BLAST's, 11 with BLOSUM62, 5 with +2/-3).",
        0,
        LARGEST_SCORE,
    )
    gap_extend: int | None = number(
        "--gap-extend", "Penalty of each letter of a gap (default: as BLAST's, 1 and 2).", 1, LARGEST_SCORE
    )
    strand: str | None = choice(
        "--strand", "Of nucleotides, the database's strands: forward, reverse or both (default: both).", Strand
    )


@dataclass(frozen=True, kw_only=True)
class HitOptions:
    """The hit_filter of the hits that are reported."""

    panel: ClassVar = "Hits"

    evalue: float | None = option("--evalue", f"Highest E-value of a hit (default: {EVALUE:g}).", "X")
    max_hits: int = number(
        "--max-hits", f"Most hits of a query, the best ones (default: {MAX_HITS}).", 1, 1 << 31, default=MAX_HITS
    )
    min_score: int = number("--min-score", "Lowest score of a hit (default: 1).", 1, 1 << 30, default=1)
    dbsize: int | None = number(
        "--dbsize", "Letters of the database that E-values count with (default: those that it has).", 1, 1 << 60
    )


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The outputs, their format and its columns."""

    panel: ClassVar = "Output"

    path: str | None = output_option()
    format: str | None = choice(
        "--format",
        "text (pairwise alignments), tab (BLAST's table), json or sam (default: by -o's ending, else text).",
        ScanFormat,
    )
    outfmt: str | None = option(
        "--outfmt",
        "As BLAST's: 6 is --format tab, 0 is --format text; '6 qseqid sseqid evalue' names columns too.",
        "N",
    )
    columns: str | None = option(
        "--columns",
        "Columns of --format tab, by BLAST's names, as qseqid,sseqid,evalue,score,cigar; std is the usual twelve.",
        "NAMES",
    )
    plot: str | None = option(
        "--plot",
        "Draw the scores of all subjects there, the hits marked: .png, .svg or .pdf (needs matplotlib).",
        "FILE",
    )


@dataclass(frozen=True, kw_only=True)
class Resources(SharedResources):
    """The devices, the threads and the memory of a scan."""

    gpus: str = gpus_option("all")


@dataclass(frozen=True, kw_only=True)
class ScanOptions:
    """All options of readmap scan."""

    query: str = argument("QUERY", "FASTA (of nucleotides FASTQ too): plain, gzip or bgzip; - is standard input.")
    database: str = argument("DB", "A database of readmap index --database, or FASTA likewise.")
    scores: ScoreOptions
    molecule: str = molecule_option()
    no_check: bool = no_check_option("database", DATABASES)
    hits: HitOptions
    output: OutputOptions
    resources: Resources
    report: ReportOptions


def layout_of(context: typer.Context, options: ScanOptions) -> tuple[ScanFormat, tuple[str, ...]]:
    """The format of the output and the columns of a table; raises UsageError where options contradict each other."""
    output = options.output
    named, columns = output.format, output.columns
    if output.outfmt is not None:
        number, more = _numbered(output.outfmt)
        refuse(context, [(["format"], True, "not with --outfmt, which says the same")])
        refuse(context, [(["columns"], more is not None, "not with the columns of --outfmt")])
        named, columns = number, more or columns
    format = ScanFormat(named) if named else format_by_ending(output.path, ENDINGS) or ScanFormat.TEXT
    conflicts = (
        (["columns"], format is not ScanFormat.TAB, f"only with --format tab, and {format} is written"),
        (["match", "mismatch"], options.scores.matrix is not None, "not with --matrix, which scores all letters"),
        *output_conflicts(output.path, output.plot),
    )
    refuse(context, conflicts)
    return format, tab.parse_columns(columns) if columns is not None else tab.STANDARD


def _numbered(option: str) -> tuple[ScanFormat, str | None]:
    """The format and the columns that --outfmt names."""
    found = re.fullmatch(r"\s*(0|6)(?:\s+(\S.*?))?\s*", option)
    if not found or (found[1] == "0" and found[2]):
        raise UsageError(f"--outfmt {option}: expected 0 (text), 6 (table), or 6 and names of columns")
    return (ScanFormat.TEXT if found[1] == "0" else ScanFormat.TAB), found[2]
