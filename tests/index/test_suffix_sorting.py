"""Suffix sorting by kernels, on one or several devices, compared with sorted strings and with divsufsort."""

import random
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import TEXTS, fasta, fibonacci, index_of, random_bases, substitute, team_of
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.alignment import suffix_order, text_of
from pydivsufsort import divsufsort

from readmap.backend import Array, Backend, Kernel, open_backend, team
from readmap.backend.team import Team
from readmap.errors import BackendError
from readmap.index import folder, sort_plan, suffix_array, suffix_sorting
from readmap.index.building import build_index
from readmap.index.sort_plan import SortPlan, plan_sort
from readmap.index.suffix_sorting import sort_suffixes

#: Small batches and ranges, so that small references have many of them.
few_at_a_time = pytest.mark.parametrize("few", [False, True], ids=["at once", "few at a time"])


def sort(contigs: list[str], device: Backend | Team, dtype: type[np.generic] = np.uint32) -> Array:
    group = Team.of(device) if isinstance(device, Backend) else device
    reference = index_of(contigs).reference
    shares: list[float] = []
    held = group.map(reference.to_device, group.backends)
    plan = plan_sort(held[0], reference.length, dtype, group)
    assert plan.suffixes == reference.bases - reference.ambiguous_bases
    parts = sort_suffixes(held, plan, group, shares.append)
    assert shares == sorted(shares)
    assert not shares or shares[-1] == 1
    assert [len(part) for part in parts] == [part.suffixes for part in plan.parts]
    assert all(part.dtype == dtype for part in parts)
    order = group.to_host(parts)
    assert np.array_equal(group.first.to_host(group.gather(parts)), order)
    return order


def use_small_batches(monkeypatch: pytest.MonkeyPatch, few: bool) -> None:
    if few:
        monkeypatch.setattr(sort_plan, "_MIN_PAIRS", 1)
        monkeypatch.setattr(sort_plan, "_MAX_PAIRS", 1)
        monkeypatch.setattr(sort_plan, "_SHARE", 2**40)


@few_at_a_time
@pytest.mark.parametrize("devices", [1, 2, 3, 8])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("name", TEXTS)
def test_order(
    backends: str, name: str, dtype: type[np.generic], devices: int, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Includes fewer suffixes than devices, and none."""
    use_small_batches(monkeypatch, few)
    with team_of(backends, devices) as group:
        assert sort(TEXTS[name], group, dtype).tolist() == suffix_order(text_of(TEXTS[name]))


@few_at_a_time
@pytest.mark.parametrize("devices", [1, 3])
def test_order_of_any_contigs(backends: str, devices: int, few: bool) -> None:
    """Includes repeated contigs, so that barriers make many suffixes equal."""

    @settings(derandomize=True, max_examples=60, deadline=None)
    @given(
        contigs=st.lists(
            st.tuples(st.text("ACGTN", min_size=1, max_size=60), st.integers(1, 4)).map(lambda x: x[0] * x[1]),
            min_size=1,
            max_size=6,
        ),
        copies=st.integers(1, 3),
    )
    def check(contigs: list[str], copies: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            use_small_batches(patch, few)
            assert sort(contigs * copies, group).tolist() == suffix_order(text_of(contigs * copies))

    with team_of(backends, devices) as group:
        check()


def hard_texts(size: int) -> dict[str, list[str]]:
    """Return texts of about `size` bases, without two barriers at which suffixes could tie."""
    generator = random.Random(8)
    unit = random_bases(generator, 171)
    half = random_bases(generator, size // 2)
    groups = (31, 32, 33, 34) * (size // 12_500)
    return {
        "random": [random_bases(generator, size)],
        "one base": ["A" * size],
        "twice": [half + half],
        "a period": [unit * (size // 171)],
        "satellites": ["".join(substitute(generator, unit, 3) for _ in range(size // 171))],
        "groups of 31 to 34": ["".join(random_bases(generator, 90) * copies for copies in groups)],
        "Fibonacci": [fibonacci(size)],
        "runs": ["".join(base * (1 << i) for i in range((size // 4).bit_length() - 1) for base in "ACGT")],
    }


#: Texts sorted in one batch, and smaller texts for small batches.
HARD = {False: hard_texts(50_000), True: hard_texts(12_500)}


@few_at_a_time
@pytest.mark.parametrize("devices", [1, 2, 3, 8])
@pytest.mark.parametrize("name", HARD[False])
def test_hard_texts(backends: str, name: str, devices: int, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps have several batches and ranges, and ranks are exchanged in several chunks."""
    use_small_batches(monkeypatch, few)
    monkeypatch.setattr(suffix_sorting, "_CHUNK", 1000)
    contigs = HARD[few][name]
    codes = np.frombuffer((contigs[0] + "!").encode().translate(bytes.maketrans(b"!ACGT", b"\0\1\2\3\4")), np.uint8)
    with team_of(backends, devices) as group:
        assert np.array_equal(sort(contigs, group), divsufsort(codes.copy())[1:])


@pytest.mark.parametrize("devices", [1, 4])
def test_many_equal_contigs(backends: str, devices: int) -> None:
    """Barriers make all suffixes equal: positions decide, without any doubling."""
    contigs = ["ACGTTGCA" * 5] * 3000
    with team_of(backends, devices) as group:
        assert sort(contigs, group).tolist() == suffix_order(text_of(contigs))


@pytest.mark.parametrize("held", ["all", "ranks", "nothing"])
def test_little_memory(backends: str, held: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Order and ranks stay in host memory if the device has too little; with even less, sorting is refused."""
    monkeypatch.setattr(sort_plan, "_SHARE", 1)  # all at once: 28 bytes per suffix, in addition to order and ranks
    monkeypatch.setattr(sort_plan, "_FIXED_BYTES", 0)
    contigs, backend = HARD[False]["satellites"], open_backend(backends)
    size, expected = len(contigs[0]), sort(contigs, backend)
    from_host: list[int] = []
    host_array = backend.host_array

    def counted(shape: int, dtype: object) -> Array:
        from_host.append(shape)
        return host_array(shape, dtype)

    free = {"all": 37 * size, "ranks": 33 * size, "nothing": 29 * size}[held]
    monkeypatch.setattr(backend, "memory", lambda: (free, free))
    monkeypatch.setattr(backend, "host_array", counted)
    assert np.array_equal(sort(contigs, backend), expected)
    assert from_host == {"all": [], "ranks": [size], "nothing": [size, size + 1]}[held]
    monkeypatch.setattr(backend, "memory", lambda: (size, size))
    with pytest.raises(BackendError, match=rf"{backend.name} has too little memory to sort {size:,} suffixes"):
        sort(contigs, backend)


def planned(contigs: list[str], devices: int, memory: dict[int, int] | None = None) -> SortPlan:
    """Plan a sort on `devices` devices; memory: bytes of some devices, the others have enough."""
    with team_of("cpu", devices) as group:
        if memory:
            for i, backend in enumerate(group.backends):
                free = memory.get(i, 2**40)
                backend.memory = partial(tuple, (free, free))  # type: ignore[method-assign]
        reference = index_of(contigs).reference
        return plan_sort(reference.to_device(group.first), reference.length, np.uint32, group)


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_balanced_parts(devices: int) -> None:
    plan = planned([random_bases(random.Random(3), 100_000)], devices)
    assert len(plan.parts) == devices
    assert all(abs(part.suffixes * devices / plan.suffixes - 1) < 0.05 for part in plan.parts)
    slots = [part.first_slot for part in plan.parts]
    assert slots == np.cumsum([0] + [part.suffixes for part in plan.parts])[:-1].tolist()
    codes = [part.first_code for part in plan.parts] + [256]
    assert codes == np.cumsum([0] + [len(part.codes) for part in plan.parts]).tolist()


@pytest.mark.parametrize(("contigs", "parts"), [(["N" * 50], 1), (["A"], 1), (["A" * 999], 1), (["A", "CG"], 3)])
def test_no_empty_parts(contigs: list[str], parts: int) -> None:
    plan = planned(contigs, 8)
    assert len(plan.parts) == parts
    assert plan.suffixes == len("".join(contigs).replace("N", ""))


def test_memory_of_several_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device needs memory for its part and for all ranks; if one has too little, the first device sorts alone."""
    monkeypatch.setattr(sort_plan, "_FIXED_BYTES", 0)
    size = 100_000
    contigs = [random_bases(random.Random(3), size)]
    alone, both = planned(contigs, 1), planned(contigs, 2)
    part = max(4 * (each.suffixes + size + 1) + each.suffixes // 8 + 28 * each.pairs for each in both.parts) + 10_000
    assert part < alone.nbytes < both.nbytes
    assert both.nbytes <= 2 * part
    assert len(planned(contigs, 2, {0: part, 1: part}).parts) == 2
    for memory in ({1: part // 2}, {0: 2 * part, 1: part // 2}):
        plan = planned(contigs, 2, memory)
        assert len(plan.parts) == 1
        assert plan.host_bytes == 0
    plan = planned(contigs, 2, {0: 33 * size, 1: size})
    assert [each.holds_order for each in plan.parts] == [False]
    assert plan.host_bytes == 4 * size
    with pytest.raises(BackendError, match=f"cpu has too little memory to sort {size:,} suffixes"):
        planned(contigs, 2, {0: size})


@pytest.mark.parametrize("kernel", ["key_batch", "merge_ranks", "key_tied", "apply_ranks"])
@pytest.mark.parametrize("failing", [0, 1, 2])
def test_error_of_one_device(failing: int, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error may occur in any stage."""
    contigs = HARD[True]["satellites"]
    with team_of("cpu", 3) as group:
        expected = sort(contigs, group)
        launch = group.backends[failing].launch

        def fail(launched: Kernel, items: int, /, **arguments: Any) -> None:
            if launched.name == kernel:
                raise BackendError(f"device {failing} fails")
            launch(launched, items, **arguments)

        with monkeypatch.context() as patch:
            patch.setattr(group.backends[failing], "launch", fail)
            with pytest.raises(BackendError, match=f"device {failing} fails"):
                sort(contigs, group)
        assert np.array_equal(sort(contigs, group), expected)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("device")]


@pytest.mark.parametrize("devices", [2, 8])
def test_same_folder_with_any_number_of_devices(devices: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ref.fa").write_bytes(fasta({"a": HARD[True]["satellites"][0], "b": "ACGTN" * 500}))
    monkeypatch.setattr(suffix_array, "SMALL", 0)
    monkeypatch.setattr(team, "device_names", lambda device, gpus: [device] * gpus)
    for gpus in (1, devices):
        with folder.KIND.writing(tmp_path / f"{gpus}.readmap", 2, False) as output:
            build_index(tmp_path / "ref.fa", structure="both", device="cpu", gpus=gpus, threads=2, output=output)
            output.commit()
    one, several = (
        {path.name: path.read_bytes() for path in (tmp_path / f"{gpus}.readmap").iterdir()} for gpus in (1, devices)
    )
    assert one == several
    assert "edges.npy" in one
