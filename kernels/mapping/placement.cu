// Placement: which of a read's windows it belongs to, and how sure that is.
#include "mapping/placement.cuh"

const i32 REPETITIVE_SHARE = 5;  // an unexamined place that shares less than this part of the read is no loss
const i32 NEAR = 25;             // points below the best within which a rival counts
const i32 NO_PENALTY = -1;

// Phred by which window a explains the read better than b does. Where one of them has gaps, points decide.
HOST_DEVICE i32 phred_difference(const Window& a, i32 penalty_a, const Window& b, i32 penalty_b, i32 variant,
                                 const Scoring& scoring) {
    if (penalty_a != NO_PENALTY && penalty_b != NO_PENALTY) return penalty_b - penalty_a;
    return points_to_phred(a.score - b.score, variant, scoring);
}

// Whether window i is the alignment of another one, which is kept: the chosen one, one without gaps, or the first of those
// with gaps.
HOST_DEVICE bool is_duplicate(const Window* own, i32 count, i32 best, i32 i) {
    if (i == best || !own[i].gapped()) return false;
    if (same_alignment(own[i], own[best])) return true;
    for (i32 j = 0; j < count; ++j)
        if ((j < i || !own[j].gapped()) && same_alignment(own[i], own[j])) return true;
    return false;
}

// What a place leaves over of the read, on the side where that is more.
HOST_DEVICE Span larger_rest(Span placed, i32 length) {
    return placed.begin > length - placed.end ? Span{0, placed.begin} : Span{placed.end, length};
}

// One read with its windows, of which it belongs to one.
struct PlacementChooser {
    const Reference& reference;
    const Queries& queries;
    const Scoring& scoring;
    const Window* own;
    i32* penalties;  // [MAX_WINDOWS]
    i64 slot;
    i32 count, length;
    Qualities qualities;
    i32 top, first;  // the best score, and the first window that has it
    bool sure;       // whether only windows that are sure to be alignments count
    bool alternate,
        both;  // whether those on ALT contigs count, and no others; whether the read has windows of both kinds

    HOST_DEVICE bool proves(i32 i) const {
        return is_alignment(own[i], length, queries.reversed(slot, own[i].orientation), scoring);
    }
    HOST_DEVICE bool is_eligible(i32 i) const { return own[i].alternate == alternate; }
    HOST_DEVICE bool counts(i32 i) const { return is_eligible(i) && proves(i) == sure; }
    // A read belongs on no ALT contig, unless it has an alignment there alone.
    HOST_DEVICE void find_kind() {
        bool any[2] = {}, proven[2] = {};
        for (i32 i = 0; i < count; ++i) {
            any[own[i].alternate] = true;
            proven[own[i].alternate] = proven[own[i].alternate] || proves(i);
        }
        both = any[0] && any[1];
        alternate = !proven[0] && (proven[1] || !any[0]);
        sure = proven[alternate];
    }
    HOST_DEVICE UngappedAlignment laid(const Window& window) {
        qualities.reversed = queries.reversed(slot, window.orientation);
        return place_ungapped(reference, queries, slot, window.orientation, window.diagonal, window.begin);
    }
    HOST_DEVICE void find_top() {
        top = first = 0;
        find_kind();
        for (i32 i = 0; i < count; ++i)
            if (own[i].score > top && counts(i)) top = own[i].score, first = i;
    }
    // Phred of a difference of the sample.
    HOST_DEVICE i32 variant(i32 bases_per_difference) {
        if (!count || own[first].gapped())
            return variant_phred_of_loss(length, scoring.perfect(length) - top, bases_per_difference, scoring);
        UngappedAlignment best = laid(own[first]);
        return phred_of_variant(real_differences(best, own[first], qualities, scoring), length, bases_per_difference);
    }
    // The window that explains the read best, of those that score the most; -1 for none. Those with gaps come last.
    HOST_DEVICE i32 choose(i32 variant) {
        i32 best = -1;
        u64 least = 0;
        for (i32 i = 0; i < count; ++i) {
            const Window& window = own[i];
            penalties[i] = NO_PENALTY;
            if (is_eligible(i) && !window.gapped() && window.score >= top - NEAR) {
                UngappedAlignment here = laid(window);
                penalties[i] = ungapped_penalty(here, window, qualities, variant, scoring);
            }
            if (window.score < top || !counts(i)) continue;
            u64 tie = tie_break(queries.hashes[slot], window.diagonal);
            bool better = best < 0 || (u32)penalties[i] < (u32)penalties[best];
            if (better || (penalties[i] == penalties[best] && tie < least)) best = i, least = tie;
        }
        return best;
    }
};

// An item is a read, selected[item]. Scores include the bonuses for reached ends; a window that is the alignment of another
// one has NO_DEFICIT, and so have those on ALT contigs beside others.
KERNEL void choose_windows(Items items, ReadTexts texts, Queries queries, Reference reference, Scoring scoring,
                           const i32* selected OF(items), WindowTable windows, PlacementTable placements,
                           i32 divergent_deficit, i32 bases_per_difference) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        i32 count = windows.counts[slot], length = queries.lengths[slot], perfect = scoring.perfect(length);
        const Window* own = windows.of(slot);
        Qualities qualities = qualities_of(texts, queries, slot, false);
        i32 penalties[MAX_WINDOWS];
        PlacementChooser read = {reference, queries, scoring, own, penalties, slot, count, length, qualities};
        read.find_top();
        i32 variant = read.variant(bases_per_difference), best = read.choose(variant), second = 0;
        placements.variant_phreds[slot] = (u8)variant;
        placements.chosen[slot] = best;
        placements.suboptimal_scores[slot] = placements.mapqs[slot] = placements.properly_paired[slot] = 0;
        placements.unresolved[slot] = DIVERGENT;
        placements.uncovered_starts[slot] = 0, placements.uncovered_ends[slot] = length;
        if (best < 0) continue;
        Rivals rivals = {0};
        i32 rest = 0;  // the best score of another part
        for (i32 i = 0; i < count; ++i) {
            i32 deficit = phred_difference(own[best], penalties[best], own[i], penalties[i], variant, scoring);
            placements.deficits[slot * MAX_WINDOWS + i] =
                (i16)(!read.is_eligible(i) || is_duplicate(own, count, best, i) ? NO_DEFICIT
                                                                                : clamp(deficit, 0, NO_DEFICIT));
            if (i == best || !read.is_eligible(i)) continue;
            if (!same_part(own[i], own[best], length)) rest = maximum(rest, own[i].score);
            if (!is_rival(own[i], own[best], length)) continue;
            second = maximum(second, own[i].score);
            rivals.add(deficit);
        }
        i32 unexamined = windows.unexamined_prefixes[slot], lost = perfect - read.top;
        rivals.add(unexamined_deficit(unexamined, read.top, variant, scoring));
        placements.suboptimal_scores[slot] = second;
        placements.mapqs[slot] = (u8)minimum(rivals.mapping_quality(), mapq_cap(read.top + rest, perfect));
        bool is_crowded = unexamined * REPETITIVE_SHARE >= length,
             is_shaded = is_crowded && (read.both || read.alternate);
        placements.unresolved[slot] = (is_crowded ? REPETITIVE : 0) | (is_shaded ? ALT_HIDDEN : 0) |
                                     (lost > divergent_deficit || read.alternate ? DIVERGENT : 0);
        Span part = larger_rest(span_of(own[best], length), length);
        if (minimum(part.length() * scoring.match, lost) < scoring.min_score) continue;
        placements.unresolved[slot] |= SPLIT;
        placements.uncovered_starts[slot] = part.begin, placements.uncovered_ends[slot] = part.end;
    }
}
