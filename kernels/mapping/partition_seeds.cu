// Resolve reads by their partition seeds: a few lookups show that all placements that matter are known.
//
// A read is partitioned into seeds, and each is looked up on both strands. A placement that no occurrence names has a
// difference, a gap or a clipped end in every seed. If that makes it negligible compared with the best placement that
// is named, no other placement is searched.
#include "mapping/partition_seeds.cuh"

// What the lookups say about a read.
enum Resolution { UNDECIDED = 0, UNIQUE_PLACEMENT = 1, FEW_PLACEMENTS = 2 };

// Return the seed of lookup `item` as a query, empty if the read or its partition has no such seed.
HOST_DEVICE QuerySuffix<PackedWords> query_of(const Queries& queries, i64 item, i64 reads, i32 min_bases) {
    Lookup lookup = PartitionSeedTable::lookup(item);
    if (lookup.slot >= reads) return QuerySuffix<PackedWords>{};
    Partition partition = partition_of(queries, lookup.slot, min_bases);
    if (lookup.seed >= partition.count) return QuerySuffix<PackedWords>{};
    return QuerySuffix{queries.bases(lookup.slot, lookup.orientation), partition.start(lookup.seed, lookup.orientation),
            partition.seed_bases};
}

// Return true if no base of `query`, the seed of lookup `item`, is ambiguous; the lookup gives the read and strand.
HOST_DEVICE bool is_unambiguous(const Queries& queries, i64 item, const QuerySuffix<PackedWords>& query) {
    Lookup lookup = PartitionSeedTable::lookup(item);
    if (!(queries.flags[lookup.slot] & READ_AMBIGUOUS)) return true;
    PackedWords mask = queries.mask(lookup.slot, lookup.orientation);
    return unambiguous_length(mask, query.position, query.length) == query.length;
}

// A lookup in progress: the range of ranks of a binary search for any suffix that starts with the query.
struct SeedSearch {
    QuerySuffix<PackedWords> query;
    Ranks range;
    i64 suffix;
    bool is_found;
    HOST_DEVICE i64 middle() const { return (range.low + range.high) >> 1; }
    HOST_DEVICE bool is_active() const { return !is_found && range.low < range.high; }
    HOST_DEVICE void step(const Reference& reference) {
        i32 order = compare(reference, suffix, query);
        if (order < 0) range.low = middle() + 1;
        else if (order > 0) range.high = middle();
        else is_found = true;
    }
    // Return the ranks of the suffixes that start with the query, at most MAX_OCCURRENCES + 1 of them.
    HOST_DEVICE Ranks equal(const Reference& reference, const suffix_t* suffixes) const {
        if (!is_found) return Ranks{0, 0};
        Ranks found = {middle(), middle() + 1};
        while (found.high < range.high && found.high - middle() <= MAX_OCCURRENCES &&
                !compare(reference, (i64)suffixes[found.high], query))
            ++found.high;
        while (found.low > range.low && found.high - found.low <= MAX_OCCURRENCES &&
                !compare(reference, (i64)suffixes[found.low - 1], query))
            --found.low;
        return found;
    }
};

// Write count and location of each partition seed (item, a lookup) to `table`. The lookups of a bunch advance step by
// step together and prefetch what the next step loads.
KERNEL void find_partition_seeds(
        Items items, Queries queries, Reference reference, SuffixArray index, PartitionSeedTable table, i64 reads) {
    FOR_EACH_BUNCH(first, size, items) {
        SeedSearch searches[BUNCH];
        for (i32 i = 0; i < size; ++i) {
            QuerySuffix<PackedWords> query = query_of(queries, first + i, reads, table.min_bases);
            searches[i] = SeedSearch{query, {0, 0}, 0, false};
            if (query.length) PREFETCH(&index.prefix_table[prefix_code(query, index.table_bases)]);
        }
        bool any_active = false;
        for (i32 i = 0; i < size; ++i) {
            SeedSearch& search = searches[i];
            if (!search.query.length || !is_unambiguous(queries, first + i, search.query)) continue;
            search.range = prefix_range(index.prefix_table, search.query, index.table_bases);
            PREFETCH(&index.suffixes[search.middle()]);
            any_active |= search.is_active();
        }
        while (any_active) {
            any_active = false;
            for (i32 i = 0; i < size; ++i) {
                if (!searches[i].is_active()) continue;
                searches[i].suffix = (i64)index.suffixes[searches[i].middle()];
                PREFETCH(&reference.words[searches[i].suffix >> 5]);
            }
            for (i32 i = 0; i < size; ++i) {
                if (!searches[i].is_active()) continue;
                searches[i].step(reference);
                PREFETCH(&index.suffixes[searches[i].middle()]);
                any_active |= searches[i].is_active();
            }
        }
        for (i32 i = 0; i < size; ++i) {
            const SeedSearch& search = searches[i];
            if (!search.is_found) continue;
            i64 last = minimum(search.middle() + 1, index.suffix_count - 1);
            PREFETCH(&reference.words[index.suffixes[last] >> 5]);
            PREFETCH(&reference.words[index.suffixes[maximum(search.middle() - 1, (i64)0)] >> 5]);
        }
        for (i32 i = 0; i < size; ++i) {
            const SeedSearch& search = searches[i];
            if (!search.query.length) continue;
            Ranks found = search.equal(reference, index.suffixes);
            i64 count = is_unambiguous(queries, first + i, search.query) ? found.high - found.low : MAX_OCCURRENCES + 1;
            table.counts[first + i] = (u8)count;
            table.locations[first + i] = count == 1 ? index.suffixes[found.low] : (suffix_t)found.low;
        }
    }
}

// Return true if all placements of a read except its anchor's are negligible; `window` becomes the anchor's placement.
HOST_DEVICE bool is_uniquely_placed(const SeedHits& hits, const SeedAnchor& anchor, const ReadTexts& texts,
        const Queries& queries, const Reference& reference, const Scoring& scoring, i32 bases_per_difference,
        Window& window) {
    i64 slot = hits.slot;
    i32 length = queries.lengths[slot], perfect = scoring.perfect(length);
    UngappedAlignment ungapped =
            place_ungapped(reference, queries, slot, anchor.orientation, anchor.diagonal, anchor.start);
    Segment segment = extend_segment(ungapped, anchor.start, anchor.end, length, scoring);
    window = builder_of(diagonal_of(reference, ungapped, segment, anchor.orientation, 0), length, scoring).window;
    window.band = (i16)(window.band ? -band_kind(length, 0) : NO_BAND);
    // A placement on the primary assembly is preferred, however little it explains.
    if (window.alternate || mapq_cap(segment.score, perfect) < NEGLIGIBLE) return false;
    if (!is_alignment(window, length, ungapped.reversed, scoring)) return false;
    AlignmentCost cost = alignment_cost(window, slot, texts, queries, reference, scoring, bases_per_difference);
    return hits.bound_off_diagonal(window, texts, queries, scoring, cost.variant_phred).margin_over(cost) >= NEGLIGIBLE;
}

// Resolve each read (slot) if all placements but one are negligible. If few others are possible, confirm_reads decides
// later. If every placement loses more than divergent_deficit points, too many for the sparse search, the read is
// marked DIVERGENT and searched densely at once. resolutions: a Resolution each.
KERNEL void resolve_reads(Items items, ReadTexts texts, Queries queries, Reference reference, Scoring scoring,
        PartitionSeedTable table, WindowTable windows, PlacementTable placements, u8* resolutions OF(items),
        i32 divergent_deficit, i32 bases_per_difference) {
    FOR_EACH(slot, items) {
        SeedHits hits = {table, slot, partition_of(queries, slot, table.min_bases)};
        SeedAnchor anchor = hits.majority_anchor();
        Window window;
        resolutions[slot] = UNDECIDED;
        if (!hits.partition.count) continue;
        bool has_gapped_seed = anchor.start < anchor.end && hits.has_gapped_seed(anchor);
        if (anchor.start < anchor.end && !has_gapped_seed &&
                is_uniquely_placed(hits, anchor, texts, queries, reference, scoring, bases_per_difference, window)) {
            resolutions[slot] = UNIQUE_PLACEMENT;
            windows.counts[slot] = 1;
            windows.of(slot)[0] = window;
            placements.unresolved[slot] = 0;
            continue;
        }
        i32 other_seeds = has_gapped_seed,
            variant_phred = phred_of_variant(0, queries.lengths[slot], bases_per_difference);
        for (i32 seed = 0; seed < hits.partition.count; ++seed)
            other_seeds += hits.is_listed(seed) && !hits.is_unique_to(seed, anchor);
        AlternativeBound unlisted = hits.bound_unlisted(texts, queries, scoring, variant_phred);
        if (other_seeds && unlisted.margin_over(AlignmentCost{variant_phred, 0, 0}) >= NEGLIGIBLE)
            resolutions[slot] = FEW_PLACEMENTS;
        else if (hits.count_missing() * min_seed_loss(hits.partition, scoring) > divergent_deficit)
            placements.unresolved[slot] = DIVERGENT;
    }
}

// Write the best diagonals that the partition seeds of each read selected[item] name to its row of `found`.
KERNEL void list_seed_diagonals(WarpItems items, Queries queries, Reference reference, SuffixArray index,
        Scoring scoring, PartitionSeedTable table, const i32* selected OF(selected), DiagonalTable found) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        SeedHits own = {table, slot, partition_of(queries, slot, table.min_bases)};
        BestDiagonals diagonals;
        for (i32 orientation = 0; orientation < 2; ++orientation)
            for (i32 seed = 0; seed < own.partition.count; ++seed) {
                i32 count = own.count(orientation, seed);
                if (count > MAX_OCCURRENCES) continue;
                for (i32 round = 0; round < count; round += WARP_WIDTH) {
                    i32 number = round + warp_lane();
                    Diagonal candidate = {};
                    bool is_valid = number < count;
                    if (is_valid) {
                        i64 at = own.location(orientation, seed);
                        SeedAnchor anchor =
                                own.anchor_at(count == 1 ? at : (i64)index.suffixes[at + number], orientation, seed);
                        candidate = align_around(reference, queries, slot, orientation, anchor.diagonal, anchor.start,
                                anchor.end, scoring);
                    }
                    diagonals.offer(candidate, is_valid);
                }
            }
        diagonals.write(found.rows + item * MAX_DIAGONALS);
        if (warp_lane() == 0) {
            found.counts[item] = diagonals.count;
            found.unexamined_prefixes[item] = 0;
        }
    }
}

// Mark each read selected[item], placed by its partition seeds, for the seed search if others matter: DIVERGENT if it
// loses more than divergent_deficit points, else UNSEARCHED.
KERNEL void confirm_reads(Items items, ReadTexts texts, Queries queries, Scoring scoring, PartitionSeedTable table,
        const i32* selected OF(items), WindowTable windows, PlacementTable placements, i32 divergent_deficit,
        i32 bases_per_difference) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        if (placements.chosen[slot] < 0) continue;
        SeedHits hits = {table, slot, partition_of(queries, slot, table.min_bases)};
        const Window& window = windows.of(slot)[placements.chosen[slot]];
        i32 length = queries.lengths[slot], lost_points = scoring.perfect(length) - window.score;
        i32 variant_phred = variant_phred_of_loss(length, lost_points, bases_per_difference, scoring);
        AlignmentCost cost = {variant_phred, points_to_phred(lost_points, variant_phred, scoring), lost_points};
        AlternativeBound unlisted = hits.bound_unlisted(texts, queries, scoring, variant_phred);
        if (window.alternate || windows.dropped_scores[slot] || unlisted.margin_over(cost) < NEGLIGIBLE)
            placements.unresolved[slot] = lost_points > divergent_deficit ? DIVERGENT : UNSEARCHED;
    }
}
