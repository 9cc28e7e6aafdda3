"""What a search tells programs, whatever it searched for."""

from __future__ import annotations

from typing import Any

from readmap.cli.search.speed import rate
from readmap.formats.wording import printable
from readmap.index.index import Index
from readmap.index.reference import reference_checksum
from readmap.run.batch_processor import RunSummary


def record_of(
    summary: RunSummary, index: Index, device: str, threads: int | None, loading: float | None
) -> dict[str, Any]:
    """The record for programs but for the parts of one mode; of a cluster some are not known."""
    reference = index.reference
    return {
        "device": device,
        "devices": {
            name: {what: round(count, 4) for what, count in own.items()} for name, own in summary.devices.items()
        },
        "threads": threads,
        "reference": {
            "source": printable(index.source),
            "contigs": len(reference.contigs),
            "alternates": int(reference.alternates.sum()),
            "bases": reference.bases,
            "checksum": reference_checksum(reference.contigs),
        },
        "reads_per_second": round(rate(summary), 1),
        "seconds": {
            "load_index": None if loading is None else round(loading, 4),
            "search": round(summary.seconds, 4),
            **{f"waiting_{what}": round(seconds, 4) for what, seconds in summary.waiting.items()},
        },
    }
