"""Check the invariants of SAM records: letters, qualities, NM, MD, AS, SA and XA."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pysam
from examples import Read

from oracles.alignment import Rescored, clean, parse_cigar, rescore, reverse_complement
from readmap.mapping.parameters import Scoring


def shown_name(name: str) -> str:
    """Return the name up to the first blank, without /1 and /2."""
    name = re.split("[ \t]", name)[0]
    if len(name) > 2 and name.endswith(("/1", "/2")):
        name = name[:-2]
    return name


def fields_of(line: str) -> tuple[list[str], dict[str, str]]:
    """Return the eleven fields of a line, and its tags by name."""
    fields = line.rstrip("\n").split("\t")
    return fields[:11], {field[:2]: field[5:] for field in fields[11:]}


def by_read(lines: Sequence[str]) -> list[list[str]]:
    """Group lines by read: each read starts with its primary record."""
    reads: list[list[str]] = []
    for line in lines:
        # A supplementary record may be flagged as secondary.
        if not int(line.split("\t")[1]) & 2304:
            reads.append([])
        reads[-1].append(line)
    return reads


def check_read(
    lines: Sequence[str], read: Read, contigs: Mapping[str, str], scoring: Scoring, soft_clipped: bool = False
) -> None:
    """Assert that NM, MD, AS and XA's NM follow from the CIGARs, and SEQ and QUAL from the read and its hard clips.

    The parts of a split read must list each other in SA. contigs: letters by name.
    """
    rows = [fields_of(line) for line in lines]
    parts = [(row, tags) for row, tags in rows if not int(row[1]) & 256 or "SA" in tags]
    entries = [
        f"{row[2]},{row[3]},{'-' if int(row[1]) & 16 else '+'},{row[5].replace('H', 'S')},{row[4]},{tags.get('NM')};"
        for row, tags in parts
    ]
    for number, (_, tags) in enumerate(parts):
        assert tags.get("SA", "") == "".join(entries[:number] + entries[number + 1 :])

    def amount(contig: str, start: str, reverse: bool, cigar: str) -> Rescored:
        letters = reverse_complement(read.bases) if reverse else clean(read.bases)
        found = rescore(parse_cigar(cigar), letters, contigs[contig], int(start) - 1, scoring)
        assert found.query_length == len(letters)
        return found

    for row, tags in rows:
        flag, letters, marks = int(row[1]), clean(read.bases), read.quality or ""
        if flag & 16:
            letters, marks = reverse_complement(letters), marks[::-1]
        assert row[0] == shown_name(read.name)
        if flag & 4:
            assert row[9:11] == [letters or "*", marks or "*"]
            continue
        cut_off = flag & 2304 and not soft_clipped
        assert ("S" if cut_off else "H") not in row[5]
        cigar = row[5].replace("H", "S")
        found = amount(row[2], row[3], bool(flag & 16), cigar)
        assert (tags["NM"], tags["MD"], tags["AS"]) == (str(found.edit_distance), found.differences, str(found.score))
        operations = parse_cigar(cigar)
        left, right = (length if cut_off and o == "S" else 0 for length, o in (operations[0], operations[-1]))
        kept = slice(left, len(letters) - right)
        assert row[9:11] == ([letters[kept], marks[kept] or "*"] if (row, tags) in parts else ["*", "*"])
        for contig, sign, start, cigar, edits in re.findall(r"([^;]+),([+-])(\d+),([^,]+),(\d+);", tags.get("XA", "")):
            assert amount(contig, start, sign == "-", cigar).edit_distance == int(edits)


def write_bgzf(path: Path, data: bytes) -> None:
    with pysam.BGZFile(str(path), "wb") as file:
        file.write(data)


def check_same_records(text: Path, binary: Path) -> list[Any]:
    """Assert that SAM and BAM have equal records, and BAM the bins and tag types of htslib; return the records."""
    with pysam.AlignmentFile(str(text)) as sam, pysam.AlignmentFile(str(binary)) as bam:
        assert sam.header.to_dict() == bam.header.to_dict()
        records = list(zip(sam, bam, strict=True))
    for expected, found in records:
        assert found.to_string() == expected.to_string()
        assert found.bin == expected.bin
        assert found.get_tags(with_value_type=True) == expected.get_tags(with_value_type=True)
    return [record for record, _ in records]
