// A region of the matrix, swept by wavefronts: each takes a strip of its rows and follows that of the strip above, a chunk
// of columns behind (Sandes and de Melo 2010; here a strip runs through, and wavefronts meet on the horizontal bus).
#pragma once
#include "pairwise/wavefront.cuh"

// What the wavefronts of a region share.
struct Meeting {
    i32* counter OF(1);  // strips begun
    i32* best OF(1);     // the highest score that any wavefront has found
    bool prunes;         // whether what cannot reach it is skipped
};

// A chunk that may hold the first of the best cells: what it began with, to be run again if no better one is found. Each
// thread keeps its state and its part of what came in.
template <class Sweeping> struct Candidate {
    i32 score, begin, base;
    typename Sweeping::State state;
    typename Sweeping::Above above[CHUNK / WARP_WIDTH];
    typename Sweeping::Cell window[Sweeping::WINDOW / WARP_WIDTH];
};

// What follows happens so seldom that its code had better not stand beside what happens always.

template <class Sweeping> NOINLINE void remember(Candidate<Sweeping>* candidate, i32 score, i32 begin, i32 base,
                                                 const typename Sweeping::State* state,
                                                 const typename Sweeping::Chunk* chunk) {
    candidate->score = score, candidate->begin = begin, candidate->base = base, candidate->state = *state;
    for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) candidate->above[i] = chunk->above[i * WARP_WIDTH + warp_lane()];
    for (i32 i = 0; i < Sweeping::WINDOW / WARP_WIDTH; ++i)
        candidate->window[i] = chunk->window[i * WARP_WIDTH + warp_lane()];
}

template <class Sweeping> NOINLINE void restore(const Candidate<Sweeping>* candidate, typename Sweeping::Chunk* chunk) {
    for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) chunk->above[i * WARP_WIDTH + warp_lane()] = candidate->above[i];
    for (i32 i = 0; i < Sweeping::WINDOW / WARP_WIDTH; ++i)
        chunk->window[i * WARP_WIDTH + warp_lane()] = candidate->window[i];
    warp_sync();
}

// The first cell of a chunk that has the score `goal`, if it is before `best`, as a wavefront apart sees it. state: with
// which the chunk began.
template <class Sweeping, class Scheme>
NOINLINE Found find_first(Region region, Scheme scheme, i32 strip, i32 base, i32 begin, i32 goal,
                          const typename Sweeping::State* state, typename Sweeping::Chunk* chunk, Found best) {
    Sweeping wavefront(region, scheme, strip);
    wavefront.base = base, wavefront.goal = goal, wavefront.best = best, wavefront.chunk = chunk,
    wavefront.state = *state;
    wavefront.template run<CAREFUL, false, true>(begin);
    return wavefront.best;
}

template <class Lane, i32 ROWS, bool LOCALLY, bool TRACES, class Scheme>
HOST_DEVICE void sweep_strip(const Region& region, const Scheme& scheme, const Meeting& meeting, Found* found,
                             u64* skipped) {
    typedef Wavefront<Scheme, Lane, ROWS, LOCALLY, TRACES> Sweeping;
    typedef typename Sweeping::State State;
    typedef typename Sweeping::Chunk Chunk;
    const bool SEARCHES = LOCALLY && !TRACES;
    WARP_ARRAY(Chunk, chunk, 1);
    WARP_ARRAY(State, states, WARP_WIDTH);  // with which a chunk begins
    WARP_ARRAY(Found, founds, WARP_WIDTH);
    i32 strip = warp_lane() == 0 ? atomic_increment(meeting.counter) : 0, left_out = 0, most_seen = 1;
    strip = warp_broadcast(strip);
    Sweeping wavefront(region, scheme, strip);
    Candidate<Sweeping> candidate;
    i32 candidate_score = 0;
    State* state = states + warp_lane();
    wavefront.chunk = chunk;
    wavefront.open_window();
    wavefront.ask(0);
    for (i32 begin = 0; begin < region.columns + wavefront.last_lane; begin += CHUNK) {
        i32 most = wavefront.load(begin);
        bool plain = wavefront.is_plain(begin);
        most = warp_max(begin ? maximum(most, wavefront.highest_of_state()) : most);
        if (SEARCHES && meeting.prunes) most_seen = maximum(most_seen, warp_broadcast(load_relaxed(meeting.best)));
        if (SEARCHES && meeting.prunes && plain && wavefront.bound(begin, most) < most_seen) {
            wavefront.skip();
            wavefront.ask(begin + CHUNK);
            ++left_out;
        } else {
            if (begin) wavefront.follow(most);
            else wavefront.start(most);
            wavefront.make_relative();
            wavefront.ask(begin + CHUNK);
            if (SEARCHES) *state = wavefront.state;
            i32 highest = wavefront.run(begin, plain);
            i32 score = highest + wavefront.base;
            if (SEARCHES && score >= most_seen) {
                most_seen = maximum(score, warp_broadcast(load_relaxed(meeting.best)));
                if (score == most_seen) atomic_max(meeting.best, score);
                if (score == most_seen && score > candidate_score) {
                    remember(&candidate, score, begin, wavefront.base, state, chunk);
                    candidate_score = score;
                } else if (score == most_seen) {
                    wavefront.best = find_first<Sweeping>(region, scheme, strip, wavefront.base, begin, score, state,
                                                          chunk, wavefront.best);
                }
            }
        }
        wavefront.store(begin);
    }
    if (SEARCHES && candidate_score && candidate_score >= warp_broadcast(load_relaxed(meeting.best))) {
        restore(&candidate, chunk);
        wavefront.best = find_first<Sweeping>(region, scheme, strip, candidate.base, candidate.begin, candidate.score,
                                              &candidate.state, chunk, wavefront.best);
    }
    founds[warp_lane()] = wavefront.best;
    warp_sync();
    if (warp_lane()) return;
    for (i32 i = 0; i < WARP_WIDTH; ++i)
        if (founds[i].before(wavefront.best)) wavefront.best = founds[i];
    found[strip] = wavefront.best;
    skipped[strip] = left_out;
}

// An item is a strip of the region's rows; which one, its turn decides. found: of each strip the first of its best cells,
// with a score of 0 if no other wavefront's is worse. ROWS: of a lane. Who includes this says what Scheme is.
#define SWEEP(name, Lane, ROWS, LOCALLY, TRACES)                                                                 \
    KERNEL void MIN_BLOCKS(1) name(OrderedWarpItems items, Region region, Scheme scheme, Meeting meeting,        \
                                   Found* found OF(items), u64* skipped OF(items)) {                             \
        FOR_EACH(item, items) sweep_strip<Lane, ROWS, LOCALLY, TRACES>(region, scheme, meeting, found, skipped); \
    }
