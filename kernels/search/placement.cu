// Placement: which of a read's windows it belongs to, and how sure that is.
#include "search/placement.cuh"

// Why another search may tell more: places may have been missed; the best one loses more than settled_loss; it leaves a
// part of the read over that may have a place of its own.
enum Unsettled { CROWDED = 1, DISTANT = 2, SPLIT = 4 };

const i32 CROWD_SHARE = 5;  // a missed place that shares less than this part of the read is no loss
const i32 NEAR = 25;        // points below the best within which a rival counts
const i32 NO_PENALTY = -1;

// Whether the window is sure to be told: with bonuses alone it may yet prove to be no alignment.
HOST_DEVICE bool is_alignment(const Window& window, i32 length, i32 min_score, const Scoring& scoring) {
    return least_score(window, length, scoring) >= min_score;
}

// Phred by which window a explains the read better than b does. Where one of them has gaps, points tell.
HOST_DEVICE i32 lead(const Window& a, i32 penalty_a, const Window& b, i32 penalty_b, i32 variant,
                     const Scoring& scoring) {
    if (penalty_a != NO_PENALTY && penalty_b != NO_PENALTY) return penalty_b - penalty_a;
    return in_phred(a.score - b.score, variant, scoring);
}

// Whether window i is the alignment of another one, which is kept: the chosen one, one without gaps, or the first of those
// with gaps.
HOST_DEVICE bool is_twin(const Window* own, i32 count, i32 best, i32 i) {
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

// An item is a read, selected[item]. chosen: the window's rank, -1 for none; seconds: the best rival's score, 0 for none.
// losses, of every window: phred by which the chosen one explains the read better, NO_LOSS for an alignment that another
// window has too. variants: phred of a difference of the sample. unsettled: why another search may tell more. part_begins
// and part_ends: the part that is left over of the read, in orientation 0, or all of it. Scores include the bonuses for
// reached ends.
KERNEL void place_reads(i64 begin, i64 end, const u8* bytes, const i32* order, const i64* quality_starts,
                        QUERY_ARGUMENTS, const u64* hashes, const i32* selected, REFERENCE_ARGUMENTS,
                        const Window* windows, const i32* counts, const i32* missed, i32* chosen, i32* seconds,
                        u8* mapqs, i16* losses, u8* variants, u8* unsettled, i32* part_begins, i32* part_ends,
                        i64 most_windows, i32 settled_loss, i32 min_score, i32 clean_bases, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    Scoring scoring = SCORING;
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item];
        i32 count = counts[slot], length = queries.lengths[slot], top = 0, perfect = scoring.perfect(length), best = -1;
        const Window* own = windows + slot * most_windows;
        i32 first = 0;
        bool exists = false;
        for (i32 i = 0; i < count; ++i) exists = exists || is_alignment(own[i], length, min_score, scoring);
        for (i32 i = 0; i < count; ++i)
            if (own[i].score > top && is_alignment(own[i], length, min_score, scoring) == exists)
                top = own[i].score, first = i;
        i64 quality_start = quality_starts[order[slot]];
        Qualities qualities = {quality_start < 0 ? nullptr : bytes + quality_start, length, false};
        i32 variant = variant_of(length, perfect - top, clean_bases, scoring);
        if (count && !own[first].gapped()) {
            Laid laid = lay(reference, queries, slot, own[first].orientation, own[first].diagonal, own[first].begin);
            qualities.reversed = own[first].orientation != (queries.flags[slot] & READ_FLIPPED);
            variant = phred_of_variant(real_differences(laid, own[first], qualities, scoring), length, clean_bases);
        }
        variants[slot] = (u8)variant;
        i32 penalties[64];
        u64 least = 0;
        for (i32 i = 0; i < count; ++i) {
            const Window& window = own[i];
            penalties[i] = NO_PENALTY;
            if (!window.gapped() && window.score >= top - NEAR) {
                qualities.reversed = window.orientation != (queries.flags[slot] & READ_FLIPPED);
                Laid laid = lay(reference, queries, slot, window.orientation, window.diagonal, window.begin);
                penalties[i] = ungapped_penalty(laid, window, qualities, variant, scoring);
            }
            if (window.score < top || is_alignment(window, length, min_score, scoring) != exists) continue;
            u64 tie = tie_of(hashes[slot], window.diagonal);
            bool better = best < 0 || (u32)penalties[i] < (u32)penalties[best];  // gaps last
            if (better || (penalties[i] == penalties[best] && tie < least)) best = i, least = tie;
        }
        chosen[slot] = best;
        seconds[slot] = mapqs[slot] = 0;
        unsettled[slot] = DISTANT;
        part_begins[slot] = 0, part_ends[slot] = length;
        if (best < 0) continue;
        Rivals rivals = {0};
        i32 second = 0;
        for (i32 i = 0; i < count; ++i) {
            i32 loss = lead(own[best], penalties[best], own[i], penalties[i], variant, scoring);
            losses[slot * most_windows + i] = (i16)(is_twin(own, count, best, i) ? NO_LOSS : clamp(loss, 0, NO_LOSS));
            if (i == best || !is_rival(own[i], own[best], length)) continue;
            second = maximum(second, own[i].score);
            rivals.add(loss);
        }
        seconds[slot] = second;
        rivals.add(missed_loss(missed[slot], top, variant, scoring));
        mapqs[slot] = (u8)rivals.mapping_quality();
        unsettled[slot] =
            (missed[slot] * CROWD_SHARE >= length ? CROWDED : 0) | (perfect - top > settled_loss ? DISTANT : 0);
        Span part = larger_rest(span_of(own[best], length), length);
        if (minimum(part.length() * scoring.match, perfect - top) < min_score) continue;
        unsettled[slot] |= SPLIT;
        part_begins[slot] = part.begin, part_ends[slot] = part.end;
    }
}
