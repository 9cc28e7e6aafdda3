"""Scoring options of search, mem and estimate."""

from dataclasses import fields
from typing import Any

from readmap.cli.common.options import MAX_SCORE, number, option, option_group, score
from readmap.errors import UsageError
from readmap.mapping.parameters import Penalty, Scoring

#: Maximum score of a match: this times the largest default is within the limits of Scoring.
MAX_MATCH = 33
_DEFAULTS = Scoring()


def _scaled(names: str, help: str, default: Any, minimum: int, **settings: Any) -> Any:
    """Declare a score or a penalty whose default is multiplied by -A."""
    return number(names, f"{help} (default: {default}).", minimum, MAX_SCORE, **settings)


def penalties(names: str, help: str, default: Any, minimum: int) -> Any:
    """Declare a penalty, or two of them, whose default is multiplied by -A."""

    def check(value: str | None) -> str | None:
        parse_penalties(names, value, minimum)
        return value

    return option(names, f"{help} (default: {default}).", "N[,N]", check=check)


def parse_penalties(names: str, text: str | None, minimum: int) -> Penalty | None:
    """Return the penalties of N or N,N; None for None. names: spellings of the option."""
    if text is None:
        return None
    numbers = parse_numbers(names, text, minimum)
    return numbers[0] if len(set(numbers)) == 1 else (numbers[0], numbers[1])


def parse_numbers(names: str, text: str, minimum: int, maximum: int = MAX_SCORE) -> list[int]:
    """Return one or two integers of N or N,N; raise UsageError if they are invalid or out of range."""
    parts = text.split(",")
    if len(parts) > 2 or not all(part.isdecimal() and minimum <= int(part) <= maximum for part in parts):
        raise UsageError(f"{names.replace(' ', ' / ')} {text}: expected N or N,N, numbers of {minimum} to {maximum}")
    return [int(part) for part in parts]


@option_group("Scoring, as in bwa mem (-A multiplies the other defaults)", is_advanced=True)
class ScoringOptions:
    """Scores of alignments and pairs: the fields of Scoring, with the option names of bwa mem."""

    match: int = score("-A --match", "Score of a match", _DEFAULTS.match, 1, MAX_MATCH)
    mismatch: int | None = _scaled("-B --mismatch", "Penalty of a mismatch", _DEFAULTS.mismatch, 0)
    gap_open: str | None = penalties(
        "-O --gap-open", "Penalty of opening a gap; two numbers: deletion, insertion", _DEFAULTS.gap_open, 0
    )
    gap_extend: str | None = penalties(
        "-E --gap-extend", "Penalty of each base of a gap; two numbers: deletion, insertion", _DEFAULTS.gap_extend, 1
    )
    long_gap: int | None = _scaled("--long-gap", "Maximum penalty of a gap", _DEFAULTS.long_gap, 1)
    clip_penalty: str | None = penalties(
        "-L --clip-penalty", "Penalty of clipping; two numbers: 5' end, 3' end", _DEFAULTS.clip_penalty, 0
    )
    unpaired_penalty: int | None = _scaled(
        "-U --unpaired-penalty", "Penalty of an unpaired read pair", _DEFAULTS.unpaired_penalty, 0
    )
    min_score: int | None = _scaled(
        *("-T --min-score", "Minimum score of a mapped read; 19 if its mate supports it", _DEFAULTS.min_score, 0),
        advanced=False,
    )

    def scoring(self) -> Scoring:
        """Return the scores; as in bwa mem, defaults are multiplied by the score of a match."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in values.items():
            if value is None:
                values[name] = getattr(_DEFAULTS, name) * self.match
            elif isinstance(value, str):
                values[name] = parse_penalties(name, value, 0)
        return Scoring(**values)
