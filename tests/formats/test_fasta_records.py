"""FASTA records: independent of the block size, in little more memory than their letters."""

import tracemalloc
from collections.abc import Generator

import pytest
from examples import fasta_source
from hypothesis import given, settings
from hypothesis import strategies as st

from readmap.formats import fasta
from readmap.formats.alphabets import Alphabet
from readmap.formats.byte_source import GeneratorSource
from readmap.formats.fasta import read_records

LETTERS = "ACDEFGHIKLMNPQRSTVWY*"

names = st.lists(st.text("abc@|.", min_size=1, max_size=4), min_size=1, max_size=5)


@settings(max_examples=80, deadline=None)
@given(st.data(), names, st.integers(1, 20), st.integers(1, 9), st.sampled_from(["\n", "\r\n", "\n\n", "\r\n\n"]))
def test_round_trip(data: st.DataObject, names: list[str], block: int, width: int, line_break: str) -> None:
    sequences = [data.draw(st.text(LETTERS + LETTERS.lower(), max_size=20)) for _ in names]
    titles = [name + data.draw(st.sampled_from(["", " a comment", "\t>x"])) for name in names]
    text = ""
    for title, sequence in zip(titles, sequences, strict=True):
        lines = [sequence[i : i + width] for i in range(0, len(sequence), width)]
        text += line_break.join([f">{title}", *lines]) + line_break
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fasta, "BLOCK_BYTES", block)
        found = read_records(fasta_source(text.encode()), Alphabet.PROTEINS)
    assert [name.decode() for name in found.names] == names
    assert [title.decode() for title in found.titles] == titles
    ends = zip(found.offsets[:-1], found.offsets[1:], strict=True)
    letters = [found.letters[begin:end].tobytes().decode() for begin, end in ends]
    assert letters == [sequence.upper() for sequence in sequences]


def test_memory_stays_near_a_byte_a_letter() -> None:
    count = 30_000_000
    line = b"ACGT" * 20 + b"\n"

    def pieces() -> Generator[bytes, None, None]:
        yield b">a\n"
        for _ in range(count // 80 // 1000):
            yield line * 1000

    tracemalloc.start()
    result = read_records(GeneratorSource("ref.fa", pieces()), Alphabet.NUCLEOTIDES)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(result.letters) == count
    assert peak < 1.6 * count
