// The path of every pair: store directions in the band that can contain the path, then walk back from its end.
#pragma once
#include "pairwise/pair_blocks.cuh"

// The range of diagonals (column - row) of a path.
struct Diagonals {
    i32 low, high;
};

// Bounds how far a path with a given score can stray from the diagonal of its end. best_score: maximum for a path that,
// after some cell, has `letters` more letters of the query (of the target, if `deleted`) in gaps than of the other.
struct DiagonalBound {
    i32 query_end, target_end;
    bool whole;  // both sequences are aligned from their starts
    BaseScheme scheme;
    HOST_DEVICE i64 gap(i64 letters) const { return letters > 0 ? scheme.gap_open + letters * scheme.gap_extend : 0; }
    HOST_DEVICE i64 best_score(i64 letters, bool deleted) const {
        i64 longer = deleted ? target_end : query_end, shorter = deleted ? query_end : target_end;
        if (!whole) return scheme.highest * minimum(longer - letters, shorter) - gap(letters);
        letters = maximum(letters, longer - shorter);
        return scheme.highest * (longer - letters) - gap(letters) - gap(shorter - longer + letters);
    }
    HOST_DEVICE i32 max_offset(i32 score, bool deleted) const {
        i32 low = 0, high = deleted ? target_end : query_end;
        while (low < high) {
            i32 middle = (low + high + 1) / 2;
            if (best_score(middle, deleted) >= score) low = middle;
            else high = middle - 1;
        }
        return low;
    }
    HOST_DEVICE Diagonals diagonals(i32 score) const {
        i32 last = target_end - query_end;
        return Diagonals{last - max_offset(score, true), last + max_offset(score, false)};
    }
};

// Return the CIGAR operation of a move, which is the operation's two lowest bits; they differ between operations.
HOST_DEVICE u32 operation_of(u32 move) {
    return (DIFFERENT | INSERTED << 4 | DELETED << 8 | EQUAL << 12) >> 4 * move & 15;
}
// The operations of a path from its end, two bits each, and the number of runs of equal operations.
struct Moves {
    u32* words;
    i32 count, runs;
    u32 word, last;
    HOST_DEVICE void add(u32 operation) {
        u32 move = operation & 3;
        runs += count == 0 || move != last;
        last = move;
        word |= move << 2 * (count & 15);
        if ((++count & 15) == 0) {
            words[(count >> 4) - 1] = word;
            word = 0;
        }
    }
    HOST_DEVICE void finish() {
        if (count & 15) words[count >> 4] = word;
    }
};

// Sweep all strips of a group; store directions after the columns in `memory`, and return where they start.
template <class Scheme, class Lane> HOST_DEVICE Lane* store_directions(const Group<Lane>& group, const BlockBand& band,
        Lane* memory, Mode mode, const Scheme& scheme, i32 unreachable) {
    StripColumns<Lane> columns = {memory};
    auto lane_scheme = LaneScheme<Scheme, Lane>::of(scheme, mode, unreachable);
    Lane* words = memory + StripColumns<Lane>::size(band.columns);
    group.store_letters(lane_scheme.letters, columns, band.columns);
    store_top_border(
            group, columns, band.first(0) + band.steps(0) - (ROWS - 1), band.columns, mode, scheme, unreachable);
    Strip<Lane, DIRECTIONS> strip;
    for (i32 number = 0; number < band.strips(); ++number) {
        Directions<Lane> directions = {words + Directions<Lane>::size(number, band.max_steps())};
        i32 first = band.first(number), steps = band.steps(number);
        strip.start(columns, first, lane_scheme);
        group.load_query(lane_scheme.letters, strip.query, number);
        for (i32 step = 0; step < steps; step += ROWS)
            strip.advance(columns, first + step, step, directions, lane_scheme);
    }
    return words;
}

// The traceback of a lane.
template <class Lane> struct Traceback {
    const Group<Lane>& group;
    const BlockBand& band;
    Lane* words;
    i32 lane, i, j;
    HOST_DEVICE u32 directions() const {
        i32 row = i - 1, strip = row / ROWS, column = j - group.shifts[lane];
        Directions<Lane> strip_directions = {words + Directions<Lane>::size(strip, band.max_steps())};
        return strip_directions.get(lane, row % ROWS, column - band.first(strip) + row % ROWS);
    }
    // score: the score of the path to the current cell; 0 is the start of a local alignment.
    template <class Scheme> HOST_DEVICE void run(Moves& moves, i64 score, Mode mode, const Scheme& scheme) {
        while (i > 0 && j > 0 && !(mode == LOCAL && score == 0)) {
            u32 from = directions();
            if (!(from & NO_DIAGONAL)) {
                i32 query = group.queries[lane][i - 1], target = group.targets[lane][j - 1];
                moves.add(Scheme::equal(query, target) ? EQUAL : DIFFERENT);
                score -= scheme.score(query, target);
                --i, --j;
                continue;
            }
            bool deletion = !(from & NO_DELETION);
            u32 longer = deletion ? EXTENDS_DELETION : EXTENDS_INSERTION;
            score += scheme.gap_open;
            for (;;) {
                moves.add(deletion ? DELETED : INSERTED);
                score += scheme.gap_extend;
                deletion ? --j : --i;
                if (!(from & longer)) break;
                from = directions();
            }
        }
        if (mode != LOCAL)
            for (; i > 0; --i) moves.add(INSERTED);
        if (mode == GLOBAL)
            for (; j > 0; --j) moves.add(DELETED);
    }
};
