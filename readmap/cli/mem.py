"""readmap mem: a search with the command line of bwa mem and bwa-mem2 mem."""

from dataclasses import fields
from typing import Any

import typer

from readmap.cli.common.help import GENERAL
from readmap.cli.common.options import (
    MAX_SCORE,
    argument,
    command,
    flag,
    number,
    option,
    option_group,
    spelling_options,
)
from readmap.cli.common.report import ReportOptions
from readmap.cli.common.shared_options import MultiGpuResources
from readmap.cli.search.command import run
from readmap.cli.search.options import PairOptions, RecordOptions
from readmap.cli.search.scoring import MAX_MATCH, ScoringOptions, penalties
from readmap.errors import UsageError
from readmap.mapping.parameters import MAX_ALTERNATE_HITS, MAX_XA_HITS, Scoring
from readmap.run.config import SearchConfig
from readmap.run.output_format import OutputFormat

EXAMPLES = r"""[bold]Examples[/]
  $ readmap index -p ref ref.fa
  $ readmap mem -t 16 -K 100000000 -Y -R '@RG\tID:a\tSM:s' ref r1.fq.gz r2.fq.gz | samtools sort -o sorted.bam
  $ samtools fastq -T RX umi.bam | readmap mem -p -C ref /dev/stdin > out.sam"""

_LONG_READS = {"mismatch": 1, "gap_open": "1", "gap_extend": "1", "clip_penalty": "0"}
#: Values of -x: scores for a type of reads, by the field names of AppliedOptions.
PRESETS = dict.fromkeys(("pacbio", "pbref", "ont2d"), _LONG_READS) | {
    "intractg": {"mismatch": 9, "gap_open": "16", "clip_penalty": "5"}
}
#: Options without effect that need no warning: in bwa mem they do not change the records.
SILENT = ("batch_bases", "verbosity", "one_thread")


@option_group("Options of bwa mem (-A multiplies the other default scores)")
class AppliedOptions:
    """Options with the meaning they have in bwa mem."""

    output: str | None = option("-o -f", "Output file, SAM (default: standard output).", "FILE")
    read_group: str | None = option("-R", r"Read group of all reads, such as '@RG\tID:a\tSM:b'.", "LINE")
    smart_pairing: bool = flag("-p", "R1 contains pairs: adjacent reads of the same name are mates; R2 is ignored.")
    insert_size: str | None = option(
        "-I", "Insert size, FR: mean, SD, maximum, minimum (default: estimated).", "MEAN[,SD[,MAX[,MIN]]]"
    )
    comments: bool = flag("-C", "Append FASTQ comments, which must be SAM tags.")
    soft_clip: bool = flag("-Y", "Soft-clip supplementary alignments.")
    mark_secondary: bool = flag("-M", "Mark the shorter parts of a split read secondary.")
    leftmost_primary: bool = flag("-5", "Make the part of a split read that starts first in the read primary.")
    all_places: bool = flag("-a", "Write all placements that reach -T, as secondary alignments.")
    alternatives: str | None = option(
        "-h",
        f"Maximum placements in XA; second N: with ALT contigs (default: {MAX_XA_HITS},{MAX_ALTERNATE_HITS}).",
        "N[,N]",
    )
    xa_share: str | None = option("-z", "Minimum score in XA, as a share of the best score (default: 0.8).", "X")
    header: str | None = option("-H", "Header line to add, or a file of lines.", "LINE")
    ignore_alternates: bool = flag("-j", "Treat ALT contigs, listed in REF.alt, like all other contigs.")
    min_score: int | None = number("-T", "Minimum score of a mapped read (default: 30).", 0, MAX_SCORE)
    match: int | None = number("-A", "Score of a match (default: 1).", 1, MAX_MATCH)
    mismatch: int | None = number("-B", "Penalty of a mismatch (default: 4).", 0, MAX_SCORE)
    gap_open: str | None = penalties("-O", "Penalty of opening a gap; two numbers: deletion, insertion", 6, 0)
    gap_extend: str | None = penalties("-E", "Penalty of each base of a gap; two numbers: deletion, insertion", 1, 1)
    clip_penalty: str | None = penalties("-L", "Penalty of clipping; two numbers: 5' end, 3' end", 5, 0)
    unpaired_penalty: int | None = number("-U", "Penalty of an unpaired read pair (default: 17).", 0, MAX_SCORE)
    preset: str | None = option("-x", f"Scores for a type of reads: {', '.join(PRESETS)}.", "NAME")
    no_rescue: bool = flag("-S", "Skip mate rescue.")
    no_pairing: bool = flag("-P", "Skip pairing.")


def _ignored(names: str, help: str) -> Any:
    return option(names, help, "N")


@option_group("Accepted without effect", is_advanced=True)
class IgnoredOptions:
    """Options of bwa mem that are accepted without an effect."""

    batch_bases: str | None = _ignored("-K", "Bases per batch: the output does not depend on it.")
    verbosity: str | None = _ignored("-v", "Verbosity.")
    one_thread: bool = flag("-1", "Do not overlap reading and mapping.")
    seed_length: str | None = _ignored("-k", "Minimum seed length.")
    band: str | None = _ignored("-w", "Band width.")
    off_diagonal: str | None = _ignored("-d", "Off-diagonal X-dropoff.")
    reseeding: str | None = _ignored("-r", "Search inside seeds longer than -k times this.")
    third_seeding: str | None = _ignored("-y", "Seed occurrence for the third round of seeding.")
    seed_occurrences: str | None = _ignored("-c", "Maximum occurrences of a seed.")
    chain_share: str | None = _ignored("-D", "Drop chains shorter than this share of the longest overlapping chain.")
    chain_bases: str | None = _ignored("-W", "Minimum bases of a chain.")
    rescues: str | None = _ignored("-m", "Maximum rounds of mate rescue.")
    split_width: str | None = _ignored("-s", "Maximum occurrences of a seed that is split.")
    chain_gap: str | None = _ignored("-G", "Maximum gap of a chain.")
    max_chains: str | None = _ignored("-N", "Maximum chains to extend.")
    mapq_length: str | None = _ignored("-Q", "Length coefficient of MAPQ.")
    mask: str | None = _ignored("-X", "Overlap above which an alignment is redundant.")
    filters: str | None = _ignored("-F", "Filter of written records.")
    keep_mapq: bool = flag("-q", "Keep the MAPQ of supplementary alignments.")
    reference_comment: bool = flag("-V", "Write the comment of the contig as XR.")
    scored_places: bool = flag("-u", "Write XB instead of XA.")

    @property
    def warning(self) -> str | None:
        """A line about the given options that would change the output of bwa mem, or None."""
        letters = {each.name: each.metadata["info"].param_decls[0] for each in fields(self)}
        given = [letter for name, letter in letters.items() if name not in SILENT and getattr(self, name)]
        return f"warning: without effect: {', '.join(given)} (readmap mem --help-all)" if given else None


@option_group(GENERAL)
class OwnOptions:
    """Options that bwa mem does not have."""

    long_gap: int | None = number(
        "--long-gap", "Maximum penalty of a gap (default: none).", 1, MAX_SCORE, advanced=True
    )
    quiet: bool = flag("--quiet", "Print errors only.")
    json: str | None = option("--json", "Write a JSON report.", "FILE")
    debug: bool = flag("--debug", "Show the traceback of an error.", advanced=True)


@option_group()
class MemOptions:
    """All options of readmap mem."""

    reference: str = argument("REF", "Prefix of readmap index -p, or the FASTA file that was indexed.")
    first: str = argument("R1", "Reads: FASTQ or FASTA (plain, gzip or bgzip); - is standard input.")
    second: str | None = argument("R2", "Mates of R1.", default=None)
    applied: AppliedOptions
    resources: MultiGpuResources
    own: OwnOptions
    ignored: IgnoredOptions

    def config(self, command_line: str) -> SearchConfig:
        """Return the configuration of the search; raises UsageError if an option is invalid."""
        applied = self.applied
        if applied.read_group is not None and "\t" in applied.read_group:  # as bwa mem: the shell has replaced escapes
            raise UsageError(f"-R {applied.read_group!r}: found a tab, expected \\t: quote the line")
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
    """Map reads with the command line of bwa mem: all options of bwa 0.7.19 and bwa-mem2 are accepted.

    SAM goes to standard output. The tags XS and XA consider all placements, as in bwa mem. readmap search has more
    options.
    """
    notes = [options.ignored.warning] if options.ignored.warning else []
    if options.applied.smart_pairing and options.second is not None:
        notes.append(f"warning: -p: {options.second} is ignored, as in bwa mem")
    own = options.own
    with spelling_options(context, {"pairing": ["insert_size"]}):
        config = options.config(context.obj.command_line)
        run(context.obj, config, ReportOptions(quiet=own.quiet, json=own.json, debug=own.debug), notes)


def _scoring(applied: AppliedOptions, long_gap: int | None) -> Scoring:
    """Return the scores of the options, else of the preset, else the defaults; long_gap: None for no limit."""
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
        long_gap=long_gap or MAX_SCORE,
        clip_penalty=given("clip_penalty"),
        unpaired_penalty=applied.unpaired_penalty,
        min_score=applied.min_score,
    ).scoring()


def _percent(name: str, text: str | None) -> int | None:
    """Return a share from 0 to 1, the text of the option `name`, as a rounded percentage; None for None."""
    if text is None:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"{name} {text}: expected a share from 0 to 1")
    return round(100 * share)
