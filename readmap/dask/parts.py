"""Reads -> the parts of shards, each as soon as it is known where in their files it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from readmap.reads.file_part import FilePart
from readmap.reads.shards import Reads, Shard
from readmap.reads.splitting import MARKED_RECORDS

#: Marks of a table in a shard, where it begins at one: its begin has not to be looked for then.
LEAST_MARKS = 16

#: Of each file, or None while more has to be known.
Parts = list[FilePart] | None


def equal_parts(known: Callable[[], Reads], count: int) -> Iterator[Parts]:
    """Those of so many shards, once all reads are known."""
    while not (reads := known()).fragments()[1]:
        yield None
    total = sum(text.file.records for text in reads.texts)
    multiple = MARKED_RECORDS if total // count >= LEAST_MARKS * MARKED_RECORDS else 1
    for number in range(1, count + 1):
        yield reads.shard(Shard(number, count), multiple)


def sized_parts(known: Callable[[], Reads], size: int) -> Iterator[Parts]:
    """Those of shards of about so many reads: of the last one there are half as many, or half as many again; known
    tells more from call to call."""
    begin, cuts = 0, list[int]()
    while True:
        reads = known()
        fragments, are_all = reads.fragments()
        cuts = cuts or [0] * len(reads.texts)
        step = max(size // max(layout.files * layout.together for layout in reads.layouts), 1)
        while fragments - begin > step + step // 2:
            begin += step
            following = reads.cuts(begin, MARKED_RECORDS)
            yield reads.parts(cuts, following)
            cuts = following
        if are_all:
            break
        yield None
    yield reads.parts(cuts, reads.cuts(fragments))
