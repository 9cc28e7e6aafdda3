"""Time whole commands of readmap and its peers, from a file of queries to a file of occurrences."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

from benchmarks.common import Options, Row, readmap, run
from benchmarks.exact.inputs import QUERY_BASES

PEERS = {"bowtie": ["bowtie", "bowtie-build"], "mummer": ["mummer"]}  # programs that must be installed
LONGEST = 5.0  # seconds after which a command is not repeated
Words = list[str | Path]


def peers(options: Options) -> list[str]:
    """Return the peers that are wanted and installed."""
    return [name for name, programs in PEERS.items() if options.peer_queries and all(map(shutil.which, programs))]


def build(options: Options, reference: Path) -> list[Row]:
    """Return the cost of indexing the reference by readmap and bowtie; mummer indexes at every search."""
    built, index = [], options.work / "index.readmap"
    for structure in ("array", "both"):
        words = (reference, "-o", index, "--structure", structure, "--force", "-t", "1")
        built.append({"command": f"readmap index, {structure}", **readmap(options, "index", *words)[0]})
    if "bowtie" in peers(options):
        taken = run(["bowtie-build", "-q", reference, options.work / "bowtie"], options.work)
        built.append({"command": "bowtie-build", **taken})
    return built


def lines(options: Options, reference: Path, queries: Path) -> dict[str, Words]:
    """Return the commands by name, which search the forward strand and write every occurrence."""
    work, called, threads = options.work, dict[str, Words](), {"cpu": 1, "cuda": options.threads}
    for device in dict.fromkeys(("cpu", options.device)):
        for structure in ("array", "tree"):
            words = f"--exact --structure {structure} --strand forward --format tsv".split()
            words += ["--device", device, "-t", str(threads[device])]
            places = ["-x", work / "index.readmap", "-o", work / "occurrences", "--json", work / "report.json"]
            name = f"readmap {structure}" + (", GPU" if device == "cuda" else "")
            called[name] = [sys.executable, "-m", "readmap", "search", queries, *places, *words]
    if "bowtie" in peers(options):
        words = [
            "-v",
            "0",
            "-a",
            "--norc",
            "-p",
            "1",
            "--suppress",
            "5,6,7,8",
            "-f",
        ]  # names, strands and positions only
        called["bowtie"] = ["bowtie", *words, "-x", work / "bowtie", queries, work / "occurrences"]
    if "mummer" in peers(options):
        called["mummer"] = ["mummer", *f"-maxmatch -n -l {QUERY_BASES} -F".split(), reference, queries]
    return called


def shown(words: Words) -> str:
    """Return a command without the parts that depend on the machine."""
    return " ".join(Path(word).name if isinstance(word, Path) or word == sys.executable else word for word in words)


def time_command(name: str, words: Words, runs: int, count: int, expected: int, work: Path) -> Row:
    """Return the run of median time of `count` queries; exit if the number of occurrences is not `expected`."""
    taken, out = list[Row](), work / "occurrences"
    while len(taken) < runs and sum(one["wall_seconds"] for one in taken) < LONGEST:
        out.unlink(missing_ok=True)  # replacing a file takes the time of freeing it
        taken.append(run(words, work, out if name == "mummer" else os.devnull))
    if name.startswith("readmap"):
        occurrences = json.loads((work / "report.json").read_text())["counts"]["occurrences"]
    else:
        with open(out, "rb") as written:
            occurrences = sum(not line.startswith(b">") for line in written)
    if occurrences != expected:
        sys.exit(f"benchmark: {name} finds {occurrences:,} occurrences of {count:,} queries, expected {expected:,}")
    usual = sorted(taken, key=lambda one: one["wall_seconds"])[len(taken) // 2]
    row = {"command": name, "queries": count, "occurrences": occurrences}
    row |= {key: usual[key] for key in ("wall_seconds", "cpu_seconds")}  # a child's peak memory includes this process's
    if name == "mummer":
        log = (work / "log").read_text()
        row["build_seconds"] = float(re.findall(r"CONSTRUCTIONTIME.* ([\d.]+)", log)[0])
    return row
