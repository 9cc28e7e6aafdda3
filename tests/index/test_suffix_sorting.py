"""Suffix sorting by kernels compared with sorted strings and with divsufsort."""

import random

import numpy as np
import pytest
from examples import TEXTS, fibonacci, index_of, random_bases, substitute
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.alignment import suffix_order, text_of
from pydivsufsort import divsufsort

from readmap.backend import Array, Backend, open_backend
from readmap.backend.team import Team
from readmap.errors import BackendError
from readmap.index import sort_plan
from readmap.index.sort_plan import plan_sort
from readmap.index.suffix_sorting import sort_suffixes

#: Small batches and ranges, so that small references have many of them.
few_at_a_time = pytest.mark.parametrize("few", [False, True], ids=["at once", "few at a time"])


def sort(contigs: list[str], device: Backend | Team, dtype: type[np.generic] = np.uint32) -> Array:
    team = Team.of(device) if isinstance(device, Backend) else device
    reference = index_of(contigs).reference
    shares: list[float] = []
    held = team.map(reference.to_device, team.backends)
    plan = plan_sort(held[0], reference.length, dtype, team)
    assert plan.suffixes == reference.bases - reference.ambiguous_bases
    parts = sort_suffixes(held, plan, team, shares.append)
    assert shares == sorted(shares)
    assert not shares or shares[-1] == 1
    assert [len(part) for part in parts] == [part.suffixes for part in plan.parts]
    assert all(part.dtype == dtype for part in parts)
    order = team.to_host(parts)
    assert np.array_equal(team.first.to_host(team.gather(parts)), order)
    return order


def use_small_batches(monkeypatch: pytest.MonkeyPatch, few: bool) -> None:
    if few:
        monkeypatch.setattr(sort_plan, "_MIN_PAIRS", 1)
        monkeypatch.setattr(sort_plan, "_MAX_PAIRS", 1)
        monkeypatch.setattr(sort_plan, "_SHARE", 2**40)


@few_at_a_time
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("name", TEXTS)
def test_order(backends: str, name: str, dtype: type[np.generic], few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_batches(monkeypatch, few)
    assert sort(TEXTS[name], open_backend(backends), dtype).tolist() == suffix_order(text_of(TEXTS[name]))


@few_at_a_time
def test_order_of_any_contigs(backends: str, few: bool) -> None:
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
            assert sort(contigs * copies, backend).tolist() == suffix_order(text_of(contigs * copies))

    backend = open_backend(backends)
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
@pytest.mark.parametrize("name", HARD[False])
def test_hard_texts(backends: str, name: str, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_batches(monkeypatch, few)
    contigs = HARD[few][name]
    codes = np.frombuffer((contigs[0] + "!").encode().translate(bytes.maketrans(b"!ACGT", b"\0\1\2\3\4")), np.uint8)
    assert np.array_equal(sort(contigs, open_backend(backends)), divsufsort(codes.copy())[1:])


def test_many_equal_contigs(backends: str) -> None:
    """Barriers make all suffixes equal: positions decide, without any doubling."""
    contigs = ["ACGTTGCA" * 5] * 3000
    order = sort(contigs, open_backend(backends))
    assert order.tolist() == suffix_order(text_of(contigs))


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
