// Gaps in tandem repeats. A repeat gains or loses units far more often than several of its bases change, so where one such
// gap costs as much as the differences that it does away with, it is what the alignment shows.
#pragma once
#include "mapping/ungapped.cuh"
#include "mapping/windows.cuh"

const i32 MAX_TANDEM_DIFFERENCES = 8;

// A gap in a segment, as far left as it can stand: in front of query base `at`.
struct TandemGap {
    i32 at, deleted, inserted;
    i64 shift;  // the diagonal in front of the gap less the segment's
};

// A segment of a window, and where the read differs there.
struct TandemSearch {
    const Reference& reference;
    const Queries& queries;
    const Window& window;
    i64 slot;
    i32 differences[MAX_TANDEM_DIFFERENCES], count;

    // The read moved to a diagonal beside; false where a barrier is near.
    HOST_DEVICE bool move(i64 offset, UngappedAlignment& laid) const {
        laid = place_ungapped(reference, queries, slot, window.orientation, window.diagonal + offset, window.begin);
        return !laid.ambiguous;
    }
    // False where they are too many, or an ambiguous base is near.
    HOST_DEVICE bool find_differences() {
        UngappedAlignment laid;
        count = 0;
        if (!move(0, laid)) return false;
        for (i32 i = window.begin; i < window.end; i += 32) {
            u64 unclear, marks = laid.differing(i, unclear) & leading_mask(window.end - i);
            if (count + popcount(marks) > MAX_TANDEM_DIFFERENCES) return false;
            for (; marks; marks ^= 1ull << (62 - 2 * (differences[count++] - i)))
                differences[count] = i + first_set_base(marks);
        }
        return true;
    }
    // The bases in front of the segment's end that are equal there begin here.
    HOST_DEVICE i32 equal_from(const UngappedAlignment& laid) const {
        for (i32 end = window.end; end > window.begin;) {
            i32 start = maximum(end - 32, window.begin);
            u64 unclear, marks = laid.differing(start, unclear) & leading_mask(end - start);
            if (marks) return start + first_set_base(marks & -marks) + 1;
            end = start;
        }
        return window.begin;
    }
    // Those behind its beginning end here.
    HOST_DEVICE i32 equal_to(const UngappedAlignment& laid) const {
        for (i32 i = window.begin; i < window.end; i += 32) {
            u64 unclear, marks = laid.differing(i, unclear) & leading_mask(window.end - i);
            if (marks) return i + first_set_base(marks);
        }
        return window.end;
    }
    // A gap of so many bases that does away with the last or the first `removed` differences. It can be moved by its own
    // length, which makes it one of a tandem repeat.
    HOST_DEVICE bool find_gap(i32 bases, bool inserted, i32 removed, TandemGap& gap) const {
        i32 in_read = inserted ? bases : 0, offset = inserted ? -bases : bases;
        gap = TandemGap{0, bases - in_read, in_read, 0};
        UngappedAlignment moved;
        if (move(offset, moved)) {
            i32 kept = removed < count ? differences[count - removed - 1] : window.begin;
            gap.at = maximum(equal_from(moved) - in_read, kept + 1);
            if (differences[count - removed] - gap.at >= bases) return true;
        }
        gap.shift = -offset;
        if (!move(-offset, moved)) return false;
        gap.at = maximum(differences[removed - 1] + 1 - in_read, window.begin + 1);
        return equal_to(moved) - gap.at >= bases && gap.at + in_read < window.end;
    }
    // Gaps that cost as much as what they do away with, the shortest first, deletions before insertions.
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
