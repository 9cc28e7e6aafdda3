"""The Python API: sequences in, arrays out, or one hit or one segment of pysam's at a time."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pysam

from readmap.backend import Array, open_backend
from readmap.errors import UsageError
from readmap.index import folder
from readmap.index.building import build_index
from readmap.index.device import DeviceIndex
from readmap.index.folder import find_alternates_file, read_alternates
from readmap.index.index import Index
from readmap.mapping.alignments import Alignments, HitTable, gather_hits
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.parameters import Pairing, Reporting, Scoring
from readmap.mapping.pipeline import align_reads, search_again, search_reads
from readmap.mapping.records import Style, format_records
from readmap.reads.chunks import PairLayout
from readmap.reads.parsing import Reads, Texts, read_names, reads_from_pairs, reads_from_sequences
from readmap.run.file_batches import file_batches
from readmap.run.hits import Hits, Pairs
from readmap.run.sample import estimate_sample, observe
from readmap.run.segments import header_of, parse_records


@dataclass(frozen=True)
class _Searched:
    """`count` reads or pairs that were searched, or the empty ones that stand for none, and what they show of all."""

    batch: Batch
    context: Context
    count: int


class Aligner:
    """An index on a device, ready to map. As a context manager it frees the device's memory in the end.

    Attributes:
        scoring, pairing, reporting: how alignments score, how mates are placed and what segments report; as the options
            of `readmap search` have them, and with its defaults.
        backend: the device.
    """

    def __init__(
        self,
        index: Index | str | Path,
        device: str = "auto",
        threads: int | None = None,
        scoring: Scoring | None = None,
        pairing: Pairing | None = None,
        reporting: Reporting | None = None,
    ) -> None:
        """index: or the path of one, or of a FASTA file, whose index is the folder beside it or, where there is none,
        built in memory; nothing is written. device: auto, cpu, cuda or cuda:N.

        Raises BackendError where the device cannot be used, and what Index.open and build_index raise.
        """
        self.backend = open_backend(device, threads)
        self.scoring = scoring or Scoring()
        self.pairing = pairing or Pairing()
        self.reporting = reporting or Reporting()
        self._host = index if isinstance(index, Index) else _opened(Path(index), device, threads)
        held = self._host.to_device(self.backend)
        self._open: Context | None = Context(held, self.backend, self.scoring, self.pairing, self.reporting)

    def close(self) -> None:
        """Free the device's memory; the aligner maps no more."""
        self._open = None
        self.backend.release_memory()

    def __enter__(self) -> Aligner:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Aligner on {self.backend.name}{'' if self._open else ', closed'}: {self._host!r}>"

    @property
    def index(self) -> DeviceIndex:
        """The index on the device."""
        return self._context.index

    @property
    def _context(self) -> Context:
        if self._open is None:
            raise UsageError("the aligner is closed")
        return self._open

    @functools.cached_property
    def header(self) -> pysam.AlignmentHeader:
        """The header of a file of the segments."""
        return header_of(self._host.reference.contigs)

    def map(self, sequences: Texts, qualities: Texts | None = None, *, on_device: bool = False) -> Hits:
        """Map a DNA sequence or several, of 0 to 10,000 bases each, with their Phred+33 qualities if there are any.

        With qualities they show together how often their sample differs from the reference, which MAPQ goes by.
        on_device: leave the arrays in a GPU's memory.

        Raises DataError naming the sequence, from 1, where one holds what is no nucleotide, or where its qualities are
        missing or of another length.
        """
        reads, count = reads_from_sequences(sequences, qualities, self.backend)
        searched = self._search(reads, count, qualities is not None)
        return self._hits(*self._primary(searched), searched.count, on_device=on_device)

    def map_pairs(
        self,
        first: Texts,
        second: Texts,
        first_qualities: Texts | None = None,
        second_qualities: Texts | None = None,
        insert_size: tuple[float, ...] | None = None,
    ) -> Pairs:
        """Map pairs, first[i] with its mate second[i], both as they were sequenced.

        insert_size: mean and standard deviation, in bases from one mate's 5' end to the other's, of mates that face
            each other; without it, and without that of `pairing`, the pairs themselves show it, where at least ten
            do. Otherwise mates are placed without regard to each other.

        Raises DataError as `map` does, and where a mate or the qualities of one are missing; UsageError where the
        insert size is none.
        """
        searched = self._search_pairs(first, second, first_qualities, second_qualities, insert_size, None)
        return self._pairs(*self._primary(searched), searched.context, searched.count)

    def map_file(self, path: str | Path, *, batch_reads: int | None = None) -> Iterator[Hits]:
        """Map the reads of a FASTQ or FASTA file, plain, gzip or bgzip, `-` for standard input, a batch at a time.

        What is expected of the sample is what the first reads show, as in `readmap search`, whose primary records say
        the same. batch_reads: the most reads of a batch; default, by their bytes.

        Raises DataError, naming file and record, and OSError, behind the batches of all that was good.
        """
        first = 0
        for batch, context in file_batches([str(path)], PairLayout.SINGLE, self._context, batch_reads):
            hits = self._hits(*self._aligned(batch, context), batch.reads.count, first=first, named=True)
            first += len(hits)
            yield hits

    def map_pairs_file(
        self,
        first: str | Path,
        second: str | Path | None = None,
        *,
        insert_size: tuple[float, ...] | None = None,
        batch_reads: int | None = None,
    ) -> Iterator[Pairs]:
        """The same of pairs in two files, or in one in which mates alternate.

        insert_size: as map_pairs has it; without it the first pairs show it.
        """
        paths = [str(first)] if second is None else [str(first), str(second)]
        layout, done = PairLayout.INTERLEAVED if second is None else PairLayout.TWO_FILES, 0
        pairing = replace(self.pairing, insert_size=insert_size or self.pairing.insert_size)
        for batch, context in file_batches(paths, layout, replace(self._context, pairing=pairing), batch_reads):
            part, alignments = self._aligned(batch, context)
            pairs = self._pairs(part, alignments, context, batch.reads.count // 2, first=done, named=True)
            done += len(pairs)
            yield pairs

    def segments(
        self, sequences: Texts, qualities: Texts | None = None, names: Texts | None = None
    ) -> list[pysam.AlignedSegment]:
        """The records that `readmap search` writes of sequences, in its order: of each the primary one, mapped or not,
        then those of its other parts and places.

        names: each up to its first blank, without /1 and /2; without names they are *.
        Raises DataError as `map` does, and where names are missing.
        """
        reads, count = reads_from_sequences(sequences, qualities, self.backend, names)
        return self._segments(self._search(reads, count, qualities is not None))

    def pair_segments(
        self,
        first: Texts,
        second: Texts,
        first_qualities: Texts | None = None,
        second_qualities: Texts | None = None,
        insert_size: tuple[float, ...] | None = None,
        names: Texts | None = None,
    ) -> list[pysam.AlignedSegment]:
        """The same of pairs, the records of a first mate before those of its second one; names: one a pair.

        Raises DataError as `map_pairs` does, and where names are missing.
        """
        return self._segments(self._search_pairs(first, second, first_qualities, second_qualities, insert_size, names))

    def _search_pairs(
        self,
        first: Texts,
        second: Texts,
        first_qualities: Texts | None,
        second_qualities: Texts | None,
        insert_size: tuple[float, ...] | None,
        names: Texts | None,
    ) -> _Searched:
        reads, count = reads_from_pairs(first, second, first_qualities, second_qualities, self.backend, names)
        return self._search(reads, count, True, insert_size or self.pairing.insert_size)

    def _search(self, reads: Reads, count: int, tell: bool, insert_size: tuple[float, ...] | None = None) -> _Searched:
        """tell: whether the reads tell of their sample, as single ones without qualities do not."""
        batch = search_reads(reads, self._context)
        if not tell:
            return _Searched(batch, self._context, count)
        sample = estimate_sample([observe(batch, self._context)], insert_size)
        context = replace(self._context, sample=sample)
        return _Searched(search_again(batch, context), context, count)

    def _primary(self, searched: _Searched) -> tuple[Batch, Alignments]:
        return self._aligned(searched.batch, searched.context)

    def _aligned(self, batch: Batch, context: Context) -> tuple[Batch, Alignments]:
        """The alignments without secondary ones, of which hits report nothing."""
        reporting = replace(self.reporting, max_secondary=0)
        ((part, alignments),) = align_reads(batch, replace(context, reporting=reporting))
        return part, alignments

    def _segments(self, searched: _Searched) -> list[pysam.AlignedSegment]:
        segments: list[pysam.AlignedSegment] = []
        for part, alignments in align_reads(searched.batch, searched.context) if searched.count else ():
            records = format_records(alignments, part, Style(), searched.context)
            segments += parse_records(records.bytes, self.header, self.backend)
        return segments

    def _hits(
        self,
        batch: Batch,
        alignments: Alignments,
        count: int,
        *,
        first: int = 0,
        named: bool = False,
        on_device: bool = False,
    ) -> Hits:
        """The primary alignments of a batch's records."""
        found = gather_hits(alignments, count, 0, 1, batch, self._context)
        names = read_names(batch.reads, self.backend) if named else None
        operations = alignments.extensions.operations
        if on_device:
            return self._gathered(found.arrays(), operations, names, first)
        return self._gathered(self._on_host(found), self.backend.to_host(operations), names, first)

    def _pairs(
        self, batch: Batch, alignments: Alignments, context: Context, count: int, *, first: int = 0, named: bool = False
    ) -> Pairs:
        found = [self._on_host(gather_hits(alignments, count, mate, 2, batch, context)) for mate in range(2)]
        operations = self.backend.to_host(alignments.extensions.operations)
        names = read_names(batch.reads, self.backend)[::2] if named else None
        mates = [self._gathered(one, operations, names, first) for one in found]
        lengths = _template_lengths(mates[0], mates[1])
        return Pairs(mates[0], mates[1], found[0]["proper"] > 0, lengths, context.sample.insert_sizes)

    def _on_host(self, found: HitTable) -> dict[str, Array]:
        return {name: self.backend.to_host(array) for name, array in found.arrays().items()}

    def _gathered(self, found: dict[str, Array], operations: Array, names: Sequence[str] | None, first: int) -> Hits:
        arrays = {name: array for name, array in found.items() if name != "proper"}
        contigs = self._host.reference.contigs
        return Hits(**arrays, cigar_operations=operations, names=contigs, first=first, read_names=names)


def _opened(path: Path, device: str, threads: int | None) -> Index:
    """The index in a folder, or beside a FASTA file; else built of that file."""
    beside = folder.default_folder(str(path))
    for place in (path, beside):
        if folder.KIND.exists(place):
            return Index.open(place)
    index, alternates = build_index(path, device=device, threads=threads), find_alternates_file(beside, str(path))
    return index.with_alternates(read_alternates(alternates)) if alternates else index


def _template_lengths(first: Hits, second: Hits) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """From the first mate's 5' end to the second's; 0 where they are not on one contig."""
    ends = [np.where(hits.strands < 0, hits.ref_ends, hits.ref_starts) for hits in (first, second)]
    together = (first.contigs >= 0) & (first.contigs == second.contigs)
    return np.where(together, ends[1] - ends[0], 0)
