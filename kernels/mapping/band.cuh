// The band in which a read is aligned to a window. Row i is query base i, column b is reference position first + i + b.
#pragma once
#include "reads/queries.cuh"
#include "index/reference.cuh"
#include "mapping/scoring.cuh"
#include "mapping/windows.cuh"

// Base codes besides 0 to 3: an ambiguous base of the read or of the reference, and a position outside the contig.
enum { QUERY_AMBIGUOUS = 4, REFERENCE_AMBIGUOUS = 5, OUTSIDE = 6 };

struct Band {
    PackedWords bases, mask;
    const Reference* reference;
    i64 first;  // reference position of column 0 in row 0
    i64 contig_start, contig_end;
    i32 length, width;
    bool reversed, has_ambiguous_query, has_ambiguous_reference;
    HOST_DEVICE i32 query_code(i32 row) const {
        if (row >= length) return QUERY_AMBIGUOUS;
        if (has_ambiguous_query && mask.base(row)) return QUERY_AMBIGUOUS;
        return bases.base(row);
    }
    HOST_DEVICE i32 reference_code(i64 offset) const {
        i64 position = first + offset;
        if (position < contig_start || position >= contig_end) return OUTSIDE;
        if (has_ambiguous_reference && reference->reach(position, 1) == 0) return REFERENCE_AMBIGUOUS;
        return reference->packed().base(position);
    }
    // Return the bonuses of an alignment that has a pair of bases in this row: it reaches an end of the read.
    HOST_DEVICE i32 bonus(i32 row, const Scoring& scoring) const {
        return (row == 0 ? scoring.left_clip(reversed) : 0) + (row + 1 == length ? scoring.right_clip(reversed) : 0);
    }
    // Return true if the band lies inside its contig and has no ambiguous reference base.
    HOST_DEVICE bool plain() const {
        return !has_ambiguous_reference && first >= contig_start && first + length + width <= contig_end;
    }
    // Return eight bases in 16 bits, for a plain band and a read without ambiguous bases; undefined after the end.
    HOST_DEVICE i32 eight_query_bases(i32 row) const { return row < length ? (i32)(bases.at(row) >> 48) : 0; }
    HOST_DEVICE i32 eight_reference_bases(i64 offset) const {
        return (i32)(reference->packed().at(minimum(first + offset, contig_end)) >> 48);
    }
};

// Return the band in which the read of a slot is aligned to a window.
HOST_DEVICE Band band_of(const Reference& reference, const Queries& queries, i64 slot, const Window& window) {
    i32 length = queries.lengths[slot], width = band_width(maximum<i32>(window.band, -window.band));
    i64 contig = reference.contig_of(window.diagonal + window.start);
    i64 first = window.diagonal + (window.low + window.high) / 2 - width / 2;
    i64 start = reference.contig_starts[contig], end = reference.contig_starts[contig + 1] - 1;
    i64 low = maximum(first, start), high = minimum(first + length + width, end);
    return Band{queries.bases(slot, window.orientation), queries.mask(slot, window.orientation), &reference, first,
            start, end, length, width, queries.reversed(slot, window.orientation),
            (queries.flags[slot] & READ_AMBIGUOUS) != 0, !reference.has_no_barrier(low, maximum(high, low + 1))};
}
