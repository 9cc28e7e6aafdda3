"""The output of a samtools command on a file, as a readable file."""

from __future__ import annotations

import contextlib
import io
import os
import select
import threading
import time

from readmap.errors import DataError
from readmap.formats.samtools import Samtools

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
        threading.Thread(target=self._feed, args=(file, start), name="readmap-feed", daemon=True).start()

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

    def _feed(self, file: io.RawIOBase, start: bytes) -> None:
        """Write all bytes of the file to the command; `read` reports any error."""
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
