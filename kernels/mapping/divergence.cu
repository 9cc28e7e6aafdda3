// Divergence: how far the sample is from the reference, as reads show it that belong nowhere else.
#include "mapping/placement.cuh"

const i32 CERTAIN_MAPQ = 60;  // MAPQ of a read that has no other place

// Of reliable bases their number, how many of them differ, and how many errors their qualities promise, in units of 2^-24.
struct Tally {
    i64 bases, differences, errors;
};

// An item is a record. tallies[record]: zeros where the read's place is not certain or has gaps, or the read no qualities.
KERNEL void measure_divergence(Items items, ReadTexts texts, Queries queries, Reference reference, WindowTable windows,
                               PlacementTable placements, Tally* tallies OF(items)) {
    FOR_EACH(record, items) {
        tallies[record] = Tally{0, 0, 0};
        i64 slot = queries.slot_of[record];
        if (texts.quality_starts[record] < 0 || placements.chosen[slot] < 0 || placements.mapqs[slot] < CERTAIN_MAPQ)
            continue;
        const Window& window = windows.of(slot)[placements.chosen[slot]];
        if (window.gapped()) continue;
        Qualities qualities = qualities_of(texts, queries, slot, window.orientation != 0);
        UngappedAlignment laid =
            place_ungapped(reference, queries, slot, window.orientation, window.diagonal, window.begin);
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
