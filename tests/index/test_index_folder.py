"""The index folder: round trips, an error for each kind of damage, and no partially written folder."""

import functools
import gzip
import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import fasta, index_of, random_bases

from readmap.backend import open_backend
from readmap.errors import DataError, IndexFolderError, UsageError
from readmap.formats import array_folder
from readmap.index import folder, suffix_tree
from readmap.index.building import build_index
from readmap.index.device import IndexStructure
from readmap.index.index import Index
from readmap.index.reference import Reference
from readmap.version import __version__

CONTIGS = {"one": random_bases(random.Random(1), 900, "ACGTACGTN"), "two": "R" + "ACCGT" * 40}
REFERENCE_ARRAYS = ("words", "barrier_blocks", "barrier_starts", "barrier_ends", "barrier_letters", "contig_starts")
ARRAYS = (*REFERENCE_ARRAYS, "suffix_array", "prefix_table", "edges")


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of(CONTIGS, structure="both")


@pytest.fixture
def path(index: Index, tmp_path: Path) -> Path:
    index.write(tmp_path / "ref.fa.readmap")
    return tmp_path / "ref.fa.readmap"


def arrays_of(index: Index) -> dict[str, Any]:
    arrays = {name: getattr(index.reference, name) for name in REFERENCE_ARRAYS}
    arrays |= {"suffix_array": index.suffixes, "prefix_table": index.prefix_table, "edges": index.edges}
    return {name: array for name, array in arrays.items() if array is not None}


def assert_same(found: Index, expected: Index) -> None:
    assert arrays_of(found).keys() == arrays_of(expected).keys()
    for name, array in arrays_of(expected).items():
        again = arrays_of(found)[name]
        assert again.dtype == array.dtype
        assert np.array_equal(again, array)
    assert found.reference.contigs == expected.reference.contigs
    assert (found.table_bases, found.source) == (expected.table_bases, expected.source)
    assert (found.structure, found.nodes) == (expected.structure, expected.nodes)


def contents(place: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in place.iterdir()}


@pytest.mark.parametrize("structure", ["array", "tree", "both"])
@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
def test_round_trip(tmp_path: Path, force_64_bits: bool, structure: str) -> None:
    made = index_of(CONTIGS, force_64_bits, structure)
    made.write(tmp_path / "a.readmap")
    opened = Index.open(tmp_path / "a.readmap")
    assert_same(opened, made)
    assert opened.suffixes.dtype == (np.uint64 if force_64_bits else np.uint32)
    assert opened.nbytes == made.nbytes == sum(array.nbytes for array in arrays_of(made).values())
    opened.check(open_backend("cpu"))
    opened.write(tmp_path / "b.readmap")
    assert contents(tmp_path / "a.readmap") == contents(tmp_path / "b.readmap")


@pytest.mark.parametrize(
    ("structure", "absent"), [("array", {"edges"}), ("tree", {"prefix_table"}), ("both", set[str]())]
)
def test_arrays_of_a_structure(tmp_path: Path, structure: str, absent: set[str]) -> None:
    """The folder has exactly the arrays that were built."""
    index_of(CONTIGS, structure=structure).write(tmp_path / "a.readmap")
    opened = Index.open(tmp_path / "a.readmap")
    assert opened.structure is IndexStructure(structure)
    assert opened.structure.has_array == ("prefix_table" not in absent)
    assert opened.structure.has_tree == ("edges" not in absent)
    assert set(arrays_of(opened)) == set(ARRAYS) - absent
    assert set(contents(tmp_path / "a.readmap")) == {"manifest.json", *(f"{n}.npy" for n in set(ARRAYS) - absent)}
    assert (opened.nodes == 0) == ("edges" in absent)
    opened.check(open_backend("cpu"))


def test_arrays_are_mapped_not_read(path: Path) -> None:
    assert all(isinstance(array, np.memmap) for array in arrays_of(Index.open(path)).values())


def test_manifest(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["format"] == "readmap index"
    assert manifest["version"] == folder.KIND.version
    assert manifest["made_by"] == f"readmap {__version__}"
    assert [contig[:2] for contig in manifest["contigs"]] == [["one", 900], ["two", 201]]
    assert set(manifest["arrays"]) == set(ARRAYS)
    assert sorted(contents(path)) == sorted(["manifest.json", *(f"{name}.npy" for name in ARRAYS)])


@pytest.mark.parametrize(
    ("fasta_name", "expected"),
    [("ref.fa", "ref.fa.readmap"), ("a/ref.fa.gz", "a/ref.fa.readmap"), ("x.fasta", "x.fasta.readmap")],
)
def test_default_folder(fasta_name: str, expected: str) -> None:
    assert folder.default_folder(fasta_name) == Path(expected)


def test_permissions(index: Index, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        index.write(tmp_path / "a.readmap")
    finally:
        os.umask(before)
    assert (tmp_path / "a.readmap").stat().st_mode & 0o777 == 0o750


# Damaged folders.


def rewrite_manifest(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("name", ARRAYS)
def test_missing_array(path: Path, name: str) -> None:
    (path / f"{name}.npy").unlink()
    with pytest.raises(IndexFolderError, match=rf"ref\.fa\.readmap: {name}\.npy is missing; build the index again"):
        Index.open(path)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("change", [-1, 1])
def test_truncated_or_longer_array(path: Path, name: str, change: int) -> None:
    file = path / f"{name}.npy"
    size = file.stat().st_size
    os.truncate(file, size + change)
    with pytest.raises(IndexFolderError, match=rf"{name}\.npy has {size + change} bytes, expected {size}"):
        Index.open(path)


LARGE_ARRAYS = ("words", "barrier_blocks", "suffix_array", "prefix_table", "edges")


@pytest.mark.parametrize("name", LARGE_ARRAYS)
@pytest.mark.parametrize("place", [0, -1])
def test_altered_bytes(backends: str, path: Path, name: str, place: int) -> None:
    """Opening does not notice changed bytes; loading on a device does, unless check=False."""
    file = path / f"{name}.npy"
    data = bytearray(file.read_bytes())
    data[128 if place == 0 else -1] ^= 1
    file.write_bytes(data)
    backend = open_backend(backends)
    message = rf"ref\.fa\.readmap: {name}\.npy was altered: 1 of its \d blocks, from block 0 on; build the index again"
    with pytest.raises(IndexFolderError, match=message):
        Index.open(path).to_device(backend, IndexStructure.BOTH)
    with pytest.raises(IndexFolderError, match=message):
        Index.open(path).check(backend)
    if name == "words":  # safe with any contents
        Index.open(path, check=False).to_device(backend, IndexStructure.BOTH)


@pytest.mark.parametrize("flip", [1, 8, 64])
def test_altered_header(path: Path, flip: int) -> None:
    """For every changed byte of an array's header, the index is rejected or the array is unchanged."""
    file = path / "barrier_starts.npy"
    data, expected = file.read_bytes(), np.load(file)
    refused = 0
    for place in range(128):
        file.write_bytes(data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :])
        try:
            found = Index.open(path).reference.barrier_starts
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected)
        except IndexFolderError:
            refused += 1
    assert refused > 50


def test_wrong_version(path: Path) -> None:
    rewrite_manifest(path, lambda manifest: manifest.update(version=folder.KIND.version + 1, source="ref.fa"))
    expected = f"has format version {folder.KIND.version + 1}, expected {folder.KIND.version}; "
    command = f"`readmap index ref.fa -o {path} --force` renews it"
    with pytest.raises(IndexFolderError, match=re.escape(expected + command)):
        Index.open(path)
    rewrite_manifest(path, lambda manifest: manifest.update(source="my ref.fa"))
    with pytest.raises(IndexFolderError, match=r"readmap index 'my ref\.fa' -o"):
        Index.open(path)
    for source in ("-", None, 5, "a\nb"):
        rewrite_manifest(path, functools.partial(dict.update, source=source))
        with pytest.raises(IndexFolderError, match=re.escape(expected + "build the index again") + "$"):
            Index.open(path)


def test_altered_manifest(path: Path) -> None:
    """Every changed, added or removed byte of the manifest is rejected, even at the end of a line."""
    data = (path / "manifest.json").read_bytes()
    for place in range(0, len(data), 3):
        byte, rest = data[place], data[place + 1 :]
        flip = (1, 8, 32, 128)[place % 4]
        for changed in (bytes([byte ^ flip]), b"", bytes([byte]) + b"\r", bytes([byte]) + b" "):
            (path / "manifest.json").write_bytes(data[:place] + changed + rest)
            with pytest.raises(IndexFolderError):
                Index.open(path)


def test_manifest_without_checksums(path: Path) -> None:
    """The manifest's own checksum is right."""
    for value in (None, 5):
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["arrays"]["words"]["checksums"] = value
        del manifest["blake2b"]
        (path / "manifest.json").write_bytes(array_folder._sealed(json.dumps(manifest, indent=1).encode()))
        with pytest.raises(IndexFolderError, match=r"manifest\.json is damaged \(words has no list of checksums\)"):
            Index.open(path)


@pytest.mark.parametrize("header", [b"(" * 5000, b"{'descr': '<u8', 'fortran_order': False, 'shape': (%d,)}" % 10**40])
def test_unreadable_array_header(path: Path, header: bytes) -> None:
    file = path / "words.npy"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    size = file.stat().st_size
    file.write_bytes(data.ljust(size, b" ")[:size])
    with pytest.raises(IndexFolderError, match=r"words\.npy is not an array"):
        Index.open(path)


def test_manifest_of_brackets(path: Path) -> None:
    (path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(IndexFolderError, match=r"manifest\.json"):
        Index.open(path)


@pytest.mark.parametrize("text", ["[]", "{}", '"readmap index"', '{"format": "another index", "version": 1}'])
def test_manifest_of_something_else(path: Path, text: str) -> None:
    (path / "manifest.json").write_text(text)
    with pytest.raises(IndexFolderError, match=r"manifest\.json does not describe a readmap index"):
        Index.open(path)


def test_not_an_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "empty").mkdir()
    for name in ("file", "empty", "nothing"):
        with pytest.raises(IndexFolderError, match=rf"{name} is no readmap index: it has no manifest\.json"):
            Index.open(tmp_path / name)


# Writing.


def test_existing_index_is_kept(index: Index, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless --force is given and all arrays can be written."""

    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    before = contents(path)
    other = index_of(["ACGT" * 30], structure="tree")
    with pytest.raises(IndexFolderError, match=r"ref\.fa\.readmap exists already: --force replaces it"):
        other.write(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", interrupt)
        with pytest.raises(KeyboardInterrupt):
            other.write(path, force=True)
    assert contents(path) == before
    other.write(path, force=True)
    assert_same(Index.open(path), other)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_symlink_target_is_replaced(index: Index, tmp_path: Path) -> None:
    target, link = tmp_path / "real.readmap", tmp_path / "link.readmap"
    index.write(target)
    link.symlink_to(target)
    before = target.stat().st_ino
    index.write(link, force=True)
    assert link.is_symlink()
    assert target.stat().st_ino != before
    assert Index.open(link).reference.bases == index.reference.bases


def test_other_folder_is_not_replaced(index: Index, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("text")
    (tmp_path / "file").write_text("text")
    for name in ("folder", "file"):
        with pytest.raises(IndexFolderError, match=f"{name} exists and is no readmap index: it is not replaced"):
            index.write(tmp_path / name, force=True)
    assert (tmp_path / "folder" / "thesis.txt").read_text() == (tmp_path / "file").read_text() == "text"


def test_copied_folder(index: Index, path: Path, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "elsewhere")
    shutil.rmtree(path)
    assert_same(Index.open(tmp_path / "elsewhere"), index)


# Building.


def test_same_index_from_gzip_and_with_any_threads(tmp_path: Path) -> None:
    data = fasta(CONTIGS)
    (tmp_path / "ref.fa").write_bytes(data)
    (tmp_path / "ref.fa.gz").write_bytes(gzip.compress(data[:500]) + gzip.compress(data[500:]))
    plain = build_index(tmp_path / "ref.fa", threads=1)
    packed = build_index(str(tmp_path / "ref.fa.gz"), threads=4)
    assert plain.source == str(tmp_path / "ref.fa")
    assert arrays_of(plain).keys() == arrays_of(packed).keys()
    for name, array in arrays_of(plain).items():
        assert np.array_equal(array, arrays_of(packed)[name])


@pytest.mark.parametrize(
    ("structure", "last"),
    [("array", ["prefix table"]), ("tree", ["suffix tree"]), ("both", ["prefix table", "suffix tree"])],
)
def test_build_progress(tmp_path: Path, structure: str, last: list[str]) -> None:
    (tmp_path / "ref.fa").write_bytes(fasta(CONTIGS))
    reported: list[tuple[str, int, int]] = []
    build_index(tmp_path / "ref.fa", structure=structure, progress=lambda *told: reported.append(told))
    assert ("read", len(fasta(CONTIGS)), 0) in reported
    stages = list(dict.fromkeys(stage for stage, *_ in reported))
    assert stages == ["read", "sort suffixes", "gather suffixes", *last]


def test_writing_while_building(tmp_path: Path) -> None:
    """Each array is written as soon as it is built."""
    (tmp_path / "ref.fa").write_bytes(fasta(CONTIGS))
    with folder.KIND.writing(tmp_path / "x.readmap", 2, False) as output:
        there: list[list[str]] = []
        (beside,) = (path for path in tmp_path.iterdir() if path.is_dir())
        built = build_index(
            tmp_path / "ref.fa",
            structure="both",
            output=output,
            progress=lambda *_: there.append([path.name for path in beside.iterdir()]),
        )
        output.commit()
    assert not there[0]
    assert {"words.npy", "suffix_array.npy", "prefix_table.npy"} <= {*there[-1]}
    built.write(tmp_path / "y.readmap")
    assert contents(tmp_path / "x.readmap") == contents(tmp_path / "y.readmap")


def test_build_memory(tmp_path: Path) -> None:
    """Memory is reported once, after reading the reference; a tree takes more than the array and more than its own
    size.
    """
    (tmp_path / "ref.fa").write_bytes(fasta(CONTIGS))
    reported: dict[str, list[int]] = {structure: [] for structure in ("array", "tree", "both")}
    for structure, memory in reported.items():
        build_index(tmp_path / "ref.fa", structure=structure, report_memory=memory.append)
    (array,), (tree,), (both,) = reported.values()
    assert max(array, tree) < both
    made = build_index(tmp_path / "ref.fa", structure="both")
    assert made.edges is not None
    assert tree > made.suffixes.nbytes + made.edges.nbytes


def test_reference_too_large_for_a_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference is rejected before sorting."""
    (tmp_path / "ref.fa").write_bytes(fasta(CONTIGS))
    monkeypatch.setattr(suffix_tree, "MAX_TREE_BASES", 900 + 1 + 201)
    reported: list[str] = []
    for structure in ("tree", "both"):
        with pytest.raises(UsageError, match=r"a suffix tree supports fewer than 2\^32 bases, the reference has 1,103"):
            build_index(tmp_path / "ref.fa", structure=structure, progress=lambda stage, *_: reported.append(stage))
    assert set(reported) == {"read"}
    assert build_index(tmp_path / "ref.fa").structure is IndexStructure.ARRAY


def test_same_index_on_any_device(backends: str, tmp_path: Path) -> None:
    (tmp_path / "ref.fa").write_bytes(fasta(CONTIGS))
    assert_same(
        build_index(tmp_path / "ref.fa", structure="both", device=backends),
        build_index(tmp_path / "ref.fa", structure="both", device="cpu", threads=1),
    )


def test_build_error_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "ref.fa").write_text("text")
    with pytest.raises(DataError, match=r"ref\.fa: expected FASTA"):
        build_index(tmp_path / "ref.fa")
    with pytest.raises(FileNotFoundError, match=r"none\.fa"):
        build_index(tmp_path / "none.fa")


def test_folder_has_all_reference_arrays() -> None:
    """Every array of Reference must be stored."""
    assert {*Reference.__dataclass_fields__} == {*REFERENCE_ARRAYS, "contigs"}
