"""The packed reference compared with an oracle: words, barriers, contigs, and the padding after the end."""

import hashlib
import itertools
import random

import numpy as np
import pytest
from examples import fasta_source, index_of, random_bases
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.alignment import BARRIER, pack, text_of

from readmap.backend import open_backend
from readmap.index import fasta
from readmap.index.fasta import read_reference
from readmap.index.reference import Reference
from readmap.reads.bad_records import MAX_READ_LENGTH

contig_lists = st.lists(st.text("ACGTACGTACGTNRM", min_size=1, max_size=150), min_size=1, max_size=6)


def make(contigs: list[str], backends: str) -> Reference:
    """Read the contigs as FASTA with a backend's kernels."""
    data = "".join(f">contig_{number}\n{contig}\n" for number, contig in enumerate(contigs))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fasta, "host_backend", lambda module, threads: None)
        return read_reference(fasta_source(data.encode()), open_backend(backends))


def intervals(contigs: list[str]) -> list[tuple[int, int, str]]:
    """Return start, end and letter of each run of one ambiguous letter; between contigs the letter is NUL."""
    text = "".join(contig + "\0" for contig in contigs)
    runs = [(letter, len(list(run))) for letter, run in itertools.groupby(text)]
    ends = list(itertools.accumulate(length for _, length in runs))
    return [
        (end - length, end, letter) for (letter, length), end in zip(runs, ends, strict=True) if letter not in "ACGT"
    ]


def check(contigs: list[str], reference: Reference) -> None:
    text = text_of(contigs)
    assert reference.length == len(text)
    assert reference.words.dtype == np.uint64
    assert reference.words.tolist() == pack(text.replace(BARRIER, "A"), len(reference.words))

    starts, ends = reference.barrier_starts.tolist(), reference.barrier_ends.tolist()
    found = list(zip(starts, ends, map(chr, reference.barrier_letters.tolist()), strict=True))
    assert found[:-1] == intervals(contigs)
    assert starts[-1] == len(text)
    assert ends[-1] > len(text) + 2**40
    assert found[-1][2] == "\0"

    bits = np.unpackbits(reference.barrier_blocks.view(np.uint8), bitorder="little").tolist()
    inside = [int(BARRIER in text[i : i + 64]) for i in range(0, len(text), 64)]
    if len(text) % 64:
        inside[-1] = 1
    assert bits == inside + [1] * (len(bits) - len(inside))

    assert reference.contig_starts.tolist() == [0, *itertools.accumulate(len(contig) + 1 for contig in contigs)]
    assert [contig.length for contig in reference.contigs] == [len(contig) for contig in contigs]
    assert [contig.md5 for contig in reference.contigs] == [hashlib.md5(c.encode()).hexdigest() for c in contigs]
    assert reference.bases == sum(map(len, contigs))
    assert reference.ambiguous_bases == sum(letter not in "ACGT" for contig in contigs for letter in contig)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(contigs=contig_lists)
def test_arrays(backends: str, contigs: list[str]) -> None:
    reference = make(contigs, backends)
    check(contigs, reference)


@pytest.mark.parametrize(
    "contigs",
    [
        *(["A"], ["N"], ["N" * 200], ["A" * 63], ["A" * 64], ["A" * 65]),
        *(["ACGT" * 2_000], ["NNNRRRN" * 10, "C"], ["T"] * 300),
    ],
    ids=lambda contigs: f"{len(contigs)} of {contigs[0][:10]} {len(contigs[0])}",
)
def test_corners(backends: str, contigs: list[str]) -> None:
    reference = make(contigs, backends)
    check(contigs, reference)


def test_padding(backends: str) -> None:
    """Kernels read words and barrier bits of up to a read's length, and one more word, after the last base."""
    for length in (1, 63, 64, 4_095, 4_096, 4_097):
        reference = make(["A" * length], backends)
        furthest = reference.length + MAX_READ_LENGTH + 32
        assert 32 * len(reference.words) > furthest + 32
        assert 64 * 64 * len(reference.barrier_blocks) > furthest


def test_large(backends: str) -> None:
    generator = random.Random(1)
    contigs = [random_bases(generator, length, "ACGT" * 30 + "N") for length in (40_000, 1, 25_000)]
    reference = make(contigs, backends)
    check(contigs, reference)


def test_index_has_the_same_reference(backends: str) -> None:
    """In FASTA, lower case and U are read as A, C, G and T."""
    contigs = ["ACGTN" * 20, "TTTRA"]
    reference = make(contigs, backends)
    spelt = index_of({"contig": "acguN" * 20, "b": "UtTra"}).reference
    for name in ("words", "barrier_blocks", "barrier_starts", "barrier_ends", "barrier_letters", "contig_starts"):
        assert getattr(spelt, name).tolist() == getattr(reference, name).tolist()
    assert [contig.md5 for contig in spelt.contigs] == [contig.md5 for contig in reference.contigs]
    assert [contig.name for contig in spelt.contigs] == ["contig", "b"]
