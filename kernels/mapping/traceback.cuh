// Banded alignments with traceback: the recurrence of smith_waterman.cuh, with a byte per cell that records where the
// scores of the cell came from. A warp aligns one pair; the CPU, in narrow bands, a vector of pairs. The traceback
// takes the best path that stays on the diagonal longest: gaps are as far left as possible on the forward reference.
#pragma once
#include "mapping/band.cuh"
#include "mapping/scoring.cuh"
#include "mapping/smith_waterman.cuh"

enum Step {
    STOP = 0,
    DIAGONAL = 1,
    INSERTION = 2,
    DELETION = 3,
    LONG_INSERTION = 4,
    LONG_DELETION = 5,
    STEP_BITS = 7,
    INSERTION_CONTINUES = 8,
    DELETION_CONTINUES = 16,
    LONG_INSERTION_CONTINUES = 32,
    LONG_DELETION_CONTINUES = 64,
};
enum CigarOperation { MATCHED = 0, INSERTED = 1, DELETED = 2, CLIPPED = 4, HARD_CLIPPED = 5 };

// An alignment path. operations: number of CIGAR operations.
struct Path {
    i32 score;  // with bonuses
    i64 reference_start;
    i32 operations;
};

// A CIGAR under construction; equal neighbouring operations are merged.
struct Cigar {
    u32* operations;
    i32 count;
    HOST_DEVICE void add(CigarOperation operation, i32 length) {
        if (length == 0) return;
        if (count && (operations[count - 1] & 15) == (u32)operation) operations[count - 1] += (u32)length << 4;
        else operations[count++] = (u32)length << 4 | (u32)operation;
    }
    HOST_DEVICE void reverse() {
        for (i32 i = 0, j = count - 1; i < j; ++i, --j) {
            u32 held = operations[i];
            operations[i] = operations[j];
            operations[j] = held;
        }
    }
};

// Return the score of a pair of codes of the query and of the reference (`text`).
HOST_DEVICE i32 column_score(i32 query, i32 text, const Scoring& scoring) {
    if (text == OUTSIDE) return NEVER;
    if (query > 3 || text > 3) return -AMBIGUOUS_PENALTY;
    return query == text ? scoring.match : -scoring.mismatch;
}

// The step bytes of the cells of a band, row by row.
template <i32 WIDTH> struct Steps {
    u8* bytes;
    HOST_DEVICE u8& at(i32 i, i32 b) const { return bytes[(i64)i * WIDTH + b]; }
};

// The best cell of a band; ties are broken by row, then column.
struct BestCell {
    i32 score, row, column;
    HOST_DEVICE bool ranks_before(const BestCell& other) const {
        if (score != other.score) return score > other.score;
        return row != other.row ? row < other.row : column < other.column;
    }
};

const i32 BLOCKED = 1 << 24;  // more than any score
// Deletions that cross the columns of some lanes. score, long_score: best score after these columns of a deletion that
// starts in them; passing, long_passing: cost of crossing all of them.
struct Deletions {
    i32 score, long_score, passing, long_passing;
    HOST_DEVICE Deletions after(const Deletions& preceding) const {
        return Deletions{maximum(score, preceding.score - passing),
                maximum(long_score, preceding.long_score - long_passing), passing + preceding.passing,
                long_passing + preceding.long_passing};
    }
};

// Return the deletions that reach a lane's first column: an exclusive scan over the lanes of the warp. A deletion
// starts at a cell that does not end a deletion itself: two deletions in a row are never best.
HOST_DEVICE Deletions deletions_before(Deletions own) {
    for (i32 step = 1; step < WARP_WIDTH; step *= 2) {
        Deletions preceding = warp_shuffle(own, maximum(warp_lane() - step, 0));
        if (warp_lane() >= step) own = own.after(preceding);
    }
    Deletions preceding = warp_shuffle(own, maximum(warp_lane() - 1, 0));
    return warp_lane() ? preceding : Deletions{NEVER, NEVER, 0, 0};
}

// Return `held` of the next lane of the warp; in the last lane, return `last`.
HOST_DEVICE i32 from_next_lane(i32 held, i32 last) {
    i32 next = warp_shuffle(held, (warp_lane() + 1) % WARP_WIDTH);
    return warp_lane() + 1 < WARP_WIDTH ? next : last;
}

// Align a band by a warp, COLUMNS columns a lane; return its best cell. steps: output of all cells, or null bytes.
template <i32 WIDTH> HOST_DEVICE BestCell fill_band(const Band& band, const Scoring& scoring, Steps<WIDTH> steps) {
    const bool long_gaps = has_long_gaps(WIDTH);
    const i32 COLUMNS = WIDTH / WARP_WIDTH, first = warp_lane() * COLUMNS;
    // The lane's columns, and the first column of the next lane.
    i32 letters[COLUMNS + 1], scores[COLUMNS + 1], insertions[COLUMNS + 1], long_insertions[COLUMNS + 1];
    BestCell best = {0, -1, 0};
    UNROLL for (i32 c = 0; c < COLUMNS; ++c) {
        letters[c] = band.reference_code(first + c);
        scores[c] = 0;
        insertions[c] = long_insertions[c] = NEVER;
    }
    for (i32 i = 0; i < band.length; ++i) {
        i32 query = band.query_code(i), bonus = band.bonus(i, scoring);
        i32 diagonals[COLUMNS], undeleted[COLUMNS];  // undeleted: best score that does not end in a deletion
        u8 continues[COLUMNS];
        Deletions own = {NEVER, NEVER, COLUMNS * scoring.deletion_extend, 0};
        scores[COLUMNS] = from_next_lane(scores[0], NEVER);
        insertions[COLUMNS] = from_next_lane(insertions[0], NEVER);
        if (long_gaps) long_insertions[COLUMNS] = from_next_lane(long_insertions[0], NEVER);
        UNROLL for (i32 c = 0; c < COLUMNS; ++c) {
            diagonals[c] = scores[c] + bonus + column_score(query, letters[c], scoring);
            i32 opened = scores[c + 1] - scoring.insertion_open;
            continues[c] = insertions[c + 1] > opened ? INSERTION_CONTINUES : 0;
            insertions[c] = maximum(opened, insertions[c + 1]) - scoring.insertion_extend;
            undeleted[c] = maximum(maximum(diagonals[c], 0), insertions[c]);
            if (long_gaps) {
                i32 long_opened = scores[c + 1] - scoring.long_gap;
                continues[c] |= long_insertions[c + 1] > long_opened ? LONG_INSERTION_CONTINUES : 0;
                long_insertions[c] = maximum(long_opened, long_insertions[c + 1]);
                undeleted[c] = maximum(undeleted[c], long_insertions[c]);
            }
            if (letters[c] == OUTSIDE) own = Deletions{NEVER, NEVER, BLOCKED, BLOCKED};
            own.score = maximum(undeleted[c] - scoring.deletion_open, own.score) - scoring.deletion_extend;
            own.long_score = maximum(undeleted[c] - scoring.long_gap, own.long_score);
        }
        Deletions preceding = deletions_before(own);
        i32 deletion = preceding.score, long_deletion = preceding.long_score;
        UNROLL for (i32 c = 0; c < COLUMNS; ++c) {
            if (letters[c] == OUTSIDE) deletion = long_deletion = NEVER;
            i32 here = maximum(undeleted[c], deletion);
            if (long_gaps) here = maximum(here, long_deletion);
            u8 step = continues[c];
            if (here == 0) step |= STOP;
            else if (here == diagonals[c]) step |= DIAGONAL;
            else if (here == insertions[c]) step |= INSERTION;
            else if (here == deletion) step |= DELETION;
            else step |= here == long_insertions[c] ? LONG_INSERTION : LONG_DELETION;
            scores[c] = here;
            if (here > best.score) best = BestCell{here, i, first + c};
            // Deletions that start in the next column.
            i32 opened = here - scoring.deletion_open, long_opened = here - scoring.long_gap;
            if (deletion > opened) step |= DELETION_CONTINUES;
            deletion = maximum(opened, deletion) - scoring.deletion_extend;
            if (long_gaps) {
                if (long_deletion > long_opened) step |= LONG_DELETION_CONTINUES;
                long_deletion = maximum(long_opened, long_deletion);
            }
            if (steps.bytes) steps.at(i, first + c) = step;
        }
        letters[COLUMNS] = from_next_lane(letters[0], OUTSIDE);
        if (warp_lane() + 1 == WARP_WIDTH) letters[COLUMNS] = band.reference_code(i + WIDTH);
        UNROLL for (i32 c = 0; c < COLUMNS; ++c)
            letters[c] = letters[c + 1];
    }
    for (i32 step = 1; step < WARP_WIDTH; step *= 2) {
        BestCell other = warp_shuffle(best, warp_lane() ^ step);
        if (other.ranks_before(best)) best = other;
    }
    warp_sync();
    return best;
}

#ifndef __CUDACC__
// The step bytes of one of Lanes16::width bands that are filled together.
template <i32 WIDTH> struct LaneSteps {
    const u8* bytes;
    i32 lane;
    HOST_DEVICE u8 at(i32 i, i32 b) const { return bytes[((i64)i * WIDTH + b) * Lanes16::width + lane]; }
};

// Fills Lanes16::width bands without long gaps at once. All scores must fit into 16 bits.
template <i32 WIDTH> struct BandedPaths {
    Lanes16 scores[WIDTH + 1], insertions[WIDTH + 1], letters[2 * WIDTH];  // letters: a ring buffer stored twice
    HOST_DEVICE void set_letter(const Band* bands, i32 column) {
        Lanes16 letter = Lanes16::all(0);
        for (i32 lane = 0; lane < Lanes16::width; ++lane) letter.set(lane, bands[lane].reference_code(column));
        letters[column % WIDTH] = letters[column % WIDTH + WIDTH] = letter;
    }
    HOST_DEVICE static void write(Lanes16 step, u8* bytes) {
        typedef u8 narrow_bytes __attribute__((vector_size(Lanes16::width), aligned(1)));
        *(narrow_bytes*)bytes = __builtin_convertvector(step.value, narrow_bytes);
    }
    // Compute one row of cells. mismatch_score: score of unequal letters.
    template <bool PLAIN> HOST_DEVICE void row(i32 i, Lanes16 query, Lanes16 mismatch_score, Lanes16 bonus,
            const Scoring& scoring, Lanes16* best, u8* steps) {
        const Lanes16 zero = Lanes16::all(0), match = Lanes16::all(scoring.match), never = Lanes16::all(NEVER);
        const Lanes16 delete_open = Lanes16::all(-scoring.deletion_open);
        const Lanes16 delete_extend = Lanes16::all(-scoring.deletion_extend);
        const Lanes16 insert_open = Lanes16::all(-scoring.insertion_open);
        const Lanes16 insert_extend = Lanes16::all(-scoring.insertion_extend);
        Lanes16 deletion = never;
        for (i32 b = 0; b < WIDTH; ++b) {
            Lanes16 letter = letters[i % WIDTH + b], column = select_equal(query, letter, match, mismatch_score);
            if (!PLAIN) {
                Lanes16 outside = Lanes16::all(OUTSIDE), ambiguous = Lanes16::all(REFERENCE_AMBIGUOUS);
                column = select_equal(letter, ambiguous, Lanes16::all(-AMBIGUOUS_PENALTY), column);
                column = select_equal(letter, outside, never, column);
                deletion = select_equal(letter, outside, never, deletion);
            }
            Lanes16 diagonal = scores[b] + bonus + column, opened = scores[b + 1] + insert_open;
            Lanes16 continues = less_mask(opened, insertions[b + 1]);
            Lanes16 insertion = max(opened, insertions[b + 1]) + insert_extend;
            Lanes16 here = max(max(diagonal, zero), max(insertion, deletion));
            Lanes16 step = select_equal(here, insertion, Lanes16::all(INSERTION), Lanes16::all(DELETION));
            step = select_equal(
                    here, zero, Lanes16::all(STOP), select_equal(here, diagonal, Lanes16::all(DIAGONAL), step));
            step = step + select(continues, Lanes16::all(INSERTION_CONTINUES), zero);
            scores[b] = here, insertions[b] = insertion;
            opened = here + delete_open;
            step = step + select(less_mask(opened, deletion), Lanes16::all(DELETION_CONTINUES), zero);
            deletion = max(opened, deletion) + delete_extend;
            write(step, steps + b * Lanes16::width);
            Lanes16 more = less_mask(best[0], here);
            best[0] = max(best[0], here);
            best[1] = select(more, Lanes16::all(i), best[1]);
            best[2] = select(more, Lanes16::all(b), best[2]);
        }
    }
    HOST_DEVICE void fill(const Band* bands, const Scoring& scoring, u8* steps, BestCell* cells) {
        i32 longest = 0;
        bool plain = true;
        for (i32 lane = 0; lane < Lanes16::width; ++lane) {
            longest = maximum(longest, bands[lane].length);
            plain = plain && bands[lane].plain();
        }
        for (i32 b = 0; b < WIDTH; ++b) scores[b] = Lanes16::all(0), insertions[b] = Lanes16::all(NEVER);
        scores[WIDTH] = insertions[WIDTH] = Lanes16::all(NEVER);
        for (i32 column = 0; column + 1 < WIDTH; ++column) set_letter(bands, column);
        Lanes16 best[3] = {Lanes16::all(0), Lanes16::all(-1), Lanes16::all(0)}, query = best[0], mismatch_score = query,
                bonus = query;
        for (i32 i = 0; i < longest; ++i) {
            set_letter(bands, i + WIDTH - 1);
            for (i32 lane = 0; lane < Lanes16::width; ++lane) {
                i32 code = bands[lane].query_code(i);
                query.set(lane, code);
                mismatch_score.set(lane, code == QUERY_AMBIGUOUS ? -AMBIGUOUS_PENALTY : -scoring.mismatch);
                bonus.set(lane, bands[lane].bonus(i, scoring));
            }
            u8* cells_of_row = steps + (i64)i * WIDTH * Lanes16::width;
            if (plain) row<true>(i, query, mismatch_score, bonus, scoring, best, cells_of_row);
            else row<false>(i, query, mismatch_score, bonus, scoring, best, cells_of_row);
        }
        for (i32 lane = 0; lane < Lanes16::width; ++lane)
            cells[lane] = BestCell{best[0].get(lane), best[1].get(lane), best[2].get(lane)};
    }
};
#endif

// Trace the path that ends at the best cell back, and write its CIGAR to `operations`.
template <class Steps> HOST_DEVICE Path trace_path(const Band& band, BestCell best, Steps steps, u32* operations) {
    Cigar cigar = {operations, 0};
    i32 i = best.row, b = best.column;
    cigar.add(CLIPPED, band.length - 1 - i);
    u8 state = DIAGONAL;
    while (i >= 0) {
        u8 step = steps.at(i, b);
        if (state == DIAGONAL) state = step & STEP_BITS;
        if (state == STOP) break;
        if (state == DIAGONAL) {
            cigar.add(MATCHED, 1);
            --i;
        } else if (state == INSERTION || state == LONG_INSERTION) {
            cigar.add(INSERTED, 1);
            if (!(step & (state == INSERTION ? INSERTION_CONTINUES : LONG_INSERTION_CONTINUES))) state = DIAGONAL;
            --i, ++b;
        } else {
            cigar.add(DELETED, 1);
            --b;
            if (!(steps.at(i, b) & (state == DELETION ? DELETION_CONTINUES : LONG_DELETION_CONTINUES)))
                state = DIAGONAL;
        }
    }
    cigar.add(CLIPPED, i + 1);
    cigar.reverse();
    return Path{best.score, band.first + i + 1 + b, cigar.count};
}
