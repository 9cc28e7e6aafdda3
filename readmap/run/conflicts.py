"""Options of a search that contradict each other, for Python and for the command line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from readmap.bam.codecs import COMPRESSED_ENDINGS, SMALLER_LEVEL, CodecName
from readmap.bam.order import SortOrder
from readmap.errors import UsageError, option
from readmap.run.output_format import BINARY, TABLES, OutputFormat, output_format_of

if TYPE_CHECKING:
    from readmap.run.config import SearchConfig

#: Names of options, whether giving one of them is an error, and the reason.
OptionRule = tuple[Collection[str], Any, str]
#: Options of reads that are named directly, without lanes.
_NAMED = ("reads", "interleaved", "smart_pairing", "collate")
_DUPLICATES = ("mark_duplicates", "remove_duplicates")


def check_conflicts(config: SearchConfig, given: Collection[str] | None = None) -> None:
    """Raise UsageError for the first conflict between options. given: names of the options that were given; default,
    those that differ from their defaults."""
    known = config.given if given is None else given
    for rules in (_input_rules, _exact_rules, _format_rules, _sort_rules, _duplicate_rules, _dask_rules):
        for names, is_wrong, reason in rules(config):
            if is_wrong and (found := [name for name in names if name in known]):
                raise UsageError(f"{', '.join(map(option, found))}: {reason}")


def check_pair_options(given: Collection[str], is_paired: bool) -> None:
    """Raise UsageError if options about pairs are given and no reads have mates."""
    found = [name for name in ("interleaved", "smart_pairing", "collate", "pairing") if name in given]
    if found and not is_paired:
        reason = f"only for pairs: give two files of reads, or {option('interleaved')} where mates alternate"
        raise UsageError(f"{', '.join(map(option, found))}: {reason}")


def _input_rules(config: SearchConfig) -> Iterator[OptionRule]:
    """Yield (options, whether giving one of them is an error, reason) for options about reads, lanes and shards."""
    lanes, sheet = f"{option('lanes')} or {option('sheet')}", config.sheet is not None
    has_lanes = bool(config.lanes) or sheet
    yield _NAMED, has_lanes, f"not with {lanes}, which name files of reads"
    yield ["lanes"], sheet, f"not with {option('sheet')}, which names lanes too"
    yield ["sample"], not sheet, f"only with {option('sheet')}"
    smart = f"not with {option('smart_pairing')}, which finds mates by their names"
    yield ["interleaved"], config.smart_pairing, smart
    yield ["read_group"], has_lanes, f"not with {lanes}, which give each lane its own read group"
    table = f"only with {option('split')}, a table that readmap split makes: it says where records begin inside a file"
    yield ["shard"], config.split is None, table
    part = f"only with {option('shard')} I/N, which says what to read by it, or {option('dask')}"
    yield ["split"], config.shard is None and not config.is_distributed, part
    yield ["collate"], config.shard is not None, f"not with {option('shard')}, which takes FASTQ or FASTA"
    known = f"not with {option('sample_model')}, which contains it: give it to readmap estimate"
    yield ["insert_size"], config.sample_model is not None, known
    yield ["replace_rg"], config.read_group is None, f"only with {option('read_group')}"


def _exact_rules(config: SearchConfig) -> Iterator[OptionRule]:
    """Yield (options, whether giving one of them is an error, reason) for options with or without `exact`."""
    if not config.exact:
        exact = ("strand", "max_hits", "count_only", "structure", "prefix_table")
        yield exact, True, f"only with {option('exact')}"
        return
    reasons = {
        ("lanes", "sheet"): "which takes one file",
        (*_NAMED[1:], "pairing"): "which takes every read for itself: leave it out",
        ("scoring",): "which scores no alignments",
        ("reporting",): f"which reports all places ({option('max_hits')})",
        ("comments", "keep_tags", "barcode_name", "replace_rg"): "which writes no tags of the reads",
        ("sample_model",): "which estimates nothing",
        ("unmapped",): f"whose tables list reads without a place ({option('count_only')})",
    }
    for names, reason in reasons.items():
        yield names, True, f"not with {option('exact')}, {reason}"


def _format_rules(config: SearchConfig) -> Iterator[OptionRule]:
    """Yield (options, whether giving one of them is an error, reason) for options about formats and compression."""
    kind, by_ending, path = config.output_format, output_format_of(config.output), config.output or ""
    named = config.format is not None
    is_table = config.count_only or kind in TABLES
    only_exact = f"{path} is a name for {by_ending}, which is written only with {option('exact')}"
    yield ["output"], not config.exact and by_ending in TABLES and is_table, only_exact
    yield ["format"], not config.exact and kind in TABLES, f"{kind} is written only with {option('exact')}"
    other = f"{path} is a name for {by_ending}, not for {kind}"
    yield ["format"], by_ending in BINARY and kind is not by_ending, other
    counted = kind if named else by_ending or kind
    yield ["count_only"], counted is not OutputFormat.TSV, f"counts are written as tsv, not as {counted}"
    yield ["read_group"], is_table, "only SAM, BAM and CRAM have read groups"
    yield ["header"], is_table, "only SAM, BAM and CRAM have such a header"
    is_compressed = kind is OutputFormat.BAM or path.lower().endswith(COMPRESSED_ENDINGS)
    yield ["level", "codec"], not is_compressed, "only for BAM, .gz and .bgz"
    at_random = config.codec == CodecName.NVCOMP and (config.level or 1) >= SMALLER_LEVEL
    smaller = f"below {SMALLER_LEVEL} with {option('codec')} nvcomp, whose smaller files differ from run to run"
    yield ["level"], at_random, smaller


def _sort_rules(config: SearchConfig) -> Iterator[OptionRule]:
    """Yield (options, whether giving one of them is an error, reason) for options about sorting."""
    kind, unsorted = config.output_format, not config.sort
    only = f"only with {option('sort')}"
    yield ["sort_memory", "sort_order", "index_format"], unsorted, only
    by_name = config.order is SortOrder.QUERYNAME
    yield ["index_format"], by_name, f"not with {option('sort_order')} queryname, which has no index"
    yield ["index_format"], kind is not OutputFormat.BAM, "only for BAM: the index of CRAM is always .crai"
    yield _DUPLICATES, unsorted, f"{only}: duplicates are known when all records are"
    yield ["report", "multiqc"], unsorted, f"{only}: records are counted as they are written in order"
    exact = f"not with {option('exact')}; write BAM and sort it with samtools sort"
    yield ["sort"], config.exact, exact
    yield ["sort"], kind not in BINARY, f"only for BAM and CRAM: {option('output')} out.bam; SAM is not sorted"


def _duplicate_rules(config: SearchConfig) -> Iterator[OptionRule]:
    """Yield (options, whether giving one of them is an error, reason) for options about duplicates."""
    marks = f"only with {option('mark_duplicates')} or {option('remove_duplicates')}"
    details = ("optical_distance", "duplicate_type", "barcode_tag", "metrics")
    yield details, not config.marks_duplicates and not config.for_merge, marks
    is_sorted_file = config.order is SortOrder.COORDINATE and config.output not in (None, "-")
    is_mergeable = is_sorted_file and config.output_format is OutputFormat.BAM
    yield ["for_merge"], not is_mergeable, f"only with {option('sort')} by coordinate and {option('output')} out.bam"
    later = [*_DUPLICATES, "optical_distance", "duplicate_type", "metrics", "report", "multiqc"]
    yield later, config.for_merge, f"not with {option('for_merge')}: readmap merge does that for all shards"
    removed = f"not with {option('remove_duplicates')}, which leaves no duplicates to tag"
    yield ["duplicate_type"], config.remove_duplicates, removed


def _dask_rules(config: SearchConfig) -> Iterator[OptionRule]:
    """Yield (options, whether giving one is an error, reason) on a cluster; raise UsageError without an output file."""
    if not config.is_distributed:
        return
    dask = f"not with {option('dask')}"
    yield ["exact"], True, f"{dask}: one machine does it"
    yield ["shard", "for_merge"], True, f"{dask}, which makes shards and merges them"
    yield ["collate", "keep_tags", "replace_rg"], True, f"{dask}, which takes FASTQ or FASTA"
    yield ["report", "multiqc"], True, f"{dask}: readmap markdup makes it from what is written"
    yield ["sort_order"], config.order is SortOrder.QUERYNAME, f"{dask}: only by coordinate"
    yield ["output", "format"], config.output_format is OutputFormat.CRAM, f"{dask}: write BAM"
    if config.output in (None, "-"):
        raise UsageError(f"{option('dask')}: name the output by {option('output')}: workers write next to it")
