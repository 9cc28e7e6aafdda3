// Find the newlines of a chunk of reads, then the name, sequence and qualities of each record.
//
// A chunk starts at a record and ends with the newline of its last record. FASTQ has four lines per record; FASTA has
// two, its sequence lines are already joined. The records of two files follow each other in the chunk; in the output
// mates are neighbours: R1, R2, R1, R2. All errors are combined into one word, the minimum of (read << 8 | code) with
// the read's index in the output, so the first invalid read is reported regardless of the thread that finds it.
#include "reads/read_headers.cuh"
#include "reads/queries.cuh"

// The smallest code of an invalid record is reported.
enum RecordError {
    NO_HEADER = 1,
    NO_SEPARATOR,
    QUALITY_LENGTH,
    NOT_A_BASE,
    TOO_LONG,
    QUALITY_RANGE,
    MATE_NAMES,
    NOT_TAGS,
    NOT_A_NAME,
    OTHER_NAME
};

const i64 SLICE_BYTES = 4096;

// Lower the error word to (read << 8 | code) of an invalid read.
HOST_DEVICE void report(u64* error, i64 read, RecordError code) { atomic_min(error, (u64)read << 8 | (u64)code); }
// Count the newlines of each slice. An item is a slice of SLICE_BYTES.
KERNEL void count_newlines(Items items, const u8* bytes OF(size), i64* counts OF(items), i64 size) {
    FOR_EACH(slice, items) {
        i64 last = minimum((slice + 1) * SLICE_BYTES, size);
        i32 count = 0;
        for (i64 i = slice * SLICE_BYTES; i < last; ++i) count += bytes[i] == '\n';
        counts[slice] = count;
    }
}

// Return a word with the highest bit of each byte set if that byte of `bytes` is a newline, and no other bit.
HOST_DEVICE u64 newlines_of(u64 bytes) {
    const u64 low = 0x7F7F7F7F7F7F7F7Full;
    u64 others = bytes ^ 0x0A0A0A0A0A0A0A0Aull;
    return ~(((others & low) + low) | others | low);
}

// Write the positions of all newlines. An item is a slice; ends: the inclusive sums of count_newlines.
KERNEL void find_newlines(
        Items items, const u8* bytes OF(size), const i64* ends OF(items), i64* line_ends OF(any), i64 size) {
    FOR_EACH(slice, items) {
        i64 last = minimum((slice + 1) * SLICE_BYTES, size);
        i64 next = slice ? ends[slice - 1] : 0, i = slice * SLICE_BYTES;
        for (; i + 8 <= last; i += 8)
            for (u64 marks = newlines_of(load_u64(bytes + i)); marks; marks &= marks - 1)
                line_ends[next++] = i + popcount((marks & -marks) - 1) / 8;
        for (; i < last; ++i)
            if (bytes[i] == '\n') line_ends[next++] = i;
    }
}

struct Line {
    i64 start, end;  // without CR and LF
};

// Return line `index` without its line end; line_ends: the positions of all newlines.
HOST_DEVICE Line line(const u8* bytes, const i64* line_ends, i64 index) {
    i64 start = index ? line_ends[index - 1] + 1 : 0, end = line_ends[index];
    return Line{start, end > start && bytes[end - 1] == '\r' ? end - 1 : end};
}

// Return the part of a line before its first blank or tab.
HOST_DEVICE Line first_word(const u8* bytes, Line text) {
    i64 end = text.start;
    while (end < text.end && bytes[end] != ' ' && bytes[end] != '\t') ++end;
    return Line{text.start, end};
}

// Return a read name without a trailing /1 or /2.
HOST_DEVICE Line without_mate(const u8* bytes, Line name) {
    return Line{name.start, name.start + without_mate_number(bytes + name.start, name.end - name.start)};
}
// Return true for a read name that SAM allows: [!-?A-~]{1,254}.
HOST_DEVICE bool is_name(const u8* bytes, Line name) {
    i32 bad = 0;
    for (i64 i = name.start; i < name.end; ++i) bad |= bytes[i] < '!' || bytes[i] > '~' || bytes[i] == '@';
    return !bad && name.start < name.end && name.end - name.start <= MAX_NAME_LENGTH;
}

// Return true if the separator line is '+' alone or '+' and the read's name.
HOST_DEVICE bool is_separator_of(const u8* bytes, Line separator, Line name) {
    Line again = first_word(bytes, Line{separator.start + 1, separator.end});
    if (again.start == again.end) return true;
    bool same = again.end - again.start == name.end - name.start;
    for (i64 i = 0; same && i < name.end - name.start; ++i) same = bytes[again.start + i] == bytes[name.start + i];
    return same;
}

// Return true if all letters of a line are IUPAC nucleotides.
HOST_DEVICE bool all_bases(const u8* bytes, Line sequence) {
    i32 bad = 0;
    for (i64 i = sequence.start; i < sequence.end; ++i) bad |= base_code(bytes[i]) == 5;
    return !bad;
}

// Return true if all bytes of a line are valid FASTQ qualities, '!' to '~'.
HOST_DEVICE bool all_printable(const u8* bytes, Line quality) {
    i32 bad = 0;
    for (i64 i = quality.start; i < quality.end; ++i) bad |= bytes[i] < '!' || bytes[i] > '~';
    return !bad;
}

// Parse each record (item): write where its name, bases and qualities (-1 for FASTA) start and the lengths, by read.
// line_ends: positions of all newlines; records: the total of all files; error: lowered to read << 8 | RecordError.
KERNEL void parse_records(Items items, const u8* bytes OF(any), const i64* line_ends OF(lines_per_record* records),
        i64* name_starts OF(records), i32* name_lengths OF(records), i64* sequence_starts OF(records),
        i32* lengths OF(records), i64* quality_starts OF(records), u64* error OF(1), i64 lines_per_record,
        i64 max_read_length, i64 records, i64 files) {
    i64 records_per_file = records / files;
    FOR_EACH(record, items) {
        i64 read = record % records_per_file * files + record / records_per_file;
        i64 first = record * lines_per_record;
        Line header = line(bytes, line_ends, first), sequence = line(bytes, line_ends, first + 1);
        i64 length = sequence.end - sequence.start;
        if (header.start == header.end || bytes[header.start] != (lines_per_record == 4 ? '@' : '>'))
            report(error, read, NO_HEADER);
        ++header.start;
        Line word = first_word(bytes, header), name = without_mate(bytes, word);
        if (!is_name(bytes, name)) report(error, read, NOT_A_NAME);
        if (!all_bases(bytes, sequence)) report(error, read, NOT_A_BASE);
        if (length > max_read_length) report(error, read, TOO_LONG);
        i64 quality_start = -1;
        if (lines_per_record == 4) {
            Line separator = line(bytes, line_ends, first + 2), quality = line(bytes, line_ends, first + 3);
            if (separator.start == separator.end || bytes[separator.start] != '+') report(error, read, NO_SEPARATOR);
            else if (!is_separator_of(bytes, separator, word)) report(error, read, OTHER_NAME);
            if (quality.end - quality.start != length) report(error, read, QUALITY_LENGTH);
            if (!all_printable(bytes, quality)) report(error, read, QUALITY_RANGE);
            quality_start = quality.start;
        }
        name_starts[read] = name.start;
        name_lengths[read] = (i32)(name.end - name.start);
        sequence_starts[read] = sequence.start;
        lengths[read] = (i32)length;
        quality_starts[read] = quality_start;
    }
}

// Return true if reads `one` and `other` have the same name.
HOST_DEVICE bool have_same_names(const u8* bytes, const i64* name_starts, const i32* name_lengths, i64 one, i64 other) {
    const u8 *first = bytes + name_starts[one], *second = bytes + name_starts[other];
    i32 length = name_lengths[one];
    bool same = length == name_lengths[other];
    for (i32 i = 0; same && i < length; ++i) same = first[i] == second[i];
    return same;
}

// same[read] = 1 if a read has the same name as the read before it, else 0.
KERNEL void mark_same_names(Items items, const u8* bytes OF(any), const i64* name_starts OF(items),
        const i32* name_lengths OF(items), u8* same OF(items)) {
    FOR_EACH(read, items) same[read] = read > 0 && have_same_names(bytes, name_starts, name_lengths, read - 1, read);
}

// Gather reads into slots of pairs. An item is a slot; slots: the index of its read, or -1 for an absent mate.
KERNEL void gather_reads(Items items, const i64* slots OF(items), const i64* name_starts OF(reads),
        const i32* name_lengths OF(reads), const i64* sequence_starts OF(reads), const i32* lengths OF(reads),
        const i64* quality_starts OF(reads), const u8* marks OF(reads), i64* new_name_starts OF(items),
        i32* new_name_lengths OF(items), i64* new_sequence_starts OF(items), i32* new_lengths OF(items),
        i64* new_quality_starts OF(items), u8* new_marks OF(items), i64 reads) {
    FOR_EACH(slot, items) {
        i64 read = slots[slot];
        bool is_present = read >= 0;
        new_name_starts[slot] = is_present ? name_starts[read] : 0;
        new_name_lengths[slot] = is_present ? name_lengths[read] : 0;
        new_sequence_starts[slot] = is_present ? sequence_starts[read] : 0;
        new_lengths[slot] = is_present ? lengths[read] : 0;
        new_quality_starts[slot] = is_present ? quality_starts[read] : -1;
        new_marks[slot] = is_present ? marks[read] : READ_ABSENT;
    }
}

// Report MATE_NAMES for the second read of each pair (item) whose names differ. error: see `report`.
KERNEL void compare_names(Items items, const u8* bytes OF(any), const i64* name_starts OF(2 * items),
        const i32* name_lengths OF(2 * items), u64* error OF(1)) {
    FOR_EACH(pair, items) {
        if (!have_same_names(bytes, name_starts, name_lengths, 2 * pair, 2 * pair + 1))
            report(error, 2 * pair + 1, MATE_NAMES);
    }
}

// Report a comment that is neither SAM tags nor Illumina's; mark a read (item) that Illumina calls failed READ_FAILED.
KERNEL void check_comments(
        Items items, const u8* bytes OF(any), const i64* name_starts OF(items), u8* marks OF(items), u64* error OF(1)) {
    FOR_EACH(record, items) {
        TextSpan comment = comment_of(bytes + name_starts[record]);
        IlluminaComment illumina = illumina_comment(comment);
        if (illumina.has_failed) marks[record] |= READ_FAILED;
        if (!illumina.is_valid && !are_tags(comment)) report(error, record, NOT_TAGS);
    }
}
