"""Check the symbols that compiled kernels require, and map reads with a wheel in an empty environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: The newest C library version that kernels may require, as in manylinux_2_17.
GLIBC = (2, 17)

READ_COUNT = 20_000


def require_old_glibc(libraries: list[Path]) -> None:
    """Exit with a message if a library requires a newer C library than GLIBC, or any other library."""
    for library in libraries:
        shown = subprocess.run(["readelf", "-dV", library], check=True, capture_output=True, text=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", shown)
        versions = [tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", shown)]
        newest = max(versions, default=GLIBC)
        if set(needed) - {"libc.so.6"} or newest > GLIBC:
            sys.exit(f"{library.name} requires {needed} of version {newest}: expected libc.so.6 of {GLIBC} at most")


def try_wheel(wheel: Path) -> None:
    """Install a wheel into an empty environment and map reads without a compiler, a home folder and a network.

    Exits with a message if reads are lost or a kernel is compiled.
    """
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
        started = time.monotonic()
        search = [*bare, "readmap", "search", "r1.fq", "r2.fq", "-x", "ref.fa", "--device", "cpu"]
        mapped = subprocess.Popen(search, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert mapped.stdout
        assert mapped.stderr
        records, first = 0, 0.0
        for line in mapped.stdout:
            if not line.startswith("@"):
                first = first or time.monotonic() - started
                records += 1
        messages = mapped.stderr.read()
        if mapped.wait() or records < READ_COUNT or "compiling" in messages:
            sys.exit(f"{wheel.name}: {records} records of {READ_COUNT} reads\n{messages}")
        print(f"{wheel.name}: {records:,} records, the first after {first:.1f} s")


def make_data(folder: Path) -> None:
    """Write ref.fa, random bases of E. coli's size, and READ_COUNT / 2 exact pairs of it as r1.fq and r2.fq."""
    import numpy as np

    draw = np.random.default_rng(1)
    bases = np.frombuffer(b"ACGT", np.uint8)[draw.integers(0, 4, 4_600_000)].tobytes().decode()
    folder.joinpath("ref.fa").write_text(f">chromosome\n{bases}\n")
    complement = str.maketrans("ACGT", "TGCA")
    mates: tuple[list[str], list[str]] = ([], [])
    for index, start in enumerate(draw.integers(0, len(bases) - 400, READ_COUNT // 2).tolist()):
        fragment = bases[start : start + 400]
        for lines, letters in zip(mates, (fragment[:150], fragment[-150:][::-1].translate(complement)), strict=True):
            lines.append(f"@p{index}\n{letters}\n+\n{'I' * 150}\n")
    for name, lines in zip(("r1.fq", "r2.fq"), mates, strict=True):
        folder.joinpath(name).write_text("".join(lines))
