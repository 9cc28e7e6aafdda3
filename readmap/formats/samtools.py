"""Run samtools commands of pysam in subprocesses, which can be killed."""

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

#: Name prefix of the folders for temporary files.
SCRATCH = "readmap.samtools"

#: A line that is a note, and the prefix of an error message: the function or command that it comes from.
NOTE = re.compile(r"\[(M::|bam_sort_core\] merging)")
ORIGIN = re.compile(r"(\[[\w:]+\]|samtools \w+:) ")

#: htslib only warns about this.
TRUNCATED = "EOF marker is absent"


class Samtools:
    """A running command; a context manager that kills it.

    input, output: pipes to its standard input and, unless `stdout` is given, from its standard output.
    """

    def __init__(
        self,
        command: str,
        *arguments: str,
        stdout: Any = subprocess.PIPE,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """stdout: another destination, as for subprocess. folder: the working directory; default: the caller's.

        arguments: {scratch} is replaced by a folder for temporary files in $TMPDIR, which is removed at the end, or by
        the next command if the run is killed. environment: added to the caller's variables.
        """
        self._command = command
        with contextlib.ExitStack() as resources:
            scratch = str(resources.enter_context(temporary_folder(SCRATCH, tempfile.gettempdir())))
            # Not a pipe: nobody would read it meanwhile, and it could fill up.
            self._messages = resources.enter_context(tempfile.TemporaryFile())
            arguments = tuple(argument.replace("{scratch}", scratch) for argument in arguments)
            self._process = subprocess.Popen(
                # -P: do not import from the folder of the program.
                [sys.executable, "-P", str(PROGRAM), str(os.getpid()), command, *arguments],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=self._messages,
                cwd=folder,
                # pysam creates a temporary file too.
                env={**os.environ, "TMPDIR": scratch, **(environment or {})},
                process_group=0,  # the caller handles Ctrl-C
            )
            self._resources = resources.pop_all()
        self.input = cast(IO[bytes], self._process.stdin)
        self.output = cast(IO[bytes], self._process.stdout)
        # Two threads must not close a Python pipe at the same time.
        self._closing = threading.Lock()

    def end_input(self) -> None:
        """Close the command's standard input; thread-safe. Raises OSError if buffered data cannot be written."""
        with self._closing, contextlib.suppress(BrokenPipeError):  # `failure` gives the reason
            self.input.close()

    def failure(self) -> str:
        """Wait for the end of the command and return its error messages, or '' if it succeeded."""
        status = self._process.wait()
        self._messages.seek(0)
        lines = self._messages.read().decode("utf-8", "backslashreplace").splitlines()
        said = [ORIGIN.sub("", line) for line in lines if line and not NOTE.match(line)]
        if status == 0 and not any(TRUNCATED in line for line in said):
            return ""
        how = f"ended by signal {-status}" if status < 0 else "failed"
        return "; ".join([f"samtools {self._command} {how}", *dict.fromkeys(said)])

    def cpu_time(self) -> str:
        """Return the processor time used so far, as in /proc/PID/stat, or '' if it is not available."""
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{self._process.pid}/stat").read_text()
            return " ".join(status.rpartition(")")[2].split()[11:13])
        return ""

    def kill(self) -> None:
        """Kill the command if it is running; thread-safe, may be repeated."""
        self._process.kill()

    def close(self) -> None:
        """Kill the command if it is running, and release its resources; thread-safe, may be repeated."""
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
