"""Compare scores of real proteins with parasail: the longest proteins, those similar to a query, and a sample."""

from pathlib import Path

import numpy as np
import parasail
import pytest
from oracles.scan import parasail_matrix

from readmap.backend import open_backend
from readmap.database.database import Database
from readmap.database.device_pool import Partition
from readmap.database.letters import LETTERS, codes_of
from readmap.database.matrices import standard
from readmap.database.parameters import ScanScoring
from readmap.formats.alphabets import Alphabet
from readmap.reads.sequences import Sequences, read_sequences

COSTS = ScanScoring.of(standard("BLOSUM62"))
WORD = 12  # letters that a relative shares with a query
STEP = 3


@pytest.fixture(scope="module")
def queries(shared: Path) -> Sequences:
    return read_sequences(str(shared / "data/protein/queries.fa.gz"), alphabet=Alphabet.PROTEINS)


@pytest.fixture(scope="module")
def chosen(shared: Path, queries: Sequences) -> list[bytes]:
    """Return the ten longest proteins, all that share a word with a query, and one in two hundred of the others."""
    proteome = read_sequences(str(shared / "data/protein/human_proteome.fa.gz"), 2, Alphabet.PROTEINS)
    texts = [letters.tobytes() for letters in queries]
    words = {text[i : i + WORD] for text in texts for i in range(len(text) - WORD + 1)}
    proteins = [letters.tobytes() for letters in proteome]
    like = [text for text in proteins if any(text[i : i + WORD] in words for i in range(0, len(text), STEP))]
    longest = sorted(proteins, key=len, reverse=True)[:10]
    return list(dict.fromkeys([*longest, *sorted(like, key=len)[-150:], *proteins[::200]]))


def test_scores_match_parasail(backends: str, queries: Sequences, chosen: list[bytes]) -> None:
    offsets = np.cumsum([0, *map(len, chosen)], dtype=np.int64)
    letters = np.frombuffer(b"".join(chosen), np.uint8)
    database = Database.of(Sequences([b"p"] * len(chosen), letters, offsets), Alphabet.PROTEINS)
    partition = Partition(database, open_backend(backends, threads=2))
    partition.assign(0, len(database))
    found = partition.scores([codes_of(query) for query in queries], COSTS, lambda cells: None)
    matrix, gaps = parasail_matrix(COSTS), (COSTS.gap_open + COSTS.gap_extend, COSTS.gap_extend)
    highest = 0
    for query, row in zip(queries, found, strict=True):
        profile = parasail.profile_create_16(query.tobytes().decode(), matrix)
        for rank, score in enumerate(row.tolist()):
            start, length = int(database.starts[rank]), int(database.lengths[rank])
            subject = LETTERS[database.codes[start : start + length]].tobytes().decode()
            expected = parasail.sw_striped_profile_16(profile, subject, *gaps)
            assert not expected.saturated
            assert score == expected.score, (rank, length)
            highest = max(highest, score)
    assert highest > 20_000
    assert len(chosen) > 150
