// Gaps in tandem repeats. A repeat gains or loses units far more often than several of its bases change; if a gap of
// whole units costs exactly what the differences that it removes cost, the alignment shows the gap.
#pragma once
#include "mapping/ungapped.cuh"
#include "mapping/windows.cuh"

const i32 MAX_TANDEM_DIFFERENCES = 8;
// A gap in a segment, as far left as it can stand: before query base `at`.
struct TandemGap {
    i32 at, deleted, inserted;
    i64 shift;  // diagonal before the gap minus the segment's
};

// A segment of a window, and its differences.
struct TandemSearch {
    const Reference& reference;
    const Queries& queries;
    const Window& window;
    i64 slot;
    i32 differences[MAX_TANDEM_DIFFERENCES], count;
    // Place the read on a nearby diagonal; return false if a contig end or an ambiguous base is near.
    HOST_DEVICE bool move(i64 offset, UngappedAlignment& ungapped) const {
        ungapped = place_ungapped(reference, queries, slot, window.orientation, window.diagonal + offset, window.start);
        return !ungapped.ambiguous;
    }
    // Return false if there are too many differences, or an ambiguous base is near.
    HOST_DEVICE bool find_differences() {
        UngappedAlignment ungapped;
        count = 0;
        if (!move(0, ungapped)) return false;
        for (i32 i = window.start; i < window.end; i += 32) {
            u64 ambiguous_marks, marks = ungapped.mismatches(i, ambiguous_marks) & leading_mask(window.end - i);
            if (count + popcount(marks) > MAX_TANDEM_DIFFERENCES) return false;
            for (; marks; marks ^= 1ull << (62 - 2 * (differences[count++] - i)))
                differences[count] = i + first_set_base(marks);
        }
        return true;
    }
    // Return where the exact match that ends at the segment's end starts.
    HOST_DEVICE i32 equal_from(const UngappedAlignment& ungapped) const {
        for (i32 end = window.end; end > window.start;) {
            i32 start = maximum(end - 32, window.start);
            u64 ambiguous_marks, marks = ungapped.mismatches(start, ambiguous_marks) & leading_mask(end - start);
            if (marks) return start + first_set_base(marks & -marks) + 1;
            end = start;
        }
        return window.start;
    }
    // Return where the exact match that starts at the segment's start ends.
    HOST_DEVICE i32 equal_to(const UngappedAlignment& ungapped) const {
        for (i32 i = window.start; i < window.end; i += 32) {
            u64 ambiguous_marks, marks = ungapped.mismatches(i, ambiguous_marks) & leading_mask(window.end - i);
            if (marks) return i + first_set_base(marks);
        }
        return window.end;
    }
    // Find a gap of `bases` bases that removes the last or the first `removed` differences. It spans tandem units.
    HOST_DEVICE bool find_gap(i32 bases, bool inserted, i32 removed, TandemGap& gap) const {
        i32 in_read = inserted ? bases : 0, offset = inserted ? -bases : bases;
        gap = TandemGap{0, bases - in_read, in_read, 0};
        UngappedAlignment moved;
        if (move(offset, moved)) {
            i32 kept = removed < count ? differences[count - removed - 1] : window.start;
            gap.at = maximum(equal_from(moved) - in_read, kept + 1);
            if (differences[count - removed] - gap.at >= bases) return true;
        }
        gap.shift = -offset;
        if (!move(-offset, moved)) return false;
        gap.at = maximum(differences[removed - 1] + 1 - in_read, window.start + 1);
        return equal_to(moved) - gap.at >= bases && gap.at + in_read < window.end;
    }
    // Find a gap that costs what the differences that it removes cost: the shortest first, deletions before insertions.
    HOST_DEVICE bool find(const Scoring& scoring, TandemGap& gap) {
        i32 difference = scoring.match + scoring.mismatch;
        if (!find_differences()) return false;
        for (i32 bases = 1; count > 1 && bases <= SPREAD; ++bases)
            for (i32 inserted = 0; inserted < 2; ++inserted) {
                i32 cost = inserted ? scoring.insertion(bases) + bases * scoring.match : scoring.deletion(bases);
                i32 removed = cost / difference;
                if (cost % difference || removed < 2 || removed > count) continue;
                if (find_gap(bases, inserted, removed, gap)) return true;
            }
        return false;
    }
};
