"""Commands of samtools, which pysam holds, each in a process of its own, which may be killed and harms no other."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self, cast

from readmap.formats.atomic_files import temporary_folder

PROGRAM = Path(__file__).resolve().with_name("samtools_process.py")

#: What the folders for temporary files are called after.
SCRATCH = "readmap.samtools"

#: A note on a line of its own, and what stands in front of a complaint: the function or the command that it comes from.
NOTE = re.compile(r"\[(M::|bam_sort_core\] merging)")
ORIGIN = re.compile(r"(\[[\w:]+\]|samtools \w+:) ")

#: htslib only warns of it.
TRUNCATED = "EOF marker is absent"


class Samtools:
    """A command that runs; a context manager that kills it.

    input, output: pipes to its standard input and, where `stdout` is not given, from its standard output.
    """

    def __init__(
        self,
        command: str,
        *arguments: str,
        stdout: Any = subprocess.PIPE,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """stdout: what else it writes to, as subprocess takes it. folder: where it runs, if not where the caller does.

        arguments: {scratch} in them stands for a folder in $TMPDIR, which is the command's own for temporary files; it
        goes in the end, that of a killed run when the next command begins. environment: variables beside the caller's.
        """
        self._command = command
        with contextlib.ExitStack() as resources:
            scratch = str(resources.enter_context(temporary_folder(SCRATCH, tempfile.gettempdir())))
            # A pipe that nobody reads meanwhile would fill up.
            self._messages = resources.enter_context(tempfile.TemporaryFile())
            arguments = tuple(argument.replace("{scratch}", scratch) for argument in arguments)
            self._process = subprocess.Popen(
                # -P: the folder of the program holds modules that are no program's business.
                [sys.executable, "-P", str(PROGRAM), str(os.getpid()), command, *arguments],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=self._messages,
                cwd=folder,
                # pysam has a temporary file of its own.
                env={**os.environ, "TMPDIR": scratch, **(environment or {})},
                process_group=0,  # Ctrl-C is for the caller, who may have to end other things first
            )
            self._resources = resources.pop_all()
        self.input = cast(IO[bytes], self._process.stdin)
        self.output = cast(IO[bytes], self._process.stdout)
        # Python's pipes do not bear that two threads close them at the same time.
        self._closing = threading.Lock()

    def end_input(self) -> None:
        """Tells the command that no more comes; from any thread. Raises OSError where what was left is not taken."""
        with self._closing, contextlib.suppress(BrokenPipeError):  # the command's end says more
            self.input.close()

    def failure(self) -> str:
        """The failure in words, or '' where nothing did; waits until the command has ended."""
        status = self._process.wait()
        self._messages.seek(0)
        lines = self._messages.read().decode("utf-8", "backslashreplace").splitlines()
        said = [ORIGIN.sub("", line) for line in lines if line and not NOTE.match(line)]
        if status == 0 and not any(TRUNCATED in line for line in said):
            return ""
        how = f"ended by signal {-status}" if status < 0 else "failed"
        return "; ".join([f"samtools {self._command} {how}", *dict.fromkeys(said)])

    def used(self) -> str:
        """The processor time that the command has used, in words of Linux; empty where they cannot be read."""
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{self._process.pid}/stat").read_text()
            return " ".join(status.rpartition(")")[2].split()[11:13])
        return ""

    def kill(self) -> None:
        """Ends the command, where it has not ended; from any thread, and more than once."""
        self._process.kill()

    def close(self) -> None:
        """Kills the command, where it has not ended, and frees what it had; from any thread, and more than once."""
        self._process.kill()
        self._process.wait()
        with self._closing:
            for file in (self._process.stdin, self._process.stdout):
                if file is not None:
                    with contextlib.suppress(BrokenPipeError):
                        file.close()
            self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
