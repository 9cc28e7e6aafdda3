"""Index, search and alignment in slow and obvious Python, as a reference for the kernels.

A reference is a list of contigs. Its text is the concatenation of the contigs in upper case, each followed by a
barrier; ambiguous bases are replaced by barriers. Alignments are lists of CIGAR operations as in SAM.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from readmap.backend.compilation.declarations import constant
from readmap.mapping.parameters import Scoring

BARRIER = "!"  # sorts before A
AMBIGUOUS = "NRYKMSWBDHV"
AMBIGUOUS_PENALTY = constant("mapping/scoring.cuh", "AMBIGUOUS_PENALTY")
IMPOSSIBLE = -(10**9)

Cigar = list[tuple[int, str]]

_COMPLEMENTS = dict(zip("ACGT", "TGCA", strict=True))


def clean(letters: str) -> str:
    """Return the letters as A, C, G, T or N: upper case, U as T, other letters as N."""
    return re.sub("[^ACGT]", "N", letters.upper().replace("U", "T"))


def reverse_complement(letters: str) -> str:
    return "".join(_COMPLEMENTS.get(letter, "N") for letter in reversed(clean(letters)))


def canonical(letters: str) -> str:
    """Return the smaller of a read and its reverse complement, in the order A, C, G, T, N."""
    return min(clean(letters), reverse_complement(letters), key=lambda s: ["ACGTN".index(letter) for letter in s])


def pack(letters: str, words: int) -> list[int]:
    """Pack letters into 64-bit words, two bits per base, the first base highest; padding and ambiguous bases are A."""
    bits = "".join(f"{max('ACGT'.find(letter), 0):02b}" for letter in letters.ljust(32 * words, "A"))
    return [int(bits[i : i + 64], 2) for i in range(0, 64 * words, 64)]


def pack_mask(letters: str, words: int) -> list[int]:
    """Return 64-bit words with the bits 01 for each ambiguous base, else 00."""
    bits = "".join("01" if letter == "N" else "00" for letter in letters.ljust(32 * words, "A"))
    return [int(bits[i : i + 64], 2) for i in range(0, 64 * words, 64)]


def text_of(contigs: Sequence[str]) -> str:
    return "".join(clean(contig).replace("N", BARRIER) + BARRIER for contig in contigs)


def suffix_order(text: str) -> list[int]:
    """Return the suffix array: positions of all bases in the order of their suffixes up to the next barrier."""
    return in_suffix_order(text, (place for place in range(len(text)) if text[place] != BARRIER))


def in_suffix_order(text: str, places: Iterable[int]) -> list[int]:
    """Sort positions by the bases up to the next barrier, then by position."""
    return sorted(places, key=lambda place: (text[place:].split(BARRIER, 1)[0], place))


def prefix_table(text: str, bases: int) -> list[int]:
    """Return the number of suffixes whose first bases (A after a barrier) are less than x, for each word x."""
    counts = [0] * (4**bases + 1)
    for place in range(len(text)):
        if text[place] != BARRIER:
            prefix = text[place : place + bases].split(BARRIER)[0].ljust(bases, "A")
            counts[int("".join(str("ACGT".index(letter)) for letter in prefix), 4) + 1] += 1
    for x in range(4**bases):
        counts[x + 1] += counts[x]
    return counts


def common_prefix(text: str, place: int, query: str) -> int:
    """Return the number of bases that the query shares with the text at a position; barriers match nothing."""
    shared = 0
    while shared < len(query) and place + shared < len(text) and text[place + shared] == query[shared]:
        shared += 1
    return shared


def insertion_point(text: str, order: Sequence[int], query: str) -> int:
    """Return the number of suffixes that sort before the query, which equals its own extensions."""
    return bisect.bisect_left(order, query, key=lambda place: text[place : place + len(query)])


#: One of the four edges of a node, A to T: start and length of the label, left bound, and child node (None for a leaf).
Edge = tuple[int, int, int, "Node | None"]
#: A node of the suffix tree: its range of ranks [low, high), and its depth.
Node = tuple[int, int, int]


def suffix_tree(text: str, order: Sequence[int]) -> dict[Node, list[Edge]]:
    """Return all inner nodes with their edges. An edge without suffixes has start and length 0."""
    nodes: dict[Node, list[Edge]] = {}
    todo = [(0, len(order), 0)]
    while todo:
        low, high, depth = node = todo.pop()
        following = [text[order[rank] + depth] for rank in range(low, high)]
        left = low + following.count(BARRIER)  # suffixes that end at the node come first
        nodes[node] = []
        for base in "ACGT":
            right = left + following.count(base)
            below = None
            start = length = 0
            if left < right:
                start = order[left] + depth
                first, last = text[order[left] :].split(BARRIER)[0], text[order[right - 1] :].split(BARRIER)[0]
                deeper = common_prefix(first, 0, last)
                length = deeper - depth
                if right - left > 1:
                    below = (left, right, deeper)
                    todo.append(below)
            nodes[node].append((start, length, left, below))
            left = right
        assert left == high
    return nodes


def occurrences(contigs: Sequence[str], query: str, strands: Sequence[int] = (1, -1)) -> list[tuple[int, int, int]]:
    """Return (contig, start, strand) of every exact occurrence in the order in which they are reported.

    Strand by strand (a palindrome occurs on both); on each strand in suffix order, then by position.
    """
    text, wanted = text_of(contigs), clean(query)
    if not wanted or "N" in wanted:
        return []
    starts = [0]
    for contig in contigs:
        starts.append(starts[-1] + len(contig) + 1)
    found = []
    for strand in strands:
        letters = wanted if strand == 1 else reverse_complement(wanted)
        places = [match.start() for match in re.finditer(f"(?={letters})", text)]
        for place in in_suffix_order(text, places):
            contig = bisect.bisect_right(starts, place) - 1
            found.append((contig, place - starts[contig], strand))
    return found


def column_score(base: str, letter: str, scoring: Scoring) -> int:
    """Return the score of a read's base aligned to a reference letter."""
    if base not in "ACGT" or letter not in "ACGT":
        return -AMBIGUOUS_PENALTY
    return scoring.match if base == letter else -scoring.mismatch


def segment(
    read: str, contig: str, diagonal: int, begin: int, end: int, drop: int, scoring: Scoring, reversed_: bool = False
) -> tuple[int, int, int]:
    """Return score, start and end of the best ungapped extension of the matching bases read[begin:end] on a diagonal.

    reversed_: the read is given as its reverse complement. Each side is extended until its score falls more than `drop`
    below its best; of equal scores the shortest extension is taken.
    """

    left_clip, right_clip = clips(scoring, reversed_)

    def extend(positions: Sequence[int], clip: int) -> tuple[int, int]:
        best = (0, 0)
        score = 0
        for taken, i in enumerate(positions, 1):
            if not 0 <= i + diagonal < len(contig):
                break
            column = column_score(read[i], contig[i + diagonal], scoring)
            score += column
            if column < 0 and score + drop < best[0]:
                break
            bonus = clip if taken == len(positions) else 0
            best = max(best, (score + bonus, -taken))
        return best[0], -best[1]

    left, more_left = extend(range(begin - 1, -1, -1), left_clip) if begin else (left_clip, 0)
    right, more_right = extend(range(end, len(read)), right_clip) if end < len(read) else (right_clip, 0)
    return left + (end - begin) * scoring.match + right, begin - more_left, end + more_right


def clips(scoring: Scoring, reversed_: bool) -> tuple[int, int]:
    """Return the clipping penalties of the left and right end of an oriented read."""
    return (scoring.clip_3, scoring.clip_5) if reversed_ else (scoring.clip_5, scoring.clip_3)


def gap_cost(bases: int, operation: str, scoring: Scoring, long_gaps: bool) -> int:
    """Return the cost of a gap. operation: I or D. long_gaps: a gap of any length costs at most scoring.long_gap."""
    if operation == "I":
        plain = scoring.insertion_open + bases * scoring.insertion_extend
    else:
        plain = scoring.deletion_open + bases * scoring.deletion_extend
    return min(plain, scoring.long_gap) if long_gaps else plain


def local_score(
    read: str,
    contig: str,
    scoring: Scoring,
    diagonals: range | None = None,
    long_gaps: bool = False,
    reversed_: bool = False,
) -> int:
    """Return the best score of a local alignment with affine gaps, plus the clipping penalty of each read end reached.

    diagonals: allowed values of (contig position - read position); default, all. long_gaps: see gap_cost. reversed_:
    see segment. An alignment reaches an end with a pair of bases, never with a gap.
    """
    rows, columns = len(read), len(contig)
    left_clip, right_clip = clips(scoring, reversed_)
    allowed = diagonals or range(-rows - 1, columns + 1)
    over = {base: np.array([column_score(base, letter, scoring) for letter in contig], int) for base in set(read)}
    leap = scoring.long_gap if long_gaps else -IMPOSSIBLE
    # Column j: j bases of the contig are consumed.
    places = np.arange(columns + 1)
    scores = np.where((places >= allowed.start) & (places < allowed.stop), 0, IMPOSSIBLE)
    inserted, leapt = np.full((2, columns + 1), IMPOSSIBLE)
    best = 0
    for i in range(rows):
        inserted = np.maximum(scores - scoring.insertion_open, inserted) - scoring.insertion_extend
        leapt = np.maximum(scores - leap, leapt)
        bonus = (i == 0) * left_clip + (i == rows - 1) * right_clip
        matched = np.append(IMPOSSIBLE, scores[:-1] + bonus + over[read[i]])
        is_barred = (places <= i + allowed.start) | (places > i + allowed.stop)
        scores = np.maximum.reduce([np.zeros_like(places), matched, inserted, leapt])
        scores[is_barred] = IMPOSSIBLE
        # A deletion starts at the best column to its left; two consecutive deletions would cost more than one.
        extend = scoring.deletion_extend
        deleted = np.maximum.accumulate(scores + extend * places)[:-1] - extend * places[1:]
        fallen = np.maximum.accumulate(scores)[:-1] - leap
        scores[1:] = np.maximum.reduce([scores[1:], deleted - scoring.deletion_open, fallen])
        scores[is_barred] = IMPOSSIBLE
        best = max(best, int(scores.max()))
    return best


def best_anywhere(read: str, contigs: Iterable[str], scoring: Scoring) -> int:
    """Return the best score with bonuses of a read on any contig and strand, by parasail."""
    alphabet = "ACGTN^$#"
    parasail = pytest.importorskip("parasail", reason="parasail is not installed")
    matrix = parasail.matrix_create(alphabet, 0, 0)
    for i, base in enumerate(alphabet):
        for j, letter in enumerate(alphabet):
            bonus = scoring.clip_penalty if {base, letter} & {"^", "$"} else -100_000
            matrix[i, j] = bonus if {base, letter} & set("^$#") else column_score(base, letter, scoring)
    text = "#" + "#".join(clean(letters) for letters in contigs) + "#"
    gaps = scoring.gap_open + scoring.gap_extend, scoring.gap_extend
    return max(
        int(parasail.sw_scan_32(f"^{bases}$", text, *gaps, matrix).score)
        for bases in (clean(read), reverse_complement(read))
    )


def parse_cigar(text: str) -> Cigar:
    """Parse a CIGAR string."""
    assert re.fullmatch(r"\*|([1-9]\d*[MIDS])+", text), text
    return [(int(length), operation) for length, operation in re.findall(r"(\d+)([MIDS])", text)]


@dataclass(frozen=True)
class Rescored:
    """Score without bonuses, NM, MD and lengths, computed from a CIGAR."""

    score: int
    edit_distance: int
    differences: str
    query_length: int
    reference_length: int


def rescore(cigar: Cigar, read: str, contig: str, start: int, scoring: Scoring, long_gaps: bool = True) -> Rescored:
    """Rescore a CIGAR column by column. read: in the alignment's orientation; contig: IUPAC letters; start: 0-based."""
    read = clean(read)
    score = edits = equal = at = 0
    place = start
    differences = ""
    for length, operation in cigar:
        if operation == "M":
            for _ in range(length):
                score += column_score(read[at], contig[place], scoring)
                if read[at] == contig[place] and contig[place] in "ACGT":
                    equal += 1
                else:
                    differences += f"{equal}{contig[place]}"
                    edits, equal = edits + 1, 0
                at, place = at + 1, place + 1
        elif operation == "D":
            differences += f"{equal}^{contig[place : place + length]}"
            equal, place = 0, place + length
        else:
            at += length
        if operation in "ID":
            edits += length
            score -= gap_cost(length, operation, scoring, long_gaps)
    return Rescored(score, edits, f"{differences}{equal}", at, place - start)


def bonuses(cigar: Cigar, scoring: Scoring, reversed_: bool = False) -> int:
    """Return the bonuses for the ends of the read that an alignment reaches."""
    ends = cigar[0][1], cigar[-1][1]
    return sum(clip for operation, clip in zip(ends, clips(scoring, reversed_), strict=True) if operation != "S")


def gaps_to_shift(cigar: Cigar, read: str, contig: str, start: int, scoring: Scoring) -> Cigar:
    """Return the gaps between aligned columns that would score the same one base further left on the contig."""
    found = []
    at, place = 0, start
    for number, (length, operation) in enumerate(cigar):
        around = "".join(operation for _, operation in cigar[number - 1 : number + 2])
        if around in ("MIM", "MDM") and cigar[number - 1][0] > 1:
            # Shifting the gap removes the column before it, and adds a column for its last base.
            gone = column_score(read[at - 1], contig[place - 1], scoring)
            query_end, place_end = (at + length, place) if operation == "I" else (at, place + length)
            if column_score(read[query_end - 1], contig[place_end - 1], scoring) == gone:
                found.append((length, operation))
        at += length if operation != "D" else 0
        place += length if operation in "MD" else 0
    return found
