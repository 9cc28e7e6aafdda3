"""A small module of kernels for tests, and helpers to launch it and to clear the process's caches."""

import sys
from pathlib import Path

import numpy as np

from readmap.backend import Backend, Kernel, cpu, cuda_available
from readmap.backend.compilation import cache, declarations, host_compiler, signatures, sources

ROOT = Path(__file__).resolve().parents[2]

HEADER = """
#pragma once
#include "common/portable.cuh"

const i32 CODES = 1 << 2, UNREAD = 1;  // only the first is parsed
const u32 NOTHING = ~0u;
const u64 MASK = 0x0Full;
const i64 TWICE = 2 * CODES;
const i32 WIDTH = sizeof(i32);  // only the compiler can evaluate it
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

// The sums, and the number of visits of each item.
KERNEL void add(Items items, const i32* numbers OF(items), i32* sums OF(items), u8* visits OF(items),
                i64 shift) {
    FOR_EACH(item, items) {
        sums[item] = changed(numbers[item]) + (i32)shift;
        visits[item] += 1;
    }
}

KERNEL void take(Items items, const suffix_t* suffixes OF(any), suffix_t* table OF(any), i64* sizes OF(any),
                 u8 a, i32 b, u64 c) {
    FOR_EACH(item, items) sizes[item] = (i64)sizeof(suffix_t);
}

KERNEL void measure(Items items, const Corner* corners OF(items), i64* sizes OF(4 * items)) {
    FOR_EACH(item, items) {
        sizes[4 * item] = (i64)sizeof(Corner);
        sizes[4 * item + 1] = corners[item].point.x;
        sizes[4 * item + 2] = corners[item].point.y;
        sizes[4 * item + 3] = corners[item].z;
    }
}

// Store one number from each argument.
KERNEL void read_all(Items items, Canvas canvas, const i32* first OF(items), const i32* second OF(items + CODES),
                     const Point* places OF(places), const Corner* corners OF(places), const i64* levels OF(rows),
                     i64* read OF(12 * items), i64 points, bool negative) {
    FOR_EACH(item, items) {
        const Table& table = canvas.table;
        i64 numbers[12] = {
            table.low, table.high, table.last<i64>(2), table.marks[1], table.width, table.doubled,
            canvas.points[points - 1].sum(), canvas.colour, canvas.shade, first[item], second[item + CODES], negative};
        for (i32 i = 0; i < 12; ++i) read[12 * item + i] = numbers[i];
    }
}

#define DOUBLED(name, type)                                                                             \\
    KERNEL void name(Items items, const i32* numbers OF(items), i32* out OF(((items + 1) - 1))) { \\
        FOR_EACH(item, items) out[item] = 2 * numbers[item];                                        \\
    }

DOUBLED(doubled, i32)
DOUBLED(doubled_again, i32)
"""
TINY = "common/tiny"
ADD, TAKE, READ_ALL = Kernel(TINY, "add"), Kernel(TINY, "take"), Kernel(TINY, "read_all")


def forget() -> None:
    """Clear the caches of sources and compiled code in this process."""
    for function in (
        *(
            sources.source,
            sources.texts,
            declarations.declarations,
            signatures.kernel_signatures,
            signatures.generic_types,
        ),
        *(cpu._library, cpu._function, host_compiler.compiler_command, cuda_available),
        *(cache.choose_folder, cache._private_folder),
    ):
        function.cache_clear()
    if "readmap.backend.cuda" in sys.modules:
        cuda = sys.modules["readmap.backend.cuda"]
        cuda._module.cache_clear()
        cuda._function.cache_clear()


def run_add(backend: Backend, count: int = 10, shift: int = 0) -> list[int]:
    numbers = backend.to_device(np.arange(count, dtype=np.int32))
    sums, visits = backend.full(count, -1, np.int32), backend.full(count, 0, np.uint8)
    backend.launch(ADD, count, numbers=numbers, sums=sums, visits=visits, shift=shift)
    assert backend.to_host(visits).tolist() == [1] * count
    return [int(x) for x in backend.to_host(sums)]
