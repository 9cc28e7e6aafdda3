"""Processors and memory within the limits of control groups, versions 1 and 2, in and outside of containers."""

import mmap
import os
from pathlib import Path

import pytest

from readmap.backend.machine import available_memory, available_processors

GIB = 1 << 30
UNLIMITED = 9_223_372_036_854_771_712  # as in version 1

V1_MOUNTS = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" + "".join(
    f"33 31 0:30 {{root}} /sys/fs/cgroup/{name} rw,relatime shared:9 - cgroup cgroup rw,{name}\n"
    for name in ("cpu,cpuacct", "memory", "pids")
)
V2_MOUNTS = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.fixture(autouse=True)
def eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bind the process to eight_processors processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)


def machine(root: Path, groups: str, mounts: str, files: dict[str, str], available: int = 16 * GIB) -> Path:
    """Write the files of a machine; files: of its control groups, below /sys/fs/cgroup."""
    found = {
        "proc/meminfo": f"MemTotal: 99 kB\nMemAvailable:   {available // 1024} kB\n",
        "proc/self/cgroup": groups,
        "proc/self/mountinfo": "22 1 254:1 / / rw - ext4 /dev/root rw\n" + mounts,
    }
    for name, text in (found | {f"sys/fs/cgroup/{name}": text for name, text in files.items()}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def machine_v2(root: Path, files: dict[str, str], group: str = "/a/b", mounted: str = "/") -> Path:
    return machine(root, f"0::{group}\n", V2_MOUNTS.format(root=mounted), files)


def machine_v1(root: Path, files: dict[str, str], group: str = "/a/b", mounted: str = "/") -> Path:
    groups = f"12:pids:/x\n5:memory:{group}\n4:cpu,cpuacct:{group}\n1:name=systemd:/y\n0::/\n"
    return machine(root, groups, V1_MOUNTS.format(root=mounted), files)


def memory_v2(limit: int | str, current: int, inactive: int, at: str) -> dict[str, str]:
    """Return the memory files of a group of version 2."""
    stat = f"anon 5\nfile 7\nactive_file 1\ninactive_file {inactive}\n"
    return {f"{at}memory.max": f"{limit}\n", f"{at}memory.current": f"{current}\n", f"{at}memory.stat": stat}


def memory_v1(limit: int, usage: int, inactive: int, at: str) -> dict[str, str]:
    """Return the memory files of a group of version 1, which has fewer pages of its own than its subgroups."""
    stat = f"inactive_file 3\ntotal_inactive_file {inactive}\n"
    files = {"limit_in_bytes": f"{limit}\n", "usage_in_bytes": f"{usage}\n", "stat": stat}
    return {f"{at}memory.{name}": text for name, text in files.items()}


def test_a_machine_without_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_memory(tmp_path) is None
    assert available_processors(tmp_path) == 8
    assert available_memory(machine(tmp_path, "", "", {})) == 16 * GIB
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9 kB\n")
    assert available_memory(tmp_path) is None
    monkeypatch.delattr(os, "sched_getaffinity")
    assert available_processors(tmp_path) == os.cpu_count()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (memory_v2("max", 5 * GIB, 0, "a/b/"), 16 * GIB),
        (memory_v2(8 * GIB, 5 * GIB, 0, "a/b/"), 3 * GIB),
        (memory_v2(8 * GIB, 5 * GIB, 2 * GIB, "a/b/"), 5 * GIB),
        (memory_v2(8 * GIB, 9 * GIB, 0, "a/b/"), 0),
        (memory_v2(30 * GIB, GIB, 0, "a/b/"), 16 * GIB),
        (memory_v2("max", GIB, 0, "a/b/") | memory_v2(4 * GIB, 2 * GIB, 0, "a/"), 2 * GIB),
        (memory_v2(3 * GIB, GIB, 0, "a/b/") | memory_v2(4 * GIB, 3 * GIB, 0, "a/"), GIB),
        (memory_v2(3 * GIB, GIB, 0, "") | memory_v2(30 * GIB, 0, 0, "a/"), 2 * GIB),
        (memory_v2(GIB, 0, 0, "other/"), 16 * GIB),
        ({"a/b/memory.max": f"{GIB}\n"}, 16 * GIB),
    ],
    ids=["none", "own", "cache", "over", "large", "above", "both", "top", "another's", "no usage"],
)
def test_memory_of_version_2(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    (tmp_path / "sys/fs/cgroup/a/b").mkdir(parents=True)
    assert available_memory(machine_v2(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (memory_v1(UNLIMITED, 5 * GIB, 0, "memory/a/b/"), 16 * GIB),
        (memory_v1(8 * GIB, 5 * GIB, GIB, "memory/a/b/"), 4 * GIB),
        (memory_v1(8 * GIB, GIB, 0, "memory/a/b/") | memory_v1(8 * GIB, 6 * GIB, 0, "memory/a/"), 2 * GIB),
        (memory_v1(GIB, 0, 0, "pids/a/b/"), 16 * GIB),
    ],
    ids=["none", "own", "above", "another controller's"],
)
def test_memory_of_version_1(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    (tmp_path / "sys/fs/cgroup/memory/a/b").mkdir(parents=True)
    assert available_memory(machine_v1(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a/b/cpu.max": "max 100000\n"}, 8),
        ({"a/b/cpu.max": "200000 100000\n"}, 2),
        ({"a/b/cpu.max": "250000 100000\n"}, 3),
        ({"a/b/cpu.max": "10000 100000\n"}, 1),
        ({"a/b/cpu.max": "max 100000\n", "a/cpu.max": "150000 50000\n"}, 3),
        ({"a/b/cpu.max": "9900000 100000\n"}, 8),
        ({"a/b/cpu.max": "nonsense\n"}, 8),
    ],
    ids=["none", "whole", "part", "little", "above", "more than exist", "nonsense"],
)
def test_processors_of_version_2(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    assert available_processors(machine_v2(tmp_path, files)) == expected


@pytest.mark.parametrize(("quota", "expected"), [(-1, 8), (50_000, 1), (150_000, 2), (400_000, 4)])
def test_processors_of_version_1(tmp_path: Path, quota: int, expected: int) -> None:
    group = "cpu,cpuacct/a/b/"
    files = {f"{group}cpu.cfs_quota_us": f"{quota}\n", f"{group}cpu.cfs_period_us": "100000\n"}
    assert available_processors(machine_v1(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("group", "mounted"),
    [("/", "/"), ("/docker/5f", "/docker/5f"), ("/docker/5f", "/"), ("/../../outside", "/")],
    ids=["namespace", "bind mount", "no such folder", "outside of the namespace"],
)
def test_a_container_sees_its_group_as_the_top(tmp_path: Path, group: str, mounted: str) -> None:
    (tmp_path / "2").mkdir()
    (tmp_path / "1").mkdir()
    files = memory_v2(2 * GIB, GIB, 0, "") | {"cpu.max": "300000 100000\n"}
    root = machine_v2(tmp_path / "2", files, group, mounted)
    assert (available_memory(root), available_processors(root)) == (GIB, 3)
    files = memory_v1(2 * GIB, GIB, 0, "memory/")
    assert available_memory(machine_v1(tmp_path / "1", files, group, mounted)) == GIB


def test_a_limit_of_the_address_space(tmp_path: Path) -> None:
    """ulimit -v, less the address space that the process uses."""
    root = machine(tmp_path, "", "", {})
    (root / "proc/self/statm").write_text(f"{GIB // mmap.PAGESIZE} 5 4 3 0 2 0\n")
    for limit, expected in (("unlimited", 16 * GIB), (3 * GIB, 2 * GIB)):
        text = f"Limit  Soft Limit\nMax address space         {limit}    unlimited    bytes\n"
        (root / "proc/self/limits").write_text(text)
        assert available_memory(root) == expected
