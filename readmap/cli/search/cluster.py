"""A search by the workers of a cluster of Dask: the same records as without."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from readmap.bam.compression import COMPRESSED
from readmap.bam.file_index import format_for
from readmap.cli.common.options import parse_size
from readmap.cli.common.report import Report, Session
from readmap.cli.search.alignment import AlignmentMode
from readmap.cli.search.options import Options
from readmap.cli.search.record import record_of
from readmap.dask.cluster import connected
from readmap.dask.job import RECORDS, UNMAPPED, IndexPlace, Job, Lane, Packing, Resources, anywhere
from readmap.dask.searching import Wanted, searched
from readmap.errors import UsageError
from readmap.formats.bgzf import LEVEL
from readmap.formats.sam import SamEncoding
from readmap.formats.sam_header import program_name, read_groups
from readmap.formats.wording import pluralize, printable
from readmap.index.index import Index
from readmap.reads.chunks import PairLayout
from readmap.run.index_loading import tell
from readmap.run.lanes import Lane as GivenLane
from readmap.run.lanes import files_of
from readmap.run.sample_model import SampleModel


@dataclass(frozen=True)
class ClusterSearch:
    """A search as its options say it. index, path: that are searched. layouts: of the lanes, or of the reads."""

    options: Options
    lanes: Sequence[GivenLane]
    layouts: Sequence[PairLayout]
    index: Index
    path: Path
    learnt: SampleModel | None

    def job(self, mode: AlignmentMode, header: Sequence[str], command_line: str) -> Job:
        """What all tasks are told; header: lines of the options. Raises UsageError where the output is no file."""
        options, index = self.options, self.index
        output, resources = options.output, options.resources
        if os.path.exists(output.path or "") and not os.path.isfile(output.path or ""):
            raise UsageError(f"-o {output.path}: no file, beside which workers could write (--dask)")
        lanes = [Lane(lane.files, lane.layout, lane.group) for lane in self.lanes]
        if "-" in options.reads:
            raise UsageError("--dask: workers cannot read standard input: name files")
        lanes = lanes or [Lane(tuple(options.reads), self.layouts[0], output.group())]
        style = replace(mode.style, program=program_name(header), comments=options.tags.comments)
        blocked = {
            RECORDS: style.form is SamEncoding.BINARY or (output.path or "").lower().endswith(COMPRESSED),
            UNMAPPED: (output.unmapped or "").lower().endswith(COMPRESSED),
        }
        groups = dict.fromkeys(lane.group.line.decode() for lane in lanes if lane.group.line)
        return Job(
            folder="",
            index=IndexPlace(str(self.path.absolute()), not options.no_check, not options.ignore_alternates),
            lanes=anywhere(lanes),
            contig_lengths=tuple(contig.length for contig in index.reference.contigs),
            style=style,
            packing=Packing(output.codec, output.level or LEVEL, blocked),
            scoring=mode.scoring,
            pairing=mode.pairing,
            reporting=mode.reporting,
            resources=Resources(
                resources.device,
                resources.threads,
                resources.most_gpu_memory,
                parse_size("--sort-memory", output.sort_memory),
                resources.batch_reads,
            ),
            groups=tuple(read_groups([*groups, *header])),
            rules=options.duplicates.rules() if options.duplicates.is_marked else None,
            command_line=command_line,
        )

    def wanted(self, job: Job, header: bytes) -> Wanted:
        """What is to be written, and what is known."""
        output = self.options.output
        longest = max(job.contig_lengths, default=0)
        return Wanted(
            output=output.path or "",
            header=header,
            form=(output.form or format_for(longest)) if job.is_sorted else None,
            unmapped=output.unmapped,
            metrics=self.options.duplicates.metrics,
            table=self.options.shards.table,
            learnt=self.learnt,
            tasks=self.options.cluster.tasks,
        )

    def connected(self) -> Any:
        """A client of the cluster; raises what readmap.dask.cluster.connected does."""
        options = self.options
        device, workers = options.resources.device, options.resources.workers
        return connected(options.cluster.dask or "", device, options.resources.chosen_gpus, workers)


def run_on_cluster(session: Session, search: ClusterSearch, header: Sequence[str]) -> None:
    """Have a cluster do it; header: lines of the options."""
    options, index = search.options, search.index
    mode = AlignmentMode(options, search.lanes)
    with Report(session, options.report) as report, contextlib.ExitStack() as opened:
        job = search.job(mode, header, report.command_line)
        wanted = search.wanted(job, mode.header(index.reference.contigs, report.command_line, header))
        client = opened.enter_context(search.connected())
        tell(search.path, index, options.index, options.ignore_alternates, report)
        report.say(f"the cluster's dashboard is {client.dashboard_link}")
        with report.progress() as show:
            found = opened.enter_context(searched(client, job, wanted, show))
        summary, cluster = found.summary, f"{pluralize(found.workers, 'worker')} of Dask"
        mode.take(summary, found.libraries)
        files = files_of(search.lanes, options.reads)
        named: dict[str, Any] = {"index": printable(str(search.path)), "reads": [*map(printable, files)]}
        paths = {"output": wanted.output, "unmapped": wanted.unmapped, "metrics": wanted.metrics}
        named |= {name: printable(written) for name, written in paths.items() if written is not None}
        named |= {"cluster": {"address": options.cluster.dask, "workers": found.workers, "tasks": found.tasks}}
        report.finish(named | record_of(summary, index, cluster, None, None) | mode.record(), found.outputs)
        warnings = [f"warning: {warning}" for warning in summary.warnings]
        for line in [*(mode.lines(cluster) if summary.reads else ["no reads"]), *warnings, report.cost()]:
            report.say(line)
