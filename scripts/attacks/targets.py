"""The formats that are parsed: how to draw a case of each, and how to compare its contents with what readmap read."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pysam

from attacks import inputs, readers
from attacks.mutations import TOKENS, mutate
from attacks.readers import Invalid, Read, as_written, difference
from readmap.backend import open_backend
from readmap.backend.team import Team
from readmap.database.database import Database
from readmap.database.letters import LETTERS
from readmap.database.matrices import read_matrix
from readmap.errors import UsageError
from readmap.formats.alphabets import Alphabet
from readmap.formats.byte_source import ByteSource, open_bytes
from readmap.formats.fasta import Contig
from readmap.formats.gzip_reader import MIN_THREADS
from readmap.formats.output import ByteSink
from readmap.formats.sam import header_lines, parse_header_lines, parse_read_group
from readmap.index.building import build_index
from readmap.index.device import DeviceIndex
from readmap.index.fasta import read_reference
from readmap.index.sort_plan import plan_sort
from readmap.index.suffix_sorting import sort_suffixes
from readmap.mapping.batch import Context
from readmap.reads import parallel_gzip
from readmap.reads.alignment_reads import AlignmentReads, open_reads
from readmap.reads.chunks import PairLayout, read_chunks
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.parsing import READ_ABSENT, Reads, parse_reads
from readmap.reads.sequences import read_sequences, read_sequences_guessing_alphabet
from readmap.run import stream
from readmap.run.read_mapper import ReadMapper

#: One case in this many runs the slower checks, such as mapping the reads.
SELDOM = 16
#: One file in this many is decompressed by several threads.
THREADED = 8

IUPAC, PROTEINS = "ACGTUNRYKMSWBDHV", "ABCDEFGHIJKLMNOPQRSTUVWXYZ*"


class Case(NamedTuple):
    """An input: files by name, and True if anything in them was altered."""

    files: dict[str, bytes]
    altered: bool


@dataclass(frozen=True)
class Target:
    """A format. make: draw a case. judge: return "" if everything was read, else the difference."""

    name: str
    make: Callable[[Random], Case]
    judge: Callable[[Library, Case, list[str], Random], str]


class Library:
    """The backend and the index with which reads are parsed and mapped."""

    def __init__(self) -> None:
        self.backend = open_backend("cpu", 1)

    @cached_property
    def index(self) -> DeviceIndex:
        """The index of the small genome."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(inputs.fasta(Random(0), inputs.genome()))
            file.flush()
            return build_index(file.name, device="cpu", threads=1).to_device(self.backend)

    def mapped(self, source: Any, layout: PairLayout) -> list[Read]:
        """Map the reads of a source and return the primary records."""
        sink, work = _Memory(), ReadMapper([Context(self.index, self.backend)])
        try:
            stream.run(source, [sink], work, [self.backend], layout=layout)
        finally:
            found = readers.read_sam(bytes(sink.data))
            if work.summary.written != work.summary.reads or len(found) != work.summary.written:
                raise AssertionError(f"{work.summary.reads} reads came in, {len(found)} were written")
        return found


class _Memory(ByteSink):
    """An output in memory."""

    name = "memory"

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: Any) -> None:
        self.data += bytes(data)

    def finish(self) -> None:
        """Do nothing."""

    def commit(self) -> None:
        """Do nothing; the output has no name."""

    def abort(self) -> None:
        """Do nothing; the output is not visible to others."""


def _allocate(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.empty(size, np.uint8)


def _reads(found: Reads) -> Iterator[Read]:
    """Yield the reads of a batch; mate: 1 or 2 for pairs, else 0."""
    data = found.bytes
    for i in range(found.count):
        if found.marks[i] & READ_ABSENT:
            continue
        name, length = int(found.name_starts[i]), int(found.lengths[i])
        start, quality = int(found.sequence_starts[i]), int(found.quality_starts[i])
        qualities = data[quality : quality + length].tobytes() if quality >= 0 else None
        name_bytes = data[name : name + int(found.name_lengths[i])].tobytes()
        yield Read(name_bytes, data[start : start + length].tobytes(), qualities, i % 2 + 1 if found.paired else 0)


def _opened(paths: list[str], draw: Random) -> Sequence[str | ByteSource]:
    """Return the files; for a few cases as sources that several threads decompress in parts of few bytes."""
    if draw.randrange(THREADED):
        return paths
    parallel_gzip.PART_BYTES = draw.choice((100, 1000))
    return [open_bytes(path, MIN_THREADS, HOST_INFLATERS) for path in paths]


def _judge_reads(layout: PairLayout) -> Callable[[Library, Case, list[str], Random], str]:
    """Return a function that parses FASTQ or FASTA in chunks of random sizes, and sometimes maps the reads."""

    def judge(library: Library, case: Case, paths: list[str], draw: Random) -> str:
        sizes = {
            "chunk_bytes": draw.choice((64, 200, 1 << 12, 1 << 16)),
            "threads": draw.choice((1, 1, 1, 1, 1, 1, 1, 2)),
        }
        found: list[Read] = []
        sources = _opened(paths, draw)
        for chunk in read_chunks(sources, _allocate, batch_reads=draw.choice((None, 1, 3)), layout=layout, **sizes):
            data = library.backend.upload(chunk.parts)
            reads = parse_reads(data, chunk.reads, chunk.format.value, library.backend, layout)
            found += _reads(reads)
            if reads.bad is not None:
                raise chunk.error(reads.bad)
            chunk.release()
        expected = [readers.read_reads(readers.inflated(data)) for data in case.files.values()]
        together = [read for mates in zip(*expected, strict=True) for read in mates]
        if layout.paired:
            together = [read._replace(mate=i % 2 + 1) for i, read in enumerate(together)]
        if reason := difference(together, found):
            return reason
        if draw.randrange(SELDOM) or not together:
            return ""
        return difference(map(as_written, together), library.mapped(paths, layout))

    return judge


def _judge_bam(library: Library, case: Case, paths: list[str], draw: Random) -> str:
    """Compare the reads of BAM in any order, paired or in the order of the file."""
    paired, maps = draw.random() < 0.7, not draw.randrange(SELDOM)
    tags = draw.choice(((), ("RG",), ("RX", "XX"), ("*",)))
    found: list[Read] = []
    source = open_reads(paths[0])
    if not isinstance(source, AlignmentReads):  # no longer recognized as BAM
        source.close()
        return _judge_reads(PairLayout.SINGLE)(library, case, paths, draw)
    with source:
        try:
            source.start(tags, paired, draw.choice((1, 2, 5, 1_000_000)))
            if maps:
                found = library.mapped(source, PairLayout.INTERLEAVED)
            else:
                for chunk in source.chunks(_allocate, draw.choice((256, 1 << 12, 1 << 16)), draw.choice((None, 1, 3))):
                    found += _reads(chunk.to_device(library.backend))
                    chunk.release()
        finally:
            source.drop()
    expected = readers.read_bam(readers.inflated(case.files["reads"]))
    if maps:
        expected = [as_written(read) for read in expected]
    # A mate without its partner is read as a single read, with mate 0.
    return difference(*(sorted((read._replace(mate=0) for read in reads), key=_key) for reads in (expected, found)))


def _key(read: Read) -> tuple[bytes, bytes, bytes]:
    return read.name, read.bases, read.quality or b""


def _judge_reference(library: Library, case: Case, paths: list[str], draw: Random) -> str:
    with open_bytes(paths[0]) as source:
        found = read_reference(source, library.backend)
    expected = readers.read_fasta(readers.inflated(case.files["reference"]), IUPAC, empty=False)
    expected = [(name, letters.replace(b"U", b"T")) for name, letters in expected]
    if any(not readers.CONTIG_NAME.fullmatch(name) for name, _ in expected) or len(dict(expected)) < len(expected):
        return f"accepted: contigs named {[name for name, _ in expected]}"
    names = [contig.name.encode("utf-8", "surrogateescape") for contig in found.contigs]
    places = zip(found.contig_starts[:-1].tolist(), found.contigs, strict=True)
    letters = [found.letters(start, start + contig.length) for start, contig in places]
    offsets = np.cumsum([0, *map(len, letters)])
    if reason := _differ(expected, names, np.concatenate(letters), offsets):
        return reason
    if not draw.randrange(SELDOM):
        structure = draw.choice(("array", "both"))
        index = build_index(paths[0], structure=structure, device="cpu", threads=1)
        index.check(library.backend)
        held = found.to_device(library.backend)
        team = Team.of(library.backend)
        plan = plan_sort(held, found.length, index.suffixes.dtype, team)
        if not np.array_equal(*sort_suffixes([held], plan, team, lambda share: None), index.suffixes):
            return "kernels and divsufsort sort its suffixes differently"
    return ""


def _differ(expected: Sequence[tuple[bytes, bytes]], names: Iterable[bytes], letters: Any, offsets: Any) -> str:
    parts = [letters[start:end].tobytes() for start, end in itertools.pairwise(offsets)]
    found = list(zip(names, parts, strict=True))
    return "" if found == list(expected) else f"expected {expected}, found {found}"[:500]


def _judge_sequences(library: Library, case: Case, paths: list[str], draw: Random) -> str:
    """Read sequences to compare: FASTA or FASTQ of nucleotides."""
    found = read_sequences(paths[0])
    data = readers.inflated(case.files["sequences"])
    if data.lstrip(b"\r\n").startswith(b"@"):
        with contextlib.suppress(Invalid):  # FASTQ sequences to compare have no qualities and may have any name
            lengths = [len(read.bases) for read in readers.read_reads(data)]
            return "" if lengths == found.lengths.tolist() else f"expected lengths {lengths}, found {found.lengths}"
        return ""
    expected = [(name, text.replace(b"U", b"T")) for name, text in readers.read_fasta(data, IUPAC, empty=True)]
    return _differ(expected, found.names, found.letters, found.offsets)


def _judge_proteins(library: Library, case: Case, paths: list[str], draw: Random) -> str:
    """Build a database and read its codes back."""
    sequences, molecule = read_sequences_guessing_alphabet(paths[0])
    database = Database.of(sequences, molecule)
    data = readers.inflated(case.files["proteins"])
    if data.startswith(b"@"):
        return ""
    expected = readers.read_fasta(data, PROTEINS if molecule is Alphabet.PROTEINS else IUPAC, empty=True)
    if molecule is Alphabet.NUCLEOTIDES:
        expected = [(name, text.replace(b"U", b"T")) for name, text in expected]
    found = [database.subject_letters(i, 0, database.subject_length(i)).tobytes() for i in range(len(database))]
    known = bytes(LETTERS)
    texts = [bytes(letter for letter in text if letter in known) for _, text in expected]
    return "" if found == texts else f"expected {texts}, found {found}"[:500]


def _judge_matrix(library: Library, case: Case, paths: list[str], draw: Random) -> str:
    scores = read_matrix(paths[0]).scores
    return "" if np.abs(scores).max() <= 1000 else f"accepted: scores up to {np.abs(scores).max()}"


def _judge_header(library: Library, case: Case, paths: list[str], draw: Random) -> str:
    """Parse values of -R and -H; htslib must be able to read the resulting header."""
    value = os.fsdecode(case.files["line"])
    lines = []
    try:
        lines = [parse_read_group(value).line.decode()]
    except UsageError:
        if not value.startswith("@"):  # otherwise the name of a file
            raise
        lines = parse_header_lines(value)
    made = header_lines([Contig("one", 9, "0" * 32)], lines, "1", value)
    text = "".join(f"{line}\n" for line in made).encode("utf-8", "surrogateescape").decode("latin-1")
    if text.count("\n") != len(made):
        return f"a line has a line break: {text!r}"
    found = pysam.AlignmentHeader.from_text(text)
    return "" if str(found).count("\n") == len(made) else f"htslib reads {str(found)!r} from {text!r}"


def _of(name: str, make: Callable[[Random], bytes]) -> Callable[[Random], Case]:
    """Return a maker of cases of one mutated file, sometimes compressed."""

    def made(draw: Random) -> Case:
        data, altered = mutate(draw, make(draw))
        return Case({name: data if draw.random() < 0.9 else inputs.compressed(draw, data)}, altered)

    return made


def _sequences(draw: Random) -> Case:
    made = inputs.reference if draw.random() < 0.5 else partial(inputs.fastq, reads=draw.randrange(1, 8))
    return _of("sequences", made)(draw)


def _two_files(draw: Random) -> Case:
    first, second = inputs.pairs(draw)
    times = draw.choice(((None, 0), (0, None), (None, None)))
    (first, one), (second, other) = (
        mutate(draw, data, times=n) for data, n in zip((first, second), times, strict=True)
    )
    return Case({"reads1": first, "reads2": second}, one or other)


def _compressed(draw: Random) -> Case:
    make = draw.choice((inputs.fastq, inputs.fasta_reads))
    data, altered = mutate(draw, inputs.compressed(draw, make(draw)))
    return Case({"reads": data}, altered)


def _bam_records(draw: Random) -> Case:
    """Mutate BAM before its compression."""
    data, fields = inputs.bam(draw)
    times = draw.choice((0, 1, 1, 1, 1, 2, 2, 3, 5))
    data, altered = mutate(draw, data, TOKENS, fields, times)
    return Case({"reads": inputs.bgzf(data, [draw.randrange(len(data) + 1)])}, altered or b"SO:coordinate" in data)


def _bam_file(draw: Random) -> Case:
    data, _altered = mutate(draw, inputs.bgzf(inputs.bam(draw)[0]))
    return Case({"reads": data}, True)


TARGETS = (
    Target("FASTQ", _of("reads", inputs.fastq), _judge_reads(PairLayout.SINGLE)),
    Target("FASTQ, two files", _two_files, _judge_reads(PairLayout.TWO_FILES)),
    Target("FASTQ, interleaved", _of("reads", inputs.interleaved), _judge_reads(PairLayout.INTERLEAVED)),
    Target("FASTA reads", _of("reads", inputs.fasta_reads), _judge_reads(PairLayout.SINGLE)),
    Target("gzip and BGZF", _compressed, _judge_reads(PairLayout.SINGLE)),
    Target("BAM records", _bam_records, _judge_bam),
    Target("BAM file", _bam_file, _judge_bam),
    Target("reference", _of("reference", inputs.reference), _judge_reference),
    Target("sequences", _sequences, _judge_sequences),
    Target("proteins", _of("proteins", inputs.proteins), _judge_proteins),
    Target("matrix", lambda draw: Case({"matrix": mutate(draw, inputs.matrix(draw))[0]}, True), _judge_matrix),
    Target("header lines", lambda draw: Case({"line": mutate(draw, inputs.read_group(draw))[0]}, True), _judge_header),
)
