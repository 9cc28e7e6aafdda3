// The lanes of a wave (wave.cuh): on the GPU a warp, whose threads hold two 16-bit lanes each, on the CPU one vector.
#pragma once
#include "comparison.cuh"
#include "lanes.cuh"

// What a row hands to the row below, both relative to the wave's base: H less the first gap, and F.
struct Border {
    i32 h, f;
};

template <class Lane> HOST_DEVICE constexpr i32 wave_width() { return GROUP_WIDTH * Lane::width; }
// Of the lanes that this thread holds, the first.
template <class Lane> HOST_DEVICE i32 first_lane() { return group_lane() * Lane::width; }

template <class Lane> HOST_DEVICE i32 highest(Lane x) {
    i32 most = x.get(0);
    for (i32 lane = 1; lane < Lane::width; ++lane) most = maximum(most, x.get(lane));
    return most;
}

// Lane by lane: 1 where a is greater than b, which it is not smaller than, else 0; a and b; a * 2^bits.
HOST_DEVICE Single apart(Single a, Single b) { return Single{a.value != b.value}; }
HOST_DEVICE Single both(Single a, Single b) { return Single{a.value & b.value}; }
HOST_DEVICE Single raised(Single a, i32 bits) { return Single{a.value << bits}; }

// The letters of a wave's rows, and what they score with those of the columns in which its lanes are. A window holds the
// columns that the lanes come to in some steps; its first cell is wave_width - 1 columns before that of the first step.
template <class Lane, i32 ROWS> struct Letters {
    typedef i32 Cell;
    typedef Lane Columns;
    static const bool TAKES_ALL = true;  // PLAIN or not
    Lane rows[ROWS], matching, differing;

    // All scores have the first gap in them, which the H that is kept lacks.
    HOST_DEVICE Letters(const Comparison& comparison)
        : matching(Lane::all(comparison.match + comparison.first_gap())),
          differing(Lane::all(comparison.first_gap() - comparison.mismatch)) {}
    HOST_DEVICE void set_row(i32 row, i32 lane, i32 code) { rows[row].set(lane, code < NO_LETTER ? code : -1); }
    // The cell of a column whose letter, and that of the column before, these are.
    HOST_DEVICE static void put(Cell* window, i32, i32 place, i32 code, i32) { window[place] = code < NO_LETTER ? code : -2; }
    // The columns of this thread's lanes where the first lane of the wave is at `place`.
    HOST_DEVICE static Columns columns(const Cell* window, i32, i32 place) {
        return Lane::all(window[place - first_lane<Lane>()]);
    }
    // PLAIN: no column is without a letter.
    template <bool PLAIN> HOST_DEVICE Lane score(i32 row, Columns columns) const {
        return if_equal(rows[row], columns, matching, differing);
    }
};

#ifdef __CUDACC__

// A row's scores with the four letters are the bytes of a word, from which the letters of the two columns choose.
template <i32 ROWS> struct Letters<Narrow, ROWS> {
    typedef u32 Cell;
    typedef u32 Columns;
    static const bool TAKES_ALL = false;
    u32 low[ROWS], high[ROWS];
    i32 matching, differing;

    HOST_DEVICE Letters(const Comparison& comparison)
        : matching(comparison.match + comparison.first_gap()), differing(comparison.first_gap() - comparison.mismatch) {}
    HOST_DEVICE void set_row(i32 row, i32 lane, i32 code) {
        u32 scores = (u32)(differing & 0xFF) * 0x01010101u;
        if (code < NO_LETTER) scores ^= (u32)((matching ^ differing) & 0xFF) << 8 * code;
        if (lane) high[row] = scores;
        else low[row] = scores;
    }
    // Four selectors of bytes, the second one of each lane taking the sign; above them which lanes have no letter.
    HOST_DEVICE static void put(Cell* window, i32, i32 place, i32 code, i32 before) {
        u32 first = code & 3, second = 4 | (before & 3);
        window[place] = first | (first | 8) << 4 | second << 8 | (second | 8) << 12 | (u32)(code >= NO_LETTER) << 16 |
                        (u32)(before >= NO_LETTER) << 17;
    }
    HOST_DEVICE static Columns columns(const Cell* window, i32, i32 place) { return window[place - first_lane<Narrow>()]; }
    template <bool PLAIN> HOST_DEVICE Narrow score(i32 row, Columns columns) const {
        u32 scores = chosen_bytes(low[row], high[row], columns);
        if (PLAIN) return Narrow{scores};
        u32 without = (columns >> 16 & 1) * 0xFFFFu | (columns >> 17 & 1) * 0xFFFF0000u;
        return Narrow{(scores & ~without) | (Narrow::all(differing).value & without)};
    }
};

HOST_DEVICE Narrow apart(Narrow a, Narrow b) { return Narrow{__vminu2(__vsub2(a.value, b.value), 0x10001u)}; }
HOST_DEVICE Narrow both(Narrow a, Narrow b) { return Narrow{a.value & b.value}; }
HOST_DEVICE Narrow raised(Narrow a, i32 bits) { return Narrow{a.value << bits}; }

// Every lane's h and f go to the lane below, and the first one gets what the row above the wave has.
HOST_DEVICE void pass_down(Narrow& h, Narrow& f, Border above) {
    u32 crossing = __shfl_up_sync(~0u, __byte_perm(h.value, f.value, 0x7632), 1);
    if (group_lane() == 0) crossing = __byte_perm((u32)above.h, (u32)above.f, 0x5410);
    h.value = __byte_perm(crossing, h.value, 0x5410);
    f.value = __byte_perm(crossing, f.value, 0x5432);
}
HOST_DEVICE void pass_down(Single& h, Single& f, Border above) {
    h.value = __shfl_up_sync(~0u, h.value, 1);
    f.value = __shfl_up_sync(~0u, f.value, 1);
    if (group_lane() == 0) h.value = above.h, f.value = above.f;
}

#else

template <i32 ROWS> struct Letters<Narrow, ROWS> {
    typedef i16 Cell;
    typedef Narrow Columns;
    static const bool TAKES_ALL = true;
    Narrow rows[ROWS], matching, differing;

    HOST_DEVICE Letters(const Comparison& comparison)
        : matching(Narrow::all(comparison.match + comparison.first_gap())),
          differing(Narrow::all(comparison.first_gap() - comparison.mismatch)) {}
    HOST_DEVICE void set_row(i32 row, i32 lane, i32 code) { rows[row].set(lane, code < NO_LETTER ? code : -1); }
    // Backwards, so that the columns of lanes that follow each other do so too.
    HOST_DEVICE static void put(Cell* window, i32 size, i32 place, i32 code, i32) {
        window[size - 1 - place] = (i16)(code < NO_LETTER ? code : -2);
    }
    HOST_DEVICE static Columns columns(const Cell* window, i32 size, i32 place) {
        Narrow columns;
        __builtin_memcpy(&columns.value, window + size - 1 - place, sizeof columns.value);
        return columns;
    }
    template <bool PLAIN> HOST_DEVICE Narrow score(i32 row, Columns columns) const {
        return if_equal(rows[row], columns, matching, differing);
    }
};

HOST_DEVICE Narrow apart(Narrow a, Narrow b) { return Narrow{(a.value != b.value) & (i16)1}; }
HOST_DEVICE Narrow both(Narrow a, Narrow b) { return Narrow{a.value & b.value}; }
HOST_DEVICE Narrow raised(Narrow a, i32 bits) { return Narrow{a.value << bits}; }

// The last lane of a vector of `first` comes in front: two instructions.
HOST_DEVICE Narrow moved_down(Narrow x, i32 first) {
    Narrow above = Narrow::all(first);
#ifdef __clang__
    return Narrow{__builtin_shufflevector(x.value, above.value, 31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)};
#else
    return Narrow{__builtin_shuffle(x.value, above.value, Narrow::vector{31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})};
#endif
}
HOST_DEVICE void pass_down(Narrow& h, Narrow& f, Border above) { h = moved_down(h, above.h), f = moved_down(f, above.f); }
HOST_DEVICE void pass_down(Single& h, Single& f, Border above) { h.value = above.h, f.value = above.f; }

#endif
