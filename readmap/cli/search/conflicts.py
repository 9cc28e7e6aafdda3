"""Options of readmap search that contradict each other."""

from __future__ import annotations

import typer

from readmap.bam.codecs import SMALLER_LEVEL, CodecName
from readmap.bam.compression import COMPRESSED
from readmap.bam.order import SortOrder
from readmap.cli.common.conflicts import Conflict, refuse
from readmap.cli.common.options import names_of
from readmap.cli.search.options import (
    ExactOptions,
    LaneOptions,
    Options,
    PairOptions,
    RecordOptions,
    TagOptions,
)
from readmap.cli.search.scores import ScoringOptions
from readmap.dask import LOCAL
from readmap.run.output_format import BINARY, TABLES, Kind, kind_by_ending

#: Of reads that are named by themselves, and how mates lie in them.
NAMED = ("named_reads", "interleaved", "smart_pairing", "collate")


def lane_conflicts(lanes: LaneOptions) -> list[Conflict]:
    """What contradicts lanes."""
    sheet = lanes.sheet is not None
    return [
        (NAMED, lanes.lane or sheet, "not with --lane or --sheet, which name files of reads"),
        (["lane"], sheet, "not with --sheet, which names lanes too"),
        (["sample"], not sheet, "only with --sheet"),
    ]


def pair_conflicts(pairs: PairOptions) -> list[Conflict]:
    """What contradicts how mates lie."""
    return [(["interleaved"], pairs.smart_pairing, "not with --smart-pairing, which finds mates by their names")]


def refuse_conflicts(context: typer.Context, options: Options) -> None:
    """Raise UsageError where options contradict each other."""
    exact, output, is_exact = options.exact, options.output, options.exact.is_exact
    kind, by_ending = output.kind, kind_by_ending(output.path)
    is_table = exact.count_only or kind in TABLES
    is_compressed = kind is Kind.BAM or (output.path or "").lower().endswith(COMPRESSED)
    lanes, sheet = bool(options.lanes.lane), options.lanes.sheet is not None
    is_clustered = options.cluster.dask is not None
    conflicts = (
        *lane_conflicts(options.lanes),
        *pair_conflicts(options.pairs),
        (["read_groups"], lanes or sheet, "not with --lane or --sheet, which give each lane its own read group"),
        (
            ["given_shard"],
            options.shards.table is None,
            "only with --split TABLE, which readmap split makes: without it no record is found in the middle of a "
            "file, and of gzip, bgzip's alone can be inflated from there",
        ),
        (
            ["table"],
            options.shards.given_shard is None and not is_clustered,
            "only with --shard I/N, which says what to take by it, or --dask",
        ),
        (["collate"], options.shards.given_shard, "not with --shard, which takes FASTQ or FASTA"),
        (["lane", "sheet"], is_exact, "not with --exact, which takes one file"),
        (names_of(ExactOptions), not is_exact, "only with --exact"),
        (names_of(PairOptions), is_exact, "not with --exact, which takes every read for itself: leave it out"),
        (names_of(ScoringOptions), is_exact, "not with --exact, which scores no alignments"),
        (names_of(RecordOptions), is_exact, "not with --exact, which reports all places (--max-hits)"),
        (names_of(TagOptions), is_exact, "not with --exact, which writes no tags of the reads"),
        (["learnt"], is_exact, "not with --exact, which learns nothing"),
        (
            ["insert_size"],
            options.shards.learnt is not None,
            "not with --learnt, which knows it: give -I to readmap learn",
        ),
        (["unmapped"], is_exact, "not with --exact, whose tables hold what occurs nowhere (--count-only)"),
        (
            ["max_alternatives"],
            options.records.all_places or options.records.max_secondary is not None,
            "not with -a or --max-secondary, which give other places records of their own",
        ),
        (["replace_rg"], output.read_group is None, "only with -R"),
        (
            ["path"],
            not is_exact and by_ending in TABLES and is_table,
            f"{output.path} is a name for {by_ending}, which is written only with --exact",
        ),
        (["kind_name"], not is_exact and kind in TABLES, f"{kind} is written only with --exact"),
        (
            ["kind_name"],
            by_ending in BINARY and kind is not by_ending,
            f"{output.path} is a name for {by_ending}, not for {kind}",
        ),
        (
            ["count_only"],
            (by_ending or output.kind_name) and kind is not Kind.TSV,
            f"counts are written as tsv, not as {kind}",
        ),
        (["read_groups"], is_table, "only SAM, BAM and CRAM have read groups"),
        (["header"], is_table, "only SAM, BAM and CRAM have such a header"),
        (["sort_memory", "sort_order", "index_format"], not output.sort, "only with --sort"),
        (["level", "codec"], not is_compressed, "only for BAM, .gz and .bgz"),
        (
            ["level"],
            output.codec == CodecName.NVCOMP and (output.level or 1) >= SMALLER_LEVEL,
            f"not from {SMALLER_LEVEL} on with --codec nvcomp, whose smaller files differ from run to run",
        ),
        (["index_format"], output.order is SortOrder.QUERYNAME, "not with --sort-order queryname, which has no index"),
        (["index_format"], kind is not Kind.BAM, "only for BAM: the index of CRAM is always .crai"),
        (
            ["markdup", "remove_duplicates"],
            not output.sort,
            "only with --sort, by which records are held until all are known",
        ),
        (["page", "multiqc"], not output.sort, "only with --sort, whose records are counted as they are written"),
        (
            ["optical_distance", "duplicate_type", "barcode_tag", "metrics"],
            not options.duplicates.is_marked and not options.duplicates.for_merge,
            "only with --markdup or --remove-duplicates",
        ),
        (
            ["for_merge"],
            not output.sort
            or output.order is SortOrder.QUERYNAME
            or kind is not Kind.BAM
            or output.path in (None, "-"),
            "only with --sort by coordinate and -o out.bam",
        ),
        (
            ["markdup", "remove_duplicates", "optical_distance", "duplicate_type", "metrics", "page", "multiqc"],
            options.duplicates.for_merge,
            "not with --for-merge, behind which readmap merge does that for all shards",
        ),
        (
            ["duplicate_type"],
            options.duplicates.remove_duplicates,
            "not with --remove-duplicates, which leaves no duplicates to tell of",
        ),
        (["sort"], is_exact, "not with --exact; write BAM (-o out.bam) and sort that with samtools sort"),
        (["sort"], kind not in BINARY, "name the output -o out.bam or -o out.cram; SAM is not sorted"),
        *_of_cluster(options),
    )
    refuse(context, conflicts)


def _of_cluster(options: Options) -> list[Conflict]:
    """Those that --dask is in."""
    cluster, output = options.cluster, options.output
    is_clustered = cluster.dask is not None
    return [
        (["tasks"], not is_clustered, "only with --dask"),
        (["dask"], options.exact.is_exact, "not with --exact, which one machine does"),
        (["dask"], output.path in (None, "-"), "name the output by -o, beside which workers write"),
        (["given_shard", "for_merge"], is_clustered, "not with --dask, which makes shards and merges them"),
        (["collate", "keep_tags", "replace_rg"], is_clustered, "not with --dask, which takes FASTQ or FASTA"),
        (["page", "multiqc"], is_clustered, "not with --dask: readmap markdup makes it of what is written"),
        (["sort_order"], is_clustered and output.order is SortOrder.QUERYNAME, "not with --dask: only by coordinate"),
        (["path", "kind_name"], is_clustered and output.kind is Kind.CRAM, "not with --dask: write BAM"),
        (["gpus"], is_clustered and cluster.dask != LOCAL, "only with --dask local: a worker has one GPU"),
    ]


def refuse_for_single(context: typer.Context, paired: bool) -> None:
    """Raise UsageError where an option is about pairs, and the reads are none."""
    message = "only for pairs: give two files of reads, or -p where mates alternate"
    refuse(context, [(names_of(PairOptions), not paired, message)])
