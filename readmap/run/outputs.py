"""The outputs of a search."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence

from readmap.backend import Backend
from readmap.backend.cpu import CpuBackend
from readmap.bam.codecs import choose_codec
from readmap.bam.device_sorted_runs import DeviceRuns
from readmap.bam.file_index import LONGEST_BAI, IndexFormat, format_for
from readmap.bam.marking import Marker
from readmap.bam.order import SortOrder
from readmap.bam.sorted_output import BamIndex, Observer, SortedOutput, scratch_folder
from readmap.bam.compression import Compression, open_blocks, open_plain
from readmap.cli.common.report import STANDARD_OUTPUT
from readmap.run.output_format import BINARY, Kind
from readmap.cli.search.options import Options, OutputOptions
from readmap.duplicates.shards import FRAGMENTS_SUFFIX
from readmap.errors import UsageError
from readmap.formats.bgzf import Codec
from readmap.formats.fasta import Contig
from readmap.formats.output import ByteSink, open_output
from readmap.formats.samtools_output import Letters, open_samtools_output
from readmap.formats.wording import format_bytes, printable
from readmap.index.reference import Reference
from readmap.run.chunk_plan import plan_chunks

#: Bytes of FASTQ in a byte of a compressed file, of records in a byte of FASTQ, as real reads of 100 to 150 bases have
#: them at most; and the endings of FASTQ that is not compressed.
COMPRESSED_SHARE, BAM_SHARE = 3.0, 1.15
PLAIN = (".fq", ".fastq", ".fa", ".fasta")

#: Letters of the reference that are unpacked at a time.
UNPACKED_LETTERS = 1 << 24


def compression_of(options: OutputOptions, backends: Sequence[Backend]) -> Compression:
    """How outputs are compressed: on the devices where nvCOMP is there, unless a user wants it otherwise."""

    def open_codec() -> Codec:
        return choose_codec(options.codec, compression.level, backends)

    compression = Compression(open_codec, options.level)
    return compression


@contextlib.contextmanager
def open_outputs(
    options: Options,
    reference: Reference,
    backend: Backend,
    compression: Compression,
    marker: Marker | None = None,
    observers: Sequence[Observer] = (),
) -> Iterator[dict[str, ByteSink]]:
    """The outputs by their names in the record: that of the records, then those of --unmapped, --for-merge
    and --metrics, if given.

    marker: knows which records of the first are duplicates. observers: hear of them.

    What has not been committed in the end is aborted.
    """
    output = options.output
    with contextlib.ExitStack() as stack:
        to_sort = output.bytes_to_sort, output.form, compression, output.order, marker, observers
        on_device = output.given_bytes_to_sort
        sink = open_sink(output.path, output.kind, reference, backend, *to_sort, on_device)
        outputs = {"output": stack.enter_context(sink)}
        if output.unmapped is not None:
            outputs["unmapped"] = stack.enter_context(open_plain(output.unmapped, backend.threads, compression))
        if options.duplicates.for_merge:
            outputs["fragments"] = stack.enter_context(open_output(f"{output.path}{FRAGMENTS_SUFFIX}"))
        if options.duplicates.metrics is not None:
            outputs["metrics"] = stack.enter_context(open_output(options.duplicates.metrics))
        yield outputs


def sorting_needs(options: OutputOptions, reads: Sequence[str], backend: Backend) -> str | None:
    """What sorting takes of memory and disk, in words; None where the sizes of the reads are not known."""
    memory, sizes = options.bytes_to_sort, [_letters_of(path) for path in reads]
    if memory is None or options.path is None or not all(sizes):
        return None
    records = BAM_SHARE * sum(size for size in sizes if size)
    told = f"sorting takes up to {format_bytes(min(memory, records))} of memory"
    if _holds_runs(backend, options.order):
        told += f", the first of it on {backend.name}"
    if records <= memory:
        return told
    folder = scratch_folder(options.path)
    free = shutil.disk_usage(folder).free
    told += f", and about {format_bytes(records)} of the disk of {folder}, where {format_bytes(free)} are free"
    return told if records <= free else f"warning: {told}: give more by --sort-memory, or name another disk by TMPDIR"


def _letters_of(path: str) -> float | None:
    """About how many bytes of FASTQ a file is; None where that is not known beforehand."""
    if not os.path.isfile(path):
        return None
    return os.path.getsize(path) * (1.0 if path.endswith(PLAIN) else COMPRESSED_SHARE)


def open_sink(
    path: str | None,
    kind: Kind,
    reference: Reference,
    backend: Backend,
    memory: int | None,
    form: IndexFormat | None = None,
    compression: Compression | None = None,
    order: SortOrder | None = SortOrder.COORDINATE,
    marker: Marker | None = None,
    observers: Sequence[Observer] = (),
    device_memory: int | None = None,
) -> ByteSink:
    """The output of a kind, sorted or compressed on its way where its name or the options say so.

    memory: bytes to sort in; None keeps the order. form: of the index of sorted BAM; None takes what the contigs need.
    order: of what is sorted; that of names has no index, nor has what goes to a stream.
    marker: knows which records are duplicates. observers: hear of those that are sorted. device_memory: bytes of them
    that a device holds at most; None for what it has room for.
    Raises UsageError where a contig is too long for it.
    """
    if kind not in BINARY:
        return open_plain(path, backend.threads, compression)
    threads = backend.threads
    is_indexed = memory is not None and order is SortOrder.COORDINATE and not _is_stream(path)
    index, buffer = None, None
    with contextlib.ExitStack() as opened:
        if kind is Kind.CRAM:
            letters = _letters(reference)
            output: ByteSink = open_samtools_output(path, reference.contigs, letters, threads, is_indexed)
        else:
            made = _index_form(form, reference.contigs) if is_indexed else None
            output = bam = open_blocks(path, threads, compression or Compression())
            buffer = bam.buffer
            if made:
                index = BamIndex([contig.length for contig in reference.contigs], made, bam)
        opened.enter_context(output)
        sink = output
        if memory is not None:
            held = _device_runs(backend, device_memory, len(reference.contigs)) if _holds_runs(backend, order) else None
            sink = SortedOutput(output, memory, index, CpuBackend(threads), buffer, held, marker, observers)
        opened.pop_all()
    return sink


def _is_stream(path: str | None) -> bool:
    """Whether there is no file beside which an index could be."""
    return path in STANDARD_OUTPUT or (path is not None and os.path.exists(path) and not os.path.isfile(path))


def _holds_runs(backend: Backend, order: SortOrder | None) -> bool:
    """Whether records that are sorted stay on the device: on one that has memory of its own."""
    return order is SortOrder.COORDINATE and backend.memory() is not None


def _device_runs(backend: Backend, memory: int | None, contigs: int) -> DeviceRuns:
    """What holds records there; memory: bytes of these at most."""
    return DeviceRuns(backend, contigs, memory, plan_chunks([backend]).working_bytes)


def _index_form(wanted: IndexFormat | None, contigs: Sequence[Contig]) -> IndexFormat:
    """The wanted one, or that which the contigs need; raises UsageError where they need the other one."""
    longest = max(contigs, key=lambda contig: contig.length)
    needed = format_for(longest.length)
    if wanted is IndexFormat.BAI and needed is not wanted:
        bases = f"{printable(longest.name)} has {longest.length:,} bases"
        raise UsageError(f"--index-format bai: {bases}, and BAI reaches {LONGEST_BAI:,}")
    return wanted or needed


def _letters(reference: Reference) -> Iterator[Letters]:
    """The letters of each contig."""
    for number in range(len(reference.contigs)):
        begin, end = int(reference.contig_starts[number]), int(reference.contig_starts[number + 1]) - 1
        yield (reference.letters(at, min(at + UNPACKED_LETTERS, end)) for at in range(begin, end, UNPACKED_LETTERS))
