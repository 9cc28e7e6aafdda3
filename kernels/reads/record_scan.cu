// Where the records of text end: run on the host, as the text arrives, a block of it by each thread, which may read the
// block from the text's file first.
//
// A record is so many lines. A thread cuts those that lie in its block. Where the first one begins is told by its lines,
// which nobody can know without those in front. So whether it does is seen behind, when the records between the blocks'
// own ones are cut, one after the other.
#include "common/portable.cuh"

// No record is seen to begin in a block.
const i64 UNKNOWN = -1;

// What is at a place that is no whole record: the text ends within one, or its lines are not a record's.
const i64 PART = -1, WRONG = -2;

// How cutting ends: with all whole records, before a wrong one, or where a block has no room for its records.
enum Ending { NOT_YET, ALL, BEFORE_WRONG, WITHOUT_ROOM };

// What text is cut into. lines: of a record. checks: of FASTQ, whose records are header, bases, '+' and as many qualities.
struct Format {
    i32 lines;
    bool checks;
};

// Of each block: the last newlines of its records, for which it has `room`, and how many they are; where the first one
// begins, and that behind the last one; and where its text ends, for want of more in the file too.
struct Blocks {
    i64* ends OF(blocks* room);
    i64* found OF(blocks);
    i64* begins OF(blocks);
    i64* stops OF(blocks);
    i64* reached OF(blocks);
    i64 blocks, block_bytes, room;
};

// The last newline of the record that begins at `start`, PART or WRONG.
HOST_DEVICE i64 record_end(const u8* text, i64 start, i64 end, const Format& format) {
    i64 newlines[4] = {}, place = start;
    for (i32 line = 0; line < format.lines; ++line) {
        place = find_byte(text, place, end, '\n');
        if (place == end) return PART;
        newlines[line] = place++;
    }
    bool fits = !format.checks || (text[start] == '@' && text[newlines[1] + 1] == '+' &&
                                   newlines[1] - newlines[0] == newlines[3] - newlines[2]);
    return fits ? newlines[format.lines - 1] : WRONG;
}

// Where the first record behind `place` begins, by its lines.
HOST_DEVICE i64 first_record(const u8* text, i64 place, i64 end, i32 lines) {
    for (i32 line = 0; line < lines; ++line) {
        place = find_byte(text, place, end, '\n') + 1;
        if (place >= end) break;
        bool is_record = lines == 2 ? text[place] == '>' : record_end(text, place, end, Format{4, true}) >= 0;
        if (is_record) return place;
    }
    return UNKNOWN;
}

// Cuts a block whose text is there as far as `end`.
HOST_DEVICE void cut_block(const u8* text, i64 block, i64 end, const Blocks& blocks, const Format& format) {
    i64 first = block * blocks.block_bytes, count = 0;
    i64 start = block ? first_record(text, first, end, format.lines) : 0;
    blocks.begins[block] = start, blocks.reached[block] = end;
    while (start != UNKNOWN && count < blocks.room) {
        i64 last = record_end(text, start, end, format);
        if (last < 0) break;
        blocks.ends[block * blocks.room + count++] = last;
        start = last + 1;
    }
    blocks.found[block] = count, blocks.stops[block] = start;
}

// An item is a block.
KERNEL void cut_blocks(WarpItems items, const u8* text OF(size), Blocks blocks, Format format, i64 size) {
    FOR_EACH(block, items) {
        cut_block(text, block, minimum((block + 1) * blocks.block_bytes, size), blocks, format);
    }
}

// The same of text that is there as far as `filled`; the rest is read from a file first, from `offset` on.
KERNEL void read_blocks(WarpItems items, u8* text OF(size), Blocks blocks, Format format, i64 size, i32 file,
                        i64 filled, i64 offset) {
    FOR_EACH(block, items) {
        i64 last = minimum((block + 1) * blocks.block_bytes, size), at = maximum(block * blocks.block_bytes, filled);
        while (at < last) {
            i64 count = read_file(file, text + at, last - at, offset + at - filled);
            if (count <= 0) break;
            at += count;
        }
        cut_block(text, block, minimum(at, last), blocks, format);
    }
}

// Cuts the records that begin from `at` on in front of `to`, one after the other, and puts them behind those of a block.
HOST_DEVICE Ending cut_between(const u8* text, i64& at, i64 to, i64 end, i64 block, const Blocks& blocks,
                               const Format& format) {
    while (at < to) {
        i64 last = record_end(text, at, end, format);
        if (last < 0) return last == WRONG ? BEFORE_WRONG : ALL;
        if (blocks.found[block] == blocks.room) return WITHOUT_ROOM;
        blocks.ends[block * blocks.room + blocks.found[block]++] = last;
        at = last + 1;
    }
    return NOT_YET;
}

// One item: cuts what lies between the blocks' own records, and anew what begins elsewhere than a block thought; then puts
// the ends of all records side by side, from the front on. told: how many they are, where the last one ends, how far the
// text goes, and the Ending.
KERNEL void join_blocks(WarpItems items, const u8* text OF(size), Blocks blocks, Format format, i64 size,
                        i64* told OF(4)) {
    FOR_EACH(item, items) {
        i64 whole = 0, block = 0, at = 0;
        for (i64 i = 0; i < blocks.blocks && whole == i * blocks.block_bytes; ++i) whole = blocks.reached[i];
        Ending ending = NOT_YET;
        for (; !ending && block * blocks.block_bytes < whole; ++block) {
            i64 own = blocks.begins[block], last = minimum((block + 1) * blocks.block_bytes, whole);
            if (block) ending = cut_between(text, at, own, whole, block - 1, blocks, format);
            bool is_right = !ending && own == at;
            if (is_right) at = blocks.stops[block];
            else blocks.found[block] = 0;
            if (!ending && !is_right) ending = cut_between(text, at, last, whole, block, blocks, format);
        }
        if (!ending && block) ending = cut_between(text, at, whole, whole, block - 1, blocks, format);
        i64 count = 0;
        for (i64 i = 0; i < block; ++i) {
            for (i64 j = 0; j < blocks.found[i]; ++j) blocks.ends[count++] = blocks.ends[i * blocks.room + j];
        }
        told[0] = count, told[1] = at, told[2] = whole, told[3] = ending ? ending : ALL;
    }
}
