"""The options of readmap search that say what is written and where to, and the output that they ask for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from readmap.cli.options import FLAG, parse_size
from readmap.errors import UsageError
from readmap.formats.bgzf import BgzfOutput
from readmap.formats.output import ByteSink, open_output
from readmap.formats.samtools_output import CRAM_ENDING, Letters, open_samtools_output
from readmap.index.reference import Reference

PANEL = "Output"

BAM_ENDING = ".bam"

#: Endings of names of compressed outputs, BAM among them.
COMPRESSED = (BAM_ENDING, ".gz", ".bgz")

#: For sorting, as text that is an option's value.
SORT_MEMORY = "2G"

#: Letters of the reference that are unpacked at a time.
PIECE_LETTERS = 1 << 24


def _option(*names: str, what: str, metavar: str = FLAG) -> Any:
    return typer.Option(*names, metavar=metavar, help=what, show_default=False, rich_help_panel=PANEL)


OutputName = Annotated[
    str | None,
    _option(
        "-o",
        "--output",
        what="The output file (default: standard output): BAM by the ending .bam, CRAM by .cram, else SAM; "
        ".gz compresses with bgzip.",
        metavar="FILE",
    ),
]
UnmappedName = Annotated[
    str | None,
    _option(
        "--unmapped",
        what="A file for the reads without a place, as FASTQ; of pairs for those of which neither mate has one.",
        metavar="FILE",
    ),
]
Sort = Annotated[bool, _option("--sort", what="Sort BAM or CRAM by coordinate, and write its index beside it.")]
SortMemory = Annotated[
    str | None,
    _option(
        "--sort-memory",
        what="Memory to sort in, as 8G or 500M (default: 2G); more goes to $TMPDIR, else beside the output.",
        metavar="SIZE",
    ),
]
ReadGroupLine = Annotated[
    str | None,
    _option("-R", "--read-group", what=r"The read group of all reads, as '@RG\tID:a\tSM:b'.", metavar="LINE"),
]
HeaderLines = Annotated[
    list[str] | None,
    _option(
        "-H",
        "--header",
        what=r"A line to add to the header, as '@CO\ttext', or a file of lines; @HD, and @SQ of the same contigs, "
        "replace readmap's. May be repeated.",
        metavar="LINE",
    ),
]


def memory_to_sort(sort: bool, size: str | None, output: str | None, exact: bool) -> int | None:
    """The bytes to sort in, or None where nothing is sorted; raises UsageError where that is asked for in vain."""
    if not sort:
        if size is not None:
            raise UsageError("--sort-memory: only with --sort")
        return None
    if exact:
        raise UsageError("--sort: not with --exact; write BAM (-o out.bam) and sort that with samtools sort")
    if not output or not output.endswith((BAM_ENDING, CRAM_ENDING)):
        raise UsageError("--sort: name the output -o out.bam or -o out.cram; SAM is not sorted")
    return parse_size("--sort-memory", size or SORT_MEMORY)


def check_unmapped(path: str | None) -> None:
    """Raise UsageError where the name of --unmapped promises what is not written."""
    if path is not None and path.endswith((BAM_ENDING, CRAM_ENDING, ".sam")):
        raise UsageError(f"--unmapped {path}: FASTQ is written: name it so, as unmapped.fq.gz")


@contextlib.contextmanager
def open_outputs(
    output: str | None, unmapped: str | None, reference: Reference, threads: int, memory: int | None
) -> Iterator[list[ByteSink]]:
    """The output as `open_sink` gives it and, where it is named, that of the reads without a place.

    What has not been committed in the end is aborted.
    """
    with contextlib.ExitStack() as stack:
        outputs = [stack.enter_context(open_sink(output, reference, threads, memory))]
        if unmapped is not None:
            outputs.append(stack.enter_context(open_plain(unmapped, threads)))
        yield outputs


def open_sink(output: str | None, reference: Reference, threads: int, memory: int | None) -> ByteSink:
    """The output, made CRAM, sorted or compressed on its way where its name or the options say so.

    memory: bytes to sort in; None keeps the order.
    """
    if output and (output.endswith(CRAM_ENDING) or memory is not None):
        return open_samtools_output(output, reference.contigs, _letters(reference), threads, memory)
    return open_plain(output, threads)


def open_plain(path: str | None, threads: int) -> ByteSink:
    """The output as it is written, or compressed where its name says so."""
    plain = open_output(path)
    return BgzfOutput(plain, threads) if path and path.endswith(COMPRESSED) else plain


def _letters(reference: Reference) -> Iterator[Letters]:
    """Those of each contig."""
    for number in range(len(reference.contigs)):
        begin, end = int(reference.contig_starts[number]), int(reference.contig_starts[number + 1]) - 1
        yield (reference.letters(at, min(at + PIECE_LETTERS, end)) for at in range(begin, end, PIECE_LETTERS))
