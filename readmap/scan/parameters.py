"""What a scan is to find."""

from __future__ import annotations

from dataclasses import dataclass

from readmap.compare.parameters import Substitution
from readmap.errors import UsageError
from readmap.index.occurrences import Strand
from readmap.scan.matrices import Matrix, default_gaps
from readmap.scan.statistics import Parameters, gapped_parameters, supported_gaps

#: The E-value up to which hits are told, as blastp's, and how many of a query.
EVALUE, MOST_HITS = 10.0, 500


@dataclass(frozen=True)
class Costs:
    """How a query and a subject are scored: a gap of k letters costs gap_open + k * gap_extend, as BLAST's does."""

    matrix: Matrix
    gap_open: int
    gap_extend: int

    def __post_init__(self) -> None:
        # What a gap may cost is known there.
        self.substitution()

    @classmethod
    def of(cls, matrix: Matrix, gap_open: int | None = None, gap_extend: int | None = None) -> Costs:
        """None is BLAST's for the matrix."""
        default_open, default_extend = default_gaps(matrix)
        return cls(
            matrix,
            default_open if gap_open is None else gap_open,
            default_extend if gap_extend is None else gap_extend,
        )

    def substitution(self) -> Substitution:
        """The same for an alignment."""
        return Substitution(self.matrix.scores, self.gap_open, self.gap_extend)

    @property
    def statistics(self) -> Parameters | None:
        """None where BLAST has published none."""
        return gapped_parameters(self.matrix, self.gap_open, self.gap_extend)


@dataclass(frozen=True)
class Limits:
    """Which hits are told.

    evalue: the highest; None is EVALUE where the costs have statistical parameters, else any.
    min_score: the lowest score, 1 or more.
    most_hits: of a query, the best ones.
    strand: of nucleotides, whether the subjects, their reverse complements, or both are looked at.
    database_letters: what E-values count for the database's; None for what it has.
    """

    evalue: float | None = None
    min_score: int = 1
    most_hits: int = MOST_HITS
    strand: Strand = Strand.BOTH
    database_letters: int | None = None

    def __post_init__(self) -> None:
        for name, least in {"evalue": 0, "min_score": 1, "most_hits": 1, "database_letters": 1}.items():
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise UsageError(f"{name.replace('_', ' ')} is {value}, expected {least} or more")

    def highest_evalue(self, costs: Costs) -> float | None:
        """None for any; raises UsageError where one is asked for, and the costs have no statistical parameters."""
        if costs.statistics is not None:
            return EVALUE if self.evalue is None else self.evalue
        if self.evalue is None:
            return None
        known = ", ".join(f"{gap_open}/{gap_extend}" for gap_open, gap_extend in supported_gaps(costs.matrix))
        raise UsageError(
            f"E-values are not known for {costs.matrix.name} with gap costs {costs.gap_open}/{costs.gap_extend}: "
            + (f"they are for {known}" if known else "no statistics of this matrix have been published")
        )
