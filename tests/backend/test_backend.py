"""The backends: declarations read from the sources, arguments that are checked, compiled code kept by content."""

import functools
import gc
import os
import re
import shutil
import struct
import subprocess
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readmap.backend import Backend, Kernel, cpu, cuda_available, open_backend
from readmap.backend.compilation import cache, declarations, host_compiler, nvrtc, signatures, sources
from readmap.backend.compilation.declarations import Member
from readmap.errors import BackendError, UsageError
from readmap.search.batch import WINDOW, WINDOW_WORDS, WINDOWS, WindowTable

ROOT = Path(__file__).resolve().parents[2]

HEADER = """
#pragma once
#include "common/portable.cuh"

const i32 CODES = 1 << 2, UNREAD = 1;  // one a line is read
const u32 NOTHING = ~0u;
const u64 MASK = 0x0Full;
const i64 TWICE = 2 * CODES;
const i32 WIDTH = sizeof(i32);  // for the compiler alone
enum Shape { ROUND, SQUARE = 4, LARGE };

HOST_DEVICE i32 changed(i32 x) { return x + 1; }

struct Point {
    i64 x;
    i32 y;

    HOST_DEVICE i64 sum() const { return x + y; }
};
struct Corner {
    Point point;
    i32 z;
};
struct Limits {
    u8 low;
    i64 high;
};
struct Table : Limits {
    static const i32 UNUSED = 1 << 3;

    const i32* values OF(rows * width);
    const u8* marks OF(rows);
    i16 width;
    bool doubled;

    template <class A, class B> HOST_DEVICE A last(B rows) const { return values[rows * width - 1]; }
};
struct Scene {
    Table table;
    const Point* points OF(points);
    i32 colour, shade;
};
using Canvas = Scene;
"""
MODULE = """
#include "common/tiny.cuh"

// The sums, and how often each item was visited.
KERNEL void add(i64 begin, i64 end, const i32* numbers OF(items), i32* sums OF(items), u8* visits OF(items),
                i64 shift) {
    FOR_EACH(item, begin, end) {
        sums[item] = changed(numbers[item]) + (i32)shift;
        visits[item] += 1;
    }
}

KERNEL void take(i64 begin, i64 end, const suffix_t* suffixes OF(some), suffix_t* table OF(some), i64* sizes OF(some),
                 u8 a, i32 b, u64 c) {
    FOR_EACH(item, begin, end) sizes[item] = (i64)sizeof(suffix_t);
}

KERNEL void measure(i64 begin, i64 end, const Corner* corners OF(items), i64* sizes OF(4 * items)) {
    FOR_EACH(item, begin, end) {
        sizes[4 * item] = (i64)sizeof(Corner);
        sizes[4 * item + 1] = corners[item].point.x;
        sizes[4 * item + 2] = corners[item].point.y;
        sizes[4 * item + 3] = corners[item].z;
    }
}

// All that it is given, a number each.
KERNEL void read_all(i64 begin, i64 end, Canvas canvas, const i32* first OF(items), const i32* second OF(items + CODES),
                     const Point* places OF(places), const Corner* corners OF(places), const i64* levels OF(rows),
                     i64* read OF(12 * items), i64 points, bool negative) {
    FOR_EACH(item, begin, end) {
        const Table& table = canvas.table;
        i64 numbers[12] = {
            table.low, table.high, table.last<i64>(2), table.marks[1], table.width, table.doubled,
            canvas.points[points - 1].sum(), canvas.colour, canvas.shade, first[item], second[item + CODES], negative};
        for (i32 i = 0; i < 12; ++i) read[12 * item + i] = numbers[i];
    }
}

#define DOUBLED(name, type)                                                                             \\
    KERNEL void name(i64 begin, i64 end, const i32* numbers OF(items), i32* out OF(((items + 1) - 1))) { \\
        FOR_EACH(item, begin, end) out[item] = 2 * numbers[item];                                        \\
    }

DOUBLED(doubled, i32)
DOUBLED(doubled_again, i32)
"""
TINY = "common/tiny"
ADD, TAKE, READ_ALL = Kernel(TINY, "add"), Kernel(TINY, "take"), Kernel(TINY, "read_all")


def forget() -> None:
    """Drop what the process knows of the sources and of compiled code."""
    for function in (
        *(sources.source, sources.texts, declarations.declarations, signatures.signatures, signatures.generic_types),
        *(cpu._library, cpu._function, host_compiler.command, cache.chosen, cache._private, cuda_available),
    ):
        function.cache_clear()
    if "readmap.backend.cuda" in sys.modules:
        cuda = sys.modules["readmap.backend.cuda"]
        cuda._module.cache_clear()
        cuda._function.cache_clear()


@pytest.fixture
def fresh() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def tiny(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels with one small module, and an empty cache of compiled code beside it."""
    folder = tmp_path / "kernels" / "common"
    folder.mkdir(parents=True)
    for name in ("portable.cuh", "threads.cu"):
        shutil.copy(ROOT / "kernels" / "common" / name, folder)
    (folder / "tiny.cuh").write_text(HEADER)
    (folder / "tiny.cu").write_text(MODULE)
    for module in (sources, host_compiler, nvrtc):
        monkeypatch.setattr(module, "folder", lambda: folder.parent)
    monkeypatch.setenv("READMAP_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Grows by the file that each compilation of the small module writes."""
    done: list[Path] = []

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            done.extend(path for path in arguments if isinstance(path, Path) and "tiny" in path.name)
            return function(*arguments)

        return noted

    monkeypatch.setattr(host_compiler, "_compile", note(host_compiler._compile))
    monkeypatch.setattr(nvrtc, "_write", note(nvrtc._write))
    return done


def run_add(backend: Backend, count: int = 10, shift: int = 0) -> list[int]:
    numbers = backend.to_device(np.arange(count, dtype=np.int32))
    sums, visits = backend.full(count, -1, np.int32), backend.full(count, 0, np.uint8)
    backend.launch(ADD, count, numbers=numbers, sums=sums, visits=visits, shift=shift)
    assert backend.to_host(visits).tolist() == [1] * count
    return [int(x) for x in backend.to_host(sums)]


# Declarations.


def test_declarations_are_read_from_the_source(tiny: Path) -> None:
    assert set(signatures.signatures(TINY)) == {"add", "take", "measure", "read_all", "doubled", "doubled_again"}
    assert [parameter.name for parameter in ADD.signature.parameters] == ["numbers", "sums", "visits", "shift"]
    doubled = signatures.signature(TINY, "doubled_again")
    assert doubled.kernel == "doubled_again"
    assert [parameter.name for parameter in doubled.parameters] == ["numbers", "out"]
    assert signatures.generic_types(TINY) == ("suffix_t",)
    with pytest.raises(KeyError):
        signatures.signature(TINY, "missing")


def test_members_of_structures(tiny: Path) -> None:
    declared = declarations.declarations(f"{TINY}.cuh")
    assert declared.members("Table") == [
        Member("", "Limits"),
        Member("values", "i32", "rows * width"),
        Member("marks", "u8", "rows"),
        Member("width", "i16"),
        Member("doubled", "bool"),
    ]
    assert declared.members("Canvas") == declared.members("Scene")
    assert [member.name for member in declared.members("Scene")] == ["table", "points", "colour", "shade"]


def test_constants(tiny: Path) -> None:
    """Each as C++ reads it, of the file itself and of its headers."""
    values = {"NOTHING": 2**32 - 1, "MASK": 15, "ROUND": 0, "SQUARE": 4, "LARGE": 5, "CODES": 4, "TWICE": 8}
    for name, value in values.items():
        assert declarations.constant(f"{TINY}.cuh", name) == declarations.constant(f"{TINY}.cu", name) == value
    with pytest.raises(KeyError):
        declarations.constant(f"{TINY}.cuh", "WIDTH")


def test_rows_have_the_layout_of_the_compiler(tiny: Path, backends: str) -> None:
    """What stands behind a structure within one begins where that one's padding ends."""
    backend = open_backend(backends)
    dtype = declarations.row_dtype(f"{TINY}.cuh", "Corner")
    corners = np.array([(5, 6, 7), (8, 9, -1)], dtype)
    sizes = backend.empty(8, np.int64)
    rows = backend.to_device(corners.view(np.int64).reshape(2, -1))
    backend.launch(Kernel(TINY, "measure"), 2, corners=rows, sizes=sizes)
    assert backend.to_host(sizes).tolist() == [dtype.itemsize, 5, 6, 7, dtype.itemsize, 8, 9, -1]


@pytest.mark.parametrize(
    "text",
    [
        *("const u8* (*f) OF(items)", "u8* bytes[4]", "u8* *rows OF(items)", "i32 number OF(items)", "u8 bytes[4]"),
        *("u8* bytes", "Missing group", "const Missing* rows OF(items)", "const u8* bytes OF(items +)", "i32"),
    ],
)
def test_declaration_that_cannot_be_read(tiny: Path, text: str) -> None:
    (tiny / "tiny.cu").write_text(f"KERNEL void broken(i64 begin, i64 end, {text}) {{}}\n")
    with pytest.raises((ValueError, KeyError, SyntaxError)):
        signatures.signature(TINY, "broken")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("i64 count, const u8* bytes OF(items)", "broken: a kernel's first parameters are begin and end"),
        (
            "i64 begin, i64 end, const u8* a OF(2 * rows), const u8* b OF(rows + 1)",
            "broken: no array has the extent rows alone, by which others go",
        ),
        (
            "i64 begin, i64 end, const u8* a OF(rows), const u8* b OF(items)",
            "broken: only one array has the extent rows, which checks nothing: say some",
        ),
        (
            "i64 begin, i64 end, Limits limits, const u8* a OF(high), i64 high",
            "broken: 2 integers have the name high, by which an extent goes",
        ),
    ],
)
def test_extents_that_check_nothing(tiny: Path, parameters: str, message: str) -> None:
    (tiny / "tiny.cu").write_text(f'#include "common/tiny.cuh"\nKERNEL void broken({parameters}) {{}}\n')
    with pytest.raises(ValueError, match=message):
        signatures.signature(TINY, "broken")


@pytest.mark.parametrize("module", sources.modules(for_gpu=True))
def test_every_entry_point_is_declared_and_compiled(module: str, backends: str) -> None:
    """Each is a symbol of the compiled module."""
    found = signatures.signatures(module)
    text = (ROOT / "kernels" / f"{module}.cu").read_text()
    written = set(re.findall(r"KERNEL void (?:RESIDENT\(\d+\) )?(\w+)\(", text)) - {"name"}
    assert written <= set(found)
    assert found
    if backends == "cpu" and module in sources.modules(for_gpu=False):
        kinds = signatures.generic_types(module)
        library = cpu._library(module, tuple((kind, declarations.GENERIC[kind][0]) for kind in kinds))
        for name in found:
            getattr(library, f"packed_{name}")


def test_every_kernel_that_python_names_is_there() -> None:
    named = [
        found
        for path in (ROOT / "readmap").rglob("*.py")
        for found in re.findall(r'Kernel\("([\w/]+)", "(\w+)"\)', path.read_text())
    ]
    assert len(named) > 10
    for module, name in named:
        signatures.signature(module, name)


# Arguments.

Arguments = dict[str, Any]


def scene_arguments(backend: Backend, items: int = 3) -> Arguments:
    """Arguments of READ_ALL, in which no two arrays of one dtype have the same extent by chance."""

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


def test_arguments_arrive_by_their_names(tiny: Path, backends: str) -> None:
    """Members of groups in groups do too, in whatever order and of whatever widths they are."""
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
    """path: an argument, or a member of one."""

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
    """path: a member of a group."""

    def apply(arguments: Arguments) -> None:
        group, *inner, name = path.split(".")
        held = arguments[group]
        for one in inner:
            held = getattr(held, one)
        delattr(held, name)

    return apply


WRONG = {
    "arrays of different extents swapped": (
        swapped("first", "second"),
        "first has 7 elements, expected 3, which is items",
    ),
    "an element short": (with_array("first", lambda a: a[:-1]), "first has 2 elements, expected 3, which is items"),
    "a row short": (with_array("corners", lambda a: a[:-1]), "corners has 4 elements, expected 5, which is places"),
    "a row of another width": (
        with_array("corners", lambda a: a[:, :2].copy()),
        r"corners has shape \(5, 2\), expected rows of 3 words, a Corner each",
    ),
    "by a constant": (
        with_array("second", lambda a: a[:-1]),
        r"second has 6 elements, expected 7, which is items \+ CODES",
    ),
    "by a group's dimension": (
        with_array("levels", lambda a: a[:1]),
        "levels has 1 elements, expected 2, which is rows",
    ),
    "a group's dimension against an integer": (
        with_array("canvas.points", lambda a: a[:-1]),
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
        with_array("canvas.table.values", lambda a: a[:-1]),
        r"canvas.table.values has 13 elements, expected 14, which is rows \* width",
    ),
    "a group's integer": (
        with_array("canvas.table.width", lambda a: 40_000),
        "canvas.table.width is 40000, which int16 does not hold",
    ),
    "a base's integer": (with_array("canvas.table.low", lambda a: 256), "canvas.table.low is 256, which uint8"),
    "a group in a group that lacks one": (
        without("canvas.table.high"),
        "canvas.table is a SimpleNamespace, which has no high",
    ),
    "no group": (with_array("canvas", lambda a: 5), "canvas is a int, which has no table"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments(tiny: Path, backends: str, wrong: str, compilations: list[Path]) -> None:
    """Each is an error that names the kernel and the parameter, and nothing is compiled or run."""
    backend = open_backend(backends)
    arguments = scene_arguments(backend)
    change, message = WRONG[wrong]
    change(arguments)
    named = message if message.startswith("read_all") else f"read_all: argument {message}"
    with pytest.raises(TypeError, match=f"^{named}"):
        backend.launch(READ_ALL, 3, **arguments)
    assert compilations == []


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.float32, np.uint64, np.bool_, ">i4"])
def test_dtypes_of_the_same_size_are_told_apart(tiny: Path, dtype: Any) -> None:
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
def test_an_array_on_the_host_is_none_of_the_gpu(tiny: Path, backends: str) -> None:
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
def test_open_types_are_decided_by_the_first_argument(tiny: Path, backends: str, first: str, second: str) -> None:
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
    """A Scene; its table may change."""

    table: Any
    points: Any
    colour: int
    shade: int


def test_a_frozen_group_is_packed_once(tiny: Path, backends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all kernels of all modules; a copy with something else in it is packed anew, and so is what is not frozen."""
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
    """A Table, which is also the Limits that it begins with."""

    low: int
    high: int
    values: Any
    marks: Any
    width: int
    doubled: bool


def test_arrays_live_as_long_as_a_group_is_packed(tiny: Path) -> None:
    """Also those that nobody else holds, of a group in another; and no longer, without a collector of cycles."""

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


def test_numbers_of_a_launch_in_memory() -> None:
    """Also those of NumPy, and the lowest bytes of negative ones."""
    numbers: list[Any] = [0, np.int64(7), True, -5, 1 << 40]
    held = list(signatures.by_address(numbers))
    begin = held[0]
    assert held == [*range(begin, begin + 8 * len(numbers), 8), *numbers]
    with pytest.raises(struct.error):
        signatures.by_address([1.5])  # type: ignore[list-item]


def test_a_group_of_arrays_is_packed_again_where_one_is_another() -> None:
    backend, batches = open_backend("cpu"), [np.zeros((WINDOWS, WINDOW_WORDS), np.int64) for _ in range(2)]
    table = WindowTable(batches[0], np.ones(1, np.int32), *(np.zeros(1, np.int32) for _ in range(2)))
    counts, kernel = np.zeros(4, np.int64), Kernel("search/windows", "count_tasks")
    for rows, band in zip(batches, (-1, -2), strict=True):
        rows.view(WINDOW)["band"] = band
    for number in (0, 0, 1, 0):
        table.rows = batches[number]
        selected = np.zeros(1, np.int32)
        backend.launch(kernel, 1, windows=table, selected=selected, counts=counts, count=1, without=0)
        assert counts.tolist() == [number == 0, number == 1, 0, 0]


# Running.


def test_every_item_is_visited_once(tiny: Path, backends: str) -> None:
    for threads in (1, 2, 5):
        for count in (1, cpu.SLICE - 1, cpu.SLICE, cpu.SLICE + 1, 5_000):
            assert run_add(open_backend(backends, threads), count, 3) == [i + 4 for i in range(count)]


def test_no_items(tiny: Path, backends: str) -> None:
    assert run_add(open_backend(backends), 0) == []


@pytest.mark.parametrize("threads", [1, 3, 16])
@pytest.mark.parametrize("size", [1 << 17, (1 << 17) + 1, (1 << 18) - 1, 6 << 18, (50 << 18) + 5])
def test_large_arrays_to_a_device_and_back(backends: str, size: int, threads: int) -> None:
    """From memory of its own and from the host's, and behind what was launched before."""
    backend, array = open_backend(backends, threads), np.arange(size, dtype=np.int64)
    held, pinned = backend.to_device(array.copy()), backend.host_array(size, np.int64)
    pinned[:] = held
    held[1:] += held[:-1].copy()
    assert np.array_equal(backend.to_host(held), array + np.maximum(array - 1, 0))
    assert np.array_equal(backend.to_host(pinned), array)
    assert np.array_equal(backend.to_host(pinned.reshape(1, -1)[:, 1:]), array[None, 1:])


def test_arrays_of_a_backend(backends: str) -> None:
    backend = open_backend(backends)
    array = np.arange(6, dtype=np.int64)
    for held in (backend.to_device(array), backend.hold(array)):
        assert isinstance(held, backend.xp.ndarray)
        assert np.array_equal(backend.to_host(held), array)
    for sizes in ([0], [5], [3, 2], [0, 4, 1]):
        parts = [np.arange(10 * i, 10 * i + size, dtype=np.uint8) for i, size in enumerate(sizes)]
        joined = backend.upload(parts)
        assert isinstance(joined, backend.xp.ndarray)
        assert backend.to_host(joined).tobytes() == b"".join(part.tobytes() for part in parts)
    assert backend.empty((3, 2), np.uint16).shape == (3, 2)
    assert backend.to_host(backend.full((2, 2), -1, np.int32)).tolist() == [[-1, -1], [-1, -1]]
    buffer = backend.host_buffer(10)
    assert isinstance(buffer, np.ndarray)
    assert buffer.dtype == np.uint8
    assert buffer.shape == (10,)
    backend.synchronize()
    backend.release_memory()
    assert backend.threads > 0


# The cache of compiled code.


def test_code_is_compiled_once(tiny: Path, backends: str, compilations: list[Path]) -> None:
    assert run_add(open_backend(backends)) == list(range(1, 11))
    assert len(compilations) == 1
    forget()
    assert run_add(open_backend(backends)) == list(range(1, 11))
    assert len(compilations) == 1
    assert compilations[0].parent == tiny.parents[1] / "cache"
    kept = [path.name for path in (tiny.parents[1] / "cache").glob("*tiny*")]
    assert len(kept) == 1
    assert re.fullmatch(r"common-tiny-.*[0-9a-f]{24}-[0-9a-f]{24}\.(so|cubin)", kept[0])


@pytest.mark.parametrize("name", ["tiny.cuh", "tiny.cu", "portable.cuh"])
def test_code_is_compiled_again_when_a_source_changes(
    tiny: Path, backends: str, compilations: list[Path], name: str
) -> None:
    run_add(open_backend(backends))
    text = (tiny / name).read_text()
    (tiny / name).write_text(text.replace("x + 1", "x + 2") + "\n// edited\n")
    forget()
    first = 2 if name == "tiny.cuh" else 1
    assert run_add(open_backend(backends)) == list(range(first, 10 + first))
    assert len(compilations) == 2
    (tiny / name).write_text(text)
    forget()
    assert run_add(open_backend(backends)) == list(range(1, 11))
    assert len(compilations) == 2


def test_a_file_that_is_not_included_does_not_matter(tiny: Path, compilations: list[Path]) -> None:
    run_add(open_backend("cpu"))
    (tiny / "other.cuh").write_text("error\n")
    forget()
    run_add(open_backend("cpu"))
    assert len(compilations) == 1


def test_flags_and_processor_level_are_part_of_the_name(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        host_compiler.library("common/tiny", (("suffix_t", "u32"),), level).name for level in host_compiler.levels()
    }
    names.add(host_compiler.library("common/tiny", (("suffix_t", "u64"),)).name)
    monkeypatch.setattr(host_compiler, "FLAGS", tuple(flag.replace("-O3", "-O0") for flag in host_compiler.FLAGS))
    names.add(host_compiler.library("common/tiny", (("suffix_t", "u32"),)).name)
    assert len(names) == len(host_compiler.levels()) + 2


def test_source_that_does_not_compile(tiny: Path) -> None:
    (tiny / "tiny.cuh").write_text(HEADER.replace("x + 1", "y + 1"))
    with pytest.raises(BackendError, match=r"could not compile .*tiny\.cu:(.|\n)*'?y'?"):
        run_add(open_backend("cpu"))
    assert list((tiny.parents[1] / "cache").iterdir()) == []


@pytest.mark.parametrize("name", ["READMAP_CACHE", "XDG_CACHE_HOME", "HOME"])
def test_folder_of_the_cache(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for other in ("READMAP_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, str(tmp_path / "place"))
    below = {"READMAP_CACHE": "place", "XDG_CACHE_HOME": "place/readmap", "HOME": "place/.cache/readmap"}[name]
    assert cache.folder() == tmp_path / below
    assert cache.folder().is_dir()


def test_readmap_cache_comes_first(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("READMAP_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    assert cache.folder() == tmp_path / "READMAP_CACHE"


def test_home_that_cannot_be_written(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the folder should be: not even root can make one there."""
    (tmp_path / "file").write_text("")
    for name in ("READMAP_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert cache.folder().is_dir()
    assert not cache.folder().is_relative_to(tmp_path / "file")
    assert cache.folder().stat().st_mode & 0o077 == 0


def forbid_writing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As if the folder were on a read-only file system: for root, permissions do not tell."""
    access = os.access

    def refuse(path: Any, mode: int, **options: Any) -> bool:
        return not (Path(path) == folder and mode & os.W_OK) and access(path, mode, **options)

    monkeypatch.setattr(os, "access", refuse)


def test_prebuilt_code_in_a_read_only_folder(
    tiny: Path, compilations: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tiny.parents[1] / "cache"
    run_add(open_backend("cpu"))
    before = sorted(place.iterdir())
    forget()
    forbid_writing(monkeypatch, place)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert len(compilations) == 1
    assert sorted(place.iterdir()) == before


def test_what_a_read_only_folder_lacks_is_compiled_elsewhere(
    tiny: Path, compilations: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tiny.parents[1] / "cache"
    place.mkdir()
    forbid_writing(monkeypatch, place)
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert len(compilations) == 1
    assert list(place.iterdir()) == []


def test_a_file_that_is_not_made_is_not_kept(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.kept("code.so", fail, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_that_others_can_write_is_refused(tiny: Path, compilations: list[Path], mode: int) -> None:
    """What is there may be anybody's, and would run."""
    place = tiny.parents[1] / "cache"
    run_add(open_backend("cpu"))
    place.chmod(mode)
    forget()
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert len(compilations) == 2
    assert cache.chosen().refusal == f"{place} can be written by other users, and code in it would run as you"
    assert cache.folder().stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("owner", "mode", "reason"),
    [
        (os.geteuid(), 0o40755, ""),
        (0, 0o40755, ""),
        (os.geteuid() + 1, 0o40755, f"belongs to another user ({os.geteuid() + 1})"),
        (os.geteuid(), 0o100664, "can be written by other users"),
    ],
)
def test_whose_code_is_trusted(owner: int, mode: int, reason: str) -> None:
    assert cache._distrust(os.stat_result((mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))) == reason


@pytest.mark.parametrize("harm", ["cut", "altered", "writable"])
def test_damaged_code_is_made_anew(tiny: Path, compilations: list[Path], harm: str) -> None:
    run_add(open_backend("cpu"))
    (file,) = (tiny.parents[1] / "cache").glob("*tiny*")
    code = file.read_bytes()
    if harm == "writable":
        file.chmod(0o666)
    else:
        file.unlink()  # it is mapped
        file.write_bytes(code[:3000] if harm == "cut" else code[:3000] + b"?" + code[3001:])
    forget()
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert len(compilations) == 2
    (again,) = (tiny.parents[1] / "cache").glob("*tiny*")
    assert again.stat().st_mode & 0o777 == 0o644


def test_one_run_compiles_at_a_time(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READMAP_CACHE", str(tmp_path))
    waits = threading.Event()

    def wait() -> None:
        with cache.alone(lambda _: waits.set()):
            pass

    with cache.alone(pytest.fail):
        other = threading.Thread(target=wait)
        other.start()
        assert waits.wait(60)
        assert other.is_alive()
    other.join(60)
    assert not other.is_alive()


def test_many_at_once_do_no_harm(tmp_path: Path) -> None:
    """Whoever comes sees either no file or all of it, which one of them has made."""
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        with path.open("w") as out:
            for _ in range(100):
                out.write("0123456789" * 100)

    def use(_: int) -> int:
        return len(cache.kept("code.so", make, tmp_path).read_text())

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(use, range(50))) == {100_000}
    assert len(list(tmp_path.iterdir())) == len(made) == 1


def test_processes_that_start_at_once(tmp_path: Path) -> None:
    program = (
        "import numpy as np; from readmap.backend import Kernel, open_backend\n"
        "counts = np.zeros(1, np.int64)\n"
        "data = np.full(5, 10, np.uint8)\n"
        "open_backend('cpu').launch(Kernel('reads/reads', 'count_newlines'), 1, bytes=data, counts=counts, size=5)\n"
        "assert counts[0] == 5"
    )
    environment = {**os.environ, "READMAP_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    started = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    assert {path.name.rsplit("-", 2)[0] for path in tmp_path.iterdir()} == {"common-threads", "reads-reads"}
    assert len(list(tmp_path.iterdir())) == 2


# What may be missing.


def test_no_compiler(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(BackendError) as raised:
        run_add(open_backend("cpu"))
    for hint in ("no C++ compiler was found", "apt install g++", "pip install ziglang", "$CXX", "$READMAP_CACHE"):
        assert hint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_choice_of_the_compiler(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    present = {"my-g++", "g++", "clang++", "c++"}
    monkeypatch.setattr(shutil, "which", lambda name: name if name in present else None)
    monkeypatch.setenv("CXX", "my-g++ -m64")
    expected = [["my-g++", "-m64"], ["g++"], ["clang++"], ["c++"], [sys.executable, "-m", "ziglang", "c++"]]
    monkeypatch.setitem(sys.modules, "ziglang", types.ModuleType("ziglang"))
    for command in expected:
        host_compiler.command.cache_clear()
        assert host_compiler.command() == command
        present.discard(command[0])


def test_no_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sources, "__file__", str(tmp_path / "readmap" / "backend" / "compilation" / "sources.py"))
    with pytest.raises(BackendError, match="the installation is incomplete"):
        sources.folder.__wrapped__()


def fake_cupy(available: bool, error: Exception | None = None) -> types.ModuleType:
    def device_count() -> int:
        if error:
            raise error
        return 1

    module = types.ModuleType("cupy")
    runtime = types.SimpleNamespace(getDeviceCount=device_count)
    module.cuda = types.SimpleNamespace(is_available=lambda: available, runtime=runtime)  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize(
    ("cupy", "message"),
    [
        (None, r"CuPy is not installed: pip install 'readmap\[cuda13\]' \(or cuda12"),
        (fake_cupy(False), "no NVIDIA driver or no GPU: install the driver"),
        (
            fake_cupy(True, RuntimeError("cudaErrorInsufficientDriver")),
            "cannot reach the GPU: cudaErrorInsufficientDriver",
        ),
    ],
    ids=["no CuPy", "no driver", "broken driver"],
)
def test_no_gpu(fresh: None, monkeypatch: pytest.MonkeyPatch, cupy: types.ModuleType | None, message: str) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    reason = cuda_available()
    assert reason is not None
    assert re.search(message, reason)
    for device in ("cuda", "cuda:1"):
        with pytest.raises(BackendError, match=f"device {device} cannot be used: .*{message}"):
            open_backend(device)
    assert open_backend("auto").name == "cpu"
    assert open_backend("cpu").name == "cpu"


def test_gpu_is_taken_where_there_is_one(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(True))
    assert cuda_available() is None


@pytest.mark.parametrize("device", ["", "gpu", "CPU", "cpu:0", "auto:1", "cuda:x", "cuda:-1", "cuda:1:2"])
def test_device_that_is_none(device: str) -> None:
    with pytest.raises(UsageError, match=f"--device {device}: expected auto, cpu, cuda or cuda:N"):
        open_backend(device)


def test_gpu_number_that_is_not_there(backends: str) -> None:
    if backends == "cpu":
        pytest.skip("about GPUs")
    with pytest.raises(BackendError, match=r"device cuda:99 cannot be used: this machine has \d+ GPU"):
        open_backend("cuda:99")


def test_threads_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "available_processors", lambda: 3)
    assert open_backend("cpu").threads == 3
    assert open_backend("cpu", 2).threads == 2


def test_no_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(BackendError, match=r"NVRTC is not installed: pip install 'readmap\[cuda13\]'"):
        nvrtc.compile_cubin("search/seeds", "sm_90")


@pytest.mark.parametrize(
    ("gpu", "taken"),
    [
        ("sm_80", "sm_80"),
        ("sm_89", "sm_80"),
        ("sm_90", "sm_90"),
        ("sm_103", "sm_100"),
        ("sm_121", "sm_120"),
        ("sm_110", "compute_90"),
        ("sm_130", "compute_90"),
        ("sm_75", None),
        ("sm_87", None),
        ("sm_101", "compute_90"),
    ],
)
def test_code_that_came_with_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: str, taken: str | None
) -> None:
    """Machine code for the GPU's generation, else PTX for what is older; nothing for a GPU before all of them."""
    shipped, compiled = tmp_path / "shipped", tmp_path / "compiled"
    shipped.mkdir()
    for each in nvrtc.ARCHITECTURES:
        cache.kept(nvrtc.cubin_name("search/seeds", (), each), lambda out, each=each: out.write_text(each), shipped)
    monkeypatch.setattr(cache, "SHIPPED", shipped)
    monkeypatch.setattr(cache, "_listed", {})
    monkeypatch.setattr(nvrtc, "cubin", lambda *_: compiled)
    found = nvrtc.code("search/seeds", (), gpu)
    assert found == compiled if taken is None else found.read_text() == taken
    assert taken is None or nvrtc.is_compiled("search/seeds", (), gpu)
    if taken:
        found.write_text("cut off")
        monkeypatch.setattr(cache, "_listed", {})
        assert nvrtc.code("search/seeds", (), gpu) != found
        assert found.exists()  # whoever installed it removes it


def test_source_that_nvrtc_does_not_compile(tiny: Path) -> None:
    pytest.importorskip("cuda.bindings")
    (tiny / "broken.cu").write_text("KERNEL void broken(i64 begin, i64 end, const u8* bytes) { nonsense; }\n")
    with pytest.raises(BackendError, match=r"NVRTC could not compile .*broken\.cu for sm_90:(.|\n)*nonsense"):
        nvrtc.compile_cubin("common/broken", "sm_90", ())


def test_threads_that_are_first_share_a_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a type of its own for ctypes, which no other one of that name fits."""
    ready, interval = threading.Barrier(8), sys.getswitchinterval()

    def type_of(_: int) -> int:
        ready.wait()
        return id(signatures._structure("Libdeflate", (signatures.Integer("one", "u64"),)).ctype)

    monkeypatch.setattr(signatures, "_made", functools.cache(signatures.Structure))
    try:
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(8) as pool:
            for _ in range(50):
                signatures._made.cache_clear()
                assert len({*pool.map(type_of, range(8))}) == 1
    finally:
        sys.setswitchinterval(interval)
