"""What a user may set, and the effort that is spent on a read."""

from __future__ import annotations

import math
from dataclasses import dataclass

from readmap.errors import UsageError

#: Bases in which one difference of the sample from the reference is expected where no reads tell.
CLEAN_BASES = 400

#: Matches less mismatches that a read needs where its mate expects it, as bwa mem's shortest seed.
JOINT_SCORE = 19


@dataclass(frozen=True)
class Scoring:
    """The scores of an alignment, bwa mem's by default; penalties are positive.

    A gap of k bases costs gap_open + k * gap_extend, but no more than long_gap. An alignment that reaches an end of
    the read is preferred to one that is clipped there unless it scores more than clip_penalty less, or below
    min_score. A read of which no alignment scores min_score is unmapped, or joint_score where its mate expects it.
    Mates are preferred at places that make a fragment of the library to others that score up to unpaired_penalty more.
    """

    match: int = 1
    mismatch: int = 4
    gap_open: int = 6
    gap_extend: int = 1
    long_gap: int = 22
    clip_penalty: int = 5
    min_score: int = 30
    unpaired_penalty: int = 17

    def __post_init__(self) -> None:
        lowest = {"match": 1, "mismatch": 0, "gap_open": 0, "gap_extend": 1, "long_gap": 1}
        lowest |= {"clip_penalty": 0, "min_score": 0, "unpaired_penalty": 0}
        for name, least in lowest.items():
            value = getattr(self, name)
            if not least <= value <= 1000:
                raise UsageError(f"{name.replace('_', ' ')} is {value}, expected {least} to 1000")

    @property
    def joint_score(self) -> int:
        """What an alignment has to score where the read's mate vouches for its place."""
        return min(self.min_score, JOINT_SCORE * self.match)

    def arguments(self) -> tuple[int, ...]:
        """In the order of SCORING_ARGUMENTS of kernels/search/scoring.cuh."""
        return self.match, self.mismatch, self.gap_open, self.gap_extend, self.long_gap, self.clip_penalty

    def fits_16_bits(self, length: int) -> bool:
        """Whether no score of a read of that length leaves 16 bits."""
        return (
            self.match * length + 2 * self.clip_penalty + max(self.mismatch, self.gap_open + self.gap_extend) < 28_000
        )


EVERY_PLACE = 2**31 - 1


@dataclass(frozen=True)
class Reporting:
    """What is told of a read beside its place.

    Attributes:
        most_places: other places that get a line of their own, each part of a read; 0 for none, in which case they may
            be mentioned.
        most_mentions: other places that are told in the tag XA; where there are more, none is: they say little then.
        mention_share: percent of the best place's score that a mentioned one has.
        leftmost_primary: of a split read the part that begins first in the read is the primary alignment (bwa's -5).
        soft_clipped: the other parts' lines hold the whole read (bwa's -Y).
        pieces_secondary: and count as secondary alignments (bwa's -M).
    """

    most_places: int = 0
    most_mentions: int = 5
    mention_share: int = 80
    leftmost_primary: bool = False
    soft_clipped: bool = False
    pieces_secondary: bool = False

    def __post_init__(self) -> None:
        for name, most in {"most_places": 2**31 - 1, "most_mentions": 2**31 - 1, "mention_share": 100}.items():
            if not 0 <= getattr(self, name) <= most:
                raise UsageError(f"{name.replace('_', ' ')} is {getattr(self, name)}, expected 0 to {most}")


@dataclass(frozen=True)
class Pairing:
    """How mates are placed.

    Attributes:
        joint: their places are chosen together (bwa's -P switches it off).
        rescue: a mate is looked for where its partner expects it (bwa's -S switches it off).
        insert_size: mean and standard deviation of FR pairs; None to estimate them from the first pairs.
    """

    joint: bool = True
    rescue: bool = True
    insert_size: tuple[float, float] | None = None


#: Why a read is searched again (search/placement.cu): a walk ended at its limit among near copies; or the best place
#: found loses more than a few mismatches, so that seeds may have been too long or too far apart for the right one; or
#: it leaves a part of the read over, of which places may have been crowded out by those of the other part.
CROWDED, DISTANT, SPLIT = 1, 2, 4
SETTLED_DIFFERENCES = 2

#: Windows kept of those that a read's own seeds find: what prototypes needed for the best copy of a repeat to be among
#: them; room for more of a part that the best one leaves over; and for those that its mate points to.
FOUND_WINDOWS = 16
SPLIT_WINDOWS = FOUND_WINDOWS + 4
WINDOWS = SPLIT_WINDOWS + 4


@dataclass(frozen=True)
class Effort:
    """How densely a read is searched.

    Attributes:
        takes: the reads that are searched so, by why they are unsettled.
        stride: bases between seed positions, for reads of 150 bases; shorter reads are searched more densely.
        least_stride: and never more densely than this.
        shortest_seed: a common prefix shorter than this is no seed.
        neighbours: suffixes looked at from each position.
    """

    takes: int
    stride: int
    least_stride: int
    shortest_seed: int
    neighbours: int

    def stride_of(self, length: int) -> int:
        """The stride for reads of one length."""
        return min(max(self.stride * length // 150, self.least_stride), self.stride)


def _chance(suffixes: int) -> int:
    """Bases that chance finds once in the reference."""
    return math.ceil(math.log(max(suffixes, 4), 4))


def dense_seed(suffixes: int) -> int:
    """Bases of the shortest seeds."""
    return min(max(_chance(suffixes) + 2, 10), 19)


def efforts(suffixes: int) -> tuple[Effort, ...]:
    """The passes over the reads of a batch; each takes what those before left unsettled.

    Seeds are as short as chance allows: two or three bases more than tell one place in the reference.
    """
    sparse, dense = min(max(_chance(suffixes) + 3, 12), 19), dense_seed(suffixes)
    return (
        Effort(CROWDED | DISTANT, 12, 3, sparse, 16),
        Effort(CROWDED, 12, 3, sparse, 64),
        Effort(DISTANT, 4, 1, dense, 64),
        Effort(SPLIT, 4, 1, dense, 64),
    )
