// One banded alignment with its path: the recurrence of smith_waterman.cuh, one pair, with a byte a cell that says
// where the cell's scores came from. Of equal paths the one is taken that leaves the diagonal last on the way
// back, so that gaps stand as far left on the forward reference as they can.
#pragma once
#include "search/band.cuh"
#include "search/scoring.cuh"
#include "search/smith_waterman.cuh"

enum Step {
    STOP = 0,
    DIAGONAL = 1,
    INSERTION = 2,
    DELETION = 3,
    LONG_INSERTION = 4,
    LONG_DELETION = 5,
    STEP_BITS = 7,
    INSERTION_LONGER = 8,
    DELETION_LONGER = 16,
    LONG_INSERTION_LONGER = 32,
    LONG_DELETION_LONGER = 64,
};
enum CigarOperation { MATCHED = 0, INSERTED = 1, DELETED = 2, CLIPPED = 4, CUT_OFF = 5 };

struct Path {
    i32 score;  // with bonuses
    i64 reference_start;
    i32 operations;
};

// Appends to a CIGAR that is built from its end; equal neighbours are merged.
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

HOST_DEVICE i32 column_score(i32 query, i32 text, const Scoring& scoring) {
    if (text == OUTSIDE) return NEVER;
    if (query > 3 || text > 3) return -AMBIGUOUS_PENALTY;
    return query == text ? scoring.match : -scoring.mismatch;
}

// The bytes of the cells, eight to a word; the words of consecutive pairs may be interleaved, so that the threads of a
// warp write neighbouring ones.
template <i32 WIDTH> struct Steps {
    u64* words;
    i64 stride;

    HOST_DEVICE void put(i32 i, i32 b, u64 eight) { words[((i64)i * WIDTH + b >> 3) * stride] = eight; }
    HOST_DEVICE u8 get(i32 i, i32 b) const { return (u8)(words[((i64)i * WIDTH + b >> 3) * stride] >> 8 * (b & 7)); }
};

// The best cell of a band.
struct BestCell {
    i32 score, row, column;
};

// Every cell's step, and the best cell.
template <i32 WIDTH> HOST_DEVICE BestCell fill_steps(const Band& band, const Scoring& scoring, Steps<WIDTH> steps) {
    const bool long_gaps = has_long_gaps(WIDTH);
    i32 scores[WIDTH + 1], insertions[WIDTH + 1], long_insertions[long_gaps ? WIDTH + 1 : 1];
    u8 text[2 * WIDTH];  // a ring written twice: columns 0.. of row i at i % WIDTH..
    BestCell best = {0, -1, 0};
    for (i32 b = 0; b <= WIDTH; ++b) {
        scores[b] = b < WIDTH ? 0 : NEVER;
        insertions[b] = NEVER;
        if (long_gaps) long_insertions[b] = NEVER;
    }
    for (i32 b = 0; b + 1 < WIDTH; ++b) text[b] = text[b + WIDTH] = (u8)band.text_code(b);
    for (i32 i = 0; i < band.length; ++i) {
        i32 deletion = NEVER, long_deletion = NEVER, query = band.query_code(i), newest = (i + WIDTH - 1) % WIDTH;
        i32 bonus = ((i == 0) + (i + 1 == band.length)) * scoring.clip_penalty;
        const u8* letters = text + i % WIDTH;
        text[newest] = text[newest + WIDTH] = (u8)band.text_code(i + WIDTH - 1);
        u64 eight = 0;
        for (i32 b = 0; b < WIDTH; ++b) {
            i32 letter = letters[b], diagonal = scores[b] + bonus + column_score(query, letter, scoring);
            if (letter == OUTSIDE) deletion = long_deletion = NEVER;
            i32 opened = scores[b + 1] - scoring.gap_open,
                insertion = maximum(opened, insertions[b + 1]) - scoring.gap_extend;
            u64 step = insertions[b + 1] > opened ? INSERTION_LONGER : 0;
            i32 here = maximum(maximum(diagonal, 0), maximum(insertion, deletion)), long_insertion = NEVER;
            if (long_gaps) {
                i32 leapt = scores[b + 1] - scoring.long_gap;
                long_insertion = maximum(leapt, long_insertions[b + 1]);
                if (long_insertions[b + 1] > leapt) step |= LONG_INSERTION_LONGER;
                here = maximum(here, maximum(long_insertion, long_deletion));
                long_insertions[b] = long_insertion;
            }
            if (here == 0) step |= STOP;
            else if (here == diagonal) step |= DIAGONAL;
            else if (here == insertion) step |= INSERTION;
            else if (here == deletion) step |= DELETION;
            else step |= here == long_insertion ? LONG_INSERTION : LONG_DELETION;
            scores[b] = here;
            insertions[b] = insertion;
            if (here > best.score) best = BestCell{here, i, b};
            // Of the deletions that begin in the next column.
            opened = here - scoring.gap_open;
            if (deletion > opened) step |= DELETION_LONGER;
            deletion = maximum(opened, deletion) - scoring.gap_extend;
            if (long_gaps) {
                if (long_deletion > here - scoring.long_gap) step |= LONG_DELETION_LONGER;
                long_deletion = maximum(here - scoring.long_gap, long_deletion);
            }
            eight |= step << 8 * (b & 7);
            if ((b & 7) == 7) steps.put(i, b, eight), eight = 0;
        }
    }
    return best;
}

// operations: room for the CIGAR.
template <i32 WIDTH>
HOST_DEVICE Path trace(const Band& band, const Scoring& scoring, Steps<WIDTH> steps, u32* operations) {
    Cigar cigar = {operations, 0};
    BestCell best = fill_steps(band, scoring, steps);
    i32 i = best.row, b = best.column;
    cigar.add(CLIPPED, band.length - 1 - i);
    u8 state = DIAGONAL;
    while (i >= 0) {
        u8 step = steps.get(i, b);
        if (state == DIAGONAL) state = step & STEP_BITS;
        if (state == STOP) break;
        if (state == DIAGONAL) {
            cigar.add(MATCHED, 1);
            --i;
        } else if (state == INSERTION || state == LONG_INSERTION) {
            cigar.add(INSERTED, 1);
            if (!(step & (state == INSERTION ? INSERTION_LONGER : LONG_INSERTION_LONGER))) state = DIAGONAL;
            --i, ++b;
        } else {
            cigar.add(DELETED, 1);
            --b;
            if (!(steps.get(i, b) & (state == DELETION ? DELETION_LONGER : LONG_DELETION_LONGER))) state = DIAGONAL;
        }
    }
    cigar.add(CLIPPED, i + 1);
    cigar.reverse();
    return Path{best.score, band.first + i + 1 + b, cigar.count};
}
