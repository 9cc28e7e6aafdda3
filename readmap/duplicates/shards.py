"""Sorted shards of one run -> one file: what decides duplicates travels in a file beside each shard, not its records.

search --for-merge   s1.bam, s1.bam.fragments   records with the numbers of their fragments; of these, what they are
                     s2.bam, s2.bam.fragments
merge                all fragments -> duplicates; then the records, marked on their way
"""

from __future__ import annotations

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
from readmap.bam.marking import TAIL, Marking
from readmap.bam.order import SortedRecords, hold_sorted, number_fragments
from readmap.bam.sorted_output import SortedOutput, add_run
from readmap.duplicates.files import record_chunk_bytes
from readmap.duplicates.fragments import COUNTERS, FRAGMENT_WORDS, FragmentBatch
from readmap.duplicates.marker import DuplicateMarker, DuplicateRules
from readmap.errors import DataError, UsageError
from readmap.formats.output import ByteSink
from readmap.reads.alignment_reads import AlignmentReads
from readmap.reads.shards import Shard

#: Of the file beside a shard; and the format of such files.
FRAGMENTS_SUFFIX, FORMAT = ".fragments", 1

#: Of the arrays in a file: dtypes, and the sizes of their rows.
_KNOWN = [(np.dtype(np.int64), (FRAGMENT_WORDS,)), (np.dtype(np.uint64), ()), (np.dtype(np.int64), (COUNTERS,))]


class FragmentRecorder(DuplicateMarker):
    """Marks nothing: records keep the numbers of their fragments, and a file has what decides about these."""

    def __init__(self, rules: DuplicateRules, backend: Backend, first: int = 0, shard: Shard | None = None) -> None:
        """first: the number of the first fragment. shard: the part of the reads; None where they are whole files."""
        super().__init__(rules, backend)
        self._first, self._shard = first, shard

    def take(self, described: FragmentBatch, run: SortedRecords) -> None:
        """As of all duplicates."""
        number_fragments(run, self._first + self.table.add(described), self._backend)

    def marking(self, backend: Backend) -> Marking:
        """That the numbers stay."""
        return Marking(backend.empty(0, np.uint8), TAIL, is_kept=True)

    def write(self, output: ByteSink) -> None:
        """Write all fragments that have come."""
        table, backend = self.table, self._backend
        with backend.thread_stream():
            rows, barcodes = (backend.to_host(array) for array in table.take(backend))
        arrays = {"rows": rows, "barcodes": barcodes, "counters": table.counters, "format": np.array(FORMAT)}
        arrays["barcode_tag"] = np.array(table.barcode_tag or "")
        arrays["shard"] = np.array([self._shard.number, self._shard.count] if self._shard else [0, 0])
        with zipfile.ZipFile(_Stream(output), "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)


class _Stream(io.RawIOBase):
    """An output as a file that is written from front to back."""

    def __init__(self, output: ByteSink) -> None:
        super().__init__()
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._output.write(data)
        return len(data)


@dataclass(frozen=True)
class Fragments:
    """What decides about the fragments of a shard: rows, barcodes and counters, as FragmentTable has them."""

    rows: NDArray[np.int64]
    barcodes: NDArray[np.uint64]
    counters: NDArray[np.int64]


def read_fragments(path: str) -> Fragments:
    """What is beside a shard; raises DataError where it is no such file, and OSError."""
    with _held(path) as held:
        found = Fragments(held["rows"], held["barcodes"], held["counters"])
        known = [(array.dtype, array.shape[1:]) for array in (found.rows, found.barcodes, found.counters)]
        if known != _KNOWN or len(found.barcodes) != (len(found.rows) if str(held["barcode_tag"]) else 0):
            raise ValueError(path)
        return found


@contextlib.contextmanager
def _held(path: str) -> Iterator[Any]:
    """The arrays beside a shard by their names, each read when it is asked for; raises as read_fragments does."""
    beside = path + FRAGMENTS_SUFFIX
    try:
        with open(beside, "rb") as file, np.load(file, allow_pickle=False) as held:
            if int(held["format"]) != FORMAT:
                raise DataError(f"{beside}: expected format {FORMAT}, found {int(held['format'])}")
            yield held
    except (KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile):
        raise DataError(f"{beside}: expected what readmap search --for-merge has written") from None


def verify_shards(shards: Sequence[str], headers: Sequence[Sequence[str]], barcode_tag: str | None) -> None:
    """Raise UsageError where shards are not those of one run: their headers are the same but for @PG, and all parts are
    there, in their order.

    barcode_tag: by which fragments are told apart, as the search of each had it.
    """
    first, parts = _without_programs(headers[0]), list[Shard]()
    for path, header in zip(shards, headers, strict=True):
        if _without_programs(header) != first:
            raise UsageError(f"{path} has another header than {shards[0]}: expected shards of one run")
        with _held(path) as held:
            found = str(held["barcode_tag"]) or None
            parts.append(Shard(*map(int, held["shard"])))
        if found != barcode_tag:
            raise UsageError(
                f"--barcode-tag {barcode_tag or 'is not given'}: {path} was searched with {found or 'none'}"
            )
    if not any(part.count for part in parts):
        return  # files of their own
    wanted = [Shard(number, parts[0].count) for number in range(1, parts[0].count + 1)]
    for path, part, expected in zip_longest(shards, parts, wanted):
        if part != expected:
            what = f"shard {expected.number} of {expected.count}" if expected else "no more shards"
            of_path = f"{path}, shard {part.number} of {part.count}" if part and part.count else path or "none"
            raise UsageError(f"expected all shards of one run in their order, here {what}, found {of_path}")


def merge_shard(
    path: str,
    reads: AlignmentReads,
    output: SortedOutput,
    duplicates: DuplicateMarker,
    backend: Backend,
    progress: Callable[[int], None],
) -> int:
    """Give the records of a shard to an output that sorts, and its fragments to those whose duplicates it marks; how
    many records there are.

    path: of the shard, whose records are read. progress: called with the records so far.
    Raises DataError where a record is none of the shard, and what reading and writing raise.
    """
    fragments, seen = read_fragments(path), 0
    try:
        first = duplicates.table.restore(fragments.rows, fragments.barcodes, fragments.counters)
    except ValueError:
        raise DataError(f"{path}{FRAGMENTS_SUFFIX}: expected the fragments of {path}") from None
    for records in reads.records(record_chunk_bytes(backend)):
        if len(records) == 0:
            continue  # the first one is broken: what follows is the error
        begin, end = int(records.starts[0]), int(records.starts[-1])
        data, ends = backend.upload([records.bytes[begin:end].copy()]), backend.to_device(records.starts[1:] - begin)
        run, wrong = hold_sorted(data, ends, len(reads.contigs), len(fragments.rows), backend)
        if wrong is not None:
            expected = (
                "expected records in order, with their fragments' numbers as the tag ZF, as --for-merge writes them"
            )
            raise DataError(f"{reads.name}, record {seen + wrong + 1}: {expected}")
        number_fragments(run, first, backend)
        add_run(run, output, backend)
        seen += len(records)
        progress(seen)
    return seen


def _without_programs(header: Sequence[str]) -> list[str]:
    return [line for line in header if not line.startswith("@PG")]
