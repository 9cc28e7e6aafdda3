"""Run samtools commands of pysam in subprocesses, which can be killed: to read other formats, and to write CRAM."""

import contextlib
import errno
import io
import os
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.atomic_files import temporary_folder
from readmap.formats.fasta import Contig
from readmap.formats.output import ByteSink, Output, open_output

SCRIPT = Path(__file__).resolve().with_name("samtools_process.py")
#: Name prefix of the folders for temporary files.
SCRATCH = "readmap.samtools"
#: A line that is a note, and the prefix of an error message: the function or command that it comes from.
NOTE = re.compile(r"\[(M::|bam_sort_core\] merging)")
ORIGIN = re.compile(r"(\[[\w:]+\]|samtools \w+:) ")
#: htslib only warns about this.
TRUNCATED = "EOF marker is absent"


class Samtools:
    """A running command with its pipes `input` and, unless `stdout` is given, `output`; the context kills it."""

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
        the next command if the run is killed. environment: added to the caller's variables."""
        self._command = command
        with contextlib.ExitStack() as resources:
            scratch = str(resources.enter_context(temporary_folder(SCRATCH, tempfile.gettempdir())))
            # Not a pipe: nobody would read it meanwhile, and it could fill up.
            self._messages = resources.enter_context(tempfile.TemporaryFile())
            arguments = tuple(argument.replace("{scratch}", scratch) for argument in arguments)
            self._process = subprocess.Popen(
                # -P: do not import from the folder of the program.
                [sys.executable, "-P", str(SCRIPT), str(os.getpid()), command, *arguments],
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


#: The cache of reference sequences by MD5. Without REF_PATH, older versions of samtools also ask a server.
REFERENCE_CACHE = os.path.expanduser("~/.cache/hts-ref/%2s/%2s/%s")
#: Seconds without input, output and processor time after which a command counts as stalled.
STALL_SECONDS = 300.0
#: Seconds between two checks for a stall.
POLL_SECONDS = 5.0


class SamtoolsInput(io.RawIOBase):
    """The standard output of a command that reads a file; closing it kills the command."""

    def __init__(self, file: io.RawIOBase, name: str, start: bytes, command: str, *arguments: str) -> None:
        """file: closed at the end. name: for messages. start: bytes of the file that have been read already."""
        self._name = name
        self._command = command
        self._samtools = Samtools(
            command, *arguments, environment={"REF_PATH": os.environ.get("REF_PATH") or REFERENCE_CACHE}
        )
        self._waits_for_file = True
        self._last_taken = time.monotonic()
        threading.Thread(target=self._feed_command, args=(file, start), name="readmap-feed", daemon=True).start()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes, b'' at the end. Raises DataError if the command fails or stalls."""
        output, ready = self._samtools.output.fileno(), select.poll()
        ready.register(output, select.POLLIN)
        last_change, cpu_time = time.monotonic(), ""
        while not ready.poll(1000 * POLL_SECONDS):
            if cpu_time != (cpu_time := self._samtools.cpu_time()):
                last_change = time.monotonic()
            idle = time.monotonic() - max(last_change, self._last_taken)
            if idle > STALL_SECONDS and not self._waits_for_file:
                self.end()
                raise DataError(f"{self._name}: samtools {self._command} was idle for {idle:.0f} seconds")
        data = os.read(output, size if size > 0 else io.DEFAULT_BUFFER_SIZE)
        if not data and (failure := self._samtools.failure()):
            raise DataError(f"{self._name}: the alignments cannot be read: {failure}")
        return data

    def end(self) -> None:
        """Kill the command; thread-safe, may be repeated. A concurrent `read` gets the end or an error."""
        self._samtools.kill()

    def close(self) -> None:
        """Kill the command and remove its files; not while another thread reads."""
        self._samtools.close()
        super().close()

    def _feed_command(self, file: io.RawIOBase, start: bytes) -> None:
        """Write `start` and the rest of the file to the command, and close both; `read` reports any error."""
        samtools = self._samtools
        with file, contextlib.suppress(OSError, ValueError):
            part = start
            while part:
                self._waits_for_file = False
                samtools.input.write(part)
                self._last_taken = time.monotonic()
                self._waits_for_file = True
                part = file.read(1 << 18)
        self._waits_for_file = False
        with contextlib.suppress(OSError, ValueError):
            samtools.end_input()


CRAM_ENDING, CRAM_INDEX = ".cram", ".crai"
#: samtools writes version 3.1 by default, which older programs cannot read.
CRAM_FORMAT = "cram,version=3.0"
#: Indexes of a replaced file, which are removed: programs would use them for the new file.
INDEX_ENDINGS = (".bai", ".csi", ".crai")
#: samtools finds reference sequences by MD5 in its working directory, so that the header has no path to them.
REFERENCES = {"REF_CACHE": "%s", "REF_PATH": "%s"}
#: The letters of a contig, uint8, in parts.
Letters = Iterable[NDArray[np.uint8]]


class SamtoolsOutput(ByteSink):
    """Accepts uncompressed BAM and writes the output of a samtools command on it."""

    def __init__(
        self, output: Output, command: Samtools, index: tuple[Path, Output] | None, resources: contextlib.ExitStack
    ) -> None:
        """index: the index file that the command writes, and its output. resources: closed at the end."""
        self.name = output.name
        self._output = output
        self._command = command
        self._index = index
        self._resources = resources
        self._is_finished = False

    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        """Write to the command; `data` may be overwritten after the return. Raises OSError with its error message."""
        try:
            self._command.input.write(data.data if isinstance(data, np.ndarray) else data)
        except BrokenPipeError:
            raise self._failed() from None

    def finish(self) -> None:
        """Wait for the command, write the index, and finish the outputs. Raises OSError; the caller aborts then."""
        if self._is_finished:
            return
        self._command.end_input()
        if self._command.failure():
            raise self._failed()
        if self._index is not None:
            made, index = self._index
            index.write(made.read_bytes())
            index.finish()
        self._output.finish()
        self._is_finished = True

    def commit(self) -> None:
        """Finish, remove old indexes of the file, and rename the output and its index to their paths."""
        self.finish()
        outputs = [self._output]
        if self._index is not None:
            outputs.append(self._index[1])
            for ending in INDEX_ENDINGS:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.name + ending)
        for output in outputs:
            output.commit()
        self._resources.close()

    def abort(self) -> None:
        self._resources.close()

    def _failed(self) -> OSError:
        # samtools view may not print the reason.
        reason = self._command.failure() or "samtools ended early"
        return OSError(errno.EIO, f"writing failed (full disk or quota?): {reason}", self.name)


def open_samtools_output(
    path: str | None, contigs: Sequence[Contig], letters: Iterable[Letters], threads: int, indexed: bool
) -> SamtoolsOutput:
    """Open a CRAM file, which accepts uncompressed BAM; indexed: also write .crai, for sorted records."""
    with contextlib.ExitStack() as resources:
        output = resources.enter_context(open_output(path))
        target = os.path.realpath(path or "-")
        folder = resources.enter_context(temporary_folder(target, os.environ.get("TMPDIR")))
        _write_references(folder, contigs, letters)
        arguments, index = ["-@", str(threads), "-O", CRAM_FORMAT, "--no-PG"], None
        if indexed:
            index = folder / f"index{CRAM_INDEX}", resources.enter_context(open_output(output.name + CRAM_INDEX))
            arguments += ["--write-index", "-o", f"-##idx##{index[0].name}", "-"]
        else:
            arguments += ["-o", "-", "-"]
        running = resources.enter_context(
            Samtools("view", *arguments, stdout=output, folder=folder, environment=REFERENCES)
        )
        return SamtoolsOutput(output, running, index, resources.pop_all())


def _write_references(folder: Path, contigs: Sequence[Contig], letters: Iterable[Letters]) -> None:
    """Write the letters of each contig to a file named after their MD5. Raises OSError that names the file."""
    for contig, pieces in zip(contigs, letters, strict=True):
        with open_output(str(folder / contig.md5)) as output:
            for piece in pieces:
                output.write(piece)
            output.commit()
