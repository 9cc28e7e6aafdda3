// Scan Lane::width subjects at once. On the GPU, a group of threads holds a strip of the query's rows and moves along
// the columns; on the CPU, a thread holds some columns and moves along the rows.
#pragma once
#include "database/scan_recurrence.cuh"
#include "pairwise/schemes.cuh"

const i32 LETTERS = 27;   // A to Z and *; columns after the end of a subject have NO_CODE
const i32 LOWEST = -128;  // the score of NO_CODE in a byte; VERY_LOW in 32 bits
const i32 VERY_LOW = -(1 << 20);
// Scores at the border of a strip or a block of columns: H, and the score of a gap that crosses the border.
template <class Lane> struct Border {
    Lane h, gap;
};

// A visitor of the cells of every step that does nothing.
struct NoEnds {
    template <class Lane, i32 CELLS> HOST_DEVICE void visit(const Cells<Lane, CELLS>&, i32, i32, i32, i32) const {}
};

// The ends of the best alignments of subjects; a subject may have several.
struct EndCells {
    u64* firsts OF(subjects);  // the first end in the order of recurrence.cuh, encoded
    i32* last_rows OF(subjects);
    i32* last_columns OF(subjects);
    HOST_DEVICE EndCells from(i64 subject) const {
        return EndCells{firsts + subject, last_rows + subject, last_columns + subject};
    }
};

// A visitor that records the cells in which the best alignments of a group's subjects end.
template <class Lane> struct Ends {
    Lane scores;       // the best score of each subject
    i32 first_column;  // of the range in its subjects
    EndCells ends;
    // row, column: position of the first cell. row_step, column_step: to the next cell.
    template <i32 CELLS>
    HOST_DEVICE void visit(const Cells<Lane, CELLS>& cells, i32 row, i32 column, i32 row_step, i32 column_step) const {
        Lane seen = Lane::all(0);
        UNROLL for (i32 k = 0; k < CELLS; ++k)
            seen = max(seen, select_equal(cells.h[k], scores, Lane::all(1), Lane::all(0)));
        if (!any(seen)) return;
        for (i32 k = 0; k < CELLS; ++k)
            for (i32 lane = 0; lane < Lane::width; ++lane)
                if (cells.h[k].get(lane) == scores.get(lane))
                    record(lane, row + k * row_step, first_column + column + k * column_step);
    }
    HOST_DEVICE void record(i32 lane, i32 row, i32 column) const {
        atomic_min(ends.firsts + lane, (u64)(row + (i64)column) << 32 | (u32)~column);
        atomic_max(ends.last_rows + lane, row);
        atomic_max(ends.last_columns + lane, column);
    }
};

struct Query {
    const u8* codes OF(rows);
    const i32* matrix OF(CODES* CODES);  // [query letter, subject letter]
    i32 rows, gap_open, gap_extend;
    HOST_DEVICE const i32* scores(i32 row) const { return matrix + CODES * codes[row]; }
};

#ifdef __CUDACC__
const i32 STRIP_ROWS = 512;  // maximum; the profile of these rows fits in shared memory
// Return the index, among the interleaved letters, of the letter of one lane's subject in a column.
HOST_DEVICE i64 letter_index(i64 column, i32 lane) { return column * Lanes16::width + lane; }
// Return the index of a range's first border: one per column; the ranges of a launch are concatenated.
HOST_DEVICE i64 border_index(const i64* border_starts, i64 range, i32) {
    return border_starts[range] - border_starts[0];
}

HOST_DEVICE Lanes16 shuffle_xor(Lanes16 x, i32 apart) { return Lanes16{__shfl_xor_sync(~0u, x.value, apart)}; }
HOST_DEVICE Lanes32x2 shuffle_xor(Lanes32x2 x, i32 apart) {  // of the thread whose number differs in this bit
    return Lanes32x2{{__shfl_xor_sync(~0u, x.low.value, apart)}, {__shfl_xor_sync(~0u, x.high.value, apart)}};
}
HOST_DEVICE Lanes16 shuffle_up(Lanes16 x, i32 width) { return Lanes16{__shfl_up_sync(~0u, x.value, 1, width)}; }
HOST_DEVICE Lanes32x2 shuffle_up(Lanes32x2 x, i32 width) {  // of the thread above, in groups of `width`
    return Lanes32x2{{__shfl_up_sync(~0u, x.low.value, 1, width)}, {__shfl_up_sync(~0u, x.high.value, 1, width)}};
}
// Query profile: the scores of a thread's rows with each letter, a byte per row, eight rows per word. The words of a
// group's threads are adjacent, so that sixteen threads have no bank conflicts for any letters. With fewer, the odd
// number of words makes conflicts random.
template <class Lane, i32 CELLS> struct Profile;
// The profile of two subjects in 16-bit lanes, in shared memory.
template <i32 CELLS> struct Profile<Lanes16, CELLS> {
    static const i32 WORDS = (CELLS + 7) / 8;
    const u8* own;
    i32 letter_bytes, word_bytes;
    uint2 low[WORDS], high[WORDS];
    HOST_DEVICE Profile(const Query& query, i32 first_row, i32 width) {
        __shared__ __align__(16) u8 shared[CODES * STRIP_ROWS];
        word_bytes = 8 * width, letter_bytes = (width < 16 ? WORDS | 1 : WORDS) * word_bytes;
        __syncthreads();  // until all threads have finished the strip before
        for (i32 row = threadIdx.x; row < width * CELLS; row += blockDim.x) {
            u8* bytes = shared + (row % CELLS / 8 * width + row / CELLS) * 8 + row % CELLS % 8;
            bool exists = first_row + row < query.rows;
            const i32* scores = query.scores(exists ? first_row + row : 0);
            for (i32 letter = 0; letter < CODES; ++letter)
                bytes[letter * letter_bytes] = (u8)(exists && letter != NO_CODE ? scores[letter] : LOWEST);
        }
        __syncthreads();
        own = shared + 8 * (warp_lane() & (width - 1));
    }
    HOST_DEVICE void look_up(i32 letters) {
        const u8 *a = own + (letters & 255) * letter_bytes, *b = own + (letters >> 8) * letter_bytes;
        UNROLL for (i32 word = 0; word < WORDS; ++word) {
            low[word] = *(const uint2*)(a + word * word_bytes);
            high[word] = *(const uint2*)(b + word * word_bytes);
        }
    }
    // The bytes of both subjects, sign-extended.
    HOST_DEVICE Lanes16 at(i32 k) const {
        u32 chosen = k % 4 * 0x1111u + 0xC480u;
        return k % 8 < 4 ? Lanes16{permute_bytes(low[k / 8].x, high[k / 8].x, chosen)}
                         : Lanes16{permute_bytes(low[k / 8].y, high[k / 8].y, chosen)};
    }
};

template <i32 CELLS> struct Profile<Lanes32x2, CELLS> {
    const i32* rows[CELLS];
    i32 letters;
    HOST_DEVICE Profile(const Query& query, i32 first_row, i32 width) {
        first_row += (warp_lane() & (width - 1)) * CELLS;
        UNROLL for (i32 k = 0; k < CELLS; ++k)
            rows[k] = first_row + k < query.rows ? query.scores(first_row + k) : nullptr;
    }
    HOST_DEVICE void look_up(i32 found) { letters = found; }
    HOST_DEVICE Lanes32x2 at(i32 k) const { return Lanes32x2{{score(k, letters & 255)}, {score(k, letters >> 8)}}; }
    HOST_DEVICE i32 score(i32 k, i32 letter) const { return rows[k] && letter != NO_CODE ? rows[k][letter] : VERY_LOW; }
};

// The input of a step, loaded one step earlier.
template <class Lane> struct Prefetched {
    i32 letters;
    Border<Lane> border;
};

// A thread's rows of a strip, moving along the columns of a pair of subjects, one column after the thread above, in a
// group of `width` threads. BORDERED: there are strips above or below.
template <class Lane, i32 CELLS, bool BORDERED> struct StripRows {
    const u16* words;
    i32 columns, width, lane;
    Border<Lane>* borders;
    bool reads, writes;
    Lane before, gap_across;
    Prefetched<Lane> next;
    HOST_DEVICE void fetch(i32 column) {
        bool exists = (u32)column < (u32)columns;
        next.letters = exists ? words[column] : NO_CODE * 0x101;
        next.border = Border<Lane>{Lane::all(0), Lane::all(0)};
        if (BORDERED && reads && exists) next.border = borders[column];
    }
    template <class Visitor> HOST_DEVICE void step(i32 column, i32 first_row, Profile<Lane, CELLS>& profile,
            Cells<Lane, CELLS>& cells, const GapCosts<Lane>& gaps, const Visitor& visitor) {
        Prefetched<Lane> now = next;
        fetch(column + 1);
        profile.look_up(now.letters);
        Lane above = shuffle_up(cells.h[CELLS - 1], width);
        gap_across = shuffle_up(gap_across, width);
        if (lane == 0) above = now.border.h, gap_across = now.border.gap;
        cells.step(profile, before, gap_across, gaps);
        visitor.visit(cells, first_row + lane * CELLS, column, 1, 0);
        before = above;
        if (BORDERED && writes && (u32)column < (u32)columns)
            borders[column] = Border<Lane>{cells.h[CELLS - 1], gap_across};
    }
    // Two steps per iteration: the second step moves values back to the registers in which the first step found them.
    template <class Visitor> HOST_DEVICE void sweep(i32 steps, i32 first_row, Profile<Lane, CELLS>& profile,
            Cells<Lane, CELLS>& cells, const GapCosts<Lane>& gaps, const Visitor& visitor) {
        before = gap_across = Lane::all(0);
        cells.start();
        fetch(-lane);
        for (i32 column = -lane; column < steps - lane; column += 2) {
            step(column, first_row, profile, cells, gaps, visitor);
            step(column + 1, first_row, profile, cells, gaps, visitor);
        }
    }
};

// Sweep all strips of a query over two subjects; return the best scores in all threads of a group of `width`. letters:
// by column, a byte per subject; borders: scratch, one per column; visitor: visits the cells of every step.
template <class Lane, i32 CELLS, class Visitor> HOST_DEVICE Lane sweep(const Query& query, const u8* letters,
        i32 columns, i32 width, Border<Lane>* borders, bool, const GapCosts<Lane>& gaps, const Visitor& visitor) {
    i32 lane = warp_lane() & (width - 1), steps = warp_max(columns) + width - 1, strip_rows = width * CELLS;
    Cells<Lane, CELLS> cells;
    cells.best = Lane::all(0);
    if (query.rows <= strip_rows) {
        Profile<Lane, CELLS> profile(query, 0, width);
        StripRows<Lane, CELLS, false> rows = {(const u16*)letters, columns, width, lane};
        rows.sweep(steps, 0, profile, cells, gaps, visitor);
    } else {
        for (i32 first_row = 0; first_row < query.rows; first_row += strip_rows) {
            Profile<Lane, CELLS> profile(query, first_row, width);
            bool reads = first_row > 0 && lane == 0;
            bool writes = first_row + strip_rows < query.rows && lane == width - 1;
            StripRows<Lane, CELLS, true> rows = {(const u16*)letters, columns, width, lane, borders, reads, writes};
            rows.sweep(steps, first_row, profile, cells, gaps, visitor);
            __syncwarp();
        }
    }
    Lane best = cells.best;
    for (i32 apart = width / 2; apart; apart /= 2) best = max(best, shuffle_xor(best, apart));
    return best;
}
#else
const i32 BLOCK_COLUMNS = 8;  // all subjects of a group have the same number of blocks
const i32 CELL_COLUMNS = 4;   // more would spill registers
// Return the index of a letter: the letters of two columns are the bytes of a 16-bit lane.
HOST_DEVICE i64 letter_index(i64 column, i32 lane) { return (column / 2 * Lanes16::width + lane) * 2 + column % 2; }
// Return the index of a range's first border: a range has one per row of the query.
HOST_DEVICE i64 border_index(const i64*, i64 range, i32 rows) { return range * rows; }

typedef i8 Bytes __attribute__((vector_size(CODES)));
static_assert(CODES == 2 * Lanes16::width, "a byte for each code, and for each lane of two columns");

// Return table[indices[i]] for each byte i.
HOST_DEVICE Bytes shuffle_bytes(Bytes table, Bytes indices) {
#ifdef __clang__
    Bytes found;
    for (i32 i = 0; i < CODES; ++i) found[i] = table[indices[i]];
    return found;
#else
    return __builtin_shuffle(table, indices);
#endif
}

// Query profile: the scores of each letter of the query with the letters of a block of columns.
template <class Lane> struct Profile;

template <> struct Profile<Lanes16> {
    Bytes table[LETTERS];
    Lanes16 scores[LETTERS][BLOCK_COLUMNS];
    HOST_DEVICE Profile(const Query& query) {
        for (i32 code = 0; code < LETTERS; ++code)
            for (i32 letter = 0; letter < CODES; ++letter)
                table[code][letter] = (i8)(letter == NO_CODE ? LOWEST : query.matrix[CODES * code + letter]);
    }
    HOST_DEVICE void look_up(const u8* letters) {
        for (i32 k = 0; k < BLOCK_COLUMNS; k += 2) {
            Bytes indices;
            __builtin_memcpy(&indices, letters + k * Lanes16::width, sizeof indices);
            for (i32 code = 0; code < LETTERS; ++code) {
                auto both = (Lanes16::vector)shuffle_bytes(table[code], indices);
                scores[code][k].value = both << 8 >> 8;
                scores[code][k + 1].value = both >> 8;
            }
        }
    }
};

template <> struct Profile<Lanes32x2> {
    const Query& query;
    Lanes32x2 scores[LETTERS][BLOCK_COLUMNS];
    HOST_DEVICE Profile(const Query& query) : query(query) {}
    HOST_DEVICE void look_up(const u8* letters) {
        for (i32 code = 0; code < LETTERS; ++code) {
            for (i32 k = 0; k < BLOCK_COLUMNS; ++k) {
                for (i32 lane = 0; lane < Lanes32x2::width; ++lane) {
                    i32 letter = letters[letter_index(k, lane)];
                    scores[code][k].set(lane, letter == NO_CODE ? VERY_LOW : query.matrix[CODES * code + letter]);
                }
            }
        }
    }
};

template <class Lane> struct Row {
    const Lane* scores;
    HOST_DEVICE Lane at(i32 k) const { return scores[k]; }
};

// Return the best scores of a query with Lane::width subjects. letters: interleaved; borders: H and gap per row, before
// the first column if `resumes`, then after the last. visitor: visits the cells of every step.
template <class Lane, i32, class Visitor> HOST_DEVICE Lane sweep(const Query& query, const u8* letters, i32 columns,
        i32, Border<Lane>* borders, bool resumes, const GapCosts<Lane>& gaps, const Visitor& visitor) {
    Cells<Lane, CELL_COLUMNS> cells;
    cells.best = Lane::all(0);
    Profile<Lane> profile(query);
    bool is_first = columns && !resumes;
    for (i32 row = 0; row < query.rows && is_first; ++row) borders[row] = Border<Lane>{Lane::all(0), Lane::all(0)};
    for (i32 column = 0; column < columns; column += CELL_COLUMNS) {
        if (column % BLOCK_COLUMNS == 0) profile.look_up(letters + (i64)column * Lane::width);
        cells.start();
        Lane before = Lane::all(0);
        for (i32 row = 0; row < query.rows; ++row) {
            Border<Lane>& border = borders[row];
            Lane left = border.h, gap_across = border.gap;
            cells.step(Row<Lane>{profile.scores[query.codes[row]] + column % BLOCK_COLUMNS}, before, gap_across, gaps);
            visitor.visit(cells, row, column, 0, 1);
            before = left;
            border = Border<Lane>{cells.h[CELL_COLUMNS - 1], gap_across};
        }
    }
    return cells.best;
}
#endif
