"""The outputs of a search: records, unmapped reads, fragments for a merge, metrics and quality reports."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readmap.backend import Backend
from readmap.backend.cpu import CpuBackend
from readmap.bam.codecs import Compression, choose_codec, open_bgzf, open_by_ending
from readmap.bam.device_sorted_runs import DeviceRuns
from readmap.bam.file_index import MAX_BAI_LENGTH, IndexFormat, format_for
from readmap.bam.marking import Marker
from readmap.bam.order import SortOrder
from readmap.bam.sorted_output import BamIndex, Observer, ShowStep, SortedOutput, scratch_folder
from readmap.duplicates.marker import DuplicateMarker
from readmap.duplicates.shards import FRAGMENTS_SUFFIX, FragmentRecorder
from readmap.errors import UsageError, option
from readmap.formats.bgzf import Codec
from readmap.formats.fasta import Contig
from readmap.formats.output import ByteSink, PendingOutput, open_output
from readmap.formats.path_checks import STANDARD_OUTPUT
from readmap.formats.samtools import Letters, open_samtools_output
from readmap.formats.wording import format_bytes, printable
from readmap.index.reference import Reference
from readmap.qc.survey import Survey
from readmap.reads.shards import Shard
from readmap.run.chunk_plan import plan_chunks
from readmap.run.config import SearchConfig
from readmap.run.output_format import BINARY, OutputFormat
from readmap.run.reports import QualityReports, open_reports

#: Upper bounds measured on reads of 100 to 150 bases: bytes of FASTQ in a byte of a compressed file, and bytes of
#: records in a byte of FASTQ; and the endings of uncompressed FASTQ.
COMPRESSED_SHARE, BAM_SHARE = 3.0, 1.15
PLAIN = (".fq", ".fastq", ".fa", ".fasta")
#: Letters of the reference that are unpacked at a time.
UNPACKED_LETTERS = 1 << 24


@dataclass(frozen=True)
class SearchOutputs:
    """The open outputs of a search. sinks: by their names in the JSON report: "output" and, if wanted, "unmapped",
    "fragments" and "metrics". survey: counts the sorted records for the quality reports, or None."""

    sinks: dict[str, ByteSink]
    compression: Compression
    marker: DuplicateMarker | None
    survey: Survey | None
    reports: QualityReports

    @property
    def records(self) -> ByteSink:
        return self.sinks["output"]

    @property
    def pending(self) -> list[PendingOutput]:
        return [*self.sinks.values(), *self.reports.outputs]

    def finish(self, command_line: str, show: ShowStep) -> None:
        """Write sorted records, and what depends on all records: fragments, metrics and quality reports."""
        if isinstance(self.records, SortedOutput):
            self.records.finish(show)
        if isinstance(self.marker, FragmentRecorder):
            self.marker.write(self.sinks["fragments"])
        if self.marker and "metrics" in self.sinks:
            self.sinks["metrics"].write(self.marker.metrics(command_line).encode())
        self.reports.write(self.records.name, self.marker, command_line)


def choose_compression(config: SearchConfig, backends: Sequence[Backend]) -> Compression:
    """Return the compression of all outputs, with the configured level and codec; the codec is chosen on first use."""

    def open_codec() -> Codec:
        return choose_codec(config.codec, compression.level, backends)

    compression = Compression(open_codec, config.level)
    return compression


@contextlib.contextmanager
def open_outputs(config: SearchConfig, reference: Reference, backends: Sequence[Backend]) -> Iterator[SearchOutputs]:
    """Open the outputs of a search; on exit abort those that have not been committed. The first device sorts, marks and
    counts records."""
    first = backends[0]
    marker: DuplicateMarker | None = None
    shard = config.shard if isinstance(config.shard, Shard) else None
    if config.for_merge:
        marker = FragmentRecorder(config.duplicate_rules, first, shard=shard)
    elif config.marks_duplicates:
        marker = DuplicateMarker(config.duplicate_rules, first)
    survey = Survey(first, config.order is SortOrder.COORDINATE) if config.makes_quality_report else None
    compression = choose_compression(config, backends)
    with contextlib.ExitStack() as opened:
        reports = opened.enter_context(open_reports(config.report, config.multiqc, survey))
        records = open_records(config, reference, first, compression, marker, [survey] if survey else [])
        sinks = {"output": opened.enter_context(records)}
        if config.unmapped is not None:
            sinks["unmapped"] = opened.enter_context(open_by_ending(config.unmapped, first.threads, compression))
        if config.for_merge:
            sinks["fragments"] = opened.enter_context(open_output(f"{config.output}{FRAGMENTS_SUFFIX}"))
        if config.metrics is not None:
            sinks["metrics"] = opened.enter_context(open_output(config.metrics))
        yield SearchOutputs(sinks, compression, marker, survey, reports)


def describe_sorting(config: SearchConfig, reads: Sequence[str], backend: Backend) -> str | None:
    """Return a line about the memory and disk that sorting takes; None if nothing is sorted or sizes are unknown.
    reads: paths of the files of reads."""
    memory, sizes = config.sort_bytes, [_estimate_fastq_bytes(path) for path in reads]
    if memory is None or config.output is None or not all(sizes):
        return None
    records = BAM_SHARE * sum(size for size in sizes if size)
    line = f"sorting takes up to {format_bytes(min(memory, records))} of memory"
    if _holds_runs(backend, config.order):
        line += f", the first of it on {backend.name}"
    if records <= memory:
        return line
    folder = scratch_folder(config.output)
    free = shutil.disk_usage(folder).free
    line += f", and about {format_bytes(records)} of the disk of {folder}, where {format_bytes(free)} are free"
    return line if records <= free else f"warning: {line}: give more by --sort-memory, or name another disk by TMPDIR"


def _estimate_fastq_bytes(path: str) -> float | None:
    """Return the approximate size in bytes of a file as plain FASTQ, or None for pipes and other streams."""
    if not os.path.isfile(path):
        return None
    return os.path.getsize(path) * (1.0 if path.endswith(PLAIN) else COMPRESSED_SHARE)


def open_records(
    config: SearchConfig,
    reference: Reference,
    backend: Backend,
    compression: Compression | None = None,
    marker: Marker | None = None,
    observers: Sequence[Observer] = (),
) -> ByteSink:
    """Open the output of the records, with sorting, compression and an index if the configuration asks for them.
    marker: knows which records are duplicates. observers: measure the sorted records. Raises UsageError if a contig is
    too long for the index format that was asked for."""
    path, kind, order, threads = config.output, config.output_format, config.order, backend.threads
    if kind not in BINARY:
        return open_by_ending(path, threads, compression)
    is_indexed = order is SortOrder.COORDINATE and not _is_stream(path)
    index, buffer = None, None
    with contextlib.ExitStack() as opened:
        if kind is OutputFormat.CRAM:
            letters = _letters(reference)
            output: ByteSink = open_samtools_output(path, reference.contigs, letters, threads, is_indexed)
        else:
            wanted = IndexFormat(config.index_format) if config.index_format else None
            index_format = _choose_index_format(wanted, reference.contigs) if is_indexed else None
            output = bam = open_bgzf(path, threads, compression or Compression())
            buffer = bam.buffer
            if index_format:
                index = BamIndex([contig.length for contig in reference.contigs], index_format, bam)
        opened.enter_context(output)
        sink, memory = output, config.sort_bytes
        if memory is not None:
            runs = None
            if _holds_runs(backend, order):
                needed, contigs = plan_chunks([backend]).working_bytes, len(reference.contigs)
                runs = DeviceRuns(backend, contigs, config.sort_memory_limit, needed)
            sink = SortedOutput(output, memory, index, CpuBackend(threads), buffer, runs, marker, observers)
        opened.pop_all()
    return sink


def _is_stream(path: str | None) -> bool:
    """Return True if the output is not a file, so that no index can be written next to it."""
    return path in STANDARD_OUTPUT or (path is not None and os.path.exists(path) and not os.path.isfile(path))


def _holds_runs(backend: Backend, order: SortOrder | None) -> bool:
    """Return True if sorted runs of records stay in the memory of the device: for a coordinate sort on a GPU."""
    return order is SortOrder.COORDINATE and backend.memory() is not None


def _choose_index_format(wanted: IndexFormat | None, contigs: Sequence[Contig]) -> IndexFormat:
    """Return `wanted`, or the format that the contigs need; raises UsageError if a contig is too long for BAI."""
    longest = max(contigs, key=lambda contig: contig.length)
    needed = format_for(longest.length)
    if wanted is IndexFormat.BAI and needed is not wanted:
        bases = f"{printable(longest.name)} has {longest.length:,} bases"
        raise UsageError(f"{option('index_format')} bai: {bases}, and BAI reaches {MAX_BAI_LENGTH:,}")
    return wanted or needed


def _letters(reference: Reference) -> Iterator[Letters]:
    for contig in range(len(reference.contigs)):
        start, end = int(reference.contig_starts[contig]), int(reference.contig_starts[contig + 1]) - 1
        yield (reference.letters(at, min(at + UNPACKED_LETTERS, end)) for at in range(start, end, UNPACKED_LETTERS))
