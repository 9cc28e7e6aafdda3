"""The processors and memory that this process may use, within the limits of its control groups."""

import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")  # the root of /proc and of the control group file systems


@dataclass(frozen=True)
class _CgroupVersion:
    """File names of one version of control groups."""

    filesystem: str  # type of the mount
    quota: str  # microseconds of processor time per period; version 2 has both in one file
    period: str
    limit: str  # bytes of memory
    usage: str
    reclaimable: str  # the field of memory.stat for page cache that can be dropped


_V1_MEMORY = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
_V1 = _CgroupVersion("cgroup", "cpu.cfs_quota_us", "cpu.cfs_period_us", *_V1_MEMORY)
_V2 = _CgroupVersion("cgroup2", "cpu.max", "cpu.max", "memory.max", "memory.current", "inactive_file")


def available_processors(root: Path = ROOT) -> int:
    """Return the number of processors this process may use, at least 1; a control group's quota is rounded up."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for version, group in _control_groups("cpu", root):
        quota, period = _numbers(group / version.quota)[:1], _numbers(group / version.period)[-1:]
        if quota and period and quota[0] > 0 and period[0] > 0:
            found = min(found, -(-quota[0] // period[0]))
    return max(found, 1)


def available_memory(root: Path = ROOT) -> int | None:
    """Return the bytes that can be allocated without swapping or being killed, or None if unknown."""
    match = re.search(r"^MemAvailable:\s*(\d+) kB$", _read_text(root / "proc/meminfo"), re.MULTILINE)
    found = [int(match[1]) * 1024] if match else []
    for version, group in _control_groups("memory", root):
        limit, usage = _numbers(group / version.limit), _numbers(group / version.usage)
        if limit and usage:
            files = re.search(rf"^{version.reclaimable} (\d+)$", _read_text(group / "memory.stat"), re.MULTILINE)
            found.append(max(limit[0] - usage[0] + (int(files[1]) if files else 0), 0))
    ulimit = re.search(r"^Max address space +(\d+)", _read_text(root / "proc/self/limits"), re.MULTILINE)
    pages = _read_text(root / "proc/self/statm").split()
    if ulimit and pages:
        found.append(max(int(ulimit[1]) - int(pages[0]) * mmap.PAGESIZE, 0))
    return min(found, default=None)


def _control_groups(controller: str, root: Path) -> Iterator[tuple[_CgroupVersion, Path]]:
    """Yield the control groups that may limit `controller`, cpu or memory: the process's own, then its parents."""
    for line in _read_text(root / "proc/self/mountinfo").splitlines():
        mount, _, origin = (part.split() for part in line.partition(" - "))
        version = next((version for version in (_V1, _V2) if origin[:1] == [version.filesystem]), None)
        if version is None or (version is _V1 and controller not in origin[2].split(",")):
            continue
        top = root / mount[4].lstrip("/")
        path = _own_group(controller if version is _V1 else "", root)
        # In a container the mount may start at the group, while /proc gives the path outside the container.
        own = top / path.removeprefix(mount[3].rstrip("/")).lstrip("/")
        if ".." in own.parts or not own.is_dir():
            own = top
        for group in (own, *own.parents):
            yield version, group
            if group == top:
                break


def _own_group(controller: str, root: Path) -> str:
    """Return the path of this process's control group; controller: cpu or memory, or "" for version 2."""
    for line in _read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return "/"


def _numbers(file: Path) -> list[int]:
    """Return the integers in a file, or [] if the file is missing or holds "max"."""
    words = _read_text(file).split()
    return [int(word) for word in words] if all(re.fullmatch(r"-?\d+", word) for word in words) else []


def _read_text(file: Path) -> str:
    """Return the text of a file, or "" if it cannot be read."""
    try:
        return file.read_text()
    except (OSError, ValueError):
        return ""
