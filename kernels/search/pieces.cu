// Pieces: reads that belong to one place beyond doubt, found by a few look-ups.
//
// A read is cut into disjoint pieces, each looked up on both strands. Wherever else the read may belong, a piece that occurs
// nowhere but at its best place has a difference, a gap or a clipped end: so many pieces, so many differences. (What the
// reference leaves open counts as one.) Where these alone make every other place negligible, none is looked for.
#include "common/text.cuh"
#include "index/suffix_array.cuh"
#include "search/pieces.cuh"

const i32 TILE = 32;  // reads whose pieces lie together, by piece

// What was looked up of a read's pieces: the place of one that occurs once.
const suffix_t NOWHERE = ~(suffix_t)0;
const suffix_t SEVERAL = NOWHERE - 1;

// A look-up: a piece of a read on a strand. Those of TILE reads lie together, one piece of all behind the other.
struct LookUp {
    i64 slot;
    i32 orientation, piece;
};

HOST_DEVICE LookUp look_up_of(i64 item) {
    i32 row = (i32)(item / TILE % LOOK_UPS);
    return LookUp{item / (TILE * LOOK_UPS) * TILE + item % TILE, row >= MOST_PIECES, row % MOST_PIECES};
}
HOST_DEVICE i64 item_of(i64 slot, i32 orientation, i32 piece) {
    return (slot / TILE * LOOK_UPS + orientation * MOST_PIECES + piece) * TILE + slot % TILE;
}

// The piece as a query; without bases where there is none.
HOST_DEVICE Suffix<Words> query_of(const Queries& queries, i64 item, i64 reads, i32 least_bases) {
    LookUp which = look_up_of(item);
    if (which.slot >= reads) return Suffix<Words>{};
    Pieces pieces = pieces_of(queries, which.slot, least_bases);
    if (which.piece >= pieces.count) return Suffix<Words>{};
    return Suffix{queries.bases(which.slot, which.orientation), pieces.begin(which.piece, which.orientation),
                  pieces.bases()};
}

// Whether none of its bases is ambiguous.
HOST_DEVICE bool is_clear(const Queries& queries, i64 item, const Suffix<Words>& query) {
    LookUp which = look_up_of(item);
    if (!(queries.flags[which.slot] & READ_AMBIGUOUS)) return true;
    Words mask = queries.mask(which.slot, which.orientation);
    return unambiguous_length(mask, query.position, query.length) == query.length;
}

// Of the suffixes whose ranks lie in `range` the only one that begins with the query.
HOST_DEVICE suffix_t only_place(const Reference& reference, const SuffixArray& index, const Suffix<Words>& query,
                                Ranks range) {
    i64 low = range.low, high = range.high;
    while (low < high) {
        i64 middle = (low + high) >> 1;
        i32 order = compare(reference, (i64)index.suffixes[middle], query);
        if (order < 0) low = middle + 1;
        else if (order > 0) high = middle;
        else {
            bool more = middle + 1 < high && !compare(reference, (i64)index.suffixes[middle + 1], query);
            more = more || (middle > low && !compare(reference, (i64)index.suffixes[middle - 1], query));
            return more ? SEVERAL : index.suffixes[middle];
        }
    }
    return NOWHERE;
}

// An item is a look-up. The loads of a bunch are asked for ahead, each where the one before it has arrived.
KERNEL void find_pieces(i64 begin, i64 end, Queries queries, Reference reference, SuffixArray index,
                        suffix_t* places OF(items), i64 reads, i32 least_bases) {
    FOR_EACH_BUNCH(first, size, begin, end) {
        Ranks ranges[BUNCH];
        for (i32 i = 0; i < size; ++i) {
            Suffix<Words> query = query_of(queries, first + i, reads, least_bases);
            if (query.length) PREFETCH(&index.prefix_table[prefix_code(query, index.table_bases)]);
        }
        for (i32 i = 0; i < size; ++i) {
            Suffix<Words> query = query_of(queries, first + i, reads, least_bases);
            ranges[i] = Ranks{0, 0};
            if (query.length) ranges[i] = prefix_range(index.prefix_table, query, index.table_bases);
            PREFETCH(&index.suffixes[(ranges[i].low + ranges[i].high) >> 1]);
        }
        for (i32 i = 0; i < size; ++i)
            if (ranges[i].low < ranges[i].high)
                PREFETCH(&reference.words[index.suffixes[(ranges[i].low + ranges[i].high) >> 1] >> 5]);
        for (i32 i = 0; i < size; ++i) {
            Suffix<Words> query = query_of(queries, first + i, reads, least_bases);
            if (query.length)
                places[first + i] =
                    is_clear(queries, first + i, query) ? only_place(reference, index, query, ranges[i]) : SEVERAL;
        }
    }
}

// Where the pieces of one read lie.
struct Found {
    const suffix_t* places;
    i64 slot;
    Pieces pieces;

    HOST_DEVICE suffix_t place(i32 orientation, i32 piece) const { return places[item_of(slot, orientation, piece)]; }
    // Whether a piece occurs nowhere but on the anchor's diagonal.
    HOST_DEVICE bool is_clean(i32 piece, const Anchor& anchor) const {
        for (i32 orientation = 0; orientation < 2; ++orientation) {
            suffix_t at = place(orientation, piece);
            if (at != NOWHERE && (at == SEVERAL || !anchor.same(named(at, orientation, piece)))) return false;
        }
        return true;
    }
    HOST_DEVICE Anchor named(suffix_t at, i32 orientation, i32 piece) const {
        i32 begin = pieces.begin(piece, orientation);
        return Anchor{(i64)at - begin, orientation, begin, begin + pieces.bases()};
    }
    // Whether a piece lies beside the anchor's diagonal, as behind a gap.
    HOST_DEVICE bool has_gap(const Anchor& anchor) const {
        for (i32 piece = 0; piece < pieces.count; ++piece) {
            suffix_t at = place(anchor.orientation, piece);
            if (at >= SEVERAL) continue;
            i64 offset = named(at, anchor.orientation, piece).diagonal - anchor.diagonal;
            if (offset && offset >= -LONG_SPREAD && offset <= LONG_SPREAD) return true;
        }
        return false;
    }
    // The diagonal that most of the pieces with one place name, if more than half of these do; without bases if none has.
    HOST_DEVICE Anchor anchor() const {
        Anchor kept = {0, 0, 0, 0};
        i32 votes = 0;
        for (i32 orientation = 0; orientation < 2; ++orientation)
            for (i32 piece = 0; piece < pieces.count; ++piece) {
                suffix_t at = place(orientation, piece);
                if (at >= SEVERAL) continue;
                Anchor one = named(at, orientation, piece);
                if (!votes) kept = one;
                votes += kept.same(one) ? 1 : -1;
            }
        return kept;
    }
};

// An item is a read's slot. settled: 1 where it belongs to one place beyond doubt, which then is its window, else 0.
KERNEL void settle_reads(i64 begin, i64 end, ReadTexts texts, Queries queries, Reference reference, Scoring scoring,
                         const suffix_t* places OF(some), WindowTable windows, u8* settled OF(items), i32 least_bases,
                         i32 most_lost, i32 bases_per_variant) {
    FOR_EACH(slot, begin, end) {
        settled[slot] = 0;
        Found found = {places, slot, pieces_of(queries, slot, least_bases)};
        Anchor anchor = found.anchor();
        if (anchor.begin == anchor.end || found.has_gap(anchor)) continue;
        i32 length = queries.lengths[slot], perfect = scoring.perfect(length);
        Laid laid = lay(reference, queries, slot, anchor.orientation, anchor.diagonal, anchor.begin);
        Segment segment = extend_segment(laid, anchor.begin, anchor.end, length, scoring);
        Window window = builder_of(Diagonal{anchor.diagonal, 0, segment, anchor.orientation}, length, scoring).window;
        i32 lost = perfect - segment.score;
        if (lost > most_lost || surest(segment.score, perfect) < NEGLIGIBLE) continue;
        if (least_score(window, length, scoring) < scoring.min_score) continue;
        i64 quality_start = texts.quality_starts[queries.order[slot]];
        bool flipped = (queries.flags[slot] & READ_FLIPPED) != 0;
        Qualities qualities = {quality_start < 0 ? nullptr : texts.bytes + quality_start, length, flipped};
        Qualities oriented = {qualities.first, length, (anchor.orientation != 0) != flipped};
        i32 variant = phred_of_variant(real_differences(laid, window, oriented, scoring), length, bases_per_variant);
        // A place without gaps is compared in phred, one with gaps in points.
        i32 apart = -ungapped_penalty(laid, window, oriented, variant, scoring), points = -lost;
        for (i32 piece = 0; piece < found.pieces.count; ++piece) {
            if (!found.is_clean(piece, anchor)) continue;
            apart += least_penalty(found.pieces, piece, qualities, variant, scoring);
            points += least_loss(found.pieces, scoring);
        }
        if (minimum(apart, in_phred(points, variant, scoring)) < NEGLIGIBLE) continue;
        settled[slot] = 1;
        windows.counts[slot] = 1;
        windows.of(slot)[0] = window;
        windows.of(slot)[0].band = (i16)(window.band ? -band_kind(length, 0) : NO_BAND);
    }
}
