"""Options that contradict each other, told before any work: how, and which of readmap search do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import typer

from readmap.cli import exact, pairing, reads, reporting, scoring
from readmap.cli.options import given_options
from readmap.errors import UsageError
from readmap.search.exact import Format

#: Names of parameters, whether giving one of them is wrong, and why.
Conflict = tuple[Sequence[str], Any, str]


def refuse(given: dict[str, Any], conflicts: Iterable[Conflict]) -> None:
    """Raise UsageError for the first of the conflicts that the given options are in."""
    for names, wrong, message in conflicts:
        if found := [given[name].opts[0] for name in names if wrong and name in given]:
            raise UsageError(f"{', '.join(found)}: {message}")


def refuse_conflicts(context: typer.Context) -> None:
    """Raise UsageError where options of readmap search contradict each other.

    An option belongs to that kind of search in whose panel the help shows it.
    """
    given = given_options(context)

    def shown_in(panel: str) -> list[str]:
        return [name for name in given if getattr(given[name], "rich_help_panel", None) == panel]

    values = context.params
    is_exact, output = values["exact"], values["output"]
    promised = exact.promised(output)
    named = values["named_format"] or promised
    table = values["count_only"] or named in (Format.TSV, Format.BED)
    conflicts = (
        (shown_in(exact.PANEL), not is_exact, "only with --exact"),
        (shown_in(pairing.PANEL), is_exact, "not with --exact, which takes every read for itself: leave it out"),
        (shown_in(scoring.PANEL), is_exact, "not with --exact, which scores no alignments"),
        (shown_in(reporting.PANEL), is_exact, "not with --exact, which tells all places (--max-hits)"),
        (shown_in(reads.PANEL), is_exact, "not with --exact, which writes no tags of the reads"),
        (["unmapped"], is_exact, "not with --exact, whose tables tell what occurs nowhere (--count-only)"),
        (
            ["max_alternatives"],
            values["all_places"] or values["max_secondary"] is not None,
            "not with -a or --max-secondary, which give other places records of their own",
        ),
        (["replace_rg"], "read_group" not in given, "only with -R"),
        (["output"], not is_exact and table, f"{output} is a name for {named}, which is written only with --exact"),
        (
            ["named_format"],
            promised is Format.BAM and named != promised,
            f"{output} is a name for {os.path.splitext(output or '')[1][1:]}, not for {named}",
        ),
        (["count_only"], named not in (None, Format.TSV), f"counts are written as tsv, not as {named}"),
        (["read_group"], table, "only SAM, BAM and CRAM have read groups"),
        (["header"], table, "only SAM, BAM and CRAM have such a header"),
    )
    refuse(given, conflicts)
