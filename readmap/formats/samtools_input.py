"""What samtools makes of the bytes of a file, as a file of its own."""

from __future__ import annotations

import contextlib
import io
import os
import select
import threading
import time

from readmap.errors import DataError
from readmap.formats.samtools import Samtools

#: Where samtools keeps letters of references by their MD5. Without a REF_PATH older ones ask a server for them as well.
KEPT = os.path.expanduser("~/.cache/hts-ref/%2s/%2s/%s")

#: Seconds without a byte in or out, and without work, from which on a command is taken to stand still.
STILL_SECONDS = 300.0

#: Seconds between two looks at it.
LOOK_SECONDS = 5.0


class SamtoolsInput(io.RawIOBase):
    """The standard output of a command that reads a file; closing it ends the command."""

    def __init__(self, file: io.RawIOBase, name: str, start: bytes, command: str, *arguments: str) -> None:
        """file: closed in the end. name: what messages call it. start: what has been read of it."""
        self._name = name
        self._command = command
        self._samtools = Samtools(command, *arguments, environment={"REF_PATH": os.environ.get("REF_PATH") or KEPT})
        self._waits_for_file = True
        self._last_taken = time.monotonic()
        threading.Thread(target=self._feed, args=(file, start), name="readmap-feed", daemon=True).start()

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, none at the end. Raises DataError where the command fails or stands still."""
        output, ready = self._samtools.output.fileno(), select.poll()
        ready.register(output, select.POLLIN)
        moved, used = time.monotonic(), ""
        while not ready.poll(1000 * LOOK_SECONDS):
            if used != (used := self._samtools.used()):
                moved = time.monotonic()
            still = time.monotonic() - max(moved, self._last_taken)
            if still > STILL_SECONDS and not self._waits_for_file:
                self.end()
                raise DataError(f"{self._name}: samtools {self._command} stood still for {still:.0f} seconds")
        data = os.read(output, size if size > 0 else io.DEFAULT_BUFFER_SIZE)
        if not data and (failure := self._samtools.failure()):
            raise DataError(f"{self._name}: the alignments cannot be read: {failure}")
        return data

    def end(self) -> None:
        """Ends the command, from any thread, and more than once; who reads meanwhile finds an end or an error."""
        self._samtools.kill()

    def close(self) -> None:
        """Ends the command, and removes its files; by whoever reads, or when nobody does."""
        self._samtools.close()
        super().close()

    def _feed(self, file: io.RawIOBase, start: bytes) -> None:
        """Hand all bytes of the file to the command; where one of the two ends early, the command's end says why."""
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
