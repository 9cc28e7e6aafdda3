"""Files, tables and devices in Python: results of the Aligner other than single hits."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from examples import below, draw_pairs, draw_reads, fasta, fastq, index_of, small_genome

from readmap import Aligner, DataError, Hits, Index, UsageError, build_index
from readmap.cli import main
from readmap.formats import arrow

DRAW = random.Random(76)
GENOME = small_genome(DRAW)
INDEX = index_of(GENOME)
READS = draw_reads(DRAW, GENOME, 200)
PAIRS = draw_pairs(DRAW, GENOME, 150)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "ref.fa").write_bytes(fasta(GENOME))
    (folder / "r.fq").write_bytes(fastq(READS))
    for mate in range(2):
        (folder / f"r{mate + 1}.fq").write_bytes(fastq([pair[mate] for pair in PAIRS]))
    (folder / "both.fq").write_bytes(fastq([read for pair in PAIRS for read in pair]))
    INDEX.write(folder / "ref.fa.readmap")
    return folder


@pytest.fixture(scope="module")
def aligner(backends: str) -> Aligner:
    return Aligner(INDEX, device=backends, threads=2)


Row = tuple[str, str | None, int, int, bool, int, str | None]


def searched(folder: Path, device: str, *reads: str) -> list[Row]:
    """The primary records of a search, unmapped ones with those fields that say so."""
    out, names = folder / "out.sam", [str(folder / name) for name in reads]
    assert main(["search", *names, "-x", str(folder / "ref.fa"), "-o", str(out), "-q", "--device", device]) == 0
    with pysam.AlignmentFile(str(out)) as file:
        return [
            (r.query_name or "", None, 0, 0, False, 0, None)
            if r.is_unmapped
            else (
                r.query_name or "",
                r.reference_name,
                r.reference_start,
                r.reference_end or 0,
                r.is_reverse,
                r.mapping_quality,
                r.cigarstring,
            )
            for r in file
            if not r.is_secondary and not r.is_supplementary
        ]


def rows(hits: Hits) -> list[Row]:
    assert hits.read_names is not None
    found: list[Row] = []
    for i, name in enumerate(hits.read_names):
        hit = hits.hit(i)
        if hit is None:
            found.append((name, None, 0, 0, False, 0, None))
            continue
        assert hit.query == hits.first + i
        found.append((name, hit.contig, hit.ref_start, hit.ref_end, hit.strand < 0, hit.mapq, hit.cigar))
    return found


@pytest.mark.parametrize("batch", [None, 7, 1])
def test_reads_of_a_file(aligner: Aligner, folder: Path, batch: int | None) -> None:
    """What a search says of them, in batches of any size."""
    batches = list(aligner.map_file(folder / "r.fq", batch_reads=batch))
    assert (len(batches) > 1) == (batch is not None)
    assert [row for hits in batches for row in rows(hits)] == searched(folder, aligner.backend.name, "r.fq")


@pytest.mark.parametrize("files", [("r1.fq", "r2.fq"), ("both.fq",)], ids=["two", "one"])
def test_pairs_of_files(aligner: Aligner, folder: Path, files: tuple[str, ...]) -> None:
    expected = searched(folder, aligner.backend.name, "r1.fq", "r2.fq")
    found, proper = [], 0
    for pairs in aligner.map_pairs_file(*(folder / name for name in files), batch_reads=100):
        found += [row for both in zip(rows(pairs.first), rows(pairs.second), strict=True) for row in both]
        proper += int(pairs.proper.sum())
        assert pairs.insert_sizes
    assert found == expected
    assert proper > len(PAIRS) // 2


def test_hits_in_front_of_a_bad_record(aligner: Aligner, folder: Path) -> None:
    (folder / "bad.fq").write_bytes(fastq(READS[:20]) + b"@bad\nAC-T\n+\nIIII\n" + fastq(READS[20:30]))
    batches = aligner.map_file(folder / "bad.fq", batch_reads=6)
    assert sum(len(next(batches)) for _ in range(4)) == 20
    with pytest.raises(DataError, match=r"bad\.fq, record 21 \(bad\)"):
        next(batches)
    with pytest.raises(FileNotFoundError, match=r"none\.fq"):
        list(aligner.map_file(folder / "none.fq"))


def test_paths_of_indexes(folder: Path, backends: str, tmp_path: Path) -> None:
    """The FASTA file, the folder, or a file without an index, which stays without one."""
    read = next(iter(GENOME.values()))[100:200]
    expected = list(Aligner(INDEX, device=backends).map(read))
    assert len(expected) == 1
    (tmp_path / "alone.fa").write_bytes(fasta(GENOME))
    for path in (folder / "ref.fa", str(folder / "ref.fa.readmap"), tmp_path / "alone.fa"):
        with Aligner(path, device=backends) as aligner:
            assert list(aligner.map(read)) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["alone.fa"]
    with pytest.raises(FileNotFoundError, match=r"missing\.fa"):
        Aligner(tmp_path / "missing.fa", device=backends)


def test_one_sequence_is_not_its_letters(aligner: Aligner) -> None:
    letters = next(iter(GENOME.values()))[50:150]
    (hit,) = aligner.map(letters)
    assert (hit.query, hit.cigar) == (0, "100M")
    assert len(aligner.map(letters.encode(), "I" * 100)) == 1
    assert len(aligner.map_pairs(letters, letters)) == 1
    (segment,) = aligner.segments(letters, names="one")
    assert segment.query_name == "one"


def test_alt_contigs_of_a_file_without_an_index(tmp_path: Path, backends: str) -> None:
    """An index built from FASTA has the ALT contigs that its folder would have."""
    letters = next(iter(GENOME.values()))[:600]
    version = letters[:300] + {"A": "C", "C": "G", "G": "T", "T": "A"}[letters[300]] + letters[301:]
    (tmp_path / "ref.fa").write_bytes(fasta({"one": letters, "version": version}))
    (tmp_path / "ref.fa.alt").write_text("\ufeffversion\t0\tone\r\n")
    found = [Aligner(tmp_path / "ref.fa", device=backends).map(version[250:350])]
    build_index(tmp_path / "ref.fa", device="cpu").write(tmp_path / "ref.fa.readmap")
    found.append(Aligner(tmp_path / "ref.fa", device=backends).map(version[250:350]))
    assert [hit.contig for hits in found for hit in hits] == ["one", "one"]


def test_odd_arguments(aligner: Aligner, hits: Hits, folder: Path) -> None:
    letters = next(iter(GENOME.values()))[50:150].encode()
    for text in (bytearray(letters), memoryview(letters), [bytearray(letters)]):
        assert [hit.cigar for hit in aligner.map(text)] == ["100M"]  # type: ignore[arg-type]
    with pytest.raises(DataError, match="expected str or bytes, found int"):
        aligner.map([65])  # type: ignore[list-item]
    for row in (-1, len(hits)):
        with pytest.raises(IndexError, match=f"row {row} of {len(hits)}"):
            hits.hit(row)
    with pytest.raises(UsageError, match="batch_reads is 0, expected 1 or more"):
        next(aligner.map_file(folder / "r.fq", batch_reads=0))


def test_closed(backends: str, tmp_path: Path) -> None:
    with Aligner(INDEX, device=backends) as aligner:
        assert "closed" not in repr(aligner)
        assert aligner.header.nreferences == len(GENOME)
    assert "closed" in repr(aligner)
    with pytest.raises(UsageError, match="the aligner is closed"):
        aligner.map("ACGT")
    INDEX.write(tmp_path / "i.readmap")
    with Index.open(tmp_path / "i.readmap") as index:
        assert index.count(["ACGT"], device=backends)[0] > 0
        assert index._loaded
    assert not index._loaded


def test_bases_of_the_reference() -> None:
    for name, letters in GENOME.items():
        assert INDEX.fetch(name) == letters.upper()
        start, end = sorted(below(DRAW, len(letters) + 1) for _ in range(2))
        assert INDEX.fetch(name, start, end) == letters[start:end].upper()
    name, letters = next(iter(GENOME.items()))
    with pytest.raises(UsageError, match="the index has no contig 'nothing'"):
        INDEX.fetch("nothing")
    for start, end in ((-1, 5), (5, 4), (0, len(letters) + 1)):
        with pytest.raises(UsageError, match="is not within it"):
            INDEX.fetch(name, start, end)


# Tables.


def table_of(hits: Hits) -> list[dict[str, Any]]:
    """The rows that a table is to have."""
    found = []
    for i in range(len(hits)):
        hit = hits.hit(i)
        row: dict[str, Any] = {"query": hits.first + i, "contig": hit.contig if hit else None}
        for name in ("ref_start", "ref_end", "strand", "mapq", "score", "edit_distance", "cigar"):
            row[name] = getattr(hit, name) if hit else None
        row["suboptimal_score"] = int(hits.suboptimal_scores[i]) if hit else None
        found.append(row)
    return found


@pytest.fixture(scope="module")
def hits(aligner: Aligner) -> Hits:
    return aligner.map([read.bases for read in READS]).to_host()


def test_arrow(hits: Hits) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(hits)
    assert table.num_rows == len(READS)
    assert [{**row} for row in table.to_pylist()] == [{**row} for row in _ordered(table_of(hits), table.column_names)]
    table.validate(full=True)


def test_an_arrow_table_keeps_its_memory() -> None:
    """Columns outlive the table they came from; the allocator overwrites freed memory."""
    pytest.importorskip("pyarrow")
    code = """
import gc, pyarrow, numpy
from readmap.formats import arrow
class Table:
    def __arrow_c_stream__(self, requested_schema=None):
        return arrow.stream_capsule([arrow.text_column('t', [b'one', b'two']), arrow.Column('n', numpy.arange(2))])
Table().__arrow_c_stream__()  # a capsule that nobody reads
table = pyarrow.table(Table())
gc.collect()
assert table.to_pydict() == {'t': ['one', 'two'], 'n': [0, 1]}, table
columns = [table.column(0), table.column(1)]
del table
gc.collect()
assert [column.to_pylist() for column in columns] == [['one', 'two'], [0, 1]]
"""
    environment = {**os.environ, "PYTHONMALLOC": "debug"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_arrow_columns_are_not_copied() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    numbers = np.arange(9, dtype=np.int32)

    class Table:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return arrow.stream_capsule([arrow.Column("n", numbers)])

    (chunk,) = pyarrow.table(Table()).column("n").chunks
    assert chunk.buffers()[1].address == numbers.ctypes.data


def _ordered(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in names} for row in rows]


def test_polars(hits: Hits) -> None:
    pytest.importorskip("polars")
    frame = hits.to_polars()
    assert frame.to_dicts() == _ordered(table_of(hits), frame.columns)


def test_pandas(hits: Hits) -> None:
    pandas = pytest.importorskip("pandas")
    frame = hits.to_pandas()
    expected = table_of(hits)
    for name in frame.columns:
        assert [None if pandas.isna(value) else value for value in frame[name]] == [row[name] for row in expected]


def test_tables_have_the_names_of_a_file(aligner: Aligner, folder: Path) -> None:
    pytest.importorskip("polars")
    (found,) = aligner.map_file(folder / "r.fq")
    assert found.to_polars()["read"].to_list() == [read.name.split()[0].removesuffix("/1") for read in READS]


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9])
def test_arrow_of_few_rows(rows: int) -> None:
    """Bitmaps end within a byte, or at its end."""
    pyarrow = pytest.importorskip("pyarrow")
    valid = np.arange(rows) % 3 != 1
    columns = [
        arrow.Column("n", np.arange(rows, dtype=np.int32), valid),
        arrow.text_column("t", [b"x" * i for i in range(rows)]),
        arrow.Column("b", np.arange(rows, dtype=np.uint8)),
    ]

    class Table:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return arrow.stream_capsule(columns)

    table = pyarrow.table(Table())
    table.validate(full=True)
    assert table.to_pydict() == {
        "n": [i if i % 3 != 1 else None for i in range(rows)],
        "t": ["x" * i for i in range(rows)],
        "b": list(range(rows)),
    }


def test_arrays_on_the_device(aligner: Aligner, hits: Hits) -> None:
    """They stay where they are, and other libraries take them there."""
    left = aligner.map([read.bases for read in READS], on_device=True)
    xp = aligner.backend.xp
    assert all(isinstance(getattr(left, name), xp.ndarray) for name in ("contigs", "mapqs", "cigar_operations"))
    assert hasattr(left.ref_starts, "__dlpack__")
    if aligner.backend.name != "cpu":
        assert left.mapqs.__cuda_array_interface__["shape"] == (len(READS),)
        assert "on a GPU" in repr(left)
    assert list(left) == list(hits)
    assert xp.from_dlpack(left.scores).tolist() == hits.scores.tolist()


def test_what_is_shown(hits: Hits, folder: Path) -> None:
    assert repr(hits) == f"<Hits of {len(READS)} sequences, {(hits.contigs >= 0).sum()} with a place>"
    shown = hits._repr_html_()
    assert shown.count("<tr>") == 9
    index = build_index(folder / "ref.fa", device="cpu")
    assert repr(index).startswith(f"<Index of {folder}/ref.fa: {len(GENOME)} contigs, ")
    assert len(repr(Aligner(index, device="cpu"))) < 300
