// Choose the window that a read belongs to, and compute how certain that is.
#include "mapping/placement.cuh"

const i32 REPETITIVE_SHARE = 5;  // an unexamined suffix that shares less than 1/5 of the read is no loss
const i32 NEAR = 25;             // points below the best score within which a rival counts
const i32 NO_PENALTY = -1;
// Return by how many phred window a explains the read better than b. penalty: in phred, NO_PENALTY with gaps or if not
// computed; then points decide. variant: phred of a difference between sample and reference.
HOST_DEVICE i32 phred_difference(
        const Window& a, i32 penalty_a, const Window& b, i32 penalty_b, i32 variant, const Scoring& scoring) {
    if (penalty_a != NO_PENALTY && penalty_b != NO_PENALTY) return penalty_b - penalty_a;
    return points_to_phred(a.score - b.score, variant, scoring);
}

// Return true if window i repeats the alignment of a kept window: the chosen one, one without gaps, or an earlier one.
HOST_DEVICE bool is_duplicate(const Window* own, i32 count, i32 best, i32 i) {
    if (i == best || !own[i].gapped()) return false;
    if (is_same_alignment(own[i], own[best])) return true;
    for (i32 j = 0; j < count; ++j)
        if ((j < i || !own[j].gapped()) && is_same_alignment(own[i], own[j])) return true;
    return false;
}

// Return the larger of the parts of a read of `length` bases before and after the part `placed`.
HOST_DEVICE Span larger_rest(Span placed, i32 length) {
    return placed.start > length - placed.end ? Span{0, placed.start} : Span{placed.end, length};
}
// A read and its windows, among which the placement is chosen.
struct PlacementChooser {
    const Reference& reference;
    const Queries& queries;
    const Scoring& scoring;
    const Window* own;
    i32* penalties;  // [MAX_WINDOWS]
    i64 slot;
    i32 count, length;
    Qualities qualities;
    i32 best_score, first_best;  // best score, and the first window that has it
    bool only_certain;           // only windows that are certain to be alignments compete
    bool alternate;              // only windows on ALT contigs compete; else only others
    bool both;                   // the read has windows of both kinds
    HOST_DEVICE bool is_certain(i32 i) const {
        return is_alignment(own[i], length, queries.reversed(slot, own[i].orientation), scoring);
    }
    HOST_DEVICE bool is_eligible(i32 i) const { return own[i].alternate == alternate; }
    HOST_DEVICE bool competes(i32 i) const { return is_eligible(i) && is_certain(i) == only_certain; }
    // Choose the primary assembly, or the ALT contigs if the read has an alignment nowhere else.
    HOST_DEVICE void choose_assembly() {
        bool any[2] = {}, proven[2] = {};
        for (i32 i = 0; i < count; ++i) {
            any[own[i].alternate] = true;
            proven[own[i].alternate] = proven[own[i].alternate] || is_certain(i);
        }
        both = any[0] && any[1];
        alternate = !proven[0] && (proven[1] || !any[0]);
        only_certain = proven[alternate];
    }
    HOST_DEVICE UngappedAlignment ungapped(const Window& window) {
        qualities.reversed = queries.reversed(slot, window.orientation);
        return place_ungapped(reference, queries, slot, window);
    }
    HOST_DEVICE void find_best() {
        best_score = first_best = 0;
        choose_assembly();
        for (i32 i = 0; i < count; ++i)
            if (own[i].score > best_score && competes(i)) best_score = own[i].score, first_best = i;
    }
    // Return the phred of a difference between sample and reference.
    HOST_DEVICE i32 variant(i32 bases_per_difference) {
        if (!count || own[first_best].gapped())
            return variant_phred_of_loss(length, scoring.perfect(length) - best_score, bases_per_difference, scoring);
        UngappedAlignment best = ungapped(own[first_best]);
        return phred_of_variant(
                real_differences(best, own[first_best], qualities, scoring), length, bases_per_difference);
    }
    // Return the window with the best score that explains the read best, -1 for none. Windows with gaps come last.
    HOST_DEVICE i32 choose(i32 variant) {
        i32 best = -1;
        u64 min_tie = 0;
        for (i32 i = 0; i < count; ++i) {
            const Window& window = own[i];
            penalties[i] = NO_PENALTY;
            if (is_eligible(i) && !window.gapped() && window.score >= best_score - NEAR) {
                UngappedAlignment here = ungapped(window);
                penalties[i] = ungapped_penalty(here, window, qualities, variant, scoring);
            }
            if (window.score < best_score || !competes(i)) continue;
            u64 tie = tie_break(queries.hashes[slot], window.diagonal);
            bool better = best < 0 || (u32)penalties[i] < (u32)penalties[best];
            if (better || (penalties[i] == penalties[best] && tie < min_tie)) best = i, min_tie = tie;
        }
        return best;
    }
};

// Choose the window of each read selected[item] and fill its row of `placements`. Scores include end bonuses. A window
// that repeats another alignment has NO_DEFICIT, and so has a window on an ALT contig if others count.
// divergent_deficit: lost points above which a read is DIVERGENT.
KERNEL void choose_windows(Items items, ReadTexts texts, Queries queries, Reference reference, Scoring scoring,
        const i32* selected OF(items), WindowTable windows, PlacementTable placements, i32 divergent_deficit,
        i32 bases_per_difference) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        i32 count = windows.counts[slot], length = queries.lengths[slot], perfect = scoring.perfect(length);
        const Window* own = windows.of(slot);
        Qualities qualities = qualities_of(texts, queries, slot, false);
        i32 penalties[MAX_WINDOWS];
        PlacementChooser read = {reference, queries, scoring, own, penalties, slot, count, length, qualities};
        read.find_best();
        i32 variant = read.variant(bases_per_difference), best = read.choose(variant), second = 0;
        placements.variant_phreds[slot] = (u8)variant;
        placements.chosen[slot] = best;
        placements.suboptimal_scores[slot] = placements.mapqs[slot] = placements.properly_paired[slot] = 0;
        placements.unresolved[slot] = DIVERGENT;
        placements.uncovered_starts[slot] = 0, placements.uncovered_ends[slot] = length;
        if (best < 0) continue;
        Rivals rivals = {0};
        i32 other_part_score = 0;  // the best score of a window of another part
        for (i32 i = 0; i < count; ++i) {
            i32 deficit = phred_difference(own[best], penalties[best], own[i], penalties[i], variant, scoring);
            placements.deficits[slot * MAX_WINDOWS + i] =
                    (i16)(!read.is_eligible(i) || is_duplicate(own, count, best, i) ? NO_DEFICIT
                                                                                    : clamp(deficit, 0, NO_DEFICIT));
            if (i == best || !read.is_eligible(i)) continue;
            if (!is_same_part(own[i], own[best], length)) other_part_score = maximum(other_part_score, own[i].score);
            if (!is_rival(own[i], own[best], length)) continue;
            second = maximum(second, own[i].score);
            rivals.add(deficit);
        }
        i32 unexamined = windows.unexamined_prefixes[slot], lost_points = perfect - read.best_score;
        rivals.add(unexamined_deficit(unexamined, read.best_score, variant, scoring));
        placements.suboptimal_scores[slot] = second;
        placements.mapqs[slot] =
                (u8)minimum(rivals.mapping_quality(), mapq_cap(read.best_score + other_part_score, perfect));
        bool is_repetitive = unexamined * REPETITIVE_SHARE >= length,
             is_alt_hidden = is_repetitive && (read.both || read.alternate);
        placements.unresolved[slot] = (is_repetitive ? REPETITIVE : 0) | (is_alt_hidden ? ALT_HIDDEN : 0) |
                (lost_points > divergent_deficit || read.alternate ? DIVERGENT : 0);
        Span uncovered = larger_rest(span_of(own[best], length), length);
        if (minimum(uncovered.length() * scoring.match, lost_points) < scoring.min_score) continue;
        placements.unresolved[slot] |= SPLIT;
        placements.uncovered_starts[slot] = uncovered.start, placements.uncovered_ends[slot] = uncovered.end;
    }
}
