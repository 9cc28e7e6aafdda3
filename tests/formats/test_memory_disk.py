"""Several threads write to a memory disk what one writes elsewhere."""

import errno
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator

import numpy as np
import pytest

from readmap.formats.memory_disk import LEAST_BYTES, LEAST_THREADS, is_memory_disk
from readmap.formats.output import Output, open_output

SHARED_MEMORY = "/dev/shm"


@pytest.fixture
def disk() -> Iterator[pathlib.Path]:
    if not os.access(SHARED_MEMORY, os.W_OK):
        pytest.skip(f"there is no memory disk at {SHARED_MEMORY}")
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder:
        with open(pathlib.Path(folder) / "probe", "wb") as file:
            if not is_memory_disk(file.fileno()):
                pytest.skip(f"{SHARED_MEMORY} is no memory disk")
        yield pathlib.Path(folder)


def writes_pages(output: Output) -> bool:
    return output._pages is not None


def test_pieces_of_any_size_stand_behind_each_other(disk: pathlib.Path) -> None:
    rng = np.random.default_rng(1)
    sizes = [3, LEAST_BYTES, LEAST_BYTES - 1, LEAST_BYTES + 4097, 0, 1, 2 * LEAST_BYTES + 11, 100]
    pieces = [rng.integers(0, 256, size, np.uint8) for size in sizes]
    path = disk / "out"
    with open_output(str(path), LEAST_THREADS) as output:
        assert writes_pages(output)
        for piece in pieces:
            output.write(piece)
        output.commit()
    assert path.read_bytes() == b"".join(piece.tobytes() for piece in pieces)


def test_few_threads_and_other_disks_write_as_ever(disk: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with open_output(str(disk / "few"), LEAST_THREADS - 1) as few, open_output("/dev/null", 8) as null:
        assert not writes_pages(few)
        assert not writes_pages(null)
    with open(tmp_path / "probe", "wb") as file:
        is_memory = is_memory_disk(file.fileno())
    with open_output(str(tmp_path / "out"), 8) as output:
        assert writes_pages(output) == is_memory


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts a small disk")
def test_a_full_disk_is_an_error_that_names_the_output(tmp_path: pathlib.Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={3 * LEAST_BYTES}", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("disks cannot be mounted here")
    try:
        piece = np.zeros(LEAST_BYTES + 1, np.uint8)
        with open_output(str(tmp_path / "out"), 8) as output:
            output.write(piece)
            output.write(piece)
            with pytest.raises(OSError, match="out") as raised:
                output.write(piece)
            assert raised.value.errno == errno.ENOSPC
        assert not list(tmp_path.iterdir())
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
