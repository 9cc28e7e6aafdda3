"""What a scan is to find."""

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

#: The matrix of proteins, and what nucleotides score: a match, and a mismatch as a positive number. As BLAST's.
MATRIX, MATCH, MISMATCH = "BLOSUM62", 2, 3

#: The E-value up to which hits are reported, as blastp's, and how many of a query.
EVALUE, MAX_HITS = 10.0, 500

# By the codes of nucleotides.
_COMPLEMENTS = np.arange(CODES)
_COMPLEMENTS[: len(LETTERS)] = codes_of(COMPLEMENTS[LETTERS])


@dataclass(frozen=True)
class ScanScoring:
    """How a query and a subject are scored: a gap of k letters costs gap_open + k * gap_extend, as BLAST's does."""

    matrix: ScoreMatrix
    gap_open: int
    gap_extend: int

    def __post_init__(self) -> None:
        # What a gap may cost is known there.
        self.pairwise_scores()

    @classmethod
    def of(cls, matrix: ScoreMatrix, gap_open: int | None = None, gap_extend: int | None = None) -> ScanScoring:
        """The costs of a matrix; None is what BLAST takes for it."""
        default_open, default_extend = default_gaps(matrix)
        return cls(
            matrix,
            default_open if gap_open is None else gap_open,
            default_extend if gap_extend is None else gap_extend,
        )

    def pairwise_scores(self) -> SubstitutionScores:
        """The costs as alignments take them."""
        return SubstitutionScores(self.matrix.scores, self.gap_open, self.gap_extend)

    def complemented(self) -> ScanScoring:
        """ScanScoring that score letters as these do their complements: in most cases the same."""
        scores = self.matrix.scores[np.ix_(_COMPLEMENTS, _COMPLEMENTS)]
        return replace(self, matrix=replace(self.matrix, scores=scores))

    @property
    def statistics(self) -> KarlinAltschulParameters | None:
        """The parameters of E-values; None where BLAST has published none."""
        return gapped_parameters(self.matrix, self.gap_open, self.gap_extend)


def choose_scoring(
    molecule: Alphabet,
    matrix: str | None,
    match: int | None,
    mismatch: int | None,
    gap_open: int | None,
    gap_extend: int | None,
) -> ScanScoring:
    """The costs that a user names; None is the default of the molecule and the matrix.

    matrix: a name, or a file. Raises UsageError where they do not go with the molecule, DataError for a broken file.
    """
    by_match = match is not None or mismatch is not None
    is_named = matrix is not None and matrix.upper() in STANDARD
    if molecule is Alphabet.PROTEINS:
        if by_match:
            raise UsageError("a match and a mismatch score nucleotides, and the database is of proteins: take a matrix")
        chosen = find_matrix(matrix or MATRIX)
    elif is_named or (matrix is not None and by_match):
        wrong = f"matrix {matrix} scores proteins, and the database is of nucleotides"
        raise UsageError(wrong if is_named else "a matrix, or a match and a mismatch: expected one of the two")
    elif matrix is not None:
        chosen = find_matrix(matrix)
    else:
        chosen = nucleotides(MATCH if match is None else match, MISMATCH if mismatch is None else mismatch)
    return ScanScoring.of(chosen, gap_open, gap_extend)


def find_matrix(name: str) -> ScoreMatrix:
    """A standard matrix, or that of a file; raises UsageError where it is neither."""
    if name.upper() in STANDARD:
        return standard(name)
    if not os.path.exists(name):
        raise UsageError(f"matrix {name}: expected {', '.join(STANDARD)} or a file, and there is none of that name")
    return read_matrix(name)


@dataclass(frozen=True)
class HitFilter:
    """Which hits are reported.

    evalue: the highest; None is EVALUE where the costs have statistical parameters, else any.
    min_score: the lowest score, 1 or more.
    max_hits: of a query, the best ones.
    strand: of nucleotides, whether the subjects, their reverse complements, or both are looked at.
    database_letters, database_sequences: what E-values count for the database's; None for what it has.
    """

    evalue: float | None = None
    min_score: int = 1
    max_hits: int = MAX_HITS
    strand: Strand = Strand.BOTH
    database_letters: int | None = None
    database_sequences: int | None = None

    def __post_init__(self) -> None:
        for name, least in {
            "evalue": 0,
            "min_score": 1,
            "max_hits": 1,
            "database_letters": 1,
            "database_sequences": 1,
        }.items():
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise UsageError(f"{name.replace('_', ' ')} is {value}, expected {least} or more")

    @staticmethod
    def strand_of(molecule: Alphabet, name: str | None) -> Strand:
        """The strand that a user names, None for none; UsageError where it is none or proteins are to have one."""
        if name is None:
            return Strand.BOTH
        if name not in tuple(Strand):
            raise UsageError(f"strand is {name!r}, expected {', '.join(Strand)}")
        if molecule is Alphabet.PROTEINS:
            raise UsageError(f"strand {name}: the database is of proteins, which have none")
        return Strand(name)

    def max_evalue(self, scoring: ScanScoring) -> float | None:
        """None for any; raises UsageError where one is asked for, and the costs have no statistical parameters."""
        if scoring.statistics is not None:
            return EVALUE if self.evalue is None else self.evalue
        if self.evalue is None:
            return None
        known = ", ".join(f"{gap_open}/{gap_extend}" for gap_open, gap_extend in supported_gaps(scoring.matrix))
        raise UsageError(
            f"E-values are not known for {scoring.matrix.name} with gap costs {scoring.gap_open}/{scoring.gap_extend}: "
            + (f"they are for {known}" if known else "no statistics of this matrix have been published")
        )
