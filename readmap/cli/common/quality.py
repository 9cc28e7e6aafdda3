"""What search and markdup share: the survey of the records that are written, and its reports."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from readmap.backend import Backend
from readmap.cli.common.options import option
from readmap.duplicates.marker import DuplicateMarker
from readmap.duplicates.metrics import duplicates_table
from readmap.errors import UsageError
from readmap.formats.output import ByteSink, open_output
from readmap.formats.wording import format_ratio, printable
from readmap.qc.json_report import as_json
from readmap.qc.multiqc import file_name, multiqc_files
from readmap.qc.page import write_page
from readmap.qc.survey import Survey
from readmap.qc.tally import SampleTally

PAGE_ENDINGS = (".html", ".htm")


@dataclass(frozen=True, kw_only=True)
class QualityOptions:
    """The reports of the records that are written."""

    panel: ClassVar = "Quality control, of sorted records"

    page: str | None = option(
        "--report", "Write a page of qualities, insert sizes, coverage and more; --json tells the same.", "FILE.html"
    )
    multiqc: str | None = option(
        "--multiqc", "Write files into that folder that MultiQC shows: counts as of samtools stats and flagstat too.",
        "FOLDER",
    )  # fmt: skip

    def survey(self, backend: Backend, are_sorted: bool = True) -> Survey | None:
        """What counts the records, if that is wanted. backend: that does. are_sorted: by coordinate."""
        return Survey(backend, are_sorted) if self.page is not None or self.multiqc is not None else None

    def check(self) -> None:
        """Raise UsageError where a name is none of a page, or of a folder."""
        if self.page is not None and self.page != "-" and not self.page.endswith(PAGE_ENDINGS):
            raise UsageError(f"--report {self.page}: expected a name that ends with .html")
        if self.multiqc is not None and os.path.exists(self.multiqc) and not os.path.isdir(self.multiqc):
            raise UsageError(f"--multiqc {self.multiqc}: expected a folder, found a file")


class Quality:
    """The survey of a run, and the files of its reports, which are to be committed with its output.

    outputs: the page, from the beginning on; then MultiQC's files.
    """

    def __init__(self, options: QualityOptions, survey: Survey | None, opened: contextlib.ExitStack) -> None:
        self._options, self._survey, self._opened = options, survey, opened
        self.outputs: list[ByteSink] = []
        self._samples: Sequence[SampleTally] = ()
        if options.page is not None:
            self.outputs.append(opened.enter_context(open_output(options.page)))

    def write(self, output: str, duplicates: DuplicateMarker | None, command: str) -> dict[str, Any]:
        """Write all reports, when all records of an output have been written; the same for programs."""
        if self._survey is None:
            return {}
        self._samples = self._survey.samples(os.path.basename(output).split(".")[0])
        tables = [duplicates_table(duplicates.libraries)] if duplicates else []
        if self._options.page is not None:
            page = write_page(self._samples, tables, printable(output), printable(command))
            self.outputs[0].write(page.encode("utf-8", "backslashreplace"))
        if self._options.multiqc is not None:
            files = multiqc_files(self._samples)
            if duplicates:
                only = self._samples[0].name if len(self._samples) == 1 else os.path.basename(output).split(".")[0]
                files[f"{file_name(only)}.markdup.txt"] = duplicates.metrics(command)
            for name, text in files.items():
                file = self._opened.enter_context(open_output(os.path.join(self._options.multiqc, name)))
                file.write(text.encode("utf-8", "backslashreplace"))
                self.outputs.append(file)
        return as_json(self._samples)

    def lines(self) -> list[str]:
        """The coverage of each sample, in words."""
        told = []
        for sample in self._samples:
            if sample.depths:
                of = {depth: format_ratio(round(1e6 * x), 1_000_000) for depth, x in sample.depths.breadths.items()}
                breadths = ", ".join(f"{of[depth]} by {depth}" for depth in of)
                told.append(
                    f"coverage of {sample.name}: {sample.depths.mean:.2f} on the average; of the bases {breadths}"
                )
        return told


@contextlib.contextmanager
def open_quality(options: QualityOptions, survey: Survey | None) -> Iterator[Quality]:
    """The reports that are wanted; files that are not committed are aborted, and a new folder without any goes.

    Raises OSError where a place cannot be written.
    """
    with contextlib.ExitStack() as opened:
        if options.multiqc is not None and not os.path.isdir(options.multiqc):
            os.makedirs(options.multiqc)
            opened.callback(_remove_empty, options.multiqc)
        yield Quality(options, survey, opened)


def _remove_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)
