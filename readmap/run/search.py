"""The composition of a search: a SearchConfig -> open index, devices, inputs and outputs -> records and a summary."""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from readmap.backend import Backend
from readmap.duplicates.marker import DuplicateMarker
from readmap.duplicates.shards import FragmentRecorder
from readmap.formats.fasta import Contig
from readmap.formats.output import ByteSink, PendingOutput
from readmap.formats.sam import SamEncoding, header, parse_header_lines, program_name, read_groups
from readmap.index.device import IndexStructure
from readmap.index.index import Index
from readmap.index.reference import reference_checksum
from readmap.index.suffix_array import kernel_types
from readmap.mapping.batch import Context
from readmap.mapping.records import RecordStyle
from readmap.qc.survey import Survey
from readmap.reads.inflaters import inflaters_for
from readmap.reads.shards import RecordRange, Shard
from readmap.run import stream
from readmap.run.batch_processor import BatchProcessor, RunSummary
from readmap.run.chunk_turns import DeviceLease
from readmap.run.config import SearchConfig
from readmap.run.conflicts import check_pair_options
from readmap.run.devices import describe_devices
from readmap.run.exact import ALL, ExactSearch, LineFormat, Parameters
from readmap.run.file_checks import NO_OUTPUTS, InputFiles, check_files
from readmap.run.index_loading import LoadedIndex, describe_setup, load_index, open_index, warn_index
from readmap.run.inputs import OpenReads, open_inputs
from readmap.run.lanes import Lane
from readmap.run.monitor import Monitor, Silent
from readmap.run.outputs import SearchOutputs, describe_sorting, open_outputs
from readmap.run.read_mapper import ReadMapper
from readmap.run.sample_model import SampleModel, read_sample_model
from readmap.run.summary import ExactSearchSummary, Origin, SearchSummary, describe_shard, reads_per_second
from readmap.strand import Strand
from readmap.version import __version__

#: Seconds between switches of threads in the Python interpreter. The default of 5 ms is too long: a GPU maps 70,000
#: reads in that time while threads that read, write and copy wait for the interpreter's lock.
SWITCH_SECONDS = 0.0005
#: The rooms of kernels that every search needs.
KERNEL_ROOMS = ("common", "index", "reads", "mapping", "run")

Summary = SearchSummary | ExactSearchSummary


class FinishedSearch(NamedTuple):
    """A search whose outputs are complete; the caller commits them together."""

    summary: Summary
    outputs: list[PendingOutput]


@contextlib.contextmanager
def open_search(
    config: SearchConfig, monitor: Monitor | None = None, more_outputs: Mapping[str, str | None] = NO_OUTPUTS
) -> Iterator[FinishedSearch]:
    """Run a search; on exit abort the outputs that the caller has not committed. more_outputs: paths that the caller
    writes, by the names of their options. Raises UsageError, DataError, BackendError and OSError."""
    monitor, files = monitor or Silent(), check_files(config, more_outputs)
    lines = [line for given in config.header for line in parse_header_lines(given)]
    path, index = open_index(config, more_outputs)
    model, backends = known_sample_model(config, files, index), config.open_backends()
    with contextlib.ExitStack() as opened:
        outputs = opened.enter_context(open_outputs(config, index.reference, backends))
        reads = opened.enter_context(open_inputs(config, files, lines, inflaters_for(backends[0])))
        if not config.is_lenient:
            check_pair_options(config.given, reads.is_paired)
        loaded = load_searched_index(config, files, path, index, backends, monitor, reads.parts)
        contigs, program, marker = index.reference.contigs, program_name(reads.header), outputs.marker
        outputs.records.write(make_header(config, files.lanes, contigs, reads.header, marker, outputs.survey))
        processor = make_processor(config, files.lanes, loaded, reads, program, marker, model)
        counts = run_batches(config, processor, reads, list(outputs.sinks.values()), loaded, monitor=monitor)
        reads.check_complete(counts)
        outputs.finish(config.command_line, monitor.show)
        summary = _summarize(config, files, path, index, loaded, processor, outputs, reads)
        yield FinishedSearch(summary, outputs.pending)


def make_processor(
    config: SearchConfig,
    lanes: Sequence[Lane],
    loaded: LoadedIndex,
    reads: OpenReads,
    program: str,
    marker: DuplicateMarker | None,
    model: SampleModel | None,
) -> ReadMapper | ExactSearch:
    """Return the processor of batches of reads for `run_batches`. program: ID of readmap's @PG line in the header.
    marker: is given all fragments. model: what is known of the sample before the first read."""
    if config.exact:
        strand, limit = Strand(config.strand), config.max_hits or ALL
        parameters = Parameters(strand, loaded.structure, line_format(config), limit, config.group, program)
        return ExactSearch(loaded.indexes, parameters, loaded.backends)
    contexts = [
        Context(index, backend, config.scoring, config.pairing, config.reporting)
        for index, backend in zip(loaded.indexes, loaded.backends, strict=True)
    ]
    encoding, groups = SamEncoding.BINARY if config.is_binary else SamEncoding.TEXT, tuple(lane.group for lane in lanes)
    unmapped = config.unmapped is not None
    style = RecordStyle(encoding, groups, program, reads.comments, config.barcode_name, config.order, unmapped)
    return ReadMapper(contexts, style, reads.is_paired, marker, model)


def run_batches(
    config: SearchConfig,
    processor: BatchProcessor,
    reads: OpenReads,
    sinks: Sequence[ByteSink],
    loaded: LoadedIndex,
    *,
    monitor: Monitor | None = None,
    lease: DeviceLease | None = None,
) -> RunSummary:
    """Process all reads, write their records to `sinks`, and return the processor's summary. Raises as stream.run."""
    counts = processor.summary

    def progress() -> None:
        if monitor:
            speed = f"{counts.reads:,} reads, {reads_per_second(counts):,.0f} a second"
            monitor.show(f"{speed}, {counts.describe_progress()}", reads.share())

    switch_seconds = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        stream.run(
            reads.take(),
            sinks,
            processor,
            loaded.backends,
            layout=reads.layouts,
            batch_reads=config.batch_reads,
            plan=loaded.plan,
            progress=progress,
            lease=lease,
        )
    finally:
        sys.setswitchinterval(switch_seconds)
    return counts


def line_format(config: SearchConfig) -> LineFormat:
    """Return the format in which an exact search writes its lines; CRAM is made from BAM."""
    if config.count_only:
        return LineFormat.COUNTS
    return LineFormat.BAM if config.is_binary else LineFormat(config.output_format)


def searched_structure(config: SearchConfig, index: Index) -> IndexStructure:
    """Return the part of an index that finds reads: the array if the index has it, unless another one is asked for."""
    if not config.exact:
        return IndexStructure.ARRAY
    if config.structure:
        return IndexStructure(config.structure)
    return IndexStructure.ARRAY if index.structure.has_array else IndexStructure.TREE


def make_header(
    config: SearchConfig,
    lanes: Sequence[Lane],
    contigs: Sequence[Contig],
    lines: Sequence[str],
    marker: DuplicateMarker | None = None,
    survey: Survey | None = None,
) -> bytes:
    """Return the header of SAM or BAM, or the first line of a table. lines: header lines of the user and the reads.
    marker, survey: receive the read groups and contigs."""
    if (kind := line_format(config)) not in (LineFormat.SAM, LineFormat.BAM):
        return kind.header
    groups = dict.fromkeys(lane.group.line.decode() for lane in lanes if lane.group.line)
    found = read_groups([*groups, *lines])
    if marker:
        marker.set_header(found, [contig.length for contig in contigs])
    if survey:
        survey.set_header(found, [(contig.name, contig.length) for contig in contigs])
    encoding = SamEncoding.BINARY if config.is_binary else SamEncoding.TEXT
    return header(contigs, __version__, config.command_line, b"", encoding, [*groups, *lines], config.order)


def known_sample_model(config: SearchConfig, files: InputFiles, index: Index) -> SampleModel | None:
    """Return the sample model of the configuration, or None; raises UsageError if it does not suit the reads."""
    if config.sample_model is None:
        return None
    model, name = config.sample_model, ""
    if isinstance(model, str):
        model, name = read_sample_model(model), f" {model}"
    model.check_origin(config.scoring, reference_checksum(index.reference.contigs), name)
    libraries = [lane.group.field("LB") or "" for lane in files.lanes]
    if not files.are_lanes_named:  # readmap estimate has no read group for them
        model = model.renamed(libraries[0])
    model.check_libraries(libraries, name)
    return model


def load_searched_index(
    config: SearchConfig,
    files: InputFiles,
    path: Path,
    index: Index,
    backends: Sequence[Backend],
    monitor: Monitor,
    parts: Sequence[RecordRange] = (),
) -> LoadedIndex:
    """Start the log, compile and preload the kernels, and copy the index to the devices; parts: records of a shard."""
    shard = config.shard if isinstance(config.shard, Shard) and parts else None
    for line in [*describe_setup(path, config, backends), *describe_shard(shard, parts)]:
        monitor.say(line)
    warn_index(path, index, config, monitor.say)
    if needs := describe_sorting(config, files.paths, backends[0]):
        monitor.say(needs)
    types = kernel_types(index.suffixes)
    for backend in backends:
        backend.compile_missing(types, kernel_rooms(config), monitor.say)
    monitor.show("loading the index")
    for backend in backends:
        backend.preload(types, ("common", "reads", "mapping", "run"))
    return load_index(config, path, index, searched_structure(config, index), backends, monitor.say)


def kernel_rooms(config: SearchConfig) -> list[str]:
    """Return the folders of the kernels that a search needs."""
    others = {
        "bam": config.is_binary,
        "duplicates": config.marks_duplicates or config.for_merge,
        "qc": config.makes_quality_report,
    }
    return [*KERNEL_ROOMS, *(room for room, is_needed in others.items() if is_needed)]


def _summarize(
    config: SearchConfig,
    files: InputFiles,
    path: Path,
    index: Index,
    loaded: LoadedIndex,
    processor: ReadMapper | ExactSearch,
    outputs: SearchOutputs,
    reads: OpenReads,
) -> Summary:
    """Return the summary of a search whose outputs are finished; path: the index folder."""
    backends = loaded.backends
    origin = Origin(
        index=str(path),
        reads=files.paths,
        outputs={name: sink.name for name, sink in outputs.sinks.items()},
        reference=index,
        device=backends[0].name,
        devices=describe_devices(backends),
        threads=backends[0].threads,
        load_seconds=loaded.seconds,
        codec=outputs.compression.codec_name,
        shard=config.shard if isinstance(config.shard, Shard) else None,
        parts=reads.parts,
    )
    if isinstance(processor, ExactSearch):
        return ExactSearchSummary(origin, processor.summary, processor.parameters, config.prefix_table)
    marker = None if isinstance(outputs.marker, FragmentRecorder) else outputs.marker
    duplicates = marker.libraries if marker else None
    return SearchSummary(origin, processor.summary, config.scoring, duplicates, outputs.reports)
