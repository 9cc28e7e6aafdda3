// Partition: reads of which a few look-ups say that all places are known that matter.
//
// A read is cut into disjoint pieces, each looked up on both strands. A place that none of the pieces' occurrences names
// has a difference, a gap or a clipped end in each of them: so many pieces, so many differences. Where these make it
// negligible beside the best place that is named, no other one is looked for.
#include "mapping/partition_seeds.cuh"

// What the look-ups say of a read.
enum Resolution { UNDECIDED = 0, ONE_PLACE = 1, FEW_PLACES = 2 };

// The piece as a query; without bases where there is none.
HOST_DEVICE QuerySuffix<PackedWords> query_of(const Queries& queries, i64 item, i64 reads, i32 min_bases) {
    LookUp which = PartitionSeedTable::look_up(item);
    if (which.slot >= reads) return QuerySuffix<PackedWords>{};
    Partition pieces = partition_of(queries, which.slot, min_bases);
    if (which.piece >= pieces.count) return QuerySuffix<PackedWords>{};
    return QuerySuffix{queries.bases(which.slot, which.orientation), pieces.begin(which.piece, which.orientation),
                       pieces.bases};
}

// Whether none of its bases is ambiguous.
HOST_DEVICE bool is_clear(const Queries& queries, i64 item, const QuerySuffix<PackedWords>& query) {
    LookUp which = PartitionSeedTable::look_up(item);
    if (!(queries.flags[which.slot] & READ_AMBIGUOUS)) return true;
    PackedWords mask = queries.mask(which.slot, which.orientation);
    return unambiguous_length(mask, query.position, query.length) == query.length;
}

// One look-up under way: the ranks among which the first suffix is looked for that begins with the query, until one is met.
struct SeedSearch {
    QuerySuffix<PackedWords> query;
    Ranks range;
    i64 place;
    bool is_met;

    HOST_DEVICE i64 middle() const { return (range.low + range.high) >> 1; }
    HOST_DEVICE bool goes_on() const { return !is_met && range.low < range.high; }
    HOST_DEVICE void step(const Reference& reference) {
        i32 order = compare(reference, place, query);
        if (order < 0) range.low = middle() + 1;
        else if (order > 0) range.high = middle();
        else is_met = true;
    }
    // Those that begin with it around the one that was met, one more than MAX_OCCURRENCES at most.
    HOST_DEVICE Ranks equal(const Reference& reference, const suffix_t* suffixes) const {
        if (!is_met) return Ranks{0, 0};
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

// An item is a look-up. Those of a bunch go on step by step together: what each loads next is asked for ahead.
KERNEL void find_partition_seeds(Items items, Queries queries, Reference reference, SuffixArray index,
                                 PartitionSeedTable table, i64 reads) {
    FOR_EACH_BUNCH(first, size, items) {
        SeedSearch searches[BUNCH];
        for (i32 i = 0; i < size; ++i) {
            QuerySuffix<PackedWords> query = query_of(queries, first + i, reads, table.min_bases);
            searches[i] = SeedSearch{query, {0, 0}, 0, false};
            if (query.length) PREFETCH(&index.prefix_table[prefix_code(query, index.table_bases)]);
        }
        bool going = false;
        for (i32 i = 0; i < size; ++i) {
            SeedSearch& search = searches[i];
            if (!search.query.length || !is_clear(queries, first + i, search.query)) continue;
            search.range = prefix_range(index.prefix_table, search.query, index.table_bases);
            PREFETCH(&index.suffixes[search.middle()]);
            going |= search.goes_on();
        }
        while (going) {
            going = false;
            for (i32 i = 0; i < size; ++i) {
                if (!searches[i].goes_on()) continue;
                searches[i].place = (i64)index.suffixes[searches[i].middle()];
                PREFETCH(&reference.words[searches[i].place >> 5]);
            }
            for (i32 i = 0; i < size; ++i) {
                if (!searches[i].goes_on()) continue;
                searches[i].step(reference);
                PREFETCH(&index.suffixes[searches[i].middle()]);
                going |= searches[i].goes_on();
            }
        }
        for (i32 i = 0; i < size; ++i) {
            const SeedSearch& search = searches[i];
            if (!search.is_met) continue;
            i64 last = minimum(search.middle() + 1, index.suffix_count - 1);
            PREFETCH(&reference.words[index.suffixes[last] >> 5]);
            PREFETCH(&reference.words[index.suffixes[maximum(search.middle() - 1, (i64)0)] >> 5]);
        }
        for (i32 i = 0; i < size; ++i) {
            const SeedSearch& search = searches[i];
            if (!search.query.length) continue;
            Ranks found = search.equal(reference, index.suffixes);
            i64 count = is_clear(queries, first + i, search.query) ? found.high - found.low : MAX_OCCURRENCES + 1;
            table.counts[first + i] = (u8)count;
            table.places[first + i] = count == 1 ? index.suffixes[found.low] : (suffix_t)found.low;
        }
    }
}

// Whether a read belongs to its anchor's place beyond doubt; `window` becomes that.
HOST_DEVICE bool is_settled(const SeedHits& found, const SeedAnchor& anchor, const ReadTexts& texts,
                            const Queries& queries, const Reference& reference, const Scoring& scoring,
                            i32 bases_per_difference, Window& window) {
    i64 slot = found.slot;
    i32 length = queries.lengths[slot], perfect = scoring.perfect(length);
    UngappedAlignment laid =
        place_ungapped(reference, queries, slot, anchor.orientation, anchor.diagonal, anchor.begin);
    Segment segment = extend_segment(laid, anchor.begin, anchor.end, length, scoring);
    window = builder_of(diagonal_of(reference, laid, segment, anchor.orientation, 0), length, scoring).window;
    window.band = (i16)(window.band ? -band_kind(length, 0) : NO_BAND);
    // A place on no ALT contig is preferred, however little it explains.
    if (window.alternate || mapq_cap(segment.score, perfect) < NEGLIGIBLE) return false;
    if (!is_alignment(window, length, laid.reversed, scoring)) return false;
    AlignmentCost expense = alignment_cost(window, slot, texts, queries, reference, scoring, bases_per_difference);
    return found.elsewhere(window, texts, queries, scoring, expense.variant).beyond(expense) >= NEGLIGIBLE;
}

// An item is a read's slot. One that belongs to one place beyond doubt gets that window. Of one with few others it is seen
// later whether they are all that matter. One of which all places lose more than a search by few seeds may leave is searched
// by many at once.
KERNEL void resolve_reads(Items items, ReadTexts texts, Queries queries, Reference reference, Scoring scoring,
                          PartitionSeedTable table, WindowTable windows, PlacementTable placements,
                          u8* verdicts OF(items), i32 divergent_deficit, i32 bases_per_difference) {
    FOR_EACH(slot, items) {
        SeedHits found = {table, slot, partition_of(queries, slot, table.min_bases)};
        SeedAnchor anchor = found.anchor();
        Window window;
        verdicts[slot] = UNDECIDED;
        if (!found.pieces.count) continue;
        bool has_gap = anchor.begin < anchor.end && found.has_gap(anchor);
        if (anchor.begin < anchor.end && !has_gap &&
            is_settled(found, anchor, texts, queries, reference, scoring, bases_per_difference, window)) {
            verdicts[slot] = ONE_PLACE;
            windows.counts[slot] = 1;
            windows.of(slot)[0] = window;
            placements.unresolved[slot] = 0;
            continue;
        }
        i32 several = has_gap, variant = phred_of_variant(0, queries.lengths[slot], bases_per_difference);
        for (i32 piece = 0; piece < found.pieces.count; ++piece)
            several += found.is_listed(piece) && !found.is_clean(piece, anchor);
        AlternativeBound others = found.unlisted(texts, queries, scoring, variant);
        if (several && others.beyond(AlignmentCost{variant, 0, 0}) >= NEGLIGIBLE) verdicts[slot] = FEW_PLACES;
        else if (found.absent() * min_seed_loss(found.pieces, scoring) > divergent_deficit)
            placements.unresolved[slot] = DIVERGENT;
    }
}

// An item is a read, selected[item]: the diagonals that the occurrences of its pieces name.
KERNEL void list_seed_diagonals(WarpItems items, Queries queries, Reference reference, SuffixArray index,
                                Scoring scoring, PartitionSeedTable table, const i32* selected OF(selected),
                                DiagonalTable found) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        i32 length = queries.lengths[slot];
        SeedHits own = {table, slot, partition_of(queries, slot, table.min_bases)};
        BestDiagonals diagonals;
        for (i32 orientation = 0; orientation < 2; ++orientation)
            for (i32 piece = 0; piece < own.pieces.count; ++piece) {
                i32 count = own.count(orientation, piece);
                if (count > MAX_OCCURRENCES) continue;
                for (i32 round = 0; round < count; round += WARP_WIDTH) {
                    i32 number = round + warp_lane();
                    Diagonal fresh = {};
                    bool real = number < count;
                    if (real) {
                        i64 at = own.place(orientation, piece);
                        SeedAnchor one =
                            own.named(count == 1 ? at : (i64)index.suffixes[at + number], orientation, piece);
                        UngappedAlignment laid =
                            place_ungapped(reference, queries, slot, orientation, one.diagonal, one.begin);
                        Segment segment = extend_segment(laid, one.begin, one.end, length, scoring);
                        fresh = diagonal_of(reference, laid, segment, orientation, queries.hashes[slot]);
                    }
                    diagonals.offer(fresh, real);
                }
            }
        diagonals.write(found.rows + item * MAX_DIAGONALS);
        if (warp_lane() == 0) {
            found.counts[item] = diagonals.count;
            found.unexamined_prefixes[item] = 0;
        }
    }
}

// An item is a read, selected[item], that has been placed by the diagonals of its pieces. Where these are not all that matter
// beside its place, it is searched.
KERNEL void confirm_reads(Items items, ReadTexts texts, Queries queries, Scoring scoring, PartitionSeedTable table,
                          const i32* selected OF(items), WindowTable windows, PlacementTable placements,
                          i32 divergent_deficit, i32 bases_per_difference) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        if (placements.chosen[slot] < 0) continue;
        SeedHits found = {table, slot, partition_of(queries, slot, table.min_bases)};
        const Window& window = windows.of(slot)[placements.chosen[slot]];
        i32 length = queries.lengths[slot], lost = scoring.perfect(length) - window.score;
        i32 variant = variant_phred_of_loss(length, lost, bases_per_difference, scoring);
        AlignmentCost expense = {variant, points_to_phred(lost, variant, scoring), lost};
        AlternativeBound others = found.unlisted(texts, queries, scoring, variant);
        if (window.alternate || windows.dropped_scores[slot] || others.beyond(expense) < NEGLIGIBLE)
            placements.unresolved[slot] = lost > divergent_deficit ? DIVERGENT : UNSEARCHED;
    }
}
