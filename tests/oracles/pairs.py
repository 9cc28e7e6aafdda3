"""What readmap decides of windows, of one read and of two mates: which are one place, which rivals, which are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from readmap.search.parameters import Reporting, Scoring

NEGLIGIBLE = 60  # this and the following numbers are of kernels/search/mapping_quality.cuh
MISTRUST = 45
UNSEEN = 64
THIRD = 5
NO_LOSS = 32767  # of kernels/search/placement.cuh
FOUND_WINDOWS, DOUBT, WORTH, FAMILY = 16, 30, 10, 3  # of kernels/search/pairs.cu
BAND_WIDTHS = {0: 32, 1: 32, 2: 64, 3: 160, 4: 256}  # of kernels/search/windows.cuh, and SPREAD
SPREAD = 24

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
class Candidate:
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
    loss: int

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


def beside(one: Candidate, other: Candidate) -> bool:
    return one.orientation == other.orientation and abs(one.diagonal - other.diagonal) <= SPREAD


def same_alignment(rival: Candidate, chosen: Candidate) -> bool:
    """Whether a rival's band reaches the chosen alignment, which scores the same."""
    middle = int((rival.low + rival.high) / 2)
    reached = 2 * abs(chosen.diagonal - rival.diagonal - middle) <= BAND_WIDTHS[rival.band]
    return rival.gapped and (rival.score, rival.orientation) == (chosen.score, chosen.orientation) and reached


def is_rival(other: Candidate, chosen: Candidate, length: int) -> bool:
    palindrome = other.diagonal == chosen.diagonal
    same = beside(other, chosen) or palindrome or same_alignment(other, chosen)
    return not same and rivals_for(other.span(length), chosen.span(length))


def likelihood(phred: int) -> int:
    """In units of 2^-24, rounded in two steps."""
    tens = 10 ** (phred // 10)
    return (round(2**24 * 10 ** (-(phred % 10) / 10)) + tens // 2) // tens


def phred_of(part: int, whole: int) -> int:
    return max(phred for phred in range(61) if phred == 0 or likelihood(phred) * whole >= part << 24)


def mapping_quality(losses: Sequence[int]) -> int:
    """Of a place of which the others explain the read worse by so many phred."""
    shares = [likelihood(max(loss, 0)) for loss in losses if loss < NEGLIGIBLE]
    error = sum(share + share // UNSEEN for share in shares)
    error += likelihood(MISTRUST) if error else 0
    return phred_of(error, error + 2**24)


def variant_of(bases: int, lost: int, clean_bases: int, scoring: Scoring) -> int:
    """Phred of a difference of the sample, where `bases` of a read lose so many points and one in many is expected."""
    differences = max(lost, 0) // (scoring.match + scoring.mismatch)
    return THIRD + phred_of(1 + differences, clean_bases + bases)


def perfect(length: int, scoring: Scoring) -> int:
    return scoring.match * length + 2 * scoring.clip_penalty


def in_phred(points: int, variant: int, scoring: Scoring) -> int:
    return int(points * variant / (scoring.match + scoring.mismatch))


def missed_loss(missed: int, score: int, variant: int, scoring: Scoring) -> int:
    """Of a place that shares so many bases and was not looked at."""
    if not missed:
        return NO_LOSS
    return max(in_phred(score - perfect(missed, scoring), variant, scoring), 0)


def mix(x: int) -> int:
    """The finaliser of splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ x >> shift) * factor % 2**64
    return x ^ x >> 31


def tie_of(read_hash: int, diagonal: int) -> int:
    return mix(read_hash ^ mix((diagonal + 2) % 2**64))


@dataclass(frozen=True)
class Mate:
    """One read of a pair: its candidates, the chosen one first thought of, and whether orientation 0 is its reverse.

    variant: phred of a difference of the sample, as the read shows it.
    """

    candidates: Sequence[Candidate]
    chosen: int
    length: int
    hash: int
    flipped: bool
    missed: int
    variant: int
    contigs: Sequence[int]  # of each candidate

    @property
    def unseen_loss(self) -> int:
        """Of a place that had no room, which goes by scores without gaps: what one like the last with it may lose."""
        found = self.candidates[:FOUND_WINDOWS]
        if len(found) < FOUND_WINDOWS:
            return NO_LOSS
        return min(candidate.loss for candidate in found if candidate.ungapped == found[-1].ungapped)

    def end(self, i: int) -> End:
        candidate = self.candidates[i]
        reversed_ = bool(candidate.orientation) != self.flipped
        return candidate.diagonal + (self.length if reversed_ else 0), reversed_


def distance_penalty(first: Mate, second: Mate, i: int, j: int, sizes: Sizes) -> int | None:
    return size_penalty(first.end(i), second.end(j), sizes) if first.contigs[i] == second.contigs[j] else None


@dataclass(frozen=True, order=True)
class Choice:
    """A window of each mate, and what the choice costs; loss: of the windows alone. The least is taken."""

    cost: int
    unpaired: bool
    tie: int
    windows: tuple[int, int]
    loss: int


def least_score(window: Candidate, length: int, scoring: Scoring) -> int:
    """What a window's alignment scores at least, without bonuses for the ends that it reaches."""
    ends = 2 if window.gapped else (window.begin == 0) + (window.end == length)
    return window.score - ends * scoring.clip_penalty


def keeps(mate: Mate, i: int, scoring: Scoring) -> bool:
    """Whether a read that is told at its best place may be told here; one with gaps may do without bonuses."""

    def reaches(window: Candidate) -> bool:
        score = window.score if window.gapped else least_score(window, mate.length, scoring)
        return score >= scoring.joint_score

    return reaches(mate.candidates[i]) or not reaches(mate.candidates[mate.chosen])


def choices(first: Mate, second: Mate, sizes: Sizes, unpaired: int) -> list[Choice]:
    """Every two windows that make a fragment; the last choice is the mates' own best ones, as if they made none."""
    found = []
    for i, a in enumerate(first.candidates):
        for j, b in enumerate(second.candidates):
            penalty = distance_penalty(first, second, i, j, sizes)
            if penalty is not None:
                tie = mix((tie_of(first.hash, a.diagonal) + tie_of(second.hash, b.diagonal)) % 2**64)
                found.append(Choice(a.loss + b.loss + penalty, False, tie, (i, j), a.loss + b.loss))
    return [*found, Choice(unpaired, True, 0, (first.chosen, second.chosen), unpaired)]


def cheapest(first: Mate, second: Mate, found: list[Choice], scoring: Scoring) -> Choice:
    """Of all choices those that make no mate unmapped."""
    kept = [c for c in found[:-1] if keeps(first, c.windows[0], scoring) and keeps(second, c.windows[1], scoring)]
    return min([*kept, found[-1]])


def anchors_of(partner: Mate, own: Mate, loss: int) -> list[int]:
    """The windows beside which a mate is looked for, where the windows of the pair's choice lose so much.

    They gain what is worth the search or, if there may be more places of the mate, may make another choice as likely.
    """
    most = max(loss - WORTH, loss + DOUBT if own.unseen_loss < DOUBT else 0)
    return [i for i, window in enumerate(partner.candidates) if window.loss < most]


@dataclass(frozen=True)
class Decision:
    """Of both mates the window, its MAPQ, and the best score of another place; joint: whether they make a fragment."""

    windows: tuple[int, int]
    joint: bool
    mapqs: tuple[int, ...]
    seconds: tuple[int, ...]


def decide(first: Mate, second: Mate, sizes: Sizes, unpaired: int, scoring: Scoring) -> Decision:
    """The cheapest choice; the sum of those that have a mate elsewhere says how likely it belongs there.

    If there are several, the mates lie in one repeat, of which a copy that neither had room for is one more.
    """
    mates, found = (first, second), choices(first, second, sizes, unpaired)
    best = cheapest(first, second, found, scoring)
    missed = [missed_loss(m.missed, m.candidates[m.chosen].score, m.variant, scoring) for m in mates]
    rivals = [_rivals(mate, best.windows[side]) for side, mate in enumerate(mates)]
    others = sum(any(choice.windows[side] in rivals[side] for side in (0, 1)) for choice in found[:-1])
    mapqs, seconds = [], []
    for side, mate in enumerate(mates):
        costs = [choice.cost for choice in found[:-1] if choice.windows[side] in rivals[side]]
        costs += [mate.candidates[i].loss + unpaired for i in rivals[side]]
        costs.append(missed[side] + min(missed[1 - side], unpaired))
        costs += [first.unseen_loss + second.unseen_loss] if others >= FAMILY else []
        mapqs.append(mapping_quality([cost - best.cost for cost in costs]))
        seconds.append(max((mate.candidates[i].score for i in rivals[side]), default=0))
    return Decision(best.windows, not best.unpaired, tuple(mapqs), tuple(seconds))


def _rivals(mate: Mate, chosen: int) -> list[int]:
    own = mate.candidates[chosen]
    return [i for i, other in enumerate(mate.candidates) if other is not own and is_rival(other, own, mate.length)]


@dataclass
class Line:
    """A window that is told of a read; owner: the line of the part of which it is another place."""

    rank: int
    role: str
    owner: Line | None
    mapq: int
    second: int


def select(read: Mate, mapq: int, second: int, clean_bases: int, reporting: Reporting, scoring: Scoring) -> list[Line]:
    """The lines of a read but for its places, the primary one first; beside places there are no mentions."""
    windows, length = read.candidates, read.length
    lines = [Line(read.chosen, "primary", None, mapq, second)]
    if read.chosen < 0:
        return lines
    order = sorted(
        range(len(windows)),
        key=lambda i: (-windows[i].score, tie_of(read.hash, windows[i].diagonal), windows[i].orientation),
    )
    for rank in order:
        window = windows[rank]
        if rank == read.chosen or window.score < scoring.min_score:
            continue
        parts = [line for line in lines if line.role in ("primary", "piece")]
        owner = next((p for p in parts if rivals_for(window.span(length), windows[p.rank].span(length))), None)
        told = [windows[line.rank] for line in lines]
        if owner is None:
            lines.append(_piece(rank, read, mapq, clean_bases, scoring))
        elif window.score * 100 >= windows[owner.rank].score * reporting.mention_share and not any(
            same_alignment(window, other) or beside(window, other) for other in told
        ):
            lines.append(Line(rank, "mention", owner, 0, 0))
    lines = _limited(lines, reporting)
    parts = [line for line in lines[1:] if line.role == "piece" and _is_sure(read, line, scoring)]
    first = min([lines[0], *parts], key=lambda part: _read_begin(read, part))
    if reporting.leftmost_primary and first is not lines[0]:
        place = lines.index(first)
        lines[0].role, first.role = "piece", "primary"
        lines[0], lines[place] = first, lines[0]
    return lines


def _piece(rank: int, read: Mate, mapq: int, clean_bases: int, scoring: Scoring) -> Line:
    window = read.candidates[rank]
    bases = len(window.span(read.length))
    variant = variant_of(bases, perfect(bases, scoring) - window.score, clean_bases, scoring)
    rivals = [other for other in read.candidates if other is not window and is_rival(other, window, read.length)]
    losses = [max(in_phred(window.score - other.score, variant, scoring), 0) for other in rivals]
    losses.append(missed_loss(read.missed, window.score, variant, scoring))
    second = max((other.score for other in rivals), default=0)
    return Line(rank, "piece", None, min(mapping_quality(losses), mapq), second)


def _limited(lines: list[Line], reporting: Reporting) -> list[Line]:
    """All mentions of a part or none."""
    most = 0 if reporting.most_places else reporting.most_mentions
    kept: list[Line] = []
    for line in lines:
        same = [other for other in lines if (other.role, other.owner) == (line.role, line.owner)]
        if line.role == "mention" and len(same) > most:
            continue
        kept.append(line)
    return kept


def _is_sure(read: Mate, line: Line, scoring: Scoring) -> bool:
    """Whether its alignment is good enough without the bonuses that are in the window's score, or may be."""
    window = read.candidates[line.rank]
    ends = 2 if window.gapped else (window.begin == 0) + (window.end == read.length)
    return window.score - ends * scoring.clip_penalty >= scoring.min_score


def _read_begin(read: Mate, line: Line) -> int:
    """Where the part begins in the read as it was sequenced."""
    span = read.candidates[line.rank].span(read.length)
    return read.length - 1 - max(span) if read.flipped else min(span)
