"""Located reads -> shards: the records of each file that belong to a shard, as soon as they have been located."""

from collections.abc import Callable, Iterator

from readmap.reads.file_splitter import RECORDS_PER_MARK
from readmap.reads.shards import RecordRange, Shard, SplitLanes

#: A shard starts at a mark of the split table, which needs no search, if it has at least this many marks.
MIN_MARKS = 16
#: The first shard is halved this often, and the next ones less often, since workers wait until it has been located. The
#: last ones are halved too, since the search waits for the last worker and for its records to be copied.
HALVINGS = 3
#: The records of each file that belong to a shard, or None while more reads have to be located.
Parts = list[RecordRange] | None


def equal_parts(located: Callable[[], SplitLanes], count: int) -> Iterator[Parts]:
    """Yield None until the last read has been located, then each of `count` equal shards as a range of each file."""
    while True:
        reads = located()
        fragments, are_all = reads.fragments()
        if are_all:
            break
        yield None
    total = sum(each.file.records for each in reads.locators)
    multiple = RECORDS_PER_MARK if total // count >= MIN_MARKS * RECORDS_PER_MARK else 1
    cuts = reads.cuts(0)
    for number in range(1, count + 1):
        _, bound = Shard(number, count).bounds(fragments)
        following = reads.cuts(bound, multiple)
        yield reads.ranges(cuts, following)
        cuts = following


def sized_parts(located: Callable[[], SplitLanes], size: int) -> Iterator[Parts]:
    """Yield shards of about `size` reads, smaller at the start and at the end, each as a range of each file; None if
    more must be located. located: returns more reads at each call. The shards do not depend on how many it returns."""
    number, start, cuts = 0, 0, list[int]()
    while True:
        reads = located()
        fragments, are_all = reads.fragments()
        whole = max(size // max(layout.files * layout.records_per_fragment for layout in reads.layouts), 1)
        cuts = cuts or [0] * len(reads.locators)
        while step := _next_shard_size(number, fragments - start, whole, are_all):
            number, start = number + 1, start + step
            following = reads.cuts(start, RECORDS_PER_MARK)
            yield reads.ranges(cuts, following)
            cuts = following
        if are_all:
            break
        yield None
    if not number:
        yield reads.ranges(cuts, cuts)


def _next_shard_size(number: int, left: int, whole: int, are_all: bool) -> int:
    """Return the number of fragments of a shard; 0 if none are left, or if more must be located first. number: index
    of the shard. left: located fragments that are in no shard yet. whole: fragments of a full shard. are_all: all
    reads have been located."""
    step = max(whole >> max(HALVINGS - number, 0), 1)
    if left > step + step // 2:
        return step
    least = max(whole >> HALVINGS, 1)
    return 0 if not are_all else left if left <= least + least // 2 else -(-left // 2)
