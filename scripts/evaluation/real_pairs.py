"""Real pairs through the next steps of a pipeline: picard, samtools fixmate and markdup, variants by bcftools.

Picard's reports are stored in the work folder as <set>.<mapper>.picard, and variants called from one alignment only as
<set>.<mapper>.differences.tsv.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pysam

from evaluation.figures import Result, Row, figure, skipped
from evaluation.records import Key, agreement, primaries
from evaluation.work_directory import WorkDirectory, missing

REAL = {
    "na12878_pairs": ("human", "{shared}/data/human/na12878_chr20_{mate}.fq.gz"),
    "ecoli_pairs": ("mg1655", "{shared}/data/ecoli/reads_{mate}.fq.gz"),
}
READ_GROUP = ["-R", r"@RG\tID:x\tSM:x\tLB:x\tPL:ILLUMINA"]
PICARD = "PicardCommandLine"  # Debian's picard-tools
MATE_FIELDS = ("FLAG", "RNEXT", "PNEXT", "TLEN", "MC", "MQ")
EXPLAINED_QUALITY, NEARBY = 30, 50
Variant = tuple[str, int, str, str]  # contig, position from 1, reference, alternative
Columns = tuple[str, ...]


def count_primaries(path: Path) -> list[int]:
    """Return the number of reads, of mapped reads, and of reads in proper pairs."""
    counts = [0, 0, 0]
    for _, record in primaries(path):
        for i, one in enumerate((True, record.is_mapped, record.is_proper_pair)):
            counts[i] += one
    return counts


def complaints(work: WorkDirectory, bams: dict[str, Path], ref: Path) -> list[Row]:
    """Return a row for each kind of error or warning of picard's ValidateSamFile."""
    if reason := missing(PICARD):
        return [skipped("picard ValidateSamFile", reason)]
    work.make(f"{ref.stem}.dict", "samtools dict {ref} -o {part}", ref=ref)
    validate = f"{PICARD} ValidateSamFile --INPUT {{bam}} --REFERENCE_SEQUENCE {{ref}} --OUTPUT {{part}}"
    validate += " --MODE VERBOSE --MAX_OUTPUT 1000000000"
    kinds = []
    for name, bam in bams.items():
        codes = range(4)  # 1 to 3: warnings, errors, or both
        report = work.make(f"{bam.stem}.picard", validate, name == "bwa", codes, bam=bam, ref=ref)
        kinds.append(Counter(re.findall(r"^(?:ERROR|WARNING):+\s*\w+", report.read_text(), re.MULTILINE)))
    totals = [kind.total() for kind in kinds]
    rows = [figure("complaints of picard ValidateSamFile", totals, 0, "<=")]
    for kind in sorted(kinds[0] | kinds[1]):
        rows.append(figure(f"    {kind}", [one[kind] for one in kinds]))
    return rows


def mate_fields(path: Path) -> dict[Key, Columns]:
    """Return the mate fields of each primary record.

    MC:Z:* counts as missing: fixmate writes it for an unmapped mate, for which picard reports any MC as an error.
    """

    def tag(record: pysam.AlignedSegment, name: str) -> str:
        return str(record.get_tag(name)) if record.has_tag(name) else "*"

    fields = dict[Key, Columns]()
    for read, one in primaries(path):
        mate = str(one.flag), str(one.next_reference_name), str(one.next_reference_start), str(one.template_length)
        fields[read] = *mate, tag(one, "MC"), tag(one, "MQ")
    return fields


def fix_mates(work: WorkDirectory, bams: dict[str, Path]) -> list[Row]:
    """Return rows of the primary records that samtools fixmate changes, field by field."""
    changed = []
    for name, bam in bams.items():
        keep = name == "bwa"
        named = work.make(f"{bam.stem}.named.bam", "samtools sort -n -o {part} {bam}", keep, bam=bam)
        fixed = work.make(f"{bam.stem}.fixed.bam", "samtools fixmate -m {bam} {part}", keep, bam=named)
        before, after = mate_fields(named), mate_fields(fixed)
        pairs = [(before[read], after[read]) for read in before]
        columns = ((a[i] != b[i] for a, b in pairs) for i in range(len(MATE_FIELDS)))
        changed.append([sum(a != b for a, b in pairs), *map(sum, columns)])
    measures = ["records that fixmate changes", *(f"    {field}" for field in MATE_FIELDS)]
    return [
        figure(measure, counts, 0, "" if i else "<=")
        for i, (measure, *counts) in enumerate(zip(measures, *changed, strict=True))
    ]


def mark_duplicates(work: WorkDirectory, bams: dict[str, Path]) -> list[Row]:
    """Return rows: whether samtools markdup accepts the sorted file, and the records it marks."""
    runs, marked = [], []
    for name, bam in bams.items():
        target, keep = f"{bam.stem}.marked.bam", name == "bwa"
        runs.append(int(work.attempt(target, "samtools markdup {bam} {part}", keep, bam=bam)))
        records = primaries(work.folder / target) if runs[-1] else []
        marked.append(sum(record.is_duplicate for _, record in records))
    return [figure("markdup runs", runs, 0, ">=", 1), figure("    duplicates", marked)]


def call(work: WorkDirectory, bam: Path, ref: Path, keep: bool) -> dict[Variant, pysam.VariantRecord]:
    stem = bam.stem
    pile = work.make(f"{stem}.pile.bcf", "bcftools mpileup -f {ref} -Ou -o {part} {bam}", keep, bam=bam, ref=ref)
    raw = work.make(f"{stem}.raw.bcf", "bcftools call -mv -Ob -o {part} {pile}", keep, pile=pile)
    split = "bcftools norm -m -any -f {ref} -Ov -o {part} {raw}"
    called = work.make(f"{stem}.vcf", split, keep, raw=raw, ref=ref)
    with pysam.VariantFile(str(called)) as file:
        return {(one.chrom, one.pos, str(one.ref), str((one.alts or ["."])[0])): one for one in file}


def evidence(bam: pysam.AlignmentFile, contig: str, position: int) -> Columns:
    """Return depth, mean MAPQ, records of MAPQ 0 and clipped records at a position."""
    records = [one for one in bam.fetch(contig, position - 1, position) if not one.flag & 0x704]
    mean = sum(one.mapping_quality for one in records) / len(records) if records else 0
    clipped = sum("S" in str(one.cigarstring) or "H" in str(one.cigarstring) for one in records)
    return str(len(records)), f"{mean:.1f}", str(sum(one.mapping_quality == 0 for one in records)), str(clipped)


def list_differences(
    path: Path, calls: dict[str, dict[Variant, pysam.VariantRecord]], bams: dict[str, Path]
) -> list[int]:
    """Write the variants that only one call set has above the quality limit, with evidence; return their counts."""
    head = ["only", "contig", "position", "ref", "alt", "qual", "dp", "mq", "other's calls nearby"]
    lines = [head + [f"{name}: {what}" for name in bams for what in ("depth", "mean MAPQ", "MAPQ 0", "clipped")]]
    files = [pysam.AlignmentFile(str(bam)) for bam in bams.values()]
    for name, other in (tuple(calls), tuple(calls)[::-1]):
        for variant in sorted(calls[name].keys() - calls[other].keys()):
            record, (contig, position, *_) = calls[name][variant], variant
            if (record.qual or 0) <= EXPLAINED_QUALITY:
                continue
            near = [v for v in calls[other] if v[0] == contig and abs(v[1] - position) <= NEARBY]
            nearby = ", ".join(f"{v[1]}{v[2]}>{v[3]} ({calls[other][v].qual or 0:.0f})" for v in near) or "-"
            columns = [f"{record.qual:.1f}", *(str(record.info.get(x)) for x in ("DP", "MQ")), nearby]
            lines.append(
                [name, *map(str, variant), *columns, *(x for f in files for x in evidence(f, contig, position))]
            )
    path.write_text("".join("\t".join(line) + "\n" for line in lines))
    return [sum(line[0] == name for line in lines[1:]) for name in calls]


def compare_variants(work: WorkDirectory, stem: str, bams: dict[str, Path], ref: Path) -> list[Row]:
    if reason := missing("bcftools"):
        return [skipped("variants", reason)]
    calls = {name: call(work, bam, ref, name == "bwa") for name, bam in bams.items()}
    bwa, mapper = (one.keys() for one in calls.values())
    listed = list_differences(work.folder / f"{stem}.{work.mapper}.differences.tsv", calls, bams)
    return [
        figure("variants", (len(bwa), len(mapper))),
        figure("    called from both", (len(bwa & mapper),) * 2),
        figure("    called from one only", (len(bwa - mapper), len(mapper - bwa))),
        figure(f"    of them with QUAL > {EXPLAINED_QUALITY}, listed", listed),
    ]


def real(work: WorkDirectory, name: str) -> Result:
    if reason := missing("samtools"):
        return {"figures": [skipped("real pairs", reason)]}
    if "{options}" not in work.search:
        return {"figures": [skipped("real pairs", "the mapper's command has no {options} for the read group")]}
    reference, files = REAL[name]
    ref, gunzip = work.reference(reference), f"gzip -dc {files}"
    reads = [work.make(f"{name}.{mate}.fq", gunzip, mate=mate) for mate in (1, 2)]
    sams = work.align(reference, name, reads, READ_GROUP)
    work.make(f"{reference}.fa.faidx", "samtools faidx {ref}", ref=ref)
    bams = {}
    for mapper, sam in sams.items():
        sort = "samtools sort --write-index -o {part}##idx##{index} {sam}"
        index = work.folder / f"{sam.stem}.bam.csi"
        bams[mapper] = work.make(f"{sam.stem}.bam", sort, mapper == "bwa", sam=sam, index=index)
    total, mapped, proper = zip(*map(count_primaries, sams.values()), strict=True)
    same, sure = agreement(*map(primaries, sams.values()))
    figures = [figure("reads", total, 0, ">=", total[0]), figure("mapped", mapped, total[0], ">=", mapped[0])]
    figures.append(figure("in proper pairs", proper, total[0]))
    figures.append(figure("same place as bwa's MAPQ >= 30", (None, same), sure, ">="))
    figures += complaints(work, bams, ref) + fix_mates(work, bams) + mark_duplicates(work, bams)
    return {"figures": figures + compare_variants(work, name, bams, ref)}
