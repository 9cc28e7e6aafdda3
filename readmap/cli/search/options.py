"""The options of readmap search, by the panels of its help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from readmap.backend.machine import available_memory
from readmap.bam.codecs import SMALLER_LEVEL, CodecName
from readmap.bam.file_index import IndexFormat
from readmap.bam.order import SortOrder
from readmap.cli.common import duplicates, resources
from readmap.cli.common.options import (
    argument,
    choice,
    flag,
    no_check_option,
    number,
    option,
    parse_size,
    size,
)
from readmap.cli.common.quality import QualityOptions
from readmap.cli.common.report import ReportOptions, is_terminal
from readmap.cli.search.scores import ScoringOptions, parse_numbers
from readmap.cli.search.shards import ShardOptions
from readmap.dask import GPU_TASK_READS, LOCAL, TASK_READS
from readmap.duplicates.shards import FRAGMENTS_SUFFIX
from readmap.errors import UsageError
from readmap.formats.sam import NO_READ_GROUP, ReadGroup, parse_read_group
from readmap.formats.sam_header import parse_header_lines
from readmap.index.device import IndexStructure
from readmap.mapping.inserts import fixed_insert_size
from readmap.mapping.parameters import NO_LIMIT, MAX_ALTERNATE_HITS, MAX_XA_HITS, XA_SHARE, Pairing, Reporting
from readmap.run.exact import Format
from readmap.run.output_format import Kind, kind_by_ending
from readmap.strand import Strand

#: Of the memory that is available, the part in which records are sorted; bytes where the system does not say.
SORT_SHARE, SORT_MEMORY = 4, 2 << 30


@dataclass(frozen=True, kw_only=True)
class LaneOptions:
    """Several lanes of one sample, mapped one behind the other to one output."""

    panel: ClassVar = "Lanes"

    lane: list[str] | None = option(  # noqa: RUF009
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
        """How mates are placed; raises UsageError where the insert size is none."""
        return Pairing(not self.no_pairing, not self.no_rescue, self._sizes())

    def _sizes(self) -> tuple[float, ...] | None:
        if self.insert_size is None:
            return None
        try:
            sizes = tuple(map(float, self.insert_size.split(",")))
            fixed_insert_size(*sizes)
        except (ValueError, TypeError):
            expected = "a mean, a standard deviation, the largest and the smallest one, as 400,60"
            raise UsageError(f"-I {self.insert_size}: expected {expected}") from None
        return sizes


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The outputs, their order and the lines of their header."""

    panel: ClassVar = "Output"

    path: str | None = option(
        "-o --output",
        "The output file (default: standard output): BAM by the ending .bam, CRAM by .cram, else SAM; "
        ".gz compresses with bgzip.",
        "FILE",
    )
    kind_name: str | None = choice(
        "--format",
        "sam, bam or cram; with --exact also tsv (query, count, contig, start, end, strand; from 1) or bed (default: "
        "by -o's ending, else sam).",
        Kind,
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
    def kind(self) -> Kind:
        """What is written."""
        return Kind(self.kind_name) if self.kind_name else kind_by_ending(self.path) or Kind.SAM

    @property
    def form(self) -> IndexFormat | None:
        """The index that is asked for."""
        return IndexFormat(self.index_format) if self.index_format else None

    @property
    def order(self) -> SortOrder | None:
        """In which records are sorted; None where they are not."""
        return SortOrder(self.sort_order or SortOrder.COORDINATE) if self.sort else None

    @property
    def bytes_to_sort(self) -> int | None:
        """The memory to sort in, in bytes; None where nothing is sorted."""
        if not self.sort:
            return None
        available = available_memory()
        return self.given_bytes_to_sort or (SORT_MEMORY if available is None else available // SORT_SHARE)

    @property
    def given_bytes_to_sort(self) -> int | None:
        """What a user says of it: a device holds no more than that either."""
        return parse_size("--sort-memory", self.sort_memory)

    @property
    def shares_terminal(self) -> bool:
        """Whether records or reads appear on the terminal."""
        return is_terminal(self.path) or (self.unmapped is not None and is_terminal(self.unmapped))

    @property
    def read_group(self) -> str | None:
        """The line of the read group of all reads; raises UsageError where several are given."""
        if self.read_groups and len(self.read_groups) > 1:
            raise UsageError(f"-R {self.read_groups[1]}: a second read group; --lane gives each lane its own")
        return self.read_groups[0] if self.read_groups else None

    def group(self) -> ReadGroup:
        """The read group of all reads; raises UsageError where the line is none."""
        return NO_READ_GROUP if self.read_group is None else parse_read_group(self.read_group)

    def header_lines(self) -> list[str]:
        """Lines to add to the header, those of files among them; raises what parse_header_lines does."""
        return [line for given in self.header or () for line in parse_header_lines(given)]


@dataclass(frozen=True, kw_only=True)
class _MarkOption:
    """In front of the others."""

    markdup: bool = flag("--markdup", "Mark duplicates (0x400): all records of a fragment, its unmapped mate too.")


@dataclass(frozen=True, kw_only=True)
class DuplicateOptions(duplicates.DuplicateOptions, _MarkOption):
    """What becomes of duplicates on the way of a search."""

    panel: ClassVar = "Duplicates, as Picard MarkDuplicates finds them; with --sort"

    for_merge: bool = flag(
        "--for-merge",
        f"Of a shard: leave duplicates to readmap merge, for which FILE{FRAGMENTS_SUFFIX} is written beside -o FILE.",
    )

    @property
    def is_marked(self) -> bool:
        """Whether duplicates are looked for."""
        return self.markdup or self.remove_duplicates


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """The records that a read has beside its primary alignment."""

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
        """The choice of records, as the search takes it."""
        max_secondary = NO_LIMIT if self.all_places else 0
        most, most_alternate = self._most_xa_hits()
        return Reporting(
            max_secondary=max_secondary if self.max_secondary is None else self.max_secondary,
            max_xa_hits=most,
            max_alternate_hits=most_alternate,
            xa_share=XA_SHARE if self.xa_share is None else self.xa_share,
            leftmost_primary=self.leftmost_primary,
            soft_clipped=self.soft_clip,
            supplementary_as_secondary=self.mark_secondary,
        )

    def _most_xa_hits(self) -> tuple[int | None, int]:
        """In XA, and where one of them is on an ALT contig."""
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

    is_exact: bool = flag("--exact", "Find all exact occurrences of the reads instead of aligning them.")
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
class Options:
    """All options of readmap search."""

    named_reads: list[str] | None = argument(  # noqa: RUF009
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

    @property
    def reads(self) -> list[str]:
        """The files of reads that are named by themselves."""
        return self.named_reads or []

    @property
    def format(self) -> Format:
        """The format of the output."""
        if self.exact.count_only:
            return Format.COUNTS
        kind = self.output.kind
        return Format.BAM if kind is Kind.CRAM else Format(kind)  # of which CRAM is made
