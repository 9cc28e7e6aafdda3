"""Files are concatenated, with or without the system's copying between files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from readmap.dask import concat_output
from readmap.dask.concat_output import COPIED_BYTES, ConcatOutput
from readmap.formats import output
from readmap.formats.bgzf import END_OF_FILE
from readmap.formats.output import open_output

HEADER, PARTS = b"header\n", [b"a" * 10, b"", np.random.default_rng(4).bytes(COPIED_BYTES + 99), b"end"]

Copy = Callable[[int, int, int], int]
by_system = output._copy_range


def refusing(code: int) -> Copy:
    def copy(source: int, target: int, size: int) -> int:
        raise OSError(code, os.strerror(code))

    return copy


def little(source: int, target: int, size: int) -> int:
    return by_system(source, target, min(size, 1000))


def once(source: int, target: int, size: int) -> int:
    """Then it says that there is no more."""
    return by_system(source, target, 7) if size == len(PARTS[2]) else 0


def then_refusing(source: int, target: int, size: int) -> int:
    return by_system(source, target, 7) if size == len(PARTS[2]) else refusing(errno.EIO)(source, target, size)


def none(source: int, target: int, size: int) -> int:
    return 0


def join(folder: Path, level: int | None = None) -> bytes:
    with open_output(str(folder / "out")) as made:
        joined = ConcatOutput(made, level)
        if level is None:
            joined.begin(HEADER)
        for number, part in enumerate(PARTS):
            path = folder / f"{number}"
            path.write_bytes(part if level is None else part + END_OF_FILE)
            joined.add(path)
            assert not path.exists()
        joined.commit()
    return (folder / "out").read_bytes()


@pytest.mark.parametrize(
    "copy", [by_system, little, once, then_refusing, none, *map(refusing, (errno.EXDEV, errno.EIO))]
)
def test_parts_are_joined(copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_copy_range", copy)
    assert join(tmp_path) == HEADER + b"".join(PARTS)


def test_blocks_end_once(tmp_path: Path) -> None:
    assert join(tmp_path, 1) == b"".join(PARTS) + END_OF_FILE


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(descriptor: int, data: memoryview) -> int:
        return refusing(errno.ENOSPC)(descriptor, descriptor, len(data))

    monkeypatch.setattr(output, "_copy_range", refusing(errno.ENOSPC))
    monkeypatch.setattr(output.os, "write", write)
    with pytest.raises(OSError, match="No space left on device") as caught:
        join(tmp_path, 1)
    assert caught.value.filename == str(tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0"]


@pytest.mark.parametrize(("level", "size"), [(1, 0), (1, 10), (None, 500)])
def test_a_part_that_is_too_short_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: int | None, size: int
) -> None:
    """Without what ends blocks, or while it is read."""
    (tmp_path / "part").write_bytes(bytes(size))
    monkeypatch.setattr(
        concat_output.os, "fstat", lambda _, known=os.fstat: _Longer(known(_)) if level is None else known(_)
    )
    with open_output(str(tmp_path / "out")) as made, pytest.raises(EOFError, match="part: it has been shortened"):
        ConcatOutput(made, level).add(tmp_path / "part")


class _Longer:
    def __init__(self, status: os.stat_result) -> None:
        self.st_size = status.st_size + 20


@pytest.fixture
def _asked_again() -> Iterator[None]:
    output._copies_ranges.cache_clear()
    yield
    output._copies_ranges.cache_clear()


@pytest.mark.usefixtures("_asked_again")
@pytest.mark.parametrize(
    ("release", "can"), [("5.2.9-generic", False), ("5.3.0", True), ("6.18.44-x", True), ("4.18", False), ("x", False)]
)
def test_systems_that_copy(release: str, can: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.os, "uname", lambda: os.uname_result(("Linux", "host", release, "", "x86_64")))
    monkeypatch.setattr(output.os, "copy_file_range", lambda *_: 1, raising=False)
    assert output._copies_ranges() is can
    monkeypatch.delattr(output.os, "copy_file_range")
    output._copies_ranges.cache_clear()
    assert not output._copies_ranges()
