"""Files of reads -> batches that have been searched, with what the first of them show of the sample, as in a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from readmap.errors import DataError, UsageError
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.pipeline import search_again, search_reads
from readmap.reads.chunks import Chunk, PairLayout, read_chunks
from readmap.run.chunk_plan import plan_chunks
from readmap.run.device_reads import parse_chunk
from readmap.run.sample import Observed, enough, learn, observe


def file_batches(
    paths: Sequence[str], layout: PairLayout, context: Context, batch_reads: int | None
) -> Iterator[tuple[Batch, Context]]:
    """The batches in the order of the reads. One is there until the next one is asked for.

    Raises DataError and OSError behind the batches of all that was good.
    """
    if batch_reads is not None and batch_reads < 1:
        raise UsageError(f"batch_reads is {batch_reads}, expected 1 or more")
    backend, held, observed = context.backend, list[tuple[Batch, Chunk]](), list[Observed]()
    learnt: Context | None = None

    def rest() -> Iterator[tuple[Batch, Context]]:
        if held:
            known = replace(context, sample=learn(observed, context.pairing.insert_size))
            while held:
                batch, chunk = held.pop(0)
                yield search_again(batch, known), known
                chunk.release()

    most = plan_chunks([backend]).nbytes
    chunks = read_chunks(paths, backend.host_buffer, most, batch_reads, backend.threads, layout=layout)
    try:
        for chunk in chunks:
            reads = parse_chunk(chunk, False, backend)
            if reads.count and learnt:
                yield search_reads(reads, learnt), learnt
            elif reads.count:
                batch = search_reads(reads, context)
                observed.append(observe(batch, context))
                held.append((batch, chunk))
                chunk.keep()
                if enough(observed, context.pairing.insert_size):
                    learnt = replace(context, sample=learn(observed, context.pairing.insert_size))
                    yield from rest()
            if reads.bad is not None:
                raise chunk.error(reads.bad)
            chunk.release()
    except (DataError, OSError):
        yield from rest()
        raise
    yield from rest()
