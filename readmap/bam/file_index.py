"""Sorted records -> the index of their file, BAI or CSI: SAM specification, sections 5.2 and CSIv1.

A bin is a part of a contig: one of all of it, eight below that, and so on. The index says where in the file the records
of a bin are, in chunks from one record to another, and where the first record is that reaches each smallest bin.
"""

from __future__ import annotations

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

_FIND, _MARK, _TAKE = (Kernel("bam/file_index", f"{what}_places") for what in ("find", "mark", "take"))
_COLUMNS = ("contigs", "bins", "first_windows", "last_windows")
_PLACE = row_dtype("bam/file_index.cu", "IndexEntry")
_CONTIG_BEGINS, _BIN_BEGINS, _WINDOW_BEGINS, _REACHES_ON = (
    constant("bam/file_index.cu", name) for name in ("CONTIG_START", "BIN_START", "WINDOW_START", "REACHES_FURTHER")
)

Places = NDArray[np.int64]

#: Windows of 2^14 bases, and BAI's levels of bins below that of all. CSI has as many as it needs, by htslib's rule: for
#: some bases more than its longest contig has.
MIN_SHIFT, BAI_LEVELS = 14, 5
BASES_MORE = 256
MAX_BAI_LENGTH = (1 << MIN_SHIFT + 3 * BAI_LEVELS) - 1

#: Chunks of a bin whose compressed bytes all lie so near go to the bin above, as with htslib: they are read together.
NEAR = 1 << 16

#: What a window holds that no record has reached.
NOWHERE = np.iinfo(np.int64).max


class IndexFormat(StrEnum):
    """What the index of a file is called, and its ending."""

    BAI = "bai"
    CSI = "csi"


def format_for(longest: int) -> IndexFormat:
    """The format that holds contigs up to a length."""
    return IndexFormat.BAI if longest <= MAX_BAI_LENGTH else IndexFormat.CSI


def _levels(longest: int) -> int:
    levels = 0
    while longest + BASES_MORE > 1 << MIN_SHIFT + 3 * levels:
        levels += 1
    return levels


@dataclass
class _Chunks:
    """Records that follow each other and have one bin: contigs, bins, and where they begin and end."""

    contigs: NDArray[np.int32]
    bins: NDArray[np.int32]
    begins: Places
    ends: Places


def _chunks(contigs: NDArray[np.int32], bins: NDArray[np.int32], begins: Places, ends: Places) -> _Chunks:
    """Those of records, or of chunks, in order: what follow each other and have one bin."""
    firsts = np.flatnonzero(np.diff(contigs, prepend=-1) | np.diff(bins, prepend=-1))
    lasts = np.append(firsts, len(bins))[1:] - 1
    return _Chunks(contigs[firsts], bins[firsts], begins[firsts], ends[lasts])


class IndexEntries(NamedTuple):
    """What the index is to hear of some records.

    Attributes:
        rows: _PLACE [marked], the records where something begins that an index tells of, and the last one, in order;
            places and numbers count from the first record on.
        records, size: how many there are, and their bytes.
    """

    rows: NDArray[Any]
    records: int
    size: int


class FileIndex:
    """The index of a file that is being written; it hears of all records in order.

    What is to be heard of them threads see at once.
    """

    def __init__(self, lengths: Sequence[int], form: IndexFormat, header_bytes: int) -> None:
        """lengths: of the contigs. header_bytes: in front of the records, before compression."""
        self._form = form
        self._lengths = lengths
        self._levels = BAI_LEVELS if form is IndexFormat.BAI else _levels(max(lengths, default=0))
        self._end = header_bytes
        self._backend = CpuBackend(1)
        self._window_starts = np.cumsum([0, *(-(-length >> MIN_SHIFT) for length in lengths)])
        self._heard = list[IndexEntries]()

    def measure(self, records: Array, ends: Array, origin: int = 0, backend: Backend | None = None) -> IndexEntries:
        """What there is to hear of some records: their bytes, uint8, and where each ends, int64, from `origin` on.

        backend: on which they lie; None for the host.
        """
        return IndexEntries(self._marked(records, ends, origin, backend or self._backend), len(ends), len(records))

    def _marked(self, records: Array, ends: Array, origin: int, backend: Backend) -> NDArray[Any]:
        """The rows of what is seen."""
        count = len(ends)
        columns = dict(zip(_COLUMNS, backend.empty((len(_COLUMNS), count), np.int32), strict=True))
        are_mapped, marks, where = backend.empty(count, np.int64), backend.empty(count, np.uint8), {"origin": origin}
        shape = {"min_shift": MIN_SHIFT, "levels": self._levels}
        backend.launch(_FIND, count, bytes=records, ends=ends, **columns, are_mapped=are_mapped, **shape, **where)
        backend.launch(_MARK, count, **columns, marks=marks, records=count)
        numbers, mapped_ends = select_flagged(marks, ANY_FLAG, backend), backend.inclusive_sum(are_mapped)
        places = backend.empty((len(numbers), _PLACE.itemsize // 8), np.int64)
        given = {"numbers": numbers, "ends": ends, "marks": marks, "mapped_ends": mapped_ends, "places": places}
        backend.launch(_TAKE, len(numbers), **columns, **given, **where)
        return backend.to_host(places).view(_PLACE)[:, 0]

    def accumulate(self, seen: IndexEntries) -> None:
        """Hear of the next records."""
        self._heard.append(seen)
        self._end += seen.size

    def write(self, block_sizes: Sequence[int], block_starts: Places | None = None) -> bytes:
        """The file of the index.

        block_sizes: compressed bytes of each block of the file but the one that ends it. block_starts: int64, where the
        text of each begins; None where all but the last one are whole.
        """
        blocks = np.concatenate([[0], np.cumsum(block_sizes, dtype=np.int64)])
        are_whole = block_starts is None
        starts = BLOCK_BYTES * np.arange(len(block_sizes)) if block_starts is None else block_starts
        starts = np.append(starts, self._end)

        def virtual(places: Places) -> Places:
            """Where bytes lie in the compressed file; what is behind all data is at the block that ends it."""
            if are_whole:  # a search would take most of the time of all
                found = np.where(places == self._end, len(block_sizes), places // BLOCK_BYTES)
            else:
                found = np.searchsorted(starts, places, "right") - 1
            return blocks[found] << 16 | places - starts[found]

        rows, records = self._rows()

        def begun(mark: int) -> Any:
            return rows[(rows["mark"] & mark) > 0]

        bins, contigs = begun(_BIN_BEGINS), begun(_CONTIG_BEGINS)
        chunks = _chunks(bins["contig"][:-1], bins["bin"][:-1], bins["start"][:-1], bins["start"][1:])
        if len(chunks.bins):
            chunks.begins, chunks.ends = virtual(chunks.begins), virtual(chunks.ends)
            _raise_near(chunks, self._levels)
        meta, used = self._meta(contigs)
        meta[used, :2] = virtual(meta[used, :2])
        windows = self._windows(begun(_WINDOW_BEGINS)[:-1], begun(_REACHES_ON)[:-1], used)
        reached = windows != NOWHERE
        windows[reached] = virtual(windows[reached])
        parts = [self._head(len(self._lengths))]
        bounds = np.searchsorted(chunks.contigs, np.arange(len(self._lengths) + 1))
        for contig in range(len(self._lengths)):
            if not used[contig]:
                parts.append(struct.pack("<i", 0) + (struct.pack("<i", 0) if self._form is IndexFormat.BAI else b""))
                continue
            part = slice(bounds[contig], bounds[contig + 1])
            begin, end = self._window_starts[contig : contig + 2]
            own = windows[begin:end]
            own = own[: int(np.count_nonzero(own != NOWHERE))]
            parts.append(self._contig(chunks.bins[part], chunks.begins[part], chunks.ends[part], own, meta[contig]))
        return b"".join([*parts, struct.pack("<Q", records - int(rows["number"][-1]))])

    def _rows(self) -> tuple[NDArray[Any], int]:
        """The rows of all records that have a contig, and one of what is behind them, where all ends that began; how
        many records there are in all."""
        rows = np.empty(sum(len(seen.rows) for seen in self._heard) + 1, _PLACE)
        begin, records, mapped = 0, 0, 0
        start = self._end - sum(seen.size for seen in self._heard)
        for seen in self._heard:
            own = rows[begin : begin + len(seen.rows)]
            own[...] = seen.rows
            own["start"] += start
            own["number"] += records
            own["mapped"] += mapped
            if seen.records:
                mapped = int(own["mapped"][-1] + own["is_mapped"][-1])
            begin, start, records = begin + len(own), start + seen.size, records + seen.records
        placed = int(np.count_nonzero(rows["contig"][:-1] >= 0))  # those without a contig are the last ones
        behind = rows[placed]
        if placed == begin:
            behind["start"], behind["number"], behind["mapped"] = start, records, mapped
        behind["mark"], behind["contig"] = ANY_FLAG, -1
        return rows[: placed + 1], records

    def _meta(self, begun: NDArray[Any]) -> tuple[Places, NDArray[np.bool_]]:
        """Of each contig, int64 [contigs, 4]: where its records begin and end, and how many are mapped and are not; and
        whether it has some. begun: rows where a contig begins, also once more in what was seen next."""
        begun = begun[np.diff(begun["contig"], prepend=-1) != 0]
        contigs, mapped, records = begun["contig"][:-1], np.diff(begun["mapped"]), np.diff(begun["number"])
        meta, used = np.zeros((len(self._lengths), 4), np.int64), np.zeros(len(self._lengths), np.bool_)
        meta[contigs] = np.stack([begun["start"][:-1], begun["start"][1:], mapped, records - mapped], axis=1)
        used[contigs] = True
        return meta, used

    def _windows(self, first: NDArray[Any], longer: NDArray[Any], used: NDArray[np.bool_]) -> Places:
        """The first record of each window; one that none reaches has what the next one has, if any is behind it.

        first: rows of records in windows; longer: of those that reach further ones; used: the contigs that have some.
        """
        windows, starts = np.full(self._window_starts[-1], NOWHERE, np.int64), self._window_starts
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

    def _head(self, contigs: int) -> bytes:
        if self._form is IndexFormat.BAI:
            return struct.pack("<4si", b"BAI\1", contigs)
        return struct.pack("<4siiii", b"CSI\1", MIN_SHIFT, self._levels, 0, contigs)

    def _contig(
        self, bins: NDArray[np.int32], begins: Places, ends: Places, windows: Places, meta: NDArray[np.int64]
    ) -> bytes:
        """The bins of a contig, and behind them the windows."""
        firsts = np.flatnonzero(np.diff(bins, prepend=-1))
        counts = np.diff(np.append(firsts, len(bins)))
        is_bai = self._form is IndexFormat.BAI
        head_words = 2 if is_bai else 4
        # 32-bit words: of each bin its number, CSI's place of the first record that reaches it, its chunks, and these.
        words = np.empty(head_words * len(firsts) + 4 * len(bins), np.uint32)
        heads = head_words * np.arange(len(firsts)) + 4 * firsts
        words[heads] = bins[firsts]
        words[heads + head_words - 1] = counts
        if not is_bai:
            reached = self._reached_first(bins[firsts], windows)
            words[heads + 1], words[heads + 2] = reached & 0xFFFFFFFF, reached >> 32
        at = np.repeat(heads + head_words, counts) + 4 * (np.arange(len(bins)) - np.repeat(firsts, counts))
        for offset, values in ((0, begins), (2, ends)):
            words[at + offset], words[at + offset + 1] = values & 0xFFFFFFFF, values >> 32
        all_bins = ((1 << 3 * (self._levels + 1)) - 1) // 7
        shape = "<II" if is_bai else "<IQI"
        own = (all_bins + 1, 2) if is_bai else (all_bins + 1, 0, 2)
        parts = [struct.pack("<i", len(firsts) + 1), words.astype("<u4").tobytes()]
        parts.append(struct.pack(shape, *own) + meta.astype("<i8").tobytes())
        if is_bai:
            parts.append(struct.pack("<i", len(windows)) + windows.astype("<i8").tobytes())
        return b"".join(parts)

    def _reached_first(self, bins: NDArray[np.int32], windows: Places) -> Places:
        """Where the first record is that reaches each bin's first window; 0 where it is behind them all."""
        lowest = bins.astype(np.int64)
        for _ in range(self._levels):
            first_below = ((1 << 3 * self._levels) - 1) // 7
            lowest = np.where(lowest < first_below, 8 * lowest + 1, lowest)
        lowest -= ((1 << 3 * self._levels) - 1) // 7
        inside = lowest < len(windows)
        return np.where(inside, windows[np.where(inside, lowest, 0)], 0)


def _raise_near(chunks: _Chunks, levels: int) -> None:
    """Let the chunks of a bin that lie near each other go to the bin above, if that has some; then join what meets.

    They come in the order of the file, and are given by bins, those of a bin in that order.
    """
    names = chunks.contigs.astype(np.int64) << 32 | chunks.bins
    for level in range(levels, 0, -1):
        order = np.argsort(names, kind="stable")
        found = names[order]
        firsts = np.flatnonzero(np.diff(found, prepend=-1))
        counts = np.diff(np.append(firsts, len(found)))
        bins = found[firsts] & 0xFFFFFFFF
        above = found[firsts] - bins + ((bins - 1) >> 3)
        near = (chunks.ends[order[firsts + counts - 1]] >> 16) - (chunks.begins[order[firsts]] >> 16) < NEAR
        is_level = (bins >= ((1 << 3 * level) - 1) // 7) & (bins < ((1 << 3 * (level + 1)) - 1) // 7)
        has_some = found[np.minimum(np.searchsorted(found, above), len(found) - 1)] == above
        names[order] = np.repeat(np.where(is_level & near & has_some, above, found[firsts]), counts)
    order = np.argsort(names, kind="stable")
    names, begins, ends = names[order], chunks.begins[order], chunks.ends[order]
    apart = (np.diff(names, prepend=-1) != 0) | (np.append([0], ends[:-1]) >> 16 < begins >> 16)
    firsts = np.flatnonzero(apart)
    lasts = np.append(firsts[1:], len(names)) - 1
    chunks.contigs, chunks.bins = (names[firsts] >> 32).astype(np.int32), names[firsts].astype(np.int32)
    chunks.begins, chunks.ends = begins[firsts], ends[lasts]
