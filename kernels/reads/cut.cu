// Where the records of text end: run on the host, as the text arrives, by one thread or a block of it by each.
//
// A record is so many lines, so that the newlines in front of a block say where the first record behind them begins. To a
// block belong the records behind its newlines, and to the first one that at the text's start too.
#include "common/portable.cuh"

// Of a block whose records are all right.
const i64 NONE_WRONG = 1ll << 62;

// An item is a block.
KERNEL void count_lines(i64 begin, i64 end, const u8* text OF(size), i64* counts OF(items), i64 size, i64 block_bytes) {
    FOR_EACH_GROUP(block, begin, end) {
        i64 last = minimum((block + 1) * block_bytes, size), count = 0;
        for (i64 i = block * block_bytes; i < last;) {
            i64 part = minimum(i + 128, last);
            u8 found = 0;  // of few bytes, so that many are compared at once
            for (; i < part; ++i) found += text[i] == '\n';
            count += found;
        }
        counts[block] = count;
    }
}

// before: the lines that end in front of each block. ends: the last newline of each record. checks: of FASTQ, whose records
// are header, bases, '+' and as many qualities. found: the records up to the block's last one. wrong: its first one that is
// none.
KERNEL void cut_records(i64 begin, i64 end, const u8* text OF(size), const i64* before OF(items), i64* ends OF(some),
                        i64* found OF(items), i64* wrong OF(items), i64 size, i64 block_bytes, i32 lines, bool checks) {
    FOR_EACH_GROUP(block, begin, end) {
        i64 first = block * block_bytes, last = minimum(first + block_bytes, size);
        i64 record = block ? before[block] / lines + 1 : 0, start = first;
        for (i64 left = record * lines - before[block]; left && start <= last; --left)
            start = find_byte(text, start, last, '\n') + 1;
        found[block] = 0, wrong[block] = NONE_WRONG;
        while (start <= last) {
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
                wrong[block] = record;
                break;
            }
            ends[record++] = newlines[lines - 1];
            found[block] = record;
            start = newlines[lines - 1] + 1;
        }
    }
}
