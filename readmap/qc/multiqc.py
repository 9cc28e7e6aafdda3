"""Files that MultiQC shows without configuration: custom content, and the output of samtools flagstat and stats.

MultiQC derives sample names from file names, up to the first suffix it knows, so each file name starts with the
sample's name. A custom content file has one section, and MultiQC merges sections with the same id.
"""

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

#: Maximum number of points of a line.
MAX_POINTS = 1_000

Lines = dict[str, list[list[float]]]


class Section(NamedTuple):
    """A line plot: id, title, description, titles of the axes, and lines by name."""

    id: str
    title: str
    description: str
    x: str
    y: str
    lines: Lines


def file_name(sample: str) -> str:
    """Return a sample's name with the characters that are safe in a file name."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "_", sample).lstrip("._-") or "sample"


def multiqc_files(samples: Sequence[SampleTally]) -> dict[str, str]:
    """Return the texts of all files for MultiQC, by file name."""
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
    """Return columns for MultiQC's General Statistics table."""
    tally, depths = sample.tally, sample.depths
    columns: dict[str, tuple[str, str, float, str]] = {
        "q30": ("Q30", "Bases with quality 30 or more", 100 * share(tally.good_bases, tally.bases_with_quality), "%"),
        "gc": ("GC", "G and C among the bases", 100 * tally.gc, "%"),
        "adapters": ("Adapters", "Reads with an adapter", 100 * share(tally.with_adapter, tally.reads), "%"),
    }
    if depths:
        columns["mean_coverage"] = ("Coverage", "Mean depth; overlapping mates count once", depths.mean, "X")
        for depth, part in depths.breadths.items():
            columns[f"breadth_{depth}"] = (f"≥ {depth}X", f"Bases covered by {depth} or more", 100 * part, "%")
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
    title = {"id": f"{named}_plot", "title": f"readmap: {section.title}"}
    return {
        "id": named,
        "parent_id": "readmap",
        "parent_name": "readmap",
        "parent_description": "maps short reads; these numbers were counted while the records were written.",
        "section_name": section.title,
        "description": section.description,
        "plot_type": "linegraph",
        "pconfig": title | {"xlab": section.x, "ylab": section.y},
        "data": section.lines,
    }


def _sections(sample: SampleTally, name: str) -> Iterator[Section]:
    """Yield the plots of a sample; name: used for the lines."""
    tally = sample.tally
    by_mate = {mate: f"{name} read {mate + 1}" if tally.bases[1].any() else name for mate in range(2)}
    mates = {mate: label for mate, label in by_mate.items() if tally.bases[mate].any()}
    lines = {label: _line(tally.mean_quality(mate), 1) for mate, label in mates.items()}
    yield Section("quality", "Mean quality by cycle", "Phred, mean of all reads.", "Cycle", "Phred", lines)
    lines = {label: _line(100 * tally.mismatch_shares(mate), 1) for mate, label in mates.items()}
    description = "Percentage of the aligned bases, from the tag MD."
    yield Section("mismatches", "Mismatches by cycle", description, "Cycle", "%", lines)
    rows = zip(ADAPTER_NAMES, tally.adapter_shares(), strict=True)
    lines = {f"{name} {adapter}": _line(100 * row, 1) for adapter, row in rows if row.any()}
    description = "Percentage of the reads in which an adapter has started."
    yield Section("adapters", "Adapters by cycle", description, "Cycle", "%", lines)
    lines = {name: _line(tally.gc_of_reads.sum(0), 0)}
    yield Section("gc", "GC of reads", "Reads by percentage of G and C.", "% GC", "Reads", lines)
    lines = {
        f"{name} {orientation}": _line(row[: int(np.flatnonzero(row)[-1]) + 1], 0)
        for orientation, row in zip(ORIENTATION_NAMES, tally.pairs_by_insert[:, :-1], strict=True)
        if row.any()
    }
    yield Section("inserts", "Insert sizes", "Pairs by orientation.", "Bases", "Pairs", lines)
    if sample.depths and sample.depths.covered.any():
        depths = sample.depths.all_depths
        reached = np.cumsum(depths[::-1])[::-1] / max(depths.sum(), 1)
        end = int(np.flatnonzero(reached > 1e-4)[-1]) + 1
        description, lines = "Percentage of the bases that reach a depth.", {name: _line(100 * reached[:end], 0)}
        yield Section("coverage", "Cumulative coverage", description, "Depth", "%", lines)


def _line(values: NDArray[Any], first: int) -> list[list[float]]:
    """Return [x, y] of the values that are not NaN, at most MAX_POINTS of them; first: x of the first value."""
    step = -(-len(values) // MAX_POINTS)
    return [
        [number + first, round(float(values[number]), 4)]
        for number in range(0, len(values), max(step, 1))
        if not np.isnan(values[number])
    ]
