// Measure the divergence of the sample from the reference on reads that belong nowhere else.
#include "mapping/placement.cuh"

const i32 CERTAIN_MAPQ = 60;  // MAPQ of a read without another placement
// Reliable bases, differences among them, and the errors expected from their qualities, in units of 2^-24.
struct DivergenceTally {
    i64 bases, differences, errors;
};

// Write the DivergenceTally of each read (item), zero if it has no qualities or its placement is uncertain or has gaps.
KERNEL void measure_divergence(Items items, ReadTexts texts, Queries queries, Reference reference, WindowTable windows,
        PlacementTable placements, DivergenceTally* tallies OF(items)) {
    FOR_EACH(record, items) {
        tallies[record] = DivergenceTally{0, 0, 0};
        i64 slot = queries.slot_of[record];
        if (texts.quality_starts[record] < 0 || placements.chosen[slot] < 0 || placements.mapqs[slot] < CERTAIN_MAPQ)
            continue;
        const Window& window = windows.of(slot)[placements.chosen[slot]];
        if (window.gapped()) continue;
        Qualities qualities = qualities_of(texts, queries, slot, window.orientation != 0);
        UngappedAlignment ungapped = place_ungapped(reference, queries, slot, window);
        DivergenceTally tally = {0, reliable_differences(ungapped, window, qualities), 0};
        for (i32 i = window.start; i < window.end; ++i) {
            i32 phred = qualities.at(i);
            if (phred < RELIABLE) continue;
            ++tally.bases;
            tally.errors += (i64)likelihood(minimum(phred, NEGLIGIBLE));
        }
        tallies[record] = tally;
    }
}
