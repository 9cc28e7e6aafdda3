"""The strands of a sequence that are searched or compared."""

from enum import StrEnum


class Strand(StrEnum):
    """What is searched: queries as they are, their reverse complements, or both."""

    BOTH = "both"
    FORWARD = "forward"
    REVERSE = "reverse"

    @property
    def rows(self) -> int:
        """How many strands that are."""
        return 2 if self is Strand.BOTH else 1

    @property
    def first(self) -> int:
        """The first of them: 0 forward, 1 reverse."""
        return int(self is Strand.REVERSE)
