"""Helpers to write alignment files by a search and to read them, and to limit the size of files."""

import contextlib
import resource
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pysam
from examples import Read, fasta, fastq

from readmap.cli import main


def write_inputs(folder: Path, genome: Mapping[str, str], reads: Sequence[Read]) -> Path:
    """Write ref.fa with its index, and reads.fq, to a folder; return the folder."""
    (folder / "ref.fa").write_bytes(fasta(genome))
    (folder / "reads.fq").write_bytes(fastq(reads))
    assert main(["index", str(folder / "ref.fa"), "-q"]) == 0
    return folder


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Limit the size of files, for this process and its children."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def search_in(folder: Path, output: str, *options: str) -> int:
    """Map reads.fq of a folder to its ref.fa on the CPU; return the exit code."""
    names = [str(folder / name) for name in ("reads.fq", "ref.fa", output)]
    return main(["search", names[0], "-x", names[1], "-o", names[2], "--device", "cpu", "-q", *options])


def records_of(path: Path, reference: Path | None = None) -> list[str]:
    """Return the records as SAM lines with sorted tags, because CRAM does not keep the order of tags."""
    with pysam.AlignmentFile(str(path), reference_filename=reference and str(reference)) as file:
        fields = [record.to_string().split("\t") for record in file.fetch(until_eof=True)]
    return ["\t".join([*line[:11], *sorted(line[11:])]) for line in fields]


def header_of(path: Path) -> list[str]:
    """Return the header lines."""
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        return str(file.header).splitlines()


def names_in(folder: Path) -> list[str]:
    """Return the sorted file names of a folder."""
    return sorted(path.name for path in folder.iterdir())


def bytes_of_records(path: Path) -> list[bytes]:
    """Return the bytes of each BAM record."""
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
