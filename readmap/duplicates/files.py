"""A file of alignments -> the same with its duplicates marked, sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend, Kernel
from readmap.backend.marks import ANY_MARK, list_marked
from readmap.bam.order import SortedRecords, host_keys, sort_records
from readmap.bam.sorted_output import SortedOutput
from readmap.duplicates.marker import Duplicates
from readmap.reads.alignment_reads import AlignmentReads

_BEGIN = Kernel("duplicates/fragments", "begin_fragments")

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


def are_grouped(header: list[str]) -> bool:
    """Whether a header says that the records of a fragment stand together."""
    first = next((line.split("\t") for line in header if line.startswith("@HD")), [])
    return "SO:queryname" in first or "GO:query" in first


def mark_file(
    reads: AlignmentReads,
    output: SortedOutput,
    duplicates: Duplicates,
    backend: Backend,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Give all records to an output that sorts, and their fragments to those whose duplicates it marks; how many.

    reads: whose records of a fragment stand together. progress: called with the records so far.
    Raises DataError and OSError as reading and writing do.
    """
    seen, contigs = 0, len(reads.contigs)
    for data, starts, firsts in _whole_fragments(reads, backend):
        lengths = np.diff(starts)
        given = backend.upload([data]), backend.to_device(lengths), backend.to_device(starts[1:])
        described = duplicates.describe(*given, backend.to_device(firsts), backend)
        run = sort_records(*given, contigs, backend, described.numbers)
        duplicates.take(described, run, backend)
        _put(run, output, backend)
        seen += len(lengths)
        if progress:
            progress(seen)
    return seen


def _put(run: SortedRecords, output: SortedOutput, backend: Backend) -> None:
    """Give a run to the output."""
    if output.from_device:
        backend.synchronize()
        output.hold(run, lambda: None)
    else:
        output.begin_run(host_keys(run, backend), backend.to_host(run.ends))
        output.write(backend.to_host(run.bytes))


def _whole_fragments(reads: AlignmentReads, backend: Backend) -> Iterator[tuple[Bytes, Places, Places]]:
    """Bytes of records, where each begins and the last one ends, and the numbers of those that begin a fragment, with
    their number behind them; no fragment is divided."""
    left, left_starts = np.empty(0, np.uint8), np.zeros(1, np.int64)
    for records in reads.records(backend.chunk_bytes):
        begin, end = int(records.starts[0]), int(records.starts[-1])
        data = np.concatenate([left, records.bytes[begin:end]])
        starts = np.concatenate([left_starts[:-1], records.starts - begin + len(left)])
        firsts = _firsts(data, starts, backend)
        last = int(firsts[-1])  # what is behind may belong to it
        if last:
            yield data[: starts[last]], starts[: last + 1], firsts
        left, left_starts = data[starts[last] :], starts[last:] - starts[last]
    if len(left):
        count = len(left_starts) - 1
        yield left, left_starts, np.array([0, count], np.int64)


def _firsts(data: Bytes, starts: Places, backend: Backend) -> Places:
    """The numbers of the records that begin a fragment."""
    count = len(starts) - 1
    begins = backend.empty(count, np.uint8)
    backend.launch(_BEGIN, count, bytes=backend.upload([data]), starts=backend.to_device(starts), begins=begins)
    return backend.to_host(list_marked(begins, ANY_MARK, backend)).astype(np.int64)
