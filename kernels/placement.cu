// Placement: which of a read's windows it belongs to, and how sure that is.
#include "mapping_quality.cuh"

const i32 NEAR = 25;  // points below the best within which a rival's base qualities are looked at

struct Choice {
    i32 window, penalty;
    u64 tie;
};

HOST_DEVICE bool same_place(const Window& a, const Window& b, i32 length) {
    i64 offset = a.diagonal - b.diagonal;
    return 2 * maximum(offset, -offset) <= length;
}

// An item is a read, selected[item]. chosen: the window's rank, -1 for none; seconds: the best rival's score, 0 for
// none; traced: 1 where the alignment has gaps; unsettled: 1 where a denser search may tell more. Scores include the bonuses for reached ends.
KERNEL void place_reads(i64 begin, i64 end, const u8* bytes, const i32* order, const i64* quality_starts, QUERY_ARGUMENTS,
                        const u64* hashes, const i32* selected, REFERENCE_ARGUMENTS, const Window* windows,
                        const i32* counts, const u8* cut, i32* chosen, i32* seconds, u8* mapqs, u8* traced, u8* unsettled,
                        i64 most_windows, i32 quality_cap, i32 settled_loss, i32 settled_gap, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    Scoring scoring = SCORING;
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item];
        i32 count = counts[slot], length = queries.lengths[slot], top = 0, perfect = scoring.perfect(length);
        const Window* own = windows + slot * most_windows;
        for (i32 i = 0; i < count; ++i) top = maximum(top, own[i].score);
        i64 quality_start = quality_starts[order[slot]];
        Choice best = {-1, 0, 0};
        i32 penalties[64];
        for (i32 i = 0; i < count; ++i) {
            const Window& window = own[i];
            penalties[i] = (perfect - window.score) * PHRED_A_POINT;
            if (window.score == window.ungapped && window.score >= top - NEAR && (window.score < perfect)) {
                bool reversed = window.orientation != (queries.flags[slot] & READ_FLIPPED);
                Qualities qualities = {quality_start < 0 ? nullptr : bytes + quality_start, length, reversed};
                Laid laid = lay(reference, queries, slot, window.orientation, window.diagonal, window.begin);
                penalties[i] = ungapped_penalty(laid, window, qualities, quality_cap, scoring);
            }
            if (window.score < top) continue;
            u64 tie = mix(hashes[slot] ^ mix((u64)window.diagonal));
            if (best.window < 0 || penalties[i] < best.penalty || (penalties[i] == best.penalty && tie < best.tie))
                best = Choice{i, penalties[i], tie};
        }
        chosen[slot] = best.window;
        seconds[slot] = 0;
        mapqs[slot] = traced[slot] = 0;
        unsettled[slot] = 1;
        if (best.window < 0) continue;
        u64 others = 0;
        i32 second = 0;
        for (i32 i = 0; i < count; ++i) {
            if (i == best.window || same_place(own[i], own[best.window], length)) continue;
            second = maximum(second, own[i].score);
            others += likelihood(clamp(penalties[i] - best.penalty, 0, 72));
        }
        seconds[slot] = second;
        traced[slot] = own[best.window].score != own[best.window].ungapped;
        mapqs[slot] = (u8)phred_of(others, others + (1ull << 24));
        unsettled[slot] = cut[slot] || perfect - top > settled_loss;
    }
}
