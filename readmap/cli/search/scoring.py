"""The options of scores, as search, mem and estimate take them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from readmap.cli.common.options import LARGEST_SCORE, number, option, score
from readmap.errors import UsageError
from readmap.mapping.parameters import Penalty, Scoring

#: Limit of -A, so that its product with the largest default is a valid score.
LARGEST_MATCH = 33

_USUAL = Scoring()


def _scaled(names: str, help: str, usual: Any, least: int) -> Any:
    """Declare a score or a penalty that -A multiplies unless it is given."""
    return number(names, f"{help} (default: {usual}).", least, LARGEST_SCORE)


def penalties(names: str, help: str, usual: Any, least: int) -> Any:
    """Declare a penalty, or two penalties as N,N, that -A multiplies unless they are given."""

    def check(value: str | None) -> str | None:
        parse_penalties(names, value, least)
        return value

    return option(names, f"{help} (default: {usual}).", "N[,N]", check=check)


def parse_penalties(names: str, text: str | None, least: int) -> Penalty | None:
    """Parse N or N,N to a penalty or two, or return None for None; names: of the option, for messages."""
    if text is None:
        return None
    numbers = parse_numbers(names, text, least)
    return numbers[0] if len(set(numbers)) == 1 else (numbers[0], numbers[1])


def parse_numbers(names: str, text: str, least: int, most: int = LARGEST_SCORE) -> list[int]:
    """Parse one number or two; raises UsageError if they are invalid or not within least and most."""
    parts = text.split(",")
    fit = len(parts) <= 2 and all(part.isdecimal() and least <= int(part) <= most for part in parts)
    if not fit:
        raise UsageError(f"{names.replace(' ', ' / ')} {text}: expected N or N,N, numbers of {least} to {most}")
    return [int(part) for part in parts]


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """The scores of alignments and pairs, with bwa mem's letters, and the field names of Scoring."""

    panel: ClassVar = "Scoring, as bwa mem's; -A multiplies the other defaults"

    match: int = score("-A --match", "Score of a match", _USUAL.match, 1, LARGEST_MATCH)
    mismatch: int | None = _scaled("-B --mismatch", "Penalty of a mismatch", _USUAL.mismatch, 0)
    gap_open: str | None = penalties(
        "-O --gap-open", "Penalty of a gap, beside -E; two: a deletion's, an insertion's", _USUAL.gap_open, 0
    )
    gap_extend: str | None = penalties(
        "-E --gap-extend", "Penalty of a gap's base; two: a deletion's, an insertion's", _USUAL.gap_extend, 1
    )
    long_gap: int | None = _scaled("--long-gap", "Most that a gap costs", _USUAL.long_gap, 1)
    clip_penalty: str | None = penalties(
        "-L --clip-penalty", "Penalty of a clipped end; two: the 5' end's, the 3' end's", _USUAL.clip_penalty, 0
    )
    unpaired_penalty: int | None = _scaled(
        "-U --unpaired-penalty", "Penalty of unpaired mates", _USUAL.unpaired_penalty, 0
    )
    min_score: int | None = _scaled(
        "-T --min-score", "Least score of a mapped read; 19 suffice where its mate expects it", _USUAL.min_score, 0
    )

    def scoring(self) -> Scoring:
        """Return the scores; those that are not given are the defaults times -A, as in bwa mem."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in values.items():
            if value is None:
                values[name] = getattr(_USUAL, name) * self.match
            elif isinstance(value, str):
                values[name] = parse_penalties(name, value, 0)
        return Scoring(**values)
