// Where the records of text end: run on the host, as the text arrives.
#include "common/portable.cuh"

// One item: from the first record on. ends: the last newline of each record of so many lines. checks: of FASTQ, whose records
// are header, bases, '+' and as many qualities. found: how many there are, and whether another one of so many lines is none.
KERNEL void cut_records(i64 begin, i64 end, const u8* text OF(size), i64* ends OF(some), i64* found OF(2), i64 size,
                        i32 lines, bool checks) {
    FOR_EACH(item, begin, end) {
        i64 count = 0, start = 0, newlines[4] = {};
        bool right = true;
        for (;; start = newlines[lines - 1] + 1) {
            i32 line = 0;
            for (i64 place = start; line < lines; ++line) {
                place = find_byte(text, place, size, '\n');
                if (place == size) break;
                newlines[line] = place++;
            }
            if (line < lines) break;
            if (checks)
                right = text[start] == '@' && text[newlines[1] + 1] == '+' &&
                        newlines[1] - newlines[0] == newlines[3] - newlines[2];
            if (!right) break;
            ends[count++] = newlines[lines - 1];
        }
        found[0] = count, found[1] = !right;
    }
}
