"""The GPU context that is created before a command is loaded, and what a command loads."""

import subprocess
import sys

import pytest

from readmap.driver import gpu_index, start_cuda_context

SEARCH = ["search", "reads.fq", "-x", "ref.fa"]


@pytest.mark.parametrize(
    ("arguments", "index"),
    [
        (SEARCH, 0),
        ([*SEARCH, "--device", "auto"], 0),
        ([*SEARCH, "--device=cuda"], 0),
        ([*SEARCH, "--device", "cuda:3"], 3),
        (["compare", "--device=cuda:12", "a.fa", "b.fa"], 12),
        ([*SEARCH, "--device", "cuda:1", "--device", "cpu"], None),
        ([*SEARCH, "--device", "cpu"], None),
        ([*SEARCH, "--device", "gpu"], None),
        ([*SEARCH, "--device"], 0),
        ([*SEARCH, "--help"], None),
        (["index", "--database", "proteins.fa"], None),
        (["info", "ref.fa.readmap"], None),
        (["--version"], None),
        ([], None),
    ],
)
def test_gpu_index_of_a_command(arguments: list[str], index: int | None) -> None:
    assert gpu_index(arguments) == index


def test_missing_drivers_and_devices_are_ignored() -> None:
    start_cuda_context([*SEARCH, "--device", "cuda:1000"])


def test_search_loads_no_modules_of_other_commands() -> None:
    script = "import readmap.cli.search.command, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "readmap.run.stream" in loaded
    assert not {"rich", "cupy", "pysam", "pydivsufsort", "readmap.database", "readmap.pairwise"}.intersection(loaded)
