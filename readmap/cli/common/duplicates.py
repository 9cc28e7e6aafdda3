"""What search and markdup share: the options of duplicates, and what is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from readmap.cli.common.options import flag, number, option
from readmap.duplicates.marker import OPTICAL_DISTANCE, DuplicateRules
from readmap.duplicates.metrics import LibraryMetrics
from readmap.formats.wording import format_ratio, pluralize


@dataclass(frozen=True, kw_only=True)
class DuplicateOptions:
    """What duplicates are, and what becomes of them."""

    panel: ClassVar = "Duplicates, as Picard MarkDuplicates finds them"

    remove_duplicates: bool = flag("--remove-duplicates", "Leave duplicates out instead.")
    optical_distance: int = number(
        "--optical-distance",
        "Pixels within which duplicates of a tile are optical ones: 100, or 2500 for patterned flow cells; 0 looks for "
        f"none (default: {OPTICAL_DISTANCE}).",
        0,
        1 << 30,
        default=OPTICAL_DISTANCE,
    )
    duplicate_type: bool = flag("--duplicate-type", "Tell of duplicates what they are: DT:Z:SQ, optical, or DT:Z:LB.")
    barcode_tag: str | None = option(
        "--barcode-tag", "The tag of UMIs, as RX: fragments whose UMIs differ are no duplicates.", "TAG"
    )
    metrics: str | None = option("--metrics", "Write the metrics there, as Picard's DuplicationMetrics.", "FILE")

    def rules(self) -> DuplicateRules:
        """What duplicates are; raises UsageError where the tag is none."""
        return DuplicateRules(self.optical_distance, self.barcode_tag, self.remove_duplicates, self.duplicate_type)


def duplicates_in_words(libraries: Sequence[LibraryMetrics] | None) -> list[str]:
    """Those of each library; nothing where none are looked for."""
    return [_in_words(library) for library in libraries or ()]


def duplicates_for_programs(libraries: Sequence[LibraryMetrics] | None) -> dict[str, Any]:
    """The same, with the libraries' sizes."""
    if libraries is None:
        return {}
    told = []
    for one in libraries:
        counts = asdict(one)
        told.append({"library": counts.pop("name"), **counts, "share": round(one.share, 6), "library_size": one.size})
    return {"duplicates": told}


def _in_words(library: LibraryMetrics) -> str:
    pairs = f"{library.pair_duplicates:,} of {pluralize(library.pairs, 'pair')} with both mates mapped"
    singles = f"{library.unpaired_duplicates:,} of {pluralize(library.unpaired, 'other mapped read')}"
    told = f"duplicates of {library.name}: {pairs}, {library.optical_duplicates:,} of these optical; {singles}"
    return f"{told}; {format_ratio(library.duplicates, library.reads)} of the mapped reads"
