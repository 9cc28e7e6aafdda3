"""Merge sorted shards of one run into one file with duplicates marked across shards.

search --for-merge   s1.bam, s1.bam.fragments   records with the index of their fragment; the fragments of the shard
                     s2.bam, s2.bam.fragments
merge                all fragments -> duplicates; then the records of all shards, marked while they are written
"""

import contextlib
import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.bam.marking import FRAGMENT_TAG_BYTES, Marking
from readmap.bam.order import SortedRecords, detach_fragment_tags, offset_fragment_ids
from readmap.bam.sorted_output import SortedOutput, add_run
from readmap.duplicates.files import record_chunk_bytes
from readmap.duplicates.fragments import COUNTERS, FRAGMENT_WORDS, FragmentBatch
from readmap.duplicates.marker import DuplicateMarker, DuplicateRules
from readmap.errors import DataError, UsageError
from readmap.formats.output import ByteSink
from readmap.reads.alignment_reads import AlignmentReads
from readmap.reads.shards import Shard

#: Suffix of the fragments file of a shard, and the version of its format.
FRAGMENTS_SUFFIX, FORMAT = ".fragments", 1

#: dtypes and row shapes of the arrays in the file.
_KNOWN = [(np.dtype(np.int64), (FRAGMENT_WORDS,)), (np.dtype(np.uint64), ()), (np.dtype(np.int64), (COUNTERS,))]


class FragmentRecorder(DuplicateMarker):
    """A marker for shards, which keeps fragment indices in the records and writes the fragments to a file."""

    def __init__(self, rules: DuplicateRules, backend: Backend, first: int = 0, shard: Shard | None = None) -> None:
        """first: index of the first fragment. shard: the part of the reads; None if the shard is a whole input."""
        super().__init__(rules, backend)
        self._first, self._shard = first, shard

    def take(self, described: FragmentBatch, run: SortedRecords) -> None:
        offset_fragment_ids(run, self._first + self.table.add(described), self._backend)

    def marking(self, backend: Backend) -> Marking:
        """Return a marking that keeps the fragment indices in the records."""
        return Marking(backend.empty(0, np.uint8), FRAGMENT_TAG_BYTES, is_kept=True)

    def write(self, output: ByteSink) -> None:
        """Write the fragments, which leave the table, and the shard's number to an uncompressed .npz archive."""
        table, backend = self.table, self._backend
        with backend.thread_stream():
            rows, barcodes = (backend.to_host(array) for array in table.take(backend))
        arrays = {"rows": rows, "barcodes": barcodes, "counters": table.counters, "format": np.array(FORMAT)}
        arrays["barcode_tag"] = np.array(table.barcode_tag or "")
        arrays["shard"] = np.array([self._shard.number, self._shard.count] if self._shard else [0, 0])
        with zipfile.ZipFile(_SequentialFile(output), "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)


class _SequentialFile(io.RawIOBase):
    """An output as a file object without seeking."""

    def __init__(self, output: ByteSink) -> None:
        super().__init__()
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._output.write(data)
        return len(data)


@dataclass(frozen=True)
class ShardFragments:
    """The fragments of a shard: rows, barcodes and counters as in FragmentTable."""

    rows: NDArray[np.int64]
    barcodes: NDArray[np.uint64]
    counters: NDArray[np.int64]


def read_fragments(path: str) -> ShardFragments:
    """Read the fragments file of a shard; raise DataError if it is invalid, OSError if it cannot be read."""
    with _open_fragments(path) as stored:
        found = ShardFragments(stored["rows"], stored["barcodes"], stored["counters"])
        known = [(array.dtype, array.shape[1:]) for array in (found.rows, found.barcodes, found.counters)]
        if known != _KNOWN or len(found.barcodes) != (len(found.rows) if str(stored["barcode_tag"]) else 0):
            raise ValueError(path)
        return found


@contextlib.contextmanager
def _open_fragments(path: str) -> Iterator[Any]:
    """Open the fragments file of a shard, whose arrays are read on access; raises as read_fragments does."""
    name = path + FRAGMENTS_SUFFIX
    try:
        with open(name, "rb") as file, np.load(file, allow_pickle=False) as stored:
            if int(stored["format"]) != FORMAT:
                raise DataError(f"{name}: expected format {FORMAT}, found {int(stored['format'])}")
            yield stored
    except (KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile):
        raise DataError(f"{name}: expected a file written by readmap search --for-merge") from None


def verify_shards(shards: Sequence[str], headers: Sequence[Sequence[str]], barcode_tag: str | None) -> None:
    """Raise UsageError unless these are all shards of one run, in order, with equal headers and this barcode tag."""
    first, parts = _without_programs(headers[0]), list[Shard]()
    for path, header in zip(shards, headers, strict=True):
        if _without_programs(header) != first:
            raise UsageError(f"{path} has a different header than {shards[0]}: expected shards of one run")
        with _open_fragments(path) as stored:
            found = str(stored["barcode_tag"]) or None
            parts.append(Shard(*map(int, stored["shard"])))
        if found != barcode_tag:
            given = barcode_tag or "is not given"
            raise UsageError(f"--barcode-tag {given}: {path} was searched with {found or 'none'}")
    if not any(part.count for part in parts):
        return  # whole inputs, not parts
    wanted = [Shard(number, parts[0].count) for number in range(1, parts[0].count + 1)]
    for path, part, expected in zip_longest(shards, parts, wanted):
        if part != expected:
            what = f"shard {expected.number} of {expected.count}" if expected else "no more shards"
            of_path = f"{path}, shard {part.number} of {part.count}" if part and part.count else path or "none"
            raise UsageError(f"expected all shards of one run in order: expected {what}, found {of_path}")


def merge_shard(
    path: str,
    reads: AlignmentReads,
    output: SortedOutput,
    duplicates: DuplicateMarker,
    backend: Backend,
    progress: Callable[[int], None],
) -> int:
    """Write the records of a shard to a sorting output and register its fragments; return the number of records.

    path: the shard that `reads` reads. progress: called with the number of records so far. Raises DataError if a record
        does not belong to the shard, and the errors of reading and writing.
    """
    fragments, record_count = read_fragments(path), 0
    try:
        first = duplicates.table.restore(fragments.rows, fragments.barcodes, fragments.counters)
    except ValueError:
        raise DataError(f"{path}{FRAGMENTS_SUFFIX}: expected the fragments of {path}") from None
    for records in reads.records(record_chunk_bytes(backend)):
        if len(records) == 0:
            continue  # the first record is damaged; the next step raises the error
        start, end = int(records.starts[0]), int(records.starts[-1])
        data, ends = backend.upload([records.bytes[start:end].copy()]), backend.to_device(records.starts[1:] - start)
        run, wrong = detach_fragment_tags(data, ends, len(reads.contigs), len(fragments.rows), backend)
        if wrong is not None:
            expected = "expected sorted records with their fragment's number in the tag ZF, as written by --for-merge"
            raise DataError(f"{reads.name}, record {record_count + wrong + 1}: {expected}")
        offset_fragment_ids(run, first, backend)
        add_run(run, output, backend)
        record_count += len(records)
        progress(record_count)
    return record_count


def _without_programs(header: Sequence[str]) -> list[str]:
    return [line for line in header if not line.startswith("@PG")]
