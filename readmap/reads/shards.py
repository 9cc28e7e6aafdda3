"""Shards: parts of all reads, one behind the other, as records of their files.

lane 1, R1   |r r r r r r r|r r r|
lane 1, R2   |r r r r r r r|r r r|            the same records of both
lane 2                           |r r r r|r r r r r r r|
shards        1             2             3

A fragment is a pair, or a read by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readmap.reads.chunks import PairLayout
from readmap.reads.file_part import RecordRange
from readmap.reads.split_table import check_equal_record_counts
from readmap.reads.record_ranges import RecordLocator


@dataclass(frozen=True)
class Shard:
    """The part `number`, from 1, of `count`."""

    number: int
    count: int

    def bounds(self, total: int) -> tuple[int, int]:
        """The first of so many things that it has, and the first behind it."""
        return total * (self.number - 1) // self.count, total * self.number // self.count


@dataclass(frozen=True)
class SplitLanes:
    """The files of all lanes, as far as they are known. layouts: of each lane.

    Those that are not whole yet are known in the order of the lanes.
    """

    texts: Sequence[RecordLocator]
    layouts: Sequence[PairLayout]

    @property
    def lanes(self) -> Iterator[tuple[PairLayout, list[RecordLocator]]]:
        """The files of each."""
        following = iter(self.texts)
        for layout in self.layouts:
            yield layout, [next(following) for _ in range(layout.files)]

    def fragments(self) -> tuple[int, bool]:
        """How many are known, one behind the other from the first on, and whether these are all.

        Raises DataError where two files of mates have not as many records.
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
        """The number of the record of each file in front of which a shard begins or ends: that of a fragment, or one
        before it.

        multiple: of so many records, 1 or even, cuts are, but for the end of a file, as those before a table's marks;
        with 1 shards have as many fragments, or one more. Raises as RecordLocator does.
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

    def parts(self, begin: Sequence[int], end: Sequence[int]) -> list[RecordRange]:
        """What lies of each file between two cuts, which may be nothing. Raises as RecordLocator does."""
        return [text.part(first, last) for text, first, last in zip(self.texts, begin, end, strict=True)]

    def shard(self, shard: Shard) -> list[RecordRange]:
        """The part of all fragments. Raises as `fragments` and RecordLocator do."""
        total, _ = self.fragments()
        begin, end = (self.cuts(bound) for bound in shard.bounds(total))
        return self.parts(begin, end)
