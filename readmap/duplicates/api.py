"""readmap.mark_duplicates: mark the duplicates in a BAM or CRAM file of any aligner."""

import contextlib
from pathlib import Path

from readmap.backend import open_backend
from readmap.duplicates.files import mark_file, open_alignments, open_marked
from readmap.duplicates.marker import OPTICAL_DISTANCE, DuplicateMarker, DuplicateRules
from readmap.duplicates.metrics import LibraryMetrics, duplicates_table
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
    """Mark duplicates in a BAM or CRAM file and write a sorted BAM file with its index, as `readmap markdup` does.

    Parameters
    ----------
    alignments : str or Path
        BAM or CRAM of any aligner.
    output : str or Path
        Sorted BAM; its index is written next to it.
    metrics : str or Path, optional
        File for Picard's DuplicationMetrics.
    report : str or Path, optional
        HTML report of the records written.
    remove_duplicates : bool
        Leave duplicates out instead of marking them.
    optical_distance : int
        Maximum distance of optical duplicates, pixels; 0 disables the search for them.
    duplicate_type : bool
        Tag duplicates with DT:Z:SQ (optical) or DT:Z:LB (library).
    barcode_tag : str, optional
        Tag of the UMI, for example "RX": only fragments with the same UMI are duplicates.
    grouped : bool
        The records of a read are consecutive, even if the header does not say so.
    sort_memory : int, optional
        Bytes of memory for sorting; by default a quarter of the available memory.
    device : str
        "auto", "cpu", "cuda" or "cuda:N".
    threads : int, optional
        Host threads; by default all processors that this process may use.

    Returns
    -------
    list of LibraryMetrics
        Sorted by library name.

    Raises
    ------
    OSError
        A file cannot be read or written.
    DataError
        The input is neither BAM nor CRAM, or is damaged.
    UsageError
        `barcode_tag` is not a valid tag. After any error, no output file exists under its name.
    """
    backend = open_backend(device, threads)
    survey = None if report is None else Survey(backend)
    rules = DuplicateRules(optical_distance, barcode_tag, remove_duplicates, duplicate_type)
    duplicates = DuplicateMarker(rules, backend)
    with contextlib.ExitStack() as stack:
        reads = stack.enter_context(open_alignments(str(alignments), grouped, backend.threads))
        sink = stack.enter_context(open_marked(str(output), reads, sort_memory, duplicates, backend, "", survey))
        with backend.thread_stream():
            mark_file(reads, sink, duplicates, backend)
        sink.finish()
        outputs: list[Output] = []
        if metrics is not None:
            outputs.append(stack.enter_context(open_output(str(metrics))))
            outputs[-1].write(duplicates.metrics("readmap.mark_duplicates").encode())
        if report is not None and survey is not None:
            outputs.append(stack.enter_context(open_output(str(report))))
            samples = survey.samples(Path(output).name.split(".")[0])
            page = write_page(samples, [duplicates_table(duplicates.libraries)], Path(output).name, "")
            outputs[-1].write(page.encode("utf-8", "backslashreplace"))
        commit_together([sink, *outputs])
    return duplicates.libraries
