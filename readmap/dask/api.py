"""readmap.dask.search: reads to SAM or BAM by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from readmap.bam.codecs import CodecName
from readmap.bam.file_index import format_for
from readmap.bam.order import SortOrder
from readmap.dask.cluster import expect_dask
from readmap.dask.job import RECORDS, UNMAPPED, IndexLocation, Job, Lane, Packing, Resources, anywhere
from readmap.dask.distributed_search import Progress, Wanted, searched
from readmap.duplicates.marker import DuplicateRules
from readmap.errors import UsageError
from readmap.formats.bgzf import LEVEL
from readmap.formats.sam_header import read_groups
from readmap.formats.output import commit_together, format_by_ending
from readmap.formats.sam import SamEncoding, header
from readmap.index import folder
from readmap.index.index import Index
from readmap.mapping.parameters import Pairing, Reporting, Scoring
from readmap.mapping.records import Style
from readmap.run.read_mapper import MappingSummary
from readmap.version import __version__

FORMS = {".sam": SamEncoding.TEXT, ".bam": SamEncoding.BINARY}


def search(
    client: Any,
    lanes: Sequence[Lane | str | Sequence[str]],
    index: str | Path,
    output: str | Path,
    *,
    scoring: Scoring | None = None,
    pairing: Pairing | None = None,
    reporting: Reporting | None = None,
    sort: bool = False,
    duplicates: DuplicateRules | None = None,
    metrics: str | Path | None = None,
    tasks: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress = lambda text, share=None: None,
) -> MappingSummary:
    """Map reads as `readmap search` does, by the workers of a cluster; the records are the same. What was counted.

    client: of distributed. All workers see the files by the same names.
    lanes: each a Lane, or a file, or what Lane.of takes: ("r1.fq.gz", "r2.fq.gz", r"@RG\\tID:a\\tSM:s").
    index: its folder, or the FASTA file that it is of. output: a name that ends with .sam or .bam.
    sort: BAM by coordinates, with its index. duplicates: marks them, in what is sorted; metrics: a file for these.
    tasks: equal shards, once all reads are found; None for shards of up to about a million reads, on GPUs of ten
    million, which are mapped while others are found.
    device, threads: of each worker, whose own number of threads is the default.
    Raises the errors of a search, UsageError for options that are none, and BackendError where the cluster fails.
    """
    expect_dask()
    form, path = format_by_ending(str(output), FORMS), folder.find(str(index)).absolute()
    if form is None:
        raise UsageError(f"output {output}: expected a name that ends with .sam or .bam")
    if (sort and form is not SamEncoding.BINARY) or (duplicates and not sort):
        raise UsageError("only BAM is sorted, and duplicates are marked only in what is sorted")
    given = anywhere([_lane(lane) for lane in lanes])
    contigs = Index.open(path).reference.contigs
    lines = [*dict.fromkeys(lane.group.line.decode() for lane in given if lane.group.line)]
    order = SortOrder.COORDINATE if sort else None
    style = Style(form, tuple(lane.group for lane in given), order=order)
    lengths = tuple(contig.length for contig in contigs)
    is_blocked = form is SamEncoding.BINARY or not str(output).lower().endswith(".sam")
    job = Job(
        "",
        IndexLocation(str(path)),
        given,
        lengths,
        style,
        Packing(CodecName.AUTO, LEVEL, {RECORDS: is_blocked, UNMAPPED: False}),
        scoring or Scoring(),
        pairing or Pairing(),
        reporting or Reporting(),
        Resources(device, threads),
        tuple(read_groups(lines)),
        duplicates,
        "readmap.dask.distributed_search",
    )
    wanted = Wanted(
        str(output),
        header(contigs, __version__, job.command_line, form=form, lines=lines, order=order),
        format_for(max(lengths, default=0)) if sort else None,
        metrics=None if metrics is None else str(metrics),
        tasks=tasks,
    )
    with searched(client, job, wanted, progress) as found:
        commit_together(found.outputs)
        return found.summary


def _lane(given: Lane | str | Sequence[str]) -> Lane:
    if isinstance(given, Lane):
        return given
    return Lane.of(given) if isinstance(given, str) else Lane.of(*given)
