"""Parts become one file, whether or not the system copies between files by itself."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from readmap.dask.joining import COPIED_BYTES, NOT_COPIED, Joined
from readmap.formats.bgzf import END_OF_FILE
from readmap.formats.output import open_output

HEADER, PARTS = b"header\n", [b"a" * 10, b"", np.random.default_rng(4).bytes(COPIED_BYTES + 99), b"end"]

Copy = Callable[[int, int, int], int]
the_system = os.copy_file_range


def refusing(code: int) -> Copy:
    def copy(source: int, target: int, size: int) -> int:
        raise OSError(code, os.strerror(code))

    return copy


def little(source: int, target: int, size: int) -> int:
    return the_system(source, target, min(size, 1000))


def once(source: int, target: int, size: int) -> int:
    """Then it says that there is no more."""
    return the_system(source, target, 7) if size == len(PARTS[2]) else 0


def join(folder: Path, level: int | None = None) -> bytes:
    with open_output(str(folder / "out")) as output:
        joined = Joined(output, level)
        if level is None:
            joined.begin(HEADER)
        for number, part in enumerate(PARTS):
            path = folder / f"{number}"
            path.write_bytes(part if level is None else part + END_OF_FILE)
            joined.add(path)
            assert not path.exists()
        joined.commit()
    return (folder / "out").read_bytes()


@pytest.mark.parametrize("copy", [the_system, little, once, *map(refusing, sorted(NOT_COPIED))])
def test_parts_are_joined(copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "copy_file_range", copy)
    assert join(tmp_path) == HEADER + b"".join(PARTS)


def test_blocks_end_once(tmp_path: Path) -> None:
    assert join(tmp_path, 1) == b"".join(PARTS) + END_OF_FILE


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "copy_file_range", refusing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left on device") as caught:
        join(tmp_path)
    assert caught.value.filename == str(tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0"]
