"""What this process may use of the machine: its processors and memory, or what its control groups leave of them."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Where /proc and the control groups are.
ROOT = Path("/")


@dataclass(frozen=True)
class _Version:
    """The files of a control group.

    filesystem: of the mount. limit, usage: bytes of memory. reclaimable: those of files that the system may drop, as
    memory.stat calls them. quota: microseconds of a period that all processors may run together, the period behind them
    or in a file of its own.
    """

    filesystem: str
    limit: str
    usage: str
    reclaimable: str
    quota: str
    period: str


_FIRST = _Version(
    "cgroup",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
)
_SECOND = _Version("cgroup2", "memory.max", "memory.current", "inactive_file", "cpu.max", "cpu.max")


def available_processors(root: Path = ROOT) -> int:
    """The processors that this process may use, at least 1: a control group's quota counts as whole ones."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for version, group in _groups("cpu", root):
        quota, period = _numbers(group / version.quota)[:1], _numbers(group / version.period)[-1:]
        if quota and period and quota[0] > 0 and period[0] > 0:
            found = min(found, -(-quota[0] // period[0]))
    return max(found, 1)


def available_memory(root: Path = ROOT) -> int | None:
    """The bytes that new work may take without swapping or being killed; None where the system does not say."""
    facts = re.search(r"^MemAvailable:\s*(\d+) kB$", _text(root / "proc/meminfo"), re.MULTILINE)
    found = [int(facts[1]) * 1024] if facts else []
    for version, group in _groups("memory", root):
        limit, usage = _numbers(group / version.limit), _numbers(group / version.usage)
        if limit and usage:
            files = re.search(rf"^{version.reclaimable} (\d+)$", _text(group / "memory.stat"), re.MULTILINE)
            found.append(max(limit[0] - usage[0] + (int(files[1]) if files else 0), 0))
    most = re.search(r"^Max address space +(\d+)", _text(root / "proc/self/limits"), re.MULTILINE)  # of ulimit -v
    pages = _text(root / "proc/self/statm").split()
    if most and pages:
        found.append(max(int(most[1]) - int(pages[0]) * mmap.PAGESIZE, 0))
    return min(found, default=None)


def _groups(controller: str, root: Path) -> Iterator[tuple[_Version, Path]]:
    """The control groups of this process that may limit what a controller counts: its own, and those above it."""
    for line in _text(root / "proc/self/mountinfo").splitlines():
        mount, _, origin = (part.split() for part in line.partition(" - "))
        version = next((version for version in (_FIRST, _SECOND) if origin[:1] == [version.filesystem]), None)
        if version is None or (version is _FIRST and controller not in origin[2].split(",")):
            continue
        top = root / mount[4].lstrip("/")
        path = _own_group(controller if version is _FIRST else "", root)
        # Inside a container the mount may begin at the group, which /proc calls as outside.
        own = top / path.removeprefix(mount[3].rstrip("/")).lstrip("/")
        if ".." in own.parts or not own.is_dir():
            own = top
        for group in (own, *own.parents):
            yield version, group
            if group == top:
                break


def _own_group(controller: str, root: Path) -> str:
    """The path of this process's group; controller: "" for that of version 2."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return "/"


def _numbers(file: Path) -> list[int]:
    """The numbers of a file of numbers; of one that is missing, or of "max", none."""
    words = _text(file).split()
    return [int(word) for word in words] if all(re.fullmatch(r"-?\d+", word) for word in words) else []


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, ValueError):
        return ""
