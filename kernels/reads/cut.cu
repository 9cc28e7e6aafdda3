// Where the records of text end: run on the host, as the text arrives, by one thread or a block of it by each.
//
// A record is so many lines. To a block belong the records that begin in it. Where the first one does is told by its lines,
// which nobody can know without those in front: whether each block begins where the one before has ended is seen behind.
#include "common/portable.cuh"

// Of a block whose records are all right.
const i64 NONE_WRONG = 1ll << 62;

// No record is seen to begin within so many bytes.
const i64 UNKNOWN = -1, NEAR = 1 << 20;

// Lines, of which the first begins behind the first newline from `place` on, or at the text's start.
struct Lines {
    i64 starts[8];
    i32 count = 0;  // of starts: one more than of whole lines

    HOST_DEVICE Lines(const u8* text, i64 place, i64 size) {
        i64 end = minimum(place + NEAR, size);
        for (i64 at = place; count < 8; ++count) {
            at = find_byte(text, at, end, '\n') + 1;
            if (at > end) break;
            starts[count] = at;
        }
    }

    // Whether a record begins with one of them.
    HOST_DEVICE bool are_record(const u8* text, i32 line, i32 lines) const {
        if (line + lines >= count) return false;
        const i64* at = starts + line;
        if (lines == 2) return text[at[0]] == '>';
        return text[at[0]] == '@' && text[at[2]] == '+' && at[2] - at[1] == at[4] - at[3];
    }
};

// Where the first record that begins at `place` or behind it does, place > 0; UNKNOWN where its lines do not tell.
HOST_DEVICE i64 first_record(const u8* text, i64 place, i64 size, i32 lines) {
    Lines found(text, place - 1, size);
    for (i32 line = 0; line < lines; ++line)
        if (found.are_record(text, line, lines)) return found.starts[line];
    return UNKNOWN;
}

// An item is a block. ends: the last newline of each of its records, for which it has `room`; found: how many these are.
// begins, stops: where its first record begins, and that behind its last one. checks: of FASTQ, whose records are header,
// bases, '+' and as many qualities. wrong: its first one that is none.
KERNEL void cut_records(i64 begin, i64 end, const u8* text OF(size), i64* ends OF(some), i64* found OF(items),
                        i64* begins OF(items), i64* stops OF(items), i64* wrong OF(items), i64 size, i64 block_bytes,
                        i64 room, i32 lines, bool checks) {
    FOR_EACH_GROUP(block, begin, end) {
        i64 first = block * block_bytes, last = minimum(first + block_bytes, size), count = 0;
        i64 start = first ? first_record(text, first, size, lines) : 0;
        begins[block] = start, wrong[block] = NONE_WRONG;
        while (start != UNKNOWN && start < last && count < room) {
            i64 newlines[4] = {};
            i32 line = 0;
            for (i64 place = start; line < lines; ++line) {
                place = find_byte(text, place, size, '\n');
                if (place == size) break;
                newlines[line] = place++;
            }
            if (line < lines) break;
            if (checks && !(text[start] == '@' && text[newlines[1] + 1] == '+' &&
                            newlines[1] - newlines[0] == newlines[3] - newlines[2])) {
                wrong[block] = count;
                break;
            }
            ends[block * room + count++] = newlines[lines - 1];
            start = newlines[lines - 1] + 1;
        }
        found[block] = count, stops[block] = start;
    }
}
