"""readmap estimate: insert sizes and divergence of all reads of a run, for searches of their shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import typer

from readmap.cli.common.conflicts import spelling_options
from readmap.cli.common.options import argument, command, flag, no_check_option, option
from readmap.cli.common.report import Report, ReportOptions, Session
from readmap.cli.search.command import GROUPS, ReportMonitor
from readmap.cli.search.options import LaneOptions, PairOptions, Resources
from readmap.cli.search.scoring import ScoringOptions
from readmap.formats.output import open_output
from readmap.formats.wording import printable
from readmap.index import folder
from readmap.run.config import SearchConfig
from readmap.run.estimation import estimate_sample_model
from readmap.run.sample_model import SampleModel
from readmap.run.summary import describe_divergence, describe_sizes

EXAMPLES = r"""[bold]Examples[/]
  $ readmap estimate r1.fq.gz r2.fq.gz -x ref.fa -o sample.json
  $ readmap search r1.fq.gz r2.fq.gz -x ref.fa --sample-model sample.json --split reads.split --shard 3/20 -o 3.bam"""


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """All options of readmap estimate."""

    reads: list[str] | None = argument(  # noqa: RUF009
        "READS", "Reads as readmap search takes them: all files that belong together.", default=None
    )
    lanes: LaneOptions
    pairs: PairOptions
    index: str | None = option("-x --index", "The index, as readmap search finds it.", "INDEX")
    no_check: bool = no_check_option("index")
    ignore_alternates: bool = flag("-j --ignore-alt", "As for readmap search, which needs the same.")
    output: str = option("-o --output", "The file for --sample-model of readmap search.", "FILE", default=...)
    scoring: ScoringOptions
    resources: Resources
    report: ReportOptions

    def config(self, command_line: str) -> SearchConfig:
        """Return the configuration of the search whose sample model is estimated."""
        return SearchConfig(
            reads=tuple(self.reads or ()),
            lanes=tuple(self.lanes.lanes or ()),
            sheet=self.lanes.sheet,
            sample=self.lanes.sample,
            interleaved=self.pairs.interleaved,
            smart_pairing=self.pairs.smart_pairing,
            collate=self.pairs.collate,
            index=self.index,
            check=not self.no_check,
            alternates=not self.ignore_alternates,
            scoring=self.scoring.scoring(),
            pairing=self.pairs.pairing(),
            device=self.resources.device,
            gpus=self.resources.chosen_gpus,
            threads=self.resources.threads,
            gpu_memory=self.resources.gpu_memory,
            command_line=command_line,
        )


@command
def estimate(context: typer.Context, options: EstimateOptions) -> None:
    """Estimate insert sizes and divergence once, for searches of all shards.

    The estimates are those that one search of all reads makes from the first of them: no more reads are read.
    """
    session: Session = context.obj
    with spelling_options(context, GROUPS):
        config = options.config(session.command_line)
        outputs = {"output": options.output, "json": options.report.json}
        with Report(session, options.report) as report, open_output(options.output) as output:
            with report.progress() as show:
                model = estimate_sample_model(config, ReportMonitor(report, show), outputs)
            output.write(model.to_bytes())
            record = {"index": printable(str(folder.find(config.index))), "output": printable(output.name)}
            report.finish(record | _as_json(model), [output])
            for line in [*_describe(model), report.cost()]:
                report.say(line)


def _as_json(model: SampleModel) -> dict[str, object]:
    libraries = {name: sizes and [asdict(size) for size in sizes] for name, sizes in model.libraries.items()}
    return {"bases_per_difference": model.bases_per_difference, "insert_sizes": libraries}


def _describe(model: SampleModel) -> Iterator[str]:
    """Yield the model in lines of text."""
    if model.bases_per_difference is None:
        yield "no reads"
        return
    yield describe_divergence(model.bases_per_difference)
    for name, sizes in model.libraries.items():
        of = f" of {name}" if name else ""
        yield f"insert size{of} {describe_sizes(sizes)}" if sizes is not None else f"no pairs{of}"
