"""A search by the workers of a cluster of Dask: the same records as without."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from readmap.bam.file_index import format_for
from readmap.cli.common.options import number, option, parse_size
from readmap.cli.common.output import COMPRESSED
from readmap.dask.cluster import LOCAL, connected
from readmap.dask.job import RECORDS, UNMAPPED, IndexPlace, Job, Lane, Packing, Resources, anywhere
from readmap.dask.searching import TASK_READS, Wanted
from readmap.errors import UsageError
from readmap.formats.bgzf import LEVEL
from readmap.formats.header import program_name, read_groups
from readmap.formats.sam import Form
from readmap.index.index import Index
from readmap.reads.chunks import Layout
from readmap.search.learnt import Learnt

if TYPE_CHECKING:
    from readmap.cli.search.alignment import AlignmentMode
    from readmap.cli.search.lanes import Lane as GivenLane
    from readmap.cli.search.options import Options


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """The workers that map."""

    panel: ClassVar = "Cluster"

    dask: str | None = option(
        "--dask",
        "Map by the workers of Dask, a shard of the reads a task: the address of a scheduler, as tcp://node1:8786, the "
        f"file that it has written, or {LOCAL} for workers of this machine, one a GPU (--gpus). Same output.",
        "ADDRESS",
    )
    tasks: int | None = number("--tasks", f"Shards of the reads (default: of {TASK_READS:,} reads).", 1, 1 << 20)


@dataclass(frozen=True)
class ClusterSearch:
    """A search as its options say it. index, path: that are searched. layouts: of the lanes, or of the reads."""

    options: Options
    lanes: Sequence[GivenLane]
    layouts: Sequence[Layout]
    index: Index
    path: Path
    learnt: Learnt | None

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
            RECORDS: style.form is Form.BINARY or (output.path or "").lower().endswith(COMPRESSED),
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
