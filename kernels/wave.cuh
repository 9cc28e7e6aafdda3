// A wave: rows of the matrix in the lanes of a group, a few in each, that sweep over its columns. A lane is one column
// behind the lane above, so that what it takes from there is ready; nobody waits inside the group.
//
//     lane 0   rows 0 .. ROWS-1        column t
//     lane 1   rows ROWS .. 2*ROWS-1   column t-1
//     ...
//
// Scores are 32-bit at the borders between strips (the horizontal bus: H of a row, F of the next) and between regions, and
// in a wave relative to a base that follows the largest of them, so that 16 bits hold all that can still matter: what is
// below the base is raised to it. No true score of the wave's cells is that small, unless it is 0 in a local alignment, and
// then the base is 0.
#pragma once
#include "comparison.cuh"
#include "steps.cuh"

const i32 WAVE_ROWS = GROUP_WIDTH > 1 ? 16 : 32;  // of a lane
const i32 CHUNK = 64;          // columns that a wave goes before it tells how far it has come
const i32 NO_SCORE = -(1 << 30);

// Where the largest score of a wave is above the base, and by how much it may be elsewhere before the base moves.
template <class Lane> struct Range {
    static const i32 MIDDLE = 1 << 14, DRIFT = 1 << 12;
};
template <> struct Range<Single> {
    static const i32 MIDDLE = 1 << 29, DRIFT = 1 << 27;
};

// The matrix of a region and what is known around it.
struct Region {
    const u8* query;
    const u8* target;
    i32* row_h;            // [columns], of the row above, and then of each strip's last row
    i32* row_f;            // [columns], of the row below that one
    const i32* left_h;     // [rows + 1], of the column before, from the row above on
    const i32* left_e;     // [rows]
    i32* rows_h;           // [columns], of the last row of every strip_step-th strip
    i32* rows_f;           // [columns], of the row below that one
    i32* columns_h;        // [rows + 1], of every column_step-th column, from the row above on
    i32* columns_e;        // [rows]
    u16* steps;            // where each cell's scores come from, if that is wanted
    i32 rows, columns, strip_step;
    i32 column_step;       // CHUNK + wave_width or more
    i32 rows_below;        // of the matrix below the region
};

struct Found {
    i32 score, row, column;

    HOST_DEVICE bool before(const Found& other) const {
        return score != other.score ? score > other.score : ends_before(row, column, other.row, other.column);
    }
};

// The letters of a wave's rows, and what they score with those of the columns in which its lanes are. A window holds the
// columns that the lanes come to in some steps; its first cell is wave_width - 1 columns before that of the first step.
template <class Scheme, class Lane, i32 ROWS> struct WaveLetters;

template <class Scheme, class Lane, i32 ROWS, bool LOCALLY, bool STEPS> struct Wave {
    static const i32 WIDTH = wave_width<Lane>();
    static const i32 WINDOW = CHUNK + WIDTH;
    typedef WaveLetters<Scheme, Lane, ROWS> RowLetters;

    // The columns that a wave goes at a time: what comes from above, the letters, and what the last row hands on.
    struct Chunk {
        Crossing<Lane> above[CHUNK], below[CHUNK];
        typename RowLetters::Cell window[WINDOW];
    };

    struct State {
        Lane h[ROWS], e[ROWS];    // h: less the first gap
        Lane diagonal;            // h of the row above, one column earlier
        Lane bottom_h, bottom_f;  // what the last row hands on
    };

    const Region& region;
    const Scheme& scheme;
    RowLetters letters;
    State state;
    i32 first_row, base, strip;
    i32 last_lane, last_row;  // of the region in this strip
    bool lettered;            // whether all columns of the window are letters
    i32 goal;
    Found best;
    Chunk* chunk;
    Border borders[CHUNK / GROUP_WIDTH];  // of the columns of the chunk that this thread has loaded

    HOST_DEVICE Wave(const Region& region, const Scheme& scheme, i32 strip)
        : region(region), scheme(scheme), letters(scheme), first_row(strip * WIDTH * ROWS), base(0), strip(strip),
          lettered(false), goal(0), best{0, 0, 0} {
        i32 last = minimum(region.rows - first_row, WIDTH * ROWS) - 1;
        last_lane = last / ROWS, last_row = last % ROWS;
        for (i32 r = 0; r < ROWS; ++r)
            for (i32 lane = 0; lane < Lane::width; ++lane) {
                i32 row = first_row + (first_lane<Lane>() + lane) * ROWS + r;
                letters.set_row(r, lane, row < region.rows ? region.query[row] : Scheme::NO_LETTER);
            }
        forget();
    }
    HOST_DEVICE i32 relative(i32 score) const { return (i32)clamp<i64>((i64)score - base, 0, 2 * Range<Lane>::MIDDLE - 1); }
    // No cell before matters: each lane is as if nothing aligned.
    HOST_DEVICE void forget() {
        const Lane none = Lane::all(0), less = Lane::all(-scheme.first_gap());
        for (i32 r = 0; r < ROWS; ++r) state.h[r] = less, state.e[r] = none;
        state.diagonal = state.bottom_h = less;
        state.bottom_f = none;
    }
    // Takes what the row above and the letters are in the columns from `begin` on. Returns the highest score there.
    HOST_DEVICE i32 load(i32 begin) {
        const i32 cells = WINDOW / GROUP_WIDTH, kept = last_kept(begin);
        i32 codes[cells], before[cells], most = NO_SCORE;
        bool open = false;
        // All loads are under way together.
#pragma unroll
        for (i32 i = 0; i < CHUNK / GROUP_WIDTH; ++i) {
            i32 column = begin + i * GROUP_WIDTH + group_lane();
            borders[i] = Border{NO_SCORE, NO_SCORE};
            if (column < region.columns) borders[i] = Border{published(region.row_h + column), published(region.row_f + column)};
        }
#pragma unroll
        for (i32 i = 0; i < cells; ++i) {
            i32 column = begin - WIDTH + 1 + i * GROUP_WIDTH + group_lane();
            codes[i] = column >= 0 && column < region.columns ? region.target[column] : Scheme::NO_LETTER;
            before[i] = column > 0 && column <= region.columns ? region.target[column - 1] : Scheme::NO_LETTER;
        }
#pragma unroll
        for (i32 i = 0; i < CHUNK / GROUP_WIDTH; ++i) {
            most = maximum(most, borders[i].h);
            if (strip == 0 && begin + i * GROUP_WIDTH + group_lane() == kept && kept >= 0)
                region.columns_h[kept_at(kept) * (region.rows + 1)] = borders[i].h;
        }
#pragma unroll
        for (i32 i = 0; i < cells; ++i) {
            open = open || codes[i] == Scheme::NO_LETTER;
            RowLetters::put(chunk->window, WINDOW, i * GROUP_WIDTH + group_lane(), codes[i], before[i]);
        }
        lettered = RowLetters::TAKES_ALL || !group_any(open);
        if (begin == 0)
            for (i32 row = group_lane(); row <= minimum(region.rows - first_row, WIDTH * ROWS); row += GROUP_WIDTH)
                most = maximum(most, region.left_h[first_row + row]);
        return group_max(most);
    }
    HOST_DEVICE i32 highest_of_state() const {
        Lane most = state.bottom_h;
        for (i32 r = 0; r < ROWS; ++r) most = larger(most, state.h[r]);
        return group_max(highest(most)) + scheme.first_gap() + base;
    }
    HOST_DEVICE static void shift(Lane& lane, Lane by, Lane least) { lane = larger(lane + by, least); }
    HOST_DEVICE i32 base_for(i32 most) const {
        return LOCALLY && most < Range<Lane>::MIDDLE / 2 ? 0 : most - Range<Lane>::MIDDLE;
    }
    HOST_DEVICE void start(i32 most) {
        base = base_for(most);
        forget();
    }
    // Moves the base so that the highest score that comes in stays within its range.
    HOST_DEVICE void follow(i32 most) {
        i32 wanted = base_for(most), moved = base - wanted;
        if (wanted ? -Range<Lane>::DRIFT <= moved && moved <= Range<Lane>::DRIFT : !moved) return;
        base = wanted;
        const Lane by = Lane::all(maximum(moved, -2 * Range<Lane>::MIDDLE + 256));  // all of it, and no overflow
        const Lane none = Lane::all(0), less = Lane::all(-scheme.first_gap());
        for (i32 r = 0; r < ROWS; ++r) shift(state.h[r], by, less), shift(state.e[r], by, none);
        shift(state.diagonal, by, less);
        shift(state.bottom_h, by, less);
        shift(state.bottom_f, by, none);
    }
    HOST_DEVICE void make_relative() {
#pragma unroll
        for (i32 i = 0; i < CHUNK / GROUP_WIDTH; ++i) {
            Border above = {relative(borders[i].h) - scheme.first_gap(), relative(borders[i].f)};
            chunk->above[i * GROUP_WIDTH + group_lane()] = Crossing<Lane>::of(above);
        }
        group_sync();
    }
    // What is known left of the region's first column. All loads are under way together: the strips below wait for this one
    // to get through its first columns.
    HOST_DEVICE State known_left() const {
        State left = state;
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            i32 row = first_row + (first_lane<Lane>() + lane) * ROWS;
            left.diagonal.set(lane, relative(region.left_h[minimum(row, region.rows)]) - scheme.first_gap());
#pragma unroll
            for (i32 r = 0; r < ROWS; ++r) {
                bool inside = row + r < region.rows;
                left.h[r].set(lane, relative(inside ? region.left_h[row + r + 1] : NO_SCORE) - scheme.first_gap());
                left.e[r].set(lane, relative(inside ? region.left_e[row + r] : NO_SCORE));
            }
        }
        return left;
    }
    // A lane that comes to the region's first column takes it.
    HOST_DEVICE void enter(i32 step, const State& left) {
        i32 lane = step - first_lane<Lane>();
        if (lane < 0 || lane >= Lane::width) return;
        state.diagonal.set(lane, left.diagonal.get(lane));
#pragma unroll
        for (i32 r = 0; r < ROWS; ++r) state.h[r].set(lane, left.h[r].get(lane)), state.e[r].set(lane, left.e[r].get(lane));
    }
    // The column that is to be kept and that a lane comes to in this chunk, -1 for none; there are no two.
    HOST_DEVICE i32 last_kept(i32 begin) const {
        i32 kept = minimum(begin + CHUNK, region.columns - 1) / region.column_step * region.column_step - 1;
        return kept > begin - WIDTH ? kept : -1;
    }
    HOST_DEVICE i64 kept_at(i32 column) const { return (column + 1) / region.column_step - 1; }
    // A lane that leaves the column that is to be kept hands it out.
    HOST_DEVICE void keep(i32 step, i32 kept) const {
        i32 lane = step - kept - first_lane<Lane>();
        if (lane < 0 || lane >= Lane::width) return;
        for (i32 r = 0; r < ROWS; ++r) {
            i64 row = first_row + (step - kept) * ROWS + r;
            if (row >= region.rows) break;
            region.columns_h[kept_at(kept) * (region.rows + 1) + row + 1] = state.h[r].get(lane) + scheme.first_gap() + base;
            region.columns_e[kept_at(kept) * region.rows + row] = state.e[r].get(lane) + base;
        }
    }
    HOST_DEVICE void find(Lane h, i32 r, i32 step) {
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            if (h.get(lane) + scheme.first_gap() + base != goal) continue;
            i32 own = first_lane<Lane>() + lane;
            Found found = {goal, first_row + own * ROWS + r, step - own};
            if (found.column >= 0 && found.column < region.columns && found.row < region.rows && found.before(best)) best = found;
        }
    }
    // A chunk of steps. PLAIN: all lanes are inside the region's columns, these have letters, and nothing is to be kept.
    // FULL: all lanes are inside its rows. FINDS: the first cell with the score `goal` is looked for. Returns the highest
    // score, relative to the base.
    template <bool PLAIN, bool FULL, bool FINDS> HOST_DEVICE i32 run(i32 begin) {
        const Lane extend = Lane::all(-scheme.gap_extend), first_gap = Lane::all(-scheme.first_gap());
        const i32 kept = last_kept(begin);
        const State left = PLAIN || begin >= WIDTH ? state : known_left();
        Lane most = Lane::all(-scheme.first_gap());
        Crossing<Lane> crossing = Crossing<Lane>::of(state.bottom_h, state.bottom_f);
#pragma unroll (FULL ? 2 : 1)
        for (i32 i = 0; i < CHUNK; ++i) {
            i32 step = begin + i;
            Lane up = state.bottom_h, f = state.bottom_f;
            pass_down(up, f, crossing, chunk->above[i]);
            if (!PLAIN && begin < WIDTH) enter(step, left);
            Lane diagonal = state.diagonal;
            state.diagonal = up;
            typename RowLetters::Columns columns = RowLetters::columns(chunk->window, WINDOW, i + WIDTH - 1);
            Lane word = Lane::all(0), last_h = up, last_f = f;
#pragma unroll
            for (i32 r = 0; r < ROWS; ++r) {
                Lane left = state.h[r], score = letters.template score<PLAIN>(r, columns);
                Lane e = add_larger(state.e[r], extend, left);
                Lane without_f = add_larger_or_zero(diagonal, score, e), opened = without_f + first_gap;
                if (STEPS) word = word + raised(source(larger(without_f, f), e, f, diagonal + score, left, up), 4 * r);
                diagonal = left;
                state.e[r] = e;
                state.h[r] = up = add_larger(f, first_gap, opened);
                f = add_larger(f, extend, opened);  // a gap that follows F at once costs more than a longer F
                most = larger(most, up);
                if (FINDS) find(up, r, step);
                if (!FULL && r == last_row) last_h = up, last_f = f;
            }
            state.bottom_h = up;
            state.bottom_f = f;
            crossing = Crossing<Lane>::of(up, f);
            if (STEPS) put_steps(word, step);
            if (!PLAIN && !FINDS && kept >= 0) keep(step, kept);
            if (FULL && group_lane() == GROUP_WIDTH - 1) chunk->below[i] = crossing;
            if (!FULL) hand_out(i, last_h, last_f);
        }
        group_sync();
        return group_max(highest(most)) + scheme.first_gap();
    }
    HOST_DEVICE void hand_out(i32 i, Lane h, Lane f) {
        i32 lane = last_lane - first_lane<Lane>();
        if (lane < 0 || lane >= Lane::width) return;
        chunk->below[i] = Crossing<Lane>::of(Border{h.get(lane), f.get(lane)});
    }
    HOST_DEVICE static Lane source(Lane h, Lane e, Lane f, Lane matched, Lane left, Lane up) {
        Lane scores = LOCALLY ? apart(h, Lane::all(0)) : Lane::all(1), gap = both(scores, apart(h, matched));
        Lane from = scores + gap + both(gap, apart(h, e));
        return from + raised(apart(e, left), 2) + raised(apart(f, up), 3);
    }
    HOST_DEVICE void put_steps(Lane word, i32 step) const {
        if (step >= region.columns + WIDTH) return;
        u16* words = region.steps + step_word<Lane>(region.columns, strip, step, first_lane<Lane>());
        for (i32 lane = 0; lane < Lane::width; ++lane) words[lane] = (u16)word.get(lane);
    }
    // The columns that the last row has come to go to the row above of the next strip; how many are done.
    HOST_DEVICE i32 store(i32 begin) {
        i64 kept = (strip + 1) % region.strip_step ? -1 : (strip + 1) / region.strip_step - 1;
        bool keeps = kept >= 0 && first_row + WIDTH * ROWS < region.rows;
        for (i32 i = group_lane(); i < CHUNK; i += GROUP_WIDTH) {
            i32 column = begin + i - last_lane;
            if (column < 0 || column >= region.columns) continue;
            Border below = border_of(chunk->below[i]);
            i32 h = below.h + scheme.first_gap() + base, f = below.f + base;
            region.row_h[column] = h, region.row_f[column] = f;
            if (keeps) region.rows_h[kept * region.columns + column] = h, region.rows_f[kept * region.columns + column] = f;
        }
        group_sync();
        return clamp(begin + CHUNK - last_lane, 0, region.columns);
    }
    HOST_DEVICE bool is_plain(i32 begin) const {
        bool inside = begin >= WIDTH && begin + CHUNK <= region.columns;
        return inside && lettered && last_kept(begin) < 0;
    }
    HOST_DEVICE i32 run(i32 begin, bool plain) {
        if (!plain) return run<false, false, false>(begin);
        bool full = last_lane == WIDTH - 1 && last_row == ROWS - 1;
        // Of a local alignment nobody asks for the row below the matrix.
        full = full || (LOCALLY && !STEPS && region.rows_below == 0);
        return full ? run<true, true, false>(begin) : run<true, false, false>(begin);
    }
    // What a cell of the chunk, or behind it, may score at most, if none is better than `most` when it begins.
    HOST_DEVICE i64 bound(i32 begin, i32 most) const {
        i64 rows = (i64)region.rows - first_row + region.rows_below;
        i64 columns = region.columns - maximum(begin - WIDTH + 1, 0);
        return maximum(most, 0) + minimum(rows, columns) * scheme.highest;
    }
    // Skips a chunk: nothing that comes out of it can be part of an alignment that is looked for.
    HOST_DEVICE void skip() {
        start(0);
        for (i32 i = group_lane(); i < CHUNK; i += GROUP_WIDTH)
            chunk->below[i] = Crossing<Lane>::of(Border{-scheme.first_gap(), 0});
        group_sync();
    }
};
