// Sweep a region of the matrix by wavefronts. Each wavefront takes a strip of rows and follows the wavefront of the
// strip above, a chunk of columns later (Sandes and de Melo 2010), over the horizontal bus.
#pragma once
#include "pairwise/wavefront_letters.cuh"

// The state that the wavefronts of a region share.
struct SharedState {
    i32* counter OF(1);  // strips started
    i32* best OF(1);     // the highest score that any wavefront has found
    bool prunes;         // whether chunks that cannot reach it are skipped
};

// A chunk that may contain the first best cell: its initial state and input, to run it again if no score is better.
template <class Sweeping> struct Candidate {
    i32 score, start, base;
    typename Sweeping::State state;
    typename Sweeping::Above above[CHUNK / WARP_WIDTH];
    typename Sweeping::Cell window[Sweeping::WINDOW / WARP_WIDTH];
};

// The following functions are rarely called; not inlining them keeps the main loop small.

// Save the start of a chunk: its first column, base and state, its input from above, and its letters.
template <class Sweeping> NOINLINE void save_candidate(Candidate<Sweeping>* candidate, i32 score, i32 start, i32 base,
        const typename Sweeping::State* state, const typename Sweeping::Chunk* chunk) {
    candidate->score = score, candidate->start = start, candidate->base = base, candidate->state = *state;
    for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) candidate->above[i] = chunk->above[i * WARP_WIDTH + warp_lane()];
    for (i32 i = 0; i < Sweeping::WINDOW / WARP_WIDTH; ++i)
        candidate->window[i] = chunk->window[i * WARP_WIDTH + warp_lane()];
}

// Restore a chunk's input and letters.
template <class Sweeping>
NOINLINE void restore_candidate(const Candidate<Sweeping>* candidate, typename Sweeping::Chunk* chunk) {
    for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) chunk->above[i * WARP_WIDTH + warp_lane()] = candidate->above[i];
    for (i32 i = 0; i < Sweeping::WINDOW / WARP_WIDTH; ++i)
        chunk->window[i * WARP_WIDTH + warp_lane()] = candidate->window[i];
    warp_sync();
}

// Return the first cell of a chunk with score `goal` if it comes before `best`, else `best`. state: at its start.
template <class Sweeping, class Scheme> NOINLINE BestCell find_first(Region region, Scheme scheme, i32 strip, i32 base,
        i32 start, i32 goal, const typename Sweeping::State* state, typename Sweeping::Chunk* chunk, BestCell best) {
    Sweeping wavefront(region, scheme, strip);
    wavefront.base = base, wavefront.goal = goal, wavefront.best = best, wavefront.chunk = chunk,
    wavefront.state = *state;
    wavefront.template run<GENERAL, false, true>(start);
    return wavefront.best;
}

// Sweep the next strip with a warp; store its first best cell and the number of skipped chunks by strip.
template <class Lane, i32 ROWS, bool IS_LOCAL, bool STORES_TRACE, class Scheme> HOST_DEVICE void sweep_strip(
        const Region& region, const Scheme& scheme, const SharedState& shared, BestCell* found, u64* skipped) {
    typedef Wavefront<Scheme, Lane, ROWS, IS_LOCAL, STORES_TRACE> Sweeping;
    typedef typename Sweeping::State State;
    typedef typename Sweeping::Chunk Chunk;
    const bool SEARCHES = IS_LOCAL && !STORES_TRACE;
    WARP_ARRAY(Chunk, chunk, 1);
    WARP_ARRAY(State, states, WARP_WIDTH);  // at the start of a chunk
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
        i32 max_score = wavefront.load(start);
        bool plain = wavefront.is_plain(start);
        max_score = warp_max(start ? maximum(max_score, wavefront.highest_of_state()) : max_score);
        if (SEARCHES && shared.prunes) best_seen = maximum(best_seen, warp_broadcast(load_relaxed(shared.best)));
        if (SEARCHES && shared.prunes && plain && wavefront.bound(start, max_score) < best_seen) {
            wavefront.skip();
            wavefront.prefetch(start + CHUNK);
            ++skipped_chunks;
        } else {
            if (start) wavefront.move_base(max_score);
            else wavefront.restart(max_score);
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
                    wavefront.best = find_first<Sweeping>(
                            region, scheme, strip, wavefront.base, start, score, state, chunk, wavefront.best);
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

// An item is a strip of the region's rows, taken in turn. found: the first best cell of each strip, with score 0 if
// another wavefront has a better score. ROWS: per lane. The including file defines Scheme.
#define SWEEP(name, Lane, ROWS, IS_LOCAL, STORES_TRACE)                                                                \
    KERNEL void MIN_BLOCKS(1) name(OrderedWarpItems items, Region region, Scheme scheme, SharedState shared,           \
            BestCell* found OF(items), u64* skipped OF(items)) {                                                       \
        FOR_EACH(item, items) sweep_strip<Lane, ROWS, IS_LOCAL, STORES_TRACE>(region, scheme, shared, found, skipped); \
    }
