"""Sorting BAM by contig, position and strand on every device; the sort is stable."""

import random

import numpy as np
import pytest
from test_file_index import record

from readmap.backend import open_backend
from readmap.bam.order import sort_records

CONTIGS = 5
REVERSED, UNMAPPED = 16, 4


def draw_records(rng: random.Random, count: int) -> list[bytes]:
    """Draw records of different lengths, many at one position, some unplaced, and entries without a record."""
    found = []
    for number in range(count):
        contig = rng.randrange(-1, CONTIGS)
        position = -1 if contig < 0 else rng.choice([-1, 0, 7, 7, rng.randrange(1 << 31)])
        flag = rng.choice([0, REVERSED, UNMAPPED, UNMAPPED | REVERSED])
        length = rng.randrange(1, 300)
        found.append(b"" if rng.random() < 0.1 else record(contig, position, flag, [(length, 0)], b"r%d" % number))
    return found


def place_of(one: bytes) -> tuple[int, int, bool]:
    contig, position = (int(value) for value in np.frombuffer(one[4:12], np.int32))
    return (contig if contig >= 0 else CONTIGS, position, bool(one[18] & REVERSED))


@pytest.mark.parametrize("count", [1, 2, 300, 5000])
def test_order(backends: str, count: int) -> None:
    backend = open_backend(backends, 2)
    records = draw_records(random.Random(count), count)
    lengths = np.array([len(one) for one in records], np.int64)
    given = [np.frombuffer(b"".join(records), np.uint8), lengths, np.cumsum(lengths)]
    found = sort_records(*map(backend.to_device, given), CONTIGS, backend)
    expected = sorted(filter(None, records), key=place_of)
    assert backend.to_host(found.bytes).tobytes() == b"".join(expected)
    assert backend.to_host(found.ends).tolist() == np.cumsum([len(one) for one in expected]).tolist()
    keys = backend.to_host(found.keys)
    assert (np.diff(keys.astype(object)) >= 0).all()
    assert len({*keys.tolist()}) == len({*map(place_of, expected)})
