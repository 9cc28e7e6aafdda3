"""Files of alignments that a search writes in a test, and what is in them."""

from pathlib import Path

import pysam

from readmap.cli import main


def search_in(folder: Path, output: str, *options: str) -> int:
    """Map a folder's reads.fq to its ref.fa on the CPU."""
    names = [str(folder / name) for name in ("reads.fq", "ref.fa", output)]
    return main(["search", names[0], "-x", names[1], "-o", names[2], "--device", "cpu", "-q", *options])


def records_of(path: Path, reference: Path | None = None) -> list[str]:
    """The lines of SAM, with the tags of each in order: CRAM does not keep theirs."""
    with pysam.AlignmentFile(str(path), reference_filename=reference and str(reference)) as file:
        fields = [record.to_string().split("\t") for record in file.fetch(until_eof=True)]
    return ["\t".join([*line[:11], *sorted(line[11:])]) for line in fields]


def header_of(path: Path) -> list[str]:
    """The lines of the header."""
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        return str(file.header).splitlines()


def names_in(folder: Path) -> list[str]:
    """What lies in a folder, in order."""
    return sorted(path.name for path in folder.iterdir())


def bytes_of_records(path: Path) -> list[bytes]:
    """Each record as BAM holds it."""
    with pysam.BGZFile(str(path)) as file:  # type: ignore[attr-defined]
        data = file.read()
    at = 12 + int.from_bytes(data[4:8], "little")
    for _ in range(int.from_bytes(data[at - 4 : at], "little")):
        at += 8 + int.from_bytes(data[at : at + 4], "little")
    found = []
    while at < len(data):
        size = 4 + int.from_bytes(data[at : at + 4], "little")
        found.append(data[at : at + size])
        at += size
    return found
