// A wavefront: a warp whose lanes hold a few rows of the matrix each and sweep along the columns. A lane is one column
// after the lane above, so that the scores that it needs from there are ready without synchronization.
//
//     lane 0   rows 0 .. ROWS-1        column t
//     lane 1   rows ROWS .. 2*ROWS-1   column t-1
//     ...
//
// Scores have 32 bits at the borders between strips (the horizontal bus) and between regions. Inside a wavefront they
// are relative to a base that follows the maximum, so that 16 bits suffice: lower values are raised to the base. No
// true score of the wavefront's cells is below the base, except 0 in a local alignment, and then the base is 0.
#pragma once
#include "pairwise/bus.cuh"
#include "pairwise/recurrence.cuh"
#include "pairwise/traceback_cells.cuh"

const i32 GPU_LANE_ROWS = 16, CPU_LANE_ROWS = 32;  // per lane
const i32 WAVEFRONT_ROWS = WARP_WIDTH > 1 ? GPU_LANE_ROWS : CPU_LANE_ROWS;
const i32 CHUNK = 64;  // columns that a wavefront sweeps between two exchanges over the bus
const i32 NO_SCORE = -(1 << 30);
// The position of the maximum score above the base, and by how much it may drift before the base moves.
template <class Lane> struct Range {
    static const i32 MIDDLE = 1 << 14, DRIFT = 1 << 12;
};
template <> struct Range<Lane32> {
    static const i32 MIDDLE = 1 << 29, DRIFT = 1 << 27;
};

// Scores of every row_step-th row and every column_step-th column of a region, concatenated.
struct SpecialLines {
    i32* rows_h OF((rows - 1) / row_step * columns);
    i32* rows_f OF((rows - 1) / row_step * columns);              // of the rows after those
    i32* columns_h OF((columns - 1) / column_step * (rows + 1));  // starting at the row above the region
    i32* columns_e OF((columns - 1) / column_step * rows);
};

// A region of the matrix and the known scores around it.
struct Region {
    const u8* query OF(rows);
    const u8* target OF(columns);
    u64* bus OF(columns);  // initially the row above
    Borders borders;
    SpecialLines lines;
    u16* cells OF(any);  // sources of all scores, if stored
    i32 rows, columns;
    i32 row_step;       // a multiple of a strip's rows, or at least all rows
    i32 column_step;    // at least CHUNK + wavefront_width
    i32 rows_below;     // rows of the matrix below the region
    i32 columns_right;  // columns of the matrix right of the region
    bool blank_left;    // whether the column before has only empty alignments
};

struct BestCell {
    i32 score, row, column;
    HOST_DEVICE bool before(const BestCell& other) const {
        return score != other.score ? score > other.score : ends_before(row, column, other.row, other.column);
    }
};

// The letters of a wavefront's rows, and their scores with the letters of its lanes' current columns. A window contains
// the columns that the lanes visit in some steps; it starts wavefront_width - 1 columns before the first lane's column.
template <class Scheme, class Lane, i32 ROWS> struct WavefrontLetters;

// The kind of a chunk. PLAIN: all lanes are inside the columns of the region, which contain only letters. OPEN: some
// may be outside or not letters. Neither has a special column, nor needs left borders in local alignments.
enum ChunkKind { PLAIN, OPEN, GENERAL };
// A wavefront that sweeps a strip of a region, ROWS rows per lane.
template <class Scheme, class Lane, i32 ROWS, bool IS_LOCAL, bool STORES_TRACE> struct Wavefront {
    static const i32 WIDTH = wavefront_width<Lane>();
    static const i32 WINDOW = CHUNK + WIDTH;
    static const i32 UNROLLED = ROWS < 16 ? 4 : 2;  // steps; the code has to fit in the instruction cache
    typedef WavefrontLetters<Scheme, Lane, ROWS> RowLetters;
    typedef typename RowLetters::Cell Cell;
    typedef LaneOutput<Lane> Above;
    // The input and output of CHUNK columns: scores from above, letters, and scores of the last row.
    struct Chunk {
        Above above[CHUNK + 1], below[CHUNK];  // the last element of `above` is unused
        Cell window[WINDOW];
    };
    struct State {
        Lane h[ROWS], e[ROWS];    // h: less the cost of a gap's first letter
        Lane diagonal;            // h of the row above, one column earlier
        Lane bottom_h, bottom_f;  // of the last row
    };
    const Region& region;
    const Scheme& scheme;
    RowLetters letters;
    State state;
    i32 first_row, base = 0, strip;
    i32 last_lane, last_row;   // of the region in this strip
    bool is_last;              // whether this is the last strip of the region
    i64 special;               // index in rows_h of the last row, -1 if it is not special
    i32 next_special;          // the first special column that some lane has not passed
    bool open = true;          // whether a column after the first column of the chunk is not a letter
    bool all_letters = false;  // whether all columns of the window are letters
    i32 goal = 0;
    BestCell best = {0, 0, 0};
    Chunk* chunk;
    // Prefetched by this thread: words of the bus, letters of the columns after them, and letters of their columns.
    u64 words[CHUNK / WARP_WIDTH];
    i32 codes[CHUNK / WARP_WIDTH], before[CHUNK / WARP_WIDTH];
    HOST_DEVICE Wavefront(const Region& region, const Scheme& scheme, i32 strip)
        : region(region),
          scheme(scheme),
          letters(scheme),
          first_row(strip * WIDTH * ROWS),
          strip(strip),
          next_special(region.column_step - 1) {
        i32 last = minimum(region.rows - first_row, WIDTH * ROWS) - 1;
        last_lane = last / ROWS, last_row = last % ROWS;
        i32 below = first_row + WIDTH * ROWS;
        is_last = below >= region.rows;
        special = is_last || below % region.row_step ? -1 : below / region.row_step - 1;
        for (i32 r = 0; r < ROWS; ++r)
            for (i32 lane = 0; lane < Lane::width; ++lane) {
                i32 row = first_row + (first_lane<Lane>() + lane) * ROWS + r;
                letters.set_row(r, lane, row < region.rows ? region.query[row] : Scheme::letter_count());
            }
        reset_state();
    }
    HOST_DEVICE i32 relative(i32 score) const {
        return (i32)clamp<i64>((i64)score - base, 0, 2 * Range<Lane>::MIDDLE - 1);
    }
    // Set all lanes to empty alignments.
    HOST_DEVICE void reset_state() {
        const Lane zero = Lane::all(0), zero_h = Lane::all(-scheme.first_gap());
        for (i32 r = 0; r < ROWS; ++r) state.h[r] = zero_h, state.e[r] = zero;
        state.diagonal = state.bottom_h = zero_h;
        state.bottom_f = zero;
    }
    HOST_DEVICE i32 code_at(i32 column) const {
        return column >= 0 && column < region.columns ? region.target[column] : Scheme::letter_count();
    }
    // Fill the part of the window that the first chunk reuses.
    HOST_DEVICE void init_window() {
        for (i32 index = CHUNK + warp_lane(); index < WINDOW; index += WARP_WIDTH) {
            i32 column = index - WINDOW + 1;
            RowLetters::put(chunk->window, WINDOW, index, code_at(column), code_at(column - 1));
        }
    }
    HOST_DEVICE void prefetch_letters(i32 start) {
#pragma unroll
        for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) {
            i32 column = start + i * WARP_WIDTH + warp_lane();
            codes[i] = code_at(column + 1), before[i] = code_at(column);
        }
    }
    // Load what the strip above has written so far in the columns from `start` on. All loads are in flight together.
    HOST_DEVICE void prefetch_above(i32 start) {
#pragma unroll
        for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) words[i] = bus_word(Border{NO_SCORE, NO_SCORE}, strip - 1);
#pragma unroll
        for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) {
            i32 column = start + i * WARP_WIDTH + warp_lane();
            if (column < region.columns) words[i] = load_relaxed(region.bus + column);
        }
    }
    // Start the loads of a later chunk.
    HOST_DEVICE void prefetch(i32 start) {
        prefetch_above(start);
        prefetch_letters(start);
    }
    // Whether the strip above had written all loaded words.
    HOST_DEVICE bool is_complete() const {
        bool missing = false;
#pragma unroll
        for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) missing = missing || !is_from(words[i], strip - 1);
        return !warp_any(missing);
    }
    // Wait for the prefetched words, and move the window on. Return the highest score that this thread has received.
    HOST_DEVICE i32 load(i32 start) {
        if (next_special <= start - WIDTH) next_special += region.column_step;
        const i32 column_to_store = special_column(start);
        bool was_open = open, opens = false;
#pragma unroll
        for (i32 i = warp_lane(); i < WIDTH; i += WARP_WIDTH)
            RowLetters::cell(chunk->window, WINDOW, i) = RowLetters::cell(chunk->window, WINDOW, CHUNK + i);
#pragma unroll
        for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) {
            opens = opens || codes[i] == Scheme::letter_count();
            RowLetters::put(chunk->window, WINDOW, WIDTH + i * WARP_WIDTH + warp_lane(), codes[i], before[i]);
        }
        open = RowLetters::HANDLES_NON_LETTERS ? false : warp_any(opens);
        all_letters = RowLetters::HANDLES_NON_LETTERS || !(was_open || open);
        i32 max_score = NO_SCORE;
        if (start == 0 && !region.blank_left)
            for (i32 row = warp_lane(); row <= minimum(region.rows - first_row, WIDTH * ROWS); row += WARP_WIDTH)
                max_score = maximum(max_score, region.borders.left_h[first_row + row]);
        for (; !is_complete(); prefetch_above(start)) pause();
#pragma unroll
        for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) {
            i32 h = border_of(words[i]).h;
            max_score = maximum(max_score, h);
            if (strip == 0 && start + i * WARP_WIDTH + warp_lane() == column_to_store && column_to_store >= 0)
                region.lines.columns_h[special_index(column_to_store) * (region.rows + 1)] = h;
        }
        return max_score;
    }
    // The highest score in the state of this thread.
    HOST_DEVICE i32 highest_of_state() const {
        Lane max_score = state.bottom_h;
        for (i32 r = 0; r < ROWS; ++r) max_score = max(max_score, state.h[r]);
        return max_lane(max_score) + scheme.first_gap() + base;
    }
    HOST_DEVICE static void shift(Lane& lane, Lane by, Lane floor) { lane = max(lane + by, floor); }
    HOST_DEVICE i32 base_for(i32 max_score) const {
        return IS_LOCAL && max_score < Range<Lane>::MIDDLE / 2 ? 0 : max_score - Range<Lane>::MIDDLE;
    }
    HOST_DEVICE void restart(i32 max_score) {
        base = base_for(max_score);
        reset_state();
    }
    // Move the base so that the highest incoming score stays in range.
    HOST_DEVICE void move_base(i32 max_score) {
        i32 wanted = base_for(max_score), moved = base - wanted;
        if (wanted ? -Range<Lane>::DRIFT <= moved && moved <= Range<Lane>::DRIFT : !moved) return;
        base = wanted;
        const Lane by =
                Lane::all(maximum(moved, -2 * Range<Lane>::MIDDLE + 256));  // shifts out everything without overflow
        const Lane zero = Lane::all(0), zero_h = Lane::all(-scheme.first_gap());
        for (i32 r = 0; r < ROWS; ++r) shift(state.h[r], by, zero_h), shift(state.e[r], by, zero);
        shift(state.diagonal, by, zero_h);
        shift(state.bottom_h, by, zero_h);
        shift(state.bottom_f, by, zero);
    }
    HOST_DEVICE void store_above() {
#pragma unroll
        for (i32 i = 0; i < CHUNK / WARP_WIDTH; ++i) {
            Border above = border_of(words[i]);
            above = Border{relative(above.h) - scheme.first_gap(), relative(above.f)};
            chunk->above[i * WARP_WIDTH + warp_lane()] = LaneOutput<Lane>::of(above);
        }
        warp_sync();
    }
    // The scores left of the region's first column. All loads are in flight together: the strips below wait for them.
    HOST_DEVICE State left_state() const {
        State left = state;
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            i32 row = first_row + (first_lane<Lane>() + lane) * ROWS;
            left.diagonal.set(lane, relative(region.borders.left_h[minimum(row, region.rows)]) - scheme.first_gap());
#pragma unroll
            for (i32 r = 0; r < ROWS; ++r) {
                bool inside = row + r < region.rows;
                left.h[r].set(
                        lane, relative(inside ? region.borders.left_h[row + r + 1] : NO_SCORE) - scheme.first_gap());
                left.e[r].set(lane, relative(inside ? region.borders.left_e[row + r] : NO_SCORE));
            }
        }
        return left;
    }
    // Load the left border into the lane that enters the first column of the region; later lanes may be overwritten.
    HOST_DEVICE void enter_columns(i32 step, const State& left) {
        i32 lane = step - first_lane<Lane>();
        if (lane < 0 || lane > Lane::width) lane = Lane::width;
        state.diagonal = merge_lanes(state.diagonal, left.diagonal, lane);
#pragma unroll
        for (i32 r = 0; r < ROWS; ++r) {
            state.h[r] = merge_lanes(state.h[r], left.h[r], lane);
            state.e[r] = merge_lanes(state.e[r], left.e[r], lane);
        }
    }
    // The special column that some lane visits in this chunk, -1 for none; there is at most one.
    HOST_DEVICE i32 special_column(i32 start) const {
        return next_special < minimum(start + CHUNK, region.columns - 1) ? next_special : -1;
    }
    HOST_DEVICE i64 special_index(i32 column) const { return (column + 1) / region.column_step - 1; }
    // Store the special column of the lane that leaves it.
    HOST_DEVICE void store_special(i32 step, i32 column_to_store) const {
        i32 lane = step - column_to_store - first_lane<Lane>();
        if (lane < 0 || lane >= Lane::width) return;
        for (i32 r = 0; r < ROWS; ++r) {
            i64 row = first_row + (step - column_to_store) * ROWS + r;
            if (row >= region.rows) break;
            region.lines.columns_h[special_index(column_to_store) * (region.rows + 1) + row + 1] =
                    state.h[r].get(lane) + scheme.first_gap() + base;
            region.lines.columns_e[special_index(column_to_store) * region.rows + row] = state.e[r].get(lane) + base;
        }
    }
    HOST_DEVICE void update_best(Lane h, i32 r, i32 step) {
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            if (h.get(lane) + scheme.first_gap() + base != goal) continue;
            i32 lane_index = first_lane<Lane>() + lane;
            BestCell found = {goal, first_row + lane_index * ROWS + r, step - lane_index};
            if (found.column >= 0 && found.column < region.columns && found.row < region.rows && found.before(best))
                best = found;
        }
    }
    // Sweep a chunk. FULL: all lanes are inside the rows of the region. FINDS: search `goal`. Return the maximum.
    template <ChunkKind KIND, bool FULL, bool FINDS> HOST_DEVICE i32 run(i32 start) {
        const bool enters = KIND != PLAIN && start < WIDTH && !(KIND == OPEN && IS_LOCAL);
        const Lane extend = Lane::all(-scheme.gap_extend), first_gap = Lane::all(-scheme.first_gap());
        const i32 column_to_store = special_column(start);
        const State left = enters ? left_state() : state;
        Lane max_score = Lane::all(-scheme.first_gap());
        LaneOutput<Lane> crossing = LaneOutput<Lane>::of(state.bottom_h, state.bottom_f);
        // The input of a step is loaded one step earlier to hide the latency.
        LaneOutput<Lane> next_above = chunk->above[0];
        typename RowLetters::ColumnLetters next_columns = RowLetters::columns(chunk->window, WINDOW, WIDTH - 1);
#pragma unroll(KIND == PLAIN && FULL ? UNROLLED : 1)
        for (i32 i = 0; i < CHUNK; ++i) {
            i32 step = start + i;
            Lane up = state.bottom_h, f = state.bottom_f;
            pass_down(up, f, crossing, next_above);
            typename RowLetters::ColumnLetters columns = next_columns;
            next_above = chunk->above[i + 1];
            next_columns = RowLetters::columns(chunk->window, WINDOW, i + WIDTH);
            if (enters) enter_columns(step, left);
            Lane diagonal = state.diagonal;
            state.diagonal = up;
            Lane word = Lane::all(0), last_h = up, last_f = f;
#pragma unroll
            for (i32 r = 0; r < ROWS; ++r) {
                Lane left = state.h[r], score = letters.template score<KIND == PLAIN>(r, columns);
                Lane e = add_max(state.e[r], extend, left);
                Lane without_f = add_max_or_zero(diagonal, score, e), opened = without_f + first_gap;
                if (STORES_TRACE)
                    word = word + shifted(source(max(without_f, f), e, f, diagonal + score, left, up), 4 * r);
                diagonal = left;
                state.e[r] = e;
                state.h[r] = up = add_max(f, first_gap, opened);
                f = add_max(f, extend, opened);  // a new gap after F costs more than extending F
                max_score = max(max_score, up);
                if (FINDS) update_best(up, r, step);
                if (!FULL && r == last_row) last_h = up, last_f = f;
            }
            state.bottom_h = up;
            state.bottom_f = f;
            crossing = LaneOutput<Lane>::of(up, f);
            if (STORES_TRACE) store_trace(word, step);
            if (KIND == GENERAL && !FINDS && column_to_store >= 0) store_special(step, column_to_store);
            if (FULL && warp_lane() == WARP_WIDTH - 1) chunk->below[i] = crossing;
            if (!FULL) store_below(i, last_h, last_f);
        }
        warp_sync();
        return warp_max(max_lane(max_score)) + scheme.first_gap();
    }
    HOST_DEVICE void store_below(i32 i, Lane h, Lane f) {
        i32 lane = last_lane - first_lane<Lane>();
        if (lane < 0 || lane >= Lane::width) return;
        chunk->below[i] = LaneOutput<Lane>::of(Border{h.get(lane), f.get(lane)});
    }
    HOST_DEVICE static Lane source(Lane h, Lane e, Lane f, Lane matched, Lane left, Lane up) {
        Lane scores = IS_LOCAL ? differ(h, Lane::all(0)) : Lane::all(1), gap = and_lanes(scores, differ(h, matched));
        Lane from = scores + gap + and_lanes(gap, differ(h, e));
        return from + shifted(differ(e, left), 2) + shifted(differ(f, up), 3);
    }
    HOST_DEVICE void store_trace(Lane word, i32 step) const {
        if (step >= region.columns + WIDTH) return;
        u16* words = region.cells + cell_word<Lane>(region.columns, strip, step, first_lane<Lane>());
        for (i32 lane = 0; lane < Lane::width; ++lane) words[lane] = (u16)word.get(lane);
    }
    // Pass the last row on to the next strip.
    HOST_DEVICE void store(i32 start) {
#pragma unroll
        for (i32 i = 0; i < CHUNK; i += WARP_WIDTH) {
            i32 column = start + i + warp_lane() - last_lane;
            if (column < 0 || column >= region.columns) continue;
            Border below = border_of(chunk->below[i + warp_lane()]);
            below = Border{below.h + scheme.first_gap() + base, below.f + base};
            if (!is_last) store_relaxed(region.bus + column, bus_word(below, strip));
            else region.borders.row_h[column] = below.h, region.borders.row_f[column] = below.f;
            if (special < 0) continue;
            region.lines.rows_h[special * region.columns + column] = below.h;
            region.lines.rows_f[special * region.columns + column] = below.f;
        }
        warp_sync();
    }
    HOST_DEVICE bool is_plain(i32 start) const {
        bool inside = start >= WIDTH && start + CHUNK <= region.columns;
        return inside && all_letters && special_column(start) < 0;
    }
    HOST_DEVICE i32 run(i32 start, bool plain) {
        bool full = last_lane == WIDTH - 1 && last_row == ROWS - 1;
        // The row below the matrix is not needed for a local alignment.
        full = full || (IS_LOCAL && !STORES_TRACE && region.rows_below == 0);
        if (plain) return full ? run<PLAIN, true, false>(start) : run<PLAIN, false, false>(start);
        bool takes_none = !IS_LOCAL || start >= WIDTH || (region.blank_left && base == 0);
        bool simple = full && takes_none && special_column(start) < 0;
        return simple ? run<OPEN, true, false>(start) : run<GENERAL, false, false>(start);
    }
    // An upper bound of scores in and after the chunk, if no score at its start is above `max_score`.
    HOST_DEVICE i64 bound(i32 start, i32 max_score) const {
        i64 rows = (i64)region.rows - first_row + region.rows_below;
        i64 columns = (i64)region.columns - maximum(start - WIDTH + 1, 0) + region.columns_right;
        return maximum(max_score, 0) + minimum(rows, columns) * scheme.highest;
    }
    // Skip a chunk: no alignment through it can reach the best score.
    HOST_DEVICE void skip() {
        restart(0);
        for (i32 i = warp_lane(); i < CHUNK; i += WARP_WIDTH)
            chunk->below[i] = LaneOutput<Lane>::of(Border{-scheme.first_gap(), 0});
        warp_sync();
    }
};
