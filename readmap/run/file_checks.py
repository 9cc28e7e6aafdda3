"""Checks of the files of a search before any work: inputs that cannot be read, and outputs that collide."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from readmap.errors import UsageError, option
from readmap.formats.array_folder import MANIFEST
from readmap.formats.path_checks import are_same, refuse_inputs, refuse_same_outputs
from readmap.reads.chunks import PairLayout
from readmap.run.config import SearchConfig
from readmap.run.lanes import Lane, resolve_lanes
from readmap.run.output_format import ENDINGS, has_unknown_ending, output_format_of

#: For a search without further outputs.
NO_OUTPUTS: Mapping[str, str | None] = {}

PAGE_ENDINGS = (".html", ".htm")
#: What goes to some outputs, for messages.
_CONTENTS = {
    option("unmapped"): "the reads without a place go",
    option("metrics"): "the metrics go",
    option("report"): "the page goes",
}


@dataclass(frozen=True)
class InputFiles:
    """The files of reads of a search, at least one lane. are_lanes_named: False if reads were named without lanes."""

    lanes: list[Lane]
    are_lanes_named: bool

    @property
    def paths(self) -> list[str]:
        return [file for lane in self.lanes for file in lane.files]

    @property
    def layouts(self) -> list[PairLayout]:
        return [lane.layout for lane in self.lanes]


def check_files(config: SearchConfig, more_outputs: Mapping[str, str | None] = NO_OUTPUTS) -> InputFiles:
    """Return the files of reads after checking all inputs and outputs. more_outputs: paths of further outputs by the
    names of their options. Raises UsageError if there are no reads or too many files, or if an output is an input or
    another output; OSError if a file of reads cannot be read; the errors of resolve_lanes."""
    lanes, are_named = resolve_lanes(config.lanes, config.sheet, config.sample), True
    if not lanes:
        if not config.reads:
            raise UsageError(f"no reads: name their files, or {option('lanes')}, or {option('sheet')}")
        lanes, are_named = [Lane(tuple(config.reads), _layout_of(config), config.group)], False
    files = InputFiles(lanes, are_named)
    for path in files.paths:
        if os.path.isfile(path) or os.path.isdir(path):
            with open(path, "rb"):  # a pipe is not opened twice: its writer would get a broken pipe
                pass
        elif path != "-":
            os.stat(path)
    _check_outputs(config, files.paths, more_outputs)
    return files


def _layout_of(config: SearchConfig) -> PairLayout:
    """Return the pair layout of files that are named without lanes; raise UsageError if they are too many."""
    paths = config.reads
    several = f"{len(paths)} files of reads are given"
    if len(paths) > 1 and config.exact:
        raise UsageError(f"{several}, and {option('exact')} takes one: join them with cat and search -")
    for name in ("interleaved", "smart_pairing"):
        if len(paths) > 1 and getattr(config, name):
            raise UsageError(f"{several}, and {option(name)} takes one: leave out {option(name)}, or name one file")
    if len(paths) > 2:
        raise UsageError(f"{several}, and a search takes one, or two of pairs: join files with cat and search -")
    if len(paths) == 2 and are_same(*paths):
        pairs = f"name the file of the mates, or {option('interleaved')} where mates alternate"
        raise UsageError(f"{paths[0]} and {paths[1]} are one file: {pairs}")
    if config.smart_pairing:
        return PairLayout.ADJACENT
    single = PairLayout.INTERLEAVED if config.interleaved else PairLayout.SINGLE
    return PairLayout.TWO_FILES if len(paths) == 2 else single


def _check_outputs(config: SearchConfig, reads: Sequence[str], more_outputs: Mapping[str, str | None]) -> None:
    """Raise UsageError if an output is an input or another output, or its ending is wrong; reads: input paths."""
    check_report_paths(config.report, config.multiqc)
    if output_format_of(config.unmapped) is not None:
        name = f"{option('unmapped')} {config.unmapped}"
        raise UsageError(f"{name}: FASTQ is written: name it so, as unmapped.fq.gz")
    outputs = {name: path for name, path in output_paths(config, more_outputs).items() if name != option("multiqc")}
    refuse_inputs(outputs, reads, "reads")
    refuse_inputs(outputs, filter(None, [config.split]), "split")
    if not config.format and not config.count_only and has_unknown_ending(config.output):
        expected = f"a name that ends with {', '.join(ENDINGS)}, or {option('format')}"
        raise UsageError(f"{option('output')} {config.output}: expected {expected}")
    refuse_same_outputs(outputs, _CONTENTS)


def output_paths(config: SearchConfig, more_outputs: Mapping[str, str | None] = NO_OUTPUTS) -> dict[str, str | None]:
    """Return the paths of all outputs by the names of their options, the output of the records first."""
    names = ("output", "unmapped", "metrics", "report", "multiqc")
    paths = {name: getattr(config, name) for name in names} | dict(more_outputs)
    return {option(name): path for name, path in paths.items()}


def check_report_paths(report: str | None, multiqc: str | None) -> None:
    """Raise UsageError if `report` is not the name of a page, or `multiqc` is a file."""
    if report is not None and report != "-" and not report.endswith(PAGE_ENDINGS):
        raise UsageError(f"{option('report')} {report}: expected a name that ends with .html")
    if multiqc is not None and os.path.exists(multiqc) and not os.path.isdir(multiqc):
        raise UsageError(f"{option('multiqc')} {multiqc}: expected a folder, found a file")


def is_older_than_source(index: Path, named: str | None) -> bool:
    """Return True if `named` is a FASTA file that has changed since the index in the folder `index` was built."""
    if named is None or not os.path.isfile(named):
        return False
    return os.path.getmtime(named) > (index / MANIFEST).stat().st_mtime
