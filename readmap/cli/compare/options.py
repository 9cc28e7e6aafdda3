"""The options of readmap compare, by the panels of its help, and which of them contradict each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from readmap.cli.common.alignments import output_conflicts, output_option
from readmap.cli.common.conflicts import refuse
from readmap.cli.common.options import (
    LARGEST_SCORE,
    argument,
    choice,
    flag,
    names_of,
    option,
    parse_size,
    score,
    size,
)
from readmap.cli.common.report import ReportOptions
from readmap.cli.common.resources import SharedResources
from readmap.formats.output import format_by_ending
from readmap.pairwise.formats import ENDINGS, ComparisonFormat
from readmap.pairwise.parameters import CompareSettings, MatchScores, Mode
from readmap.strand import Strand

SCORES = MatchScores()
GAP_FIRST = SCORES.gap_open + SCORES.gap_extend


@dataclass(frozen=True, kw_only=True)
class LongOptions:
    """How long sequences are compared."""

    panel: ClassVar = "Every query with every target"

    no_pruning: bool = flag(
        "--no-pruning", "Compute also what cannot reach the best score: slower, the output is the same."
    )
    memory: str | None = size(
        "--memory",
        "Memory for rows from which an alignment is traced back, as 8G or 500M (default: a quarter "
        "of what the GPU has free, or 1G on the CPU). The output is the same.",
    )
    checkpoint: str | None = option(
        "--checkpoint",
        "A folder to keep the work in, from which the same command goes on when it was interrupted.",
        "DIR",
    )


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """Pairs: whether the sequences are such, and which parts of them are aligned."""

    panel: ClassVar = "Pairs"

    in_pairs: bool = flag("--pairs", "Align each query with the target of the same number, and no other.")
    mode: str = choice(
        "--mode",
        "local (any part of both), global (all of both) or semiglobal (all of the query, any part of the target) "
        "(default: local).",
        Mode,
        default=Mode.LOCAL,
    )


@dataclass(frozen=True, kw_only=True)
class AlignmentOptions:
    """The scores of alignments, their strands, and whether scores suffice."""

    panel: ClassVar = "Alignments"

    match: int = score("--match", "Score of a match", SCORES.match, 1)
    mismatch: int = score("--mismatch", "Penalty of a mismatch", SCORES.mismatch, 0)
    gap_first: int = score("--gap-first", "Penalty of a gap's first letter", GAP_FIRST, 1, 2 * LARGEST_SCORE)
    gap_extend: int = score("--gap-extend", "Penalty of each further letter", SCORES.gap_extend, 1)
    strand: str = choice(
        "--strand",
        "forward (the queries as they are), reverse (their reverse complements) or both, of which the better one "
        "is told (default: forward).",
        Strand,
        default=Strand.FORWARD,
    )
    score_only: bool = flag("--score-only", "Find the scores and where they end, without the alignments.")

    def scores(self) -> MatchScores:
        """The scores; raises UsageError where a gap's first letter costs less than a further one."""
        return MatchScores.from_gap_first(self.match, self.mismatch, self.gap_first, self.gap_extend)


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The outputs and their format."""

    panel: ClassVar = "Output"

    path: str | None = output_option()
    named_format: str | None = choice(
        "--format",
        "summary, text (all columns), paf, sam, tsv or json (default: by -o's ending, .txt being text, else summary).",
        ComparisonFormat,
    )
    plot: str | None = option(
        "--plot", "Draw the alignments there as a dot plot: .png, .svg or .pdf (needs matplotlib).", "FILE"
    )

    @property
    def format(self) -> ComparisonFormat:
        """The format of the output."""
        return ComparisonFormat(self.named_format or format_by_ending(self.path, ENDINGS) or ComparisonFormat.SUMMARY)


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """All options of readmap compare."""

    query: str = argument("QUERY", "FASTA or FASTQ: plain, gzip or bgzip; - is standard input.")
    target: str = argument("TARGET", "Likewise.")
    long: LongOptions
    pairs: PairOptions
    alignment: AlignmentOptions
    output: OutputOptions
    resources: SharedResources
    report: ReportOptions

    def settings(self) -> CompareSettings:
        """How long sequences are compared; raises UsageError where the scores contradict each other."""
        long, alignment = self.long, self.alignment
        folder = Path(long.checkpoint) if long.checkpoint else None
        memory = parse_size("--memory", long.memory)
        return CompareSettings(alignment.scores(), alignment.score_only, not long.no_pruning, memory, folder)


def refuse_conflicts(context: typer.Context, options: CompareOptions) -> None:
    """Raise UsageError where options contradict each other."""
    in_pairs, score_only, output = options.pairs.in_pairs, options.alignment.score_only, options.output
    conflicts = (
        (names_of(LongOptions), in_pairs, "not with --pairs, which are short"),
        (["mode"], not in_pairs, "only with --pairs; without them alignments are local"),
        (
            ["score_only"],
            output.format.needs_operations,
            f"{output.format} reports alignments: choose summary, tsv or json",
        ),
        (["plot"], score_only, "not with --score-only: there is no alignment to draw"),
        *output_conflicts(output.path, output.plot),
    )
    refuse(context, conflicts)
