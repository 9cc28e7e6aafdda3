"""Tables: groups of arrays that are allocated as a structure of the kernels declares them."""

from typing import Any

import numpy as np
import pytest

from readmap.backend import Array, open_backend
from readmap.backend.tables import Table
from readmap.mapping.batch import MAX_WINDOWS, WINDOW_WORDS

CPU = open_backend("cpu")


class Windows(Table, struct="mapping/windows.cuh:WindowTable"):
    pass


class Seeds(Table, struct="mapping/seeds.cuh:Seeds"):
    #: Fields that kernels do not see.
    source: Array
    label: str = "unnamed"


class RecordStyle(Table, struct="mapping/sam.cu:RecordStyle"):
    pass


class Query(Table, struct="pairwise/schemes.cuh:Substitution"):
    pass


def layout(table: Table) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (array.dtype.name, array.shape) for name, array in table.arrays().items()}


def test_arrays_have_the_declared_dtypes_and_sizes() -> None:
    windows = Windows.allocate(CPU, reads=3, fill={"counts": 7, "unexamined_prefixes": 0})
    assert list(windows.arrays()) == ["rows", "counts", "unexamined_prefixes", "dropped_scores"]
    assert layout(windows) == {
        "rows": ("int64", (3 * MAX_WINDOWS, WINDOW_WORDS)),
        **dict.fromkeys(["counts", "unexamined_prefixes", "dropped_scores"], ("int32", (3,))),
    }
    assert windows.counts.tolist() == [7, 7, 7]
    assert windows.unexamined_prefixes.tolist() == [0, 0, 0]


def test_given_arrays_are_kept_and_decide_dimensions_and_generic_types() -> None:
    ranks = np.zeros(5, np.uint64)
    seeds = Seeds.allocate(CPU, offsets=None, ranks=ranks, stride=4, source="here")
    assert seeds.ranks is ranks
    assert (seeds.offsets, seeds.stride, seeds.source, seeds.label) == (None, 4, "here", "unnamed")
    assert seeds.before.shape == seeds.after.shape == (5,)
    seeds = Seeds.allocate(CPU, selected=2, seeds=0, suffix_t=np.dtype(np.uint32), stride=1, source=None, label="a")
    assert (seeds.offsets.shape, seeds.ranks.dtype, seeds.label) == ((3,), np.uint32, "a")


def test_sizes_may_be_integer_members_and_numbers_of_elements() -> None:
    flags = dict.fromkeys(["has_read_group", "comments", "barcodes", "soft_clipped"], False)
    style = RecordStyle.allocate(CPU, common_tags_length=6, encoding=1, **flags)
    assert (style.common_tags.shape, style.common_tags_length) == ((6,), 6)
    assert RecordStyle.allocate(CPU, common_tags=2, common_tags_length=6, encoding=1, **flags).common_tags.shape == (2,)


def test_members_of_a_base_structure_are_the_tables_own() -> None:
    query = Query.allocate(CPU, highest=1, lowest=-1, gap_open=2, gap_extend=np.int64(1))
    assert (query.gap_open, query.gap_extend, query.matrix.dtype) == (2, 1, np.int32)


@pytest.mark.parametrize(
    ("table", "arguments", "message"),
    [
        (Windows, {}, r"Windows.allocate: Window\* rows OF\(reads ?\* MAX_WINDOWS\): expected reads"),
        (Windows, {"reads": 1, "writes": 2}, "Windows has no writes"),
        (Windows, {"reads": 1, "fill": {"count": 0}}, "Windows.allocate: fill names count, expected new arrays"),
        (
            Seeds,
            {"selected": 2, "seeds": 3, "stride": 1, "source": 0},
            r"ranks OF\(seeds\): expected the dtype of suffix_t",
        ),
        (Seeds, {"selected": 2, "seeds": 3, "stride": 1, "suffix_t": np.dtype("u4")}, "Seeds lacks source"),
    ],
)
def test_errors_name_what_is_missing_or_unknown(table: type[Table], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        table.allocate(CPU, **arguments)


def test_an_array_of_an_undeclared_size_is_given() -> None:
    class Texts(Table, struct="common/text.cuh:ReadTexts"):
        pass

    with pytest.raises(TypeError, match=r"u8\* bytes OF\(any\): expected the array or its number of elements"):
        Texts.allocate(CPU, reads=2)
    assert Texts.allocate(CPU, reads=2, bytes=9).bytes.shape == (9,)


def test_replace_changes_a_copy() -> None:
    windows = Windows.allocate(CPU, reads=2)
    counts = np.ones(2, np.int32)
    changed = windows.replace(counts=counts)
    assert (changed.counts is counts, changed.rows is windows.rows, windows.counts is counts) == (True, True, False)
    with pytest.raises(TypeError, match="Windows has no count"):
        windows.replace(count=1)
