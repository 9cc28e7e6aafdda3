"""scripts/benchmark versus: map pairs of a human-like genome on the CPU, alternating with another mapper."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from benchmarks.common import Options, Row, figure, readmap, run
from benchmarks.human import HUMAN, genome, pairs
from benchmarks.index import touch
from benchmarks.map import check
from benchmarks.peers import index_of, peer_of
from benchmarks.reads import search

#: Target ratio of reads per second, readmap to minibwa on 16 threads, on a genome of human size.
BAR = 1.0


def benchmark_versus(options: Options) -> tuple[Row, Row]:
    """Return the medians of each set's runs, after one run that loads the indexes into memory."""
    reference, work, peer = genome(options), options.work, peer_of(options)
    if peer is None:
        sys.exit("benchmark: the other mapper is not installed")
    sets = {"given": [*options.reads]} if options.reads else pairs(options, options.sets)
    readmap(options, "index", reference, "-o", work / "index.readmap", "--force")
    index = index_of(peer, options, reference)
    checked = check(options, next(iter(sets.values())))
    touch(options, reference)
    held = (options.bases, options.threads, options.peer) == (HUMAN, 16, "minibwa")
    rows, bars = [], []
    for name, reads in sets.items():
        own, other = list[Row](), list[Row]()
        for _ in range(options.runs + 1):
            taken, report = search(options, reads, work / "out.sam")
            own.append(taken)
            taken = run(peer.map(options, index, reads), work, work / "peer.sam")
            other.append(taken | {"reads_a_second": round(report["counts"]["reads"] / taken["wall_seconds"])})
            Path(work / "peer.sam").unlink()
        medians = [{key: median(row[key] for row in one[1:] or one) for key in one[0]} for one in (own, other)]
        shown = {"set": name, "reads": report["counts"]["reads"]}
        rows += [
            shown | {"program": program} | row for program, row in zip(("readmap", peer.name), medians, strict=True)
        ]
        wall, cpu = (medians[1][key] / medians[0][key] for key in ("wall_seconds", "cpu_seconds"))
        bars.append(figure(f"reads/s, {name}, readmap / {peer.name}", wall, "times", ">=", BAR if held else None))
        bars.append(figure(f"CPU seconds, {name}, {peer.name} / readmap", cpu, "times"))
    return checked | {"commands": rows, "bars": bars}, report
