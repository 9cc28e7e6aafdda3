"""Properties of MAPQ that hold for any formula: more, nearer and likelier rivals lower it."""

import itertools
import math
import random

import pytest
from examples import index_of, random_bases
from oracles.alignment import reverse_complement

from readmap import Aligner, Hits

GENERATOR = random.Random(91)
UNIT = random_bases(GENERATOR, 150)
SPACERS = [random_bases(GENERATOR, 200) for _ in range(12)]
CHANGES = random.Random(92).sample(range(10, 140), 40)


def changed(bases: str, count: int) -> str:
    """Return the bases with other letters at the first `count` positions of CHANGES."""
    letters = list(bases)
    for place in CHANGES[:count]:
        letters[place] = "ACGT"[("ACGT".index(letters[place]) + 1) % 4]
    return "".join(letters)


def map_unit(device: str, copies: list[str], read: str = UNIT, quality: str | None = None) -> Hits:
    """Map the read against the unit and copies of it, every other one on the reverse strand."""
    turned = [reverse_complement(copy) if number % 2 else copy for number, copy in enumerate(copies)]
    contig = "".join(spacer + copy for spacer, copy in zip(SPACERS, [UNIT, *turned], strict=False)) + SPACERS[-1]
    hits = Aligner(index_of([contig]), device=device).map([read], [quality] if quality else None)
    assert hits.contigs.tolist() == [0]
    return hits


def test_placement_without_rivals(backends: str) -> None:
    hits = map_unit(backends, [])
    assert (int(hits.ref_starts[0]), int(hits.mapqs[0]), int(hits.suboptimal_scores[0])) == (200, 60, 0)


@pytest.mark.parametrize("copies", [2, 3, 4, 5, 8])
def test_equal_placements_share_the_probability(backends: str, copies: int) -> None:
    """Each of n placements is wrong with probability (n - 1) / n, or slightly more."""
    hits = map_unit(backends, [UNIT] * (copies - 1))
    assert int(-10 * math.log10((copies - 1) / copies)) - int(hits.mapqs[0]) in (0, 1)
    assert int(hits.suboptimal_scores[0]) == 150


@pytest.mark.parametrize("quality", [None, "I" * 150])
def test_mapq_grows_with_the_difference_of_a_rival(backends: str, quality: str | None) -> None:
    found = [map_unit(backends, [changed(UNIT, count)], UNIT, quality) for count in (0, 1, 2, 3, 6, 12, 25)]
    mapqs = [int(hits.mapqs[0]) for hits in found]
    assert [int(hits.ref_starts[0]) for hits in found[1:]] == [200] * 6
    assert mapqs == sorted(mapqs)
    assert mapqs[0] in (2, 3)
    assert 10 <= mapqs[1] <= 40
    assert mapqs[-1] == 60
    seconds = [int(hits.suboptimal_scores[0]) for hits in found]
    assert seconds == [150, 145, 140, 0, 0, 0, 0]  # placements that are 60 phred worse are not searched


def test_mapq_falls_with_the_number_of_rivals(backends: str) -> None:
    mapqs = [int(map_unit(backends, [changed(UNIT, 1)] * count).mapqs[0]) for count in (0, 1, 3, 9)]
    assert mapqs == sorted(mapqs, reverse=True)
    assert mapqs[0] > mapqs[1] > mapqs[3]


def test_same_placement_in_another_band_is_no_rival(backends: str) -> None:
    """A tandem repeat in the read names many diagonals of one placement; a gap in the read names two."""
    repeat = UNIT[:60] + "CA" * 12 + UNIT[84:]
    contig = SPACERS[0] + repeat + SPACERS[1]
    for read in (repeat, UNIT[:60] + "CA" * 10 + UNIT[84:], repeat[:40] + repeat[45:]):
        hits = Aligner(index_of([contig]), device=backends).map([read])
        assert (int(hits.ref_starts[0]), int(hits.suboptimal_scores[0])) == (200, 0)
        assert int(hits.mapqs[0]) >= 30


def test_low_quality_bases_count_less(backends: str) -> None:
    """Two copies are nearly alike if the only base in which they differ has a low quality."""
    place = CHANGES[0]
    elsewhere = 5

    def mapq(poor: int | None) -> int:
        quality = "".join("#" if i == poor else "I" for i in range(150))
        return int(map_unit(backends, [changed(UNIT, 1)], UNIT, quality).mapqs[0])

    assert mapq(None) == mapq(elsewhere)
    assert mapq(place) < mapq(None)
    assert mapq(place) <= 10


def test_read_between_two_copies(backends: str) -> None:
    """Two copies differ in nine bases; the read goes to the copy it shares more of them with."""
    mapqs = []
    for own in range(4, -1, -1):
        read = changed(UNIT, own)
        hits = map_unit(backends, [changed(UNIT, 9)], read)
        assert (int(hits.ref_starts[0]), int(hits.strands[0]), int(hits.edit_distances[0])) == (200, 1, own)
        mapqs.append(int(hits.mapqs[0]))
    assert all(a <= b for a, b in itertools.pairwise(mapqs))
