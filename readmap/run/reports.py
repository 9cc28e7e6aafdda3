"""Reports of the written records: quality pages, files for MultiQC, and duplicates as text and as JSON."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from readmap.duplicates.marker import DuplicateMarker
from readmap.duplicates.metrics import LibraryMetrics, duplicates_table
from readmap.formats.output import ByteSink, open_output
from readmap.formats.wording import format_ratio, pluralize, printable
from readmap.qc.json_report import as_json
from readmap.qc.multiqc import file_name, multiqc_files
from readmap.qc.page import write_page
from readmap.qc.survey import Survey
from readmap.qc.tally import SampleTally


class QualityReports:
    """The quality reports of a run. outputs: the page, if one is written, then MultiQC's files; the caller commits them
    with the records. samples: the counts of each sample, after `write`."""

    def __init__(
        self, page: str | None, multiqc: str | None, survey: Survey | None, opened: contextlib.ExitStack
    ) -> None:
        self._page, self._multiqc, self._survey, self._opened = page, multiqc, survey, opened
        self.outputs: list[ByteSink] = [] if page is None else [opened.enter_context(open_output(page))]
        self.samples: Sequence[SampleTally] = ()

    def write(self, output: str, duplicates: DuplicateMarker | None, command: str) -> None:
        """Write all reports and set `samples`, after all records of `output` have been written."""
        if self._survey is None:
            return
        stem = os.path.basename(output).split(".")[0]
        self.samples = self._survey.samples(stem)
        tables = [duplicates_table(duplicates.libraries)] if duplicates else []
        if self._page is not None:
            page = write_page(self.samples, tables, printable(output), printable(command))
            self.outputs[0].write(page.encode("utf-8", "backslashreplace"))
        if self._multiqc is not None:
            files = multiqc_files(self.samples)
            if duplicates:
                only = self.samples[0].name if len(self.samples) == 1 else stem
                files[f"{file_name(only)}.markdup.txt"] = duplicates.metrics(command)
            for name, text in files.items():
                file = self._opened.enter_context(open_output(os.path.join(self._multiqc, name)))
                file.write(text.encode("utf-8", "backslashreplace"))
                self.outputs.append(file)

    def as_json(self) -> dict[str, Any]:
        """Return the counts of each sample for JSON; empty if no report was written."""
        return as_json(self.samples) if self._survey else {}

    def describe(self) -> list[str]:
        """Return a line about the coverage of each sample whose depths were counted."""
        lines = []
        for sample in self.samples:
            if sample.depths:
                shares = sample.depths.breadths.items()
                covered = ", ".join(f"{format_ratio(round(1e6 * x), 1_000_000)} at {depth}x" for depth, x in shares)
                lines.append(f"coverage of {sample.name}: mean {sample.depths.mean:.2f}x; bases covered: {covered}")
        return lines


@contextlib.contextmanager
def open_reports(page: str | None, multiqc: str | None, survey: Survey | None) -> Iterator[QualityReports]:
    """Open the quality page and MultiQC's folder, given by their paths or None; on exit abort what has not been
    committed and remove the folder if it is new and empty. Raises OSError if a path cannot be written."""
    with contextlib.ExitStack() as opened:
        if multiqc is not None and not os.path.isdir(multiqc):
            os.makedirs(multiqc)
            opened.callback(_remove_empty, multiqc)
        yield QualityReports(page, multiqc, survey, opened)


def _remove_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def describe_duplicates(libraries: Sequence[LibraryMetrics] | None) -> list[str]:
    """Return a line about the duplicates of each library; None: duplicates were not looked for."""
    lines = []
    for library in libraries or ():
        pairs = f"{library.pair_duplicates:,} of {pluralize(library.pairs, 'pair')} with both mates mapped"
        singles = f"{library.unpaired_duplicates:,} of {pluralize(library.unpaired, 'other mapped read')}"
        counts = f"duplicates of {library.name}: {pairs}, {library.optical_duplicates:,} of them optical; {singles}"
        lines.append(f"{counts}; {format_ratio(library.duplicates, library.reads)} of the mapped reads")
    return lines


def duplicates_as_json(libraries: Sequence[LibraryMetrics] | None) -> dict[str, Any]:
    """Return the duplicates of each library, with estimated library sizes, for JSON; empty for None."""
    if libraries is None:
        return {}
    records = []
    for one in libraries:
        counts = asdict(one)
        records.append(
            {"library": counts.pop("name"), **counts, "share": round(one.share, 6), "library_size": one.size}
        )
    return {"duplicates": records}
