"""readmap estimate: estimate insert sizes and divergence from the reads of a run, for searches of their shards."""

from collections.abc import Iterator
from dataclasses import asdict

import typer

from readmap.cli.common.options import argument, command, option, option_group, spelling_options
from readmap.cli.common.report import Report, ReportOptions, Session
from readmap.cli.search.command import GROUPS, ReportMonitor
from readmap.cli.search.options import LaneOptions, PairOptions, ReferenceOptions, SearchResources, config_values
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


@option_group()
class EstimateOptions:
    """All options of readmap estimate."""

    reads: list[str] | None = argument("READS", "Reads, as for readmap search: all files.", default=None)
    reference: ReferenceOptions
    lanes: LaneOptions
    output: str = option("-o --output", "File for search --sample-model.", "FILE", default=..., panel="Output")
    pairs: PairOptions
    scoring: ScoringOptions
    resources: SearchResources
    report: ReportOptions

    def config(self, command_line: str) -> SearchConfig:
        """Return the configuration of the search whose sample model is estimated."""
        return SearchConfig(**config_values(self, command_line) | {"output": None})


@command
def estimate(context: typer.Context, options: EstimateOptions) -> None:
    """Estimate insert sizes and divergence once, for searches of all shards.

    The estimates equal the estimates of one search of all reads. Only the first reads are read.

    Use the same options for the index, pairs and scores in the searches.
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
    """Yield lines of text about divergence and the insert sizes of each library."""
    if model.bases_per_difference is None:
        yield "no reads"
        return
    yield describe_divergence(model.bases_per_difference)
    for name, sizes in model.libraries.items():
        library = f" of {name}" if name else ""
        yield f"insert size{library} {describe_sizes(sizes)}" if sizes is not None else f"no pairs{library}"
