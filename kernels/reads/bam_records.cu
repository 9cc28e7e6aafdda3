// Find and check the records of BAM, and write the primary records as text of reads as they were sequenced.
//
// A record is: its size, 32 bytes of fields, name and NUL, CIGAR, bases (4 bits each), qualities, and tags up to its
// end. Every record is checked before it is written, and nothing after its end is read, even if it is invalid. Errors
// are combined into one word as in parsing.cu.
#include "common/bam_fields.cuh"
#include "common/sam_flags.cuh"
#include "reads/read_headers.cuh"
#include "reads/decimals.cuh"
#include "reads/queries.cuh"

enum BamError {
    BAD_NAME = 1,
    BAD_LENGTHS = 2,
    BAD_CONTIG = 3,
    BAD_TAG = 4,
    BAD_LETTER = 5,
    BAD_QUALITY = 6,
    LONG_READ = 7,
};

const i64 MIN_SIZE = 33;          // of a record without its size: the fields and the NUL of a name
const i64 MAX_SIZE = 1 << 28;     // keeps the text of the tags below 2^31 bytes
const u8 NO_PHRED = 0xFF;         // the first quality of a read without qualities
const u8 MAX_PHRED = 93;          // '~' in FASTQ
const i32 HAS_QUALITY = 1 << 16;  // in ReadSpan.marks
// Find up to `max_records` complete records; each record gives the start of the next. Stop at an incomplete record and
// at an invalid size. One item. found: the number of records, and the end of the last record.
KERNEL void find_records(Items items, const u8* bytes OF(size), i64* starts OF(max_records), i64* found OF(2), i64 size,
        i64 max_records) {
    FOR_EACH(item, items) {
        i64 at = 0, count = 0;
        while (count < max_records && size - at >= 4) {
            i64 length = i32_at(bytes + at);
            if (length < MIN_SIZE || length > minimum(size - at - 4, MAX_SIZE)) break;
            starts[count++] = at;
            at += 4 + length;
        }
        found[0] = count;
        found[1] = at;
    }
}

// Return the bytes of one value of a BAM type letter, or 0 for types without a fixed size and invalid types.
HOST_DEVICE i64 element_bytes(u8 type) {
    if (type == 'A') return 1;
    return type == 'f' ? 4 : type == 'd' ? 8 : integer_type(type).bytes;
}

// Return the bytes of a tag's value, after its type; -1 if it is invalid or does not end before or at `end`.
HOST_DEVICE i64 value_bytes(u8 type, const u8* value, const u8* end) {
    i64 size = element_bytes(type);
    if (type == 'Z' || type == 'H') {
        while (value + size < end && value[size]) ++size;
        ++size;  // with its NUL
    } else if (type == 'B') {
        if (end - value < 5) return -1;
        i64 element = *value == 'A' || *value == 'd' ? 0 : element_bytes(*value);
        if (!element) return -1;
        size = 5 + element * (i64)(u32)i32_at(value + 1);
    }
    return size && size <= end - value ? size : -1;
}

struct Tag {
    const u8* name;
    u8 type;
    TextSpan value;  // without the NUL of type Z or H
};

// Iterates over the tags of a record.
struct TagIterator {
    const u8 *at, *end;
    bool is_broken;
    // Return false after the last tag and at an invalid tag.
    HOST_DEVICE bool next(Tag& tag) {
        if (at == end) return false;
        i64 size = end - at < 4 ? -1 : value_bytes(at[2], at + 3, end);
        if (size < 0) {
            is_broken = true;
            return false;
        }
        bool is_text = at[2] == 'Z' || at[2] == 'H';
        tag = Tag{at, at[2], {at + 3, at + 3 + size - is_text}};
        at += 3 + size;
        return true;
    }
};

// The tags to keep, by their two-letter names.
struct KeptTags {
    const u8* names OF(2 * count);
    i64 count;
    bool all;
    HOST_DEVICE bool contains(const u8* name) const {
        for (i64 i = 0; i < count && !all; ++i)
            if (names[2 * i] == name[0] && names[2 * i + 1] == name[1]) return true;
        return all;
    }
};

// Return true if SAM can represent the tag.
HOST_DEVICE bool is_writable(const Tag& tag) {
    if (!is_letter(tag.name[0]) || !(is_letter(tag.name[1]) || is_digit(tag.name[1]))) return false;
    if (tag.type == 'A') return *tag.value.start != ' ' && is_printable(*tag.value.start);
    if (tag.type == 'Z') return tag.value.all(is_printable);
    if (tag.type == 'H') return tag.value.length() % 2 == 0 && tag.value.all(is_hexadecimal);
    return tag.type != 'd';
}

// Return the little-endian integer of a BAM type at an unaligned address.
HOST_DEVICE i64 integer_at(const u8* value, u8 type) {
    IntegerType integer = integer_type(type);
    u64 bits = 0;
    for (i32 i = 0; i < integer.bytes; ++i) bits |= (u64)value[i] << (8 * i);
    return (i64)bits > integer.max ? (i64)bits - ((i64)1 << (8 * integer.bytes)) : (i64)bits;
}

// Write a number of a BAM type as text.
template <class Sink> HOST_DEVICE void put_tag_value(Sink& sink, u8 type, const u8* value) {
    if (type == 'f') put_float(sink, (u32)i32_at(value));
    else put_number(sink, integer_at(value, type));
}

// Write a tag as SAM text after a tab, NAME:TYPE:VALUE; all integer types become i.
template <class Sink> HOST_DEVICE void put_tag(Sink& sink, const Tag& tag) {
    bool is_integer = integer_type(tag.type).bytes;
    sink.put('\t');
    sink.copy(tag.name, 2);
    sink.put(':');
    sink.put(is_integer ? (u8)'i' : tag.type);
    sink.put(':');
    if (tag.type == 'B') {
        u8 type = *tag.value.start;
        sink.put(type);
        for (const u8* at = tag.value.start + 5; at < tag.value.end; at += element_bytes(type)) {
            sink.put(',');
            put_tag_value(sink, type, at);
        }
    } else if (is_integer || tag.type == 'f') put_tag_value(sink, tag.type, tag.value.start);
    else sink.copy(tag.value.start, tag.value.length());
}

// The positions of a read in the text: name and kept tags, newline, bases and qualities as sequenced, and the name of
// the read group. group_length is -1 without a read group. marks: HAS_QUALITY, and the marks of queries.cuh.
struct ReadSpan {
    i64 start;
    i32 name_length, header_length, length, group_length, marks, padding;
    HOST_DEVICE i64 group_start() const {
        return start + header_length + length * (marks & HAS_QUALITY ? (i64)2 : (i64)1);
    }
};

struct BamRecord {
    const u8 *start, *end;
    HOST_DEVICE i32 name_bytes() const { return start[12]; }
    HOST_DEVICE i64 operations() const { return u16_at(start + 16); }
    HOST_DEVICE i32 flag() const { return (i32)u16_at(start + 18); }
    HOST_DEVICE i64 length() const { return i32_at(start + 20); }
    HOST_DEVICE const u8* name() const { return start + FIXED_BYTES; }
    HOST_DEVICE const u8* bases() const { return name() + name_bytes() + 4 * operations(); }
    HOST_DEVICE const u8* phreds() const { return bases() + (length() + 1) / 2; }
    HOST_DEVICE bool has_quality() const { return length() == 0 || *phreds() != NO_PHRED; }
    HOST_DEVICE TagIterator tags() const { return TagIterator{phreds() + length(), end, false}; }
    HOST_DEVICE bool is_primary() const { return !(flag() & (SECONDARY | SUPPLEMENTARY)); }
    HOST_DEVICE i64 short_name() const { return without_mate_number(name(), name_bytes() - 1); }
    // The value of the tag RG; null pointers if the tag is missing.
    HOST_DEVICE TextSpan group() const {
        TagIterator all = tags();
        for (Tag tag; all.next(tag);)
            if (tag.name[0] == 'R' && tag.name[1] == 'G' && tag.type == 'Z') return tag.value;
        return TextSpan{nullptr, nullptr};
    }
    // The name is one that SAM allows: [!-?A-~]{1,254}.
    HOST_DEVICE bool has_valid_name() const {
        i32 size = name_bytes();
        if (size < 2 || FIXED_BYTES + size > end - start || name()[size - 1]) return false;
        for (const u8* at = name(); at < name() + size - 1; ++at)
            if (*at <= ' ' || *at > '~' || *at == '@') return false;
        return true;
    }
    HOST_DEVICE bool has_valid_contigs(i64 contigs) const {
        for (i64 field = 4; field <= 24; field += 20)  // contigs of the read and of its mate
            if (i32_at(start + field) < -1 || i32_at(start + field) >= contigs) return false;
        return true;
    }
    HOST_DEVICE bool has_valid_bases() const {
        const u8* nibbles = bases();
        i64 count = length();
        i32 bad = 0;
        for (i64 i = 0; i < count / 2; ++i) bad |= !(nibbles[i] & 15) | !(nibbles[i] & 240);
        return !bad && (count % 2 == 0 || nibbles[count / 2] & 240);
    }
    HOST_DEVICE bool has_valid_qualities() const {
        const u8* own = phreds();
        i64 count = has_quality() ? length() : 0;
        i32 bad = 0;
        for (i64 i = 0; i < count; ++i) bad |= own[i] > MAX_PHRED;
        return !bad;
    }
    HOST_DEVICE i32 tag_error(const KeptTags& kept) const {
        TagIterator all = tags();
        for (Tag tag; all.next(tag);)
            if (is_primary() && kept.contains(tag.name) && !is_writable(tag)) return BAD_TAG;
        return all.is_broken ? BAD_TAG : 0;
    }
    // Return a BamError, or 0.
    HOST_DEVICE i32 error(const KeptTags& kept, i64 contigs, i64 max_read_length) const {
        if (!has_valid_name()) return BAD_NAME;
        if (length() < 0 || phreds() + length() > end) return BAD_LENGTHS;
        if (!has_valid_contigs(contigs)) return BAD_CONTIG;
        if (i32 code = tag_error(kept)) return code;
        if (!is_primary()) return 0;
        return length() > max_read_length ? LONG_READ
                : !has_valid_bases()      ? BAD_LETTER
                : !has_valid_qualities()  ? BAD_QUALITY
                                          : 0;
    }
    template <class Sink> HOST_DEVICE void put_header(Sink& sink, const KeptTags& kept) const {
        sink.copy(name(), name_bytes() - 1);
        TagIterator all = tags();
        for (Tag tag; all.next(tag);)
            if (kept.contains(tag.name)) put_tag(sink, tag);
        sink.put('\n');
    }
    HOST_DEVICE ReadSpan span(i64 text_start, const KeptTags& kept) const {
        CountingSink header = {0};
        put_header(header, kept);
        TextSpan group_name = group();
        i32 marks = (flag() & QC_FAILED ? READ_FAILED : 0) | (has_quality() ? HAS_QUALITY : 0);
        return ReadSpan{text_start, (i32)short_name(), (i32)header.count, (i32)length(),
                group_name.start ? (i32)group_name.length() : -1, marks, 0};
    }
    // Everything is read before it is written: for all the compiler knows, the output may overlap the record.
    HOST_DEVICE void put_bases(u8* out) const {
        const char* letters = flag() & REVERSED ? "=TGKCYSBAWRDMHVN" : "=ACMGRSVTWYHKDBN";
        const u8* nibbles = bases();
        i64 count = length(), step = flag() & REVERSED ? -1 : 1;
        if (step < 0) out += count - 1;
        for (i64 i = 0; i < count / 2; ++i, out += 2 * step) {
            u8 both = nibbles[i];
            out[0] = (u8)letters[both >> 4];
            out[step] = (u8)letters[both & 15];
        }
        if (count % 2) *out = (u8)letters[nibbles[count / 2] >> 4];
    }
    HOST_DEVICE void put_qualities(u8* out) const {
        const u8* own = phreds();
        i64 count = length();
        if (flag() & REVERSED) {
            for (i64 i = 0; i < count; ++i) out[i] = (u8)(own[count - 1 - i] + '!');
        } else {
            for (i64 i = 0; i < count; ++i) out[i] = (u8)(own[i] + '!');
        }
    }
    HOST_DEVICE void put(ByteSink& sink, const KeptTags& kept) const {
        put_header(sink, kept);
        put_bases(sink.next);
        sink.next += length();
        if (has_quality()) {
            put_qualities(sink.next);
            sink.next += length();
        }
        TextSpan name = group();
        sink.copy(name.start, name.length());
    }
};

// Return a hash of a text, chained to the hash of what precedes it.
HOST_DEVICE u64 hash_of(u64 hash, const u8* bytes, i64 length) {
    for (i64 i = 0; i < length; i += 8) {
        u64 word = 0;
        for (i64 j = i; j < minimum(i + 8, length); ++j) word = word << 8 | bytes[j];
        hash = splitmix64(hash + word + 0x9E3779B97F4A7C15ull);
    }
    return splitmix64(hash + (u64)length);
}

// Check each record (item) and write its flags, the hash of its name and read group (equal for mates), and the bytes of
// its text, 0 unless primary. starts: also has the end of the last record. error: lowered to item << 8 | BamError.
KERNEL void check_records(Items items, const u8* bytes OF(any), const i64* starts OF(items + 1), KeptTags kept,
        u16* flags OF(items), u64* hashes OF(items), i64* lengths OF(items), u64* error OF(1), i64 contigs,
        i64 max_read_length) {
    FOR_EACH(item, items) {
        BamRecord record = {bytes + starts[item], bytes + starts[item + 1]};
        lengths[item] = 0;
        if (i32 code = record.error(kept, contigs, max_read_length)) {
            atomic_min(error, (u64)item << 8 | (u64)code);
            continue;
        }
        flags[item] = (u16)record.flag();
        if (!record.is_primary()) continue;
        TextSpan group = record.group();
        hashes[item] =
                hash_of(hash_of(group.start ? 1 : 0, record.name(), record.short_name()), group.start, group.length());
        ReadSpan span = record.span(0, kept);
        lengths[item] = span.group_start() + maximum(span.group_length, 0);
    }
}

// Find the first tag of a record that is invalid, or that is kept and cannot be written as SAM. found: the offset and
// the index of the tag, and whether it is invalid. One item.
KERNEL void find_bad_tag(Items items, const u8* bytes OF(size), i64 size, KeptTags kept, i64* found OF(3)) {
    FOR_EACH(item, items) {
        TagIterator all = BamRecord{bytes, bytes + size}.tags();
        const u8* at = all.at;
        i64 index = 0;
        for (Tag tag; all.next(tag) && (!kept.contains(tag.name) || is_writable(tag)); at = all.at) ++index;
        found[0] = at - bytes;
        found[1] = index;
        found[2] = all.is_broken;
    }
}

// Write the text and ReadSpan of primary records selected[item]. text_ends: inclusive sums of their text lengths.
KERNEL void write_reads(Items items, const u8* bytes OF(any), const i64* starts OF(any), const i64* selected OF(items),
        const i64* text_ends OF(items), KeptTags kept, u8* text OF(any), ReadSpan* spans OF(items)) {
    FOR_EACH(item, items) {
        BamRecord record = {bytes + starts[selected[item]], bytes + starts[selected[item] + 1]};
        i64 start = item ? text_ends[item - 1] : 0;
        spans[item] = record.span(start, kept);
        ByteSink sink = {text + start};
        record.put(sink, kept);
    }
}

// Copy the text of each read (item) from bytes[starts, starts + lengths) to text[new_starts].
KERNEL void copy_reads(Items items, const u8* bytes OF(any), const i64* starts OF(items), const i64* lengths OF(items),
        const i64* new_starts OF(items), u8* text OF(any)) {
    FOR_EACH(item, items) {
        ByteSink sink = {text + new_starts[item]};
        sink.copy(bytes + starts[item], lengths[item]);
    }
}

HOST_DEVICE bool are_equal(const u8* a, i64 length, const u8* b, i64 other_length) {
    bool same = length == other_length;
    for (i64 i = 0; same && i < length; ++i) same = a[i] == b[i];
    return same;
}

// Set same[item] to 1 if both reads of a pair (item) have the same name and read group, else to 0.
KERNEL void compare_mates(Items items, const u8* first_text OF(any), const ReadSpan* first_spans OF(items),
        const u8* second_text OF(any), const ReadSpan* second_spans OF(items), u8* same OF(items)) {
    FOR_EACH(pair, items) {
        const ReadSpan &a = first_spans[pair], &b = second_spans[pair];
        same[pair] = are_equal(first_text + a.start, a.name_length, second_text + b.start, b.name_length) &&
                are_equal(first_text + a.group_start(), a.group_length, second_text + b.group_start(), b.group_length);
    }
}
