"""Sorted records -> the index of their file, BAI or CSI (SAM specification, sections 5.2 and CSIv1).

A bin is an interval of a contig: the root is the contig, and each bin has eight bins of the next level. The index has
the file positions of the records of each bin, as chunks, and of the first record that overlaps each window, a smallest
bin.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.compaction import ANY_FLAG, select_flagged
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.backend.cpu import CpuBackend
from readmap.formats.bgzf import BLOCK_BYTES

_BINS, _FLAG, _GATHER = (Kernel("bam/file_index", name) for name in ("compute_bins", "flag_entries", "gather_entries"))
_COLUMNS = ("contigs", "bins", "first_windows", "last_windows")
_ENTRY = row_dtype("bam/file_index.cu", "IndexEntry")
_CONTIG_START, _BIN_START, _WINDOW_START, _REACHES_FURTHER = (
    constant("bam/file_index.cu", name) for name in ("CONTIG_START", "BIN_START", "WINDOW_START", "REACHES_FURTHER")
)

Offsets = NDArray[np.int64]
#: Windows have 2^14 bases, and BAI five levels of bins below the root. CSI has enough levels for 256 bases more than
#: the longest contig, as in htslib.
MIN_SHIFT, BAI_LEVELS = 14, 5
EXTRA_BASES = 256
MAX_BAI_LENGTH = (1 << MIN_SHIFT + 3 * BAI_LEVELS) - 1
#: If the chunks of a bin span fewer compressed bytes, they are moved to its parent, as in htslib: they are read
#: together.
MAX_MERGED_SPAN = 1 << 16
#: Value of a window without records.
NO_OFFSET = np.iinfo(np.int64).max


class IndexFormat(StrEnum):
    """The format of an index, and its file name ending."""

    BAI = "bai"
    CSI = "csi"


def format_for(longest: int) -> IndexFormat:
    """Return BAI, or CSI if the longest contig, of `longest` bases, is too long for it."""
    return IndexFormat.BAI if longest <= MAX_BAI_LENGTH else IndexFormat.CSI


def _bin_levels(longest: int) -> int:
    """Return how many levels of bins below the root a CSI index needs for a contig of `longest` bases."""
    levels = 0
    while longest + EXTRA_BASES > 1 << MIN_SHIFT + 3 * levels:
        levels += 1
    return levels


@dataclass
class _Chunks:
    contigs: NDArray[np.int32]
    bins: NDArray[np.int32]
    starts: Offsets
    ends: Offsets


def _join_into_chunks(contigs: NDArray[np.int32], bins: NDArray[np.int32], starts: Offsets, ends: Offsets) -> _Chunks:
    """Join successive records, or chunks, of the same contig and bin to one chunk."""
    firsts = np.flatnonzero(np.diff(contigs, prepend=-1) | np.diff(bins, prepend=-1))
    lasts = np.append(firsts, len(bins))[1:] - 1
    return _Chunks(contigs[firsts], bins[firsts], starts[firsts], ends[lasts])


class IndexEntries(NamedTuple):
    """The records of a piece that the index needs, in order."""

    rows: NDArray[Any]  # _ENTRY [entries], also of the last record; offsets and indices are relative to the first
    records: int  # of the piece
    size: int  # bytes of the piece


class FileIndex:
    """Builds the index of a file while it is written. `measure` is thread-safe; `accumulate` is called in order."""

    def __init__(self, lengths: Sequence[int], index_format: IndexFormat, header_bytes: int) -> None:
        """lengths: contig lengths. header_bytes: uncompressed size of the header."""
        self._format = index_format
        self._lengths = lengths
        self._levels = BAI_LEVELS if index_format is IndexFormat.BAI else _bin_levels(max(lengths, default=0))
        self._end = header_bytes
        self._backend = CpuBackend(1)
        self._window_starts = np.cumsum([0, *(-(-length >> MIN_SHIFT) for length in lengths)])
        self._pieces = list[IndexEntries]()

    def measure(self, records: Array, ends: Array, origin: int = 0, backend: Backend | None = None) -> IndexEntries:
        """Compute the index entries of records, uint8, on the device of `backend`, by default the host.

        ends: int64, where each record ends, relative to the first record plus `origin`.
        """
        backend, count = backend or self._backend, len(ends)
        columns = dict(zip(_COLUMNS, backend.empty((len(_COLUMNS), count), np.int32), strict=True))
        are_mapped, marks, shift = backend.empty(count, np.int64), backend.empty(count, np.uint8), {"origin": origin}
        shape = {"min_shift": MIN_SHIFT, "levels": self._levels}
        backend.launch(_BINS, count, bytes=records, ends=ends, **columns, are_mapped=are_mapped, **shape, **shift)
        backend.launch(_FLAG, count, **columns, marks=marks, records=count)
        indices, mapped_ends = select_flagged(marks, ANY_FLAG, backend), backend.inclusive_sum(are_mapped)
        entries = backend.empty((len(indices), _ENTRY.itemsize // 8), np.int64)
        arrays = {"indices": indices, "ends": ends, "marks": marks, "mapped_ends": mapped_ends, "entries": entries}
        backend.launch(_GATHER, len(indices), **columns, **arrays, **shift)
        return IndexEntries(backend.to_host(entries).view(_ENTRY)[:, 0], count, len(records))

    def accumulate(self, entries: IndexEntries) -> None:
        self._pieces.append(entries)
        self._end += entries.size

    def write(self, block_sizes: Sequence[int], block_starts: Offsets | None = None) -> bytes:
        """Return the index as the bytes of its file.

        block_sizes: compressed, without end-of-file block. block_starts: in text; None if all but the last are full.
        """
        blocks = np.concatenate([[0], np.cumsum(block_sizes, dtype=np.int64)])
        are_whole = block_starts is None
        starts = BLOCK_BYTES * np.arange(len(block_sizes)) if block_starts is None else block_starts
        starts = np.append(starts, self._end)

        def virtual(offsets: Offsets) -> Offsets:
            if are_whole:  # a binary search would dominate the total time
                found = np.where(offsets == self._end, len(block_sizes), offsets // BLOCK_BYTES)
            else:
                found = np.searchsorted(starts, offsets, "right") - 1
            return blocks[found] << 16 | offsets - starts[found]

        rows, records = self._all_entries()

        def marked(mark: int) -> Any:
            return rows[(rows["mark"] & mark) > 0]

        bins, contigs = marked(_BIN_START), marked(_CONTIG_START)
        chunks = _join_into_chunks(bins["contig"][:-1], bins["bin"][:-1], bins["start"][:-1], bins["start"][1:])
        if len(chunks.bins):
            chunks.starts, chunks.ends = virtual(chunks.starts), virtual(chunks.ends)
            _merge_into_parents(chunks, self._levels)
        meta, used = self._contig_metadata(contigs)
        meta[used, :2] = virtual(meta[used, :2])
        windows = self._window_offsets(marked(_WINDOW_START)[:-1], marked(_REACHES_FURTHER)[:-1], used)
        reached = windows != NO_OFFSET
        windows[reached] = virtual(windows[reached])
        parts = [self._header(len(self._lengths))]
        bounds = np.searchsorted(chunks.contigs, np.arange(len(self._lengths) + 1))
        for contig in range(len(self._lengths)):
            if not used[contig]:
                parts.append(struct.pack("<i", 0) + (struct.pack("<i", 0) if self._format is IndexFormat.BAI else b""))
                continue
            part = slice(bounds[contig], bounds[contig + 1])
            start, end = self._window_starts[contig : contig + 2]
            used_windows = windows[start:end]
            used_windows = used_windows[: int(np.count_nonzero(used_windows != NO_OFFSET))]
            own_chunks = chunks.bins[part], chunks.starts[part], chunks.ends[part]
            parts.append(self._encode_contig(*own_chunks, used_windows, meta[contig]))
        return b"".join([*parts, struct.pack("<Q", records - int(rows["index"][-1]))])

    def _all_entries(self) -> tuple[NDArray[Any], int]:
        """Return the entries of records with a contig, and for the end, at file offsets; and the number of records."""
        rows = np.empty(sum(len(piece.rows) for piece in self._pieces) + 1, _ENTRY)
        first, records, mapped = 0, 0, 0
        start = self._end - sum(piece.size for piece in self._pieces)
        for piece in self._pieces:
            own = rows[first : first + len(piece.rows)]
            own[...] = piece.rows
            own["start"] += start
            own["index"] += records
            own["mapped"] += mapped
            if piece.records:
                mapped = int(own["mapped"][-1] + own["is_mapped"][-1])
            first, start, records = first + len(own), start + piece.size, records + piece.records
        placed = int(np.count_nonzero(rows["contig"][:-1] >= 0))  # records without a contig come last
        last = rows[placed]
        if placed == first:
            last["start"], last["index"], last["mapped"] = start, records, mapped
        last["mark"], last["contig"] = ANY_FLAG, -1
        return rows[: placed + 1], records

    def _contig_metadata(self, rows: NDArray[Any]) -> tuple[Offsets, NDArray[np.bool_]]:
        """Return int64 [contigs, 4], start and end of the records and numbers of mapped and unmapped records, and
        whether a contig has records, bool [contigs]. rows: the first records of contigs in each piece."""
        rows = rows[np.diff(rows["contig"], prepend=-1) != 0]
        contigs, mapped, records = rows["contig"][:-1], np.diff(rows["mapped"]), np.diff(rows["index"])
        meta, used = np.zeros((len(self._lengths), 4), np.int64), np.zeros(len(self._lengths), np.bool_)
        meta[contigs] = np.stack([rows["start"][:-1], rows["start"][1:], mapped, records - mapped], axis=1)
        used[contigs] = True
        return meta, used

    def _window_offsets(self, first: NDArray[Any], longer: NDArray[Any], used: NDArray[np.bool_]) -> Offsets:
        """Return the offset of the first record of each window; an empty window has the offset of the next one.

        first: first records of windows; longer: records that overlap further windows; used: contigs with records.
        """
        windows, starts = np.full(self._window_starts[-1], NO_OFFSET, np.int64), self._window_starts
        np.minimum.at(windows, first["first_window"] + starts[first["contig"]], first["start"])
        step = 1
        while len(longer):
            reached = longer["first_window"] + starts[longer["contig"]] + step
            np.minimum.at(windows, np.minimum(reached, starts[longer["contig"] + 1] - 1), longer["start"])
            step += 1
            longer = longer[longer["last_window"] >= longer["first_window"] + step]
        for contig in np.flatnonzero(used):
            own = windows[starts[contig] : starts[contig + 1]]
            own[:] = np.minimum.accumulate(own[::-1])[::-1]
        return windows

    def _header(self, contigs: int) -> bytes:
        if self._format is IndexFormat.BAI:
            return struct.pack("<4si", b"BAI\1", contigs)
        return struct.pack("<4siiii", b"CSI\1", MIN_SHIFT, self._levels, 0, contigs)

    def _encode_contig(
        self, bins: NDArray[np.int32], starts: Offsets, ends: Offsets, windows: Offsets, meta: NDArray[np.int64]
    ) -> bytes:
        """Encode a contig's bins with their chunks, its metadata and, for BAI, its windows, as in the index file."""
        firsts = np.flatnonzero(np.diff(bins, prepend=-1))
        counts = np.diff(np.append(firsts, len(bins)))
        is_bai = self._format is IndexFormat.BAI
        header_words = 2 if is_bai else 4
        # 32-bit words of each bin: its number, for CSI the offset of its first record, the number of chunks, and the
        # chunks.
        words = np.empty(header_words * len(firsts) + 4 * len(bins), np.uint32)
        headers = header_words * np.arange(len(firsts)) + 4 * firsts
        words[headers] = bins[firsts]
        words[headers + header_words - 1] = counts
        if not is_bai:
            offsets = self._bin_offsets(bins[firsts], windows)
            words[headers + 1], words[headers + 2] = offsets & 0xFFFFFFFF, offsets >> 32
        at = np.repeat(headers + header_words, counts) + 4 * (np.arange(len(bins)) - np.repeat(firsts, counts))
        for offset, values in ((0, starts), (2, ends)):
            words[at + offset], words[at + offset + 1] = values & 0xFFFFFFFF, values >> 32
        all_bins = ((1 << 3 * (self._levels + 1)) - 1) // 7
        meta_bin = struct.pack("<II", all_bins + 1, 2) if is_bai else struct.pack("<IQI", all_bins + 1, 0, 2)
        parts = [struct.pack("<i", len(firsts) + 1), words.astype("<u4").tobytes()]
        parts.append(meta_bin + meta.astype("<i8").tobytes())
        if is_bai:
            parts.append(struct.pack("<i", len(windows)) + windows.astype("<i8").tobytes())
        return b"".join(parts)

    def _bin_offsets(self, bins: NDArray[np.int32], windows: Offsets) -> Offsets:
        """Return the offset of the first record that overlaps each bin's first window; 0 after the last used window."""
        lowest = bins.astype(np.int64)
        for _ in range(self._levels):
            first_below = ((1 << 3 * self._levels) - 1) // 7
            lowest = np.where(lowest < first_below, 8 * lowest + 1, lowest)
        lowest -= ((1 << 3 * self._levels) - 1) // 7
        inside = lowest < len(windows)
        return np.where(inside, windows[np.where(inside, lowest, 0)], 0)


def _merge_into_parents(chunks: _Chunks, levels: int) -> None:
    """Move the chunks of a bin that are close together to its parent, if that has chunks; then join adjacent chunks.

    The chunks are given in file order; afterwards they are sorted by bin, and in file order within a bin.
    """
    names = chunks.contigs.astype(np.int64) << 32 | chunks.bins
    for level in range(levels, 0, -1):
        order = np.argsort(names, kind="stable")
        found = names[order]
        firsts = np.flatnonzero(np.diff(found, prepend=-1))
        counts = np.diff(np.append(firsts, len(found)))
        bins = found[firsts] & 0xFFFFFFFF
        parent = found[firsts] - bins + ((bins - 1) >> 3)
        is_close = (chunks.ends[order[firsts + counts - 1]] >> 16) - (
            chunks.starts[order[firsts]] >> 16
        ) < MAX_MERGED_SPAN
        is_level = (bins >= ((1 << 3 * level) - 1) // 7) & (bins < ((1 << 3 * (level + 1)) - 1) // 7)
        has_chunks = found[np.minimum(np.searchsorted(found, parent), len(found) - 1)] == parent
        names[order] = np.repeat(np.where(is_level & is_close & has_chunks, parent, found[firsts]), counts)
    order = np.argsort(names, kind="stable")
    names, starts, ends = names[order], chunks.starts[order], chunks.ends[order]
    apart = (np.diff(names, prepend=-1) != 0) | (np.append([0], ends[:-1]) >> 16 < starts >> 16)
    firsts = np.flatnonzero(apart)
    lasts = np.append(firsts[1:], len(names)) - 1
    chunks.contigs, chunks.bins = (names[firsts] >> 32).astype(np.int32), names[firsts].astype(np.int32)
    chunks.starts, chunks.ends = starts[firsts], ends[lasts]
