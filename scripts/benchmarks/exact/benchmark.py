"""The steps of scripts/benchmark exact."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from itertools import count, takewhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import SHARED, Options, Row
from benchmarks.exact import commands, inputs, times
from benchmarks.exact.bars import summarize
from benchmarks.exact.inputs import Letters
from benchmarks.exact.random_dna import search_random
from benchmarks.exact.searches import check
from readmap.backend import open_backend
from readmap.formats.fasta import Fasta
from readmap.index.index import Index

MIN_QUERIES, FACTOR = 1024, 4


def benchmark_exact(options: Options) -> tuple[Row, Row]:
    """Time exact searches by suffix array and suffix tree, on CPU and GPU, and by bowtie and mummer."""
    if options.figures and not find_spec("matplotlib"):
        sys.exit("benchmark: --figures needs matplotlib: pip install '.[benchmark]'")
    source = options.reference or SHARED / "data/human/human_21mbp.fa.gz"
    fasta, rest = _sequences(source, options)
    inputs.write_fasta(reference := options.work / "reference.fa", fasta)
    built = commands.build(options, reference)
    letters = inputs.draw_queries(fasta, rest, options.queries)
    index, one_thread = Index.open(options.work / "index.readmap"), open_backend("cpu", 1)
    gpu = open_backend("cuda", options.threads) if options.device == "cuda" else None
    backends = [open_backend("cpu", options.threads), *([gpu] if gpu else [])]
    checked, counts = check(index, inputs.text_of(fasta), letters, backends)
    sizes = [*takewhile(lambda size: size < len(letters), (MIN_QUERIES * FACTOR**i for i in count())), len(letters)]
    report = checked | {"inputs": _input_facts(fasta, sizes, counts), "built": built}
    report["cpu"] = times.time_cpu(index, letters, sizes, options.runs, options.threads)
    report["gpu"] = times.time_gpu(index, letters, sizes, options.runs, gpu) if gpu else []
    report["both_strands"] = [
        row
        for backend in (one_thread, gpu)
        if backend
        for row in times.time_both_strands(index, letters, options.runs, backend)
    ]
    report |= _time_commands(options, reference, letters, sizes, counts)
    report["packing"] = times.time_packing(options.work / "queries.fa", gpu or one_thread)
    report["random"] = None
    if gpu and options.random_bases:
        report["random"] = search_random(options.random_bases, len(letters), options.runs, gpu)
    facts = json.loads((options.work / "report.json").read_text())  # report of readmap's last search
    facts |= {"threads": options.threads, "reference": facts["reference"] | {"source": source.name}}
    return report | {"bars": summarize(report)}, facts


def _sequences(source: Path, options: Options) -> tuple[Fasta, Fasta]:
    """Return the sequences to index, and the sequences that half of the queries are drawn from; or exit."""
    if not source.exists():
        print(f"skipped: {source} is not there; give --reference, or set READMAP_SHARED")
        sys.exit(0)
    for peer in commands.PEERS:
        if options.peer_queries and peer not in commands.peers(options):
            print(f"{peer} is not installed, so readmap runs without it")
    fasta, rest = inputs.split_fasta(source, options.reference_bases, options.threads)
    if not len(rest.letters):
        sys.exit(f"benchmark: {source} has no more than {len(fasta.letters):,} bases, so there is no rest to draw from")
    return fasta, rest


def _input_facts(fasta: Fasta, sizes: list[int], counts: NDArray[np.int64]) -> Row:
    """Return the sizes of the inputs, and the number of queries found in each half."""
    found = {
        half: {"queries": len(of), "found": int(np.count_nonzero(of)), "occurrences": int(of.sum())}
        for half, of in (("from_reference", counts[::2]), ("from_elsewhere", counts[1::2]))
    }
    sequences = {"reference_bases": len(fasta.letters), "contigs": len(fasta.names), "query_bases": inputs.QUERY_BASES}
    return sequences | {"queries": sizes[-1], "sizes": sizes, **found}


def _time_commands(
    options: Options, reference: Path, letters: Letters, sizes: list[int], counts: NDArray[np.int64]
) -> Row:
    """Return a row for each whole command and each number of queries up to options.peer_queries."""
    queries, rows = options.work / "queries.fa", []
    called = commands.lines(options, reference, queries)
    for size in [size for size in sizes if size <= options.peer_queries] or sizes[:1]:
        inputs.write_queries(queries, letters[:size])
        for name, words in called.items():
            expected = int(counts[:size].sum())
            rows.append(commands.time_command(name, words, options.runs, size, expected, options.work))
    return {"command_lines": {name: commands.shown(words) for name, words in called.items()}, "commands": rows}
