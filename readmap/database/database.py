"""A database of sequences, built from a FASTA file or opened from its folder."""

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

#: Letters sorted together, so that their indices stay in the cache.
BLOCK_LETTERS = 1 << 16


@dataclass(frozen=True)
class Titles:
    """The header line of each sequence, without >, by index in the file: text[offsets[i]:offsets[i + 1]]."""

    text: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, titles: Sequence[bytes]) -> Titles:
        offsets = np.cumsum([0, *map(len, titles)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(titles), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        if not 0 <= index < len(self):
            raise IndexError(f"sequence index {index} is out of range: there are {len(self)} sequences")
        return self.text[self.offsets[index] : self.offsets[index + 1]].tobytes()


class Names(Titles):
    """The title of each sequence up to the first blank."""

    def __getitem__(self, index: int) -> bytes:
        return super().__getitem__(index).split(maxsplit=1)[0]


@dataclass(frozen=True)
class Database:
    """Sequences to search, sorted by decreasing length.

    Sequences are identified by their index in the FASTA file; `order` maps sorted positions to these indices.

    Attributes
    ----------
    codes : uint8 [letters + PADDING]
        Letter codes of all sequences concatenated (database/letters.py), followed by PAD. Equally long sequences keep
        the order of the file.
    starts : int64 [sequences]
        Start of each sequence in `codes`.
    lengths : int64 [sequences]
        Lengths, in decreasing order.
    order : int64 [sequences]
        Index of each sequence in the file.
    titles : Titles
        Titles, by index in the file.
    molecule : Alphabet
        Nucleotides or proteins.
    source : str
        Name of the FASTA file.
    stored : StoredArrays, optional
        Folder whose checksums are verified before a scan; None if the database was built or is not to be verified.
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
        """Build a database from sequences in memory, which takes one more byte per letter.

        Parameters
        ----------
        sequences : Sequences
        molecule : Alphabet or str
            "nucleotide" or "protein".
        source : str
            Name of the file, for reports.
        """
        order = np.argsort(-sequences.lengths, kind="stable")
        lengths = sequences.lengths[order]
        starts = np.cumsum(lengths) - lengths
        codes = _sorted_codes(sequences, order, starts, lengths)
        return cls(codes, starts, lengths, order, Titles.of(sequences.titles), Alphabet(molecule), source)

    @classmethod
    def open(cls, path: str | Path, check: bool = True) -> Database:
        """Open a database folder by memory mapping.

        Parameters
        ----------
        path : str or Path
        check : bool
            Verify the checksums before a scan. A damaged database that is not verified may crash the process.

        Raises
        ------
        DatabaseFolderError
            If the folder is incomplete or inconsistent.
        """
        source, molecule, stored = database_folder.read(Path(path))
        arrays, kept = stored.arrays, stored if check else None
        titles = Titles(arrays["titles"], arrays["title_offsets"])
        codes, starts, lengths, order = (arrays[name] for name in ("codes", "starts", "lengths", "order"))
        return cls(codes, starts, lengths, order, titles, molecule, source, kept)

    def write(self, path: str | Path, force: bool = False, threads: int | None = None) -> None:
        """Write the database to a folder, atomically.

        Parameters
        ----------
        path : str or Path
        force : bool
            Replace an existing folder.
        threads : int, optional
            Threads for checksums and writing. Default: all processors available to this process.

        Raises
        ------
        DatabaseFolderError
            If `path` exists and `force` is False.
        """
        with database_folder.KIND.writing(Path(path), threads or available_processors(), force) as output:
            self.write_arrays(output)
            output.commit()

    def write_arrays(self, output: PendingFolder) -> None:
        """Start writing the description and all arrays to a pending folder."""
        output.describe({"source": self.source, "molecule": str(self.molecule)})
        for name in ("codes", "starts", "lengths", "order"):
            output.add(name, getattr(self, name))
        output.add("titles", self.titles.text)
        output.add("title_offsets", self.titles.offsets)

    def check(self, backend: Backend) -> None:
        """Raise DatabaseFolderError if the database was opened with `check` and its files were altered."""
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
        """Length of the longest sequence, 0 for an empty database."""
        return int(self.lengths[0]) if len(self) else 0

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """Position of each sequence in the order by length, int64 [sequences], by index in the file."""
        ranks = np.empty(len(self), np.int64)
        ranks[self.order] = np.arange(len(self))
        return ranks

    def subject_length(self, index: int) -> int:
        """Return the length of a sequence, by index in the file."""
        return int(self.lengths[self.ranks[index]])

    def subject_letters(self, index: int, start: int, end: int) -> NDArray[np.uint8]:
        """Return letters [start, end) of a sequence, by index in the file, as upper-case ASCII, uint8."""
        first = int(self.starts[self.ranks[index]])
        return LETTERS[self.codes[first + start : first + end]]

    @property
    def names(self) -> Names:
        """Names, by index in the file; they may not be unique."""
        return Names(self.titles.text, self.titles.offsets)


def _sorted_codes(
    sequences: Sequences, order: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return Database.codes of sequences; order, starts, lengths: as in Database."""
    count = len(sequences.letters)
    codes = np.full(count + PADDING, PAD, np.uint8)
    shifts = sequences.offsets[:-1][order] - starts
    firsts = np.flatnonzero(np.diff(starts // BLOCK_LETTERS, prepend=-1)).tolist()
    for first, end in pairwise([*firsts, len(order)]):
        start, stop = int(starts[first]), int(starts[end - 1] + lengths[end - 1])
        if end == first + 1:
            # May be a whole chromosome: avoid an array of indices.
            shift = int(shifts[first])
            codes[start:stop] = sequences.letters[start + shift : stop + shift]
        else:
            origins = np.arange(start, stop)
            origins += np.repeat(shifts[first:end], lengths[first:end])
            codes[start:stop] = sequences.letters[origins]
    for start in range(0, count, BLOCK_LETTERS):
        stop = min(start + BLOCK_LETTERS, count)
        codes[start:stop] = codes_of(codes[start:stop])
    return codes


def build_database(
    fasta: str, threads: int = 1, molecule: Alphabet | None = None, progress: Callable[[int], None] | None = None
) -> Database:
    """Build a database from a FASTA file.

    Parameters
    ----------
    fasta : str
        Path of a plain, gzip or bgzip file; "-" is standard input. FASTQ is read as nucleotides.
    threads : int
        Threads that decompress.
    molecule : Alphabet, optional
        Default: guessed from the first megabyte (formats.alphabets.guess_alphabet).
    progress : callable, optional
        As in read_sequences.

    Returns
    -------
    Database

    Raises
    ------
    DataError
        If the file is not FASTA of this molecule.
    OSError
        If the file cannot be read.
    """
    if molecule is None:
        sequences, molecule = read_sequences_guessing_alphabet(fasta, threads, progress)
    else:
        sequences = read_sequences(fasta, threads, molecule, progress)
    return Database.of(sequences, molecule, fasta)


def open_database(path: str, threads: int = 1, molecule: Alphabet | None = None, check: bool = True) -> Database:
    """Open a database folder, or build a database from a FASTA file.

    molecule: required molecule, None for any. check: as in Database.open. Raises DatabaseFolderError for an incomplete
    folder, DataError for another molecule or an invalid file, OSError from reading.
    """
    if not Path(path).is_dir():
        return build_database(path, threads, molecule)
    database = Database.open(path, check)
    if molecule not in (None, database.molecule):
        raise DataError(f"{path}: expected a database of {molecule} sequences, found {database.molecule} sequences")
    return database
