"""The options of readmap search that say which records a read has."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from readmap.cli.options import FLAG, in_range
from readmap.search.parameters import EVERY_PLACE, Reporting

PANEL = "Records"

DEFAULT = Reporting()


def _option(*names: str, what: str, metavar: str = FLAG, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=what, show_default=False, rich_help_panel=PANEL, **more)


AllPlaces = Annotated[
    bool, _option("-a", "--all", what="Write all other places that reach -T too, as secondary alignments.")
]
MaxSecondary = Annotated[
    int | None,
    _option(
        "--max-secondary",
        what="Most secondary alignments of each part of a read, the best ones; implies -a.",
        metavar="N",
        callback=in_range(0, 1 << 30),
    ),
]
MaxAlternatives = Annotated[
    int | None,
    _option(
        "-h",
        "--max-alternatives",
        what=f"Tell other places in the tag XA, where they are at most N (default: {DEFAULT.most_xa_hits}).",
        metavar="N",
        callback=in_range(0, 1 << 30),
    ),
]
SoftClip = Annotated[
    bool, _option("-Y", "--soft-clip", what="Write the whole read in the records of all parts of a split read.")
]
MarkSecondary = Annotated[
    bool, _option("-M", "--mark-secondary", what="Mark the lesser parts of a split read secondary, not supplementary.")
]
LeftmostPrimary = Annotated[
    bool,
    _option("-5", "--leftmost-primary", what="Make that part of a split read primary that begins first in the read."),
]


def reporting_of(
    all_places: bool,
    max_secondary: int | None,
    max_alternatives: int | None,
    soft_clip: bool,
    mark_secondary: bool,
    leftmost_primary: bool,
) -> Reporting:
    """What the options ask for."""
    most_secondary = max_secondary if max_secondary is not None else EVERY_PLACE if all_places else 0
    return Reporting(
        most_secondary=most_secondary,
        most_xa_hits=DEFAULT.most_xa_hits if max_alternatives is None else max_alternatives,
        leftmost_primary=leftmost_primary,
        soft_clipped=soft_clip,
        supplementary_as_secondary=mark_secondary,
    )
