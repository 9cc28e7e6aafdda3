// Windows: the places where a read may belong.
//
// From each seed the nearest suffixes are walked outwards, the longer common prefix first. Each names a diagonal; a
// diagonal that was not met before is verified, the whole read against the reference there. That is so cheap that it
// ranks hundreds of copies of a repeat by what distinguishes them. The best diagonals are kept, and those closer than
// half a band are one window.
#include "suffix_array.cuh"
#include "ungapped.cuh"
#include "windows.cuh"

const i32 KEPT = 32;     // diagonals kept while walking: windows and the neighbours that widen them
const i32 SEEN = 256;    // slots of the table of diagonals met before; what is pushed out is verified again
const i32 CUT_SHARE = 5; // a place that shares less than this part of the read at a seed is no loss at a limit
const i32 SPREAD = 24;   // diagonals at most this far apart make one window

struct Diagonal {
    i64 diagonal;
    u64 tie;  // decides between equal scores
    Segment segment;
    i32 orientation;
};

// Smaller is better: by score, then by a hash of read and place that favours no copy of a repeat.
HOST_DEVICE bool better(const Diagonal& a, const Diagonal& b) {
    if (a.segment.score != b.segment.score) return a.segment.score > b.segment.score;
    if (a.tie != b.tie) return a.tie < b.tie;
    return a.orientation < b.orientation;
}

struct Walk {
    Diagonal kept[KEPT];  // best first
    i32 count;
    i32 verified;
    u32 seen[SEEN];

    HOST_DEVICE bool met(i64 diagonal, i32 orientation) {
        u64 hash = mix((u64)diagonal * 2 + (u64)orientation + 1);
        u32 print = (u32)(hash >> 32) | 1u, *slot = &seen[hash & (SEEN - 1)];
        if (*slot == print) return true;
        *slot = print;
        return false;
    }
    HOST_DEVICE void keep(const Diagonal& fresh) {
        for (i32 i = 0; i < count; ++i)
            if (kept[i].diagonal == fresh.diagonal && kept[i].orientation == fresh.orientation) return;
        if (count == KEPT && !better(fresh, kept[KEPT - 1])) return;
        i32 i = count < KEPT ? count++ : KEPT - 1;
        for (; i > 0 && better(fresh, kept[i - 1]); --i) kept[i] = kept[i - 1];
        kept[i] = fresh;
    }
};

// A window while it is put together: the stretch of the query that its segments cover, and what an alignment that
// steps between their diagonals may score.
struct Draft {
    Window window;
    i32 promise, begin, end;

    HOST_DEVICE bool takes(const Diagonal& one, const Reference& reference) const {
        i64 offset = one.diagonal - window.diagonal;
        return one.orientation == window.orientation && offset >= -SPREAD && offset <= SPREAD &&
               reference.contig_of(one.diagonal + one.segment.begin) == reference.contig_of(window.diagonal + window.begin);
    }
    HOST_DEVICE void add(const Diagonal& one, const Scoring& scoring) {
        i32 offset = (i32)(one.diagonal - window.diagonal);
        window.low = minimum(window.low, offset);
        window.high = maximum(window.high, offset);
        i32 shared = maximum(minimum(end, one.segment.end) - maximum(begin, one.segment.begin), 0);
        i32 gain = one.segment.score - shared * scoring.match - scoring.gap_open - maximum(offset, -offset) * scoring.gap_extend;
        if (gain <= 0 || (one.segment.begin >= begin && one.segment.end <= end)) return;
        promise += gain;
        begin = minimum(begin, one.segment.begin);
        end = maximum(end, one.segment.end);
    }
};

// Windows from the kept diagonals, the most promising first; returns how many.
HOST_DEVICE i32 join(const Walk& walk, const Reference& reference, Window* windows, i32 most, i32 perfect, const Scoring& scoring) {
    Draft drafts[KEPT];
    i32 count = 0, written = 0;
    for (i32 i = 0; i < walk.count; ++i) {
        const Diagonal& one = walk.kept[i];
        i32 home = 0;
        while (home < count && !drafts[home].takes(one, reference)) ++home;
        if (home < count) {
            drafts[home].add(one, scoring);
            continue;
        }
        Segment segment = one.segment;
        bool align = perfect - segment.score > scoring.gap_open + scoring.gap_extend;
        drafts[count++] = Draft{Window{one.diagonal, segment.score, segment.score, segment.begin, segment.end, 0, 0,
                                       one.orientation, align},
                                segment.score, segment.begin, segment.end};
    }
    for (i32 first = 0; written < minimum(count, most); ++written) {
        i32 best = -1;
        for (i32 i = 0; i < count; ++i)
            if (drafts[i].promise >= 0 && (best < 0 || drafts[i].promise > drafts[best].promise)) best = i;
        if (written == 0) first = drafts[best].promise;
        windows[written] = drafts[best].window;
        // Far below the best, no gap makes up for what is missing.
        if (3 * drafts[best].promise < first) windows[written].align = 0;
        drafts[best].promise = -1;
    }
    return written;
}

// An item is a read, selected[item]; it writes windows[slot * most ...], best first, counts[slot], and cut[slot]: 1 where
// the walk ended at a limit, so that there may be places that it did not see.
KERNEL void find_windows(i64 begin, i64 end, QUERY_ARGUMENTS, const u64* hashes, const i32* selected,
                         const i64* seed_offsets, const suffix_t* ranks, const u16* before, const u16* after,
                         REFERENCE_ARGUMENTS, const suffix_t* suffixes, Window* windows, i32* counts, u8* cut, i64 suffix_count,
                         i32 stride, i32 shortest_seed, i32 neighbours, i32 most_verified, i32 most_windows,
                         SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    Scoring scoring = SCORING;
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item], first = seed_offsets[item];
        i32 length = queries.lengths[slot], seeds = (i32)((seed_offsets[item + 1] - first) / 2);
        Walk walk;
        walk.count = walk.verified = 0;
        for (i32 i = 0; i < SEEN; ++i) walk.seen[i] = 0;
        cut[slot] = 0;
        for (i32 seed = 0; seed < 2 * seeds; ++seed) {
            if (seed == seeds) walk.verified = 0;
            i32 orientation = seed >= seeds, position = (seed - orientation * seeds) * stride;
            i64 low = (i64)ranks[first + seed] - 1, high = low + 1;
            i32 shared_low = before[first + seed], shared_high = after[first + seed];
            Suffix query = {queries.bases(slot, orientation), position, 0};
            if (seed + 4 < 2 * seeds) PREFETCH(&suffixes[ranks[first + seed + 4]]);
            if (seed + 2 < 2 * seeds) {
                i64 near = minimum((i64)ranks[first + seed + 2], suffix_count - 1);
                PREFETCH(&reference_words[suffixes[near] >> 5]);
            }
            for (i32 taken = 0;; ++taken) {
                i32 shared = maximum(shared_low, shared_high);
                if (shared < shortest_seed) break;
                if (taken == neighbours || walk.verified >= most_verified) {
                    cut[slot] |= shared * CUT_SHARE >= length;
                    break;
                }
                bool up = shared_high >= shared_low;
                i64 place = (i64)suffixes[up ? high : low], diagonal = place - position;
                if (!walk.met(diagonal, orientation)) {
                    ++walk.verified;
                    Laid laid = lay(reference, queries, slot, orientation, diagonal, position);
                    Segment segment = extend_segment(laid, position, position + shared, length, scoring);
                    walk.keep(Diagonal{diagonal, mix(hashes[slot] ^ mix((u64)diagonal)), segment, orientation});
                }
                query.length = shared;
                i64 ahead = up ? high + 3 : low - 3;
                if (ahead >= 0 && ahead < suffix_count) PREFETCH(&reference_words[suffixes[ahead] >> 5]);
                if (up) shared_high = ++high < suffix_count ? common_prefix(reference, query, (i64)suffixes[high]) : 0;
                else shared_low = --low >= 0 ? common_prefix(reference, query, (i64)suffixes[low]) : 0;
            }
        }
        counts[slot] = join(walk, reference, windows + slot * most_windows, most_windows, scoring.perfect(length), scoring);
    }
}

// An item is a read, selected[item]: how many of its windows want a banded alignment.
KERNEL void count_tasks(i64 begin, i64 end, const i32* selected, const Window* windows, const i32* counts, i64* task_counts,
                        i64 most_windows) {
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item], count = 0;
        for (i32 i = 0; i < counts[slot]; ++i) count += windows[slot * most_windows + i].align;
        task_counts[item] = count;
    }
}

// task_ends: the inclusive prefix sum of task_counts. A task is the number of a window.
KERNEL void list_tasks(i64 begin, i64 end, const i32* selected, const Window* windows, const i32* counts, const i64* task_ends,
                       i64* tasks, i64 most_windows) {
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item], next = item ? task_ends[item - 1] : 0;
        for (i32 i = 0; i < counts[slot]; ++i)
            if (windows[slot * most_windows + i].align) tasks[next++] = slot * most_windows + i;
    }
}
