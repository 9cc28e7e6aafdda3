"""What a user may set, and the search_pass that is spent on a read."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from numbers import Integral

from readmap.backend.compilation.declarations import constant
from readmap.errors import UsageError

#: Bases in which one difference of the sample from the reference is expected before any read.
DEFAULT_BASES_PER_DIFFERENCE = 400

#: Phred of a point, as of a mismatch among four letters: 10 log10(4).
PHRED_PER_POINT = 6

#: Matches less mismatches that a read needs where its mate expects it, as bwa mem's shortest seed.
PAIRED_MIN_SCORE = 19


#: A penalty, or those of two kinds of one thing.
Penalty = int | tuple[int, int]


@dataclass(frozen=True)
class Scoring:
    """The scores of an alignment, bwa mem's by default; penalties are positive.

    A gap of k bases costs gap_open + k * gap_extend, but no more than long_gap; two numbers are those of deletions and
    of insertions. An alignment that reaches an end of the read is preferred to one that is clipped there unless it
    scores more than clip_penalty less, or below min_score; two numbers are those of the read's 5' end and of its 3'
    end, as it was sequenced. A read of which no alignment scores min_score is unmapped, or paired_min_score where its mate,
    which scores min_score, expects it. Mates are preferred at places that make a fragment of the library to others that
    score up to unpaired_penalty more.
    """

    match: int = 1
    mismatch: int = 4
    gap_open: Penalty = 6
    gap_extend: Penalty = 1
    long_gap: int = 22
    clip_penalty: Penalty = 5
    min_score: int = 30
    unpaired_penalty: int = 17

    def __post_init__(self) -> None:
        lowest = {"match": 1, "mismatch": 0, "gap_open": 0, "gap_extend": 1, "long_gap": 1}
        lowest |= {"clip_penalty": 0, "min_score": 0, "unpaired_penalty": 0}
        for name, least in lowest.items():
            given = getattr(self, name)
            two = isinstance(given, tuple | list) and name in ("gap_open", "gap_extend", "clip_penalty")
            values = tuple(given) if two else (given,)
            fit = all(isinstance(value, Integral) and least <= int(value) <= 1000 for value in values)
            if not fit or len(values) not in (1, 2):
                several = ", or two of them" if two else ""
                raise UsageError(f"{name.replace('_', ' ')} is {given}, expected {least} to 1000{several}")
            numbers = [int(value) for value in values]
            object.__setattr__(self, name, tuple(numbers) if len(numbers) == 2 else numbers[0])

    @property
    def deletion_open(self) -> int:
        """The gap_open of deletions."""
        return _both(self.gap_open)[0]

    @property
    def insertion_open(self) -> int:
        """The gap_open of insertions."""
        return _both(self.gap_open)[1]

    @property
    def deletion_extend(self) -> int:
        """The gap_extend of deletions."""
        return _both(self.gap_extend)[0]

    @property
    def insertion_extend(self) -> int:
        """The gap_extend of insertions."""
        return _both(self.gap_extend)[1]

    @property
    def clip_5(self) -> int:
        """The clip_penalty of the read's 5' end."""
        return _both(self.clip_penalty)[0]

    @property
    def clip_3(self) -> int:
        """The clip_penalty of the read's 3' end."""
        return _both(self.clip_penalty)[1]

    @property
    def paired_min_score(self) -> int:
        """What an alignment has to score where the read's mate vouches for its place."""
        return min(self.min_score, PAIRED_MIN_SCORE * self.match)

    @property
    def unpaired_phred(self) -> int:
        """Phred by which places that make no fragment have to explain the reads better than places that do."""
        return self.unpaired_penalty * PHRED_PER_POINT // self.match

    def fits_16_bits(self, length: int) -> bool:
        """Whether no score of a read of that length leaves 16 bits."""
        first_gap = max(self.deletion_open + self.deletion_extend, self.insertion_open + self.insertion_extend)
        return self.match * length + self.clip_5 + self.clip_3 + max(self.mismatch, first_gap) < 28_000


def _both(penalty: Penalty) -> tuple[int, int]:
    """Of both kinds."""
    return (penalty, penalty) if isinstance(penalty, int) else penalty


NO_LIMIT = 2**31 - 1

#: bwa mem's, the second one where a place is on an ALT contig.
MAX_XA_HITS, MAX_ALTERNATE_HITS, XA_SHARE = 5, 200, 80


@dataclass(frozen=True)
class Reporting:
    """What is reported of a read beside its place.

    Attributes:
        max_secondary: other places of each part of a read that get a secondary record; 0 for none, in which case they
            may be in XA.
        max_xa_hits: other places that the tag XA has; where there are more, it has none: they say little then. None
            for MAX_XA_HITS of those that are found without looking for what is 60 phred less likely.
        max_alternate_hits: the same where one of them is on an ALT contig.
        xa_share: percent of the best place's score that one in XA has.
        leftmost_primary: of a split read the part that begins first in the read is the primary alignment (bwa's -5).
        soft_clipped: supplementary records hold the whole read (bwa's -Y).
        supplementary_as_secondary: and are flagged as secondary ones (bwa's -M).
    """

    max_secondary: int = 0
    max_xa_hits: int | None = None
    max_alternate_hits: int = MAX_ALTERNATE_HITS
    xa_share: int = XA_SHARE
    leftmost_primary: bool = False
    soft_clipped: bool = False
    supplementary_as_secondary: bool = False

    def __post_init__(self) -> None:
        largest = dict.fromkeys(("max_secondary", "max_xa_hits", "max_alternate_hits"), NO_LIMIT)
        for name, most in {**largest, "xa_share": 100}.items():
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                raise UsageError(f"{name.replace('_', ' ')} is {value}, expected 0 to {most}")

    @property
    def xa_limit(self) -> int:
        """The places that XA has at most."""
        if self.max_secondary:
            return 0
        return MAX_XA_HITS if self.max_xa_hits is None else self.max_xa_hits

    @property
    def alternate_limit(self) -> int:
        """The same where one of them is on an ALT contig."""
        return 0 if self.max_secondary else self.max_alternate_hits

    @property
    def everywhere(self) -> bool:
        """Whether places are wanted that say nothing of the read's own."""
        return self.max_secondary > 0 or self.max_xa_hits is not None


@dataclass(frozen=True)
class Pairing:
    """How mates are placed.

    Attributes:
        joint: their places are chosen together (bwa's -P switches it off).
        rescue: a mate is looked for where its partner expects it (bwa's -S switches it off).
        insert_size: of FR pairs, as fixed_insert_size takes it; None to estimate it from the first pairs.
    """

    joint: bool = True
    rescue: bool = True
    insert_size: tuple[float, ...] | None = None


#: Why a read is searched: enum Unresolved of kernels/search/placement.cuh.
REPETITIVE, DIVERGENT, SPLIT, UNSEARCHED, ALT_HIDDEN = (
    constant("mapping/placement.cuh", name) for name in ("REPETITIVE", "DIVERGENT", "SPLIT", "UNSEARCHED", "ALT_HIDDEN")
)

#: Mismatches of the best place found up to which it is not distant.
DIVERGENT_DIFFERENCES = 2

MAX_SPLIT_WINDOWS = constant("mapping/windows.cuh", "MAX_SPLIT_WINDOWS")


@dataclass(frozen=True)
class SearchPass:
    """How densely a read is searched.

    Attributes:
        reason: the bit of enum Unresolved whose reads the pass searches.
        stride: bases between seed positions, for reads of 150 bases; shorter reads are searched more densely.
        min_stride: and never more densely than this.
        min_seed_bases: a common prefix shorter than this is no seed.
        max_suffixes: suffixes looked at from each position.
    """

    reason: int
    stride: int
    min_stride: int
    min_seed_bases: int
    max_suffixes: int

    def stride_of(self, length: int) -> int:
        """The stride for reads of one length."""
        return min(max(self.stride * length // 150, self.min_stride), self.stride)


def _chance(suffixes: int) -> int:
    """Bases that chance finds once in the reference."""
    return math.ceil(math.log(max(suffixes, 4), 4))


def dense_seed_bases(suffixes: int) -> int:
    """Bases of the shortest seeds."""
    return min(max(_chance(suffixes) + 2, 10), 19)


@functools.cache
def search_passes(suffixes: int, alternates: bool = False) -> tuple[SearchPass, ...]:
    """The passes over the reads of a batch; each takes what those before left unresolved.

    alternates: whether the reference has ALT contigs. A gene may have hundreds of them, which are all looked at.
    Seeds are as short as chance allows: two or three bases more than one place in the reference needs.
    """
    sparse, dense = min(max(_chance(suffixes) + 3, 12), 19), dense_seed_bases(suffixes)
    return (
        SearchPass(UNSEARCHED, 12, 3, sparse, 16),
        SearchPass(REPETITIVE, 12, 3, sparse, 64),
        SearchPass(DIVERGENT, 4, 1, dense, 64),
        *([SearchPass(ALT_HIDDEN, 4, 1, dense, 1024)] if alternates else []),
        SearchPass(SPLIT, 4, 1, dense, 64),
    )
