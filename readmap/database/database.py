"""A database of sequences: built from a FASTA file, opened from its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.machine import available_processors
from readmap.database import folder as database_folder
from readmap.database.folder import PADDING, verify_arrays
from readmap.database.letters import LETTERS, PAD, codes_of
from readmap.errors import DataError
from readmap.formats.alphabets import Alphabet
from readmap.formats.array_folder import PendingFolder, StoredArrays
from readmap.reads.sequences import Sequences, read_sequences, read_sequences_guessing_alphabet

#: Letters that are put in order together: their indices stay in the cache.
BLOCK_LETTERS = 1 << 16


@dataclass(frozen=True)
class Titles:
    """The header's line of each sequence without '>', in the file's order.

    text: uint8, all titles behind each other.
    offsets: int64 [sequences + 1]: title i is text[offsets[i]:offsets[i + 1]].
    """

    text: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, titles: Sequence[bytes]) -> Titles:
        """The titles of a list."""
        offsets = np.cumsum([0, *map(len, titles)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(titles), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> bytes:
        if not 0 <= number < len(self):
            raise IndexError(f"there is no sequence {number} among {len(self)}")
        return self.text[self.offsets[number] : self.offsets[number + 1]].tobytes()


class Names(Titles):
    """The title of each sequence up to the first blank."""

    def __getitem__(self, number: int) -> bytes:
        return super().__getitem__(number).split(maxsplit=1)[0]


@dataclass(frozen=True)
class Database:
    """Sequences that queries are scanned against.

    Attributes:
        codes: uint8 [letters + PADDING], of all sequences behind each other (scan/letters.py), the longest first and
            those of one length in the file's order; PAD behind them.
        starts: int64 [sequences], where each begins in the codes.
        lengths: int64 [sequences], of each, falling.
        order: int64 [sequences], the number of each in the file, from 0.
        titles: by the number in the file, as the names are.
        molecule: what the sequences are.
        source: the FASTA file, as it was named.
        stored: the folder it was opened from, to which its arrays are held before a scan; None where it was built, or
            is not to be checked.
    """

    codes: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    order: NDArray[np.int64]
    titles: Titles
    molecule: Alphabet
    source: str
    stored: StoredArrays | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, sequences: Sequences, molecule: Alphabet | str, source: str = "") -> Database:
        """The database of sequences in memory, which takes a byte a letter more."""
        order = np.argsort(-sequences.lengths, kind="stable")
        lengths = sequences.lengths[order]
        starts = np.cumsum(lengths) - lengths
        codes = _in_order(sequences, order, starts, lengths)
        return cls(codes, starts, lengths, order, Titles.of(sequences.titles), Alphabet(molecule), source)

    @classmethod
    def open(cls, path: str | Path, check: bool = True) -> Database:
        """The database in a folder, mapped into memory; raises DatabaseFolderError where it is not whole.

        check: whether a scan holds its arrays to their checksums first. Without it a database that was damaged may do
            anything.
        """
        source, molecule, stored = database_folder.read(Path(path))
        arrays, kept = stored.arrays, stored if check else None
        titles = Titles(arrays["titles"], arrays["title_offsets"])
        codes, starts, lengths, order = (arrays[name] for name in ("codes", "starts", "lengths", "order"))
        return cls(codes, starts, lengths, order, titles, molecule, source, kept)

    def write(self, path: str | Path, force: bool = False, threads: int | None = None) -> None:
        """Keep it in a folder, whole or not at all; DatabaseFolderError where `path` exists, unless `force`.

        threads: that sum and write; default, the processors that this process may use.
        """
        with database_folder.KIND.writing(Path(path), threads or available_processors(), force) as output:
            self.write_arrays(output)
            output.commit()

    def write_arrays(self, output: PendingFolder) -> None:
        """Begin to write all of the database into its folder."""
        output.describe({"source": self.source, "molecule": str(self.molecule)})
        for name in ("codes", "starts", "lengths", "order"):
            output.add(name, getattr(self, name))
        output.add("titles", self.titles.text)
        output.add("title_offsets", self.titles.offsets)

    def check(self, backend: Backend) -> None:
        """Raise DatabaseFolderError where it was opened from a folder that is to be checked, and was altered there."""
        if self.stored:
            verify_arrays(self.stored, backend)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def letters(self) -> int:
        """Letters of all sequences."""
        return len(self.codes) - PADDING

    @property
    def longest(self) -> int:
        """The letters of the longest sequence, 0 where there is none."""
        return int(self.lengths[0]) if len(self) else 0

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """int64 [sequences], of each number in the file where that sequence is among all."""
        ranks = np.empty(len(self), np.int64)
        ranks[self.order] = np.arange(len(self))
        return ranks

    def subject_length(self, number: int) -> int:
        """The letters of a sequence, by its number in the file."""
        return int(self.lengths[self.ranks[number]])

    def subject_letters(self, number: int, start: int, end: int) -> NDArray[np.uint8]:
        """Letters of a sequence, by its number in the file, from one place to before another: upper-case, uint8."""
        first = int(self.starts[self.ranks[number]])
        return LETTERS[self.codes[first + start : first + end]]

    @property
    def names(self) -> Names:
        """Names by the number in the file; they may be repeated."""
        return Names(self.titles.text, self.titles.offsets)


def _in_order(
    sequences: Sequences, order: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """The codes of a database."""
    count = len(sequences.letters)
    codes = np.full(count + PADDING, PAD, np.uint8)
    shifts = sequences.offsets[:-1][order] - starts
    firsts = np.flatnonzero(np.diff(starts // BLOCK_LETTERS, prepend=-1)).tolist()
    for first, end in pairwise([*firsts, len(order)]):
        begin, stop = int(starts[first]), int(starts[end - 1] + lengths[end - 1])
        if end == first + 1:
            # Perhaps a whole chromosome: no array of indices.
            shift = int(shifts[first])
            codes[begin:stop] = sequences.letters[begin + shift : stop + shift]
        else:
            origins = np.arange(begin, stop)
            origins += np.repeat(shifts[first:end], lengths[first:end])
            codes[begin:stop] = sequences.letters[origins]
    for begin in range(0, count, BLOCK_LETTERS):
        stop = min(begin + BLOCK_LETTERS, count)
        codes[begin:stop] = codes_of(codes[begin:stop])
    return codes


def build_database(
    fasta: str,
    threads: int = 1,
    molecule: Alphabet | None = None,
    progress: Callable[[int], None] | None = None,
) -> Database:
    """The database of a FASTA file, plain, gzip or bgzip; "-" is standard input. FASTQ holds nucleotides.

    molecule: None is what the file's first megabyte holds (formats.alphabets.guess_alphabet).
    threads, progress: as of read_sequences.
    Raises DataError where the file is no FASTA of that molecule, and OSError from reading.
    """
    if molecule is None:
        sequences, molecule = read_sequences_guessing_alphabet(fasta, threads, progress)
    else:
        sequences = read_sequences(fasta, threads, molecule, progress)
    return Database.of(sequences, molecule, fasta)


def open_database(path: str, threads: int = 1, molecule: Alphabet | None = None, check: bool = True) -> Database:
    """The database in a folder, or that of a FASTA file, read into memory.

    molecule: what it must hold; None is what it does. check: as of Database.open.
    Raises DatabaseFolderError where the folder is no whole database, DataError where it holds something else or the
    file cannot be understood, and OSError from reading.
    """
    if not Path(path).is_dir():
        return build_database(path, threads, molecule)
    database = Database.open(path, check)
    if molecule not in (None, database.molecule):
        raise DataError(f"{path}: expected a database of {molecule} sequences, found one of {database.molecule} ones")
    return database
