"""Files of reads -> searched batches with the sample that a search of the files would estimate."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from readmap.errors import DataError, UsageError
from readmap.mapping.batch import Batch, Context
from readmap.mapping.pipeline import search_again, search_reads
from readmap.reads.chunks import Chunk, PairLayout, read_chunks
from readmap.run.chunk_plan import plan_chunks
from readmap.run.device_reads import parse_chunk
from readmap.run.sample import SampleEstimator, observe
from readmap.run.sample_model import SampleModel

#: The only library of files without read groups.
_LIBRARY = ""


def file_batches(
    paths: Sequence[str], layout: PairLayout, context: Context, batch_reads: int | None
) -> Iterator[tuple[Batch, Context]]:
    """Yield searched batches in the order of the reads, each with the context to align it; valid until the next one.
    Raises DataError and OSError after the batches of all valid reads before the error."""
    if batch_reads is not None and batch_reads < 1:
        raise UsageError(f"batch_reads is {batch_reads}, expected 1 or more")
    backend, insert_size = context.backend, context.pairing.insert_size
    estimator = SampleEstimator[tuple[Batch, Chunk]](SampleModel(), [_LIBRARY], insert_size)

    def replay(pending: list[tuple[Batch, Chunk]]) -> Iterator[tuple[Batch, Context]]:
        """Yield pending batches, searched again with the estimate, and release their chunks."""
        while pending:
            batch, chunk = pending.pop(0)
            known = replace(context, sample=estimator.sample_of(_LIBRARY))
            yield search_again(batch, known), known
            chunk.release()

    limit = plan_chunks([backend]).nbytes
    chunks = read_chunks(paths, backend.host_buffer, limit, batch_reads, backend.threads, layout=layout)
    try:
        for chunk in chunks:
            reads = parse_chunk(chunk, False, backend)
            estimator.start_library(_LIBRARY)
            if reads.count and estimator.wants(reads):
                batch = search_reads(reads, context)
                chunk.keep()
                yield from replay(estimator.add((batch, chunk), observe(batch, context)))
            elif reads.count:
                known = replace(context, sample=estimator.sample_of(_LIBRARY))
                yield search_reads(reads, known), known
            if reads.bad is not None:
                raise chunk.error(reads.bad)
            chunk.release()
    except (DataError, OSError):
        yield from replay(estimator.finish())
        raise
    yield from replay(estimator.finish())
