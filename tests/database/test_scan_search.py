"""Test hits of a scan against brute force: all scores and E-values, sorted and filtered, and their alignments."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.comparison import code_of, rescored
from oracles.scan import score_of
from pair_examples import mutated, parsed
from protein_examples import COSTS, LETTERS, RESIDUES, coded, random_letters

from readmap.backend import Backend, open_backend
from readmap.backend.team import Team
from readmap.database import hit_alignment, search
from readmap.database.database import Database
from readmap.database.device_pool import DevicePool
from readmap.database.hit_alignment import AlignmentRequest, CroppedPair
from readmap.database.matrices import STANDARD, ScoreMatrix, nucleotides, standard
from readmap.database.parameters import HitFilter, ScanScoring
from readmap.database.results import ScanHits
from readmap.database.search import QueryResult, Scan
from readmap.database.statistics import SearchSpace, supported_gaps
from readmap.errors import InternalError, UsageError
from readmap.pairwise.batches import align_pairs
from readmap.pairwise.device_sequences import sequences_from_codes
from readmap.pairwise.parameters import Mode
from readmap.reads.sequences import COMPLEMENTS, Sequences
from readmap.strand import Strand

BLOSUM62, DNA = COSTS["BLOSUM62"], COSTS["nucleotides"]


@pytest.fixture
def backend(backends: str) -> Backend:
    return open_backend(backends, threads=2)


def sequences_of(texts: list[str]) -> Sequences:
    letters = np.frombuffer("".join(texts).encode(), np.uint8)
    return Sequences([b"s%d" % number for number in range(len(texts))], letters, np.cumsum([0, *map(len, texts)]))


def reverse_complement(text: str) -> str:
    return COMPLEMENTS[np.frombuffer(text[::-1].encode(), np.uint8)].tobytes().decode()


def family(draw: random.Random, queries: list[str], count: int, letters: str) -> list[str]:
    """Return texts; two in three contain a relative of a query or of its reverse complement, and some are equal."""
    texts = ["", random_letters(draw, 1, letters)]
    while len(texts) < count:
        text = random_letters(draw, int(draw.lognormvariate(4, 1)), letters)
        if draw.random() < 0.7:
            related = draw.choice(queries)
            related = reverse_complement(related) if letters == "ACGT" and draw.random() < 0.5 else related
            start = draw.randrange(max(len(related) - 20, 1))
            part = related[start : start + draw.randrange(10, 80)]
            text += mutated(draw, part, draw.choice([0.1, 0.3, 0.5]), LETTERS)
            text = "".join(letter if letter in letters else letters[0] for letter in text)
        texts += [text] * draw.choice([1, 1, 1, 2])
    draw.shuffle(texts)
    return texts[:count]


def drawn(letters: str, count: int = 130) -> tuple[list[str], list[str]]:
    """Return random queries and subjects."""
    draw = random.Random(letters)
    queries = [random_letters(draw, length, letters) for length in (90, 0, 30, 250, 3, 1, 60)]
    return queries, family(draw, queries, count, letters)


PROTEINS, NUCLEOTIDES = drawn(RESIDUES), drawn("ACGT")


@contextmanager
def opened(subjects: list[str], scoring: ScanScoring, hit_filter: HitFilter, *backends: Backend) -> Iterator[Scan]:
    molecule = "nucleotide" if scoring.matrix.is_nucleotide or set("".join(subjects)) <= set("ACGTN") else "protein"
    database = Database.of(sequences_of(subjects), molecule)
    with Team.of(*backends) as team:
        yield Scan(database, scoring, hit_filter, DevicePool(database, team))


def scanned(
    queries: list[str], subjects: list[str], scoring: ScanScoring, hit_filter: HitFilter, *backends: Backend
) -> list[QueryResult]:
    with opened(subjects, scoring, hit_filter, *backends) as scan:
        return list(scan(sequences_of(queries)))


KNOWN: dict[tuple[int, str, str], int] = {}


def known(query: str, subjects: list[str], scoring: ScanScoring) -> list[int]:
    """Return the scores of the oracle, cached by scoring."""
    for subject in subjects:
        if (id(scoring), query, subject) not in KNOWN:
            KNOWN[id(scoring), query, subject] = score_of(coded(query), coded(subject), scoring)
    return [KNOWN[id(scoring), query, subject] for subject in subjects]


Row = tuple[int, bool, int]


def brute(
    query: str, subjects: list[str], scoring: ScanScoring, hit_filter: HitFilter
) -> tuple[list[Row], list[float]]:
    """Return (subject index, reverse, score) of each hit, and the E-values."""
    is_dna = scoring.matrix.is_nucleotide
    strands = {Strand.FORWARD: [False], Strand.REVERSE: [True], Strand.BOTH: [False, True]}[hit_filter.strand]
    rows = []
    for reverse in strands if is_dna else [False]:
        texts = [reverse_complement(text) if reverse else text for text in subjects]
        rows += [(number, reverse, score) for number, score in enumerate(known(query, texts, scoring))]
    letters = hit_filter.database_letters or sum(map(len, subjects))
    evalues = [0.0] * len(rows)
    if scoring.statistics:
        space = SearchSpace(scoring.statistics, len(query), letters, sum(map(bool, subjects)))
        lengths = np.array([len(subjects[number]) for number, _, _ in rows])
        evalues = space.evalues(np.array([score for _, _, score in rows]), lengths).tolist() if rows else []
    highest = 10.0 if hit_filter.evalue is None else hit_filter.evalue
    kept = [
        (row, evalue)
        for row, evalue in zip(rows, evalues, strict=True)
        if row[2] >= hit_filter.min_score and (scoring.statistics is None or evalue <= highest)
    ]
    kept.sort(key=lambda each: (-each[0][2], each[0][0], each[0][1]))
    kept = kept[: hit_filter.max_hits]
    return [row for row, _ in kept], [evalue for _, evalue in kept]


def rows_of(hits: ScanHits) -> list[Row]:
    return list(zip(hits.subjects.tolist(), hits.reverse.tolist(), hits.scores.tolist(), strict=True))


def assert_found(
    found: QueryResult, query: str, subjects: list[str], scoring: ScanScoring, hit_filter: HitFilter
) -> int:
    rows, evalues = brute(query, subjects, scoring, hit_filter)
    hits = found.hits
    assert rows_of(hits) == rows
    if scoring.statistics:
        assert hits.evalues.tolist() == evalues
        assert hits.bit_scores.tolist() == scoring.statistics.bit_scores(hits.scores).tolist()
    else:
        assert np.isnan(hits.evalues).all()
        assert np.isnan(hits.bit_scores).all()
    for (number, reverse, score), alignment in zip(rows, parsed(hits.alignments), strict=True):
        subject = reverse_complement(subjects[number]) if reverse else subjects[number]
        assert alignment.score == score == rescored(alignment, query, subject, scoring.pairwise_scores())
    return len(rows)


# Hits.


@pytest.mark.parametrize("evalue", [0.0, 1e-20, 1e-3, 0.5, None, 30.0, 1e3, 1e9, float("inf")])
@pytest.mark.parametrize("scoring", [BLOSUM62, DNA], ids=["proteins", "nucleotides"])
def test_hits_match_brute_force(backend: Backend, scoring: ScanScoring, evalue: float | None) -> None:
    queries, subjects = PROTEINS if scoring is BLOSUM62 else NUCLEOTIDES
    hit_filter = HitFilter(evalue=evalue)
    found = scanned(queries, subjects, scoring, hit_filter, backend)
    counts = [assert_found(*each, subjects, scoring, hit_filter) for each in zip(found, queries, strict=True)]
    assert [each.hits.query for each in found] == list(range(len(queries)))
    assert (sum(counts) > 0) == (evalue != 0.0)
    assert counts[1] == 0


@pytest.mark.parametrize(
    "hit_filter",
    [
        *(HitFilter(min_score=40), HitFilter(min_score=40, evalue=1e-3), HitFilter(min_score=1 << 30, evalue=1e9)),
        *(HitFilter(max_hits=1), HitFilter(max_hits=7, evalue=1e9), HitFilter(database_letters=10)),
        *(HitFilter(database_letters=10**14), HitFilter(strand=Strand.FORWARD)),
        HitFilter(strand=Strand.REVERSE, evalue=1e9),
    ],
    ids=str,
)
def test_hit_filters(backend: Backend, hit_filter: HitFilter) -> None:
    for scoring, (queries, subjects) in ((BLOSUM62, PROTEINS), (DNA, NUCLEOTIDES)):
        for found, query in zip(scanned(queries, subjects, scoring, hit_filter, backend), queries, strict=True):
            assert_found(found, query, subjects, scoring, hit_filter)


@pytest.mark.parametrize("name", ["BLOSUM50, 8/2", "linear gaps", "lopsided", "large"])
def test_scoring_without_statistics(backend: Backend, name: str) -> None:
    queries, subjects = PROTEINS
    for hit_filter in (HitFilter(), HitFilter(min_score=45, max_hits=20)):
        for found, query in zip(scanned(queries, subjects, COSTS[name], hit_filter, backend), queries, strict=True):
            assert found.threshold is None
            assert_found(found, query, subjects, COSTS[name], hit_filter)
    with (
        pytest.raises(UsageError, match="E-values are unknown"),
        opened(subjects, COSTS[name], HitFilter(evalue=1), backend) as scan,
    ):
        next(scan(sequences_of(queries)))


def test_scores_out_of_range_are_rejected(backend: Backend) -> None:
    scoring = ScanScoring(nucleotides(1000, 1), 5, 2)
    with opened(["A" * 1_100_000], scoring, HitFilter(), backend) as scan:
        assert next(scan(sequences_of(["ACGT"]))).hits.scores.tolist() == [1000, 1000]
        with pytest.raises(UsageError, match="scores of 1,100,000 letters with 1,100,000 may reach 1,100,000,000"):
            next(scan(sequences_of(["A" * 1_100_000])))


def test_all_scores_are_reported(backend: Backend) -> None:
    """By index in the file, the better score of both strands."""
    for scoring, (queries, subjects) in ((BLOSUM62, PROTEINS), (DNA, NUCLEOTIDES)):
        turned = [reverse_complement(text) for text in subjects] if scoring is DNA else subjects
        for found, query in zip(scanned(queries, subjects, scoring, HitFilter(), backend), queries, strict=True):
            both = (known(query, texts, scoring) for texts in (subjects, turned))
            assert np.array_equal(found.scores, np.maximum(*both))


def test_empty_input(backend: Backend) -> None:
    queries, subjects = PROTEINS
    assert scanned([], subjects, BLOSUM62, HitFilter(), backend) == []
    for texts in ([], [""], ["", ""]):
        for found in scanned(queries, texts, BLOSUM62, HitFilter(), backend):
            assert len(found.hits) == len(found.hits.alignments.scores) == 0
            assert found.scores.tolist() == [0] * len(texts)
    for found in scanned(["P" * 40, "W" * 5], ["G" * 90] * 5, BLOSUM62, HitFilter(evalue=1e9), backend):
        assert len(found.hits) == 0


def test_ties_keep_the_order_of_the_database(backend: Backend) -> None:
    """For any lengths of the subjects, and the forward strand first."""
    text = "ACGTACGTACGT" * 3
    subjects = [text, text + "N" * 40, "N" * 9 + text, text, "N" * 200 + text + "N"]
    (found,) = scanned([text], subjects, DNA, HitFilter(evalue=1e9), backend)
    assert rows_of(found.hits) == [(number, reverse, 72) for number in range(5) for reverse in (False, True)]
    (found,) = scanned([text], subjects, DNA, HitFilter(evalue=1e9, max_hits=3), backend)
    assert rows_of(found.hits) == [(0, False, 72), (0, True, 72), (1, False, 72)]


# The score threshold of hits.


def all_lengths(draw: random.Random) -> NDArray[np.int64]:
    """Return decreasing subject lengths, including the extremes that databases have."""
    shortest = draw.choice([1, 2, 5, 30, 300])
    longest = shortest + draw.choice([0, 1, 20, 3_000, 40_000, 3_000_000])
    drawn = [int(shortest * (longest / shortest) ** draw.random()) for _ in range(200)]
    return np.array(sorted([shortest, longest, *drawn], reverse=True))


@pytest.mark.parametrize("name", STANDARD)
def test_no_length_has_hits_below_the_threshold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All subjects have the minimum score of a hit, or one less."""
    draw = random.Random(name)
    for gaps in draw.sample(supported_gaps(standard(name)), 2):
        scoring = ScanScoring(standard(name), *gaps)
        assert scoring.statistics is not None
        for _ in range(10):
            lengths, rows = all_lengths(draw), draw.choice([1, 7, 40, 400, 9_000])
            evalue = 10.0 ** draw.choice([-150, -30, -3, 1, 1, 4])
            space = SearchSpace(scoring.statistics, rows, int(lengths.sum()), len(lengths))
            least = space.min_scores(evalue, lengths)
            order = np.arange(len(lengths))
            codes = np.zeros(int(lengths.sum()) + 64, np.uint8)
            starts = np.cumsum(lengths) - lengths
            database = Database.of(sequences_of([""]), "protein")
            database = replace(database, codes=codes, starts=starts, lengths=lengths, order=order)
            scan = Scan(database, scoring, HitFilter(evalue=evalue, max_hits=1000), None)  # type: ignore[arg-type]
            for below in (0, 1):
                scores = np.maximum(least - below, 1).astype(np.int32)
                chosen = scan._select_hits(np.zeros(rows, np.uint8), scores[None])
                expected = np.flatnonzero(space.evalues(scores, lengths) <= evalue)
                assert sorted(chosen.ranks.tolist()) == expected.tolist()
                assert below or len(expected) == len(lengths)


# Alignments.


@pytest.mark.parametrize("scoring", [BLOSUM62, DNA], ids=["proteins", "nucleotides"])
def test_alignments_match_align_pairs(backend: Backend, scoring: ScanScoring) -> None:
    queries, subjects = PROTEINS if scoring is BLOSUM62 else NUCLEOTIDES
    for found, query in zip(scanned(queries, subjects, scoring, HitFilter(evalue=1e4), backend), queries, strict=True):
        texts = [reverse_complement(subjects[n]) if turned else subjects[n] for n, turned, _ in rows_of(found.hits)]
        assert parsed(found.hits.alignments) == aligned([query] * len(texts), texts, scoring, backend)


def aligned(queries: list[str], subjects: list[str], scoring: ScanScoring, backend: Backend) -> list[Any]:
    letters = []
    for texts in (queries, subjects):
        codes = np.array([code_of(letter) for letter in "".join(texts)], np.uint8)
        letters.append(sequences_from_codes(codes, np.cumsum([0, *map(len, texts)]), backend))
    return parsed(align_pairs(*letters, scoring.pairwise_scores(), Mode.LOCAL, backend).to_host(backend))


def test_both_strands_of_ambiguous_letters(backend: Backend) -> None:
    query = "ACGTTGCAAGNNRTTGACCATGGA"
    subjects = [query, reverse_complement(query), query.replace("N", "R")]
    (found,) = scanned([query], subjects, DNA, HitFilter(evalue=1e3, max_hits=3), backend)
    assert rows_of(found.hits)[:2] == [(0, False, 33), (1, True, 33)]
    assert found.hits.alignments.cigars()[0] == found.hits.alignments.cigars()[1]


def test_scores_that_differ_by_strand(backend: Backend) -> None:
    """A C may be read as T, as in bisulfite-treated DNA: the reverse complement must not read G as A."""
    scores = nucleotides(2, 3).scores.copy()
    scores[coded("C")[0], coded("T")[0]] = 2
    scoring = ScanScoring(ScoreMatrix("bisulfite", scores), 5, 2)
    draw = random.Random(4)
    query = random_letters(draw, 60, "ACGT")
    treated = query.replace("C", "T")
    subjects = [treated, reverse_complement(treated), query.replace("G", "A")]
    (found,) = scanned([query], subjects, scoring, HitFilter(min_score=110), backend)
    assert rows_of(found.hits) == [(0, False, 120), (1, True, 120)]
    (text,) = {subjects[0], reverse_complement(subjects[1])}
    assert parsed(found.hits.alignments) == aligned([query] * 2, [text] * 2, scoring, backend)


def test_an_alignment_with_a_wrong_score_is_an_error(backend: Backend) -> None:
    codes = coded("MKVWW")
    request = AlignmentRequest(codes, [codes, codes], np.array([36, 30], np.int32))
    with pytest.raises(InternalError, match="a hit has score 30, but its alignment 36"):
        hit_alignment.align_hits([request], [2], BLOSUM62, backend)


@pytest.mark.parametrize("letters", [0, 300, 1000])
def test_batches_of_pairs_change_nothing(backend: Backend, letters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, subjects = PROTEINS
    whole = scanned(queries, subjects, BLOSUM62, HitFilter(), backend)
    monkeypatch.setattr(hit_alignment, "BATCH_LETTERS", letters)
    for one, other in zip(whole, scanned(queries, subjects, BLOSUM62, HitFilter(), backend), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("scoring", [BLOSUM62, DNA], ids=["proteins", "nucleotides"])
def test_cropping_changes_nothing(backend: Backend, scoring: ScanScoring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if there are several best alignments, with few letters and in repeats."""
    draw = random.Random(8)
    letters = "AWGC" if scoring is BLOSUM62 else "ACGT"
    repeat = random_letters(draw, 9, letters)
    short = (random_letters(draw, rows, letters[:2]) for rows in (1, 5, 30))
    queries = [repeat * 4, *short, repeat + "A" * 400 + repeat]
    subjects = ["", "A" * 50 + repeat * 3 + "A" * 20 + repeat * 4, repeat[::-1] + repeat, repeat + "A" * 7 + repeat]
    subjects += [random_letters(draw, length, letters[:2]) for length in (1, 2, 40, 40, 41, 90)]
    for given in ((queries, subjects), PROTEINS if scoring is BLOSUM62 else NUCLEOTIDES):
        monkeypatch.setattr(hit_alignment, "MIN_CROP_CELLS", 1 << 60)
        whole = scanned(*given, scoring, HitFilter(evalue=1e9), backend)
        assert sum(len(found.hits) for found in whole) > 30
        monkeypatch.setattr(hit_alignment, "MIN_CROP_CELLS", 0)
        monkeypatch.setattr(hit_alignment, "MAX_LANE_RATIO", 1 << 30)
        for one, other in zip(whole, scanned(*given, scoring, HitFilter(evalue=1e9), backend), strict=True):
            assert_same(one, other)


def test_regions_of_scores_beyond_16_bits(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hit_alignment, "MIN_CROP_CELLS", 0)
    monkeypatch.setattr(hit_alignment, "MAX_LANE_RATIO", 1 << 30)
    (found,) = scanned(["W" * 3100], ["A" * 30 + "W" * 3050 + "A" * 40, "AWWWA"], BLOSUM62, HitFilter(), backend)
    assert rows_of(found.hits)[0] == (0, False, 33550)
    assert found.hits.alignments.target_starts[0] == 30


def test_size_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hit_alignment, "BATCH_LETTERS", 100)
    pairs = [CroppedPair(coded("M" * 10), coded("M" * length), 0, 0, 0) for length in (90, 1, 300, 1, 2, 3, 50, 10, 4)]
    batches = list(hit_alignment._batches(iter(pairs)))
    assert [[len(pair.subject) for pair in batch] for batch in batches] == [[90], [1], [300], [1, 2, 3, 50], [10, 4]]
    assert list(hit_alignment._batches([])) == [[]]


# Division of the work.


def assert_same(one: QueryResult, other: QueryResult) -> None:
    assert rows_of(one.hits) == rows_of(other.hits)
    for name in ("evalues", "bit_scores"):
        assert np.array_equal(getattr(one.hits, name), getattr(other.hits, name))
    for name, array in vars(one.hits.alignments).items():
        assert np.array_equal(array, getattr(other.hits.alignments, name))
    assert np.array_equal(one.scores, other.scores)
    assert (one.threshold, one.hits.query) == (other.threshold, other.hits.query)


@pytest.mark.parametrize("scores", [0, 130, 300, 600])
@pytest.mark.parametrize("scoring", [BLOSUM62, DNA], ids=["proteins", "nucleotides"])
def test_blocks_of_queries_change_nothing(
    backend: Backend, scoring: ScanScoring, scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries, subjects = PROTEINS if scoring is BLOSUM62 else NUCLEOTIDES
    whole = scanned(queries, subjects, scoring, HitFilter(), backend)
    monkeypatch.setattr(search, "BLOCK_SCORES", scores)
    found = scanned(queries, subjects, scoring, HitFilter(), backend)
    for one, other in zip(whole, found, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("threads", [[1], [3], [1, 1], [2, 1, 1]])
def test_threads_and_devices_change_nothing(backends: str, threads: list[int]) -> None:
    for scoring, (queries, subjects) in ((BLOSUM62, PROTEINS), (DNA, NUCLEOTIDES)):
        whole = scanned(queries * 2, subjects, scoring, HitFilter(), open_backend(backends, threads=2))
        several = [open_backend(backends, threads=count) for count in threads]
        for one, other in zip(whole, scanned(queries * 2, subjects, scoring, HitFilter(), *several), strict=True):
            assert_same(one, other)


def test_devices_are_timed_with_a_few_queries() -> None:
    backends = [open_backend("cpu", threads=1)] * 2
    with opened(PROTEINS[1], BLOSUM62, HitFilter(), *backends) as scan:
        assert [scan._blocks(queries) for queries in (0, 1, 4, 5, 9)] == [[], [0, 1], [0, 4], [0, 4, 5], [0, 4, 9]]
    with opened(PROTEINS[1], BLOSUM62, HitFilter(), *backends[:1]) as scan:
        assert scan._blocks(9) == [0, 9]


def test_cells_are_counted(backend: Backend) -> None:
    for scoring, (queries, subjects) in ((BLOSUM62, PROTEINS), (DNA, NUCLEOTIDES)):
        reported: list[int] = []
        with opened(subjects, scoring, HitFilter(), backend) as scan:
            list(scan(sequences_of(queries), reported.append))
            assert sum(reported) == scan.cells(sequences_of(queries))
