"""ArrayFiles: the bytes of np.save, with checksums of blocks, for whole arrays and parts; errors of a full disk."""

import contextlib
import errno
import io
import itertools
import os
import random
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import write_folder
from numpy.typing import NDArray

from readmap.errors import IndexFolderError
from readmap.formats.array_files import ArrayFiles
from readmap.formats.array_folder import FolderKind, sizes

BLOCK = 64

ARRAYS = {
    "bytes": np.arange(200, dtype=np.uint8),
    "words": np.arange(1000, dtype=np.uint64) << np.uint64(40),
    "rows": np.arange(120, dtype=np.int32).reshape(-1, 4),
    "empty": np.empty(0, np.int64),
    "block": np.arange(BLOCK // 2, dtype=np.uint16),
    "codes": np.frombuffer(b"ACGTN", "S1"),
}


def checksum(data: NDArray[np.uint8]) -> int:
    """Return a checksum that depends on the order of the bytes."""
    return int.from_bytes(data.tobytes()[:7], "little") * 31 + int(data.sum())


KIND = FolderKind("index", "readmap index", 1, IndexFolderError, checksum, BLOCK)


def saved(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def described(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return the expected manifest entry."""
    held = array.reshape(-1).view(np.uint8)
    sums = [checksum(held[i : i + BLOCK]) for i in range(0, len(held), BLOCK)]
    return {"dtype": str(array.dtype), "shape": [*array.shape], "bytes": len(saved(array)), "checksums": sums}


@pytest.fixture
def files(tmp_path: Path) -> Generator[ArrayFiles, None, None]:
    with ArrayFiles(tmp_path, checksum, BLOCK, 3, contextlib.nullcontext) as files:
        yield files


def test_whole_arrays(files: ArrayFiles, tmp_path: Path) -> None:
    for name, array in ARRAYS.items():
        files.add(name, array)
    found = files.close()
    assert [*found] == [*ARRAYS]
    for name, array in ARRAYS.items():
        assert (tmp_path / f"{name}.npy").read_bytes() == saved(array)
        assert found[name] == described(array)
        assert np.array_equal(np.load(tmp_path / f"{name}.npy", mmap_mode="r"), array)


@pytest.mark.parametrize("seed", range(8))
def test_arrays_in_parts(files: ArrayFiles, tmp_path: Path, seed: int) -> None:
    """Parts of any size are written in any order, and may be changed afterwards."""
    draw = random.Random(seed)
    for name, array in ARRAYS.items():
        sink = files.array(name, array.dtype, array.shape)
        cuts = sorted({0, len(array), *(draw.randrange(len(array) + 1) for _ in range(draw.randrange(9)))})
        parts = [(begin, array[begin:end].copy()) for begin, end in itertools.pairwise(cuts)]
        draw.shuffle(parts)
        for begin, part in parts:
            wait = sink.write(begin, part)
            wait()
            part.view(np.uint8)[:] = 255
    found = files.close()
    for name, array in ARRAYS.items():
        assert (tmp_path / f"{name}.npy").read_bytes() == saved(array)
        assert found[name] == described(array)


def test_a_0_dimensional_array(files: ArrayFiles, tmp_path: Path) -> None:
    array = np.array(77, np.int64)
    files.add("one", array)
    assert files.close() == {"one": described(array)}
    assert (tmp_path / "one.npy").read_bytes() == saved(array)


def test_missing_and_misshapen_parts(files: ArrayFiles) -> None:
    sink = files.array("rows", np.int32, (10, 4))
    sink.write(2, np.zeros((3, 4), np.int32))
    for start, rows in ((0, np.zeros((3, 4), np.int64)), (0, np.zeros(12, np.int32)), (8, np.zeros((3, 4), np.int32))):
        with pytest.raises(ValueError, match="expected int32"):
            sink.write(start, rows)
    with pytest.raises(ValueError, match="112 of 160 bytes have not been written"):
        files.close()


def test_arrays_are_written_in_the_background(files: ArrayFiles, tmp_path: Path) -> None:
    files.add("words", ARRAYS["words"])
    part = np.full(BLOCK, 7, np.uint8)
    wait = files.array("bytes", np.uint8, (2 * BLOCK,)).write(BLOCK, part)
    wait()
    assert (tmp_path / "bytes.npy").read_bytes()[-BLOCK:] == part.tobytes()


def pieces(write: Callable[..., int]) -> Callable[..., int]:
    """Simulate short writes."""
    return lambda file, data, place: write(file, data[: max(len(data) // 2, 1)], place)


def test_short_writes(monkeypatch: pytest.MonkeyPatch, files: ArrayFiles, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "pwrite", pieces(os.pwrite))
    files.add("words", ARRAYS["words"])
    files.close()
    assert (tmp_path / "words.npy").read_bytes() == saved(ARRAYS["words"])


@pytest.mark.parametrize("reserves", [errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF])
def test_a_file_system_without_preallocation(
    monkeypatch: pytest.MonkeyPatch, files: ArrayFiles, tmp_path: Path, reserves: int
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(reserves, os.strerror(reserves))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    files.array("words", np.uint64, (1000,)).write(0, ARRAYS["words"])
    files.close()
    assert (tmp_path / "words.npy").read_bytes() == saved(ARRAYS["words"])


@pytest.mark.parametrize("call", ["pwrite", "posix_fallocate"])
def test_a_full_disk_names_the_folder_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fill() -> None:
        with KIND.writing(tmp_path / "x", 2, False) as output:
            output.array("words", np.uint64, (1000,)).write(0, ARRAYS["words"])
            output.finish()

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="No space left on device, while writing the index") as raised:
        fill()
    assert raised.value.filename == str(tmp_path / "x")
    assert not [*tmp_path.iterdir()]


def test_a_disk_that_is_full_when_a_file_is_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A network file system reports a full disk on close; the target stays unchanged."""
    write_folder(KIND, tmp_path / "x", {}, {"bytes": ARRAYS["bytes"]})
    before = sizes(tmp_path / "x")
    close = os.close

    def fail(file: int) -> None:
        is_array = os.readlink(f"/proc/self/fd/{file}").endswith(".npy")
        close(file)
        if is_array:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

    def replace() -> None:
        with KIND.writing(tmp_path / "x", 2, True) as output:
            output.add("words", ARRAYS["words"])
            output.commit()

    monkeypatch.setattr(os, "close", fail)
    with pytest.raises(OSError, match="Disk quota exceeded, while writing the index"):
        replace()
    assert [*tmp_path.iterdir()] == [tmp_path / "x"]
    assert sizes(tmp_path / "x") == before


def test_an_error_of_the_caller_is_not_changed(tmp_path: Path) -> None:
    def fill() -> None:
        with KIND.writing(tmp_path / "x", 2, False) as output:
            output.add("words", ARRAYS["words"])
            raise OSError(errno.EIO, "broken", "reads.fq")

    with pytest.raises(OSError, match=r"^\[Errno 5\] broken: 'reads\.fq'$"):
        fill()
    assert not [*tmp_path.iterdir()]


def test_no_file_is_opened_after_an_interrupt(tmp_path: Path) -> None:
    """Another thread may still be building arrays."""
    known: list[ArrayFiles] = []

    def interrupted() -> None:
        with KIND.writing(tmp_path / "x", 2, False) as output:
            known.append(output)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(OSError, match="Bad file descriptor"):
        known[0].add("words", ARRAYS["words"])
    assert not [*tmp_path.iterdir()]


def test_parts_and_whole_arrays_give_equal_folders(tmp_path: Path) -> None:
    write_folder(KIND, tmp_path / "once", {"source": "x"}, ARRAYS, {"contigs": [1]})
    with KIND.writing(tmp_path / "parts", 1, False) as output:
        for name, array in ARRAYS.items():
            sink = output.array(name, array.dtype, array.shape)
            for start in range(0, len(array), 7):
                sink.write(start, array[start : start + 7])
        output.describe({"source": "x"}, {"contigs": [1]})
        output.finish()
        assert not (tmp_path / "parts").exists()
        assert sizes(output.path) == sizes(tmp_path / "once")
        output.commit()
    found = [{file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("once", "parts")]
    assert found[0] == found[1]
    assert len(found[0]) == len(ARRAYS) + 1
