"""What was counted, in files that MultiQC shows without configuration: custom content, and those of samtools.

MultiQC calls samples by the names of files, up to the first ending that it knows: each begins with that of its sample.
A file of custom content holds one section, and sections of one id come together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.qc.json_report import ORIENTATION_NAMES
from readmap.qc.samtools import write_flagstat, write_stats
from readmap.qc.tally import ADAPTER_NAMES, SampleTally, share
from readmap.version import __version__

#: Points of a line at most.
MAX_POINTS = 1_000

Lines = dict[str, list[list[float]]]


class Section(NamedTuple):
    """A plot: its id, title and description, the names of its axes, and lines by their names."""

    id: str
    title: str
    about: str
    x: str
    y: str
    lines: Lines


def file_name(sample: str) -> str:
    """A sample's name as that of a file."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "_", sample).lstrip("._-") or "sample"


def multiqc_files(samples: Sequence[SampleTally]) -> dict[str, str]:
    """Names of files and their texts."""
    files: dict[str, str] = {}
    for sample in samples:
        name = file_name(sample.name)
        files[f"{name}.flagstat"] = write_flagstat(sample.tally)
        files[f"{name}.stats"] = write_stats(sample.tally, __version__)
        files[f"{name}.readmap_general_mqc.json"] = _text(_general(sample, name))
        for section in _sections(sample, name):
            if section.lines:
                files[f"{name}.readmap_{section.id}_mqc.json"] = _text(_plot(section))
    return files


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"


def _general(sample: SampleTally, name: str) -> dict[str, Any]:
    """Columns of MultiQC's first table."""
    tally, depths = sample.tally, sample.depths
    columns: dict[str, tuple[str, str, float, str]] = {
        "q30": ("Q30", "Bases of quality 30 and more", 100 * share(tally.good_bases, tally.bases_with_quality), "%"),
        "gc": ("GC", "G and C among the bases", 100 * tally.gc, "%"),
        "adapters": ("Adapters", "Reads with an adapter", 100 * share(tally.with_adapter, tally.reads), "%"),
    }
    if depths:
        columns["mean_coverage"] = ("Coverage", "Mean depth, mates that overlap once", depths.mean, "X")
        for depth, part in depths.breadths.items():
            columns[f"breadth_{depth}"] = (f"≥ {depth}X", f"Bases covered by {depth} and more", 100 * part, "%")
    return {
        "id": "readmap_general",
        "plot_type": "generalstats",
        "headers": {
            key: {"title": title, "description": text, "namespace": "readmap", "suffix": unit, "min": 0}
            | ({"max": 100} if unit == "%" else {})
            | {"hidden": key in ("breadth_1", "breadth_20")}
            for key, (title, text, _, unit) in columns.items()
        },
        "data": {name: {key: round(value, 4) for key, (_, _, value, _) in columns.items()}},
    }


def _plot(section: Section) -> dict[str, Any]:
    named = f"readmap_{section.id}"
    axes = {"xlab": section.x, "ylab": section.y}
    return {
        "id": named,
        "parent_id": "readmap",
        "parent_name": "readmap",
        "parent_description": "maps short reads; this was counted while it wrote their records.",
        "section_name": section.title,
        "description": section.about,
        "plot_type": "linegraph",
        "pconfig": {"id": f"{named}_plot", "title": f"readmap: {section.title}", **axes},
        "data": section.lines,
    }


def _sections(sample: SampleTally, name: str) -> Iterator[Section]:
    """name: by which lines are called."""
    tally = sample.tally
    by_mate = {mate: f"{name} read {mate + 1}" if tally.bases[1].any() else name for mate in range(2)}
    mates = {mate: label for mate, label in by_mate.items() if tally.bases[mate].any()}
    yield Section(
        "quality",
        "Mean quality by cycle",
        "Phred, of all reads.",
        "Cycle",
        "Phred",
        {label: _line(tally.mean_quality(mate), 1) for mate, label in mates.items()},
    )
    yield Section(
        "mismatches",
        "Mismatches by cycle",
        "Per cent of the aligned bases, as MD tells them.",
        "Cycle",
        "%",
        {label: _line(100 * tally.mismatch_shares(mate), 1) for mate, label in mates.items()},
    )
    yield Section(
        "adapters",
        "Adapters by cycle",
        "Per cent of the reads in which an adapter has begun.",
        "Cycle",
        "%",
        {
            f"{name} {adapter}": _line(100 * row, 1)
            for adapter, row in zip(ADAPTER_NAMES, tally.adapter_shares(), strict=True)
            if row.any()
        },
    )
    yield Section(
        "gc",
        "GC of reads",
        "Reads by the per cent of G and C among their bases.",
        "% GC",
        "Reads",
        {name: _line(tally.gc_of_reads.sum(0), 0)},
    )
    yield Section(
        "inserts",
        "Insert sizes",
        "Pairs by orientation.",
        "Bases",
        "Pairs",
        {
            f"{name} {orientation}": _line(row[: int(np.flatnonzero(row)[-1]) + 1], 0)
            for orientation, row in zip(ORIENTATION_NAMES, tally.pairs_by_insert[:, :-1], strict=True)
            if row.any()
        },
    )
    if sample.depths and sample.depths.covered.any():
        depths = sample.depths.all_depths
        reached = np.cumsum(depths[::-1])[::-1] / max(depths.sum(), 1)
        end = int(np.flatnonzero(reached > 1e-4)[-1]) + 1
        yield Section(
            "coverage",
            "Cumulative coverage",
            "Per cent of the bases that reach a depth.",
            "Depth",
            "%",
            {name: _line(100 * reached[:end], 0)},
        )


def _line(values: NDArray[Any], first: int) -> list[list[float]]:
    """Points of a line, of long ones some."""
    step = -(-len(values) // MAX_POINTS)
    return [
        [number + first, round(float(values[number]), 4)]
        for number in range(0, len(values), max(step, 1))
        if not np.isnan(values[number])
    ]
