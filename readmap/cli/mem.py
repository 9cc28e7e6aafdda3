"""readmap mem: search by the command line of bwa mem and bwa-mem2 mem."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import typer

from readmap.cli.common.conflicts import spelling_options
from readmap.cli.common.options import LARGEST_SCORE, argument, command, flag, number, option
from readmap.cli.common.report import ReportOptions
from readmap.cli.common.resources import SharedResources
from readmap.cli.search.command import run
from readmap.cli.search.options import PairOptions, RecordOptions
from readmap.cli.search.scoring import LARGEST_MATCH, ScoringOptions, penalties
from readmap.errors import UsageError
from readmap.mapping.parameters import MAX_ALTERNATE_HITS, MAX_XA_HITS, Scoring
from readmap.run.config import SearchConfig
from readmap.run.output_format import OutputFormat

EXAMPLES = r"""[bold]Examples[/]
  $ readmap index -p ref ref.fa
  $ readmap mem -t 16 -K 100000000 -Y -R '@RG\tID:a\tSM:s' ref r1.fq.gz r2.fq.gz | samtools sort -o sorted.bam
  $ samtools fastq -T RX umi.bam | readmap mem -p -C ref /dev/stdin > out.sam"""

_LONG_READS = {"mismatch": 1, "gap_open": "1", "gap_extend": "1", "clip_penalty": "0"}

#: The values of -x: scores for a kind of reads, by the names of AppliedOptions.
PRESETS = dict.fromkeys(("pacbio", "pbref", "ont2d"), _LONG_READS) | {
    "intractg": {"mismatch": 9, "gap_open": "16", "clip_penalty": "5"}
}

#: Options that are accepted without a warning: they do not change what bwa mem writes.
SILENT = ("batch_bases", "verbosity", "one_thread")


@dataclass(frozen=True, kw_only=True)
class AppliedOptions:
    """The options that have the meaning of bwa mem's."""

    panel: ClassVar = "As in bwa mem; -A multiplies the other defaults"

    match: int | None = number("-A", "Score of a match (default: 1).", 1, LARGEST_MATCH)
    mismatch: int | None = number("-B", "Penalty of a mismatch (default: 4).", 0, LARGEST_SCORE)
    gap_open: str | None = penalties("-O", "Penalty of a gap, beside -E; two: a deletion's, an insertion's", 6, 0)
    gap_extend: str | None = penalties("-E", "Penalty of a gap's base; two: a deletion's, an insertion's", 1, 1)
    clip_penalty: str | None = penalties("-L", "Penalty of a clipped end; two: the 5' end's, the 3' end's", 5, 0)
    unpaired_penalty: int | None = number("-U", "Penalty of unpaired mates (default: 17).", 0, LARGEST_SCORE)
    min_score: int | None = number("-T", "Least score of a mapped read (default: 30).", 0, LARGEST_SCORE)
    preset: str | None = option("-x", f"Scores of other reads: {', '.join(PRESETS)}.", "NAME")
    insert_size: str | None = option(
        "-I",
        "Mean, standard deviation, largest and smallest insert size, FR (default: estimated).",
        "MEAN[,SD[,MAX[,MIN]]]",
    )
    smart_pairing: bool = flag("-p", "Reads of one name that stand side by side in R1 are mates; R2 is ignored.")
    read_group: str | None = option("-R", r"The read group of all reads, as '@RG\tID:a\tSM:b'.", "LINE")
    header: str | None = option("-H", r"A line to add to the header, or a file of lines.", "LINE")
    output: str | None = option("-o -f", "The output, SAM (default: standard output).", "FILE")
    leftmost_primary: bool = flag("-5", "The part of a split read that begins first in the read is the primary one.")
    all_places: bool = flag("-a", "Write all places that reach -T, as secondary alignments.")
    alternatives: str | None = option(
        "-h",
        f"Most places in XA, and with one on an ALT contig (default: {MAX_XA_HITS},{MAX_ALTERNATE_HITS}).",
        "N[,N]",
    )
    xa_share: str | None = option("-z", "Of the best score, the share that a place in XA has (default: 0.8).", "X")
    comments: bool = flag("-C", "Append FASTQ comments, which must be SAM tags.")
    soft_clip: bool = flag("-Y", "Soft-clip supplementary alignments.")
    mark_secondary: bool = flag("-M", "Mark the lesser parts of a split read secondary.")
    ignore_alternates: bool = flag("-j", "Treat ALT contigs, which REF.alt names, as all others.")
    no_rescue: bool = flag("-S", "Skip the rescue of mates.")
    no_pairing: bool = flag("-P", "Skip pairing.")


def _number(names: str, help: str) -> Any:
    return option(names, help, "N")


@dataclass(frozen=True, kw_only=True)
class OtherOptions:
    """Options that are accepted and have no effect; a warning names those that are given, except the ones in SILENT."""

    panel: ClassVar = "Accepted, without an effect"

    batch_bases: str | None = _number("-K", "Bases of a batch: the output does not depend on it.")
    verbosity: str | None = _number("-v", "How much bwa says.")
    one_thread: bool = flag("-1", "Read and map in turns.")
    seed_length: str | None = _number("-k", "Least bases of a seed.")
    band: str | None = _number("-w", "Width of a band.")
    off_diagonal: str | None = _number("-d", "Where an extension ends.")
    reseeding: str | None = _number("-r", "When seeds are looked for within a seed.")
    third_seeding: str | None = _number("-y", "Places of a seed of the third round.")
    most_seeds: str | None = _number("-c", "Places of a seed that is looked at.")
    chain_share: str | None = _number("-D", "Of the longest chain, the share that one has.")
    chain_bases: str | None = _number("-W", "Least bases of a chain.")
    rescues: str | None = _number("-m", "Rounds of rescue.")
    split_width: str | None = _number("-s", "Places of a seed that is split.")
    chain_gap: str | None = _number("-G", "Largest gap of a chain.")
    most_chains: str | None = _number("-N", "Chains that are looked at.")
    mapq_length: str | None = _number("-Q", "Length of which MAPQ depends.")
    mask: str | None = _number("-X", "Share of an overlap.")
    filters: str | None = _number("-F", "Of what is not written.")
    keep_mapq: bool = flag("-q", "Leave the MAPQ of supplementary alignments.")
    reference_comment: bool = flag("-V", "The comment of the contig, as XR.")
    scored_places: bool = flag("-u", "XB instead of XA.")

    @property
    def warning(self) -> str | None:
        """A line about the given options that would change what bwa writes, or None."""
        shown = {one.name: one.metadata["shown"].param_decls[0] for one in fields(self)}
        given = [shown[name] for name in shown if name not in SILENT and getattr(self, name)]
        return f"warning: without an effect: {', '.join(given)} (readmap mem --help)" if given else None


@dataclass(frozen=True, kw_only=True)
class OwnOptions:
    """The options that bwa mem does not have."""

    panel: ClassVar = "readmap's own"

    long_gap: int | None = number("--long-gap", "Most that a gap costs (default: no limit).", 1, LARGEST_SCORE)
    quiet: bool = flag("--quiet", "Errors and nothing else.")
    json: str | None = option("--json", "Write the report for programs there.", "FILE")
    debug: bool = flag("--debug", "Show an error's traceback.")


@dataclass(frozen=True, kw_only=True)
class MemOptions:
    """All options of readmap mem."""

    reference: str = argument("REF", "The prefix of readmap index -p, or the FASTA file that was indexed.")
    first: str = argument("R1", "Reads: FASTQ or FASTA, plain, gzip or bgzip; - is standard input.")
    second: str | None = argument("R2", "Their mates.", default=None)
    applied: AppliedOptions
    resources: SharedResources
    own: OwnOptions
    others: OtherOptions

    def config(self, command_line: str) -> SearchConfig:
        """Return the configuration of the search; raises UsageError if an option is invalid."""
        applied = self.applied
        _check_no_tabs(applied.read_group)
        second = None if applied.smart_pairing else self.second
        pairs = PairOptions(insert_size=applied.insert_size, no_pairing=applied.no_pairing, no_rescue=applied.no_rescue)
        limits = applied.alternatives or f"{MAX_XA_HITS},{MAX_ALTERNATE_HITS}"
        records = RecordOptions(
            all_places=applied.all_places,
            max_alternatives=None if applied.all_places else limits,
            xa_share=_percent("-z", applied.xa_share),
            soft_clip=applied.soft_clip,
            mark_secondary=applied.mark_secondary,
            leftmost_primary=applied.leftmost_primary,
        )
        return SearchConfig(
            reads=(self.first, *([second] if second is not None else [])),
            smart_pairing=applied.smart_pairing,
            index=self.reference,
            alternates=not applied.ignore_alternates,
            output=applied.output,
            format=OutputFormat.SAM,
            read_group=applied.read_group,
            header=(applied.header,) if applied.header is not None else (),
            comments=applied.comments,
            scoring=_scoring(applied, self.own.long_gap),
            pairing=pairs.pairing(),
            reporting=records.reporting(),
            device=self.resources.device,
            gpus=self.resources.chosen_gpus,
            threads=self.resources.threads,
            gpu_memory=self.resources.gpu_memory,
            command_line=command_line,
            is_lenient=True,
        )


@command
def mem(context: typer.Context, options: MemOptions) -> None:
    """Map reads as bwa mem's command line asks for: all options of bwa 0.7.19 and of bwa-mem2 are taken.

    SAM goes to standard output. XS and XA are looked for as bwa does, in all places. readmap search has more.
    """
    notes = [options.others.warning] if options.others.warning else []
    if options.applied.smart_pairing and options.second is not None:
        notes.append(f"warning: -p: {options.second} is ignored, as bwa mem does it")
    own = options.own
    with spelling_options(context, {"pairing": ["insert_size"]}):
        config = options.config(context.obj.command_line)
        run(context.obj, config, ReportOptions(quiet=own.quiet, json=own.json, debug=own.debug), notes)


def _scoring(applied: AppliedOptions, long_gap: int | None) -> Scoring:
    """Return the scores that options or the preset give."""
    if applied.preset is not None and applied.preset not in PRESETS:
        raise UsageError(f"-x {applied.preset}: expected {', '.join(PRESETS)}")
    preset = PRESETS.get(applied.preset or "", {})

    def given(name: str) -> Any:
        value = getattr(applied, name)
        return preset.get(name) if value is None else value

    return ScoringOptions(
        match=applied.match or 1,
        mismatch=given("mismatch"),
        gap_open=given("gap_open"),
        gap_extend=given("gap_extend"),
        long_gap=long_gap or LARGEST_SCORE,
        clip_penalty=given("clip_penalty"),
        unpaired_penalty=applied.unpaired_penalty,
        min_score=applied.min_score,
    ).scoring()


def _percent(name: str, text: str | None) -> int | None:
    """Parse a share of 0 to 1 to percent."""
    if text is None:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"{name} {text}: expected a share of 0 to 1")
    return round(100 * share)


def _check_no_tabs(line: str | None) -> None:
    """Raise UsageError for a line with tabs, as bwa does: a shell that replaced \\t may have replaced more."""
    if line is not None and "\t" in line:
        raise UsageError(f"-R {line!r}: the line holds a tab: write it as \\t, between quotes")
