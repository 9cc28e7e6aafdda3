// Find where the records of FASTQ or FASTA text end. On the host, a thread scans a segment in memory or a file.
//
// A record is a fixed number of lines, so its start is certain only once all lines before it are counted. A thread
// guesses the first record of its segment from the lines' contents; join_segments repairs wrong guesses.
#include "common/portable.cuh"

const i64 UNKNOWN = -1;  // the first record of a segment was not found
// Results of record_end if there is no valid record: the text ends within the record, or its lines are not FASTQ.
const i64 INCOMPLETE = -1, INVALID = -2;
// Why a scan ended: after all complete records, before an invalid record, or because a segment's ends do not fit.
enum ScanEnd { RUNNING, COMPLETE, BEFORE_INVALID, OUT_OF_SPACE };

// Lines per record, and whether records must be FASTQ: header, bases, '+' and qualities, one per base.
struct ScanFormat {
    i32 lines;
    bool checks_fastq;
};

// The segments of a text, `segment_bytes` long, with space for `capacity` records each.
struct Segments {
    i64* record_ends OF(count* capacity);  // the last newline of each record
    i64* record_counts OF(count);
    i64* first_starts OF(count);  // start of the first record, or UNKNOWN
    i64* next_starts OF(count);   // start of the first record after the scanned ones
    i64* text_ends OF(count);     // end of the segment's text; short if the file ended
    i64 count, segment_bytes, capacity;
};

// Return the position of the last newline of the record that starts at `start`, or INCOMPLETE or INVALID.
HOST_DEVICE i64 record_end(const u8* text, i64 start, i64 end, const ScanFormat& format) {
    i64 newlines[4] = {}, position = start;
    for (i32 line = 0; line < format.lines; ++line) {
        position = find_byte(text, position, end, '\n');
        if (position == end) return INCOMPLETE;
        newlines[line] = position++;
    }
    bool is_valid = !format.checks_fastq ||
            (text[start] == '@' && text[newlines[1] + 1] == '+' &&
                    newlines[1] - newlines[0] == newlines[3] - newlines[2]);
    return is_valid ? newlines[format.lines - 1] : INVALID;
}

// Return the start of the first record after `position`, guessed from the contents of the lines, or UNKNOWN.
HOST_DEVICE i64 guess_first_record(const u8* text, i64 position, i64 end, i32 lines) {
    for (i32 line = 0; line < lines; ++line) {
        position = find_byte(text, position, end, '\n') + 1;
        if (position >= end) break;
        bool is_record = lines == 2 ? text[position] == '>' : record_end(text, position, end, ScanFormat{4, true}) >= 0;
        if (is_record) return position;
    }
    return UNKNOWN;
}

// Scan a segment whose text is in memory up to `end`, and fill its elements of `segments`.
HOST_DEVICE void scan_segment(
        const u8* text, i64 segment, i64 end, const Segments& segments, const ScanFormat& format) {
    i64 first = segment * segments.segment_bytes, count = 0;
    i64 start = segment ? guess_first_record(text, first, end, format.lines) : 0;
    segments.first_starts[segment] = start, segments.text_ends[segment] = end;
    while (start != UNKNOWN && count < segments.capacity) {
        i64 last = record_end(text, start, end, format);
        if (last < 0) break;
        segments.record_ends[segment * segments.capacity + count++] = last;
        start = last + 1;
    }
    segments.record_counts[segment] = count, segments.next_starts[segment] = start;
}

// Scan `size` bytes of text in memory and fill `segments`. An item is a segment.
KERNEL void scan_segments(WarpItems items, const u8* text OF(size), Segments segments, ScanFormat format, i64 size) {
    FOR_EACH(segment, items) {
        i64 end = minimum((segment + 1) * segments.segment_bytes, size);
        scan_segment(text, segment, end, segments, format);
    }
}

// As scan_segments, if only the first `filled` bytes are in memory: read the rest from `offset` of a file.
KERNEL void read_and_scan_segments(WarpItems items, u8* text OF(size), Segments segments, ScanFormat format, i64 size,
        i32 file, i64 filled, i64 offset) {
    FOR_EACH(segment, items) {
        i64 last = minimum((segment + 1) * segments.segment_bytes, size);
        i64 at = maximum(segment * segments.segment_bytes, filled);
        while (at < last) {
            i64 count = read_file(file, text + at, last - at, offset + at - filled);
            if (count <= 0) break;
            at += count;
        }
        scan_segment(text, segment, minimum(at, last), segments, format);
    }
}

// Scan records from `at` up to `to` one by one, and append their ends to the ends of `segment`. Return RUNNING if all
// are complete, else why the scan ended. `at` becomes the end of the last record.
HOST_DEVICE ScanEnd scan_gap(
        const u8* text, i64& at, i64 to, i64 end, i64 segment, const Segments& segments, const ScanFormat& format) {
    while (at < to) {
        i64 last = record_end(text, at, end, format);
        if (last < 0) return last == INVALID ? BEFORE_INVALID : COMPLETE;
        if (segments.record_counts[segment] == segments.capacity) return OUT_OF_SPACE;
        segments.record_ends[segment * segments.capacity + segments.record_counts[segment]++] = last;
        at = last + 1;
    }
    return RUNNING;
}

// Scan the gaps between segments, scan again the segments whose first record was guessed wrongly, and move the ends of
// all records to the front of record_ends. One item. result: record count, end of the last record, text bytes, ScanEnd.
KERNEL void join_segments(
        WarpItems items, const u8* text OF(size), Segments segments, ScanFormat format, i64 size, i64* result OF(4)) {
    FOR_EACH(item, items) {
        i64 filled = 0, segment = 0, at = 0;
        for (i64 i = 0; i < segments.count && filled == i * segments.segment_bytes; ++i) filled = segments.text_ends[i];
        ScanEnd status = RUNNING;
        for (; !status && segment * segments.segment_bytes < filled; ++segment) {
            i64 first = segments.first_starts[segment];
            i64 last = minimum((segment + 1) * segments.segment_bytes, filled);
            if (segment) status = scan_gap(text, at, first, filled, segment - 1, segments, format);
            bool is_right = !status && first == at;
            if (is_right) at = segments.next_starts[segment];
            else segments.record_counts[segment] = 0;
            if (!status && !is_right) status = scan_gap(text, at, last, filled, segment, segments, format);
        }
        if (!status && segment) status = scan_gap(text, at, filled, filled, segment - 1, segments, format);
        i64 count = 0;
        for (i64 i = 0; i < segment; ++i) {
            const i64* ends = segments.record_ends + i * segments.capacity;
            for (i64 j = 0; j < segments.record_counts[i]; ++j) segments.record_ends[count++] = ends[j];
        }
        result[0] = count, result[1] = at, result[2] = filled, result[3] = status ? status : COMPLETE;
    }
}
