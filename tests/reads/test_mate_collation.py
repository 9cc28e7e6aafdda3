"""Test mates of BAM records: for any chunks and distances, the same as a record-by-record search."""

import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from test_bam_records import chunks, record, start, texts, write

from readmap.errors import DataError
from readmap.reads import bam_records, mate_collation
from readmap.reads.mate_collation import NO_MATE, MateCandidates, match_by_hash, match_by_key

#: A record: name, read group or "", segment (0 for a single read), and whether it is primary.
Drawn = tuple[str, str, int, bool]

FLAGS = {0: 4, 1: 77, 2: 141}


def units(drawn: list[Drawn], window: int) -> tuple[list[tuple[int, ...]], int]:
    """Return the record indices of each read or pair in order, and the number of lost reads, by a slow search."""
    waiting: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    found: list[tuple[int, ...]] = []
    lost = 0
    for number in range(len(drawn) + 1):
        rows = sorted(row for rows in waiting.values() for row in rows)
        left = [row for row in rows if number == len(drawn) or row + window + 1 <= number]
        for row in left:
            found.append((row,))
            lost += 1
            for others in waiting.values():
                if row in others:
                    others.remove(row)
        if number == len(drawn):
            break
        name, group, side, primary = drawn[number]
        partners = waiting[name, group, 3 - side]
        if not primary:
            continue
        if not side:
            found.append((number,))
        elif partners:
            partner = partners.pop(0)
            found.append((partner, number) if side == 2 else (number, partner))
        else:
            waiting[name, group, side].append(number)
    return found, lost


def draw(generator: random.Random, count: int) -> list[Drawn]:
    """Draw mostly adjacent pairs, and some distant mates, shared names, single and secondary records."""
    made: list[Drawn] = []
    far = generator.choice((0, 0, 3, 30))
    while len(made) < count:
        name = f"n{generator.randrange(generator.choice((3, 30, 100_000)))}"
        group = generator.choice(("", "a", "b")) if generator.random() < 0.2 else "a"
        what = generator.random()
        sides = [1, 2] if what < 0.7 else [2, 1] if what < 0.75 else [generator.randrange(3)]
        made += [(name, group, side, generator.random() > 0.05) for side in sides]
    order = sorted(range(len(made)), key=lambda i: i + far * generator.random())
    return [made[i] for i in order]


def written(path: Path, drawn: list[Drawn], header: bytes = b"") -> Path:
    return write(
        path,
        *(
            record(
                name.encode(),
                FLAGS[side] | (0 if primary else 256),
                "ACGT"[number % 4] * (number % 7),
                tags=f"XNZ{number}\0".encode() + (f"RGZ{group}\0".encode() if group else b""),
            )
            for number, (name, group, side, primary) in enumerate(drawn)
        ),
        header=header,
    )


def found_units(path: Path, window: int, chunk_bytes: int, most: int | None) -> tuple[list[tuple[int, ...]], int]:
    """Return the same for reads from the file."""
    source = start(path, ("XN",), paired=True, window=window)
    found: list[tuple[int, ...]] = []
    for chunk in chunks(source, chunk_bytes, most):
        numbers = [int(header.rsplit(":", 1)[1]) if header else None for header, *_ in texts(chunk)]
        assert len(numbers) <= max(most or len(numbers), 1 + chunk.paired)
        step = 1 + chunk.paired
        found += [tuple(n for n in numbers[i : i + step] if n is not None) for i in range(0, len(numbers), step)]
        assert all(numbers[i] is not None for i in range(0, len(numbers), step))
    return found, source.lost


@pytest.mark.parametrize("seed", range(4))
def test_mates_match_a_slow_search(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)
    for count in (1, 20, 60, 150):
        drawn = draw(generator, count)
        path = written(tmp_path / "made.bam", drawn)
        for window in (0, 1, 5, 40, 1_000):
            expected = units(drawn, window)
            assert sorted(n for unit in expected[0] for n in unit) == [i for i, one in enumerate(drawn) if one[3]]
            ways = ((1 << 20, None), (256, None), (2048, 7), (1 << 20, 1), (4096, 2))
            for chunk_bytes, most in generator.sample(ways, 2):
                assert found_units(path, window, chunk_bytes, most) == expected


@pytest.mark.parametrize("bits", [0, 1, 4])
def test_hash_collisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """With equal hashes the names decide."""

    def check(*arguments: object) -> bam_records.BamRecords:
        records = bam_records.check_records(*arguments)  # type: ignore[arg-type]
        records.hashes[:] &= np.uint64((1 << bits) - 1)
        return records

    monkeypatch.setattr("readmap.reads.alignment_reads.check_records", check)
    generator = random.Random(bits)
    for _ in range(10):
        drawn = draw(generator, 60)
        path = written(tmp_path / "made.bam", drawn)
        for window in (3, 1_000):
            assert found_units(path, window, 512, None) == units(drawn, window)


def test_sorted_file_must_be_collated(tmp_path: Path) -> None:
    """If mates are further apart than the window, but not if a mate is missing."""
    header = b"@HD\tVN:1.6\tSO:coordinate\n"
    apart: list[Drawn] = [("a", "", 1, True), ("b", "", 0, True), ("c", "", 0, True), ("a", "", 2, True)]
    path = written(tmp_path / "made.bam", apart, header)
    assert found_units(path, 3, 1 << 20, None) == ([(1,), (2,), (0, 3)], 0)
    assert found_units(written(tmp_path / "made.bam", apart[:3], header), 2, 1 << 20, None) == ([(1,), (2,), (0,)], 1)
    message = (
        r"made\.bam, record 1 \(a\): its mate is not within 2 records of it, .* use --collate to put mates together"
    )
    with pytest.raises(DataError, match=message):
        found_units(written(tmp_path / "made.bam", apart, header), 2, 1 << 20, None)


def test_match_by_hash_agrees_with_match_by_key() -> None:
    """Same result as match_by_key, except where match_by_hash is unsure."""
    generator = np.random.default_rng(7)
    for names in (1, 10, 5_000):
        hashes = generator.integers(0, names, 5_000).astype(np.uint64)
        sides = generator.integers(1, 3, len(hashes)).astype(np.uint8)
        candidates = MateCandidates(np.cumsum(generator.integers(1, 3, len(hashes))), hashes, sides)
        mates, unsure = match_by_hash(candidates, 1 << 20)
        assert not unsure.any()
        assert np.array_equal(mates, match_by_key(candidates, [str(name).encode() for name in hashes], 1 << 20))
        assert names == 1 or (mates == NO_MATE).any()


def test_common_cases_need_no_matching_by_key(tmp_path: Path) -> None:
    """match_by_key is not called for names that the window separates."""
    count, calls = 20_000, []
    drawn: list[Drawn] = [(str(n), "a", side, True) for side in (1, 2) for n in range(count)]
    path = written(tmp_path / "made.bam", drawn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mate_collation, "match_by_key", lambda *_: calls.append(1))
        for window in (count, count - 1):
            found, lost = found_units(path, window, 1 << 18, None)
            assert lost == (0 if window == count else 2 * count)
            assert len(found) == count + lost // 2
    assert not calls
