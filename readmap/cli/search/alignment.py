"""The aligning mode of readmap search: its header, its work and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from readmap.backend import Backend
from readmap.cli.common.duplicates import duplicates_for_programs, duplicates_in_words
from readmap.cli.search.options import Options
from readmap.cli.search.speed import speed
from readmap.duplicates.marker import DuplicateMarker
from readmap.duplicates.metrics import LibraryMetrics
from readmap.formats.fasta import Contig
from readmap.formats.sam import SamEncoding, header
from readmap.formats.sam_header import read_groups
from readmap.formats.wording import format_ratio, pluralize
from readmap.index.device import DeviceIndex, IndexStructure
from readmap.mapping.context import Context
from readmap.mapping.inserts import InsertSize
from readmap.mapping.records import Style
from readmap.qc.survey import Survey
from readmap.run.exact import Format
from readmap.run.lanes import Lane
from readmap.run.read_mapper import MappingSummary, ReadMapper
from readmap.run.sample_model import SampleModel
from readmap.version import __version__

#: The first MAPQ of each bin of the summary's histogram.
BINS = (0, 1, 10, 20, 30, 40, 50, 60)


class AlignmentMode:
    """Reads to alignments; not frozen: `start` sets the summary that is reported, or `take`.

    style, scoring, pairing, reporting: as a search takes them, but for what the files of reads tell.
    """

    structure = IndexStructure.ARRAY
    prefix_table = True

    def __init__(
        self,
        options: Options,
        lanes: Sequence[Lane] = (),
        duplicates: DuplicateMarker | None = None,
        survey: Survey | None = None,
        learnt: SampleModel | None = None,
    ) -> None:
        """options: raises UsageError where the read group or the insert size is none. duplicates: to be marked.
        survey: hears of the header. learnt: of the reads, by other runs."""
        form = SamEncoding.BINARY if options.format is Format.BAM else SamEncoding.TEXT
        output = options.output
        groups = tuple(lane.group for lane in lanes) or (output.group(),)
        unmapped, barcodes = output.unmapped is not None, options.tags.barcode_name
        self.style = Style(form, groups, barcodes=barcodes, order=output.order, unmapped=unmapped)
        self.scoring, self.pairing = options.scoring.scoring(), options.pairs.pairing()
        self.reporting = options.records.reporting()
        self._summary = MappingSummary()
        self._duplicates, self._survey, self._learnt = duplicates, survey, learnt
        self._marked = None if options.duplicates.for_merge else duplicates
        self._libraries: Sequence[LibraryMetrics] | None = None

    def header(self, contigs: Sequence[Contig], command_line: str, lines: Sequence[str]) -> bytes:
        """The header of SAM or BAM."""
        style = self.style
        groups = dict.fromkeys(group.line.decode() for group in style.read_groups if group.line)
        found = read_groups([*groups, *lines])
        if self._duplicates:
            self._duplicates.begin(found, [contig.length for contig in contigs])
        if self._survey:
            self._survey.begin(found, [(contig.name, contig.length) for contig in contigs])
        return header(contigs, __version__, command_line, b"", style.form, [*groups, *lines], style.order)

    def start(
        self, indexes: Sequence[DeviceIndex], backends: Sequence[Backend], program: str, comments: bool, paired: bool
    ) -> ReadMapper:
        """The work on batches of reads, whose comments are tags, and which may be mates."""
        style = replace(self.style, program=program, comments=comments)
        contexts = [
            Context(index, backend, self.scoring, self.pairing, self.reporting)
            for index, backend in zip(indexes, backends, strict=True)
        ]
        work = ReadMapper(contexts, style, paired, self._duplicates, self._learnt)
        self._summary = work.summary
        return work

    @property
    def _marked_libraries(self) -> Sequence[LibraryMetrics] | None:
        return self._marked.libraries if self._marked else self._libraries

    def progress(self) -> str:
        """Counts so far, in words."""
        return f"{format_ratio(self._summary.mapped, self._summary.reads)} mapped"

    def take(self, summary: MappingSummary, libraries: Sequence[LibraryMetrics] | None) -> None:
        """What others have counted, which did the work, and the duplicates of each library."""
        self._summary, self._libraries = summary, libraries

    def lines(self, devices: str) -> list[str]:
        """The summary in words; devices: what did the work."""
        summary = self._summary
        lines = [
            f"{summary.reads:,} reads, {summary.mapped:,} mapped ({format_ratio(summary.mapped, summary.reads)}), "
            f"{speed(summary, devices)}",
            "MAPQ  " + "  ".join(f"{name}: {count:,}" for name, count in _bins(summary).items()),
            *_pair_lines(summary),
        ]
        if summary.lost:
            lines.append(f"{pluralize(summary.lost, 'read')} mapped as single, since the mates were not found")
        if summary.bases_per_difference:
            lines.append(
                f"the sample is expected to differ from the reference in one of {summary.bases_per_difference:,} bases"
            )
        if summary.supplementary or summary.secondary:
            others = f"{summary.supplementary:,} supplementary and {summary.secondary:,} secondary"
            lines.append(f"{others} alignments beside the primary ones")
        lines += duplicates_in_words(self._marked_libraries)
        if summary.too_short:
            lines.append(f"{summary.too_short:,} reads are too short to reach the score {self.scoring.min_score} (-T)")
        if summary.replaced:
            lines.append(f"{summary.replaced:,} ambiguous letters of the reads are written as N")
        return lines

    def record(self) -> dict[str, Any]:
        """The summary for programs."""
        summary = self._summary
        return {
            "scoring": asdict(self.scoring),
            "counts": {
                "reads": summary.reads,
                "mapped": summary.mapped,
                "unmapped": summary.reads - summary.mapped,
                "properly_paired": summary.properly_paired,
                "supplementary": summary.supplementary,
                "secondary": summary.secondary,
                "too_short": summary.too_short,
                "replaced_letters": summary.replaced,
                **({} if summary.lost is None else {"singles": summary.singles, "lost_mates": summary.lost}),
            },
            "work": asdict(summary.work),
            "mapq_histogram": summary.mapqs.tolist(),
            "bases_per_difference": summary.bases_per_difference,
            "insert_sizes": _sizes_for_programs(summary),
            **duplicates_for_programs(self._marked_libraries),
        }


def _sizes_for_programs(summary: MappingSummary) -> list[dict[str, Any]] | dict[str, list[dict[str, Any]]] | None:
    """The insert sizes of the library; by name where there are several."""
    sizes = {name: [asdict(size) for size in found] for name, found in summary.libraries.items()}
    return next(iter(sizes.values()), None) if len(sizes) < 2 else sizes


def _pair_lines(summary: MappingSummary) -> list[str]:
    """Pairs in words, and a warning where they do not show a library's insert size."""
    if not summary.libraries:
        return []
    pairs, proper = (summary.reads - summary.singles) // 2, summary.properly_paired // 2
    told = [
        f"insert size{_of_library(name, summary)} {sizes_in_words(found)}" for name, found in summary.libraries.items()
    ]
    lines = [", ".join([f"{pluralize(pairs, 'pair')}, {proper:,} proper ({format_ratio(proper, pairs)})", *told])]
    if summary.singles:
        lines.append(f"{pluralize(summary.singles, 'single read')} beside the pairs")
    for name in (name for name, found in summary.libraries.items() if not found):
        lines.append(
            f"warning: the first pairs{_of_library(name, summary)} show no insert size: too few are placed for sure, "
            "or their sizes do not gather; mates were placed without regard to each other: -I MEAN,SD gives it"
        )
    return lines


def _of_library(name: str, summary: MappingSummary) -> str:
    """Which library something is of, where there are several."""
    return f" of {name or 'reads without a library'}" if len(summary.libraries) > 1 else ""


def sizes_in_words(sizes: Sequence[InsertSize]) -> str:
    """Those of each direction."""
    return "; ".join(map(_in_words, sizes)) or "unknown"


def _in_words(size: InsertSize) -> str:
    return f"{size.direction} {size.mean:.0f} ± {size.deviation:.0f} ({size.low}-{size.high})"


def _bins(summary: MappingSummary) -> dict[str, int]:
    """Mapped reads by bins of MAPQ."""
    ends = [*BINS[1:], BINS[-1] + 1]
    names = [f"{low}-{end - 1}" if end - low > 1 else f"{low}" for low, end in zip(BINS, ends, strict=True)]
    counts = [int(summary.mapqs[low:end].sum()) for low, end in zip(BINS, ends, strict=True)]
    return dict(zip(names, counts, strict=True))
