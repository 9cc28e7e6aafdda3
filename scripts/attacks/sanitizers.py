"""Compile all kernels with AddressSanitizer and UndefinedBehaviorSanitizer, and run valid commands and other attacks.

The package is unchanged: $CXX names a wrapper that adds the flags, and the compiled code has a cache of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.common import ROOT

from attacks.outcomes import Outcome, Tally, Verdict
from attacks.workers import ERROR_LINES, describe_end

FLAGS = "-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined"

#: Leaks are Python's; an allocation that is too large returns NULL, as without sanitizers.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1"}
OPTIONS |= {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "PYTHONMALLOC": "malloc"}

#: The attacks to run, and the share of the cases of each.
ATTACKS = {"parsers": 0.95, "folders": 0.05}


def environment(work: Path) -> dict[str, str]:
    """Return the environment in which kernels are compiled with sanitizers. work: the folder of the compiled code."""
    cache, wrapper = work / "sanitized", work / "sanitizing-c++"
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    wrapper.write_text(f'#!/bin/sh\nexec env -u LD_PRELOAD g++ "$@" {FLAGS}\n')
    wrapper.chmod(0o755)
    libraries = [subprocess.getoutput(f"g++ -print-file-name={name}.so") for name in ("libasan", "libubsan")]
    own = {"CXX": str(wrapper), "READMAP_CACHE": str(cache), "LD_PRELOAD": " ".join(libraries)}
    own |= {"PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT}"}
    return os.environ | OPTIONS | own


def run(seed: int, first: int, cases: int, workers: int, work: Path) -> tuple[Tally, list[str]]:
    """Run valid commands and attacks; return their counts and a line for each finding."""
    variables, tally, findings = environment(work), Tally(), []
    print("compiling all kernels with sanitizers, some minutes the first time", file=sys.stderr)
    done = subprocess.run([sys.executable, "-m", "attacks.sanitizers"], env=variables, capture_output=True, text=True)
    print(done.stdout.strip(), file=sys.stderr)
    reason = "" if done.returncode == 0 else f"{describe_end(done.returncode)}: {_first_error(done.stderr)}"
    tally.add(Outcome("sanitizers, valid runs", Verdict.CRASHED if reason else Verdict.ACCEPTED, reason))
    findings += [f"sanitizers, valid runs: {reason}"] if reason else []
    for name, share in ATTACKS.items():
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            os.unlink(file.name)
            words = [name, "--seed", seed, "--first", first, "--cases", max(int(share * cases), 1), "-j", workers]
            words += ["--work", work, "--json", file.name]
            command = [sys.executable, str(ROOT / "scripts/attack"), *map(str, words)]
            print(shlex.join(command), file=sys.stderr)
            subprocess.run(command, env=variables, stdout=subprocess.DEVNULL)
            report = json.loads(Path(file.name).read_text())
            Path(file.name).touch()
        for row in report["total"]:
            tally.add_row(row | {"attack": f"sanitizers, {row['attack']}"})
        findings += [f"sanitizers, {line}" for run in report["runs"] for line in run["findings"]]
    return tally, findings


def _first_error(errors: str) -> str:
    found = ERROR_LINES.findall(errors)
    return found[0] if found else errors[-500:]


#: Searches that launch further kernels.
SEARCHES = (["r1.fq", "r2.fq", "-a", "--unmapped", "no.fq"], ["r1.fq", "--exact"], ["reads.bam"])


def valid_runs() -> None:
    """Run every command on valid inputs; print which modules of kernels were loaded in this process."""
    from attacks.command_runs import warm_up, write_base
    from attacks.jobs import JobFolders
    from readmap import scan
    from readmap.backend.compilation.sources import modules
    from readmap.cli import main
    from readmap.index import sort_plan, suffix_array

    warm_up()
    with tempfile.TemporaryDirectory() as scratch:
        JobFolders(Path(scratch) / "jobs", 60)
        write_base(Path(scratch) / "base")
        os.chdir(Path(scratch) / "base")
        suffix_array.SMALL, sort_plan._MIN_PAIRS = 0, 1  # so that kernels sort, in batches
        sorts = ["index", "ref.fa", "-o", "sorted.readmap", "-q", "-t", "2"]
        searches = (["search", *words, "-x", "ref.fa", "-o", "out.sam", "-q", "-t", "1"] for words in SEARCHES)
        for words in (sorts, *searches):
            if main(words):
                sys.exit(f"attack: readmap {' '.join(words)} fails under sanitizers")
        scan("W" * 6000, ["W" * 6000], device="cpu", threads=1)  # scores beyond 16 bits
        os.chdir("/")
    loaded = Path("/proc/self/maps").read_text()
    launched = [name for name in modules(for_gpu=False) if f"/{name.replace('/', '-')}-" in loaded]
    print(f"{len(launched)} of {len(modules(for_gpu=False))} modules of kernels launched under sanitizers")
    print(f"not launched: {', '.join(sorted({*modules(for_gpu=False)} - {*launched})) or 'none'}")


if __name__ == "__main__":
    valid_runs()
