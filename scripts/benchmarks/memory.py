"""scripts/benchmark memory: compare the peak memory of `index` and `search` with their targets."""

from __future__ import annotations

from benchmarks.common import ROOT, Options, Row, readmap
from benchmarks.reads import inputs, search


def benchmark_memory(options: Options) -> tuple[Row, Row]:
    """Return the peak memory of both commands; "fixed" is the peak memory on a small reference."""
    reference, reads = inputs(options)
    small, taken = ROOT / "data/demo.fa.gz", []
    for one in (small, small, reference):  # the first run may compile, which takes more memory
        target = options.work / "index.readmap"
        indexed, _ = readmap(options, "index", one, "-o", target, "--force", "--device", options.device)
        searched, report = search(options, reads, options.work / "out.sam")
        taken.append((report["reference"]["bases"], indexed, searched))
    (least, *fixed), (bases, *whole) = taken[1:]
    bars = (14 * bases + 300_000_000, 2 << 30 if bases <= 100_000_000 else None)
    rows = []
    for name, bar, low, high in zip(("index", "search"), bars, fixed, whole, strict=True):
        start, peak = low["peak_memory_bytes"], high["peak_memory_bytes"]
        row = {"run": name, "wall_seconds": high["wall_seconds"], "peak_memory_bytes": peak, "fixed_bytes": start}
        row |= {"bytes_a_base": round((peak - start) / max(bases - least, 1), 2), "bar_bytes": bar}
        rows.append(row | {"verdict": bar and ("PASS" if peak <= bar else "MISS")})
    return {"memory": rows}, report
