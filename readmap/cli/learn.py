"""readmap learn: the first reads of a run to what they show, for runs on parts of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import typer

from readmap.cli.common.conflicts import refuse
from readmap.cli.common.options import argument, command, flag, no_check_option, option
from readmap.cli.common.quality import QualityOptions
from readmap.cli.common.report import Report, ReportOptions, Show
from readmap.cli.search import options as search
from readmap.cli.search.alignment import AlignmentMode, sizes_in_words
from readmap.cli.search.conflicts import lane_conflicts, pair_conflicts
from readmap.cli.search.scores import ScoringOptions
from readmap.cli.search.shards import ShardOptions
from readmap.formats.output import open_output
from readmap.formats.path_checks import refuse_inputs, refuse_inside, refuse_same_outputs
from readmap.formats.sam import NO_READ_GROUP
from readmap.formats.wording import printable
from readmap.index import folder
from readmap.index.index import Index
from readmap.index.reference import reference_checksum
from readmap.index.suffix_array import kernel_types
from readmap.mapping.context import Context
from readmap.mapping.records import Style
from readmap.reads.inflaters import inflaters_for
from readmap.run.chunk_plan import ChunkPlan
from readmap.run.estimation import first_lanes, learn_from
from readmap.run.file_checks import check_files
from readmap.run.index_loading import load, tell
from readmap.run.inputs import open_all
from readmap.run.lanes import Lane, files_of, lanes_of
from readmap.run.read_mapper import ReadMapper
from readmap.run.sample_model import SampleModel, write_sample_model

EXAMPLES = r"""[bold]Examples[/]
  $ readmap learn r1.fq.gz r2.fq.gz -x ref.fa -o learnt.json
  $ readmap search r1.fq.gz r2.fq.gz -x ref.fa --learnt learnt.json --split reads.split --shard 3/20 -o 3.bam"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """All options of readmap learn."""

    named_reads: list[str] | None = argument(  # noqa: RUF009
        "READS", "Reads as readmap search takes them: all files that belong together.", default=None
    )
    lanes: search.LaneOptions
    pairs: search.PairOptions
    index: str | None = option("-x --index", "The index, as readmap search finds it.", "INDEX")
    no_check: bool = no_check_option("index")
    ignore_alternates: bool = flag("-j --ignore-alt", "As of readmap search, which is to be given it too.")
    path: str = option("-o --output", "The file for --learnt of readmap search.", "FILE", default=...)
    scoring: ScoringOptions
    resources: search.Resources
    report: ReportOptions


@command
def learn(context: typer.Context, options: Options) -> None:
    """Learn from the first reads what readmap search learns of them, and write it for searches of their shards.

    That is how often the sample differs from the reference, and the insert sizes of each library.

    No more reads are read than that takes. What shards write is together what one search of all reads writes.
    """
    refuse(context, [*lane_conflicts(options.lanes), *pair_conflicts(options.pairs)])
    given = _search_options(options)
    lanes = lanes_of(options.lanes)
    check_files(given, lanes)
    path = folder.find(options.index)
    outputs = {"-o": options.path, "--json": options.report.json}
    refuse_inputs(outputs, files_of(lanes, options.named_reads), "reads")
    refuse_same_outputs(outputs, {})
    refuse_inside(path, outputs)
    index = Index.open(path, not options.no_check, not options.ignore_alternates)
    backends = options.resources.open_backends()
    with Report(context.obj, options.report) as report, open_output(options.path) as output:
        tell(path, index, options.index, options.ignore_alternates, report)
        with report.progress() as show:
            for backend in backends:
                backend.compile_missing(
                    kernel_types(index.suffixes), ["common", "index", "reads", "mapping", "run"], report.say
                )
            show("loading the index")
            scoring, pairing = options.scoring.scoring(), options.pairs.pairing()
            indexes, plan = load(path, index, AlignmentMode, backends, False, report)
            contexts = [Context(*own, scoring, pairing) for own in zip(indexes, backends, strict=True)]
            learnt = SampleModel()
            for group in _first_groups(lanes):
                learnt = _learn_of(group, learnt, given, contexts, plan, show)
        output.write(write_sample_model(learnt, scoring, reference_checksum(index.reference.contigs)))
        libraries = {name: sizes and [asdict(size) for size in sizes] for name, sizes in learnt.libraries.items()}
        record = {"index": printable(str(path)), "output": printable(output.name)}
        report.finish(
            record | {"bases_per_difference": learnt.bases_per_difference, "insert_sizes": libraries}, [output]
        )
        for line in [*_lines(learnt), report.cost()]:
            report.say(line)


def _first_groups(lanes: Sequence[Lane]) -> list[list[Lane]]:
    """Of each library the lanes in front of those of another one; a group of none where the reads are in no lanes."""
    return [[lanes[number] for number in group] for group in first_lanes([lane.group for lane in lanes])] or [[]]


def _learn_of(
    lanes: list[Lane],
    learnt: SampleModel,
    options: search.Options,
    contexts: Sequence[Context],
    plan: ChunkPlan,
    show: Show,
) -> SampleModel:
    """What is known with what lanes of a library show, or all reads where there are no lanes."""
    backends = [context.backend for context in contexts]
    groups = tuple(lane.group for lane in lanes) or (NO_READ_GROUP,)
    with open_all(options, lanes, check_files(options, lanes), [], inflaters_for(backends[0])) as reads:
        mapping = ReadMapper(contexts, Style(read_groups=groups), reads.paired, learnt=learnt)
        summary = mapping.summary
        sources, layouts = reads.take(), reads.layouts
        learn_from(sources, layouts, mapping, backends, plan, lambda: show(f"{summary.reads:,} reads"))
        return mapping.learnt


def _lines(learnt: SampleModel) -> Iterator[str]:
    """What was learnt, in words."""
    if learnt.bases_per_difference is None:
        yield "no reads"
        return
    yield f"the sample is expected to differ from the reference in one of {learnt.bases_per_difference:,} bases"
    for name, sizes in learnt.libraries.items():
        of = f" of {name}" if name else ""
        yield f"insert size{of} {sizes_in_words(sizes)}" if sizes is not None else f"no pairs{of}"


def _search_options(options: Options) -> search.Options:
    """The same for readmap search."""
    return search.Options(
        named_reads=options.named_reads,
        lanes=options.lanes,
        pairs=options.pairs,
        index=options.index,
        no_check=options.no_check,
        ignore_alternates=options.ignore_alternates,
        output=search.OutputOptions(),
        duplicates=search.DuplicateOptions(),
        quality=QualityOptions(),
        records=search.RecordOptions(),
        tags=search.TagOptions(),
        exact=search.ExactOptions(),
        shards=ShardOptions(),
        cluster=search.ClusterOptions(),
        scoring=options.scoring,
        resources=options.resources,
        report=options.report,
    )
