"""Parallel writes to tmpfs give the same files as sequential writes."""

import errno
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator

import numpy as np
import pytest

from readmap.formats import output, tmpfs
from readmap.formats.output import Output, open_output
from readmap.formats.tmpfs import MIN_BYTES, MIN_THREADS, is_tmpfs

SHARED_MEMORY = "/dev/shm"


@pytest.fixture
def disk() -> Iterator[pathlib.Path]:
    if not os.access(SHARED_MEMORY, os.W_OK):
        pytest.skip(f"there is no memory disk at {SHARED_MEMORY}")
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder:
        with open(pathlib.Path(folder) / "probe", "wb") as file:
            if not is_tmpfs(file.fileno()):
                pytest.skip(f"{SHARED_MEMORY} is no memory disk")
        yield pathlib.Path(folder)


def writes_pages(output: Output) -> bool:
    return output._pages is not None


def test_consecutive_writes_of_any_size(disk: pathlib.Path) -> None:
    rng = np.random.default_rng(1)
    sizes = [3, MIN_BYTES, MIN_BYTES - 1, MIN_BYTES + 4097, 0, 1, 2 * MIN_BYTES + 11, 100]
    pieces = [rng.integers(0, 256, size, np.uint8) for size in sizes]
    path = disk / "out"
    with open_output(str(path), MIN_THREADS) as output:
        assert writes_pages(output)
        for piece in pieces:
            output.write(piece)
        output.commit()
    assert path.read_bytes() == b"".join(piece.tobytes() for piece in pieces)


def test_few_threads_and_other_disks_use_write(disk: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with open_output(str(disk / "few"), MIN_THREADS - 1) as few, open_output("/dev/null", 8) as null:
        assert not writes_pages(few)
        assert not writes_pages(null)
    with open(tmp_path / "probe", "wb") as file:
        is_memory = is_tmpfs(file.fileno())
    with open_output(str(tmp_path / "out"), 8) as output:
        assert writes_pages(output) == is_memory


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts a small disk")
def test_a_full_disk_is_an_error_that_names_the_output(tmp_path: pathlib.Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={3 * MIN_BYTES}", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("disks cannot be mounted here")
    try:
        piece = np.zeros(MIN_BYTES + 1, np.uint8)
        with open_output(str(tmp_path / "out"), 8) as output:
            output.write(piece)
            output.write(piece)
            with pytest.raises(OSError, match="out") as raised:
                output.write(piece)
            assert raised.value.errno == errno.ENOSPC
        assert not list(tmp_path.iterdir())
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def appended(output: Output, path: pathlib.Path, size: int, origin: int = 0) -> tuple[int, int]:
    """Append a file; return the number of copied bytes, and its offset then."""
    with open(path, "rb", buffering=0) as file:
        file.seek(origin)
        return output.append(file, size), file.tell()


@pytest.mark.parametrize("piece", [MIN_BYTES, MIN_BYTES + 5, 1 << 30])
def test_consecutive_appended_files(disk: pathlib.Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(output, "APPENDED_BYTES", piece)
    rng = np.random.default_rng(2)
    sizes = [3, MIN_BYTES, 3 * MIN_BYTES + 4097, 0, MIN_BYTES - 1, MIN_BYTES + 11]
    parts = [rng.bytes(size) for size in sizes]
    with open_output(str(disk / "out"), MIN_THREADS) as made:
        made.write(b"begin")
        for part in parts:
            (disk / "part").write_bytes(b"left" + part + b"left out")
            assert appended(made, disk / "part", len(part), 4) == (len(part), 4 + len(part))
        made.write(b"end")
        made.commit()
    assert (disk / "out").read_bytes() == b"begin" + b"".join(parts) + b"end"


@pytest.mark.parametrize("there", [MIN_BYTES // 2, MIN_BYTES + 1])
def test_append_of_a_file_that_is_too_short(disk: pathlib.Path, there: int) -> None:
    part = np.random.default_rng(3).bytes(there)
    (disk / "part").write_bytes(part)
    with open_output(str(disk / "out"), MIN_THREADS) as made:
        assert appended(made, disk / "part", 2 * MIN_BYTES) == (there, there)
        made.write(b"end")
        made.commit()
    assert (disk / "out").read_bytes() == part + b"end"


def test_append_of_an_unreadable_file(disk: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    (disk / "part").write_bytes(bytes(2 * MIN_BYTES))
    monkeypatch.setattr(tmpfs.os, "preadv", fail)
    monkeypatch.setattr(output, "_copy_range", fail)
    with open_output(str(disk / "out"), MIN_THREADS) as made:
        assert appended(made, disk / "part", 2 * MIN_BYTES) == (0, 0)
        made.write(b"end")
        made.commit()
    assert (disk / "out").read_bytes() == b"end"
