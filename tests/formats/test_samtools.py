import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import IO

import pytest

from readmap.formats.samtools import SCRIPT, Samtools

FAILING = """
import runpy, sys
import pysam
def view(*_, **__): raise OSError(5, "Input/output error")
pysam.samtools.view = view
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class SlowFile:
    """A pipe that takes a while to close; no other thread may close it meanwhile."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._one = threading.Lock()

    def close(self) -> None:
        assert self._one.acquire(blocking=False), "two threads at once"
        time.sleep(0.01)
        self._file.close()
        self._one.release()


def test_two_threads_do_not_close_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with Samtools("head", "-") as command:
        for attribute in ("stdin", "stdout"):
            monkeypatch.setattr(command._process, attribute, SlowFile(getattr(command._process, attribute)))
        monkeypatch.setattr(command, "input", command._process.stdin)
        with ThreadPoolExecutor(4) as pool:
            for ended in [pool.submit(end) for end in (command.close, command.end_input) * 2]:
                ended.result()


def test_a_failure_of_pysam_is_one_line() -> None:
    command = [sys.executable, "-c", FAILING, str(SCRIPT), str(os.getpid()), "view", "-"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "[Errno 5] Input/output error\n")
