"""readmap search: reads to SAM, or to tables of exact occurrences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from readmap.bam.order import SortOrder
from readmap.cli.common.options import command
from readmap.cli.common.quality import open_quality
from readmap.cli.common.report import Report, Session
from readmap.cli.common.resources import describe_devices
from readmap.cli.search.alignment import AlignmentMode
from readmap.cli.search.conflicts import refuse_conflicts, refuse_for_single
from readmap.cli.search.exact import ExactMode
from readmap.cli.search.options import Options
from readmap.cli.search.record import record_of
from readmap.cli.search.speed import rate
from readmap.duplicates.marker import DuplicateMarker
from readmap.duplicates.shards import FragmentRecorder
from readmap.formats.path_checks import refuse_inside
from readmap.formats.sam_header import program_name
from readmap.formats.wording import printable
from readmap.index import folder
from readmap.index.index import Index
from readmap.index.reference import reference_checksum
from readmap.index.suffix_array import kernel_types
from readmap.reads.inflaters import inflaters_for
from readmap.run import stream
from readmap.run.exact import Format
from readmap.run.file_checks import check_files
from readmap.run.index_loading import load, tell
from readmap.run.inputs import open_all
from readmap.run.lanes import Lane, files_of, lanes_of
from readmap.run.outputs import compression_of, open_outputs, sorting_needs
from readmap.run.sample_model import SampleModel, read_sample_model

#: Seconds after which a thread that computes in Python lets another one go on: those that read, write and copy wait for
#: that each time, and the usual 5 ms are what a GPU maps 70,000 reads in.
SWITCH_SECONDS = 0.0005

EXAMPLES = r"""[bold]Examples[/]
  $ readmap search reads.fq.gz -x ref.fa -o out.sam
  $ readmap search r1.fq.gz r2.fq.gz -x ref.fa -o sorted.bam --sort
  $ cat *.fq.gz | readmap search - --interleaved -x ref.fa -o out.cram
  $ readmap search reads.fq -x ref.fa -R '@RG\tID:run1\tSM:sample' -o out.sam
  $ readmap search unaligned.bam -x ref.fa -o out.bam --keep-tags RX
  $ readmap search reads.fq -x ref.fa --exact -o places.bed
  $ readmap search primers.fa -x ref.fa --exact --count-only"""


@command
def search(context: typer.Context, options: Options) -> None:
    """Map reads or pairs of reads and write SAM, BAM or CRAM, or find all their exact occurrences (--exact).

    The output is in the order of the reads (but for --sort), the same on every device and for any number of threads.

    Also called: readmap map
    """
    refuse_conflicts(context, options)
    run(context.obj, options, pairs_only=lambda paired: refuse_for_single(context, paired))


def run(
    session: Session,
    options: Options,
    said: Sequence[str] = (),
    pairs_only: Callable[[bool], None] = lambda paired: None,
) -> None:
    """Do what the options say, which do not contradict each other.

    said: first, in lines. pairs_only: called with whether some reads may have mates; raises UsageError where an option
    needs them.
    """
    lanes = lanes_of(options.lanes)
    layouts, header = check_files(options, lanes), options.output.header_lines()
    path = folder.find(options.index)
    _refuse_inside(path, options)
    index = Index.open(path, not options.no_check, not options.ignore_alternates)
    if options.cluster.dask is not None:
        pairs_only(any(layout.paired for layout in layouts))
        from readmap.cli.search.cluster import ClusterSearch, run_on_cluster  # few searches have one

        run_on_cluster(
            session, ClusterSearch(options, lanes, layouts, index, path, _learnt(options, lanes, index)), header
        )
        return
    rules, backends = options.duplicates.rules(), options.resources.open_backends()
    backend = backends[0]  # that of what is sorted, compressed or counted on a device
    kept = FragmentRecorder(rules, backend, shard=options.shards.shard) if options.duplicates.for_merge else None
    duplicates = DuplicateMarker(rules, backend) if options.duplicates.is_marked else kept
    survey = options.quality.survey(backend, options.output.order is SortOrder.COORDINATE)
    if options.exact.is_exact:
        mode: ExactMode | AlignmentMode = ExactMode(options, index)
    else:
        mode = AlignmentMode(options, lanes, duplicates, survey, _learnt(options, lanes, index))
    compression, observers = compression_of(options.output, backends), [survey] if survey else []
    with (
        Report(session, options.report) as report,
        open_quality(options.quality, survey) as quality,
        open_outputs(options, index.reference, backend, compression, duplicates, observers) as outputs,
        open_all(options, lanes, layouts, header, inflaters_for(backend)) as reads,
    ):
        pairs_only(reads.paired)
        for line in (*said, *options.shards.decode_name(reads.parts)):
            report.say(line)
        tell(path, index, options.index, options.ignore_alternates, report)
        sinks = list(outputs.values())
        with report.progress(options.output.shares_terminal) as show:
            types = kernel_types(index.suffixes)
            files = files_of(lanes, options.reads)
            if needs := sorting_needs(options.output, files, backend):
                report.say(needs)
            for each in backends:
                each.compile_missing(types, _rooms(options, survey is not None), report.say)
            show("loading the index")
            for each in backends:
                each.preload(types, ("common", "reads", "mapping", "run"))
            began = report.seconds
            indexes, plan = load(path, index, mode, backends, options.output.order is not None, report)
            loading = report.seconds - began
            sinks[0].write(mode.header(index.reference.contigs, report.command_line, reads.header))
            work = mode.start(indexes, backends, program_name(reads.header), reads.comments, reads.paired)
            summary = work.summary

            def progress() -> None:
                show(f"{summary.reads:,} reads, {rate(summary):,.0f} a second, {mode.progress()}", reads.share())

            sources, layout, most_reads = reads.take(), reads.layouts, options.resources.batch_reads
            sys.setswitchinterval(SWITCH_SECONDS)
            stream.run(
                sources, sinks, work, backends, layout=layout, batch_reads=most_reads, plan=plan, progress=progress
            )
        reads.account(summary)
        if duplicates or survey:
            sinks[0].finish()  # until then no duplicates are known, nor the counts of what is written
        if kept:
            kept.write(outputs["fragments"])
        if duplicates and "metrics" in outputs:
            outputs["metrics"].write(duplicates.metrics(report.command_line).encode())
        named: dict[str, Any] = {"index": printable(str(path)), "reads": [*map(printable, files)]}
        named |= {name: printable(sink.name) for name, sink in outputs.items()}
        named |= {"codec": compression.used} if compression.used else {}
        named |= options.shards.for_programs(reads.parts)
        told = mode.record() | quality.write(sinks[0].name, duplicates, report.command_line)
        report.finish(
            named | record_of(summary, index, backends[0].name, backends[0].threads, loading) | told,
            [*sinks, *quality.outputs],
        )
        warnings = [f"warning: {warning}" for warning in summary.warnings]
        for line in [
            *(mode.lines(describe_devices(backends)) if summary.reads else ["no reads"]),
            *quality.lines(),
            *warnings,
            report.cost(),
        ]:
            report.say(line)


def _refuse_inside(path: Path, options: Options) -> None:
    """Raise UsageError where an output is inside the index."""
    outputs = {
        "-o": options.output.path,
        "--unmapped": options.output.unmapped,
        "--metrics": options.duplicates.metrics,
        "--report": options.quality.page,
        "--multiqc": options.quality.multiqc,
        "--json": options.report.json,
    }
    refuse_inside(path, outputs)


def _learnt(options: Options, lanes: Sequence[Lane], index: Index) -> SampleModel | None:
    """What is known of the reads by --learnt; raises what read_sample_model and expect do."""
    if options.shards.learnt is None:
        return None
    known = read_sample_model(
        options.shards.learnt, options.scoring.scoring(), reference_checksum(index.reference.contigs)
    )
    groups = [lane.group for lane in lanes]
    if not lanes:  # learn asks for no read group
        groups = [options.output.group()]
        known = known.renamed(groups[0].field("LB") or "")
    known.expect([group.field("LB") or "" for group in groups], options.shards.learnt)
    return known


def _rooms(options: Options, is_surveyed: bool) -> list[str]:
    """The rooms whose kernels are needed."""
    others = {
        "bam": options.format is Format.BAM,
        "duplicates": options.duplicates.is_marked or options.duplicates.for_merge,
        "qc": is_surveyed,
    }
    return ["common", "index", "reads", "mapping", "run", *(room for room, is_needed in others.items() if is_needed)]
