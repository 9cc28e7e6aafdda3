// The band in which a read is aligned to a window: row i is query base i, column b the reference position
// first + i + b, so that a diagonal of the matrix is a column of the band.
#pragma once
#include "reads/queries.cuh"
#include "index/reference.cuh"
#include "mapping/scoring.cuh"
#include "mapping/windows.cuh"

// Codes of a column beside 0..3: an ambiguous base of the read, one of the reference, a place outside the contig.
enum { READ_UNCLEAR = 4, TEXT_UNCLEAR = 5, OUTSIDE = 6 };

struct Band {
    PackedWords bases, mask;
    const Reference* reference;
    i64 first;  // reference position of column 0 in row 0
    i64 contig_begin, contig_end;
    i32 length, width;
    bool reversed, read_unclear, text_unclear;

    HOST_DEVICE i32 query_code(i32 row) const {
        if (row >= length) return READ_UNCLEAR;
        if (read_unclear && mask.base(row)) return READ_UNCLEAR;
        return bases.base(row);
    }
    HOST_DEVICE i32 text_code(i64 offset) const {
        i64 position = first + offset;
        if (position < contig_begin || position >= contig_end) return OUTSIDE;
        if (text_unclear && reference->reach(position, 1) == 0) return TEXT_UNCLEAR;
        return reference->packed().base(position);
    }
    // What an alignment earns by a pair of bases in this row.
    HOST_DEVICE i32 bonus(i32 row, const Scoring& scoring) const {
        return (row == 0 ? scoring.left_clip(reversed) : 0) + (row + 1 == length ? scoring.right_clip(reversed) : 0);
    }
    HOST_DEVICE bool plain() const {
        return !text_unclear && first >= contig_begin && first + length + width <= contig_end;
    }
    // Of a band that is plain, and of a read without ambiguous bases: eight bases in 16 bits, any behind the end.
    HOST_DEVICE i32 eight_of_query(i32 row) const { return row < length ? (i32)(bases.at(row) >> 48) : 0; }
    HOST_DEVICE i32 eight_of_text(i64 offset) const {
        return (i32)(reference->packed().at(minimum(first + offset, contig_end)) >> 48);
    }
};

HOST_DEVICE Band band_of(const Reference& reference, const Queries& queries, i64 slot, const Window& window) {
    i32 length = queries.lengths[slot], width = band_width(maximum<i32>(window.band, -window.band));
    i64 contig = reference.contig_of(window.diagonal + window.begin);
    i64 first = window.diagonal + (window.low + window.high) / 2 - width / 2;
    i64 begin = reference.contig_starts[contig], end = reference.contig_starts[contig + 1] - 1;
    i64 low = maximum(first, begin), high = minimum(first + length + width, end);
    return Band{queries.bases(slot, window.orientation),
                queries.mask(slot, window.orientation),
                &reference,
                first,
                begin,
                end,
                length,
                width,
                queries.reversed(slot, window.orientation),
                (queries.flags[slot] & READ_AMBIGUOUS) != 0,
                !reference.has_no_barrier(low, maximum(high, low + 1))};
}
