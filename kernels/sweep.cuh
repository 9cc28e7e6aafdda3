// A region of the matrix, swept by waves: each takes a strip of its rows and follows the wave of the strip above, a chunk of
// columns behind (Sandes and de Melo 2010; here a strip runs through, and waves meet on the horizontal bus).
#pragma once
#include "wave.cuh"

// What the waves of a region tell each other.
struct Meeting {
    i32* counter;  // strips begun
    i32* best;     // the highest score that any wave has found
    bool prunes;   // whether what cannot reach it is skipped
};

// A chunk that may hold the first of the best cells: what it began with, to be run again if no better one is found.
struct Candidate {
    i32 score, begin, base, slot;
};

// The first cell of a chunk that has the score `goal`, if it is before `best`, as a wave apart sees it: it happens so seldom
// that its code had better not stand beside what happens always. state: the threads', with which the chunk began.
template <class Sweeping, class Scheme>
SELDOM Found find_first(Region region, Scheme scheme, i32 strip, i32 base, i32 begin, i32 goal,
                        const typename Sweeping::State* state, typename Sweeping::Chunk* chunk, Found best) {
    Sweeping wave(region, scheme, strip);
    wave.base = base, wave.goal = goal, wave.best = best, wave.chunk = chunk, wave.state = state[group_lane()];
    wave.template run<CAREFUL, false, true>(begin);
    return wave.best;
}

template <class Lane, i32 ROWS, bool LOCALLY, bool STEPS, class Scheme>
HOST_DEVICE void sweep_strip(const Region& region, const Scheme& scheme, const Meeting& meeting, Found* found, u64* skipped) {
    typedef Wave<Scheme, Lane, ROWS, LOCALLY, STEPS> Sweeping;
    typedef typename Sweeping::State State;
    typedef typename Sweeping::Chunk Chunk;
    const bool SEARCHES = LOCALLY && !STEPS;
    const i32 slots = SEARCHES ? 2 : 1;  // what a chunk begins with, and what the candidate began with
    GROUP_ARRAY(Chunk, chunks, slots);
    GROUP_ARRAY(State, saved, slots * GROUP_WIDTH);
    GROUP_ARRAY(Found, founds, GROUP_WIDTH);
    i32 strip = group_lane() == 0 ? take_next(meeting.counter) : 0, left_out = 0, slot = 0, most_seen = 1;
    strip = from_first(strip);
    Sweeping wave(region, scheme, strip);
    Candidate candidate = {0, 0, 0, 0};
    wave.chunk = chunks;
    wave.open_window();
    wave.ask(0), wave.ask_for_letters(0);
    for (i32 begin = 0; begin < region.columns + wave.last_lane; begin += CHUNK) {
        Chunk* previous = wave.chunk;
        wave.chunk = chunks + slot;
        i32 most = wave.load(begin, previous);
        bool plain = wave.is_plain(begin);
        most = group_max(begin ? maximum(most, wave.highest_of_state()) : most);
        if (SEARCHES && meeting.prunes) most_seen = maximum(most_seen, from_first(fresh(meeting.best)));
        if (SEARCHES && meeting.prunes && plain && wave.bound(begin, most) < most_seen) {
            wave.skip();
            wave.ask(begin + CHUNK), wave.ask_for_letters(begin + CHUNK);
            ++left_out;
        } else {
            if (begin) wave.follow(most);
            else wave.start(most);
            wave.make_relative();
            wave.ask(begin + CHUNK), wave.ask_for_letters(begin + CHUNK);  // what takes long is under way meanwhile
            if (SEARCHES) saved[slot * GROUP_WIDTH + group_lane()] = wave.state;
            i32 highest = wave.run(begin, plain);
            i32 score = highest + wave.base;
            if (SEARCHES && score >= most_seen) {
                most_seen = maximum(score, from_first(fresh(meeting.best)));
                if (score == most_seen) atomic_max(meeting.best, score);
                if (score == most_seen && score > candidate.score) {
                    candidate = Candidate{score, begin, wave.base, slot};
                    slot ^= 1;
                } else if (score == most_seen) {
                    wave.best = find_first<Sweeping>(region, scheme, strip, wave.base, begin, score,
                                                     saved + slot * GROUP_WIDTH, chunks + slot, wave.best);
                }
            }
        }
        wave.store(begin);
    }
    if (SEARCHES && candidate.score && candidate.score >= from_first(fresh(meeting.best))) {
        wave.best = find_first<Sweeping>(region, scheme, strip, candidate.base, candidate.begin, candidate.score,
                                         saved + candidate.slot * GROUP_WIDTH, chunks + candidate.slot, wave.best);
    }
    founds[group_lane()] = wave.best;
    group_sync();
    if (group_lane()) return;
    for (i32 i = 0; i < GROUP_WIDTH; ++i)
        if (founds[i].before(wave.best)) wave.best = founds[i];
    found[strip] = wave.best;
    skipped[strip] = left_out;
}

#define REGION_ARGUMENTS                                                                                                \
    const u8 *query, const u8 *target, u64 *bus, i32 *row_h, i32 *row_f, const i32 *left_h, const i32 *left_e,          \
        i32 *rows_h, i32 *rows_f, i32 *columns_h, i32 *columns_e, u16 *steps, i32 *counter, i32 *best, Found *found,    \
        u64 *skipped, i32 rows, i32 columns, i32 strip_step, i32 column_step, i32 rows_below, i32 prunes
#define REGION                                                                                                          \
    Region {                                                                                                            \
        query, target, bus, row_h, row_f, left_h, left_e, rows_h, rows_f, columns_h, columns_e, steps, rows, columns,   \
            strip_step, column_step, rows_below                                                                         \
    }

// An item is a strip of the region's rows; which one, its turn decides. found: of each strip the first of its best cells,
// with a score of 0 if no other wave's is worse. row_h and row_f: of the row above the region, and then of its last row.
// ROWS: of a lane.
#define SWEEP(name, Lane, ROWS, LOCALLY, STEPS)                                                                         \
    KERNEL void RESIDENT(1) name(i64 begin, i64 end, REGION_ARGUMENTS, SCHEME_ARGUMENTS) {                              \
        Region region = REGION;                                                                                         \
        Meeting meeting = {counter, best, prunes != 0};                                                       \
        FOR_EACH_GROUP(item, begin, end)                                                                                \
            sweep_strip<Lane, ROWS, LOCALLY, STEPS>(region, SCHEME, meeting, found, skipped);                           \
    }
