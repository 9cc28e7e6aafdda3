"""Shards: consecutive parts of all reads, as ranges of records of their files.

lane 1, R1   |r r r r r r r|r r r|
lane 1, R2   |r r r r r r r|r r r|            the same records of both files
lane 2                           |r r r r|r r r r r r r|
shards        1             2             3

A fragment is a pair, or a single read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readmap.reads.chunks import PairLayout
from readmap.reads.record_ranges import RecordLocator, RecordRange
from readmap.reads.split_table import check_equal_record_counts


@dataclass(frozen=True)
class Shard:
    """Part `number`, 1-based, of `count` equal parts."""

    number: int
    count: int

    def bounds(self, total: int) -> tuple[int, int]:
        """Return start and end of the shard among `total` items."""
        return total * (self.number - 1) // self.count, total * self.number // self.count


@dataclass(frozen=True)
class SplitLanes:
    """The files of all lanes, as far as they have been scanned. layouts: one per lane.

    Files are scanned in the order of the lanes.
    """

    locators: Sequence[RecordLocator]
    layouts: Sequence[PairLayout]

    @property
    def lanes(self) -> Iterator[tuple[PairLayout, list[RecordLocator]]]:
        """Yield layout and files of each lane."""
        remaining = iter(self.locators)
        for layout in self.layouts:
            yield layout, [next(remaining) for _ in range(layout.files)]

    def fragments(self) -> tuple[int, bool]:
        """Return the number of consecutive fragments known from the first on, and whether these are all fragments.

        Raises DataError if two files of mates have different numbers of records.
        """
        total = 0
        for layout, lane in self.lanes:
            files = [each.file for each in lane]
            records = min(file.records for file in files)
            if not all(file.is_whole for file in files):
                return total + records // layout.records_per_fragment, False
            if layout is PairLayout.TWO_FILES:
                check_equal_record_counts([each.path for each in lane], files)
            total += -(-records // layout.records_per_fragment)
        return total, True

    def cuts(self, fragment: int, multiple: int = 1) -> list[int]:
        """Return for each file the index of the record at which a shard starts or ends, near `fragment`.

        multiple: 1 or even; cuts are rounded down to multiples of it, except at the end of a file, so that they fall on
        marks of a table. With 1 the sizes of shards differ by at most one fragment. Raises as RecordLocator does.
        """
        cuts, before = list[int](), 0
        for layout, lane in self.lanes:
            records = min(each.file.records for each in lane)
            fragments = -(-records // layout.records_per_fragment)
            record = min(max(fragment - before, 0), fragments) * layout.records_per_fragment
            cut = records if record >= records else record - record % multiple
            cuts += [lane[0].cut_between_pairs(cut) if layout is PairLayout.ADJACENT else cut] * len(lane)
            before += fragments
        return cuts

    def ranges(self, start: Sequence[int], end: Sequence[int]) -> list[RecordRange]:
        """Return the records of each file between two cuts, which may be none. Raises as RecordLocator does."""
        return [each.range(first, stop) for each, first, stop in zip(self.locators, start, end, strict=True)]

    def shard(self, shard: Shard) -> list[RecordRange]:
        """Return the records of a shard of all fragments. Raises as `fragments` and RecordLocator do."""
        total, _ = self.fragments()
        start, end = (self.cuts(bound) for bound in shard.bounds(total))
        return self.ranges(start, end)
