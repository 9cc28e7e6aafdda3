"""Compare the main figures of `exact` with their targets."""

from __future__ import annotations

from benchmarks.common import Row, figure

# The sizes for which the targets are set.
USUAL = {"reference_bases": 10_000_000, "query_bases": 200, "queries": 1 << 22}
RANDOM = {"bases": 1_000_000_000, "queries": 1 << 22}


def summarize(report: Row) -> list[Row]:
    """Return rows for the largest number of queries, with verdicts if the targets are for these sizes."""
    rows = [*_of_cpu(report), *_of_gpu(report), *_of_packing(report), *_of_commands(report)]
    if any(report["inputs"][name] != value for name, value in USUAL.items()):
        rows = [row | {"wanted": "", "bar": None, "verdict": None} for row in rows]
    return rows + _of_random(report)


def _of_cpu(report: Row) -> list[Row]:
    rows, queries = [], report["inputs"]["queries"]
    for structure, seconds in _on_one_thread(report).items():
        bar = 1.0 if structure == "array" else None
        rows.append(figure(f"{structure}, 1 CPU thread", queries / seconds / 1e6, "M queries/s", ">=", bar))
    for row in report["both_strands"]:
        name = f"{row['structure']}, both strands, {'GPU' if row['device'].startswith('cuda') else '1 CPU thread'}"
        rows.append(figure(name, row["queries"] / row["seconds"] / 1e6, "M queries/s"))
    return rows


def _of_gpu(report: Row) -> list[Row]:
    largest = {row["structure"]: row for row in report["gpu"] if row["queries"] == report["inputs"]["queries"]}
    if not largest:
        return []
    one, rows = _on_one_thread(report), []
    for structure, row in largest.items():
        bar = 1.0 if structure == "array" else None
        rows.append(figure(f"{structure}, GPU: kernel", 1e3 * row["kernel_seconds"], "ms", "<=", bar))
    for structure, row in largest.items():
        bar = 15.0 if structure == "array" else None
        parts = row["query_transfer_seconds"] + row["kernel_seconds"] + row["result_transfer_seconds"]
        rows.append(figure(f"{structure}, GPU: queries, kernel, results", 1e3 * parts, "ms", "<=", bar))
    for structure, row in largest.items():
        bar = 85.0 if structure == "array without table" else None  # the paper's main result, for its search
        name = f"{structure}: 1 CPU thread / GPU"
        rows.append(figure(f"{name} with all transfers", one[structure] / row["total_seconds"], "times", ">=", bar))
        rows.append(figure(f"{name}, kernel", one[structure] / row["kernel_seconds"], "times"))
    for table in ("", " without table"):
        for part, key in (("with all transfers", "total_seconds"), ("kernel", "kernel_seconds")):
            ratio = largest[f"tree{table}"][key] / largest[f"array{table}"][key]
            rows.append(figure(f"tree / array{table}, GPU: {part}", ratio, "times"))
    return rows


def _on_one_thread(report: Row) -> dict[str, float]:
    """Return the seconds of each structure with all queries, on one thread."""
    most = report["inputs"]["queries"]
    return {row["structure"]: row["seconds"] for row in report["cpu"] if (row["threads"], row["queries"]) == (1, most)}


def _of_packing(report: Row) -> list[Row]:
    packing = report["packing"]
    where = "GPU" if packing["device"].startswith("cuda") else "CPU"
    parts = ("copy", "parse", "pack") if where == "GPU" else ("parse", "pack")
    return [
        figure(f"{part} FASTA, {where}", 1e9 * packing[f"{part}_seconds"] / packing["queries"], "ns a query")
        for part in parts
    ]


def _of_commands(report: Row) -> list[Row]:
    """Return ratios of the peers' times to readmap's by array, for each peer's largest number of queries."""
    seconds = {(row["command"], row["queries"]): row for row in report["commands"]}
    rows = []
    for peer in ("bowtie", "mummer"):
        if counts := [count for name, count in seconds if name == peer]:
            taken, ours = seconds[peer, max(counts)], seconds["readmap array", max(counts)]
            name = f"{peer} / readmap, commands, {max(counts):,} queries"
            rows.append(figure(name, taken["wall_seconds"] / ours["wall_seconds"], "times"))
            if "build_seconds" in taken:
                searching = taken["cpu_seconds"] - taken["build_seconds"]
                name = f"{name}, CPU time without building the tree"
                rows.append(figure(name, searching / ours["cpu_seconds"], "times"))
    return rows


def _of_random(report: Row) -> list[Row]:
    random = report["random"]
    if random is None:
        return []
    bar = 5.0 if all(random[name] == value for name, value in RANDOM.items()) else None
    name = f"{random['bases'] / 1e6:,g} Mbp of random DNA, GPU:"
    sort = figure(f"{name} sort", random["sort_seconds"], "s")
    return [sort, figure(f"{name} array's kernel", 1e3 * random["kernel_seconds"], "ms", "<=", bar)]
