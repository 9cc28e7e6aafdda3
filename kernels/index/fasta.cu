// FASTA -> the text of the reference, chunk by chunk: upper-case letters, U as T, and a 0 before every contig; then its
// packed words and barriers.
//
// The bytes of a chunk follow the last byte of the previous chunk and are processed in blocks. A line that starts with
// '>' is a header. Two kernels, because the previous blocks must be measured to know if a block starts in a header.
#include "common/binary_search.cuh"
#include "common/packed.cuh"

const i64 BLOCK = 1 << 14;
// The state at the end of a block: in sequence, in a header, or unchanged, because no line ends in the block.
enum BlockEnd { IN_SEQUENCE, IN_HEADER, UNCHANGED };

// Return the position of the first '>' at the start of a line in [position, end), or `end`.
HOST_DEVICE i64 find_header(const u8* bytes, i64 position, i64 end) {
    for (; (position = find_byte(bytes, position, end, '>')) < end; ++position)
        if (bytes[position - 1] == '\n') break;
    return position;
}

// Return the number of bytes in [start, end) except newlines and carriage returns.
HOST_DEVICE i64 count_letters(const u8* bytes, i64 start, i64 end) {
    i32 breaks = 0;
    for (i64 i = start; i < end; ++i) breaks += (bytes[i] == '\n') | (bytes[i] == '\r');
    return end - start - breaks;
}

// Measure each block. letters: sequence letters, if it does not start in a header; leads: letters of its first line,
// not sequence if the block starts in a header; headers: headers that start in the block; ends: the BlockEnd.
KERNEL void measure_blocks(Items items, const u8* bytes OF(size), i64* letters OF(items), i64* leads OF(items),
        i64* headers OF(items), u8* ends OF(items), i64 size) {
    FOR_EACH(block, items) {
        i64 first = 1 + block * BLOCK, last = minimum(first + BLOCK, size);
        i64 line_end = find_byte(bytes, first, last, '\n'), position = first, header, count = 0, found = 0;
        u8 state = line_end < last ? IN_SEQUENCE : UNCHANGED;
        for (; (header = find_header(bytes, position, last)) < last; ++found) {
            count += count_letters(bytes, position, header);
            position = find_byte(bytes, header, last, '\n');
            state = position < last ? IN_SEQUENCE : IN_HEADER;
        }
        letters[block] = count + count_letters(bytes, position, last);
        leads[block] = count_letters(bytes, first, line_end);
        headers[block] = found;
        ends[block] = state;
    }
}

// bytes[start] is '>', bytes[end] the newline or the chunk's end; text[text_start] is the first letter of the contig.
struct Header {
    i64 start, end, text_start;
};

// Return a nucleotide's letter in upper case, U as T.
HOST_DEVICE u8 upper_case(u8 letter) {
    letter &= 0xDF;
    return letter == 'U' ? 'T' : letter;
}

// Copy a line with an unusual byte to `next` and return the end: skip carriage returns, store in error[0] the position
// of a byte that is no nucleotide, if it is smaller.
NOINLINE u8* gather_checked(const u8* bytes, i64 start, i64 end, u8* next, u64* error) {
    for (i64 i = start; i < end; ++i) {
        if (bytes[i] == '\r') continue;
        if (base_code(bytes[i]) == 5) atomic_min(error, (u64)i);
        *next++ = upper_case(bytes[i]);
    }
    return next;
}

// Return 0 for the upper-case letters that base_code accepts, else 1; the comparisons can be vectorized.
HOST_DEVICE u8 wrong_letter(u8 letter) {
    return (u8)((u8)(letter - 'A') > 3) & (u8)((u8)(letter - 'G') > 1) & (u8)(letter != 'K') &
            (u8)((u8)(letter - 'M') > 1) & (u8)((u8)(letter - 'R') > 5) & (u8)(letter != 'Y');
}

// Copy `count` letters in upper case to `next`; return true if all of them are nucleotides.
HOST_DEVICE bool gather_letters(const u8* __restrict__ bytes, u8* __restrict__ next, i64 count) {
    u8 bad = 0;
    for (i64 i = 0; i < count; ++i) {
        u8 letter = upper_case(bytes[i]);
        next[i] = letter;
        bad |= wrong_letter(letter);
    }
    return !bad;
}

const i64 VECTOR_LETTERS = 32;  // letters that are copied at once: one vector
// Copy the sequence lines in [start, end) in upper case to `next`, and return its end. error: as in gather_checked.
HOST_DEVICE u8* gather(const u8* bytes, i64 start, i64 end, u8* next, u64* error) {
    for (i64 line_end; start < end; start = line_end + 1) {
        line_end = find_byte(bytes, start, end, '\n');
        // Only a carriage return at the line's end is allowed here: `text` has no room for more of them.
        i64 length = find_byte(bytes, start, line_end, '\r') - start;
        const u8* line = bytes + start;
        bool good = start + length + 1 >= line_end;
        for (i64 i = 0; good && i + VECTOR_LETTERS <= length; i += VECTOR_LETTERS)
            good = gather_letters(line + i, next + i, VECTOR_LETTERS);
        // The last vector overlaps the one before.
        if (good && length >= VECTOR_LETTERS)
            good = gather_letters(line + length - VECTOR_LETTERS, next + length - VECTOR_LETTERS, VECTOR_LETTERS);
        else if (good) good = gather_letters(line, next, length);
        next = good ? next + length : gather_checked(bytes, start, line_end, next, error);
    }
    return next;
}

// Write the text of each block (item) and its headers. kept: the last letters of the previous chunk, with which the
// text starts; in_header: the block starts in a header; text_ends, header_ends: inclusive sums over the blocks.
// error[0]: lowered to the position of a byte in a sequence that is no nucleotide.
KERNEL void gather_text(Items items, const u8* bytes OF(size), const u8* kept OF(kept_count),
        const bool* in_header OF(items), const i64* text_ends OF(items), const i64* header_ends OF(items),
        u8* text OF(any), Header* headers OF(any), u64* error OF(1), i64 size, i64 kept_count) {
    FOR_EACH(block, items) {
        for (i64 i = 0; block == 0 && i < kept_count; ++i) text[i] = kept[i];
        i64 first = 1 + block * BLOCK, last = minimum(first + BLOCK, size);
        i64 position = in_header[block] ? find_byte(bytes, first, last, '\n') : first, found = 0;
        u8* next = text + (block ? text_ends[block - 1] : kept_count);
        Header* header = headers + (block ? header_ends[block - 1] : 0);
        for (; position < last; position = (header++)->end) {
            found = find_header(bytes, position, last);
            next = gather(bytes, position, found, next, error);
            if (found == last) break;
            *next++ = 0;
            *header = Header{found, find_byte(bytes, found, size, '\n'), next - text};
        }
    }
}

const i64 RUN = 64;   // words packed by one item
const i64 WORD = 32;  // letters
// The codes of eight letters, 0 for letters other than A, C, G and T; `others` has a 1 in the byte of each such letter.
struct EightCodes {
    u64 codes, others;
    HOST_DEVICE explicit EightCodes(u64 letters) {
        const u64 ones = 0x0101010101010101ull;
        codes = (letters >> 1 ^ letters >> 2) & 3 * ones;
        u64 low = codes & ones, high = codes >> 1 & ones;
        u64 wrong = letters ^ (0x41 * ones + 2 * low + 6 * high + 11 * (low & high));  // from A, C, G, T
        others = (((wrong & 0x7F * ones) + 0x7F * ones) | wrong) >> 7 & ones;
        codes &= ~(3 * others);
    }
    // Return the codes in 16 bits, the first letter in the high bits.
    HOST_DEVICE u64 packed() const {
        u64 pairs = (codes & 0x00FF00FF00FF00FFull) << 2 | (codes >> 8 & 0x00FF00FF00FF00FFull);
        u64 fours = (pairs & 0x0000FFFF0000FFFFull) << 4 | (pairs >> 16 & 0x0000FFFF0000FFFFull);
        return (fours & 0xFFFFFFFFull) << 8 | fours >> 32;
    }
};

HOST_DEVICE bool is_base(u8 letter) { return base_code(letter) < 4; }
// The positions of an item's new letters; each is compared with the letter before it.
struct Run {
    i64 start, end;
    HOST_DEVICE Run(i64 item, i64 fresh, i64 size)
        : start(maximum(WORD + item * RUN * WORD, fresh)), end(minimum(WORD + (item + 1) * RUN * WORD, size)) {}
};

// Pack RUN words (an item): words[i] has the letters from text[WORD + WORD * i], with A after the end. starts, ends:
// the number of barriers (runs of one ambiguous letter) that start and end at positions not less than `fresh`.
KERNEL void pack_text(Items items, const u8* text OF(size), u64* words OF(word_count), i64* starts OF(items),
        i64* ends OF(items), i64 size, i64 word_count, i64 fresh) {
    FOR_EACH(item, items) {
        u64 others = 0;
        for (i64 word = item * RUN; word < minimum((item + 1) * RUN, word_count); ++word) {
            const u8* letters = text + WORD + word * WORD;
            alignas(8) u8 padded[WORD];
            if (WORD + (word + 1) * WORD > size) {
                for (i64 i = 0; i < WORD; ++i) padded[i] = letters + i < text + size ? letters[i] : 'A';
                letters = padded;
            }
            u64 packed = 0;
            for (i32 i = 0; i < WORD; i += 8) {
                EightCodes eight(load_u64(letters + i));
                packed = packed << 16 | eight.packed();
                others |= eight.others;
            }
            words[word] = packed;
        }
        Run run(item, fresh, size);
        i64 started = 0, ended = 0;
        if (run.start < run.end && (others || !is_base(text[run.start - 1])))
            for (i64 i = run.start; i < run.end; ++i)
                if (text[i] != text[i - 1]) started += !is_base(text[i]), ended += !is_base(text[i - 1]);
        starts[item] = started, ends[item] = ended;
    }
}

// Write the barriers of the items `chosen` of pack_text: starts, letters and ends. started, ended: inclusive sums of
// the counts of the chosen items; fresh: as in pack_text; origin: position of text[0] in the reference.
KERNEL void find_barriers(Items items, const u8* text OF(size), const i64* chosen OF(items),
        const i64* started OF(items), const i64* ended OF(items), i64* starts OF(start_count),
        u8* letters OF(start_count), i64* ends OF(end_count), i64 size, i64 start_count, i64 end_count, i64 fresh,
        i64 origin) {
    FOR_EACH(item, items) {
        Run run(chosen[item], fresh, size);
        i64 start = item ? started[item - 1] : 0, stop = item ? ended[item - 1] : 0;
        for (i64 i = run.start; i < run.end; ++i) {
            if (text[i] == text[i - 1]) continue;
            if (!is_base(text[i - 1])) ends[stop++] = origin + i;
            if (is_base(text[i])) continue;
            letters[start] = text[i];
            starts[start++] = origin + i;
        }
    }
}

// Write a bitmap of the blocks of 64 positions that a barrier overlaps. An item is a word of 64 bits.
KERNEL void mark_barriers(Items items, const i64* barrier_starts OF(barriers), const i64* barrier_ends OF(barriers),
        u64* blocks OF(items), i64 barriers) {
    FOR_EACH(word, items) {
        i64 first = word * 4096, last = first + 4096;
        u64 marks = 0;
        for (i64 i = upper_bound(barrier_ends, barriers, first); i < barriers && barrier_starts[i] < last; ++i) {
            i64 from = (maximum(barrier_starts[i], first) - first) / 64;
            i64 to = (minimum(barrier_ends[i], last) - 1 - first) / 64;
            marks |= ~0ull << from & ~0ull >> (63 - to);
        }
        blocks[word] = marks;
    }
}
