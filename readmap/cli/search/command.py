"""readmap search: map reads, or find their exact occurrences."""

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from readmap.cli.common.options import command, given_options, names_of, spelling_options
from readmap.cli.common.report import Report, ReportOptions, Session, Show, is_terminal
from readmap.cli.search.options import ClusterOptions, PairOptions, RecordOptions, SearchOptions
from readmap.cli.search.scoring import ScoringOptions
from readmap.dask import LOCAL
from readmap.errors import UsageError, option
from readmap.formats.byte_source import open_bytes
from readmap.index import folder
from readmap.reads.bad_records import MAX_READ_LENGTH
from readmap.run.config import SearchConfig
from readmap.run.conflicts import check_conflicts
from readmap.run.search import FinishedSearch, open_search

#: Bytes that contain a header line and the first bases of a sequence that is too long for a read.
START_BYTES = 1 << 16
EXAMPLES = r"""[bold]Examples[/]
  $ readmap search reads.fq.gz -x ref.fa -o out.sam
  $ readmap search r1.fq.gz r2.fq.gz -x ref.fa -o sorted.bam --sort
  $ cat *.fq.gz | readmap search - --interleaved -x ref.fa -o out.cram
  $ readmap search reads.fq -x ref.fa -R '@RG\tID:run1\tSM:sample' -o out.sam
  $ readmap search unaligned.bam -x ref.fa -o out.bam --keep-tags RX
  $ readmap search reads.fq -x ref.fa --exact -o hits.bed
  $ readmap search primers.fa -x ref.fa --exact --count-only"""

#: Parameters of the command that stand for one field of SearchConfig.
GROUPS: Mapping[str, Sequence[str]] = {
    "pairing": [name for name in names_of(PairOptions) if name in ("insert_size", "no_pairing", "no_rescue")],
    "reporting": names_of(RecordOptions),
    "scoring": names_of(ScoringOptions),
    "check": ["no_check"],
    "alternates": ["ignore_alternates"],
    "prefix_table": ["no_prefix_table"],
    "read_group": ["read_groups"],
    "sample_model": ["sample_model", "learnt"],
}


@command
def search(context: typer.Context, options: SearchOptions) -> None:
    """Map reads or read pairs to a reference and write SAM, BAM or CRAM, or find all exact occurrences (--exact).

    Records are in the order of the reads, or sorted (--sort). The output is the same on every device, for any number of
    threads.

    Also called: readmap map
    """
    session: Session = context.obj
    with spelling_options(context, GROUPS):
        config = options.config(session.command_line)
        given = given_options(context)
        check_conflicts(config, {*given, *(name for name, own in GROUPS.items() if not given.keys().isdisjoint(own))})
        _check_cluster_options(given, options)
        if config.index is None and config.reads:
            _check_not_reference(config.reads)
        run(session, config, options.report, cluster=options.cluster if config.is_distributed else None)


@dataclass(frozen=True)
class ReportMonitor:
    """Shows the messages and the progress of a search in a report."""

    report: Report
    progress: Show

    def say(self, line: str) -> None:
        self.report.say(line)

    def show(self, text: str, share: float | None = None, bar: float | None = None) -> None:
        self.progress(text, share, bar)


def run(
    session: Session,
    config: SearchConfig,
    options: ReportOptions,
    notes: Sequence[str] = (),
    cluster: ClusterOptions | None = None,
) -> None:
    """Run a search, here or on a cluster, write outputs and JSON report, and print notes (lines) and its summary."""
    with Report(session, options) as report:
        with contextlib.ExitStack() as opened:
            monitor = ReportMonitor(report, opened.enter_context(report.progress(_shares_terminal(config))))
            json = {"json": options.json}
            search = _open_on_cluster(config, monitor, json, cluster) if cluster else open_search(config, monitor, json)
            finished = opened.enter_context(search)
            report.finish(finished.summary.as_json(), finished.outputs)
        for line in [*notes, *finished.summary.describe(), report.cost()]:
            report.say(line)


@contextlib.contextmanager
def _open_on_cluster(
    config: SearchConfig, monitor: ReportMonitor, json: Mapping[str, str | None], cluster: ClusterOptions
) -> Iterator[FinishedSearch]:
    """Run a search on Dask workers and yield it before its outputs are committed, as open_search does.

    json: the path of the JSON report by its option, for checks of paths.
    """
    from readmap.dask.cluster import connected  # imports Dask
    from readmap.dask.distributed_search import DistributedSearch

    address, search = cluster.dask or "", DistributedSearch.of(config, json)
    with connected(address, config.device, config.gpus, config.worker_threads) as client:
        monitor.say(f"dashboard of the cluster: {client.dashboard_link}")
        with search.run(client, monitor, cluster.tasks, address) as finished:
            yield finished


def _shares_terminal(config: SearchConfig) -> bool:
    """Return True if records or unmapped reads go to the terminal, which then shows no progress."""
    return is_terminal(config.output) or (config.unmapped is not None and is_terminal(config.unmapped))


def _check_cluster_options(given: Mapping[str, str], options: SearchOptions) -> None:
    """Raise UsageError for options that need a cluster; given: options of the command line, by parameter name."""
    dask = options.cluster.dask
    if "tasks" in given and dask is None:
        raise UsageError(f"{option('tasks')}: only with {option('dask')}")
    if "gpus" in given and dask not in (None, LOCAL):
        raise UsageError(f"{option('gpus')}: only with {option('dask')} {LOCAL}: a worker has one GPU")


def _check_not_reference(paths: Sequence[str]) -> None:
    """Raise UsageError if the first file of reads is a reference, which was meant as the index."""
    first = paths[0]
    if reason := _why_reference(first):
        corrected = f" (readmap search {shlex.join([*paths[1:], '-x', first])})" if len(paths) > 1 else ""
        raise UsageError(f"{first} {reason}, not reads: did you mean -x {first}?{corrected}")


def _why_reference(path: str) -> str | None:
    """Return the reason to take a file for a reference, as a verb phrase of an error message, or None."""
    if folder.KIND.exists(Path(path)):
        return "is an index"
    if not os.path.isfile(path):
        return None
    if folder.KIND.exists(folder.default_folder(path)):
        return "is a reference, with its index next to it"
    record = _long_first_record(path)
    bases = f"{MAX_READ_LENGTH:,}"
    return f"looks like a reference (its first sequence, {record}, has over {bases} bases)" if record else None


def _long_first_record(path: str) -> str | None:
    """Return the name of the first sequence of a FASTA file if it is longer than any read, else None."""
    target = bytearray(START_BYTES)
    with open_bytes(path) as source:
        start = bytes(target[: source.readinto(memoryview(target))])
    header, _, rest = start.partition(b"\n")
    sequence = rest.split(b"\n>", 1)[0].translate(None, b"\r\n")
    if not header.startswith(b">") or len(sequence) <= MAX_READ_LENGTH:
        return None
    return (header[1:].split() or [b"unnamed"])[0].decode("ascii", "backslashreplace")
