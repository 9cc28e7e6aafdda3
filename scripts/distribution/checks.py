"""What a wheel's kernels need of the system, and whether a wheel maps reads where there is nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: The youngest version of the C library whose symbols kernels may need, manylinux_2_17's.
GLIBC = (2, 17)

#: Reads that are mapped.
READS = 20_000


def expect_old_glibc(libraries: list[Path]) -> None:
    """Exit where a library needs more than an old C library."""
    for library in libraries:
        shown = subprocess.run(["readelf", "-dV", library], check=True, capture_output=True, text=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", shown)
        versions = [tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", shown)]
        youngest = max(versions, default=GLIBC)
        if set(needed) - {"libc.so.6"} or youngest > GLIBC:
            sys.exit(f"{library.name} needs {needed} of version {youngest}: expected libc.so.6 of {GLIBC} at most")


def try_wheel(wheel: Path) -> None:
    """Install a wheel into an empty environment, and map by it without a compiler, a home and a network."""
    with tempfile.TemporaryDirectory(prefix="readmap-try-") as folder:
        work = Path(folder)
        subprocess.run([sys.executable, "-m", "venv", work / "empty"], check=True)
        python = work / "empty/bin/python"
        quiet = ("--quiet", "--disable-pip-version-check")
        subprocess.run([python, "-m", "pip", "install", *quiet, wheel.resolve()], check=True)
        make_data(work)
        bare = ["env", "-i", f"PATH={work}/empty/bin", "HOME=/nonexistent"]
        if shutil.which("unshare") and os.geteuid() == 0:
            bare = ["unshare", "--net", *bare]
        subprocess.run([*bare, "readmap", "index", "ref.fa", "--device", "cpu", "-q"], cwd=work, check=True)
        began = time.monotonic()
        search = [*bare, "readmap", "search", "r1.fq", "r2.fq", "-x", "ref.fa", "--device", "cpu"]
        mapped = subprocess.Popen(search, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert mapped.stdout
        assert mapped.stderr
        records, first = 0, 0.0
        for line in mapped.stdout:
            if not line.startswith("@"):
                first = first or time.monotonic() - began
                records += 1
        said = mapped.stderr.read()
        if mapped.wait() or records < READS or "compiling" in said:
            sys.exit(f"{wheel.name}: {records} records of {READS} reads\n{said}")
        print(f"{wheel.name}: {records:,} records, the first after {first:.1f} s")


def make_data(folder: Path) -> None:
    """A reference of E. coli's size, and pairs of it."""
    import numpy as np

    draw = np.random.default_rng(1)
    bases = np.frombuffer(b"ACGT", np.uint8)[draw.integers(0, 4, 4_600_000)].tobytes().decode()
    folder.joinpath("ref.fa").write_text(f">chromosome\n{bases}\n")
    turned = str.maketrans("ACGT", "TGCA")
    mates: tuple[list[str], list[str]] = ([], [])
    for number, start in enumerate(draw.integers(0, len(bases) - 400, READS // 2).tolist()):
        fragment = bases[start : start + 400]
        for own, letters in zip(mates, (fragment[:150], fragment[-150:][::-1].translate(turned)), strict=True):
            own.append(f"@p{number}\n{letters}\n+\n{'I' * 150}\n")
    for name, own in zip(("r1.fq", "r2.fq"), mates, strict=True):
        folder.joinpath(name).write_text("".join(own))
