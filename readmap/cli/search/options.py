"""The options of readmap search, by the panels of its help."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from readmap.bam.codecs import SMALLER_LEVEL, CodecName
from readmap.bam.file_index import IndexFormat
from readmap.bam.order import SortOrder
from readmap.cli.common import duplicates, resources
from readmap.cli.common.options import (
    argument,
    choice,
    flag,
    hidden,
    no_check_option,
    number,
    option,
    size,
    values_of,
)
from readmap.cli.common.quality import QualityOptions
from readmap.cli.common.report import ReportOptions
from readmap.cli.search.scoring import ScoringOptions, parse_numbers
from readmap.dask import GPU_TASK_READS, LOCAL, TASK_READS
from readmap.duplicates.shards import FRAGMENTS_SUFFIX
from readmap.errors import UsageError
from readmap.errors import option as marked
from readmap.index.device import IndexStructure
from readmap.mapping.inserts import fixed_insert_size
from readmap.mapping.parameters import MAX_ALTERNATE_HITS, MAX_XA_HITS, NO_LIMIT, XA_SHARE, Pairing, Reporting
from readmap.run.config import SearchConfig
from readmap.run.output_format import OutputFormat
from readmap.strand import Strand


@dataclass(frozen=True, kw_only=True)
class LaneOptions:
    """Several lanes of one sample, mapped one after the other to one output."""

    panel: ClassVar = "Lanes"

    lanes: list[str] | None = option(  # noqa: RUF009
        "--lane",
        r"Files of reads and their read group, as 'L1_1.fq.gz,L1_2.fq.gz,@RG\tID:L1\tSM:s\tLB:l1'; single reads as "
        r"'L1.fq.gz,,@RG\tID:L1\tSM:s'. May be repeated.",
        "R1,R2,RG",
    )
    sheet: str | None = option(
        "--sheet",
        "A table of lanes, CSV or TSV: sample, lane, fastq_1, fastq_2, and fields of read groups (ID, LB, PL, ...); "
        "or nf-core/sarek's, with its read groups.",
        "FILE",
    )
    sample: str | None = option("--sample", "Of a sheet with several samples, the one to map.", "NAME")


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """How mates are read and placed."""

    panel: ClassVar = "Pairs"

    interleaved: bool = flag("-p --interleaved", "The reads of one file are pairs: mates alternate.")
    smart_pairing: bool = flag(
        "--smart-pairing", "The reads of one file are pairs where two of one name stand side by side, else single."
    )
    collate: bool = flag(
        "--collate", "Bring the mates of BAM or CRAM together first, where they are far apart; in $TMPDIR."
    )
    insert_size: str | None = option(
        "-I --insert-size",
        "Mean and standard deviation of the insert sizes, FR, as 400,60, and the largest and the smallest one "
        "(default: estimated from the first pairs; a tenth of the mean, and four deviations beside it).",
        "MEAN[,SD[,MAX[,MIN]]]",
    )
    no_pairing: bool = flag("-P --no-pairing", "Choose the places of mates without regard to each other, as for Hi-C.")
    no_rescue: bool = flag("-S --no-rescue", "Do not look for a mate where its partner expects it.")

    def pairing(self) -> Pairing:
        """Return how mates are placed; raises UsageError if the insert size is invalid."""
        return Pairing(not self.no_pairing, not self.no_rescue, self._sizes())

    def _sizes(self) -> tuple[float, ...] | None:
        if self.insert_size is None:
            return None
        try:
            sizes = tuple(map(float, self.insert_size.split(",")))
            fixed_insert_size(*sizes)
        except (ValueError, TypeError):
            expected = "a mean, a standard deviation, the largest and the smallest one, as 400,60"
            raise UsageError(f"{marked('insert_size')} {self.insert_size}: expected {expected}") from None
        return sizes


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The outputs, their order and the lines of their header."""

    panel: ClassVar = "Output"

    output: str | None = option(
        "-o --output",
        "The output file (default: standard output): BAM by the ending .bam, CRAM by .cram, else SAM; "
        ".gz compresses with bgzip.",
        "FILE",
    )
    format: str | None = choice(
        "--format",
        "sam, bam or cram; with --exact also tsv (query, count, contig, start, end, strand; from 1) or bed (default: "
        "by -o's ending, else sam).",
        OutputFormat,
    )
    sort: bool = flag("--sort", "Sort BAM or CRAM by coordinate, and write its index beside it.")
    sort_order: str | None = choice(
        "--sort-order",
        "What --sort sorts by: coordinate, or queryname, as samtools sort -n has it, without an index (default: "
        "coordinate).",
        SortOrder,
    )
    sort_memory: str | None = size(
        "--sort-memory",
        "Memory to sort in, as 8G or 500M (default: a quarter of what is available, and of a GPU what it has left); "
        "more goes to $TMPDIR, else beside the output.",
    )
    level: int | None = number(
        "--level", "How small BAM and .gz become, 1 (the quickest, the default) to 12, as libdeflate counts.", 1, 12
    )
    codec: str = choice(
        "--codec",
        "What compresses BAM and .gz: libdeflate, to the same bytes everywhere; nvcomp, on the GPU, to others; or "
        f"auto, nvcomp where it is, below level {SMALLER_LEVEL} (default: auto).",
        CodecName,
        default=CodecName.AUTO,
    )
    index_format: str | None = choice(
        "--index-format",
        "The index of sorted BAM: bai, or csi, which contigs of 2^29 bases and more need (default: what they need).",
        IndexFormat,
    )
    unmapped: str | None = option(
        "--unmapped",
        "A file for the reads without a place, as FASTQ; of pairs for those of which neither mate has one.",
        "FILE",
    )
    read_groups: list[str] | None = option(  # noqa: RUF009
        "-R --read-group", r"The read group of all reads, as '@RG\tID:a\tSM:b'.", "LINE"
    )
    header: list[str] | None = option(  # noqa: RUF009
        "-H --header",
        r"A line to add to the header, as '@CO\ttext', or a file of lines; @HD, and @SQ of the same contigs, "
        "replace readmap's. May be repeated.",
        "LINE",
    )

    @property
    def read_group(self) -> str | None:
        """The line of the read group of all reads; raises UsageError if several are given."""
        if self.read_groups and len(self.read_groups) > 1:
            second = f"{marked('read_groups')} {self.read_groups[1]}: a second read group"
            raise UsageError(f"{second}; {marked('lanes')} gives each lane its own")
        return self.read_groups[0] if self.read_groups else None


@dataclass(frozen=True, kw_only=True)
class _MarkOption:
    """The first option of its panel."""

    mark_duplicates: bool = flag(
        "--markdup --mark-duplicates", "Mark duplicates (0x400): all records of a fragment, its unmapped mate too."
    )


@dataclass(frozen=True, kw_only=True)
class DuplicateOptions(duplicates.DuplicateOptions, _MarkOption):
    """What happens to duplicates during a search."""

    panel: ClassVar = "Duplicates, as Picard MarkDuplicates finds them; with --sort"

    for_merge: bool = flag(
        "--for-merge",
        f"Of a shard: leave duplicates to readmap merge, for which FILE{FRAGMENTS_SUFFIX} is written beside -o FILE.",
    )


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """The records of a read in addition to its primary alignment."""

    panel: ClassVar = "Records"

    all_places: bool = flag("-a --all", "Write all other places that reach -T too, as secondary alignments.")
    max_secondary: int | None = number(
        "--max-secondary", "Most secondary alignments of each part of a read, the best ones; implies -a.", 0, 1 << 30
    )
    max_alternatives: str | None = option(
        "-h --max-alternatives",
        "Tell all other places in the tag XA, where they are at most N, or the second N with one on an ALT contig "
        f"(default: {MAX_XA_HITS},{MAX_ALTERNATE_HITS}, of those that matter to MAPQ).",
        "N[,N]",
    )
    xa_share: int | None = number(
        "--xa-share", "Per cent of the best place's score that a place in XA has (default: 80).", 0, 100
    )
    soft_clip: bool = flag("-Y --soft-clip", "Write the whole read in the records of all parts of a split read.")
    mark_secondary: bool = flag(
        "-M --mark-secondary", "Mark the lesser parts of a split read secondary, not supplementary."
    )
    leftmost_primary: bool = flag(
        "-5 --leftmost-primary", "Make that part of a split read primary that begins first in the read."
    )

    def reporting(self) -> Reporting:
        """Return which records a search writes; raises UsageError if options contradict each other."""
        secondary = NO_LIMIT if self.all_places else 0
        most, most_alternate = self._max_alternatives()
        if most is not None and (self.all_places or self.max_secondary is not None):
            others = (
                f"{marked('all_places')} or {marked('max_secondary')}, which give other places records of their own"
            )
            raise UsageError(f"{marked('max_alternatives')}: not with {others}")
        return Reporting(
            max_secondary=secondary if self.max_secondary is None else self.max_secondary,
            max_xa_hits=most,
            max_alternate_hits=most_alternate,
            xa_share=XA_SHARE if self.xa_share is None else self.xa_share,
            leftmost_primary=self.leftmost_primary,
            soft_clipped=self.soft_clip,
            supplementary_as_secondary=self.mark_secondary,
        )

    def _max_alternatives(self) -> tuple[int | None, int]:
        """Return the limits of places in XA, without and with one on an ALT contig."""
        if self.max_alternatives is None:
            return None, MAX_ALTERNATE_HITS
        given = parse_numbers("-h --max-alternatives", self.max_alternatives, 0, NO_LIMIT)
        return given[0], given[-1]


@dataclass(frozen=True, kw_only=True)
class TagOptions:
    """Tags of the reads that their records keep."""

    panel: ClassVar = "Tags"

    comments: bool = flag(
        "-C --comments",
        "Append FASTQ comments, tags such as RX:Z:ACGT, to the records; Illumina's, 1:N:0:ACGT, as BC, and Y as 0x200.",
    )
    keep_tags: str | None = option(
        "--keep-tags", "Tags of BAM or CRAM reads to keep, as RX,BC, or all (default: RG alone).", "TAGS"
    )
    barcode_name: bool = flag(
        "--barcode-name", "Write the eighth field of a read's name, where bcl-convert puts UMIs, as the tag RX."
    )
    replace_rg: bool = flag("--replace-rg", "Let -R replace the read groups of BAM or CRAM reads.")


@dataclass(frozen=True, kw_only=True)
class ExactOptions:
    """The exact search: whether there is one, by which structure and strands, and the form of its output."""

    panel: ClassVar = "Exact search"

    exact: bool = flag("--exact", "Find all exact occurrences of the reads instead of aligning them.")
    strand: str = choice(
        "--strand",
        "forward (the reads as they are), reverse (their reverse complements) or both (default: both).",
        Strand,
        default=Strand.BOTH,
    )
    max_hits: int | None = number(
        "--max-hits", "Most occurrences of a read to write (default: all); counts are of all.", 1, 1 << 31
    )
    count_only: bool = flag("--count-only", "Write how often each read occurs, as tsv (query, count).")
    structure: str | None = choice(
        "--structure",
        "array or tree: what finds them (default: what the index holds, the array first). The output is the same.",
        (IndexStructure.ARRAY, IndexStructure.TREE),
    )
    no_prefix_table: bool = flag(
        "--no-prefix-table", "Search without the table of first bases: the plain, slower way, to compare with."
    )


@dataclass(frozen=True, kw_only=True)
class Resources(resources.SharedResources):
    """The device, the threads and the memory of a search."""

    batch_reads: int | None = number(
        "--batch-reads", "Most reads to search together (default: by their bytes). The output is the same.", 1, 1 << 31
    )


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """The workers that map."""

    panel: ClassVar = "Cluster"

    dask: str | None = option(
        "--dask",
        "Map by the workers of Dask, a shard of the reads a task: the address of a scheduler, as tcp://node1:8786, the "
        f"file that it has written, or {LOCAL} for workers of this machine, one a GPU (--gpus). Same output.",
        "ADDRESS",
    )
    tasks: int | None = number(
        "--tasks",
        f"Equal shards of the reads, once all reads are found (default: of up to {TASK_READS:,} reads, on GPUs of "
        f"{GPU_TASK_READS:,}, mapped while others are found).",
        1,
        1 << 20,
    )


@dataclass(frozen=True, kw_only=True)
class ShardOptions:
    """The part of the reads that is mapped."""

    panel: ClassVar = "Shards"

    split: str | None = option("--split", "The table of the files of reads, which readmap split makes.", "TABLE")
    shard: str | None = option(
        "--shard",
        "Map the I-th of N equal parts of the reads, found by --split, without reading the rest; all parts in order "
        "give the records of the whole.",
        "I/N",
    )
    sample_model: str | None = option(
        "--sample-model",
        "The file that readmap estimate wrote for all reads: nothing is estimated from the reads that are mapped.",
        "FILE",
    )
    learnt: str | None = hidden(option("--learnt", "As --sample-model.", "FILE"))


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """All options of readmap search."""

    reads: list[str] | None = argument(  # noqa: RUF009
        "READS",
        "Reads up to 10,000 bases, or two files of pairs, as FASTQ or FASTA (plain, gzip or bgzip), BAM or CRAM; "
        "- is standard input.",
        default=None,
    )
    lanes: LaneOptions
    shards: ShardOptions
    cluster: ClusterOptions
    pairs: PairOptions
    index: str | None = option(
        "-x --index",
        "The index folder, or the FASTA that it was made from "
        "(default: $READMAP_INDEX, else the one *.readmap of the current folder).",
        "INDEX",
    )
    no_check: bool = no_check_option("index")
    ignore_alternates: bool = flag("-j --ignore-alt", "Map to ALT contigs, which ref.fa.alt names, as to all others.")
    output: OutputOptions
    duplicates: DuplicateOptions
    quality: QualityOptions
    records: RecordOptions
    tags: TagOptions
    exact: ExactOptions
    scoring: ScoringOptions
    resources: Resources
    report: ReportOptions

    def config(self, command_line: str) -> SearchConfig:
        """Return the configuration of the search; raises UsageError if options are invalid or contradict each other."""
        known = {one.name for one in fields(SearchConfig)}
        values = {name: value for name, value in values_of(self).items() if name in known}
        values |= {name: tuple(values[name] or ()) for name in ("reads", "lanes", "header")}
        values |= {
            "check": not self.no_check,
            "alternates": not self.ignore_alternates,
            "prefix_table": not self.exact.no_prefix_table,
            "read_group": self.output.read_group,
            "scoring": self.scoring.scoring(),
            "pairing": self.pairs.pairing(),
            "reporting": self.records.reporting(),
            "command_line": command_line,
            "sample_model": self.shards.sample_model or self.shards.learnt,
            "is_distributed": self.cluster.dask is not None,
        }
        return SearchConfig(**values)
