"""The outputs of a search."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from readmap.cli.common.output import open_plain
from readmap.cli.search.options import OutputOptions
from readmap.formats.output import ByteSink
from readmap.formats.samtools_output import CRAM_ENDING, Letters, open_samtools_output
from readmap.index.reference import Reference

#: Letters of the reference that are unpacked at a time.
UNPACKED_LETTERS = 1 << 24


@contextlib.contextmanager
def open_outputs(options: OutputOptions, reference: Reference, threads: int) -> Iterator[dict[str, ByteSink]]:
    """The outputs by their names in the record: that of the records, and that of --unmapped where it is given.

    What has not been committed in the end is aborted.
    """
    with contextlib.ExitStack() as stack:
        outputs = {"output": stack.enter_context(open_sink(options.path, reference, threads, options.bytes_to_sort))}
        if options.unmapped is not None:
            outputs["unmapped"] = stack.enter_context(open_plain(options.unmapped, threads))
        yield outputs


def open_sink(path: str | None, reference: Reference, threads: int, memory: int | None) -> ByteSink:
    """The output, made CRAM, sorted or compressed on its way where its name or the options say so.

    memory: bytes to sort in; None keeps the order.
    """
    if path and (path.endswith(CRAM_ENDING) or memory is not None):
        return open_samtools_output(path, reference.contigs, _letters(reference), threads, memory)
    return open_plain(path, threads)


def _letters(reference: Reference) -> Iterator[Letters]:
    """The letters of each contig."""
    for number in range(len(reference.contigs)):
        begin, end = int(reference.contig_starts[number]), int(reference.contig_starts[number + 1]) - 1
        yield (reference.letters(at, min(at + UNPACKED_LETTERS, end)) for at in range(begin, end, UNPACKED_LETTERS))
