"""Reads -> the parts of shards, each as soon as it is known where in their files it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from readmap.reads.file_splitter import RECORDS_PER_MARK
from readmap.reads.record_ranges import RecordRange
from readmap.reads.shards import Shard, SplitLanes

#: Marks of a table in a shard, where it begins at one: its begin has not to be looked for then.
LEAST_MARKS = 16

#: The first shard is halved so often, the next ones less: it is mapped when little is known yet. So are the last ones,
#: of which the whole search waits for one worker, and for its records to be copied.
HALVED = 3

#: Of each file, or None while more has to be known.
Parts = list[RecordRange] | None


def equal_parts(known: Callable[[], SplitLanes], count: int) -> Iterator[Parts]:
    """Those of so many shards, once all reads are known."""
    while True:
        reads = known()
        fragments, are_all = reads.fragments()
        if are_all:
            break
        yield None
    total = sum(each.file.records for each in reads.locators)
    multiple = RECORDS_PER_MARK if total // count >= LEAST_MARKS * RECORDS_PER_MARK else 1
    cuts = reads.cuts(0)
    for number in range(1, count + 1):
        _, bound = Shard(number, count).bounds(fragments)
        following = reads.cuts(bound, multiple)
        yield reads.ranges(cuts, following)
        cuts = following


def sized_parts(known: Callable[[], SplitLanes], size: int) -> Iterator[Parts]:
    """Those of shards of about so many reads, and of fewer at the begin and at the end.

    known: tells more from call to call; the shards do not depend on how soon.
    """
    number, begin, cuts = 0, 0, list[int]()
    while True:
        reads = known()
        fragments, are_all = reads.fragments()
        whole = max(size // max(layout.files * layout.records_per_fragment for layout in reads.layouts), 1)
        cuts = cuts or [0] * len(reads.locators)
        while step := _step(number, fragments - begin, whole, are_all):
            number, begin = number + 1, begin + step
            following = reads.cuts(begin, RECORDS_PER_MARK)
            yield reads.ranges(cuts, following)
            cuts = following
        if are_all:
            break
        yield None
    if not number:
        yield reads.ranges(cuts, cuts)


def _step(number: int, left: int, whole: int, are_all: bool) -> int:
    """Fragments of a shard; 0 where none are left, or more have to be known of them first.

    whole: those of a shard in the middle. left: known, and not taken yet.
    """
    step = max(whole >> max(HALVED - number, 0), 1)
    if left > step + step // 2:
        return step
    least = max(whole >> HALVED, 1)
    return 0 if not are_all else left if left <= least + least // 2 else -(-left // 2)
