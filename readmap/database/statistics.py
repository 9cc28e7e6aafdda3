"""How much a score says: bit scores, and E-values as blastp and blastn print them.

Of a database with n letters a local alignment scores S or more by chance E = K m' n' exp(-lambda S) times (Karlin and
Altschul 1990; for gaps Altschul and Gish 1996). m' and n' are the lengths of query and database less what alignments
near the ends of sequences lose. BLAST estimates that loss in two ways:

- blastn by one number for all sequences, the length adjustment (Altschul, Bundschuh, Olsen and Hwa 2001);
- blastp, since BLAST+ 2.2.26, for each score and subject by the finite-size correction (Park, Sheetlin, Ma, Madden and
  Spouge 2012). Where the environment has OLD_FSC, it goes back to the length adjustment.

The parameters are those that BLAST has published, simulated for certain costs of gaps.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.database.matrices import PUBLISHED, ScoreMatrix, standard_name
from readmap.pairwise.parameters import SCORE_LIMIT

Numbers = NDArray[np.float64]

#: Of pairs (match, mismatch) whose lambda and K hold for even scores only; their odd ones count as the even ones below.
EVEN_SCORES = {(2, 7), (2, 5), (2, 3), (3, 4)}
#: How often a length adjustment is made better at most.
ITERATIONS = 20
#: Below it erfc is 2 in float64.
ERFC_IS_TWO_BELOW = -6.0


@dataclass(frozen=True)
class FiniteSize:
    """Letters that an alignment of score S takes of a sequence: slope and intercept of lines in S.

    mean, variance: of those of one sequence. covariance: of those of the two.
    """

    mean: tuple[float, float]
    variance: tuple[float, float]
    covariance: tuple[float, float]


@dataclass(frozen=True)
class KarlinAltschulParameters:
    """The statistics of a matrix with costs of gaps.

    lambda_: of a unit of score, in nats. k: no unit. h: nats a pair of letters.
    alpha, beta: letters that an alignment takes of a sequence are alpha a unit of score, and beta.
    rounds_down: whether an odd score has the E-value of the even one below.
    finite_size: of proteins; None of nucleotides.
    """

    lambda_: float
    k: float
    h: float
    alpha: float
    beta: float
    rounds_down: bool = False
    finite_size: FiniteSize | None = None

    def bit_scores(self, scores: NDArray[Any]) -> Numbers:
        """Scores without a unit, as BLAST has them: odd ones are not rounded down; scores: integers of any shape."""
        bit_scores: Numbers = (self.lambda_ * scores - math.log(self.k)) / math.log(2)
        return bit_scores


@dataclass(frozen=True)
class SearchSpace:
    """Where the alignments of a query are looked for.

    query_length: in letters. letters, sequences: of the whole database, or what the user says that it has.
    """

    parameters: KarlinAltschulParameters
    query_length: int
    letters: int
    sequences: int

    def evalues(self, scores: NDArray[Any], subject_lengths: NDArray[Any]) -> Numbers:
        """How many alignments score so much by chance, as BLAST says it; scores, subject_lengths: integers [hits]."""
        finite_size = self.parameters.finite_size
        if finite_size is None:
            return self.adjusted_evalues(scores)
        return self._corrected_evalues(finite_size, scores, subject_lengths)

    def adjusted_evalues(self, scores: NDArray[Any]) -> Numbers:
        """E-values by the length adjustment: for a protein as blastp with OLD_FSC; scores: integers [hits]."""
        query, database = self.effective_lengths()
        if self.parameters.rounds_down:
            scores = scores & ~1
        exponents = -self.parameters.lambda_ * scores + math.log(self.parameters.k)
        evalues: Numbers = float(query * database) * np.exp(exponents)
        return evalues

    def min_scores(self, evalue: float | Numbers, subject_lengths: NDArray[Any]) -> NDArray[np.int64]:
        """The lowest score from 1 to have at most this E-value with a subject of each length; integers [lengths].

        evalue: of all lengths, or float64 [lengths].

        It finds hits among the scores of a whole database faster than their E-values: each length is needed once.
        """
        count = len(subject_lengths)
        low, high = np.zeros(count, np.int64), np.ones(count, np.int64)
        while high.max(initial=0) < SCORE_LIMIT:
            short = self.evalues(high, subject_lengths) > evalue
            if not short.any():
                break
            low, high = np.where(short, high, low), np.where(short, 2 * high, high)
        while (high - low).max(initial=0) > 1:
            # Rounded up, so that what is found already stays.
            middle = (low + high + 1) // 2
            short = self.evalues(middle, subject_lengths) > evalue
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return high

    def effective_lengths(self) -> tuple[int, int]:
        """Letters of the query and of the database without what the length adjustment takes; at least 1."""
        adjustment = length_adjustment(self.parameters, self.query_length, self.letters, self.sequences)
        return max(self.query_length - adjustment, 1), max(self.letters - self.sequences * adjustment, 1)

    def _corrected_evalues(
        self, finite_size: FiniteSize, scores: NDArray[Any], subject_lengths: NDArray[Any]
    ) -> Numbers:
        query_fits, query_letters = self._left(finite_size, scores, self.query_length)
        subject_fits, subject_letters = self._left(finite_size, scores, subject_lengths)
        covariances = self._line(finite_size.covariance, scores)
        areas = query_letters * subject_letters + covariances * query_fits * subject_fits
        # The area is of one subject, and the database's in proportion; an empty subject has no alignment.
        shares = self.letters / np.maximum(subject_lengths, 1)
        evalues: Numbers = areas * self.parameters.k * np.exp(-self.parameters.lambda_ * scores) * shares
        return evalues

    def _left(
        self, finite_size: FiniteSize, scores: NDArray[Any], lengths: NDArray[Any] | int
    ) -> tuple[Numbers, Numbers]:
        """The probability that sequences hold alignments of such scores, and the letters where they may begin.

        What alignments take is normally distributed, and the letters are the mean of what is left where any is.
        """
        slope, intercept = finite_size.mean
        left = lengths - (slope * scores + intercept)
        deviations = np.sqrt(self._line(finite_size.variance, scores))
        ratios = left / deviations
        fits = _complementary_errors(-ratios / math.sqrt(2)) / 2
        densities = np.exp(-0.5 * ratios * ratios) / math.sqrt(2 * math.pi)
        return fits, left * fits + deviations * densities

    def _line(self, line: tuple[float, float], scores: NDArray[Any]) -> Numbers:
        """The line at the scores, but not less than it rises in two nats, since low scores make it negative."""
        slope, intercept = line
        return np.maximum(2 * slope / self.parameters.lambda_, slope * scores + intercept)


def gapped_parameters(matrix: ScoreMatrix, gap_open: int, gap_extend: int) -> KarlinAltschulParameters | None:
    """The parameters of a matrix where a gap of k costs gap_open + k * gap_extend; None where BLAST has published none.

    Proteins' go by the scores of the twenty amino acids: a file that scores them as BLOSUM62 does has its parameters.
    """
    return _published(matrix).get((gap_open, gap_extend))


def supported_gaps(matrix: ScoreMatrix) -> list[tuple[int, int]]:
    """(gap_open, gap_extend) of all the costs that have parameters, in BLAST's order; none of an unknown matrix."""
    return list(_published(matrix))


def length_adjustment(parameters: KarlinAltschulParameters, query_length: int, letters: int, sequences: int) -> int:
    """The letters that each sequence loses at its ends: in most cases the largest integer below the l with l = f(l).

    f(l) = alpha / lambda * (log K + log((query_length - l) * (letters - sequences * l))) + beta. The steps are those of
    BLAST_ComputeLengthAdjustment, since where they do not converge the number depends on them.
    """
    high = _largest_adjustment(parameters.k, query_length, letters, sequences)
    if high is None:
        return 0
    ratio, log_k = parameters.alpha / parameters.lambda_, math.log(parameters.k)

    def follow(length: float) -> float:
        space = (query_length - length) * (letters - sequences * length)
        return ratio * (log_k + math.log(space)) + parameters.beta

    low = length = 0.0
    for iteration in range(ITERATIONS):
        following = follow(length)
        if following >= length:
            low = length
            if following - low <= 1:
                above = math.ceil(low)
                return above if above <= high and follow(above) >= above else int(low)
            if low == high:
                break
        else:
            high = length
        if not low <= following <= high:
            following = (low + high) / 2 if iteration else high
        length = following
    return int(low)


def _largest_adjustment(k: float, query_length: int, letters: int, sequences: int) -> float | None:
    """The l with K * (query_length - l) * (letters - sequences * l) = the longer side; None without one above 0."""
    m, n = float(query_length), float(letters)
    product = n * m - max(m, n) / k
    if product <= 0:
        return None
    linear = m * sequences + n
    return 2 * product / (linear + math.sqrt(linear * linear - 4 * sequences * product))


def _complementary_errors(values: Numbers) -> Numbers:
    """erfc of each, which NumPy has not; values: [any number]."""
    errors = np.full(len(values), 2.0)
    near = np.flatnonzero(values > ERFC_IS_TWO_BELOW)
    errors[near] = np.fromiter(map(math.erfc, values[near].tolist()), np.float64, len(near))
    return errors


def _published(matrix: ScoreMatrix) -> dict[tuple[int, int], KarlinAltschulParameters]:
    """The parameters by (gap_open, gap_extend)."""
    if matrix.match is not None and matrix.mismatch is not None:
        return _nucleotide_parameters(matrix.match, matrix.mismatch)
    name = standard_name(matrix)
    return _protein_parameters(name) if name else {}


@functools.cache
def _protein_parameters(name: str) -> dict[tuple[int, int], KarlinAltschulParameters]:
    rows = [row for row in _read_rows("proteins.tsv") if row["matrix"] == name]
    (ungapped,) = (row for row in rows if row["gap_open"] == "inf")
    found = {}
    for row in rows:
        if row is not ungapped:
            gaps = int(row["gap_open"]), int(row["gap_extend"])
            found[gaps] = _parameters(row, finite_size=_finite_size(row, ungapped, sum(gaps)))
    return found


def _finite_size(row: dict[str, str], ungapped: dict[str, str], first_gap: int) -> FiniteSize:
    """The lines of the published slopes; the intercept makes up for gaps: it is 0 where they change no slope."""

    def line(slope_name: str, ungapped_name: str) -> tuple[float, float]:
        slope = float(row[slope_name])
        return slope, 2.0 * first_gap * (float(ungapped[ungapped_name]) - slope)

    # Without gaps both sequences of an alignment take the same letters: the variance is the covariance.
    return FiniteSize(line("alpha", "alpha"), line("variance", "variance"), line("covariance", "variance"))


@functools.cache
def _nucleotide_parameters(match: int, mismatch: int) -> dict[tuple[int, int], KarlinAltschulParameters]:
    """Published are those of scores without a common divisor; twice the scores take twice the scoring, and lambda / 2."""
    divisor = math.gcd(match, mismatch)
    scores = match // divisor, mismatch // divisor
    found = {}
    for row in _read_rows("nucleotides.tsv"):
        if (int(row["match"]), int(row["mismatch"])) == scores:
            gaps = divisor * int(row["gap_open"]), divisor * int(row["gap_extend"])
            found[gaps] = _parameters(row, divisor, scores in EVEN_SCORES)
    return found


def _parameters(
    row: dict[str, str], divisor: int = 1, rounds_down: bool = False, finite_size: FiniteSize | None = None
) -> KarlinAltschulParameters:
    lambda_, k, h, alpha, beta = (float(row[name]) for name in ("lambda", "k", "h", "alpha", "beta"))
    return KarlinAltschulParameters(lambda_ / divisor, k, h, alpha / divisor, beta, rounds_down, finite_size)


def _read_rows(name: str) -> Iterator[dict[str, str]]:
    lines = (PUBLISHED / name).read_text("ascii").splitlines()
    columns, *rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return (dict(zip(columns, row, strict=True)) for row in rows)
