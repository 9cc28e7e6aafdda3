"""Whole searches of pairs: independent of batches, threads, layouts and the order of mates; placement of mates."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples import Read, draw_pairs, index_of, random_bases, small_genome, write_pairs
from oracles.alignment import reverse_complement
from search_runs import map_files, reads_in, refuse

from readmap.backend import Backend, cuda_available, open_backend
from readmap.index.device import DeviceIndex
from readmap.mapping import pipeline
from readmap.mapping.inserts import InsertSize
from readmap.mapping.parameters import Pairing, Reporting
from readmap.reads.chunks import PairLayout
from readmap.run import chunk_plan, read_mapper, record_blocks
from readmap.run import sample as sample_of_reads
from readmap.run.read_mapper import MappingSummary

DRAW = random.Random(151)
OTHER = str.maketrans("ACGT", "TGCA")
GENOME = {**small_genome(DRAW), "three": random_bases(DRAW, 4_000)}
PAIRS = draw_pairs(DRAW, GENOME, 240)
INDEX = index_of(GENOME)
SAMPLE = 70  # pairs


@dataclass(frozen=True)
class World:
    """An index on a device, pairs in files, and the records of one batch, by the sizes of all pairs or of some."""

    backend: Backend
    index: DeviceIndex
    two_files: list[Path]
    interleaved: list[Path]
    records: bytes
    sampled: bytes


def learn_from(patch: pytest.MonkeyPatch, pairs: int) -> None:
    """Estimate the sample from this number of pairs."""
    patch.setattr(sample_of_reads, "PAIRS", pairs)
    patch.setattr(sample_of_reads, "READS", 2 * pairs)


@pytest.fixture(scope="module")
def world(backends: str, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    backend = open_backend(backends, 1)
    files = [write_pairs(folder, PAIRS, layout) for layout in (PairLayout.TWO_FILES, PairLayout.INTERLEAVED)]
    index = INDEX.to_device(backend)
    map_files(files[0], index, backend, folder / "out", layout=PairLayout.TWO_FILES)
    records = (folder / "out").read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        learn_from(patch, SAMPLE)
        map_files(files[0], index, backend, folder / "out", layout=PairLayout.TWO_FILES)
    sampled = (folder / "out").read_bytes()
    assert sampled != records
    return World(backend, index, *files, records, sampled)


def rows_of(records: bytes) -> list[list[str]]:
    return [line.split("\t") for line in records.decode().splitlines()]


def primary(records: bytes) -> list[list[str]]:
    return [row for row in rows_of(records) if not int(row[1]) & 2304]


def search_pairs(
    world: World, pairs: list[tuple[Read, Read]], folder: Path, **options: Any
) -> tuple[bytes, MappingSummary]:
    paths = write_pairs(folder, pairs, PairLayout.TWO_FILES)
    summary = map_files(paths, world.index, world.backend, folder / "out", layout=PairLayout.TWO_FILES, **options)
    return (folder / "out").read_bytes(), summary


# The same bytes.


@pytest.mark.parametrize(
    ("batch", "threads", "layout", "sample"),
    [
        (14, 3, PairLayout.INTERLEAVED, SAMPLE),
        (100, 1, PairLayout.TWO_FILES, SAMPLE),
        (100, 1, PairLayout.INTERLEAVED, None),
        (None, 4, PairLayout.TWO_FILES, None),
    ],
)
def test_same_bytes_for_any_batch_threads_and_layout(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batch: int | None,
    threads: int,
    layout: PairLayout,
    sample: int | None,
) -> None:
    """Insert sizes are estimated from the first pairs, for any number of batches."""
    if sample:
        learn_from(monkeypatch, sample)
    paths = world.two_files if layout is PairLayout.TWO_FILES else world.interleaved
    backend = open_backend(world.backend.name, threads)
    map_files(paths, world.index, backend, tmp_path / "out", layout=layout, batch_reads=batch)
    assert (tmp_path / "out").read_bytes() == (world.sampled if sample else world.records)


@pytest.mark.parametrize("attributes", [{"lanes": 1}, {"lanes": 32}, {"scratch_bytes": 1}])
def test_same_bytes_for_any_layout_of_queries(world: World, tmp_path: Path, attributes: dict[str, int]) -> None:
    backend = open_backend(world.backend.name)
    for name, value in attributes.items():
        setattr(backend, name, value)
    map_files(world.two_files, world.index, backend, tmp_path / "out", layout=PairLayout.TWO_FILES)
    assert (tmp_path / "out").read_bytes() == world.records


def test_same_bytes_from_chunks_smaller_than_a_pair(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buffers go round while batches are held."""
    monkeypatch.setattr(chunk_plan, "MIN_CHUNK_BYTES", 1)
    learn_from(monkeypatch, SAMPLE)
    backend = open_backend(world.backend.name)
    backend.chunk_bytes = 300
    map_files(world.two_files, world.index, backend, tmp_path / "out", layout=PairLayout.TWO_FILES)
    assert (tmp_path / "out").read_bytes() == world.sampled


@pytest.mark.gpu
def test_same_bytes_on_cpu_and_gpu(tmp_path: Path) -> None:
    if reason := cuda_available():
        pytest.skip(f"no CUDA: {reason}")
    pairs = PAIRS + draw_pairs(random.Random(152), GENOME, 2_000)
    paths = write_pairs(tmp_path, pairs, PairLayout.TWO_FILES)
    for reporting in (Reporting(), Reporting(max_secondary=5, leftmost_primary=True)):
        for name in ("cpu", "cuda"):
            backend = open_backend(name)
            options: dict[str, Any] = {"layout": PairLayout.TWO_FILES, "reporting": reporting}
            map_files(paths, INDEX.to_device(backend), backend, tmp_path / name, **options)
        assert (tmp_path / "cpu").read_bytes() == (tmp_path / "cuda").read_bytes()


@pytest.mark.parametrize(
    ("stage", "limit", "sample"),
    [
        ("search_reads", 12, SAMPLE),
        ("search_reads", 60, 1),
        ("observe", 60, SAMPLE),
        ("observe", 60, 100_000),
        ("format_records", 100, SAMPLE),
    ],
)
def test_same_bytes_where_memory_makes_batches_smaller(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, limit: int, sample: int
) -> None:
    """As if the device held `limit` reads and no more, also where batches are held for their insert sizes."""
    learn_from(monkeypatch, sample)
    map_files(world.two_files, world.index, world.backend, tmp_path / "expected", layout=PairLayout.TWO_FILES)
    backend = open_backend(world.backend.name)
    room = record_blocks if stage == "format_records" else read_mapper
    refused = refuse(monkeypatch, backend, room, stage, lambda *arguments: reads_in(*arguments) > limit)
    map_files(world.two_files, world.index, backend, tmp_path / "out", layout=PairLayout.TWO_FILES)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "expected").read_bytes()
    assert refused


@pytest.mark.parametrize(("failures", "fits"), [(1, True), (7, False)])
def test_memory_that_runs_out_behind_held_batches(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, fits: bool
) -> None:
    """The last of several pending batches runs out of memory while the first one is written; the order stays.

    A pair that does not fit is not tried again together with later pairs.
    """
    backend, left = open_backend(world.backend.name), iter(range(failures))
    learn_from(monkeypatch, SAMPLE)
    refuse(monkeypatch, backend, record_blocks, "format_records", lambda *_: next(left, None) is not None)
    with contextlib.nullcontext() if fits else pytest.raises(MemoryError):
        map_files(world.two_files, world.index, backend, tmp_path / "out", layout=PairLayout.TWO_FILES, batch_reads=40)
    assert (tmp_path / "out").read_bytes() == (world.sampled if fits else b"")


# Exchanged and turned mates.


def exchanged(row: list[str]) -> list[str]:
    """With the flags of a first read and of a second one exchanged."""
    return [row[0], str(int(row[1]) ^ 192), *row[2:]]


def test_exchanged_mates_go_to_the_same_places(world: World, tmp_path: Path) -> None:
    """And their records are the same; what was FF is RR, and all else of the library is the same too."""
    records, _ = search_pairs(world, [(second, first) for first, second in PAIRS], tmp_path)

    def by_mate(rows: list[list[str]]) -> dict[tuple[str, int], list[list[str]]]:
        mates: dict[tuple[str, int], list[list[str]]] = {}
        for row in rows:
            mates.setdefault((row[0], int(row[1]) & 192), []).append(row)
        return mates

    assert by_mate([exchanged(row) for row in rows_of(records)]) == by_mate(rows_of(world.records))


def test_turned_mates_go_to_the_same_places(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fragment of 300 bases with reads of 100 and 120 from its ends is one of 80 with reads that look outwards."""
    whole = [pair for pair in PAIRS if sorted(len(read.bases) for read in pair) == [100, 120]]
    turned = [
        tuple(Read(read.name, reverse_complement(read.bases), (read.quality or "")[::-1]) for read in pair)
        for pair in whole
    ]
    found = []
    for pairs, size in ((whole, InsertSize("FR", 300, 15, 240, 360)), (turned, InsertSize("RF", 80, 15, 20, 140))):
        monkeypatch.setattr(sample_of_reads, "fixed_insert_size", lambda *_, size=size: (size,))
        records, _ = search_pairs(world, [(a, b) for a, b in pairs], tmp_path, pairing=Pairing(insert_size=(1, 1)))
        found.append(primary(records))
    mapped = 0
    for one, other in zip(*found, strict=True):
        assert other[0] == one[0]
        assert int(other[1]) & 4 == int(one[1]) & 4
        if int(one[1]) & 4:
            continue
        assert int(one[1]) & 16 != int(other[1]) & 16
        assert other[2:6] == one[2:6]
        assert [tag for tag in other[9:] if tag[:2] not in ("SA", "XA")] == [
            tag for tag in one[9:] if tag[:2] not in ("SA", "XA")
        ]
        mapped += 1
    assert mapped > 200


def test_pairs_without_pairing_are_reads(world: World, tmp_path: Path) -> None:
    """With -P and -S, placement, MAPQ and tags equal those of single reads."""
    records, _ = search_pairs(world, PAIRS, tmp_path, pairing=Pairing(joint=False, rescue=False))
    map_files(world.interleaved, world.index, world.backend, tmp_path / "single")
    alone = (tmp_path / "single").read_bytes()

    def own(row: list[str]) -> list[str]:
        unmapped = int(row[1]) & 4
        tags = [field for field in row[11:] if field[:2] not in ("MC", "MQ", "ms")]
        return [row[0], *([] if unmapped else row[2:6]), *row[9:11], *tags]

    assert [own(row) for row in rows_of(records)] == [own(row) for row in rows_of(alone)]


# Where mates go.


def test_pairs_go_where_they_are_from(world: World) -> None:
    """Unchanged pairs with high MAPQ, which nearly all have."""
    rows = primary(world.records)
    sure = wrong = plain = 0
    for number, (read, _) in enumerate(PAIRS):
        _, contig, start, strand, kind = read.name.split("/")[0].split("!")
        if kind != "plain":
            continue
        plain += 2
        for row in rows[2 * number : 2 * number + 2]:
            # The forward mate starts there, and the reverse mate ends about 300 bases after it.
            forward = (int(row[1]) & 64 > 0) == (strand == "+")
            sure += int(row[4]) >= 30
            near = row[2] == contig and abs(int(row[3]) - 1 - int(start) - (0 if forward else 190)) < 70
            wrong += int(row[4]) >= 30 and not near
    assert plain > 80
    assert wrong == 0
    assert sure > 0.8 * plain


def test_a_mate_in_a_repeat_is_placed_by_its_partner(world: World, tmp_path: Path) -> None:
    """One mate lies in one of three equal copies, the other next to it: only the pair has a unique placement."""
    generator = random.Random(153)
    unit = random_bases(generator, 400)
    spacers = [random_bases(generator, 500) for _ in range(4)]
    contig = "".join(spacer + unit for spacer in spacers[:3]) + spacers[3]
    index = index_of([contig]).to_device(world.backend)
    pairs = []
    for number in range(60):
        start = 900 * (number % 3) + 300 + number
        first = Read(f"{number}", contig[start : start + 100], "I" * 100)
        second = Read(f"{number}", reverse_complement(contig[start + 250 : start + 350]), "I" * 100)
        pairs.append((first, second) if number % 2 else (second, first))
    paths = write_pairs(tmp_path, pairs, PairLayout.TWO_FILES)
    for pairing, sure in ((Pairing(insert_size=(350, 20)), True), (Pairing(joint=False, rescue=False), False)):
        map_files(paths, index, world.backend, tmp_path / "out", layout=PairLayout.TWO_FILES, pairing=pairing)
        rows = rows_of((tmp_path / "out").read_bytes())
        # The number is odd where the read in the repeat is the second one.
        repeats = [rows[2 * number + number % 2] for number in range(60)]
        right = [int(row[3]) - 1 == 900 * (i % 3) + 550 + i for i, row in enumerate(repeats)]
        assert all(right) == sure
        assert (min(int(row[4]) for row in repeats) >= 30) == sure
        assert sure == all(int(row[1]) & 2 for row in rows)


def with_piece(bases: str, begin: int, shared: int) -> str:
    """Return bases of which only a part of this length is unchanged."""
    end = begin + shared
    return bases[:begin].translate(OTHER) + bases[begin:end] + bases[end:].translate(OTHER)


@pytest.mark.parametrize(("shared", "sure"), [(18, False), (25, True)])
def test_a_mate_of_no_place_says_nothing_of_its_partners(world: World, tmp_path: Path, shared: int, sure: bool) -> None:
    """One mate lies in one of two equal copies; a part of the other mate is next to a copy, as by chance."""
    generator = random.Random(154)
    unit, tail = random_bases(generator, 300), random_bases(generator, 600)
    contig = random_bases(generator, 600) + unit + random_bases(generator, 600) + unit + tail
    index = index_of([contig]).to_device(world.backend)
    pairs = []
    for number in range(40):
        start, piece = 720 + 2 * number, number + 10
        second = with_piece(contig[start + 200 : start + 300], piece, shared)
        first = contig[start : start + 100]
        both = [Read(f"{number}", bases, "I" * 100) for bases in (first, reverse_complement(second))]
        pairs.append((both[0], both[1]) if number % 2 else (both[1], both[0]))
    paths = write_pairs(tmp_path, pairs, PairLayout.TWO_FILES)
    pairing = Pairing(insert_size=(300, 20))
    map_files(paths, index, world.backend, tmp_path / "out", layout=PairLayout.TWO_FILES, pairing=pairing)
    rows = rows_of((tmp_path / "out").read_bytes())
    # The number is odd if the first mate lies in the repeat.
    mapqs = [int(rows[2 * number + 1 - number % 2][4]) for number in range(40)]
    assert min(mapqs) >= 30 if sure else max(mapqs) <= 3


@pytest.mark.parametrize(("shared", "partner", "mapped"), [(19, 80, True), (18, 80, False), (24, 25, False)])
def test_a_mate_that_scores_little_stands_by_its_partner_alone(
    world: World, tmp_path: Path, shared: int, partner: int, mapped: bool
) -> None:
    """Which has to score what others have to; the mate is no surer than it is, or than chance lets a piece be."""
    generator, contig = random.Random(152), GENOME["three"]
    pairs, length = [], 100
    for number in range(12):
        start = 1_000 + 150 * number
        first = contig[start : start + partner] + random_bases(generator, length - partner)
        second = with_piece(contig[start + 200 : start + 300], 40, shared)
        both = [Read(f"{number}", bases, "I" * length) for bases in (first, reverse_complement(second))]
        pairs.append((both[0], both[1]) if number % 2 else (both[1], both[0]))
    insert = Pairing(insert_size=(300.0, 30.0))
    rows = primary(search_pairs(world, pairs, tmp_path, pairing=insert)[0])
    weak = [row for row, number in zip(rows, range(24), strict=True) if number % 2 == (number // 2) % 2]
    strong = [row for row in rows if row not in weak]
    assert [not int(row[1]) & 4 for row in strong] == [partner > 30] * 12
    told = [not int(row[1]) & 4 for row in weak]
    assert told == [mapped] * 12
    assert all(int(row[4]) <= int(other[4]) for row, other in zip(weak, strong, strict=True))


def test_chance_is_greater_where_inserts_are(world: World, tmp_path: Path) -> None:
    """The wider the insert sizes, the likelier chance has such a piece among them."""
    generator, contig = random.Random(153), GENOME["three"]
    second = random_bases(generator, 81) + contig[1_250:1_269]
    pairs = [(Read("a", contig[1_000:1_100], "I" * 100), Read("a", reverse_complement(second), "I" * 100))]
    mapqs = []
    for deviation in (30.0, 300.0, 3_000.0):
        insert = Pairing(insert_size=(300.0, deviation))
        mapqs.append(int(primary(search_pairs(world, pairs, tmp_path, pairing=insert)[0])[1][4]))
    assert mapqs == sorted(mapqs, reverse=True)
    # 12,300 sizes, of 100 bases each: 21 bits of the 38 that the piece has.
    assert (mapqs[0], mapqs[2]) == (60, 3 * (38 - 21))


@pytest.mark.parametrize("joint", [True, False])
def test_places_are_joined_where_mates_are_placed_together(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joint: bool
) -> None:
    joined: list[int] = []
    join = pipeline.join_mates
    monkeypatch.setattr(pipeline, "join_mates", lambda *arguments: joined.append(1) or join(*arguments))
    search_pairs(world, PAIRS[:20], tmp_path, pairing=Pairing(joint=joint, insert_size=(300.0, 30.0)))
    assert bool(joined) == joint
