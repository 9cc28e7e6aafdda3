"""The Aligner: sequences in, arrays of placements or pysam's records out."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pysam

from readmap.backend import Array, open_backend
from readmap.errors import UsageError
from readmap.formats import sam
from readmap.index import folder
from readmap.index.building import build_index
from readmap.index.device import DeviceIndex
from readmap.index.folder import find_alternates_file, read_alternates
from readmap.index.index import Index
from readmap.mapping.alignments import Alignments, HitTable, gather_hits
from readmap.mapping.batch import Batch, Context
from readmap.mapping.parameters import Pairing, Reporting, Scoring
from readmap.mapping.pipeline import align_reads, search_again, search_reads
from readmap.mapping.records import RecordStyle, format_records
from readmap.reads.chunks import PairLayout
from readmap.reads.parsing import Reads, Texts, read_names, reads_from_pairs, reads_from_sequences
from readmap.run.file_batches import file_batches
from readmap.run.hits import Hits, Pairs
from readmap.run.sample import estimate_sample, observe
from readmap.version import __version__


class Aligner:
    """An index on a device, ready to map sequences; as a context manager it frees the device's memory on exit.

    Parameters
    ----------
    index : Index, str or Path
        An index, its folder, or a FASTA file. For a FASTA file the index folder next to it is opened; without one the
        index is built in memory, and nothing is written.
    device : str, default "auto"
        auto, cpu, cuda or cuda:N.
    threads : int, optional
        CPU threads; default, the processors that this process may use.
    scoring, pairing, reporting : Scoring, Pairing, Reporting, optional
        Scores, how mates are placed, and which records segments report; defaults as in `readmap search`.

    Attributes
    ----------
    index : DeviceIndex
        The index on the device.
    header : pysam.AlignmentHeader
        The header for a file of segments.

    Raises
    ------
    BackendError
        If the device cannot be used.
    IndexFolderError, DataError, OSError
        If the index cannot be opened or built.
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
        self.backend = open_backend(device, threads)
        self.scoring = scoring or Scoring()
        self.pairing = pairing or Pairing()
        self.reporting = reporting or Reporting()
        self._host = index if isinstance(index, Index) else _open_or_build(Path(index), device, threads)
        held = self._host.to_device(self.backend)
        self._open: Context | None = Context(held, self.backend, self.scoring, self.pairing, self.reporting)

    def close(self) -> None:
        """Free the device's memory; a closed aligner raises UsageError if it is asked to map."""
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
        return self._context.index

    @property
    def _context(self) -> Context:
        if self._open is None:
            raise UsageError("the aligner is closed")
        return self._open

    @functools.cached_property
    def header(self) -> pysam.AlignmentHeader:
        return pysam.AlignmentHeader.from_text(sam.header(self._host.reference.contigs, __version__, "").decode())

    def map(self, sequences: Texts, qualities: Texts | None = None, *, on_device: bool = False) -> Hits:
        """Map one DNA sequence or several.

        Parameters
        ----------
        sequences : str, bytes or a sequence of them
            0 to 10,000 bases each.
        qualities : str, bytes or a sequence of them, optional
            Phred+33 qualities. With qualities the divergence of the sample, which MAPQ depends on, is estimated from
            all sequences together.
        on_device : bool
            Leave the arrays in the memory of a GPU.

        Returns
        -------
        Hits
            A row for each sequence.

        Raises
        ------
        DataError
            If a sequence contains a letter that is no nucleotide, or its qualities are missing or of another length;
            the message has the number of the sequence, from 1.
        """
        reads, count = reads_from_sequences(sequences, qualities, self.backend)
        batch, context = self._search(reads, qualities is not None)
        return self._hits(*self._align_batch(batch, context), count, on_device=on_device)

    def map_pairs(
        self,
        first: Texts,
        second: Texts,
        first_qualities: Texts | None = None,
        second_qualities: Texts | None = None,
        insert_size: tuple[float, ...] | None = None,
    ) -> Pairs:
        """Map pairs of mates.

        Parameters
        ----------
        first, second : sequence of str or bytes
            first[i] and second[i] are mates, both as they were sequenced.
        first_qualities, second_qualities : sequence of str or bytes, optional
            Phred+33 qualities.
        insert_size : tuple of float, optional
            Mean and standard deviation of the distance between the 5' ends of mates that face each other, in bases. The
            default is in `pairing`, else an estimate from at least ten pairs; without one, mates are placed
            independently.

        Returns
        -------
        Pairs
            A row for each pair.

        Raises
        ------
        DataError, UsageError
            As in `map`; if a mate or its qualities are missing; if the insert size is invalid.
        """
        reads, count = reads_from_pairs(first, second, first_qualities, second_qualities, self.backend, None)
        batch, context = self._search(reads, True, insert_size)
        return self._pairs(*self._align_batch(batch, context), context, count, first_query=0, with_names=False)

    def map_file(self, path: str | Path, *, batch_reads: int | None = None) -> Iterator[Hits]:
        """Map the reads of a file batch by batch, as the primary records of `readmap search` do.

        Parameters
        ----------
        path : str or Path
            FASTQ or FASTA: plain, gzip or bgzip; "-" is standard input.
        batch_reads : int, optional
            Limit of the reads of a batch; default, by their bytes.

        Yields
        ------
        Hits
            The next batch. Numbers of sequences go on from batch to batch.

        Raises
        ------
        DataError, OSError
            After the batches of all reads before an invalid record or an error; the message names file and record.
        """
        first = 0
        for batch, context in file_batches([str(path)], PairLayout.SINGLE, self._context, batch_reads):
            hits = self._hits(*self._align_batch(batch, context), batch.reads.count, first_query=first, with_names=True)
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
        """Map the pairs of two files, or of one file in which mates alternate, batch by batch.

        Parameters
        ----------
        first, second : str or Path
            Files as in `map_file`; without `second`, mates alternate in `first`.
        insert_size : tuple of float, optional
            As in `map_pairs`; default, estimated from the first pairs.
        batch_reads : int, optional
            Limit of the reads of a batch; default, by their bytes.

        Yields
        ------
        Pairs
            The next batch.
        """
        paths = [str(first)] if second is None else [str(first), str(second)]
        layout, done = PairLayout.INTERLEAVED if second is None else PairLayout.TWO_FILES, 0
        pairing = replace(self.pairing, insert_size=insert_size or self.pairing.insert_size)
        for batch, context in file_batches(paths, layout, replace(self._context, pairing=pairing), batch_reads):
            part, alignments = self._align_batch(batch, context)
            pairs = self._pairs(part, alignments, context, batch.reads.count // 2, first_query=done, with_names=True)
            done += len(pairs)
            yield pairs

    def segments(
        self, sequences: Texts, qualities: Texts | None = None, names: Texts | None = None
    ) -> list[pysam.AlignedSegment]:
        """Return the records that `readmap search` writes for sequences.

        Parameters
        ----------
        sequences, qualities
            As in `map`.
        names : sequence of str or bytes, optional
            Names of the sequences, cut at the first blank and without /1 and /2; default "*".

        Returns
        -------
        list of pysam.AlignedSegment
            For each sequence its primary record, mapped or not, then supplementary and secondary ones.

        Raises
        ------
        DataError
            As in `map`, and if names are missing.
        """
        reads, count = reads_from_sequences(sequences, qualities, self.backend, names)
        return self._segments(count, *self._search(reads, qualities is not None))

    def pair_segments(
        self,
        first: Texts,
        second: Texts,
        first_qualities: Texts | None = None,
        second_qualities: Texts | None = None,
        insert_size: tuple[float, ...] | None = None,
        names: Texts | None = None,
    ) -> list[pysam.AlignedSegment]:
        """Return the records that `readmap search` writes for pairs.

        Parameters
        ----------
        first, second, first_qualities, second_qualities, insert_size
            As in `map_pairs`.
        names : sequence of str or bytes, optional
            A name for each pair, as in `segments`.

        Returns
        -------
        list of pysam.AlignedSegment
            For each pair the records of the first mate, then the records of the second mate.
        """
        reads, count = reads_from_pairs(first, second, first_qualities, second_qualities, self.backend, names)
        return self._segments(count, *self._search(reads, True, insert_size))

    def _search(
        self, reads: Reads, estimates: bool, insert_size: tuple[float, ...] | None = None
    ) -> tuple[Batch, Context]:
        """Search reads; return the batch and the context to align it. estimates: first estimate divergence and insert
        sizes from these reads, and search again with them. insert_size: (mean, deviation), or None to estimate it."""
        batch = search_reads(reads, self._context)
        if not estimates:
            return batch, self._context
        sample = estimate_sample([observe(batch, self._context)], insert_size or self.pairing.insert_size)
        context = replace(self._context, sample=sample)
        return search_again(batch, context), context

    def _align_batch(self, batch: Batch, context: Context) -> tuple[Batch, Alignments]:
        """Align a searched batch; return it and its alignments, without secondary ones."""
        reporting = replace(self.reporting, max_secondary=0)
        ((part, alignments),) = align_reads(batch, replace(context, reporting=reporting))
        return part, alignments

    def _segments(self, count: int, batch: Batch, context: Context) -> list[pysam.AlignedSegment]:
        """Align a searched batch and return its SAM records in the order of the reads; none if `count` is 0."""
        segments: list[pysam.AlignedSegment] = []
        for part, alignments in align_reads(batch, context) if count else ():
            lines = self.backend.to_host(format_records(alignments, part, RecordStyle(), context).bytes).tobytes()
            texts = lines.decode("utf-8", "replace").split("\n")[:-1]
            segments += [pysam.AlignedSegment.fromstring(line, self.header) for line in texts]
        return segments

    def _hits(
        self,
        batch: Batch,
        alignments: Alignments,
        count: int,
        *,
        first_query: int = 0,
        with_names: bool = False,
        on_device: bool = False,
    ) -> Hits:
        """Return the primary alignments of `count` single reads. on_device: leave the arrays on the device."""
        found = gather_hits(alignments, count, 0, 1, batch, self._context)
        names = read_names(batch.reads, self.backend) if with_names else None
        operations = alignments.extensions.operations
        if on_device:
            return self._make_hits(found.arrays(), operations, names, first_query)
        return self._make_hits(self._on_host(found), self.backend.to_host(operations), names, first_query)

    def _pairs(
        self, batch: Batch, alignments: Alignments, context: Context, count: int, *, first_query: int, with_names: bool
    ) -> Pairs:
        """Return the primary alignments of `count` pairs, whose reads alternate in `batch`, in arrays of the host."""
        found = [self._on_host(gather_hits(alignments, count, mate, 2, batch, context)) for mate in range(2)]
        operations = self.backend.to_host(alignments.extensions.operations)
        names = read_names(batch.reads, self.backend)[::2] if with_names else None
        mates = [self._make_hits(one, operations, names, first_query) for one in found]
        lengths = _template_lengths(mates[0], mates[1])
        return Pairs(mates[0], mates[1], found[0]["proper"] > 0, lengths, context.sample.insert_sizes)

    def _on_host(self, found: HitTable) -> dict[str, Array]:
        return {name: self.backend.to_host(array) for name, array in found.arrays().items()}

    def _make_hits(self, found: dict[str, Array], operations: Array, names: Sequence[str] | None, first: int) -> Hits:
        arrays = {name: array for name, array in found.items() if name != "proper"}
        contigs = self._host.reference.contigs
        return Hits(**arrays, cigar_operations=operations, names=contigs, first=first, read_names=names)


def _open_or_build(path: Path, device: str, threads: int | None) -> Index:
    """Open the index in folder `path` or next to FASTA file `path`; else build one in memory."""
    default = folder.default_folder(str(path))
    for candidate in (path, default):
        if folder.KIND.exists(candidate):
            return Index.open(candidate)
    index, alternates = build_index(path, device=device, threads=threads), find_alternates_file(default, str(path))
    return index.with_alternates(read_alternates(alternates)) if alternates else index


def _template_lengths(first: Hits, second: Hits) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the signed distances from the first mate's 5' end to the second's; 0 unless both are on one contig."""
    ends = [np.where(hits.strands < 0, hits.ref_ends, hits.ref_starts) for hits in (first, second)]
    together = (first.contigs >= 0) & (first.contigs == second.contigs)
    return np.where(together, ends[1] - ends[0], 0)
