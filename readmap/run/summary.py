"""The result of a search, for Python, for JSON and for people."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.duplicates.metrics import LibraryMetrics
from readmap.formats.wording import format_ratio, pluralize, printable
from readmap.index.device import IndexStructure
from readmap.index.index import Index
from readmap.index.reference import reference_checksum
from readmap.mapping.inserts import InsertSize
from readmap.mapping.parameters import Scoring
from readmap.reads.shards import RecordRange, Shard
from readmap.run.batch_processor import RunSummary
from readmap.run.exact import ALL, ExactSummary, LineFormat, Parameters
from readmap.run.read_mapper import MappingSummary
from readmap.run.reports import QualityReports, describe_duplicates, duplicates_as_json
from readmap.strand import Strand

#: The first MAPQ of each bin of the histogram that is shown.
BINS = (0, 1, 10, 20, 30, 40, 50, 60)

STRUCTURES = {IndexStructure.ARRAY: "suffix array", IndexStructure.TREE: "suffix tree"}


@dataclass(frozen=True)
class Origin:
    """What a search read and where it ran: the parts of the JSON report that all searches have. outputs: paths by their
    names in the report. device, devices: the first device, and all devices as text. load_seconds: time to load the
    index, or None on a cluster. cluster: address, workers and tasks of a search on a cluster. parts: the records of
    each file that belong to the shard."""

    index: str
    reads: Sequence[str]
    outputs: Mapping[str, str]
    reference: Index
    device: str
    devices: str
    threads: int | None = None
    load_seconds: float | None = None
    codec: str | None = None
    cluster: Mapping[str, Any] | None = None
    shard: Shard | None = None
    parts: Sequence[RecordRange] = ()

    def as_json(self, counts: RunSummary) -> dict[str, Any]:
        """Return the fields of the JSON report that all searches have, with speed and times from `counts`."""
        record: dict[str, Any] = {"index": printable(self.index), "reads": [*map(printable, self.reads)]}
        record |= {name: printable(path) for name, path in self.outputs.items()}
        record |= {"codec": self.codec} if self.codec else {}
        if self.cluster is not None:
            record["cluster"] = dict(self.cluster)
        if self.shard:
            taken, whole = _records(self.parts)
            own = {"number": self.shard.number, "of": self.shard.count, "records": taken, "of_records": whole}
            record["shard"] = own
        reference, loading = self.reference.reference, self.load_seconds
        return record | {
            "device": self.device,
            "devices": {
                name: {what: round(count, 4) for what, count in own.items()} for name, own in counts.devices.items()
            },
            "threads": self.threads,
            "reference": {
                "source": printable(self.reference.source),
                "contigs": len(reference.contigs),
                "alternates": int(reference.alternates.sum()),
                "bases": reference.bases,
                "checksum": reference_checksum(reference.contigs),
            },
            "reads_per_second": round(reads_per_second(counts), 1),
            "seconds": {
                "load_index": None if loading is None else round(loading, 4),
                "search": round(counts.seconds, 4),
                **{f"waiting_{what}": round(seconds, 4) for what, seconds in counts.waiting.items()},
            },
        }


def describe_shard(shard: Shard | None, parts: Sequence[RecordRange]) -> list[str]:
    """Return a line with the shard and its number of records; empty without a shard."""
    if not shard:
        return []
    taken, whole = _records(parts)
    return [f"shard {shard.number:,} of {shard.count:,}: {taken:,} of {whole:,} records"]


def reads_per_second(counts: RunSummary) -> float:
    return counts.reads / max(counts.seconds, 1e-9)


def _records(parts: Sequence[RecordRange]) -> tuple[int, int]:
    return sum(part.end_record - part.first_record for part in parts), sum(part.file_records for part in parts)


@dataclass(frozen=True)
class SearchSummary:
    """What a search of reads counted and estimated.

    Attributes
    ----------
    counts : dict of str to int
        Reads, mapped and unmapped reads, properly paired reads, supplementary and secondary alignments, and so on.
    mapq_histogram : numpy.ndarray, int64 [61]
        Mapped reads by MAPQ, from 0 to 60.
    bases_per_difference : int or None
        Bases in which one difference of the sample from the reference is expected; None without reads.
    insert_sizes : dict of str to tuple of InsertSize
        By library ("" for reads without one), a value for each orientation that the pairs show, in bases.
    duplicates : list of LibraryMetrics or None
        By library; None if duplicates were not marked.
    quality : dict
        Counts of the written records by sample, as in the JSON report; empty without a quality report.
    seconds, reads_per_second : float
        Time and speed of the search, without loading the index.
    warnings : list of str
        Doubts about the files of reads, and devices that failed.
    outputs : dict of str to str
        Paths of the files that were written, by their names in the JSON report.
    """

    origin: Origin
    result: MappingSummary
    scoring: Scoring
    duplicates: Sequence[LibraryMetrics] | None = None
    reports: QualityReports | None = field(default=None, repr=False)

    @property
    def counts(self) -> dict[str, int]:
        """The counts of reads and alignments by their names in the JSON report."""
        result = self.result
        counts = {"reads": result.reads, "mapped": result.mapped, "unmapped": result.reads - result.mapped}
        names = ("properly_paired", "supplementary", "secondary", "too_short")
        counts |= {name: getattr(result, name) for name in names} | {"replaced_letters": result.replaced}
        return counts if result.lost is None else counts | {"singles": result.singles, "lost_mates": result.lost}

    @property
    def mapq_histogram(self) -> NDArray[np.int64]:
        return self.result.mapqs

    @property
    def bases_per_difference(self) -> int | None:
        return self.result.bases_per_difference

    @property
    def insert_sizes(self) -> dict[str, tuple[InsertSize, ...]]:
        return self.result.libraries

    @property
    def quality(self) -> dict[str, Any]:
        return self.reports.as_json() if self.reports else {}

    @property
    def seconds(self) -> float:
        return self.result.seconds

    @property
    def reads_per_second(self) -> float:
        return reads_per_second(self.result)

    @property
    def warnings(self) -> list[str]:
        return self.result.warnings

    @property
    def outputs(self) -> dict[str, str]:
        return dict(self.origin.outputs)

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the JSON report of `readmap search`."""
        return {
            **self.origin.as_json(self.result),
            "scoring": asdict(self.scoring),
            "counts": self.counts,
            "work": asdict(self.result.work),
            "mapq_histogram": self.mapq_histogram.tolist(),
            "bases_per_difference": self.bases_per_difference,
            "insert_sizes": _sizes_as_json(self.insert_sizes),
            **duplicates_as_json(self.duplicates),
            **self.quality,
        }

    def describe(self) -> list[str]:
        """Return the summary in lines of text."""
        result = self.result
        if not result.reads:
            return ["no reads", *_warnings(result)]
        lines = [
            f"{result.reads:,} reads, {result.mapped:,} mapped ({format_ratio(result.mapped, result.reads)}), "
            f"{_speed(result, self.origin)}",
            "MAPQ  " + "  ".join(f"{name}: {count:,}" for name, count in _bins(self.mapq_histogram).items()),
            *_describe_pairs(result),
        ]
        if result.lost:
            lines.append(f"{pluralize(result.lost, 'read')} mapped as single: their mates were not found")
        if result.bases_per_difference:
            lines.append(describe_divergence(result.bases_per_difference))
        if result.supplementary or result.secondary:
            lines.append(f"{result.supplementary:,} supplementary and {result.secondary:,} secondary alignments")
        lines += describe_duplicates(self.duplicates)
        if result.too_short:
            lines.append(f"{result.too_short:,} reads are too short to reach the score {self.scoring.min_score} (-T)")
        if result.replaced:
            lines.append(f"{result.replaced:,} ambiguous letters of the reads are written as N")
        return [*lines, *(self.reports.describe() if self.reports else []), *_warnings(result)]


@dataclass(frozen=True)
class ExactSearchSummary:
    """What an exact search of reads counted.

    Attributes
    ----------
    counts : dict of str to int
        Reads, reads that were found, found once, all occurrences, and reads with an ambiguous base.
    """

    origin: Origin
    result: ExactSummary
    parameters: Parameters
    prefix_table: bool

    @property
    def counts(self) -> dict[str, int]:
        result = self.result
        names = ("reads", "found", "unique", "occurrences", "ambiguous")
        return {name: getattr(result, name) for name in names} | {"replaced_letters": result.replaced}

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the JSON report of `readmap search --exact`."""
        parameters = self.parameters
        return {
            **self.origin.as_json(self.result),
            "structure": str(parameters.structure),
            "prefix_table": self.prefix_table,
            "strand": str(parameters.strand),
            "format": str(parameters.format),
            "max_hits": parameters.max_hits if parameters.max_hits < ALL else None,
            "counts": self.counts,
        }

    def describe(self) -> list[str]:
        """Return the summary in lines of text."""
        result, parameters = self.result, self.parameters
        if not result.reads:
            return ["no reads", *_warnings(result)]
        plain = "" if self.prefix_table else " without its prefix table"
        strand = "" if parameters.strand is Strand.BOTH else f", {parameters.strand} strand only"
        lines = [
            f"{pluralize(result.reads, 'read')}, {result.found:,} found ({format_ratio(result.found, result.reads)}), "
            f"{result.unique:,} of them once; {pluralize(result.occurrences, 'occurrence')}{strand}",
            f"{_speed(result, self.origin)}, by the {STRUCTURES[parameters.structure]}{plain}",
        ]
        if result.ambiguous:
            verb = "occurs" if result.ambiguous == 1 else "occur"
            lines.append(f"{pluralize(result.ambiguous, 'read')} with an ambiguous base {verb} nowhere")
        if result.replaced and parameters.format in (LineFormat.SAM, LineFormat.BAM):
            lines.append(f"{result.replaced:,} ambiguous letters of the reads are written as N")
        return [*lines, *_warnings(result)]


def describe_divergence(bases_per_difference: int) -> str:
    return f"estimated divergence from the reference: 1 in {bases_per_difference:,} bases"


def describe_sizes(sizes: Sequence[InsertSize]) -> str:
    return "; ".join(map(_describe_size, sizes)) or "unknown"


def _describe_size(size: InsertSize) -> str:
    return f"{size.direction} {size.mean:.0f} ± {size.deviation:.0f} ({size.low}-{size.high})"


def _speed(result: RunSummary, origin: Origin) -> str:
    return f"{reads_per_second(result):,.0f} reads/s on {origin.devices}"


def _warnings(result: RunSummary) -> list[str]:
    return [f"warning: {warning}" for warning in result.warnings]


def _sizes_as_json(libraries: Mapping[str, Sequence[InsertSize]]) -> Any:
    """Return the insert sizes of the only library, or by library if there are several; None without pairs."""
    sizes = {name: [asdict(size) for size in found] for name, found in libraries.items()}
    return next(iter(sizes.values()), None) if len(sizes) < 2 else sizes


def _describe_pairs(result: MappingSummary) -> list[str]:
    """Return lines about pairs, with a warning for each library whose insert size is unknown."""
    if not result.libraries:
        return []
    pairs, proper = (result.reads - result.singles) // 2, result.properly_paired // 2
    sizes = [f"insert size{_of(name, result)} {describe_sizes(found)}" for name, found in result.libraries.items()]
    lines = [", ".join([f"{pluralize(pairs, 'pair')}, {proper:,} proper ({format_ratio(proper, pairs)})", *sizes])]
    if result.singles:
        lines.append(f"{pluralize(result.singles, 'single read')} among the pairs")
    for name in (name for name, found in result.libraries.items() if not found):
        lines.append(
            f"warning: the first pairs{_of(name, result)} show no insert size: too few are placed uniquely, or their "
            "sizes vary too much; mates were placed independently: -I MEAN,SD sets the insert size"
        )
    return lines


def _of(library: str, result: MappingSummary) -> str:
    return f" of {library or 'reads without a library'}" if len(result.libraries) > 1 else ""


def _bins(histogram: NDArray[np.int64]) -> dict[str, int]:
    """Return the sums of a MAPQ histogram over BINS, by labels such as "10-19"."""
    ends = [*BINS[1:], BINS[-1] + 1]
    names = [f"{low}-{end - 1}" if end - low > 1 else f"{low}" for low, end in zip(BINS, ends, strict=True)]
    counts = [int(histogram[low:end].sum()) for low, end in zip(BINS, ends, strict=True)]
    return dict(zip(names, counts, strict=True))
