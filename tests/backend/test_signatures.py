"""Binding of kernel arguments: checks against the declarations, and their layout in memory."""

import gc
import struct
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_module import ADD, MODULE, READ_ALL, TAKE

from readmap.backend import Backend, Kernel, open_backend
from readmap.backend.compilation import signatures
from readmap.mapping.batch import MAX_WINDOWS, WINDOW, WINDOW_WORDS, WindowTable

Arguments = dict[str, Any]


def scene_arguments(backend: Backend, items: int = 3) -> Arguments:
    """Return arguments of READ_ALL in which arrays of the same dtype have different sizes."""

    def rising(size: int, dtype: Any, words: int | None = None) -> Any:
        numbers = np.arange(size * (words or 1), dtype=dtype)
        return backend.to_device(numbers.reshape(size, words) if words else numbers)

    table = types.SimpleNamespace(
        low=255, high=-(2**40), values=rising(14, np.int32), marks=rising(2, np.uint8), width=7, doubled=True
    )
    return {
        "canvas": types.SimpleNamespace(table=table, points=rising(4, np.int64, 2), colour=-5, shade=2**31 - 1),
        "first": rising(items, np.int32),
        "second": rising(items + 4, np.int32),
        "places": rising(5, np.int64, 2),
        "corners": rising(5, np.int64, 3),
        "levels": rising(2, np.int64),
        "read": backend.empty((items, 12), np.int64),
        "points": 4,
        "negative": True,
    }


def test_kernels_receive_arguments_by_name(tiny: Path, backends: str) -> None:
    """Including members of nested groups, in any order and of all widths."""
    backend = open_backend(backends)
    arguments = scene_arguments(backend)
    backend.launch(READ_ALL, 3, **dict(reversed(arguments.items())))
    for item, row in enumerate(backend.to_host(arguments["read"]).tolist()):
        assert row == [255, -(2**40), 13, 1, 7, 1, 6 + 7, -5, 2**31 - 1, item, item + 4, 1]


def swapped(first: str, second: str) -> Callable[[Arguments], None]:
    def swap(arguments: Arguments) -> None:
        arguments[first], arguments[second] = arguments[second], arguments[first]

    return swap


def with_array(path: str, change: Callable[[Any], Any]) -> Callable[[Arguments], None]:
    """Replace the array at `path`, an argument or a member of a group."""

    def apply(arguments: Arguments) -> None:
        *outer, name = path.split(".")
        held: Any = types.SimpleNamespace(**arguments)
        for one in outer:
            held = getattr(held, one)
        if outer:
            setattr(held, name, change(getattr(held, name)))
        else:
            arguments[name] = change(arguments[name])

    return apply


def without(path: str) -> Callable[[Arguments], None]:
    """Delete the member of a group at `path`."""

    def apply(arguments: Arguments) -> None:
        group, *inner, name = path.split(".")
        held = arguments[group]
        for one in inner:
            held = getattr(held, one)
        delattr(held, name)

    return apply


def short(array: Any) -> Any:
    return array[:-1]


WRONG = {
    "extents swapped": (swapped("first", "second"), "first has 7 elements, expected 3, which is items"),
    "an element short": (with_array("first", short), "first has 2 elements, expected 3, which is items"),
    "a row short": (with_array("corners", short), "corners has 4 elements, expected 5, which is places"),
    "a row of another width": (
        with_array("corners", lambda a: a[:, :2].copy()),
        r"corners has shape \(5, 2\), expected rows of 3 words, a Corner each",
    ),
    "by a constant": (with_array("second", short), r"second has 6 elements, expected 7, which is items \+ CODES"),
    "by a group's dimension": (with_array("levels", short), "levels has 1 elements, expected 2, which is rows"),
    "a group's dimension against an integer": (
        with_array("canvas.points", short),
        "canvas.points has 3 elements, expected 4, which is points",
    ),
    "wrong dtype": (with_array("first", lambda a: a.astype(np.int64)), "first has dtype int64, expected int32"),
    "not contiguous": (with_array("first", lambda a: a.repeat(2)[::2]), "first is not contiguous"),
    "out of range": (with_array("points", lambda a: 2**63), "points is 9223372036854775808, which int64 does not hold"),
    "no bool": (with_array("negative", lambda a: 1), "negative is a int, expected a bool"),
    "missing": (lambda arguments: arguments.pop("levels"), "read_all lacks levels"),
    "unknown": (lambda arguments: arguments.update(third=3), "read_all has no parameter third"),
    "renamed": (lambda arguments: arguments.update(frist=arguments.pop("first")), "read_all lacks first"),
    "a group's array short": (
        with_array("canvas.table.values", short),
        r"canvas.table.values has 13 elements, expected 14, which is rows \* width",
    ),
    "a group's integer": (
        with_array("canvas.table.width", lambda a: 40_000),
        "canvas.table.width is 40000, which int16",
    ),
    "a base's integer": (with_array("canvas.table.low", lambda a: 256), "canvas.table.low is 256, which uint8"),
    "a group that lacks one": (without("canvas.table.high"), "canvas.table is a SimpleNamespace, which has no high"),
    "no group": (with_array("canvas", lambda a: 5), "canvas is a int, which has no table"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments(tiny: Path, backends: str, wrong: str, compilations: list[Path]) -> None:
    """Raises an error that names kernel and parameter; nothing is compiled or run."""
    backend = open_backend(backends)
    arguments = scene_arguments(backend)
    change, message = WRONG[wrong]
    change(arguments)
    named = message if message.startswith("read_all") else f"read_all: argument {message}"
    with pytest.raises(TypeError, match=f"^{named}"):
        backend.launch(READ_ALL, 3, **arguments)
    assert compilations == []


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.float32, np.uint64, np.bool_, ">i4"])
def test_dtypes_of_the_same_size_differ(tiny: Path, dtype: Any) -> None:
    arrays = {"numbers": np.zeros(4, dtype), "sums": np.zeros(4, np.int32), "visits": np.zeros(4, np.uint8)}
    with pytest.raises(TypeError, match="argument numbers has dtype"):
        open_backend("cpu").launch(ADD, 4, **arrays, shift=0)


@pytest.mark.parametrize("argument", [[1, 2, 3], None, 5, b"1234", memoryview(b"1234")])
def test_not_an_array(tiny: Path, backends: str, argument: Any) -> None:
    backend = open_backend(backends)
    arguments = {**scene_arguments(backend), "first": argument}
    with pytest.raises(TypeError, match=rf"argument first is a \w+, expected {backend.xp.__name__}\.ndarray"):
        backend.launch(READ_ALL, 3, **arguments)


@pytest.mark.gpu
def test_host_arrays_are_rejected_by_the_gpu(tiny: Path, backends: str) -> None:
    if backends == "cpu":
        pytest.skip("the CPU's arrays are on the host")
    backend = open_backend(backends)
    host = scene_arguments(open_backend("cpu"))
    for name, message in (("first", "first is a ndarray"), ("canvas", "canvas.table.values is a ndarray")):
        with pytest.raises(TypeError, match=f"argument {message}, expected cupy"):
            backend.launch(READ_ALL, 3, **{**scene_arguments(backend), name: host[name]})


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        *(("a", 0, True), ("a", 255, True), ("a", 256, False), ("a", -1, False)),
        *(("b", -(2**31), True), ("b", 2**31 - 1, True), ("b", 2**31, False), ("b", -(2**31) - 1, False)),
        *(("c", 2**64 - 1, True), ("c", 2**64, False), ("c", -1, False), ("c", np.int8(-1), False)),
        *(("b", True, False), ("b", 1.0, False), ("b", np.float64(1), False), ("b", "1", False), ("b", None, False)),
        *(("b", np.uint8(7), True), ("c", np.int64(7), True), ("b", np.uint64(2**31), False)),
    ],
)
def test_integers_out_of_range(tiny: Path, backends: str, name: str, value: Any, fits: bool) -> None:
    backend = open_backend(backends)
    arrays = {"suffixes": backend.empty(1, np.uint32), "table": backend.empty(1, np.uint32)}
    arguments = {**arrays, "sizes": backend.empty(1, np.int64), "a": 0, "b": 0, "c": 0, name: value}
    if fits:
        backend.launch(TAKE, 0, **arguments)
        return
    with pytest.raises(TypeError, match=f"take: argument {name} is "):
        backend.launch(TAKE, 0, **arguments)


@pytest.mark.parametrize(("first", "second"), [("u4", "u4"), ("u8", "u8"), ("u4", "u8"), ("u8", "u4"), ("i4", "i4")])
def test_first_argument_selects_the_generic_type(tiny: Path, backends: str, first: str, second: str) -> None:
    backend = open_backend(backends)
    sizes = backend.full(1, 0, np.int64)
    suffixes, table = backend.full(1, 0, np.dtype(first)), backend.full(1, 0, np.dtype(second))
    arguments = {"suffixes": suffixes, "table": table, "sizes": sizes, "a": 0, "b": 0, "c": 0}
    if first == second != "i4":
        backend.launch(TAKE, 1, **arguments)
        assert backend.to_host(sizes).tolist() == [int(first[1])]
        return
    name = "suffixes" if first == "i4" else "table"
    with pytest.raises(TypeError, match=f"take: argument {name} has dtype"):
        backend.launch(TAKE, 1, **arguments)


@dataclass(frozen=True)
class FrozenScene:
    """The argument for a Scene, with a mutable table."""

    table: Any
    points: Any
    colour: int
    shade: int


def test_a_frozen_group_is_packed_once(tiny: Path, backends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The packed form serves all kernels; changed copies and mutable groups are packed again."""
    packed: list[str] = []
    pack = signatures.Structure.pack

    def counted(structure: signatures.Structure, *rest: Any) -> Any:
        packed.append(structure.name)
        return pack(structure, *rest)

    monkeypatch.setattr(signatures.Structure, "pack", counted)
    (tiny / "other.cu").write_text(MODULE)
    backend = open_backend(backends)
    arguments = scene_arguments(backend)
    frozen = FrozenScene(**vars(arguments["canvas"]))
    for kernel in (READ_ALL, READ_ALL, Kernel("common/other", "read_all")):
        backend.launch(kernel, 3, **{**arguments, "canvas": frozen})
    assert packed == ["Scene", "Table", "Limits"]
    backend.launch(READ_ALL, 3, **{**arguments, "canvas": replace(frozen, colour=8)})
    assert backend.to_host(arguments["read"])[0, 7] == 8
    for colour in (9, 10):
        arguments["canvas"].colour = colour
        backend.launch(READ_ALL, 3, **arguments)
        assert backend.to_host(arguments["read"])[0, 7] == colour
    assert packed.count("Scene") == 4


@dataclass(frozen=True)
class FrozenTable:
    """The argument for a Table and its base, Limits."""

    low: int
    high: int
    values: Any
    marks: Any
    width: int
    doubled: bool


def test_packed_groups_keep_arrays_alive(tiny: Path) -> None:
    """Including arrays of nested groups without other references; they are freed without the garbage collector."""

    class Table(types.SimpleNamespace):
        @property
        def values(self) -> Any:
            made.append(weakref.ref(array := np.arange(14, dtype=np.int32)))
            return array

    made: list[weakref.ref[Any]] = []
    canvas = READ_ALL.signature.parameters[0]
    assert isinstance(canvas, signatures.Group)
    table = Table(low=1, high=2, marks=np.zeros(2, np.uint8), width=7, doubled=True)
    scene = types.SimpleNamespace(table=table, points=np.zeros((4, 2), np.int64), colour=0, shade=0)
    packed = canvas.structure.pack(scene, np.ndarray)
    assert [each() is not None for each in made] == [True]
    held = np.arange(14, dtype=np.int32)
    made.append(weakref.ref(held))
    scene.table = FrozenTable(1, 2, held, table.marks, 7, True)
    gc.disable()
    try:
        packed = canvas.structure.pack(scene, np.ndarray)
        del held, scene
        assert made[1]() is not None
        del packed
        assert made[1]() is None
    finally:
        gc.enable()


def test_integers_in_the_memory_of_a_launch() -> None:
    """NumPy integers and negative integers, too."""
    numbers: list[Any] = [0, np.int64(7), True, -5, 1 << 40]
    held = list(signatures.pack_arguments(numbers))
    begin = held[0]
    assert held == [*range(begin, begin + 8 * len(numbers), 8), *numbers]
    with pytest.raises(struct.error):
        signatures.pack_arguments([1.5])  # type: ignore[list-item]


def test_changed_tables_are_packed_again() -> None:
    backend, batches = open_backend("cpu"), [np.zeros((MAX_WINDOWS, WINDOW_WORDS), np.int64) for _ in range(2)]
    table = WindowTable.allocate(
        backend, rows=batches[0], reads=1, fill={"counts": 1, "unexamined_prefixes": 0, "dropped_scores": 0}
    )
    counts, kernel = np.zeros(4, np.int64), Kernel("mapping/windows", "count_tasks")
    for rows, band in zip(batches, (-1, -2), strict=True):
        rows.view(WINDOW)["band"] = band
    for number in (0, 0, 1, 0):
        table.rows = batches[number]
        selected = np.zeros(1, np.int32)
        backend.launch(kernel, 1, windows=table, selected=selected, counts=counts, count=1, excluded_kind=0)
        assert counts.tolist() == [number == 0, number == 1, 0, 0]
