"""readmap.mark_duplicates: duplicates of alignments that another program made, from Python."""

from __future__ import annotations

import contextlib
from pathlib import Path

from readmap.backend import open_backend
from readmap.duplicates.files import mark_file, open_alignments, open_marked
from readmap.duplicates.marker import OPTICAL_DISTANCE, DuplicateMarker, DuplicateRules
from readmap.duplicates.metrics import LibraryMetrics
from readmap.duplicates.tables import duplicates_table
from readmap.formats.output import Output, commit_together, open_output
from readmap.qc.page import write_page
from readmap.qc.survey import Survey


def mark_duplicates(
    alignments: str | Path,
    output: str | Path,
    *,
    metrics: str | Path | None = None,
    report: str | Path | None = None,
    remove_duplicates: bool = False,
    optical_distance: int = OPTICAL_DISTANCE,
    duplicate_type: bool = False,
    barcode_tag: str | None = None,
    grouped: bool = False,
    sort_memory: int | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> list[LibraryMetrics]:
    """Mark the duplicates of BAM or CRAM as `readmap markdup` does, into sorted BAM with its index beside it.

    metrics: a file for Picard's DuplicationMetrics. report: one for a page of what is written, HTML. optical_distance:
    pixels; 0 looks for no optical duplicates. duplicate_type: whether duplicates get DT. barcode_tag: of UMIs, as "RX".
    grouped: whether the records of a read stand together even if the header does not say so. sort_memory: bytes.

    Returns what was counted of each library, in the order of the alphabet. Raises OSError where a file cannot be read
    or written, DataError where the alignments are none or broken, UsageError where the tag is none; then no output
    has its name.
    """
    backend = open_backend(device, threads)
    survey = None if report is None else Survey(backend)
    duplicates = DuplicateMarker(
        DuplicateRules(optical_distance, barcode_tag, remove_duplicates, duplicate_type), backend
    )
    with contextlib.ExitStack() as stack:
        reads = stack.enter_context(open_alignments(str(alignments), grouped, backend.threads))
        sink = stack.enter_context(open_marked(str(output), reads, sort_memory, duplicates, backend, "", survey))
        with backend.thread_stream():
            mark_file(reads, sink, duplicates, backend)
        sink.finish()
        told: list[Output] = []
        if metrics is not None:
            told.append(stack.enter_context(open_output(str(metrics))))
            told[-1].write(duplicates.metrics("readmap.mark_duplicates").encode())
        if report is not None and survey is not None:
            told.append(stack.enter_context(open_output(str(report))))
            samples = survey.samples(Path(output).name.split(".")[0])
            page = write_page(samples, [duplicates_table(duplicates.libraries)], Path(output).name, "")
            told[-1].write(page.encode("utf-8", "backslashreplace"))
        commit_together([sink, *told])
    return duplicates.libraries
