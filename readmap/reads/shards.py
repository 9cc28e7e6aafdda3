"""Shards: the i-th of n parts of all reads, as records of their files.

lane 1, R1   |r r r r r r r|r r r|
lane 1, R2   |r r r r r r r|r r r|            the same records of both
lane 2                           |r r r r|r r r r r r r|
shards        1             2             3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from readmap.formats.text_range import TextRange
from readmap.reads.chunks import Layout
from readmap.reads.split_table import expect_as_many
from readmap.reads.split_text import SplitText


@dataclass(frozen=True)
class Shard:
    """The part `number`, from 1, of `count`."""

    number: int
    count: int

    def bounds(self, total: int) -> tuple[int, int]:
        """The first of so many things that it has, and the first behind it."""
        return total * (self.number - 1) // self.count, total * self.number // self.count


@dataclass(frozen=True)
class FilePart:
    """The records [first, last) of a file, by their numbers from 0."""

    text: SplitText
    first: int
    last: int

    def open(self) -> TextRange:
        """Their text; raises as SplitText does."""
        return self.text.records(self.first, self.last)


def parts_of(shard: Shard, texts: Sequence[SplitText], layouts: Sequence[Layout], multiple: int = 1) -> list[FilePart]:
    """What the shard has of each file, which may be nothing; all shards, one behind the other, are all reads.

    texts: of the files of all lanes. layouts: of each lane. multiple: of so many records, 1 or even, shards begin in
    each file, as those before a table's marks; with 1 they have as many pairs and single reads, or one more.
    Raises DataError where two files of mates have not as many records, and as SplitText does.
    """
    lanes, following = [], iter(texts)
    for layout in layouts:
        lane = [next(following) for _ in range(layout.files)]
        if layout is Layout.TWO_FILES:
            expect_as_many([each.path for each in lane], [each.file for each in lane])
        lanes.append((lane, layout, -(-lane[0].file.records // layout.together)))
    bounds, before = shard.bounds(sum(pairs for _, _, pairs in lanes)), 0
    parts = []
    for lane, layout, pairs in lanes:
        own = [min(max(bound - before, 0), pairs) * layout.together for bound in bounds]
        whole = lane[0].file.records
        cuts = [whole if record >= whole else record - record % multiple for record in own]
        if layout is Layout.ADJACENT:
            cuts = [lane[0].cut_beside_mates(record) for record in cuts]
        parts += [FilePart(text, *cuts) for text in lane]
        before += pairs
    return parts
