"""Quality control in the JSON report."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.qc.tally import ADAPTER_NAMES, Depths, SampleTally, Tally, share

#: Decimals of shares.
DIGITS = 6

ORIENTATION_NAMES = ("inward", "outward", "other")
BASE_NAMES = "ACGTN"


def as_json(samples: Sequence[SampleTally]) -> dict[str, Any]:
    """Return totals by sample, library and lane, and the data of the plots."""
    return {"quality": [_sample(sample) for sample in samples]}


def totals(tally: Tally) -> dict[str, Any]:
    """Return counts and shares of one or several lanes."""
    mean, deviation = tally.insert_mean_and_deviation
    return {
        "reads": tally.reads,
        "bases": tally.bases_read,
        "q30_share": _rounded(share(tally.good_bases, tally.bases_with_quality)),
        "gc_share": _rounded(tally.gc),
        "mapped": tally.mapped,
        "mapped_share": _rounded(share(tally.mapped, tally.reads)),
        "properly_paired": tally.proper,
        "properly_paired_share": _rounded(share(tally.proper, tally.paired)),
        "duplicates": tally.duplicates,
        "duplicate_share": _rounded(share(tally.duplicates, tally.reads)),
        "error_rate": _rounded(tally.error_rate),
        "adapter_reads": dict(zip(ADAPTER_NAMES, tally.adapters.sum((0, 2)).tolist(), strict=True)),
        "insert_size": {
            "median": tally.median_insert,
            "mean": round(mean, 1),
            "standard_deviation": round(deviation, 1),
            "pairs": dict(zip(ORIENTATION_NAMES, tally.pairs_by_insert.sum(1).tolist(), strict=True)),
        },
    }


def _sample(sample: SampleTally) -> dict[str, Any]:
    tally = sample.tally
    mates = [mate for mate in range(2) if tally.bases[mate].any()]
    return {
        "sample": sample.name,
        **totals(tally),
        "coverage": _coverage(sample.depths) if sample.depths else None,
        "libraries": [{"library": name, **totals(one)} for name, one in sample.libraries.items()],
        "lanes": [{"lane": lane.name, "library": lane.library, **totals(lane.tally)} for lane in sample.lanes],
        "cycles": [
            {
                "mate": mate + 1,
                "mean_quality": _numbers(tally.mean_quality(mate)),
                "bases": dict(zip(BASE_NAMES, map(_numbers, tally.base_shares(mate).T), strict=True)),
                "mismatches": _numbers(tally.mismatch_shares(mate)),
            }
            for mate in mates
        ],
        "adapters_by_cycle": dict(zip(ADAPTER_NAMES, map(_numbers, tally.adapter_shares()), strict=True)),
        "gc_of_reads": tally.gc_of_reads.sum(0).tolist(),
        "quality_of_reads": tally.quality_of_reads.sum(0).tolist(),
        "mapqs": tally.mapqs.tolist(),
        "insert_sizes": {
            name: _sparse(row) for name, row in zip(ORIENTATION_NAMES, tally.pairs_by_insert, strict=True)
        },
    }


def _coverage(depths: Depths) -> dict[str, Any]:
    return {
        "mean": round(depths.mean, 4),
        "breadth": {str(depth): _rounded(part) for depth, part in depths.breadths.items()},
        "histogram": _sparse(depths.all_depths),
        "reads_without_mc": depths.missing_mc,
        "contigs": [
            {"contig": name, "length": length, "mean": round(mean, 4)}
            | {"breadth": {str(depth): _rounded(part) for depth, part in breadths.items()}}
            for number, (name, length) in enumerate(depths.contigs)
            for mean, breadths in [depths.of_contig(number)]
        ],
    }


def _rounded(part: float) -> float:
    return round(part, DIGITS)


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    """Return rounded values with None for NaN, which JSON does not have."""
    return [None if np.isnan(value) else _rounded(float(value)) for value in values]


def _sparse(counts: NDArray[np.int64]) -> dict[str, int]:
    """Return the counts that are not 0, by index."""
    return {str(number): int(counts[number]) for number in np.flatnonzero(counts)}
