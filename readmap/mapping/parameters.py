"""Parameters that a user may set, and the search passes over the reads of a batch."""

import functools
import math
from dataclasses import dataclass
from numbers import Integral

from readmap.backend.compilation.declarations import constant
from readmap.errors import UsageError

#: Bases in which one difference from the reference is expected before any read has been seen.
DEFAULT_BASES_PER_DIFFERENCE = 400
#: Phred of one point of score: a mismatch among four letters has 10 log10(4).
PHRED_PER_POINT = 6
#: Minimum score, for match = 1, of a read whose mate supports its placement: the length of bwa mem's shortest seed.
PAIRED_MIN_SCORE = 19
#: One penalty, or two: of deletions and insertions, or of the 5' and the 3' end of the read as sequenced.
Penalty = int | tuple[int, int]


@dataclass(frozen=True)
class Scoring:
    """Scores of an alignment of a read; penalties are positive integers up to 1000.

    Parameters
    ----------
    match, mismatch : int
        Score of a matching base and penalty of a mismatch. All defaults except long_gap are bwa mem's.
    gap_open, gap_extend : int or tuple of int
        A gap of k bases costs gap_open + k * gap_extend. Two numbers apply to deletions and to insertions.
    long_gap : int
        Maximum cost of a gap. The default, 22, is the cost of a gap of 16 bases: a genome gains or loses fifty bases at
        once not much more rarely than ten.
    clip_penalty : int or tuple of int
        An alignment to the end of the read is preferred to a clipped one that scores at most this much more. Two
        numbers apply to the 5' and to the 3' end of the read as sequenced.
    min_score : int
        A read without an alignment of this score is unmapped, unless its mate reaches min_score and supports the
        placement; then 19 matches suffice, the length of bwa mem's shortest seed.
    unpaired_penalty : int
        Placements that form a proper pair are preferred to placements that score up to this much more.

    Raises
    ------
    UsageError
        If a value is out of range.
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
        for name, given in dict(vars(self)).items():
            least = int(name in ("match", "gap_extend", "long_gap"))
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
        return _both(self.gap_open)[0]

    @property
    def insertion_open(self) -> int:
        return _both(self.gap_open)[1]

    @property
    def deletion_extend(self) -> int:
        return _both(self.gap_extend)[0]

    @property
    def insertion_extend(self) -> int:
        return _both(self.gap_extend)[1]

    @property
    def clip_5(self) -> int:
        return _both(self.clip_penalty)[0]

    @property
    def clip_3(self) -> int:
        return _both(self.clip_penalty)[1]

    @property
    def paired_min_score(self) -> int:
        """Minimum score of an alignment whose placement the read's mate supports."""
        return min(self.min_score, PAIRED_MIN_SCORE * self.match)

    @property
    def unpaired_phred(self) -> int:
        """Phred by which placements outside a proper pair must be more likely to be chosen."""
        return self.unpaired_penalty * PHRED_PER_POINT // self.match

    def fits_16_bits(self, length: int) -> bool:
        """Return True if all scores of a read of this length fit into 16 bits."""
        first_gap = max(self.deletion_open + self.deletion_extend, self.insertion_open + self.insertion_extend)
        return self.match * length + self.clip_5 + self.clip_3 + max(self.mismatch, first_gap) < 28_000


def _both(penalty: Penalty) -> tuple[int, int]:
    return (penalty, penalty) if isinstance(penalty, int) else penalty


NO_LIMIT = 2**31 - 1
#: bwa mem's limits of the tag XA, the second one for reads with a placement on an ALT contig; and its percentage.
MAX_XA_HITS, MAX_ALTERNATE_HITS, XA_SHARE = 5, 200, 80


@dataclass(frozen=True)
class Reporting:
    """Records and tags of a read besides its primary record; the defaults are bwa mem's.

    A split read has several parts, each with a record of its own. A part may have other placements in the genome.

    Parameters
    ----------
    max_secondary : int
        Secondary records per part, for its best other placements. By default, other placements are listed in the tag XA
        instead.
    max_xa_hits : int, optional
        Most placements in XA; with more of them the part has no XA, since they would say little. By default 5, among
        the placements that are found anyway. If given, placements that are 60 phred less likely are searched too.
    max_alternate_hits : int
        The same limit for a part with a placement on an ALT contig, which often has many copies.
    xa_share : int
        Minimum score of a placement in XA, in percent of the part's score.
    leftmost_primary : bool
        Make the part that starts first in the read the primary record (bwa mem -5).
    soft_clipped : bool
        Store the whole read in supplementary records (bwa mem -Y).
    supplementary_as_secondary : bool
        Flag supplementary records as secondary (bwa mem -M).

    Raises
    ------
    UsageError
        If a value is out of range.
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
        """Maximum number of placements in XA."""
        if self.max_secondary:
            return 0
        return MAX_XA_HITS if self.max_xa_hits is None else self.max_xa_hits

    @property
    def alternate_limit(self) -> int:
        """Maximum number of placements in XA if a placement is on an ALT contig."""
        return 0 if self.max_secondary else self.max_alternate_hits

    @property
    def needs_all_placements(self) -> bool:
        """True if placements are reported that are too unlikely to affect the mapping quality."""
        return self.max_secondary > 0 or self.max_xa_hits is not None


@dataclass(frozen=True)
class Pairing:
    """Placement of mates.

    Parameters
    ----------
    joint : bool
        Choose the placements of both mates together (bwa mem -P switches it off).
    rescue : bool
        Search for a mate near its placed mate (bwa mem -S switches it off).
    insert_size : tuple of float, optional
        Mean, standard deviation, maximum and minimum of the insert size of FR pairs; all but the mean may be missing.
        By default, insert sizes are estimated from the first pairs.
    """

    joint: bool = True
    rescue: bool = True
    insert_size: tuple[float, ...] | None = None


#: Reasons for searching a read: enum Unresolved of kernels/mapping/placement.cuh.
REPETITIVE, DIVERGENT, SPLIT, UNSEARCHED, ALT_HIDDEN = (
    constant("mapping/placement.cuh", name) for name in ("REPETITIVE", "DIVERGENT", "SPLIT", "UNSEARCHED", "ALT_HIDDEN")
)
#: A read whose best placement has more mismatches than this is searched as divergent.
DIVERGENT_DIFFERENCES = 2

MAX_SPLIT_WINDOWS = constant("mapping/windows.cuh", "MAX_SPLIT_WINDOWS")


@dataclass(frozen=True)
class SearchPass:
    """A search of unresolved reads by seeds."""

    reason: int  # the bit of enum Unresolved whose reads the pass searches
    stride: int  # bases between seeds of reads of at least 150 bases; less in proportion for shorter reads
    min_stride: int  # of short reads
    min_seed_bases: int  # length of the shortest seed
    max_suffixes: int  # suffixes examined at each position

    def stride_of(self, length: int) -> int:
        """Return the stride for reads of one length."""
        return min(max(self.stride * length // 150, self.min_stride), self.stride)


def _unique_bases(suffixes: int) -> int:
    """Return the length at which a random sequence is expected once in the reference."""
    return math.ceil(math.log(max(suffixes, 4), 4))


def dense_seed_bases(suffixes: int) -> int:
    """Return the length of the shortest seeds of dense searches."""
    return min(max(_unique_bases(suffixes) + 2, 10), 19)


@functools.cache
def search_passes(suffixes: int, alternates: bool = False) -> tuple[SearchPass, ...]:
    """Return the search passes in order; each searches reads that the passes before it left unresolved.

    suffixes: size of the suffix array. Seeds are two or three bases longer than what occurs once by chance. alternates:
    the reference has ALT contigs; a gene may have hundreds, and all of them are examined.
    """
    sparse, dense = min(max(_unique_bases(suffixes) + 3, 12), 19), dense_seed_bases(suffixes)
    return (
        SearchPass(UNSEARCHED, 12, 3, sparse, 16),
        SearchPass(REPETITIVE, 12, 3, sparse, 64),
        SearchPass(DIVERGENT, 4, 1, dense, 64),
        *([SearchPass(ALT_HIDDEN, 4, 1, dense, 1024)] if alternates else []),
        SearchPass(SPLIT, 4, 1, dense, 64),
    )
