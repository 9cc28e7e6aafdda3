"""The options of duplicates, as search, markdup and merge take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from readmap.cli.common.options import flag, number, option
from readmap.duplicates.marker import OPTICAL_DISTANCE, DuplicateRules


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
