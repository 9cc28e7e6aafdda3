"""What readmap decides of the windows of a read and of two mates: which are one place, which rivals, which reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from readmap.backend.compilation.declarations import constant
from readmap.search.extension import BANDS
from readmap.search.parameters import Reporting, Scoring

NEGLIGIBLE, MISTRUST, UNTESTED, THIRD = (
    constant("search/mapping_quality.cuh", name) for name in ("NEGLIGIBLE", "MISTRUST", "UNTESTED", "THIRD")
)
DOUBT, WORTH, LEAST_REPEAT_COPIES = (
    constant("search/pairs.cu", name) for name in ("DOUBT", "WORTH", "LEAST_REPEAT_COPIES")
)
NO_DEFICIT = constant("search/placement.cuh", "NO_DEFICIT")
FOUND_WINDOWS, SPREAD, NARROW_BAND = (
    constant("search/windows.cuh", name) for name in ("FOUND_WINDOWS", "SPREAD", "NARROW_BAND")
)
#: enum Role.
PRIMARY, SUPPLEMENTARY, SECONDARY, XA_HIT, NOT_REPORTED = (
    constant("search/record_plan.cuh", name)
    for name in ("PRIMARY_ALIGNMENT", "SUPPLEMENTARY_ALIGNMENT", "SECONDARY_ALIGNMENT", "XA_HIT", "NOT_REPORTED")
)

#: A read's 5' end: where its first base lies, behind it if the read is reversed, and whether it is.
End = tuple[int, bool]
#: By direction the least and the largest size, and the phred by which each of these is less likely than the likeliest.
Sizes = Mapping[str, tuple[int, int, Sequence[int]]]


def fragment(first: End, second: End) -> tuple[str, int]:
    """Direction and size; FF is the second read ahead of the first, as seen from their strand, RR behind it."""
    (here, reversed_here), (there, reversed_there) = first, second
    size = abs(there - here)
    if reversed_here != reversed_there:
        forward, backward = (there, here) if reversed_here else (here, there)
        return "FR" if forward <= backward else "RF", size
    ahead = there <= here if reversed_here else there >= here
    return "FF" if ahead else "RR", size


def size_penalty(first: End, second: End, sizes: Sizes) -> int | None:
    """None where the library has no such fragment."""
    direction, size = fragment(first, second)
    low, high, penalties = sizes.get(direction, (1, 0, ()))
    return penalties[size - low] if low <= size <= high else None


@dataclass(frozen=True)
class Window:
    """A window, and by how many phred it explains the read worse than the best one; bases: of the oriented read."""

    diagonal: int
    orientation: int
    score: int
    ungapped: int
    begin: int
    end: int
    cover_begin: int
    cover_end: int
    low: int
    high: int
    band: int
    deficit: int

    @property
    def gapped(self) -> bool:
        return self.score != self.ungapped

    def span(self, length: int) -> set[int]:
        """The bases of the read, in orientation 0, that it places."""
        bases = range(self.cover_begin, self.cover_end) if self.gapped else range(self.begin, self.end)
        return {length - 1 - base if self.orientation else base for base in bases}


def rivals_for(one: set[int], other: set[int]) -> bool:
    """Whether two stretches of a read share half of the shorter one."""
    return 2 * len(one & other) >= min(len(one), len(other))


def beside(one: Window, other: Window) -> bool:
    return one.orientation == other.orientation and abs(one.diagonal - other.diagonal) <= SPREAD


def same_alignment(rival: Window, chosen: Window) -> bool:
    """Whether a rival's band reaches the chosen alignment, which scores the same."""
    middle = int((rival.low + rival.high) / 2)
    reached = 2 * abs(chosen.diagonal - rival.diagonal - middle) <= BANDS[max(rival.band, NARROW_BAND)].width
    return rival.gapped and (rival.score, rival.orientation) == (chosen.score, chosen.orientation) and reached


def is_rival(other: Window, chosen: Window, length: int) -> bool:
    palindrome = other.diagonal == chosen.diagonal
    same = beside(other, chosen) or palindrome or same_alignment(other, chosen)
    return not same and rivals_for(other.span(length), chosen.span(length))


def likelihood(phred: int) -> int:
    """In units of 2^-24, rounded in two steps."""
    tens = 10 ** (phred // 10)
    return (round(2**24 * 10 ** (-(phred % 10) / 10)) + tens // 2) // tens


def phred_of(part: int, whole: int) -> int:
    return max(phred for phred in range(61) if phred == 0 or likelihood(phred) * whole >= part << 24)


def mapping_quality(deficits: Sequence[int]) -> int:
    """Of a place of which the others explain the read worse by so many phred."""
    shares = [likelihood(max(deficit, 0)) for deficit in deficits if deficit < NEGLIGIBLE]
    error = sum(share + share // UNTESTED for share in shares)
    error += likelihood(MISTRUST) if error else 0
    return phred_of(error, error + 2**24)


def variant_of(bases: int, lost: int, bases_per_variant: int, scoring: Scoring) -> int:
    """Phred of a difference of the sample, where `bases` of a read lose so many points and one in many is expected."""
    differences = max(lost, 0) // (scoring.match + scoring.mismatch)
    return THIRD + phred_of(1 + differences, bases_per_variant + bases)


def perfect(length: int, scoring: Scoring) -> int:
    return scoring.match * length + 2 * scoring.clip_penalty


def in_phred(points: int, variant: int, scoring: Scoring) -> int:
    return int(points * variant / (scoring.match + scoring.mismatch))


def unexamined_deficit(unexamined: int, score: int, variant: int, scoring: Scoring) -> int:
    """The deficit of a place that shares so many bases and was not looked at."""
    if not unexamined:
        return NO_DEFICIT
    return max(in_phred(score - perfect(unexamined, scoring), variant, scoring), 0)


def mix(x: int) -> int:
    """The finaliser of splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ x >> shift) * factor % 2**64
    return x ^ x >> 31


def tie_of(read_hash: int, diagonal: int) -> int:
    return mix(read_hash ^ mix((diagonal + 2) % 2**64))


@dataclass(frozen=True)
class Mate:
    """One read of a pair: its windows, the chosen one first thought of, and whether orientation 0 is its reverse.

    variant: phred of a difference of the sample, as the read shows it.
    """

    windows: Sequence[Window]
    chosen: int
    length: int
    hash: int
    flipped: bool
    unexamined: int
    variant: int
    contigs: Sequence[int]  # of each window

    @property
    def untested_deficit(self) -> int:
        """Of a place that had no room, which goes by scores without gaps: what one like the last with it may lose."""
        found = self.windows[:FOUND_WINDOWS]
        if len(found) < FOUND_WINDOWS:
            return NO_DEFICIT
        return min(window.deficit for window in found if window.ungapped == found[-1].ungapped)

    def end(self, i: int) -> End:
        window = self.windows[i]
        reversed_ = bool(window.orientation) != self.flipped
        return window.diagonal + (self.length if reversed_ else 0), reversed_


def distance_penalty(first: Mate, second: Mate, i: int, j: int, sizes: Sizes) -> int | None:
    return size_penalty(first.end(i), second.end(j), sizes) if first.contigs[i] == second.contigs[j] else None


@dataclass(frozen=True, order=True)
class Choice:
    """A window of each mate, by rank, and what the choice costs; deficit: of the windows alone. The least is taken."""

    cost: int
    unpaired: bool
    tie: int
    ranks: tuple[int, int]
    deficit: int


def least_score(window: Window, length: int, scoring: Scoring) -> int:
    """What a window's alignment scores at least, without bonuses for the ends that it reaches."""
    ends = 2 if window.gapped else (window.begin == 0) + (window.end == length)
    return window.score - ends * scoring.clip_penalty


def keeps(mate: Mate, i: int, scoring: Scoring) -> bool:
    """Whether a read that is mapped at its best place is mapped here too; one with gaps may do without bonuses."""

    def reaches(window: Window) -> bool:
        score = window.score if window.gapped else least_score(window, mate.length, scoring)
        return score >= scoring.joint_score

    return reaches(mate.windows[i]) or not reaches(mate.windows[mate.chosen])


def choices(first: Mate, second: Mate, sizes: Sizes, scoring: Scoring) -> list[Choice]:
    """Every two windows that make a fragment; the last choice is the mates' own best ones, as if they made none."""
    found, unpaired = [], scoring.unpaired_deficit
    for i, a in enumerate(first.windows):
        for j, b in enumerate(second.windows):
            penalty = distance_penalty(first, second, i, j, sizes)
            if penalty is not None:
                tie = mix((tie_of(first.hash, a.diagonal) + tie_of(second.hash, b.diagonal)) % 2**64)
                found.append(Choice(a.deficit + b.deficit + penalty, False, tie, (i, j), a.deficit + b.deficit))
    return [*found, Choice(unpaired, True, 0, (first.chosen, second.chosen), unpaired)]


def cheapest(first: Mate, second: Mate, found: list[Choice], scoring: Scoring) -> Choice:
    """Of all choices those that make no mate unmapped."""
    kept = [c for c in found[:-1] if keeps(first, c.ranks[0], scoring) and keeps(second, c.ranks[1], scoring)]
    return min([*kept, found[-1]])


def anchors_of(partner: Mate, own: Mate, deficit: int) -> list[int]:
    """The ranks of the windows beside which a mate is looked for; deficit: of the pair's choice.

    They gain what is worth the search or, if there may be more places of the mate, may make another choice as likely.
    """
    most = max(deficit - WORTH, deficit + DOUBT if own.untested_deficit < DOUBT else 0)
    return [i for i, window in enumerate(partner.windows) if window.deficit < most]


@dataclass(frozen=True)
class Decision:
    """Of both mates the window, its MAPQ, and the best score of another place; joint: whether they make a fragment."""

    ranks: tuple[int, int]
    joint: bool
    mapqs: tuple[int, ...]
    seconds: tuple[int, ...]


def decide(first: Mate, second: Mate, sizes: Sizes, scoring: Scoring) -> Decision:
    """The cheapest choice; the sum of those that have a mate elsewhere says how likely it belongs there.

    If there are several, the mates lie in one repeat, of which a copy that neither had room for is one more.
    """
    mates, found = (first, second), choices(first, second, sizes, scoring)
    best = cheapest(first, second, found, scoring)
    unexamined = [unexamined_deficit(m.unexamined, m.windows[m.chosen].score, m.variant, scoring) for m in mates]
    rivals = [_rivals(mate, best.ranks[side]) for side, mate in enumerate(mates)]
    others = sum(any(choice.ranks[side] in rivals[side] for side in (0, 1)) for choice in found[:-1])
    mapqs, seconds = [], []
    for side, mate in enumerate(mates):
        costs = [choice.cost for choice in found[:-1] if choice.ranks[side] in rivals[side]]
        costs += [mate.windows[i].deficit + scoring.unpaired_deficit for i in rivals[side]]
        costs.append(unexamined[side] + min(unexamined[1 - side], scoring.unpaired_deficit))
        costs += [first.untested_deficit + second.untested_deficit] if others >= LEAST_REPEAT_COPIES else []
        mapqs.append(mapping_quality([cost - best.cost for cost in costs]))
        seconds.append(max((mate.windows[i].score for i in rivals[side]), default=0))
    return Decision(best.ranks, not best.unpaired, tuple(mapqs), tuple(seconds))


def _rivals(mate: Mate, chosen: int) -> list[int]:
    own = mate.windows[chosen]
    return [i for i, other in enumerate(mate.windows) if other is not own and is_rival(other, own, mate.length)]


@dataclass
class Entry:
    """A window that is reported of a read; owner: the entry of the part of which it is another place."""

    rank: int
    role: int
    owner: Entry | None
    mapq: int
    second: int


def select(
    read: Mate, mapq: int, second: int, bases_per_variant: int, reporting: Reporting, scoring: Scoring
) -> list[Entry]:
    """The entries of a read but for secondary ones, the primary one first; beside those there are no XA hits."""
    windows, length = read.windows, read.length
    entries = [Entry(read.chosen, PRIMARY, None, mapq, second)]
    if read.chosen < 0:
        return entries
    order = sorted(
        range(len(windows)),
        key=lambda i: (-windows[i].score, tie_of(read.hash, windows[i].diagonal), windows[i].orientation),
    )
    for rank in order:
        window = windows[rank]
        if rank == read.chosen or window.score < scoring.min_score:
            continue
        parts = [entry for entry in entries if entry.role != XA_HIT]
        owner = next((p for p in parts if rivals_for(window.span(length), windows[p.rank].span(length))), None)
        reported = [windows[entry.rank] for entry in entries]
        if owner is None:
            entries.append(_supplementary(rank, read, mapq, bases_per_variant, scoring))
        elif window.score * 100 >= windows[owner.rank].score * reporting.xa_share and not any(
            same_alignment(window, other) or beside(window, other) for other in reported
        ):
            entries.append(Entry(rank, XA_HIT, owner, 0, 0))
    entries = _limited(entries, reporting)
    others = [entry for entry in entries if entry.role == SUPPLEMENTARY]
    sure = [entry for entry in others if least_score(windows[entry.rank], length, scoring) >= scoring.min_score]
    first = min([entries[0], *sure], key=lambda part: _read_begin(read, part))
    if reporting.leftmost_primary and first is not entries[0]:
        place = entries.index(first)
        entries[0].role, first.role = first.role, entries[0].role
        entries[0], entries[place] = first, entries[0]
    return entries


def _supplementary(rank: int, read: Mate, mapq: int, bases_per_variant: int, scoring: Scoring) -> Entry:
    window = read.windows[rank]
    bases = len(window.span(read.length))
    variant = variant_of(bases, perfect(bases, scoring) - window.score, bases_per_variant, scoring)
    rivals = [other for other in read.windows if other is not window and is_rival(other, window, read.length)]
    deficits = [max(in_phred(window.score - other.score, variant, scoring), 0) for other in rivals]
    deficits.append(unexamined_deficit(read.unexamined, window.score, variant, scoring))
    second = max((other.score for other in rivals), default=0)
    return Entry(rank, SUPPLEMENTARY, None, min(mapping_quality(deficits), mapq), second)


def _limited(entries: list[Entry], reporting: Reporting) -> list[Entry]:
    """All XA hits of a part or none."""

    def hits(owner: Entry | None) -> int:
        return sum(entry.role == XA_HIT and entry.owner is owner for entry in entries)

    return [entry for entry in entries if entry.role != XA_HIT or hits(entry.owner) <= reporting.xa_limit]


def _read_begin(read: Mate, entry: Entry) -> int:
    """Where the part begins in the read as it was sequenced."""
    span = read.windows[entry.rank].span(read.length)
    return read.length - 1 - max(span) if read.flipped else min(span)
