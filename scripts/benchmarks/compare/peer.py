"""parasail, the peer on the CPU: one thread, one call from Python per pair."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from readmap.pairwise.parameters import MatchScores, Mode

#: The names of the modes in parasail's functions.
NAMES = {Mode.LOCAL: "sw", Mode.GLOBAL: "nw", Mode.SEMIGLOBAL: "sg_dx"}

Align = Callable[[str, str], Any]


def is_installed() -> bool:
    return find_spec("parasail") is not None


def name_of(mode: Mode, traced: bool = False, bits: int = 16) -> str:
    return f"{NAMES[mode]}{'_trace' if traced else ''}_striped_{bits}"


def aligner(mode: Mode, traced: bool = False, bits: int = 16) -> Align:
    """Return parasail's function for a pair with readmap's scores. traced: also convert the traceback to a CIGAR."""
    import parasail  # optional

    scores = MatchScores()
    matrix = parasail.matrix_create("ACGT", scores.match, -scores.mismatch)
    function = getattr(parasail, name_of(mode, traced, bits))

    def align(query: str, target: str) -> Any:
        found = function(query, target, scores.gap_open + scores.gap_extend, scores.gap_extend, matrix)
        return (found, found.cigar) if traced else found

    return align
