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
const i32 NO_GOAL = -1;

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
    typedef typename RowLetters::Cell Cell;

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
    Found best;
    Border* above;            // [CHUNK]
    Border* below;            // [CHUNK]
    Cell* window;             // [WINDOW]

    HOST_DEVICE Wave(const Region& region, const Scheme& scheme, i32 strip, Border* below)
        : region(region), scheme(scheme), letters(scheme), first_row(strip * WIDTH * ROWS), base(0), strip(strip),
          lettered(false), best{0, 0, 0}, below(below) {
        i32 last = minimum(region.rows - first_row, WIDTH * ROWS) - 1;
        last_lane = last / ROWS, last_row = last % ROWS;
        for (i32 r = 0; r < ROWS; ++r)
            for (i32 lane = 0; lane < Lane::width; ++lane) {
                i32 row = first_row + (first_lane<Lane>() + lane) * ROWS + r;
                letters.set_row(r, lane, row < region.rows ? region.query[row] : Scheme::NO_LETTER);
            }
        forget();
    }
    HOST_DEVICE void use(Border* chunk_above, Cell* chunk_window) { above = chunk_above, window = chunk_window; }
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
        const i32 borders = CHUNK / GROUP_WIDTH, cells = WINDOW / GROUP_WIDTH, kept = last_kept(begin);
        Border border[borders];
        i32 codes[cells], before[cells], most = NO_SCORE;
        bool open = false;
        // All loads are under way together.
#pragma unroll
        for (i32 i = 0; i < borders; ++i) {
            i32 column = begin + i * GROUP_WIDTH + group_lane();
            border[i] = Border{NO_SCORE, NO_SCORE};
            if (column < region.columns) border[i] = Border{published(region.row_h + column), published(region.row_f + column)};
        }
#pragma unroll
        for (i32 i = 0; i < cells; ++i) {
            i32 column = begin - WIDTH + 1 + i * GROUP_WIDTH + group_lane();
            codes[i] = column >= 0 && column < region.columns ? region.target[column] : Scheme::NO_LETTER;
            before[i] = column > 0 && column <= region.columns ? region.target[column - 1] : Scheme::NO_LETTER;
        }
#pragma unroll
        for (i32 i = 0; i < borders; ++i) {
            i32 place = i * GROUP_WIDTH + group_lane();
            most = maximum(most, border[i].h);
            above[place] = border[i];
            if (strip == 0 && begin + place == kept && kept >= 0)
                region.columns_h[kept_at(kept) * (region.rows + 1)] = border[i].h;
        }
#pragma unroll
        for (i32 i = 0; i < cells; ++i) {
            open = open || codes[i] == Scheme::NO_LETTER;
            RowLetters::put(window, WINDOW, i * GROUP_WIDTH + group_lane(), codes[i], before[i]);
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
        for (i32 i = group_lane(); i < CHUNK; i += GROUP_WIDTH)
            above[i] = Border{relative(above[i].h) - scheme.first_gap(), relative(above[i].f)};
        group_sync();
    }
    // A lane that comes to the region's first column takes what is known left of it.
    HOST_DEVICE void enter(i32 step) {
        i32 lane = step - first_lane<Lane>();
        if (lane < 0 || lane >= Lane::width) return;
        i32 row = first_row + step * ROWS;
        state.diagonal.set(lane, relative(region.left_h[minimum(row, region.rows)]) - scheme.first_gap());
        for (i32 r = 0; r < ROWS; ++r) {
            bool inside = row + r < region.rows;
            state.h[r].set(lane, relative(inside ? region.left_h[row + r + 1] : NO_SCORE) - scheme.first_gap());
            state.e[r].set(lane, relative(inside ? region.left_e[row + r] : NO_SCORE));
        }
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
    HOST_DEVICE void find(Lane h, i32 goal, i32 r, i32 step) {
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            if (h.get(lane) != goal) continue;
            i32 own = first_lane<Lane>() + lane;
            Found found = {goal + base, first_row + own * ROWS + r, step - own};
            if (found.column >= 0 && found.column < region.columns && found.row < region.rows && found.before(best)) best = found;
        }
    }
    // A chunk of steps. PLAIN: all lanes are inside the region's columns, these have letters, and nothing is to be kept or
    // found. FULL: all lanes are inside its rows. goal: a score of which the first cell is looked for. Returns the highest
    // score, relative to the base.
    template <bool PLAIN, bool FULL> HOST_DEVICE i32 run(i32 begin, i32 goal) {
        const Lane extend = Lane::all(-scheme.gap_extend), first_gap = Lane::all(-scheme.first_gap());
        const i32 kept = last_kept(begin);
        Lane most = Lane::all(0);
#pragma unroll 1
        for (i32 i = 0; i < CHUNK; ++i) {
            i32 step = begin + i;
            Lane up = state.bottom_h, f = state.bottom_f;
            pass_down(up, f, above[i]);
            if (!PLAIN && begin < WIDTH) enter(step);
            Lane diagonal = state.diagonal;
            state.diagonal = up;
            typename RowLetters::Columns columns = RowLetters::columns(window, WINDOW, i + WIDTH - 1);
            Lane word = Lane::all(0), last_h = up, last_f = f;
#pragma unroll
            for (i32 r = 0; r < ROWS; ++r) {
                Lane left = state.h[r], score = letters.template score<PLAIN>(r, columns);
                Lane e = add_larger(state.e[r], extend, left);
                Lane without_f = add_larger_or_zero(diagonal, score, e), h = larger(without_f, f);
                if (STEPS) word = word + raised(source(h, e, f, diagonal + score, left, up), 4 * r);
                if (!PLAIN && goal != NO_GOAL) find(h, goal, r, step);
                diagonal = left;
                state.e[r] = e;
                state.h[r] = up = h + first_gap;
                f = add_larger(f, extend, without_f + first_gap);  // a gap that follows F at once costs more than a longer F
                most = larger(most, h);
                if (!FULL && r == last_row) last_h = up, last_f = f;
            }
            state.bottom_h = up;
            state.bottom_f = f;
            if (STEPS) put_steps(word, step);
            if (!PLAIN && kept >= 0) keep(step, kept);
            if (FULL) hand_out(i, up, f, WIDTH - 1);
            else hand_out(i, last_h, last_f, last_lane);
        }
        group_sync();
        return group_max(highest(most));
    }
    HOST_DEVICE void hand_out(i32 i, Lane h, Lane f, i32 from) {
        if (from / Lane::width != group_lane()) return;
        below[i] = Border{h.get(from % Lane::width), f.get(from % Lane::width)};
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
            i32 h = below[i].h + scheme.first_gap() + base, f = below[i].f + base;
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
        if (!plain) return run<false, false>(begin, NO_GOAL);
        bool full = last_lane == WIDTH - 1 && last_row == ROWS - 1;
        return full ? run<true, true>(begin, NO_GOAL) : run<true, false>(begin, NO_GOAL);
    }
    HOST_DEVICE void find_first(i32 begin, i32 goal) { run<false, false>(begin, goal); }
    // What a cell of the chunk, or behind it, may score at most, if none is better than `most` when it begins.
    HOST_DEVICE i64 bound(i32 begin, i32 most) const {
        i64 rows = (i64)region.rows - first_row + region.rows_below;
        i64 columns = region.columns - maximum(begin - WIDTH + 1, 0);
        return maximum(most, 0) + minimum(rows, columns) * scheme.highest;
    }
    // Skips a chunk: nothing that comes out of it can be part of an alignment that is looked for.
    HOST_DEVICE void skip() {
        start(0);
        for (i32 i = group_lane(); i < CHUNK; i += GROUP_WIDTH) below[i] = Border{-scheme.first_gap(), 0};
        group_sync();
    }
};
