"""The strands of a sequence that are searched or compared."""

from enum import StrEnum


class Strand(StrEnum):
    """The strands to search: the queries as given, their reverse complements, or both."""

    BOTH = "both"
    FORWARD = "forward"
    REVERSE = "reverse"

    @property
    def rows(self) -> int:
        """The number of strands."""
        return 2 if self is Strand.BOTH else 1

    @property
    def first(self) -> int:
        """The first strand: 0 forward, 1 reverse."""
        return int(self is Strand.REVERSE)
