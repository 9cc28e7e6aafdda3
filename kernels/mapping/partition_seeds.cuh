// The partition seeds of a read, and where they occur.
#pragma once
#include "index/suffix_array.cuh"
#include "mapping/placement.cuh"
#include "mapping/window_builder.cuh"

const i32 MAX_PARTITION_SEEDS = 8;
const i32 LOOKUPS_PER_READ = 2 * MAX_PARTITION_SEEDS;  // both strands
const i32 MIN_PARTITION_SEEDS = 3;
const i32 MAX_OCCURRENCES = 16;  // seeds that occur more often are not examined
const i32 TILE = 32;             // reads whose lookups are stored together, seed by seed
// `count` disjoint seeds of seed_bases each, which cover all but few bases of the read.
struct Partition {
    i32 length, count, seed_bases;
    // Return where a seed starts; it has the same bases in both orientations.
    HOST_DEVICE i32 start(i32 seed, i32 orientation) const {
        i32 first = seed * seed_bases;
        return orientation ? length - first - seed_bases : first;
    }
};

// Return the partition of a read into seeds of at least min_bases; it is empty if the read is too short or absent.
HOST_DEVICE Partition partition_of(const Queries& queries, i64 slot, i32 min_bases) {
    i32 length = queries.lengths[slot], count = minimum(length / min_bases, MAX_PARTITION_SEEDS);
    bool is_long_enough = count >= MIN_PARTITION_SEEDS && !(queries.flags[slot] & READ_ABSENT);
    return is_long_enough ? Partition{length, count, length / count} : Partition{length, 0, 0};
}

// The lookup of a seed of a read on a strand.
struct Lookup {
    i64 slot;
    i32 orientation, seed;
};

// The results of the lookups. Lookups of TILE reads are stored together, seed by seed.
struct PartitionSeedTable {
    suffix_t* locations OF(lookups);  // position if the seed occurs once, else rank of its first suffix
    u8* counts OF(lookups);           // number of occurrences, at most MAX_OCCURRENCES + 1
    i32 min_bases;
    HOST_DEVICE static Lookup lookup(i64 item) {
        i32 row = (i32)(item / TILE % LOOKUPS_PER_READ);
        return Lookup{item / (TILE * LOOKUPS_PER_READ) * TILE + item % TILE, row >= MAX_PARTITION_SEEDS,
                row % MAX_PARTITION_SEEDS};
    }
    HOST_DEVICE static i64 item(i64 slot, i32 orientation, i32 seed) {
        return (slot / TILE * LOOKUPS_PER_READ + orientation * MAX_PARTITION_SEEDS + seed) * TILE + slot % TILE;
    }
};

// A diagonal, and the exact match of the oriented read that names it.
struct SeedAnchor {
    i64 diagonal;
    i32 orientation, start, end;
    HOST_DEVICE bool is_same_as(const SeedAnchor& other) const {
        return diagonal == other.diagonal && orientation == other.orientation;
    }
};

// The cost of a read's window. variant_phred: phred of a difference between sample and reference, as the window shows
// it; phred: of everything the window does not explain; lost_points: perfect score minus the window's.
struct AlignmentCost {
    i32 variant_phred, phred, lost_points;
};

// Return the cost of a read's window, by its differences and their qualities or, with gaps, by its score.
HOST_DEVICE AlignmentCost alignment_cost(const Window& window, i64 slot, const ReadTexts& texts, const Queries& queries,
        const Reference& reference, const Scoring& scoring, i32 bases_per_difference) {
    i32 length = queries.lengths[slot], lost_points = scoring.perfect(length) - window.score;
    if (window.gapped()) {
        i32 variant_phred = variant_phred_of_loss(length, lost_points, bases_per_difference, scoring);
        return AlignmentCost{variant_phred, points_to_phred(lost_points, variant_phred, scoring), lost_points};
    }
    UngappedAlignment ungapped = place_ungapped(reference, queries, slot, window);
    Qualities qualities = qualities_of(texts, queries, slot, window.orientation != 0);
    i32 variant_phred =
            phred_of_variant(real_differences(ungapped, window, qualities, scoring), length, bases_per_difference);
    return AlignmentCost{
            variant_phred, ungapped_penalty(ungapped, window, qualities, variant_phred, scoring), lost_points};
}

// Return the minimum number of points that a placement loses in each seed that it does not contain exactly: by a
// mismatch (an ambiguous reference base is one), a gap, or a clipped end, which may affect several seeds.
HOST_DEVICE i32 min_seed_loss(const Partition& partition, const Scoring& scoring) {
    i32 clipped =
            minimum(partition.seed_bases * scoring.match, scoring.match + minimum(scoring.clip_5, scoring.clip_3));
    return minimum(minimum(scoring.match + scoring.mismatch, scoring.min_gap_cost(1)), clipped);
}

// A lower bound of how much less likely placements without some exact seeds are: in phred without gaps, in points with.
struct AlternativeBound {
    Partition partition;
    Qualities qualities;  // of orientation 0
    const Scoring& scoring;
    i32 variant_phred, phred, points;
    HOST_DEVICE void add(i32 seed) {
        i32 lost_points = min_seed_loss(partition, scoring);
        i32 start = partition.start(seed, 0), min_quality = qualities.at(start);
        for (i32 i = 1; i < partition.seed_bases; ++i) min_quality = minimum(min_quality, qualities.at(start + i));
        points += lost_points;
        phred += minimum(maximum(phred_sum(min_quality + PHRED_ONE_OF_THREE, variant_phred), 1),
                points_to_phred(lost_points, variant_phred, scoring));
    }
    // Return by how much such a placement is less likely, at least, than one of this cost.
    HOST_DEVICE i32 margin_over(const AlignmentCost& cost) const {
        return minimum(phred - cost.phred, points_to_phred(points - cost.lost_points, variant_phred, scoring));
    }
};

// The occurrences of the partition seeds of one read.
struct SeedHits {
    const PartitionSeedTable& table;
    i64 slot;
    Partition partition;
    HOST_DEVICE i32 count(i32 orientation, i32 seed) const {
        return table.counts[PartitionSeedTable::item(slot, orientation, seed)];
    }
    // Return the position of a seed that occurs once, or the first rank of one that occurs more often.
    HOST_DEVICE i64 location(i32 orientation, i32 seed) const {
        return (i64)table.locations[PartitionSeedTable::item(slot, orientation, seed)];
    }
    HOST_DEVICE SeedAnchor anchor_at(i64 location, i32 orientation, i32 seed) const {
        i32 start = partition.start(seed, orientation);
        return SeedAnchor{location - start, orientation, start, start + partition.seed_bases};
    }
    // Return true if a seed occurs nowhere but on the anchor's diagonal.
    HOST_DEVICE bool is_unique_to(i32 seed, const SeedAnchor& anchor) const {
        for (i32 orientation = 0; orientation < 2; ++orientation) {
            i32 occurrences = count(orientation, seed);
            if (occurrences > 1) return false;
            if (occurrences && !anchor.is_same_as(anchor_at(location(orientation, seed), orientation, seed)))
                return false;
        }
        return true;
    }
    // Return the number of seeds that occur nowhere.
    HOST_DEVICE i32 count_missing() const {
        i32 nowhere = 0;
        for (i32 seed = 0; seed < partition.count; ++seed) nowhere += !count(0, seed) && !count(1, seed);
        return nowhere;
    }
    // Return a bound for all placements off a window's diagonal.
    HOST_DEVICE AlternativeBound bound_off_diagonal(const Window& window, const ReadTexts& texts,
            const Queries& queries, const Scoring& scoring, i32 variant_phred) const {
        SeedAnchor anchor = {window.diagonal, window.orientation, window.start, window.end};
        AlternativeBound bound = {partition, qualities_of(texts, queries, slot, false), scoring, variant_phred, 0, 0};
        for (i32 seed = 0; seed < partition.count; ++seed)
            if (is_unique_to(seed, anchor)) bound.add(seed);
        return bound;
    }
    // Return true if the seed is rare enough to examine all its occurrences.
    HOST_DEVICE bool is_listed(i32 seed) const { return maximum(count(0, seed), count(1, seed)) <= MAX_OCCURRENCES; }
    // Return a bound for all placements that no listed seed names.
    HOST_DEVICE AlternativeBound bound_unlisted(
            const ReadTexts& texts, const Queries& queries, const Scoring& scoring, i32 variant_phred) const {
        AlternativeBound bound = {partition, qualities_of(texts, queries, slot, false), scoring, variant_phred, 0, 0};
        for (i32 seed = 0; seed < partition.count; ++seed)
            if (is_listed(seed)) bound.add(seed);
        return bound;
    }
    // Return the diagonal that more than half of the uniquely occurring seeds name (Boyer-Moore majority vote); if
    // there is no majority, the result may be any of their diagonals, and it is empty if no seed occurs once.
    HOST_DEVICE SeedAnchor majority_anchor() const {
        SeedAnchor kept = {0, 0, 0, 0};
        i32 votes = 0;
        for (i32 orientation = 0; orientation < 2; ++orientation)
            for (i32 seed = 0; seed < partition.count; ++seed) {
                if (count(orientation, seed) != 1) continue;
                SeedAnchor next = anchor_at(location(orientation, seed), orientation, seed);
                if (!votes) kept = next;
                votes += kept.is_same_as(next) ? 1 : -1;
            }
        return kept;
    }
    // Return true if a seed occurs near the anchor's diagonal, as after a gap.
    HOST_DEVICE bool has_gapped_seed(const SeedAnchor& anchor) const {
        for (i32 seed = 0; seed < partition.count; ++seed) {
            if (count(anchor.orientation, seed) != 1) continue;
            i64 offset =
                    anchor_at(location(anchor.orientation, seed), anchor.orientation, seed).diagonal - anchor.diagonal;
            if (offset && offset >= -LONG_SPREAD && offset <= LONG_SPREAD) return true;
        }
        return false;
    }
};
