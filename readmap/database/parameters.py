"""Scoring and hit filter of a scan."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np

from readmap.database.letters import LETTERS, codes_of
from readmap.database.matrices import STANDARD, ScoreMatrix, default_gaps, nucleotides, read_matrix, standard
from readmap.database.statistics import KarlinAltschulParameters, gapped_parameters, supported_gaps
from readmap.errors import UsageError
from readmap.formats.alphabets import Alphabet
from readmap.pairwise.parameters import CODES, SubstitutionScores
from readmap.reads.sequences import COMPLEMENTS
from readmap.strand import Strand

#: Default matrix of proteins, and match and mismatch (a positive penalty) of nucleotides, as in BLAST.
MATRIX, MATCH, MISMATCH = "BLOSUM62", 2, 3

#: Default maximum E-value, as in blastp, and maximum number of hits per query.
EVALUE, MAX_HITS = 10.0, 500

#: A score or the cost of a gap; None selects the default.
Cost = int | None

# The complement of each code.
_COMPLEMENTS = np.arange(CODES)
_COMPLEMENTS[: len(LETTERS)] = codes_of(COMPLEMENTS[LETTERS])


@dataclass(frozen=True)
class ScanScoring:
    """Scores of a query with a subject; a gap of k letters costs gap_open + k * gap_extend, as in BLAST."""

    matrix: ScoreMatrix
    gap_open: int
    gap_extend: int

    def __post_init__(self) -> None:
        self.pairwise_scores()  # validates the gap costs

    @classmethod
    def of(cls, matrix: ScoreMatrix, gap_open: int | None = None, gap_extend: int | None = None) -> ScanScoring:
        """Return the scoring of a matrix; None selects BLAST's default for the matrix."""
        costs = zip((gap_open, gap_extend), default_gaps(matrix), strict=True)
        return cls(matrix, *(default if chosen is None else chosen for chosen, default in costs))

    def pairwise_scores(self) -> SubstitutionScores:
        """Return the scoring scheme of readmap.pairwise."""
        return SubstitutionScores(self.matrix.scores, self.gap_open, self.gap_extend)

    def complemented(self) -> ScanScoring:
        """Return a scoring that scores letters as this one scores their complements; usually the same."""
        scores = self.matrix.scores[np.ix_(_COMPLEMENTS, _COMPLEMENTS)]
        return replace(self, matrix=replace(self.matrix, scores=scores))

    @property
    def statistics(self) -> KarlinAltschulParameters | None:
        """Parameters of E-values; None if BLAST has published none."""
        return gapped_parameters(self.matrix, self.gap_open, self.gap_extend)


def choose_scoring(
    molecule: Alphabet, matrix: str | None, match: Cost, mismatch: Cost, gap_open: Cost, gap_extend: Cost
) -> ScanScoring:
    """Return the scoring for a user's options; None selects defaults; UsageError for options that do not fit."""
    by_match = match is not None or mismatch is not None
    is_named = matrix is not None and matrix.upper() in STANDARD
    if molecule is Alphabet.PROTEINS:
        if by_match:
            raise UsageError("match and mismatch score nucleotides, but the database has proteins: choose a matrix")
        chosen = find_matrix(matrix or MATRIX)
    elif is_named or (matrix is not None and by_match):
        wrong = f"matrix {matrix} scores proteins, but the database has nucleotides"
        raise UsageError(wrong if is_named else "expected either a matrix or match and mismatch, found both")
    elif matrix is not None:
        chosen = find_matrix(matrix)
    else:
        chosen = nucleotides(MATCH if match is None else match, MISMATCH if mismatch is None else mismatch)
    return ScanScoring.of(chosen, gap_open, gap_extend)


def find_matrix(name: str) -> ScoreMatrix:
    """Return a standard matrix, or the matrix of a file; UsageError if `name` is neither."""
    if name.upper() in STANDARD:
        return standard(name)
    if not os.path.exists(name):
        raise UsageError(f"matrix {name}: expected {', '.join(STANDARD)} or an existing file")
    return read_matrix(name)


@dataclass(frozen=True)
class HitFilter:
    """Which hits are reported.

    evalue: maximum; None is EVALUE if the scoring has statistical parameters, else no limit. min_score: minimum score,
    at least 1. max_hits: per query; the best hits are kept. strand: strands of nucleotide subjects to search.
    database_letters, database_sequences: database size for E-values; None for the actual size.
    """

    evalue: float | None = None
    min_score: int = 1
    max_hits: int = MAX_HITS
    strand: Strand = Strand.BOTH
    database_letters: int | None = None
    database_sequences: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            minimum = 0 if name == "evalue" else 1
            if value is not None and name != "strand" and not value >= minimum:
                raise UsageError(f"{name.replace('_', ' ')} is {value}, expected at least {minimum}")

    @staticmethod
    def strand_of(molecule: Alphabet, name: str | None) -> Strand:
        """Return the strand that a user chose; UsageError if it is unknown or the molecule has no strands."""
        if name is None:
            return Strand.BOTH
        if name not in tuple(Strand):
            raise UsageError(f"strand is {name!r}, expected {', '.join(Strand)}")
        if molecule is Alphabet.PROTEINS:
            raise UsageError(f"strand {name}: the database has proteins, which have no strands")
        return Strand(name)

    def max_evalue(self, scoring: ScanScoring) -> float | None:
        """Return the maximum E-value, None for no limit; UsageError if a limit is set but E-values are unknown."""
        if scoring.statistics is not None:
            return EVALUE if self.evalue is None else self.evalue
        if self.evalue is None:
            return None
        known = ", ".join(f"{gap_open}/{gap_extend}" for gap_open, gap_extend in supported_gaps(scoring.matrix))
        raise UsageError(
            f"E-values are unknown for {scoring.matrix.name} with gap costs {scoring.gap_open}/{scoring.gap_extend}: "
            + (f"they are known for {known}" if known else "no statistics of this matrix have been published")
        )
