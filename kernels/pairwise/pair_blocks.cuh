// Pairs of sequences: how they share lanes, scratch memory and strips.
#pragma once
#include "pairwise/strips.cuh"

// Concatenated sequences, as codes; PAD bytes after the last letter may be read.
struct Sequences {
    const u8* codes OF(any);
    const i64* offsets OF(pairs + 1);  // sequence i is [offsets[i], offsets[i + 1])
    HOST_DEVICE i32 length(i64 i) const { return (i32)(offsets[i + 1] - offsets[i]); }
    HOST_DEVICE const u8* sequence(i64 i) const { return codes + offsets[i]; }
};

// Query i is aligned with target i.
struct Pairs {
    Sequences queries, targets;
    i64 pairs;  // number of pairs
};

const i32 UNBOUNDED = 1 << 29;
// The band in which a block of pairs, one per lane of a warp's threads, is swept. Row r is letter r of the query;
// column c is column c + shift of the matrix, with one shift per pair. In row r a path has columns r to r + width.
struct BlockBand {
    i32 rows, columns;
    i32 left;  // the first column inside a matrix
    i32 width;
    HOST_DEVICE i32 strips() const { return (rows + ROWS - 1) / ROWS; }
    HOST_DEVICE i32 first(i32 strip) const { return width == UNBOUNDED ? 0 : maximum(strip * ROWS, left); }
    HOST_DEVICE i32 steps(i32 strip) const {
        i32 last = minimum(strip * ROWS + ROWS - 1 + width, columns);
        return maximum((last - first(strip) + 2 * (ROWS - 1)) / ROWS * ROWS, 0);
    }
    HOST_DEVICE i32 max_steps() const {
        return (minimum(ROWS - 1 + width, columns - left) + 2 * (ROWS - 1)) / ROWS * ROWS;
    }
};

// The pairs of a thread, one per lane, and the parts that are aligned.
template <class Lane> struct Group {
    i64 pairs[Lane::width];
    const u8 *queries[Lane::width], *targets[Lane::width];
    i32 query_ends[Lane::width], target_ends[Lane::width], shifts[Lane::width];
    // Unused lanes repeat the last pair.
    HOST_DEVICE static Group of(const Pairs& pairs, const u32* order, i64 group, i64 count) {
        Group result;
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            i64 pair = order[minimum(group * Lane::width + lane, count - 1)];
            result.pairs[lane] = pair;
            result.queries[lane] = pairs.queries.sequence(pair);
            result.targets[lane] = pairs.targets.sequence(pair);
            result.query_ends[lane] = pairs.queries.length(pair);
            result.target_ends[lane] = pairs.targets.length(pair);
            result.shifts[lane] = 0;
        }
        return result;
    }
    template <class Scheme> HOST_DEVICE void store_letters(
            const StripLetters<Scheme, Lane>& codes, StripColumns<Lane> columns, i32 count) const {
        for (i32 first = -ROWS; first < count + 2 * ROWS; first += 8) {
            Lane letters[8];
            for (i32 lane = 0; lane < Lane::width; ++lane) {
                i32 position = first + shifts[lane] - 1;
                u64 eight = eight_letters<Scheme>(targets[lane], position, target_ends[lane], codes.NO_TARGET);
                UNROLL for (i32 i = 0; i < 8; ++i)
                    letters[i].set(lane, codes.of_target((i32)(eight >> 8 * i & 255)));
            }
            for (i32 i = 0; i < 8; ++i) columns.letter(first + i) = letters[i];
        }
    }
    template <class Scheme>
    HOST_DEVICE void load_query(const StripLetters<Scheme, Lane>& codes, Lane* rows, i32 strip) const {
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            u64 eight = eight_letters<Scheme>(queries[lane], strip * ROWS, query_ends[lane], codes.NO_QUERY);
            UNROLL for (i32 i = 0; i < ROWS; ++i)
                rows[i].set(lane, codes.of_query((i32)(eight >> 8 * i & 255)));
        }
    }
    // Eight of `count` letters from `position` on; codes that are not letters or lie outside are replaced by `none`.
    template <class Scheme> HOST_DEVICE static u64 eight_letters(const u8* letters, i32 position, i32 count, u64 none) {
        const u64 bytes = 0x0101010101010101ull;
        if (position <= -8 || position >= count) return none * bytes;
        u64 eight = position < 0 ? load_u64(letters) << -8 * position : load_u64(letters + position);
        u64 unknown = Scheme::non_letters(eight);
        if (position < 0) unknown |= ~(~0ull << -8 * position);
        if (position + 8 > count) unknown |= ~0ull << 8 * (count - position);
        return (eight & ~unknown) | (none * bytes & unknown);
    }
};
static_assert(ROWS == 8, "a strip of the query is eight bytes");

// Return H of row 0 in a column, less the cost of a gap's first letter; `unreachable` left of the matrix.
HOST_DEVICE i32 border_score(i64 column, Mode mode, const BaseScheme& scheme, i32 unreachable) {
    if (column < 0) return unreachable;
    i32 gap = mode == GLOBAL && column > 0 ? scheme.gap_open + (i32)column * scheme.gap_extend : 0;
    return -gap - scheme.first_gap();
}

// Store H and F of row 0 in the border of `count` columns; the columns from `end` on are unreachable.
template <class Lane> HOST_DEVICE void store_top_border(const Group<Lane>& group, StripColumns<Lane> columns, i32 end,
        i32 count, Mode mode, const BaseScheme& scheme, i32 unreachable) {
    for (i32 column = -ROWS; column < count + 2 * ROWS; ++column) {
        Lane scores = Lane::all(unreachable);
        if (column < end)
            for (i32 lane = 0; lane < Lane::width; ++lane)
                scores.set(lane, border_score((i64)column + group.shifts[lane], mode, scheme, unreachable));
        columns.score(column) = scores;
        columns.insertion(column) = Lane::all(unreachable);
    }
}
