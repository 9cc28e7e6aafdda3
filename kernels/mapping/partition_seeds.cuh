// The pieces of a read, and where they occur.
#pragma once
#include "index/suffix_array.cuh"
#include "mapping/placement.cuh"
#include "mapping/window_builder.cuh"

const i32 MAX_PARTITION_SEEDS = 8;
const i32 LOOKUPS_PER_READ = 2 * MAX_PARTITION_SEEDS;  // of a read: on both strands
const i32 MIN_PARTITION_SEEDS = 3;
const i32 MAX_OCCURRENCES = 16;  // of a piece whose places are looked at
const i32 TILE = 32;             // reads whose pieces lie together, by piece

// `count` of so many bases each, all but few of the read's.
struct Partition {
    i32 length, count, bases;

    // A piece has the same bases in both orientations.
    HOST_DEVICE i32 begin(i32 piece, i32 orientation) const {
        i32 first = piece * bases;
        return orientation ? length - first - bases : first;
    }
};

// Of at least so many bases each; none of a read that is too short, or absent.
HOST_DEVICE Partition partition_of(const Queries& queries, i64 slot, i32 min_bases) {
    i32 length = queries.lengths[slot], count = minimum(length / min_bases, MAX_PARTITION_SEEDS);
    bool whole = count >= MIN_PARTITION_SEEDS && !(queries.flags[slot] & READ_ABSENT);
    return whole ? Partition{length, count, length / count} : Partition{length, 0, 0};
}

// A look-up: a piece of a read on a strand.
struct LookUp {
    i64 slot;
    i32 orientation, piece;
};

// What was looked up. The look-ups of TILE reads lie together, one piece of all behind the other.
struct PartitionSeedTable {
    suffix_t* places
        OF(lookups);         // where it occurs if once; if more often, the rank of the first suffix that begins with it
    u8* counts OF(lookups);  // how often; more than MAX_OCCURRENCES are not counted
    i32 min_bases;

    HOST_DEVICE static LookUp look_up(i64 item) {
        i32 row = (i32)(item / TILE % LOOKUPS_PER_READ);
        return LookUp{item / (TILE * LOOKUPS_PER_READ) * TILE + item % TILE, row >= MAX_PARTITION_SEEDS,
                      row % MAX_PARTITION_SEEDS};
    }
    HOST_DEVICE static i64 item(i64 slot, i32 orientation, i32 piece) {
        return (slot / TILE * LOOKUPS_PER_READ + orientation * MAX_PARTITION_SEEDS + piece) * TILE + slot % TILE;
    }
};

// A diagonal, and the equal bases of the oriented read that name it.
struct SeedAnchor {
    i64 diagonal;
    i32 orientation, begin, end;

    HOST_DEVICE bool same(const SeedAnchor& other) const {
        return diagonal == other.diagonal && orientation == other.orientation;
    }
};

// What a window costs its read: phred of a difference of the sample, as the window shows it, phred of all that it does not
// explain, and points that it loses.
struct AlignmentCost {
    i32 variant, cost, lost;
};

HOST_DEVICE AlignmentCost alignment_cost(const Window& window, i64 slot, const ReadTexts& texts, const Queries& queries,
                                         const Reference& reference, const Scoring& scoring, i32 bases_per_difference) {
    i32 length = queries.lengths[slot], lost = scoring.perfect(length) - window.score;
    if (window.gapped()) {
        i32 variant = variant_phred_of_loss(length, lost, bases_per_difference, scoring);
        return AlignmentCost{variant, points_to_phred(lost, variant, scoring), lost};
    }
    UngappedAlignment laid =
        place_ungapped(reference, queries, slot, window.orientation, window.diagonal, window.begin);
    Qualities qualities = qualities_of(texts, queries, slot, window.orientation != 0);
    i32 variant = phred_of_variant(real_differences(laid, window, qualities, scoring), length, bases_per_difference);
    return AlignmentCost{variant, ungapped_penalty(laid, window, qualities, variant, scoring), lost};
}

// Points that a place loses at least for each piece that it does not hold whole: by a mismatch or a gap there, or by a
// clipped end, which may take several. What the reference leaves open counts as a difference.
HOST_DEVICE i32 min_seed_loss(const Partition& pieces, const Scoring& scoring) {
    i32 clipped = minimum(pieces.bases * scoring.match, scoring.match + minimum(scoring.clip_5, scoring.clip_3));
    return minimum(minimum(scoring.match + scoring.mismatch, scoring.least_gap(1)), clipped);
}

// By how much a place is less likely, at least, that holds none of some pieces whole. Without gaps it is compared in phred,
// with gaps in points.
struct AlternativeBound {
    Partition pieces;
    Qualities qualities;  // of orientation 0
    const Scoring& scoring;
    i32 variant, phred, points;

    HOST_DEVICE void add(i32 piece) {
        i32 lost = min_seed_loss(pieces, scoring);
        i32 begin = pieces.begin(piece, 0), least = qualities.at(begin);
        for (i32 i = 1; i < pieces.bases; ++i) least = minimum(least, qualities.at(begin + i));
        points += lost;
        phred += minimum(maximum(phred_sum(least + PHRED_ONE_OF_THREE, variant), 1),
                         points_to_phred(lost, variant, scoring));
    }
    // By how much it is less likely, at least, than a place of such an expense.
    HOST_DEVICE i32 beyond(const AlignmentCost& expense) const {
        return minimum(phred - expense.cost, points_to_phred(points - expense.lost, variant, scoring));
    }
};

// Where the pieces of one read lie.
struct SeedHits {
    const PartitionSeedTable& table;
    i64 slot;
    Partition pieces;

    HOST_DEVICE i32 count(i32 orientation, i32 piece) const {
        return table.counts[PartitionSeedTable::item(slot, orientation, piece)];
    }
    // Of a piece that occurs: where if once, else the first rank.
    HOST_DEVICE i64 place(i32 orientation, i32 piece) const {
        return (i64)table.places[PartitionSeedTable::item(slot, orientation, piece)];
    }
    HOST_DEVICE SeedAnchor named(i64 place, i32 orientation, i32 piece) const {
        i32 begin = pieces.begin(piece, orientation);
        return SeedAnchor{place - begin, orientation, begin, begin + pieces.bases};
    }
    // Whether a piece occurs nowhere but on the anchor's diagonal.
    HOST_DEVICE bool is_clean(i32 piece, const SeedAnchor& anchor) const {
        for (i32 orientation = 0; orientation < 2; ++orientation) {
            i32 places = count(orientation, piece);
            if (places > 1) return false;
            if (places && !anchor.same(named(place(orientation, piece), orientation, piece))) return false;
        }
        return true;
    }
    // The pieces that occur nowhere.
    HOST_DEVICE i32 absent() const {
        i32 nowhere = 0;
        for (i32 piece = 0; piece < pieces.count; ++piece) nowhere += !count(0, piece) && !count(1, piece);
        return nowhere;
    }
    // What all places off a window's diagonal lose at least; a difference of the sample is of so many phred.
    HOST_DEVICE AlternativeBound elsewhere(const Window& window, const ReadTexts& texts, const Queries& queries,
                                           const Scoring& scoring, i32 variant) const {
        SeedAnchor anchor = {window.diagonal, window.orientation, window.begin, window.end};
        AlternativeBound others = {pieces, qualities_of(texts, queries, slot, false), scoring, variant, 0, 0};
        for (i32 piece = 0; piece < pieces.count; ++piece)
            if (is_clean(piece, anchor)) others.add(piece);
        return others;
    }
    // Whether all its places can be looked at.
    HOST_DEVICE bool is_listed(i32 piece) const { return maximum(count(0, piece), count(1, piece)) <= MAX_OCCURRENCES; }
    // What all places lose at least that no such piece names.
    HOST_DEVICE AlternativeBound unlisted(const ReadTexts& texts, const Queries& queries, const Scoring& scoring,
                                          i32 variant) const {
        AlternativeBound others = {pieces, qualities_of(texts, queries, slot, false), scoring, variant, 0, 0};
        for (i32 piece = 0; piece < pieces.count; ++piece)
            if (is_listed(piece)) others.add(piece);
        return others;
    }
    // The diagonal that most of the pieces with one place name, if more than half of these do; without bases if none has.
    HOST_DEVICE SeedAnchor anchor() const {
        SeedAnchor kept = {0, 0, 0, 0};
        i32 votes = 0;
        for (i32 orientation = 0; orientation < 2; ++orientation)
            for (i32 piece = 0; piece < pieces.count; ++piece) {
                if (count(orientation, piece) != 1) continue;
                SeedAnchor one = named(place(orientation, piece), orientation, piece);
                if (!votes) kept = one;
                votes += kept.same(one) ? 1 : -1;
            }
        return kept;
    }
    // Whether a piece lies beside the anchor's diagonal, as behind a gap.
    HOST_DEVICE bool has_gap(const SeedAnchor& anchor) const {
        for (i32 piece = 0; piece < pieces.count; ++piece) {
            if (count(anchor.orientation, piece) != 1) continue;
            i64 offset = named(place(anchor.orientation, piece), anchor.orientation, piece).diagonal - anchor.diagonal;
            if (offset && offset >= -LONG_SPREAD && offset <= LONG_SPREAD) return true;
        }
        return false;
    }
};
