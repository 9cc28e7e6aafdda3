"""Alignments -> sorted alignments with duplicates marked."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compaction import ANY_FLAG, select_flagged
from readmap.backend.cpu import CpuBackend
from readmap.bam.codecs import libdeflate_codec
from readmap.bam.device_sorted_runs import DeviceRuns
from readmap.bam.file_index import format_for
from readmap.bam.memory import sort_memory_bytes
from readmap.bam.order import SortOrder, sort_records
from readmap.bam.sorted_output import BamIndex, SortedOutput, add_run
from readmap.duplicates.marker import DuplicateMarker
from readmap.errors import DataError
from readmap.formats.bgzf import LEVEL
from readmap.formats.output import open_output
from readmap.formats.sam import binary_header, read_groups, sorted_header
from readmap.qc.survey import Survey
from readmap.reads.alignment_reads import AlignmentReads, open_reads
from readmap.version import __version__

#: Device memory per byte of records until they are a sorted run.
WORKING_BYTES = 4

#: Maximum bytes of records that are processed together.
MAX_CHUNK_BYTES = 256 << 20

#: Tag with the type of a duplicate, removed from the input.
TYPE_TAG = "DT"

_BEGIN = Kernel("duplicates/fragments", "mark_fragment_starts")

Integers = NDArray[np.int64]


@contextlib.contextmanager
def open_alignments(path: str, is_grouped: bool, threads: int) -> Iterator[AlignmentReads]:
    """Open BAM or CRAM with the records of each fragment next to each other, and without DT tags.

    path: "-" for standard input. is_grouped: the records are known to be grouped; otherwise samtools collate groups
        them, unless the header says they are. Raises DataError for another format, and the errors of open_reads.
    """
    if path != "-" and not is_grouped:
        with _alignments(path, False, threads) as reads:
            is_grouped = _are_grouped(reads.header)
    with _alignments(path, not is_grouped, threads) as reads:
        yield reads


@contextlib.contextmanager
def _alignments(path: str, collate: bool, threads: int) -> Iterator[AlignmentReads]:
    """Open BAM or CRAM, collated by samtools if `collate`; raise DataError if the file is neither."""
    reads = open_reads(path, threads, collate, dropped=[TYPE_TAG])
    if not isinstance(reads, AlignmentReads):
        reads.close()
        raise DataError(f"{path}: expected BAM or CRAM, found neither")
    try:
        yield reads
    finally:
        reads.close()
        reads.drop()


@contextlib.contextmanager
def open_marked(
    path: str,
    reads: AlignmentReads,
    memory: int | None,
    duplicates: DuplicateMarker,
    backend: Backend,
    command: str,
    survey: Survey | None = None,
) -> Iterator[SortedOutput]:
    """Open a sorted BAM output and its index, write its header, and set the header of `duplicates` and `survey`.

    memory: bytes for sorting; None for the default. duplicates: marks the records. command: for the @PG line.
    """
    host_memory, threads = sort_memory_bytes(memory), backend.threads
    lengths, groups = [length for _, length in reads.contigs], read_groups(reads.header)
    duplicates.set_header(groups, lengths)
    if survey is not None:
        survey.set_header(groups, reads.contigs)
    with contextlib.ExitStack() as opened:
        bam = opened.enter_context(libdeflate_codec().open(open_output(path), threads, LEVEL))
        index = BamIndex(lengths, format_for(max(lengths, default=0)), bam)
        device_runs = None
        if backend.memory() is not None:
            device_runs = DeviceRuns(backend, len(lengths), memory, WORKING_BYTES * record_chunk_bytes(backend))
        observers, cpu = [survey] if survey else [], CpuBackend(threads)
        output = SortedOutput(bam, host_memory, index, cpu, bam.buffer, device_runs, duplicates, observers)
        opened.pop_all()
    with output:
        lines = sorted_header(reads.header, __version__, command, SortOrder.COORDINATE)
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        output.write(binary_header(text, reads.contigs))
        yield output


def record_chunk_bytes(backend: Backend) -> int:
    return min(backend.chunk_bytes, MAX_CHUNK_BYTES)


def _are_grouped(header: Sequence[str]) -> bool:
    """Return True if the header says that the records of a fragment are next to each other."""
    first = next((line.split("\t") for line in header if line.startswith("@HD")), [])
    return "SO:queryname" in first or "GO:query" in first


def mark_file(
    reads: AlignmentReads,
    output: SortedOutput,
    duplicates: DuplicateMarker,
    backend: Backend,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write all records, grouped by fragment, to a sorting output and register their fragments; return their number."""
    record_count, contigs = 0, len(reads.contigs)
    for data, starts, firsts in _whole_fragments(reads, backend):
        lengths = np.diff(starts)
        given = data, backend.to_device(lengths), backend.to_device(starts[1:])
        described = duplicates.table.describe(*given, backend.to_device(firsts))
        run = sort_records(*given, contigs, backend, described.numbers)
        duplicates.take(described, run)
        add_run(run, output, backend)
        record_count += len(lengths)
        if progress:
            progress(record_count)
    return record_count


def _whole_fragments(reads: AlignmentReads, backend: Backend) -> Iterator[tuple[Array, Integers, Integers]]:
    """Yield chunks of whole fragments: bytes on the device, record bounds, and bounds of fragments in records."""
    left, left_starts = np.empty(0, np.uint8), np.zeros(1, np.int64)
    for records in reads.records(record_chunk_bytes(backend)):
        if len(records) == 0:
            continue  # the first record is damaged; the next step raises the error
        start, end = int(records.starts[0]), int(records.starts[-1])
        data = np.concatenate([left, records.bytes[start:end]])
        starts = np.concatenate([left_starts[:-1], records.starts - start + len(left)])
        on_device = backend.upload([data])
        firsts = _find_fragment_starts(on_device, starts, backend)
        last = int(firsts[-1])  # records of the next chunk may belong to the last fragment
        if last:
            yield on_device[: starts[last]], starts[: last + 1], firsts
        left, left_starts = data[starts[last] :], starts[last:] - starts[last]
    if len(left):
        yield backend.upload([left]), left_starts, np.array([0, len(left_starts) - 1], np.int64)


def _find_fragment_starts(data: Array, starts: Integers, backend: Backend) -> Integers:
    """Return the indices of the records that start a fragment, int64; starts: record bounds in `data`."""
    count = len(starts) - 1
    is_start = backend.empty(count, np.uint8)
    backend.launch(_BEGIN, count, bytes=data, starts=backend.to_device(starts), is_start=is_start)
    return backend.to_host(select_flagged(is_start, ANY_FLAG, backend)).astype(np.int64)
