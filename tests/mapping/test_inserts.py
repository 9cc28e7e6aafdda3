"""Insert sizes: estimates as bwa mem's, values that a user sets, and the device table."""

import math
import random
import statistics

import numpy as np
import pytest
from examples import below

from readmap.backend import open_backend
from readmap.backend.compilation.declarations import constant
from readmap.errors import UsageError
from readmap.mapping.inserts import (
    DIRECTIONS,
    MAX_INSERT_SIZE,
    MAX_QUARTILE_RANGE,
    MAX_SIZE_PENALTY,
    UNCERTAIN,
    InsertSize,
    estimate_insert_sizes,
    fixed_insert_size,
    insert_size_table,
)

FAR_APART = constant("mapping/pairs.cuh", "FAR_APART")


def bwa_sizes(values: list[int]) -> tuple[float, float, int, int]:
    """Return mean, deviation, smallest and largest size of one direction, as bwa mem's mem_pestat does."""
    values = sorted(values)
    p25, p75 = values[int(0.25 * len(values) + 0.499)], values[int(0.75 * len(values) + 0.499)]
    low = max(int(p25 - 2.0 * (p75 - p25) + 0.499), 1)
    high = int(p75 + 2.0 * (p75 - p25) + 0.499)
    kept = [value for value in values if low <= value <= high]
    mean, deviation = statistics.fmean(kept), statistics.pstdev(kept)
    low, high = int(p25 - 3.0 * (p75 - p25) + 0.499), int(p75 + 3.0 * (p75 - p25) + 0.499)
    if low > mean - 4.0 * deviation:
        low = int(mean - 4.0 * deviation + 0.499)
    if high < mean + 4.0 * deviation:
        high = int(mean + 4.0 * deviation + 0.499)
    return mean, deviation, max(low, 1), high


def draw_sizes(generator: random.Random, count: int, mean: int, deviation: int) -> list[int]:
    """Return roughly normal sizes, one of twelve from anywhere."""
    sizes = []
    for _ in range(count):
        drawn = sum(below(generator, 2 * deviation + 1) - deviation for _ in range(3))
        sizes.append(max(1, mean + drawn) if below(generator, 12) else 1 + below(generator, 10_000))
    return sizes


def estimated(sizes: dict[str, list[int]], unsure: int = 0, far: int = 0) -> dict[str, InsertSize]:
    """Return the estimates from shuffled pairs, some of which have no direction."""
    pairs = [(DIRECTIONS.index(name), size) for name, values in sizes.items() for size in values]
    pairs += [(UNCERTAIN, 0)] * unsure + [(FAR_APART, 0)] * far
    random.Random(1).shuffle(pairs)
    directions, values = zip(*pairs, strict=True) if pairs else ((), ())
    return {
        size.direction: size
        for size in estimate_insert_sizes(np.array(directions, np.uint8), np.array(values, np.int32))
    }


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("mean", "deviation"), [(300, 30), (60, 40), (2_000, 10), (400, 0)])
def test_estimate_equals_bwa(seed: int, mean: int, deviation: int) -> None:
    generator = random.Random(seed)
    sizes = {
        "FR": draw_sizes(generator, 10 + below(generator, 900), mean, deviation),
        "RF": draw_sizes(generator, 200, 3 * mean, deviation),
    }
    found = estimated(sizes, unsure=50)
    assert list(found) == ["FR", "RF"]
    for name, size in found.items():
        expected_mean, expected_deviation, low, high = bwa_sizes(sizes[name])
        assert (size.low, size.high) == (low, high)
        assert (size.mean, size.deviation) == pytest.approx((expected_mean, expected_deviation))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, []),
        ({"FR": 9}, []),
        ({"FR": 10}, ["FR"]),
        ({"FR": 190, "RF": 10}, ["FR", "RF"]),
        ({"FR": 191, "RF": 10}, ["FR"]),
        ({"FF": 12, "FR": 12, "RF": 12, "RR": 12}, ["FF", "FR", "RF", "RR"]),
    ],
)
def test_directions_with_few_pairs_are_dropped(counts: dict[str, int], expected: list[str]) -> None:
    assert list(estimated({name: [300 + i for i in range(count)] for name, count in counts.items()}, 20)) == expected


def test_random_pairs_have_no_distribution() -> None:
    """Mates that are placed by chance are at any distance, and mostly make no fragment."""
    generator = random.Random(4)
    anywhere = [1 + below(generator, MAX_INSERT_SIZE) for _ in range(400)]
    assert not estimated(dict.fromkeys(DIRECTIONS, anywhere))
    library = [300 + below(generator, 60) for _ in range(50)]
    assert list(estimated({"FR": library, "RF": anywhere})) == ["FR"]
    assert list(estimated({"FR": library}, far=950)) == ["FR"]
    assert not estimated({"FR": library}, far=951)


@pytest.mark.parametrize("spread", [MAX_QUARTILE_RANGE, MAX_QUARTILE_RANGE + 1])
def test_max_size_of_a_wide_library(spread: int) -> None:
    sizes = [6_000] * 30 + [6_000 + spread] * 30
    assert [size.high for size in estimated({"RF": sizes}).values()] == [MAX_INSERT_SIZE][
        : spread <= MAX_QUARTILE_RANGE
    ]


def test_one_size_only() -> None:
    """If all fragments have the same length, only that size is proper, without a penalty."""
    size = estimated({"FR": [250] * 40})["FR"]
    assert (size.mean, size.deviation, size.low, size.high) == (250, 0, 250, 250)
    assert insert_size_table([size], open_backend("cpu")).penalties.tolist() == [0]


def test_fixed_insert_size() -> None:
    (size,) = fixed_insert_size(300, 20.5)
    assert size == InsertSize("FR", 300, 20.5, 218, 382)
    (size,) = fixed_insert_size(50, 100)
    assert (size.low, size.high) == (1, 450)


@pytest.mark.parametrize(
    ("mean", "deviation"), [(0, 1), (-3, 1), (300, 0), (300, -1), (1e6, 10), (300, 1e6), (math.nan, 1)]
)
def test_invalid_fixed_insert_size(mean: float, deviation: float) -> None:
    with pytest.raises(UsageError, match="insert size"):
        fixed_insert_size(mean, deviation)


def test_device_table(backends: str) -> None:
    """The penalty is the phred of the share of a normal distribution that is at least this far off, on either side."""
    backend = open_backend(backends)
    sizes = [InsertSize("RF", 90.0, 10.0, 40, 140), InsertSize("FR", 300.0, 25.0, 200, 440)]
    inserts = insert_size_table(sizes, backend)
    arrays = inserts.lows, inserts.highs, inserts.offsets, inserts.penalties
    lows, highs, offsets, penalties = (backend.to_host(array).tolist() for array in arrays)
    assert inserts.sizes == tuple(sizes)
    assert [low <= high for low, high in zip(lows, highs, strict=True)] == [False, True, True, False]
    assert len(penalties) == 101 + 241
    for size in sizes:
        direction = DIRECTIONS.index(size.direction)
        assert (lows[direction], highs[direction]) == (size.low, size.high)
        for bases in range(size.low, size.high + 1):
            share = 2 * (1 - statistics.NormalDist().cdf(abs(bases - size.mean) / size.deviation))
            expected = min(round(-10 * math.log10(share)), MAX_SIZE_PENALTY) if share > 1e-9 else MAX_SIZE_PENALTY
            assert abs(penalties[offsets[direction] + bases - size.low] - expected) <= 1


def test_empty_device_table(backends: str) -> None:
    inserts = insert_size_table((), open_backend(backends))
    assert (inserts.lows > inserts.highs).all()
