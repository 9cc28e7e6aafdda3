"""Seeds compared with sorted suffixes: the insertion point of every position, and the common prefixes there."""

import dataclasses
import random
from collections.abc import Sequence

import numpy as np
import pytest
from examples import batch_of, below, context_of, fibonacci, index_of, random_bases, substitute, with_table
from oracles.alignment import canonical, common_prefix, insertion_point, reverse_complement, suffix_order, text_of

from readmap.backend import open_backend
from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import Context
from readmap.mapping.parameters import search_passes
from readmap.mapping.seeds import Selection, find_seeds

MIN_LENGTH = 10  # of a read that has a seed
RANDOM = random.Random(31)
PIECE = random_bases(RANDOM, 300)
GENOMES = {
    "random": [random_bases(RANDOM, 1_500), random_bases(RANDOM, 400)],
    "copies": [PIECE, PIECE[:200], "N" + PIECE[100:], substitute(RANDOM, PIECE, 10)],
    "one letter": ["A" * 300, "T" * 120, "A" * 7],
    "fibonacci": [fibonacci(500), fibonacci(377, "CA")],
    "runs of N": [random_bases(RANDOM, 600, "ACGT" * 8 + "N"), "N" * 80 + PIECE[:150] + "N" * 80],
    "tiny": ["ACGTACG"],
    "only N": ["N" * 50],
    "many contigs": [random_bases(RANDOM, 1 + below(RANDOM, 40)) for _ in range(60)],
}


def reads_like(contigs: Sequence[str], generator: random.Random) -> list[str]:
    """Return parts of the contigs on both strands, some over contig ends or with N, and reads that the contigs lack."""
    text = text_of(contigs).replace("!", "N")
    reads = []
    for length in (10, 12, 17, 31, 32, 33, 64, 80, 100, 140):
        start = below(generator, max(1, len(text) - length // 2))
        piece = substitute(generator, text[start : start + length].replace("N", "C"), below(generator, 4))
        reads.append(piece if below(generator, 2) else reverse_complement(piece))
    reads += [random_bases(generator, 70), "A" * 90, "T" * 45, fibonacci(80), text[: 60 + below(generator, 20)] + "G"]
    ambiguous = [letter if below(generator, 25) else "N" for letter in text[:150]]
    reads = [*reads, "".join(ambiguous), "N" * 30, PIECE[:40] + "N" + PIECE[41:90], "N" + PIECE[1:60] + "N"]
    return [read.ljust(MIN_LENGTH, "G") for read in reads]


def check(
    contigs: Sequence[str],
    reads: Sequence[str],
    selected: Sequence[int],
    stride: int,
    shortest: int,
    context: Context,
) -> None:
    text = text_of(contigs)
    order = suffix_order(text)
    backend, batch = context.backend, batch_of(reads, context)
    queries = batch.queries
    search_pass = dataclasses.replace(search_passes(len(order))[0], min_seed_bases=shortest)
    slots = DeviceList.of(backend.to_device(np.array(selected, np.int32)))
    seeds = find_seeds(Selection(slots, stride, search_pass), batch, context)
    assert seeds.stride == stride
    assert (seeds.ranks.dtype, seeds.before.dtype) == (context.index.suffixes.dtype, np.uint16)
    offsets, ranks, before, after, records = (
        backend.to_host(array).tolist()
        for array in (seeds.offsets, seeds.ranks, seeds.before, seeds.after, queries.order)
    )
    assert offsets[0] == 0
    assert offsets[-1] == len(ranks) == len(before) == len(after)
    for item, slot in enumerate(selected):
        first = canonical(reads[records[slot]])
        positions = range(0, len(first) - shortest + 1, stride)
        assert offsets[item + 1] - offsets[item] == 2 * len(positions)
        seed = offsets[item]
        for oriented in (first, reverse_complement(first)):
            for position in positions:
                query = oriented[position:].split("N")[0]
                if len(query) < shortest:
                    assert (before[seed], after[seed]) == (0, 0)
                    assert 0 <= ranks[seed] <= len(order)
                else:
                    rank = insertion_point(text, order, query)
                    shared_before = common_prefix(text, order[rank - 1], query) if rank > 0 else 0
                    shared_after = common_prefix(text, order[rank], query) if rank < len(order) else 0
                    assert (ranks[seed], before[seed], after[seed]) == (rank, shared_before, shared_after), query
                seed += 1


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("genome", GENOMES)
def test_seeds(backends: str, genome: str, force_64_bits: bool) -> None:
    contigs = GENOMES[genome]
    context = context_of(contigs, backends, 2, force_64_bits)
    reads = reads_like(contigs, random.Random(32))
    for stride, shortest in ((1, MIN_LENGTH), (3, 6), (12, MIN_LENGTH)):
        check(contigs, reads, range(len(reads)), stride, shortest, context)


@pytest.mark.parametrize("genome", ["random", "copies", "fibonacci", "runs of N"])
@pytest.mark.parametrize("bases", [8, 11])
def test_seeds_by_larger_prefix_tables(backends: str, genome: str, bases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Including tables of more bases than a seed has."""
    contigs, backend = GENOMES[genome], open_backend(backends)
    context = Context(with_table(index_of(contigs), bases, backend, monkeypatch), backend)
    reads = reads_like(contigs, random.Random(35))
    for stride, shortest in ((1, MIN_LENGTH), (3, 6)):
        check(contigs, reads, range(len(reads)), stride, shortest, context)


def test_selected_reads(backends: str) -> None:
    contigs = GENOMES["copies"]
    context = context_of(contigs, backends)
    reads = reads_like(contigs, random.Random(33))
    check(contigs, reads, [2, 3, 11, 15], 5, 10, context)
    check(contigs, reads, [7], 2, 10, context)


def test_interleaved_reads(backends: str) -> None:
    contigs = GENOMES["random"]
    context = context_of(contigs, backends)
    context.backend.warp_width = 32
    reads = [read for seed in range(4) for read in reads_like(contigs, random.Random(seed))]
    check(contigs, reads, range(len(reads)), 7, 10, context)


def test_long_read(backends: str) -> None:
    """The common prefixes exceed a byte and a word of packed bases."""
    contig = random_bases(random.Random(34), 9_000)
    context = context_of([contig, contig[3_000:]], backends)
    read = contig[500:8_900]
    check([contig, contig[3_000:]], [read, reverse_complement(read)], [0, 1], 400, 12, context)
