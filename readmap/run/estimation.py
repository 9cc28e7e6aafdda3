"""The first reads of a run -> its sample model, without records: what `readmap estimate` does."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from readmap.index.reference import reference_checksum
from readmap.mapping.batch import Context
from readmap.reads.inflaters import inflaters_for
from readmap.run import stream
from readmap.run.batch_processor import RunSummary
from readmap.run.chunk_turns import ChunkTurn
from readmap.run.config import SearchConfig
from readmap.run.device_reads import DeviceReads
from readmap.run.file_checks import NO_OUTPUTS, InputFiles, check_files
from readmap.run.index_loading import LoadedIndex, open_index
from readmap.run.inputs import open_inputs
from readmap.run.lanes import Lane, first_lanes
from readmap.run.monitor import Monitor, Silent
from readmap.run.read_mapper import observe_reads
from readmap.run.sample import SampleEstimator
from readmap.run.sample_model import SampleModel
from readmap.run.search import load_searched_index
from readmap.run.writer import Block


class _Complete(Exception):
    """No further read can change the sample model."""


class _Observer:
    """A BatchProcessor that observes reads until the sample model is complete, and writes nothing."""

    comments = False

    def __init__(self, contexts: Sequence[Context], lanes: Sequence[Lane], is_paired: bool, model: SampleModel) -> None:
        self.summary = RunSummary()
        self._contexts = contexts
        self._libraries = [lane.group.field("LB") or "" for lane in lanes]
        self._errors = tuple({error for context in contexts for error in context.backend.device_errors})
        insert_size = contexts[0].pairing.insert_size
        self._estimator = SampleEstimator[None](model, self._libraries, insert_size, is_paired)

    @property
    def model(self) -> SampleModel:
        """The sample model; a library without pairs or without reads has no insert sizes."""
        model = self._estimator.model
        return replace(model, libraries={**model.libraries, **{n: model.libraries.get(n) for n in self._libraries}})

    def blocks(self, reads: DeviceReads, turn: ChunkTurn) -> Iterator[Block]:
        """Observe a batch in order; yield nothing. Raise _Complete if no further read can change the model."""
        turn.wait()
        library = self._libraries[reads.reads.lane]
        self._estimator.start_library(library)
        if self._estimator.wants(reads.reads):
            _, observation = observe_reads(reads, self._contexts, self._estimator.sample_of(library), self._errors)
            self._estimator.add(None, observation)
        self.summary.reads += reads.reads.count
        if self._estimator.is_complete:
            raise _Complete
        return iter(())

    def remaining_blocks(self, device_index: int = 0) -> Iterator[Block]:
        self._estimator.finish()
        return iter(())


def estimate_sample_model(
    config: SearchConfig, monitor: Monitor | None = None, more_outputs: Mapping[str, str | None] = NO_OUTPUTS
) -> SampleModel:
    """Return the divergence and insert sizes that a search with this configuration would estimate; read no more than
    needed. more_outputs: paths that the caller writes, by option name. Raises the errors of open_search."""
    monitor, files = monitor or Silent(), check_files(config, more_outputs)
    path, index = open_index(config, more_outputs)
    loaded = load_searched_index(config, files, path, index, config.open_backends(), monitor)
    model = estimate_from_lanes(config, files, loaded, monitor)
    return replace(model, scoring=config.scoring, reference=reference_checksum(index.reference.contigs))


def estimate_from_lanes(config: SearchConfig, files: InputFiles, loaded: LoadedIndex, monitor: Monitor) -> SampleModel:
    """Estimate divergence and each library's insert sizes from its first lanes; read until more cannot change them."""
    model, inflaters = SampleModel(), inflaters_for(loaded.backends[0])
    contexts = [
        Context(index, backend, config.scoring, config.pairing)
        for index, backend in zip(loaded.indexes, loaded.backends, strict=True)
    ]
    for own in first_lanes(files.lanes):
        with open_inputs(config, InputFiles(own, files.are_lanes_named), [], inflaters) as reads:
            observer = _Observer(contexts, own, reads.is_paired, model)
            counts, layouts = observer.summary, reads.layouts

            def progress(counts: RunSummary = counts) -> None:
                monitor.show(f"{counts.reads:,} reads")

            with contextlib.suppress(_Complete):
                stream.run(
                    *(reads.take(), [], observer, loaded.backends), layout=layouts, plan=loaded.plan, progress=progress
                )
        model = observer.model
    return model
