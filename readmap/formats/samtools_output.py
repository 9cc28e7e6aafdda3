"""CRAM output: BAM converted by samtools."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readmap.formats.atomic_files import temporary_folder
from readmap.formats.fasta import Contig
from readmap.formats.output import ByteSink, Output, open_output
from readmap.formats.samtools import Samtools

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
    """Accepts uncompressed BAM and writes the output of a samtools command on it.

    name: the name of the output.
    """

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
        """Wait for the command. Raises OSError that names the output; the caller still has to abort it."""
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
        """Finish, then commit the output and its index. Raises OSError as `finish` does."""
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
        """Kill the command, and remove its files and an output that was not committed."""
        self._resources.close()

    def _failed(self) -> OSError:
        # samtools view may not print the reason.
        reason = self._command.failure() or "samtools ended early"
        return OSError(errno.EIO, f"writing failed (full disk or quota?): {reason}", self.name)


def open_samtools_output(
    path: str | None, contigs: Sequence[Contig], letters: Iterable[Letters], threads: int, indexed: bool
) -> SamtoolsOutput:
    """Open a CRAM file for writing; it accepts uncompressed BAM with these contigs.

    path: None or - for standard output. letters: the letters of each contig. threads: for samtools. indexed: also write
    path.crai, for sorted records. Raises OSError as `open_output` does.
    """
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
