"""The options of readmap search that are about pairs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from readmap.cli.options import FLAG, given_options
from readmap.errors import UsageError
from readmap.reads.chunks import Layout
from readmap.search.inserts import given_insert_size
from readmap.search.parameters import Pairing

PANEL = "Pairs"


def _option(short: str, long: str, what: str, metavar: str = FLAG) -> Any:
    return typer.Option(short, long, metavar=metavar, help=what, show_default=False, rich_help_panel=PANEL)


Interleaved = Annotated[bool, _option("-p", "--interleaved", "The reads of one file are pairs: mates alternate.")]
InsertSizeText = Annotated[
    str | None,
    _option(
        "-I",
        "--insert-size",
        "Mean and standard deviation of the insert sizes, FR, as 400,60 (default: estimated from the first pairs).",
        "MEAN,SD",
    ),
]
NoPairing = Annotated[
    bool, _option("-P", "--no-pairing", "Choose the places of mates without regard to each other, as for Hi-C.")
]
NoRescue = Annotated[bool, _option("-S", "--no-rescue", "Do not look for a mate where its partner expects it.")]


def pairing_of(insert_size: str | None, no_pairing: bool, no_rescue: bool) -> Pairing:
    """What the options ask for; raises UsageError where the insert size is none."""
    return Pairing(not no_pairing, not no_rescue, _parse_insert_size(insert_size) if insert_size is not None else None)


def refuse_for_single(context: typer.Context, layout: Layout) -> None:
    """Raise UsageError where an option is about pairs, and the reads are none."""
    given = [option.opts[0] for option in given_options(context).values() if _is_for_pairs(option)]
    if given and not layout.paired:
        raise UsageError(f"{', '.join(given)}: only for pairs: give two files of reads, or -p where mates alternate")


def _is_for_pairs(option: Any) -> bool:
    return getattr(option, "rich_help_panel", None) == PANEL


def _parse_insert_size(text: str) -> tuple[float, float]:
    try:
        mean, deviation = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"-I {text}: expected a mean and a standard deviation, as 400,60") from None
    given_insert_size(mean, deviation)
    return mean, deviation
