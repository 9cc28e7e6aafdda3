// A region of the matrix, swept by wavefronts: each takes a strip of its rows and follows that of the strip above, a chunk
// of columns behind (Sandes and de Melo 2010; here a strip runs through, and wavefronts meet on the horizontal bus).
#pragma once
#include "pairwise/wavefront.cuh"

// What the wavefronts of a region share.
struct SharedState {
    i32* counter OF(1);  // strips begun
    i32* best OF(1);     // the highest score that any wavefront has found
    bool prunes;         // whether what cannot reach it is skipped
};

// A chunk that may hold the first of the best cells: what it began with, to be run again if no better one is found. Each
// thread keeps its state and its part of what came in.
template <class Sweeping> struct Candidate {
    i32 score, start, base;
    typename Sweeping::State state;
    typename Sweeping::Above above[CHUNK / WARP_WIDTH];
    typename Sweeping::Cell window[Sweeping::WINDOW / WARP_WIDTH];
};

// What follows happens so seldom that its code had better not stand beside what happens always.

template <class Sweeping> NOINLINE void save_candidate(Candidate<Sweeping>* candidate, i32 score, i32 start, i32 base,
                                                       const typename Sweeping::State* state,
                                                       const typename Sweeping::Chunk* chunk) {
    candidate->score = score, candidate->start = start, candidate->base = base, candidate->state = *state;
    for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) candidate->above[i] = chunk->above[i * WARP_WIDTH + warp_lane()];
    for (i32 i = 0; i < Sweeping::WINDOW / WARP_WIDTH; ++i)
        candidate->window[i] = chunk->window[i * WARP_WIDTH + warp_lane()];
}

template <class Sweeping>
NOINLINE void restore_candidate(const Candidate<Sweeping>* candidate, typename Sweeping::Chunk* chunk) {
    for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) chunk->above[i * WARP_WIDTH + warp_lane()] = candidate->above[i];
    for (i32 i = 0; i < Sweeping::WINDOW / WARP_WIDTH; ++i)
        chunk->window[i * WARP_WIDTH + warp_lane()] = candidate->window[i];
    warp_sync();
}

// The first cell of a chunk that has the score `goal`, if it is before `best`, as a wavefront apart sees it. state: with
// which the chunk began.
template <class Sweeping, class Scheme>
NOINLINE BestCell find_first(Region region, Scheme scheme, i32 strip, i32 base, i32 start, i32 goal,
                             const typename Sweeping::State* state, typename Sweeping::Chunk* chunk, BestCell best) {
    Sweeping wavefront(region, scheme, strip);
    wavefront.base = base, wavefront.goal = goal, wavefront.best = best, wavefront.chunk = chunk,
    wavefront.state = *state;
    wavefront.template run<GENERAL, false, true>(start);
    return wavefront.best;
}

template <class Lane, i32 ROWS, bool IS_LOCAL, bool STORES_TRACE, class Scheme>
HOST_DEVICE void sweep_strip(const Region& region, const Scheme& scheme, const SharedState& shared, BestCell* found,
                             u64* skipped) {
    typedef Wavefront<Scheme, Lane, ROWS, IS_LOCAL, STORES_TRACE> Sweeping;
    typedef typename Sweeping::State State;
    typedef typename Sweeping::Chunk Chunk;
    const bool SEARCHES = IS_LOCAL && !STORES_TRACE;
    WARP_ARRAY(Chunk, chunk, 1);
    WARP_ARRAY(State, states, WARP_WIDTH);  // with which a chunk begins
    WARP_ARRAY(BestCell, founds, WARP_WIDTH);
    i32 strip = warp_lane() == 0 ? atomic_increment(shared.counter) : 0, skipped_chunks = 0, best_seen = 1;
    strip = warp_broadcast(strip);
    Sweeping wavefront(region, scheme, strip);
    Candidate<Sweeping> candidate;
    i32 candidate_score = 0;
    State* state = states + warp_lane();
    wavefront.chunk = chunk;
    wavefront.init_window();
    wavefront.prefetch(0);
    for (i32 start = 0; start < region.columns + wavefront.last_lane; start += CHUNK) {
        i32 most = wavefront.load(start);
        bool plain = wavefront.is_plain(start);
        most = warp_max(start ? maximum(most, wavefront.highest_of_state()) : most);
        if (SEARCHES && shared.prunes) best_seen = maximum(best_seen, warp_broadcast(load_relaxed(shared.best)));
        if (SEARCHES && shared.prunes && plain && wavefront.bound(start, most) < best_seen) {
            wavefront.skip();
            wavefront.prefetch(start + CHUNK);
            ++skipped_chunks;
        } else {
            if (start) wavefront.move_base(most);
            else wavefront.restart(most);
            wavefront.store_above();
            wavefront.prefetch(start + CHUNK);
            if (SEARCHES) *state = wavefront.state;
            i32 highest = wavefront.run(start, plain);
            i32 score = highest + wavefront.base;
            if (SEARCHES && score >= best_seen) {
                best_seen = maximum(score, warp_broadcast(load_relaxed(shared.best)));
                if (score == best_seen) atomic_max(shared.best, score);
                if (score == best_seen && score > candidate_score) {
                    save_candidate(&candidate, score, start, wavefront.base, state, chunk);
                    candidate_score = score;
                } else if (score == best_seen) {
                    wavefront.best = find_first<Sweeping>(region, scheme, strip, wavefront.base, start, score, state,
                                                          chunk, wavefront.best);
                }
            }
        }
        wavefront.store(start);
    }
    if (SEARCHES && candidate_score && candidate_score >= warp_broadcast(load_relaxed(shared.best))) {
        restore_candidate(&candidate, chunk);
        wavefront.best = find_first<Sweeping>(region, scheme, strip, candidate.base, candidate.start, candidate.score,
                                              &candidate.state, chunk, wavefront.best);
    }
    founds[warp_lane()] = wavefront.best;
    warp_sync();
    if (warp_lane()) return;
    for (i32 i = 0; i < WARP_WIDTH; ++i)
        if (founds[i].before(wavefront.best)) wavefront.best = founds[i];
    found[strip] = wavefront.best;
    skipped[strip] = skipped_chunks;
}

// An item is a strip of the region's rows; which one, its turn decides. found: of each strip the first of its best cells,
// with a score of 0 if no other wavefront's is worse. ROWS: of a lane. Who includes this says what Scheme is.
#define SWEEP(name, Lane, ROWS, IS_LOCAL, STORES_TRACE)                                                                \
    KERNEL void MIN_BLOCKS(1) name(OrderedWarpItems items, Region region, Scheme scheme, SharedState shared,           \
                                   BestCell* found OF(items), u64* skipped OF(items)) {                                \
        FOR_EACH(item, items) sweep_strip<Lane, ROWS, IS_LOCAL, STORES_TRACE>(region, scheme, shared, found, skipped); \
    }
