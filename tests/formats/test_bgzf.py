"""BgzfOutput: valid blocks that do not depend on writes and threads; errors are raised in the caller's thread."""

import contextlib
import errno
import gzip
import itertools
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np
import pysam
import pytest

from readmap.formats import bgzf
from readmap.formats.bgzf import BLOCK_BYTES, END_OF_FILE, GROUP_BYTES, BgzfOutput, Blocks, compress_with_package
from readmap.formats.output import open_output


class Memory:
    """A sink in memory; raises `error` after `good` writes."""

    name = "memory"

    def __init__(self, error: BaseException | None = None, good: int = 0) -> None:
        self.data = bytearray()
        self.error = error
        self.good = good
        self.events: list[str] = []

    def write(self, data: memoryview | bytes | np.ndarray) -> None:
        if self.error and self.good == 0:
            raise self.error
        self.good -= 1
        self.data += data

    def finish(self) -> None:
        pass

    def commit(self) -> None:
        self.events.append("commit")

    def abort(self) -> None:
        self.events.append("abort")


def written(*pieces: memoryview | bytes | np.ndarray, threads: int = 2, level: int = bgzf.LEVEL) -> bytes:
    memory = Memory()
    with BgzfOutput(memory, threads, level) as output:
        for piece in pieces:
            output.write(piece)
        output.commit()
    assert memory.events == ["commit", "abort"]
    return bytes(memory.data)


def blocks(data: bytes) -> list[bytes]:
    """Decompress the blocks with zlib and check every byte of headers and trailers against the specification."""
    contents = []
    while data:
        assert data[:16] == b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0"
        length = int.from_bytes(data[16:18], "little") + 1
        inflater = zlib.decompressobj(-15)
        content = inflater.decompress(data[18 : length - 8])
        assert inflater.eof
        assert inflater.unused_data == b""
        assert data[length - 8 : length - 4] == zlib.crc32(content).to_bytes(4, "little")
        assert data[length - 4 : length] == len(content).to_bytes(4, "little")
        contents.append(content)
        data = data[length:]
    return contents


def sam_like(count: int, seed: int = 1) -> bytes:
    random = np.random.default_rng(seed)
    letters = np.frombuffer(b"ACGT\t0123456789\n", np.uint8)
    return letters[random.integers(0, len(letters), count)].tobytes()


def random_bytes(count: int) -> bytes:
    return np.random.default_rng(2).bytes(count)


@pytest.mark.parametrize("pieces", [[], [b""], [b"", b""]])
def test_empty(pieces: list[bytes]) -> None:
    assert written(*pieces) == END_OF_FILE
    assert END_OF_FILE.hex() == "1f8b08040000000000ff0600424302001b0003000000000000000000"


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("make", [sam_like, random_bytes, bytes], ids=["SAM", "random", "zeros"])
@pytest.mark.parametrize("count", [1, 2, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, GROUP_BYTES, 3_000_000])
def test_blocks(make: Callable[[int], bytes], count: int, level: int) -> None:
    data = make(count)
    result = written(data, level=level)
    assert result.endswith(END_OF_FILE)
    assert blocks(result) == [*(data[i : i + BLOCK_BYTES] for i in range(0, count, BLOCK_BYTES)), b""]
    assert gzip.decompress(result) == data


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_incompressible_data_are_stored(level: int) -> None:
    data = random_bytes(BLOCK_BYTES)
    result = written(data, level=level)
    assert len(result) == 18 + 5 + BLOCK_BYTES + 8 + len(END_OF_FILE)
    assert result[18:23] == b"\x01" + BLOCK_BYTES.to_bytes(2, "little") + (BLOCK_BYTES ^ 0xFFFF).to_bytes(2, "little")
    assert result[23 : 23 + BLOCK_BYTES] == data


@pytest.mark.parametrize("count", [100, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 1_000_000, None])
def test_output_does_not_depend_on_writes(count: int | None) -> None:
    data = sam_like(2_500_000)
    if count is None:
        cuts = np.random.default_rng(3).geometric(1e-4, 1000).cumsum()
        cuts = [0, *cuts[cuts < len(data)].tolist(), len(data)]
    else:
        cuts = [*range(0, len(data), count), len(data)]
    pieces = [data[begin:end] for begin, end in itertools.pairwise(cuts)]
    assert written(b"", *pieces, b"") == written(data)


def test_single_bytes_and_other_types() -> None:
    data = sam_like(10_000)
    array = np.frombuffer(data, np.uint8)
    whole = written(data)
    assert written(*(data[i : i + 1] for i in range(len(data)))) == whole
    assert written(memoryview(data)) == whole
    assert written(array[:5000], array[5000:], array[:0]) == whole


def test_output_does_not_depend_on_threads() -> None:
    data = sam_like(20_000_000) + random_bytes(3_000_000)
    whole = written(data, threads=1)
    assert all(written(data, threads=threads) == whole for threads in (1, 2, 4, 16))
    assert gzip.decompress(whole) == data


def test_the_callers_data_may_be_overwritten() -> None:
    data = sam_like(5_000_000)
    buffer = np.empty(700_000, np.uint8)
    memory = Memory()
    with BgzfOutput(memory, 2) as output:
        for start in range(0, len(data), len(buffer)):
            piece = data[start : start + len(buffer)]
            buffer[: len(piece)] = np.frombuffer(piece, np.uint8)
            output.write(buffer[: len(piece)])
            buffer[:] = 0
        output.commit()
    assert gzip.decompress(memory.data) == data


def test_pysam_and_bgzip_read_it(tmp_path: pathlib.Path) -> None:
    data = sam_like(3_000_000)
    path = tmp_path / "out.gz"
    with BgzfOutput(open_output(str(path)), 2) as output:
        assert output.name == str(path)
        output.write(data)
        assert not path.exists()
        output.commit()
    assert [each.name for each in tmp_path.iterdir()] == ["out.gz"]
    with pysam.BGZFile(str(path)) as file:
        assert file.read() == data
    if shutil.which("bgzip") is None:
        pytest.skip("bgzip is not installed; pysam read the file")
    subprocess.run(["bgzip", "-t", str(path)], check=True)


def test_samtools_reads_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out.sam.gz"
    text = b"@HD\tVN:1.6\n@SQ\tSN:chr\tLN:1000\n" + b"".join(
        b"read%d\t0\tchr\t%d\t60\t4M\t*\t0\t0\tACGT\tIIII\n" % (i, i % 900 + 1) for i in range(50_000)
    )
    with BgzfOutput(open_output(str(path)), 2) as output:
        output.write(text)
        output.commit()
    with pysam.AlignmentFile(str(path)) as file:
        assert sum(1 for _ in file) == 50_000
    if shutil.which("samtools") is None:
        pytest.skip("samtools is not installed; pysam read the file")
    # samtools warns if the end-of-file block is missing.
    check = subprocess.run(["samtools", "quickcheck", "-v", str(path)], capture_output=True, text=True)
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device", "memory"), BrokenPipeError()])
@pytest.mark.parametrize("good", [0, 1, 3])
def test_an_error_is_raised_in_write(error: OSError, good: int) -> None:
    memory = Memory(error, good)
    with BgzfOutput(memory, 1) as output:
        output.write(bytes((good + bgzf.GROUPS_A_THREAD) * GROUP_BYTES))
        with pytest.raises(type(error)) as raised:
            output.write(bytes(GROUP_BYTES))
    assert raised.value is error
    assert memory.events == ["abort"]


def test_an_error_is_raised_in_commit() -> None:
    for good in (0, 1):
        memory = Memory(OSError("full"), good)
        with BgzfOutput(memory, 1) as output:
            output.write(b"few")
            with pytest.raises(OSError, match="full"):
                output.commit()
        assert memory.events == ["abort"]


def test_an_error_names_the_file() -> None:
    with BgzfOutput(open_output("/dev/full"), 2) as output:
        output.write(b"x")
        with pytest.raises(OSError, match="/dev/full") as error:
            output.commit()
    assert error.value.errno == errno.ENOSPC


def test_an_error_of_a_compressing_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(data: object, level: int) -> NoReturn:
        raise MemoryError

    monkeypatch.setattr(bgzf, "_block", fail)
    memory = Memory()
    with BgzfOutput(memory, 2) as output:
        output.write(b"x")
        with pytest.raises(MemoryError):
            output.commit()
    assert memory.events == ["abort"]


def compressing_threads() -> int:
    return sum(thread.name.startswith("readmap-compress") for thread in threading.enumerate())


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, SystemExit])
def test_an_uncommitted_output_leaves_no_file(tmp_path: pathlib.Path, error: type[BaseException] | None) -> None:
    path = tmp_path / "out.gz"
    endings = contextlib.suppress(ValueError, KeyboardInterrupt, SystemExit)
    with endings, BgzfOutput(open_output(str(path)), 4) as output:
        output.write(sam_like(10_000_000))
        assert compressing_threads() > 0
        if error:
            raise error
    assert list(tmp_path.iterdir()) == []
    assert compressing_threads() == 0


def test_abort_does_not_wait_for_queued_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Semaphore(0)

    def slowly(parts: Sequence[np.ndarray], level: int) -> Blocks:
        begun.release()
        time.sleep(0.5)
        return compress_with_package(parts, level)

    monkeypatch.setattr(bgzf, "GROUPS_A_THREAD", 20)
    output = BgzfOutput(Memory(), 1, compress=slowly)
    output.write(bytes(10 * GROUP_BYTES))
    begun.acquire()
    began = time.perf_counter()
    output.abort()
    assert time.perf_counter() - began < 2
    assert not begun.acquire(blocking=False)


@pytest.mark.parametrize("size", [10, GROUP_BYTES, 5 * GROUP_BYTES + 10])
@pytest.mark.parametrize("before", [0, 10])
def test_borrowed_data_are_released_once_read(before: int, size: int) -> None:
    """Without a further write; the bytes change at that moment."""
    memory, is_done = Memory(), threading.Event()
    lent = np.frombuffer(sam_like(size), np.uint8).copy()
    expected = bytes(before) + lent.tobytes()

    def done() -> None:
        lent[:] = 0
        assert not is_done.is_set()
        is_done.set()

    with BgzfOutput(memory, 3) as output:
        output.write(bytes(before))
        output.write_borrowed(lent, done)
        assert is_done.wait(20)
        output.commit()
    assert gzip.decompress(memory.data) == expected


def test_abort_while_another_thread_writes(tmp_path: pathlib.Path) -> None:
    output = BgzfOutput(open_output(str(tmp_path / "out.gz")), 2)
    errors: list[Exception] = []
    is_writing = threading.Event()

    def write() -> None:
        data = sam_like(3_000_000)
        try:
            while True:
                output.write(data)
                is_writing.set()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    is_writing.wait(10)
    output.abort()
    thread.join(10)
    assert len(errors) == 1
    assert list(tmp_path.iterdir()) == []


def test_finish_commit_and_abort_are_idempotent(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out.gz"
    output = BgzfOutput(open_output(str(path)), 1)
    output.write(b"data")
    output.commit()
    output.abort()
    output.commit()
    assert gzip.decompress(path.read_bytes()) == b"data"
    with pytest.raises(OSError, match="Bad file descriptor") as error:
        output.write(b"late")
    assert error.value.filename == str(path)
    aborted = BgzfOutput(open_output(str(tmp_path / "other.gz")), 1)
    aborted.abort()
    aborted.abort()
    aborted.commit()
    assert [each.name for each in tmp_path.iterdir()] == ["out.gz"]


PROGRAM = """
import resource
import sys
from readmap.formats.bgzf import BgzfOutput
from readmap.formats.output import open_output
data = bytes(range(256)) * 1_000_000
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with BgzfOutput(open_output("/dev/null"), 4) as output:
    for _ in range(2):
        output.write(data)
    output.commit()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_is_bounded() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert int(result.stdout) < 40_000  # KiB; the data have 250,000
