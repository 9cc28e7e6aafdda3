"""Bit scores, and E-values as blastp and blastn print them.

The expected number of chance alignments of score S or more in a database of n letters is E = K m' n' exp(-lambda S)
(Karlin and Altschul 1990; with gaps, Altschul and Gish 1996). m' and n' are the lengths of query and database, reduced
because alignments cannot extend beyond the ends of sequences. BLAST estimates this edge effect in two ways:

- blastn: one number for all sequences, the length adjustment (Altschul, Bundschuh, Olsen and Hwa 2001);
- blastp, since BLAST+ 2.2.26: the finite-size correction for each score and subject (Park, Sheetlin, Ma, Madden and
  Spouge 2012). With OLD_FSC in the environment, blastp uses the length adjustment.

The parameters are those published with BLAST, simulated for certain gap costs.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.database.matrices import PUBLISHED, ScoreMatrix, standard_name
from readmap.pairwise.parameters import SCORE_LIMIT

Floats = NDArray[np.float64]

#: (match, mismatch) whose lambda and K hold for even scores only; an odd score counts as the even score below it.
EVEN_SCORES = {(2, 7), (2, 5), (2, 3), (3, 4)}
#: Maximum number of iterations of the length adjustment.
MAX_ITERATIONS = 20
#: Below this value erfc is 2 in float64.
ERFC_IS_TWO_BELOW = -6.0


@dataclass(frozen=True)
class FiniteSize:
    """Letters of a sequence that an alignment of score S occupies, for the finite-size correction.

    mean, variance: (slope, intercept) of lines in S, for one sequence. covariance: the same between the two sequences.
    """

    mean: tuple[float, float]
    variance: tuple[float, float]
    covariance: tuple[float, float]


@dataclass(frozen=True)
class KarlinAltschulParameters:
    """Statistical parameters of a matrix and gap costs.

    lambda_: nats per unit of score. k: dimensionless. h: nats per pair of letters. alpha, beta: an alignment of score S
    occupies alpha * S + beta letters of a sequence. rounds_down: an odd score has the E-value of the even score below
    it. finite_size: for proteins; None for nucleotides.
    """

    lambda_: float
    k: float
    h: float
    alpha: float
    beta: float
    rounds_down: bool = False
    finite_size: FiniteSize | None = None

    def bit_scores(self, scores: NDArray[Any]) -> Floats:
        """Return bit scores of integer scores of any shape; as in BLAST, odd scores are not rounded down."""
        bit_scores: Floats = (self.lambda_ * scores - math.log(self.k)) / math.log(2)
        return bit_scores


@dataclass(frozen=True)
class SearchSpace:
    """A query length and a database size, of the database or given by the user; all in letters."""

    parameters: KarlinAltschulParameters
    query_length: int
    letters: int
    sequences: int

    def evalues(self, scores: NDArray[Any], subject_lengths: NDArray[Any]) -> Floats:
        """Return the E-values of hits as BLAST computes them; scores, subject_lengths: integers [hits]."""
        finite_size = self.parameters.finite_size
        if finite_size is None:
            return self.adjusted_evalues(scores)
        return self._corrected_evalues(finite_size, scores, subject_lengths)

    def adjusted_evalues(self, scores: NDArray[Any]) -> Floats:
        """Return E-values by the length adjustment (for proteins as blastp with OLD_FSC); scores: integers [hits]."""
        query, database = self.effective_lengths()
        if self.parameters.rounds_down:
            scores = scores & ~1
        exponents = -self.parameters.lambda_ * scores + math.log(self.parameters.k)
        evalues: Floats = float(query * database) * np.exp(exponents)
        return evalues

    def min_scores(self, evalue: float | Floats, subject_lengths: NDArray[Any]) -> NDArray[np.int64]:
        """Return the minimum score, at least 1, with an E-value of at most `evalue` for each length, int64 [lengths].

        evalue: for all lengths, or float64 [lengths]. Comparing a whole database with these scores is faster than
        computing all its E-values, because each length is needed only once.
        """
        count = len(subject_lengths)
        low, high = np.zeros(count, np.int64), np.ones(count, np.int64)
        while high.max(initial=0) < SCORE_LIMIT:
            short = self.evalues(high, subject_lengths) > evalue
            if not short.any():
                break
            low, high = np.where(short, high, low), np.where(short, 2 * high, high)
        while (high - low).max(initial=0) > 1:
            # Rounded up, so that converged entries do not change.
            middle = (low + high + 1) // 2
            short = self.evalues(middle, subject_lengths) > evalue
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return high

    def effective_lengths(self) -> tuple[int, int]:
        """Return the letters of query and database after the length adjustment, each at least 1."""
        adjustment = length_adjustment(self.parameters, self.query_length, self.letters, self.sequences)
        return max(self.query_length - adjustment, 1), max(self.letters - self.sequences * adjustment, 1)

    def _corrected_evalues(self, finite_size: FiniteSize, scores: NDArray[Any], lengths: NDArray[Any]) -> Floats:
        """Return E-values of hits with the finite-size correction; scores, lengths (of subjects): integers [hits]."""
        query_probabilities, query_room = self._room(finite_size, scores, self.query_length)
        subject_probabilities, subject_room = self._room(finite_size, scores, lengths)
        covariances = self._evaluate_line(finite_size.covariance, scores)
        areas = query_room * subject_room + covariances * query_probabilities * subject_probabilities
        # The area of one subject is scaled to the database; an empty subject has no alignment.
        shares = self.letters / np.maximum(lengths, 1)
        evalues: Floats = areas * self.parameters.k * np.exp(-self.parameters.lambda_ * scores) * shares
        return evalues

    def _room(
        self, finite_size: FiniteSize, scores: NDArray[Any], lengths: NDArray[Any] | int
    ) -> tuple[Floats, Floats]:
        """Return the probability that sequences have room for alignments of these scores, and the expected room."""
        slope, intercept = finite_size.mean
        room = lengths - (slope * scores + intercept)
        deviations = np.sqrt(self._evaluate_line(finite_size.variance, scores))
        ratios = room / deviations
        probabilities = _complementary_errors(-ratios / math.sqrt(2)) / 2
        densities = np.exp(-0.5 * ratios * ratios) / math.sqrt(2 * math.pi)
        return probabilities, room * probabilities + deviations * densities

    def _evaluate_line(self, line: tuple[float, float], scores: NDArray[Any]) -> Floats:
        """Evaluate a line at the scores, with a lower limit because low scores would make it negative."""
        slope, intercept = line
        return np.maximum(2 * slope / self.parameters.lambda_, slope * scores + intercept)


def gapped_parameters(matrix: ScoreMatrix, gap_open: int, gap_extend: int) -> KarlinAltschulParameters | None:
    """Return the parameters of a matrix and gap costs; None if BLAST has published none.

    A protein matrix is identified by the scores of the twenty amino acids, so a file with BLOSUM62's scores has
    BLOSUM62's parameters. A gap of k letters costs gap_open + k * gap_extend.
    """
    return _published(matrix).get((gap_open, gap_extend))


def supported_gaps(matrix: ScoreMatrix) -> list[tuple[int, int]]:
    """Return the (gap_open, gap_extend) with published parameters, in BLAST's order; empty for an unknown matrix."""
    return list(_published(matrix))


def length_adjustment(parameters: KarlinAltschulParameters, query_length: int, letters: int, sequences: int) -> int:
    """Return the letters that each sequence loses at its ends: usually the largest integer below the l with l = f(l).

    f(l) = alpha / lambda * (log K + log((query_length - l) * (letters - sequences * l))) + beta. The iteration follows
    BLAST_ComputeLengthAdjustment step by step, because the result depends on the steps if they do not converge.
    """
    high = _largest_adjustment(parameters.k, query_length, letters, sequences)
    if high is None:
        return 0
    ratio, log_k = parameters.alpha / parameters.lambda_, math.log(parameters.k)

    def follow(length: float) -> float:
        space = (query_length - length) * (letters - sequences * length)
        return ratio * (log_k + math.log(space)) + parameters.beta

    low = length = 0.0
    for iteration in range(MAX_ITERATIONS):
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
    """Return the limit l: K * (query_length - l) * (letters - sequences * l) = the longer side; None if l <= 0."""
    m, n = float(query_length), float(letters)
    product = n * m - max(m, n) / k
    if product <= 0:
        return None
    linear = m * sequences + n
    return 2 * product / (linear + math.sqrt(linear * linear - 4 * sequences * product))


def _complementary_errors(values: Floats) -> Floats:
    """Return erfc of each value, which NumPy lacks; values: one-dimensional."""
    errors = np.full(len(values), 2.0)
    near = np.flatnonzero(values > ERFC_IS_TWO_BELOW)
    errors[near] = np.fromiter(map(math.erfc, values[near].tolist()), np.float64, len(near))
    return errors


def _published(matrix: ScoreMatrix) -> dict[tuple[int, int], KarlinAltschulParameters]:
    """Return the parameters of a matrix by (gap_open, gap_extend)."""
    if matrix.match is not None and matrix.mismatch is not None:
        return _nucleotide_parameters(matrix.match, matrix.mismatch)
    name = standard_name(matrix)
    return _protein_parameters(name) if name else {}


@functools.cache
def _protein_parameters(name: str) -> dict[tuple[int, int], KarlinAltschulParameters]:
    """Return the parameters of a standard matrix by (gap_open, gap_extend)."""
    rows = [row for row in _read_rows("proteins.tsv") if row["matrix"] == name]
    (ungapped,) = (row for row in rows if row["gap_open"] == "inf")
    found = {}
    for row in rows:
        if row is not ungapped:
            gaps = int(row["gap_open"]), int(row["gap_extend"])
            found[gaps] = _parameters(row, finite_size=_finite_size(row, ungapped, sum(gaps)))
    return found


def _finite_size(row: dict[str, str], ungapped: dict[str, str], first_gap: int) -> FiniteSize:
    """Return a row's lines; intercepts: from the ungapped row, 0 if slopes are equal; first_gap: cost of one letter."""

    def line(slope_name: str, ungapped_name: str) -> tuple[float, float]:
        slope = float(row[slope_name])
        return slope, 2.0 * first_gap * (float(ungapped[ungapped_name]) - slope)

    # Without gaps an alignment occupies equally many letters of both sequences: the variance is the covariance.
    return FiniteSize(line("alpha", "alpha"), line("variance", "variance"), line("covariance", "variance"))


@functools.cache
def _nucleotide_parameters(match: int, mismatch: int) -> dict[tuple[int, int], KarlinAltschulParameters]:
    """Return the parameters by (gap_open, gap_extend); twice the scores have twice the costs and half the lambda."""
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
    """Return the parameters in a row of the published tables, for scores multiplied by `divisor`."""
    lambda_, k, h, alpha, beta = (float(row[name]) for name in ("lambda", "k", "h", "alpha", "beta"))
    return KarlinAltschulParameters(lambda_ / divisor, k, h, alpha / divisor, beta, rounds_down, finite_size)


def _read_rows(name: str) -> Iterator[dict[str, str]]:
    lines = (PUBLISHED / name).read_text("ascii").splitlines()
    columns, *rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return (dict(zip(columns, row, strict=True)) for row in rows)
