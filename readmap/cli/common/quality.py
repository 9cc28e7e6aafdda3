"""The options of quality reports, as search, markdup and merge take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from readmap.cli.common.options import option


@dataclass(frozen=True, kw_only=True)
class QualityOptions:
    """The reports of the records that are written."""

    panel: ClassVar = "Quality control, of sorted records"

    report: str | None = option(
        "--report", "Write a page of qualities, insert sizes, coverage and more; --json contains the same.", "FILE.html"
    )
    multiqc: str | None = option(
        "--multiqc", "Write files into that folder that MultiQC shows: counts as of samtools stats and flagstat too.",
        "FOLDER",
    )  # fmt: skip
