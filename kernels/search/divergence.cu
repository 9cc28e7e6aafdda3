// Divergence: how far the sample is from the reference, as reads tell it that belong nowhere else.
#include "search/mapping_quality.cuh"

const i32 CERTAIN = 60;  // MAPQ of a read that has no other place

// Of reliable bases their number, how many of them differ, and how many errors their qualities promise, in units of 2^-24.
struct Tally {
    i64 bases, differences, errors;
};

// An item is a record. tallies[record]: zeros where the read's place is not certain or has gaps, or the read no qualities.
KERNEL void measure_divergence(i64 begin, i64 end, const u8* bytes, const i64* quality_starts, QUERY_ARGUMENTS,
                               const i32* slot_of, REFERENCE_ARGUMENTS, const Window* windows, const i32* chosen,
                               const u8* mapqs, Tally* tallies, i64 most_windows) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    FOR_EACH(record, begin, end) {
        tallies[record] = Tally{0, 0, 0};
        i64 slot = slot_of[record];
        if (quality_starts[record] < 0 || chosen[slot] < 0 || mapqs[slot] < CERTAIN) continue;
        const Window& window = windows[slot * most_windows + chosen[slot]];
        if (window.gapped()) continue;
        bool reversed = window.orientation != (queries.flags[slot] & READ_FLIPPED);
        Qualities qualities = {bytes + quality_starts[record], queries.lengths[slot], reversed};
        Laid laid = lay(reference, queries, slot, window.orientation, window.diagonal, window.begin);
        Tally tally = {0, reliable_differences(laid, window, qualities), 0};
        for (i32 i = window.begin; i < window.end; ++i) {
            i32 phred = qualities.at(i);
            if (phred < RELIABLE) continue;
            ++tally.bases;
            tally.errors += (i64)likelihood(minimum(phred, NEGLIGIBLE));
        }
        tallies[record] = tally;
    }
}
