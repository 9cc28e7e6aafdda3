"""Test packed patterns: words, lengths and slots of reads of all lengths, letters and addresses."""

import ctypes
import mmap
import random
from collections.abc import Sequence

import numpy as np
import pytest
from examples import Read, fasta_reads, random_bases, reads_of
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.alignment import clean, pack

from readmap.backend import Array, Backend, open_backend
from readmap.reads.bad_records import MAX_READ_LENGTH
from readmap.reads.packing import Patterns, pack_patterns

NUCLEOTIDES = "ACGTUNRYKMSWBDHV"


def with_lanes(name: str, lanes: int | None) -> Backend:
    """Return a backend, optionally with another number of interleaved patterns."""
    backend = open_backend(name)
    backend.warp_width = lanes or backend.warp_width
    return backend


def patterns_of(sequences: Sequence[str], backend: Backend) -> Patterns:
    reads = reads_of(fasta_reads([Read("r", bases) for bases in sequences]), backend, 2)
    return pack_patterns(reads.bytes, reads.sequence_starts, reads.lengths, backend)


def check(sequences: Sequence[str], patterns: Patterns, backend: Backend) -> None:
    arrays = (patterns.slot_of, patterns.words, patterns.tile_offsets, patterns.lengths)
    assert [array.dtype for array in arrays] == [np.int32, np.uint64, np.int64, np.int32]
    slot_of, words, offsets, lengths = (backend.to_host(array).tolist() for array in arrays)
    lanes = 2**patterns.tile_bits
    assert lanes == backend.warp_width
    assert len(patterns) == len(sequences)
    order = sorted(range(len(sequences)), key=lambda record: len(sequences[record]))
    assert [order[slot] for slot in slot_of] == list(range(len(sequences)))
    assert patterns.replaced == sum(letter in "RYKMSWBDHV" for bases in sequences for letter in bases.upper())
    expected_offsets = [0]
    for first in range(0, len(order), lanes):
        longest = max(len(sequences[record]) for record in order[first : first + lanes])
        expected_offsets.append(expected_offsets[-1] + lanes * -(-longest // 32))
    assert offsets == expected_offsets
    assert len(words) == offsets[-1]
    for slot, record in enumerate(order):
        bases = clean(sequences[record])
        if "N" in bases:
            assert lengths[slot] == 0
            continue
        assert lengths[slot] == len(bases)
        count = -(-len(bases) // 32)
        own = words[offsets[slot // lanes] + slot % lanes :: lanes][:count]
        assert own == pack(bases, count)


@pytest.mark.parametrize("lanes", [None, 1, 2, 32])
def test_lengths(backends: str, lanes: int | None) -> None:
    generator = random.Random(91)
    lengths = [*range(101), 127, 128, 129, 150, 150, 1_000, 0, 31, 32, 33, MAX_READ_LENGTH, MAX_READ_LENGTH - 1]
    generator.shuffle(lengths)
    sequences = [random_bases(generator, length) for length in lengths]
    backend = with_lanes(backends, lanes)
    check(sequences, patterns_of(sequences, backend), backend)


@pytest.mark.parametrize("lanes", [1, 32])
@pytest.mark.parametrize("length", [0, 1, 32, 100])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_one_length(backends: str, length: int, count: int, lanes: int) -> None:
    sequences = [random_bases(random.Random(92 + number), length) for number in range(count)]
    backend = with_lanes(backends, lanes)
    check(sequences, patterns_of(sequences, backend), backend)


@pytest.mark.parametrize("lanes", [None, 32])
def test_every_letter_at_every_position(backends: str, lanes: int | None) -> None:
    """Eight letters are packed at a time: every position, in full and partial groups."""
    backend = with_lanes(backends, lanes)
    sequences = []
    for letter in NUCLEOTIDES + NUCLEOTIDES.lower():
        for place in range(18):
            sequences += ["ACGTTGCA"[place % 8] * place + letter, "GTCA" * 5 + "t" * place + letter + "C" * 9]
    check(sequences, patterns_of(sequences, backend), backend)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(sequences=st.lists(st.text("ACGTN", max_size=100), min_size=1, max_size=40), lanes=st.sampled_from([1, 4, 32]))
def test_any_patterns(backends: str, sequences: list[str], lanes: int) -> None:
    backend = with_lanes(backends, lanes)
    check(sequences, patterns_of(sequences, backend), backend)


def placed(data: Array, places: Sequence[tuple[int, int]], backend: Backend) -> Patterns:
    """Pack the patterns at (start, length) of some bytes."""
    starts = backend.to_device(np.array([start for start, _ in places], np.int64))
    lengths = backend.to_device(np.array([length for _, length in places], np.int32))
    return pack_patterns(data, starts, lengths, backend)


@pytest.mark.parametrize("around", ["", "N", "\n", "A", "t", "\xff"])
def test_bytes_around_a_read_are_ignored(backends: str, around: str) -> None:
    """Reads at every address, overlapping, with any bytes before and after them."""
    backend = open_backend(backends)
    bases = random_bases(random.Random(94), 150, "ACGTacgtu")
    data = backend.to_device(np.frombuffer(f"{around * 9}{bases}{around * 9}".encode("latin-1"), np.uint8))
    first = 9 * len(around)
    places = [(start, length) for start in range(20) for length in (0, 1, 5, 7, 8, 9, 31, 32, 33, 64, 130)]
    places += [(150 - length, length) for length in range(80)]
    patterns = placed(data, [(first + start, length) for start, length in places], backend)
    check([bases[start : start + length] for start, length in places], patterns, backend)


def test_no_byte_after_the_last_read_is_read() -> None:
    """The next page is protected: reading it would crash the process."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    data = np.frombuffer(memory, np.uint8)
    library = ctypes.CDLL(None, use_errno=True)
    forbidden = ctypes.c_void_p(data.ctypes.data + page)
    assert library.mprotect(forbidden, ctypes.c_size_t(page), 0) == 0
    bases = random_bases(random.Random(95), page)
    data[:page] = np.frombuffer(bases.encode(), np.uint8)
    backend = open_backend("cpu")
    lengths = [*range(70), 100, 1_000, page]
    patterns = placed(data[:page], [(page - length, length) for length in lengths], backend)
    check([bases[page - length :] for length in lengths], patterns, backend)
    assert library.mprotect(forbidden, ctypes.c_size_t(page), mmap.PROT_READ | mmap.PROT_WRITE) == 0


def test_replaced_letters_of_several_threads(backends: str) -> None:
    """Count the replaced letters of thousands of reads with several threads."""
    backend = open_backend(backends, 4)
    sequences = ["ACGR" * (number % 7) + "N" + "k" * (number % 3) for number in range(3_000)]
    patterns = patterns_of(sequences, backend)
    assert patterns.replaced == sum(number % 7 + number % 3 for number in range(3_000))
    assert not backend.to_host(patterns.lengths).any()
