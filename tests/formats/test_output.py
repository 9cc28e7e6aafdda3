"""Outputs: files appear complete or not at all, streams are written directly, and errors name the output."""

import contextlib
import errno
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from alignment_files import file_size_limit
from alignment_files import names_in as names

from readmap.formats.bgzf import BgzfOutput
from readmap.formats.output import commit_together, open_output


def test_a_file_appears_when_it_is_committed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out.sam"
    with open_output(str(path)) as output:
        assert output.name == str(path)
        output.write(b"@HD\n")
        output.write(memoryview(bytearray(b"read\n")))
        output.write(np.frombuffer(b"xxread 2\nxx", np.uint8)[2:9])
        output.write(b"")
        output.write(np.empty(0, np.uint8))
        assert not path.exists()
        assert len(names(tmp_path)) == 1
        output.commit()
        assert path.read_bytes() == b"@HD\nread\nread 2\n"
    assert names(tmp_path) == ["out.sam"]


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("before", [None, b"old"])
def test_an_uncommitted_output_leaves_no_file(
    tmp_path: pathlib.Path, error: type[BaseException] | None, before: bytes | None
) -> None:
    path = tmp_path / "out.sam"
    if before:
        path.write_bytes(before)
    with contextlib.suppress(ValueError, KeyboardInterrupt, SystemExit), open_output(str(path)) as output:
        output.write(b"new")
        if error:
            raise error
    assert names(tmp_path) == (["out.sam"] if before else [])
    assert not before or path.read_bytes() == before


def test_finish_commit_and_abort_are_idempotent(tmp_path: pathlib.Path) -> None:
    output = open_output(str(tmp_path / "out.sam"))
    output.commit()
    output.abort()
    output.commit()
    assert names(tmp_path) == ["out.sam"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        output.write(b"late")


def test_a_late_write_does_not_get_into_another_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread is about to write when the output is aborted and the next file gets its descriptor."""
    aborted, is_about_to_write, may_write = open_output(str(tmp_path / "aborted")), threading.Event(), threading.Event()
    write = os.write

    def slowly(descriptor: int, data: memoryview) -> int:
        is_about_to_write.set()
        assert may_write.wait(20)
        return write(descriptor, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", slowly)
        thread = threading.Thread(target=aborted.write, args=(b"late",))
        thread.start()
        assert is_about_to_write.wait(20)
        before = len(os.listdir("/proc/self/fd"))
        aborted.abort()
        with open_output(str(tmp_path / "other")) as other:
            may_write.set()
            thread.join(20)
            other.write(b"other")
            other.commit()
    assert (tmp_path / "other").read_bytes() == b"other"
    assert names(tmp_path) == ["other"]
    assert len(os.listdir("/proc/self/fd")) == before - 2  # the file and its lock
    with pytest.raises(OSError, match="Bad file descriptor"):
        aborted.write(b"later")


@pytest.mark.parametrize("full", [None, 0, 1])
def test_commit_together(tmp_path: pathlib.Path, full: int | None) -> None:
    """Buffered data, such as blocks, are written before any output is renamed."""
    paths = ["/dev/full" if number == full else str(tmp_path / f"{number}.gz") for number in range(2)]
    with contextlib.ExitStack() as stack:
        outputs = [stack.enter_context(BgzfOutput(open_output(path), 1)) for path in paths]
        for output in outputs:
            output.write(b"read\n")
        if full is None:
            commit_together(outputs)
        else:
            with pytest.raises(OSError, match="No space left"):
                commit_together(outputs)
    assert names(tmp_path) == ([] if full is not None else ["0.gz", "1.gz"])


def test_a_relative_path_and_a_long_name(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "\u00e9" * 127
    with open_output(name) as output:
        output.commit()
    assert names(tmp_path) == [name]


def test_two_outputs_of_one_name(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out.sam"
    with open_output(str(path)) as first, open_output(str(path)) as second:
        first.write(b"first")
        second.write(b"second")
        first.commit()
        second.commit()
    assert path.read_bytes() == b"second"
    assert names(tmp_path) == ["out.sam"]


@contextlib.contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_mode_of_a_new_file(tmp_path: pathlib.Path, mask: int, mode: int) -> None:
    path = tmp_path / "out.sam"
    with umask(mask), open_output(str(path)) as output:
        output.commit()
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_mode_of_an_existing_file_stays(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out.sam"
    path.touch()
    path.chmod(0o640)
    with open_output(str(path)) as output:
        output.commit()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("has_target", [True, False])
def test_a_symbolic_link_stays(tmp_path: pathlib.Path, has_target: bool) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    if has_target:
        (folder / "target.sam").write_bytes(b"old")
    link = tmp_path / "out.sam"
    link.symlink_to(pathlib.Path("elsewhere") / "target.sam")
    with open_output(str(link)) as output:
        output.write(b"new")
        output.commit()
    assert link.is_symlink()
    assert (folder / "target.sam").read_bytes() == b"new"
    assert names(folder) == ["target.sam"]


def test_folders(tmp_path: pathlib.Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_output(str(tmp_path))
    with pytest.raises(FileNotFoundError) as error:
        open_output(str(tmp_path / "missing" / "out.sam"))
    assert error.value.filename == str(tmp_path / "missing" / "out.sam")
    assert f"writing into {tmp_path / 'missing'}" in str(error.value)
    with pytest.raises(FileNotFoundError):
        open_output(str(tmp_path / "missing") + "/")
    with pytest.raises(FileNotFoundError):
        open_output("")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        open_output(str(tmp_path / "file" / "out.sam"))


@contextlib.contextmanager
def not_root() -> Iterator[None]:
    """Switch to another user, as root may write anywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_unwritable_paths() -> None:
    # Not in tmp_path, which other users may not enter.
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "out.sam"
        path.write_bytes(b"old")
        path.chmod(0o444)
        folder.chmod(0o777)
        with not_root(), pytest.raises(PermissionError) as error:
            open_output(str(path))
        assert str(error.value) == f"[Errno 13] Permission denied: '{path}'"
        path.chmod(0o666)
        folder.chmod(0o555)
        for target in (path, folder / "new.sam"):
            with not_root(), pytest.raises(PermissionError) as error:
                open_output(str(target))
            assert str(error.value) == f"[Errno 13] Permission denied (writing into {folder}): '{target}'"
        folder.chmod(0o755)
        assert names(folder) == ["out.sam"]


def test_dev_null_and_dev_full() -> None:
    with open_output("/dev/null") as output:
        output.write(bytes(10_000_000))
        output.commit()
    with open_output("/dev/full") as output, pytest.raises(OSError, match="/dev/full") as error:
        output.write(b"x")
    assert error.value.errno == errno.ENOSPC
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_fifo_is_written_directly(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    with open_output(str(path)) as output:
        output.write(bytes(1_000_000))
        output.commit()
    reader.join(10)
    assert got == [bytes(1_000_000)]
    assert names(tmp_path) == ["fifo"]


@pytest.mark.parametrize("path", [None, "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output(path: str | None, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with open_output(path) as output:
        assert output.name == (path if path and path != "-" else "standard output")
        output.write(b"@HD\n")
        output.commit()
    os.write(1, b"after\n")
    assert capfdbinary.readouterr().out == b"@HD\nafter\n"


PROGRAM = """
import sys
from readmap.formats.output import open_output
print("before")
with open_output(sys.argv[1]) as output:
    output.write(b"x" * 10_000_000)
    output.commit()
print("after")
"""


@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_standard_output_redirected_to_a_file(tmp_path: pathlib.Path, mode: str) -> None:
    path = tmp_path / "out.sam"
    path.write_bytes(b"old\n")
    inode = path.stat().st_ino
    with open(path, mode) as file:
        for name in ("-", "/dev/stdout"):
            subprocess.run([sys.executable, "-c", PROGRAM, name], stdout=file, check=True)
    old = b"old\n" if mode == "ab" else b""
    assert path.read_bytes() == old + (b"before\n" + b"x" * 10_000_000 + b"after\n") * 2
    assert path.stat().st_ino == inode


def test_a_broken_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open_output(f"/dev/fd/{writing}") as output, pytest.raises(BrokenPipeError):
        output.write(b"x")
    os.close(writing)


def test_standard_output_is_closed() -> None:
    saved = os.dup(1)
    os.close(1)
    try:
        with pytest.raises(OSError, match="standard output"):
            open_output(None)
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def test_a_full_disk_names_the_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out.sam"
    with file_size_limit(1_000_000), open_output(str(path)) as output:
        with pytest.raises(OSError, match="File too large") as error:
            output.write(bytes(3_000_000))
        assert error.value.filename == str(path)
    assert names(tmp_path) == []


def test_a_failing_rename(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out.sam"
    with open_output(str(path)) as output:
        path.mkdir()
        with pytest.raises(IsADirectoryError) as error:
            output.commit()
        assert str(error.value) == f"[Errno 21] Is a directory: '{path}'"
    assert names(tmp_path) == ["out.sam"]
