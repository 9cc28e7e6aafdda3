"""The options of readmap search, by groups of its help."""

from dataclasses import fields
from typing import Any

from readmap.bam.codecs import SMALLER_LEVEL, CodecName
from readmap.bam.file_index import IndexFormat
from readmap.bam.order import SortOrder
from readmap.cli.common.options import argument, choice, flag, no_check_option, number, option, option_group, values_of
from readmap.cli.common.report import ReportOptions
from readmap.cli.common.shared_options import DuplicateOptions, MultiGpuResources, QualityOptions, sort_memory_option
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

INPUT = "Input"


@option_group(INPUT)
class ReferenceOptions:
    """The index to search."""

    index: str | None = option(
        "-x --index", "Index folder or its FASTA file (default: $READMAP_INDEX, else the only *.readmap here).", "INDEX"
    )
    no_check: bool = no_check_option("index")
    ignore_alternates: bool = flag("-j --ignore-alt", "Treat ALT contigs (ref.fa.alt) like all others.", advanced=True)


@option_group(INPUT, is_advanced=True)
class LaneOptions:
    """Lanes of a sample, which are mapped one after the other to one output."""

    lanes: list[str] | None = option(
        "--lane",
        r"A lane: '1.fq,2.fq,@RG\tID:L1\tSM:s', or '1.fq,,@RG...' for single reads. May be repeated.",
        "R1,R2,RG",
    )
    sheet: str | None = option(
        "--sheet",
        "CSV or TSV of lanes: sample, lane, fastq_1, fastq_2, read group fields (ID, LB, ...), or nf-core/sarek's.",
        "FILE",
    )
    sample: str | None = option("--sample", "Sample to map, if the sheet lists several.", "NAME")


@option_group("Pairs")
class PairOptions:
    """How mates are read and placed."""

    interleaved: bool = flag("-p --interleaved", "The reads of one file are pairs: mates alternate.", panel=INPUT)
    smart_pairing: bool = flag(
        "--smart-pairing", "Adjacent reads of the same name are pairs, others single.", panel=INPUT, advanced=True
    )
    collate: bool = flag(
        "--collate", "Group the mates of unordered BAM or CRAM first, in $TMPDIR.", panel=INPUT, advanced=True
    )
    insert_size: str | None = option(
        "-I --insert-size",
        "Insert size (FR): mean, SD, maximum, minimum (default: estimated; SD mean / 10, limits 4 SD).",
        "MEAN[,SD[,MAX[,MIN]]]",
    )
    no_pairing: bool = flag("-P --no-pairing", "Place mates independently of each other, as for Hi-C.", advanced=True)
    no_rescue: bool = flag("-S --no-rescue", "Do not search for a read near its mate.", advanced=True)

    def pairing(self) -> Pairing:
        """Return how mates are placed; raises UsageError if the insert size is invalid."""
        return Pairing(not self.no_pairing, not self.no_rescue, self._sizes())

    def _sizes(self) -> tuple[float, ...] | None:
        """Return the numbers of -I; raise UsageError if they are no valid insert sizes."""
        if self.insert_size is None:
            return None
        try:
            sizes = tuple(map(float, self.insert_size.split(",")))
            fixed_insert_size(*sizes)
        except (ValueError, TypeError):
            expected = "a mean, a standard deviation, the largest and the smallest one, as 400,60"
            raise UsageError(f"{marked('insert_size')} {self.insert_size}: expected {expected}") from None
        return sizes


@option_group("Output")
class OutputOptions:
    """The outputs, their order and their header lines."""

    output: str | None = option(
        "-o --output", "Output (default: standard output): .bam, .cram, else SAM; .gz is compressed with bgzip.", "FILE"
    )
    format: str | None = choice(
        "--format",
        "sam, bam or cram; with --exact also tsv (1-based positions) or bed (default: by -o, else sam).",
        OutputFormat,
    )
    sort: bool = flag("--sort", "Sort BAM or CRAM by coordinate, and write its index.")
    read_groups: list[str] | None = option("-R --read-group", r"Read group, such as '@RG\tID:a\tSM:b'.", "LINE")
    unmapped: str | None = option(
        "--unmapped", "Write unmapped reads as FASTQ; pairs only if both mates are unmapped.", "FILE"
    )
    sort_order: str | None = choice(
        "--sort-order",
        "coordinate, or queryname as samtools sort -n, without an index (default: coordinate).",
        SortOrder,
        advanced=True,
    )
    sort_memory: str | None = sort_memory_option()
    level: int | None = number(
        "--level", "Compression level of BAM and .gz, from 1, fastest, to 12 (default: 1).", 1, 12, advanced=True
    )
    codec: str = choice(
        "--codec",
        "BAM and .gz: libdeflate (same bytes on every device), nvcomp (on GPUs, other bytes), or auto: nvcomp if "
        f"installed, below level {SMALLER_LEVEL} (default: auto).",
        CodecName,
        default=CodecName.AUTO,
        advanced=True,
    )
    index_format: str | None = choice(
        "--index-format",
        "bai, or csi for contigs of 2^29 bases or more (default: bai if possible).",
        IndexFormat,
        advanced=True,
    )
    header: list[str] | None = option(
        "-H --header",
        r"Header line, such as '@CO\ttext', or a file; @HD, and @SQ of the same contigs, replace readmap's.",
        "LINE",
        advanced=True,
    )

    @property
    def read_group(self) -> str | None:
        """The line of the read group of all reads; raises UsageError if several are given."""
        if self.read_groups and len(self.read_groups) > 1:
            second = f"{marked('read_groups')} {self.read_groups[1]}: a second read group"
            raise UsageError(f"{second}; {marked('lanes')} gives each lane its own")
        return self.read_groups[0] if self.read_groups else None


@option_group()
class _MarkOption:
    """The first option of its group."""

    mark_duplicates: bool = flag("--markdup --mark-duplicates", "Mark duplicates (0x400) in all records of a fragment.")


@option_group("Duplicates, as in Picard MarkDuplicates (with --sort)")
class SearchDuplicateOptions(DuplicateOptions, _MarkOption):
    """Duplicate marking during a search."""

    for_merge: bool = flag(
        "--for-merge",
        f"Prepare a shard for readmap merge: also write FILE{FRAGMENTS_SUFFIX} for -o FILE.",
        advanced=True,
    )


@option_group("Records")
class RecordOptions:
    """The records of a read in addition to its primary alignment."""

    all_places: bool = flag("-a --all", "Also write all other placements that reach -T, as secondary alignments.")
    soft_clip: bool = flag("-Y --soft-clip", "Soft-clip supplementary alignments, so that they have the whole read.")
    max_secondary: int | None = number(
        "--max-secondary", "Maximum secondary alignments per part of a read; implies -a.", 0, 1 << 30, advanced=True
    )
    max_alternatives: str | None = option(
        "-h --max-alternatives",
        "List all other placements in XA if there are at most N; the second N applies if one is on an ALT contig "
        f"(default: {MAX_XA_HITS},{MAX_ALTERNATE_HITS}, only placements that affect MAPQ).",
        "N[,N]",
        advanced=True,
    )
    xa_share: int | None = number(
        "--xa-share", "Minimum score in XA, in % of the best score (default: 80).", 0, 100, advanced=True
    )
    mark_secondary: bool = flag(
        "-M --mark-secondary", "Mark the shorter parts of a split read secondary, not supplementary.", advanced=True
    )
    leftmost_primary: bool = flag("-5 --leftmost-primary", "Make a split read's first part primary.", advanced=True)

    def reporting(self) -> Reporting:
        """Return the parameters of secondary records and XA; raises UsageError if options contradict each other."""
        secondary = NO_LIMIT if self.all_places else 0
        max_hits, max_alternate_hits = self._max_alternatives()
        if max_hits is not None and (self.all_places or self.max_secondary is not None):
            others = f"{marked('all_places')} or {marked('max_secondary')}"
            raise UsageError(
                f"{marked('max_alternatives')}: not with {others}, which give other places records of their own"
            )
        return Reporting(
            max_secondary=secondary if self.max_secondary is None else self.max_secondary,
            max_xa_hits=max_hits,
            max_alternate_hits=max_alternate_hits,
            xa_share=XA_SHARE if self.xa_share is None else self.xa_share,
            leftmost_primary=self.leftmost_primary,
            soft_clipped=self.soft_clip,
            supplementary_as_secondary=self.mark_secondary,
        )

    def _max_alternatives(self) -> tuple[int | None, int]:
        """Return the maximum number of placements in XA, without and with a placement on an ALT contig."""
        if self.max_alternatives is None:
            return None, MAX_ALTERNATE_HITS
        given = parse_numbers("-h --max-alternatives", self.max_alternatives, 0, NO_LIMIT)
        return given[0], given[-1]


@option_group("Tags")
class TagOptions:
    """Tags that records take from their reads."""

    comments: bool = flag(
        "-C --comments",
        "Append FASTQ comments, such as RX:Z:ACGT, as tags; Illumina's 1:N:0:ACGT becomes BC, 1:Y flag 0x200.",
    )
    keep_tags: str | None = option(
        "--keep-tags", "Tags of BAM or CRAM reads to keep, such as RX,BC, or all (default: only RG).", "TAGS"
    )
    barcode_name: bool = flag("--barcode-name", "Write the eighth field of read names, a UMI, as RX.", advanced=True)
    replace_rg: bool = flag("--replace-rg", "Replace the read groups of BAM or CRAM reads by -R.", advanced=True)


@option_group("Exact search")
class ExactOptions:
    """Search for exact occurrences."""

    exact: bool = flag("--exact", "Find all exact occurrences of the reads instead of aligning them.")
    count_only: bool = flag("--count-only", "Write the number of occurrences of each read, as tsv (query, count).")
    strand: str = choice(
        "--strand", "forward, reverse or both (default: both).", Strand, default=Strand.BOTH, advanced=True
    )
    max_hits: int | None = number(
        "--max-hits", "Maximum occurrences per read (default: all).", 1, 1 << 31, advanced=True
    )
    structure: str | None = choice(
        "--structure",
        "array or tree (default: what the index has, preferably array). Same output.",
        (IndexStructure.ARRAY, IndexStructure.TREE),
        advanced=True,
    )
    no_prefix_table: bool = flag("--no-prefix-table", "Search without the prefix table (slower).", advanced=True)


@option_group("Shards", is_advanced=True)
class ShardOptions:
    """The part of the reads that is mapped."""

    split: str | None = option("--split", "Table of record positions, written by readmap split.", "TABLE")
    shard: str | None = option("--shard", "Map only the I-th of N equal parts of the reads; needs --split.", "I/N")
    sample_model: str | None = option(
        "--sample-model", "File written by readmap estimate (default: estimated).", "FILE"
    )
    learnt: str | None = option("--learnt", "Same as --sample-model.", "FILE", hidden=True)


@option_group("Cluster", is_advanced=True)
class ClusterOptions:
    """Mapping by the workers of a Dask cluster."""

    dask: str | None = option(
        "--dask",
        "Map shards on Dask workers: the address of a scheduler, such as tcp://node1:8786, its scheduler file, or "
        f"{LOCAL}: one worker per GPU of this machine (--gpus). Same output.",
        "ADDRESS",
    )
    tasks: int | None = number(
        "--tasks",
        f"Number of equal shards (default: up to {TASK_READS:,} reads each, {GPU_TASK_READS:,} on GPUs).",
        1,
        1 << 20,
    )


@option_group()
class SearchResources(MultiGpuResources):
    """The device, the threads and the memory of a search."""

    batch_reads: int | None = number(
        "--batch-reads", "Maximum reads per batch (default: by bytes). Same output.", 1, 1 << 31, advanced=True
    )


@option_group()
class SearchOptions:
    """All options of readmap search."""

    reads: list[str] | None = argument(
        "READS",
        "Reads up to 10,000 bases, one file or two of pairs: FASTQ, FASTA (plain, gzip, bgzip), BAM, CRAM; - is stdin.",
        default=None,
    )
    reference: ReferenceOptions
    lanes: LaneOptions
    output: OutputOptions
    pairs: PairOptions
    records: RecordOptions
    tags: TagOptions
    duplicates: SearchDuplicateOptions
    quality: QualityOptions
    scoring: ScoringOptions
    exact: ExactOptions
    shards: ShardOptions
    cluster: ClusterOptions
    resources: SearchResources
    report: ReportOptions

    def config(self, command_line: str) -> SearchConfig:
        """Return the configuration of the search; raises UsageError if options are invalid or contradict each other."""
        values = config_values(self, command_line)
        return SearchConfig(
            **values,
            prefix_table=not self.exact.no_prefix_table,
            read_group=self.output.read_group,
            reporting=self.records.reporting(),
            sample_model=self.shards.sample_model or self.shards.learnt,
            is_distributed=self.cluster.dask is not None,
        )


def config_values(options: Any, command_line: str) -> dict[str, Any]:
    """Return the fields of SearchConfig that SearchOptions or EstimateOptions determine, by name."""
    known = {each.name for each in fields(SearchConfig)} - {"sample_model"}
    values = {name: value for name, value in values_of(options).items() if name in known}
    values |= {name: tuple(values[name] or ()) for name in ("reads", "lanes", "header") if name in values}
    return values | {
        "check": not options.reference.no_check,
        "alternates": not options.reference.ignore_alternates,
        "scoring": options.scoring.scoring(),
        "pairing": options.pairs.pairing(),
        "command_line": command_line,
    }
