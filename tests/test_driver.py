"""A GPU's context, which is begun before a command is loaded: of the device that the command will take, or of none."""

import subprocess
import sys

import pytest

from readmap.driver import start_cuda_context, gpu_index

SEARCH = ["search", "reads.fq", "-x", "ref.fa"]


@pytest.mark.parametrize(
    ("arguments", "number"),
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
def test_the_device_that_a_command_takes(arguments: list[str], number: int | None) -> None:
    assert gpu_index(arguments) == number


def test_nothing_is_said_where_there_is_no_driver_or_no_such_device() -> None:
    start_cuda_context([*SEARCH, "--device", "cuda:1000"])


def test_a_search_loads_neither_databases_nor_what_only_others_need() -> None:
    script = "import readmap.cli.search.command, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "readmap.run.stream" in loaded
    assert not {"rich", "cupy", "pysam", "pydivsufsort", "readmap.database", "readmap.pairwise"}.intersection(loaded)
