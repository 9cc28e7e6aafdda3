"""readmap.dask.search: a search by the workers of a Dask cluster."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from readmap.dask.cluster import expect_dask
from readmap.dask.distributed_search import DistributedSearch
from readmap.formats.output import commit_together
from readmap.run.config import SearchConfig
from readmap.run.lanes import LaneLike
from readmap.run.monitor import Monitor, Silent
from readmap.run.summary import SearchSummary


def search(
    client: Any,
    lanes: Sequence[LaneLike],
    index: str | Path,
    output: str | Path,
    *,
    tasks: int | None = None,
    monitor: Monitor | None = None,
    **options: Any,
) -> SearchSummary:
    r"""Map reads as `readmap.search` does, by the workers of a Dask cluster. The records are the same.

    Parameters
    ----------
    client : distributed.Client
        The cluster. All workers must see all files by the same paths, and have the same version of readmap.
    lanes : sequence of Lane, str or tuple
        Files of reads: a file, or a tuple of the arguments of `Lane.of`, such as
        ("r1.fq.gz", "r2.fq.gz", r"@RG\tID:a\tSM:s").
    index : str or Path
        The index folder, or the FASTA file it was built from.
    output : str or Path
        A file whose name ends with .sam, .sam.gz or .bam.
    tasks : int, optional
        Equal shards, mapped after all reads have been located. The default is shards of up to a million reads, on GPUs
        of ten million, which are mapped while others are located.
    monitor : Monitor, optional
        Receives messages and progress.
    **options
        Further keyword arguments of `readmap.search`, such as `sort`, `mark_duplicates`, `metrics`, `scoring`, `device`
        and `threads`; the last two hold for each worker.

    Returns
    -------
    SearchSummary
        What was counted and estimated.

    Raises
    ------
    UsageError
        If an option is invalid, or not possible on a cluster.
    DataError, OSError
        If the reads are invalid, or a file cannot be read or written.
    BackendError
        If the cluster fails.
    """
    expect_dask()
    given = [lane if not isinstance(lane, str) or "," in lane else (lane,) for lane in lanes]
    texts: dict[str, Any] = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    texts |= {"index": str(index), "output": str(output), "command_line": "readmap.dask.search"}
    config = SearchConfig(lanes=given, is_distributed=True, **texts)
    with DistributedSearch.of(config).run(client, monitor or Silent(), tasks) as finished:
        commit_together(finished.outputs)
        summary = finished.summary
    assert isinstance(summary, SearchSummary)
    return summary
