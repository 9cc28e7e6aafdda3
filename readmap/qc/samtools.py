"""The counts of a sample in the formats of samtools flagstat and samtools stats."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from readmap.qc.counts import FLAGS, QUALITIES
from readmap.qc.tally import (
    DUPLICATE,
    FAILED,
    FIRST,
    MATE_UNMAPPED,
    PAIRED,
    PROPER,
    SECOND,
    SECONDARY,
    SUPPLEMENTARY,
    UNMAPPED,
    Tally,
    flag_mask,
    share,
)

#: MultiQC recognizes a samtools stats file by this sentence.
_KNOWN_BY = "This file was produced by samtools stats"

#: samtools writes columns up to at least this quality.
MIN_QUALITY_COLUMNS = 40

_PRIMARY = {"without": SECONDARY | SUPPLEMENTARY}


def write_flagstat(tally: Tally) -> str:
    """Return the output of samtools flagstat: counts of QC-passed and QC-failed records."""
    flags = tally.flags
    passed, failed = flag_mask(0, without=FAILED), flag_mask(FAILED)

    def both(wanted: NDArray[np.bool_]) -> tuple[int, int]:
        return int(flags[wanted & passed].sum()), int(flags[wanted & failed].sum())

    def primary(needed: int, without: int = 0) -> tuple[int, int]:
        return both(flag_mask(needed, without=without | SECONDARY | SUPPLEMENTARY))

    total, reads, pairs = both(flag_mask(0)), primary(0), primary(PAIRED)
    mapped, primary_mapped = both(flag_mask(0, without=UNMAPPED)), primary(0, UNMAPPED)
    proper = primary(PAIRED | PROPER, UNMAPPED)
    single = primary(PAIRED | MATE_UNMAPPED, UNMAPPED)
    apart = tally.scalar("OTHER_CONTIG"), tally.scalar("FAILED_OTHER_CONTIG")
    surely = tally.scalar("OTHER_CONTIG_MAPQ5"), tally.scalar("FAILED_OTHER_CONTIG_MAPQ5")
    lines = [
        (total, "in total (QC-passed reads + QC-failed reads)"),
        (reads, "primary"),
        (both(flag_mask(SECONDARY)), "secondary"),
        (both(flag_mask(SUPPLEMENTARY, without=SECONDARY)), "supplementary"),
        (both(flag_mask(DUPLICATE)), "duplicates"),
        (primary(DUPLICATE), "primary duplicates"),
        (mapped, f"mapped ({_shares(mapped, total)})"),
        (primary_mapped, f"primary mapped ({_shares(primary_mapped, reads)})"),
        (pairs, "paired in sequencing"),
        (primary(PAIRED | FIRST), "read1"),
        (primary(PAIRED | SECOND), "read2"),
        (proper, f"properly paired ({_shares(proper, pairs)})"),
        (primary(PAIRED, UNMAPPED | MATE_UNMAPPED), "with itself and mate mapped"),
        (single, f"singletons ({_shares(single, pairs)})"),
        (apart, "with mate mapped to a different chr"),
        (surely, "with mate mapped to a different chr (mapQ>=5)"),
    ]
    return "".join(f"{passing} + {failing} {what}\n" for (passing, failing), what in lines)


def _shares(parts: tuple[int, int], wholes: tuple[int, int]) -> str:
    pairs = zip(parts, wholes, strict=True)
    return " : ".join(f"{100 * part / whole:.2f}%" if whole else "N/A" for part, whole in pairs)


def write_stats(tally: Tally, version: str) -> str:
    """Return the sections SN, FFQ, LFQ, IS and MAPQ of samtools stats, with the same numbers as samtools."""
    lines = [
        f'# Made by readmap {version}, in a format that is known by "{_KNOWN_BY}"',
        "# Summary Numbers. Use `grep ^SN | cut -f 2-` to extract this part.",
        *(f"SN\t{name}:\t{value}" for name, value in _summary(tally)),
        *_qualities(tally),
        "# Insert sizes. The columns are: insert size, pairs total, inward, outward, other oriented pairs",
        *_inserts(tally),
        "# Mapping qualities of primary records that neither fail nor are duplicates. The columns are: mapq, count",
        *(f"MAPQ\t{mapq}\t{count}" for mapq, count in enumerate(tally.mapqs) if count),
    ]
    return "".join(f"{line}\n" for line in lines)


def _summary(tally: Tally) -> Iterator[tuple[str, object]]:
    """Yield the summary numbers (SN); records without bases are not counted."""
    flags = tally.flags - tally.empty.sum(0)

    def count(needed: int = 0, without: int = 0) -> int:
        return int(flags[flag_mask(needed, without=without | SECONDARY | SUPPLEMENTARY)].sum())

    def letters(wanted: NDArray[np.bool_]) -> int:
        return int(tally.letters[wanted & flag_mask(0, **_PRIMARY)].sum())

    is_last = flag_mask(PAIRED | SECOND, without=FIRST)
    is_first = flag_mask(0, without=PAIRED) | flag_mask(PAIRED | FIRST, without=SECOND)
    primary, is_mapped = flag_mask(0, **_PRIMARY), flag_mask(0, without=UNMAPPED)
    sequences = count()
    first, last = (int(flags[wanted & primary].sum()) for wanted in (is_first, is_last))
    proper = count(PAIRED | PROPER, UNMAPPED | MATE_UNMAPPED)
    total, total_first, total_last = (letters(wanted) for wanted in (np.full(FLAGS, True), is_first, is_last))
    aligned, differences = tally.scalar("ALIGNED_BASES"), tally.scalar("DIFFERENCES")
    mean, deviation = tally.insert_mean_and_deviation
    apart = tally.scalar("OTHER_CONTIG") + tally.scalar("FAILED_OTHER_CONTIG") - tally.scalar("EMPTY_OTHER_CONTIG")
    marked = flag_mask(DUPLICATE, without=SECONDARY)
    quality = float((tally.qualities.sum((0, 1)) * np.arange(QUALITIES)).sum())
    yield "raw total sequences", sequences
    yield "filtered sequences", 0
    yield "sequences", sequences
    yield "is sorted", 1
    yield "1st fragments", first
    yield "last fragments", last
    yield "reads mapped", count(0, UNMAPPED)
    yield "reads mapped and paired", count(PAIRED, UNMAPPED | MATE_UNMAPPED)
    yield "reads unmapped", count(UNMAPPED)
    yield "reads properly paired", proper
    yield "reads paired", count(PAIRED)
    yield "reads duplicated", int(flags[marked].sum())
    yield "reads MQ0", tally.scalar("MAPQ_ZERO")
    yield "reads QC failed", count(FAILED)
    yield "non-primary alignments", tally.count(flag_mask(SECONDARY))
    yield "supplementary alignments", tally.count(flag_mask(SUPPLEMENTARY, without=SECONDARY))
    yield "total length", total
    yield "total first fragment length", total_first
    yield "total last fragment length", total_last
    yield "bases mapped", letters(is_mapped)
    yield "bases mapped (cigar)", aligned
    yield "bases trimmed", 0
    yield "bases duplicated", int(tally.letters[marked].sum())
    yield "mismatches", differences
    yield "error rate", f"{share(differences, aligned):e}"
    yield "average length", f"{share(total, sequences):.0f}"
    yield "average first fragment length", f"{share(total_first, first):.0f}"
    yield "average last fragment length", f"{share(total_last, last):.0f}"
    yield "maximum length", _longest(tally, (0, 1))
    yield "maximum first fragment length", _longest(tally, (0,))
    yield "maximum last fragment length", _longest(tally, (1,))
    yield "average quality", f"{share(quality, total):.1f}"
    yield "insert size average", f"{mean:.1f}"
    yield "insert size standard deviation", f"{deviation:.1f}"
    names = ("inward oriented pairs", "outward oriented pairs", "pairs with other orientation")
    yield from zip(names, tally.pairs_by_insert.sum(1), strict=True)
    yield "pairs on different chromosomes", apart // 2
    yield "percentage of properly paired reads (%)", f"{100 * share(proper, sequences):.1f}"


def _longest(tally: Tally, mates: tuple[int, ...]) -> int:
    """Return the number of cycles of the longest read of these mates."""
    reached = np.flatnonzero(tally.bases[list(mates)].sum((0, 2)))
    return int(reached[-1]) + 1 if len(reached) else 0


def _qualities(tally: Tally) -> Iterator[str]:
    """Yield the lines of FFQ and LFQ: bases by cycle and quality."""
    present = np.flatnonzero(tally.qualities.sum((0, 1)))
    # samtools writes one more column than the highest quality.
    columns = max(int(present[-1]) if len(present) else 0, MIN_QUALITY_COLUMNS) + 2
    padded = np.pad(tally.qualities, [(0, 0), (0, 0), (0, 2)])
    for mate, (name, what) in enumerate((("FFQ", "First"), ("LFQ", "Last"))):
        yield f"# {what} Fragment Qualities. Columns are qualities and rows are cycles; the first column is the cycle."
        for cycle in range(_longest(tally, (mate,))):
            yield "\t".join(map(str, [name, cycle + 1, *padded[mate, cycle, :columns]]))


def _inserts(tally: Tally) -> Iterator[str]:
    """Yield the lines of IS: pairs by insert size and orientation."""
    counted = tally.pairs_by_insert
    for size in np.flatnonzero(counted.sum(0)):
        inward, outward, other = counted[:, size]
        yield f"IS\t{size}\t{inward + outward + other}\t{inward}\t{outward}\t{other}"
