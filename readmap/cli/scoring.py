"""The options of the scores of alignments and of pairs, named as bwa mem's where it has them."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import typer

from readmap.cli.options import in_range
from readmap.search.parameters import Scoring

PANEL = "Scoring, as bwa mem's; -A multiplies the other defaults"

#: So that -A times the largest default stays within what Scoring takes.
LARGEST_MATCH = 33
LARGEST_SCORE = 1000

DEFAULT = Scoring()


def _option(names: str, what: str, default: int, least: int, most: int = LARGEST_SCORE) -> Any:
    return typer.Option(
        *names.split(),
        metavar="N",
        callback=in_range(least, most),
        help=f"{what} (default: {default}).",
        show_default=False,
        rich_help_panel=PANEL,
    )


Match = Annotated[int, _option("-A --match", "Score of a match", DEFAULT.match, 1, LARGEST_MATCH)]
Mismatch = Annotated[int | None, _option("-B --mismatch", "Penalty of a mismatch", DEFAULT.mismatch, 0)]
GapOpen = Annotated[int | None, _option("-O --gap-open", "Penalty of a gap, beside -E", DEFAULT.gap_open, 0)]
GapExtend = Annotated[int | None, _option("-E --gap-extend", "Penalty of a gap's base", DEFAULT.gap_extend, 1)]
LongGap = Annotated[int | None, _option("--long-gap", "Most that a gap costs", DEFAULT.long_gap, 1)]
Clip = Annotated[int | None, _option("-L --clip-penalty", "Penalty of a clipped end", DEFAULT.clip_penalty, 0)]
Unpaired = Annotated[
    int | None, _option("-U --unpaired-penalty", "Penalty of unpaired mates", DEFAULT.unpaired_penalty, 0)
]
MinScore = Annotated[
    int | None,
    _option(
        "-T --min-score", "Least score of a mapped read; 19 suffice where its mate expects it", DEFAULT.min_score, 0
    ),
]


def scaled(match: int, **given: int | None) -> Scoring:
    """The scores that are given; the others are the defaults times `match`, as bwa does it."""
    names = [field.name for field in fields(Scoring) if field.name != "match"]
    values = {name: given.get(name) for name in names}
    return Scoring(
        match, **{name: getattr(DEFAULT, name) * match if value is None else value for name, value in values.items()}
    )
