"""Outputs that samtools makes of BAM's bytes: CRAM."""

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

#: samtools writes 3.1 by default, which older programs cannot read.
CRAM_FORMAT = "cram,version=3.0"

#: An index of what was there before would be taken for one of the new file.
INDEX_ENDINGS = (".bai", ".csi", ".crai")

#: Where samtools finds a contig's letters, by its MD5: in its own folder, so that no path of them gets into the header.
REFERENCES = {"REF_CACHE": "%s", "REF_PATH": "%s"}

#: The letters of a contig, uint8, in pieces.
Letters = Iterable[NDArray[np.uint8]]


class SamtoolsOutput(ByteSink):
    """Takes uncompressed BAM, which a command turns into what its output is to hold.

    name: what messages call it: the output's name.
    """

    def __init__(
        self, output: Output, command: Samtools, index: tuple[Path, Output] | None, resources: contextlib.ExitStack
    ) -> None:
        """index: what the command writes beside its output, and where that goes. resources: closed in the end."""
        self.name = output.name
        self._output = output
        self._command = command
        self._index = index
        self._resources = resources
        self._is_finished = False

    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        """Hands `data` to the command; on return it may be overwritten. Raises OSError that says why it ended."""
        try:
            self._command.input.write(data.data if isinstance(data, np.ndarray) else data)
        except BrokenPipeError:
            raise self._failed() from None

    def finish(self) -> None:
        """Waits for the command. Raises OSError that names the output; then it is still to be aborted."""
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
        """Waits for the command, and gives the output, then its index, their names. Raises OSError as `finish` does."""
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
        """Kills the command, and removes its files and an output that was not committed."""
        self._resources.close()

    def _failed(self) -> OSError:
        # samtools view keeps the reason to itself.
        reason = self._command.failure() or "samtools ended early"
        return OSError(errno.EIO, f"not all could be written (a full disk, a quota): {reason}", self.name)


def open_samtools_output(
    path: str | None, contigs: Sequence[Contig], letters: Iterable[Letters], threads: int, indexed: bool
) -> SamtoolsOutput:
    """The CRAM output at `path`; what is written to it is uncompressed BAM of these contigs.

    path: None and - for standard output. letters: of each contig. threads: of samtools. indexed: whether the index is
    made beside it, of records in order.
    Raises OSError as open_output does.
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
    """A file for each contig: its letters and nothing else, under their MD5. Raises OSError that names the file."""
    for contig, pieces in zip(contigs, letters, strict=True):
        with open_output(str(folder / contig.md5)) as output:
            for piece in pieces:
                output.write(piece)
            output.commit()
