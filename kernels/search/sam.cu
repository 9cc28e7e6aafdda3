// SAM and BAM records from arrays: how long each line's record is, and its bytes.
#include "search/alignments.cuh"
#include "reads/comments.cuh"
#include "search/record_plan.cuh"
#include "search/records.cuh"

template <class Sink> HOST_DEVICE void put_differences(Sink& sink, const Aligned& aligned) {
    i64 query = 0, place = aligned.start, equal = 0;
    for (i32 i = 0; i < aligned.count; ++i) {
        i64 length = aligned.operations[i] >> 4, operation = aligned.operations[i] & 15;
        if (operation == MATCHED) {
            for (i64 at = 0; at < length; at += 32) {
                u64 unclear, marks = aligned.differing(query + at, place + at, length - at, unclear);
                i64 done = 0;
                while (marks) {
                    i64 column = first_marked(marks);
                    marks ^= 1ull << (62 - 2 * column);
                    put_number(sink, equal + column - done);
                    sink.put(aligned.text_letter(place + at + column));
                    equal = 0, done = column + 1;
                }
                equal += minimum(length - at, (i64)32) - done;
            }
            place += length;
        } else if (operation == DELETED) {
            put_number(sink, equal);
            equal = 0;
            sink.put('^');
            for (i64 at = 0; at < length; ++at) sink.put(aligned.text_letter(place + at));
            place += length;
        }
        if (operation != DELETED) query += length;
    }
    put_number(sink, equal);
}

const i32 TRUSTED = 15;  // phred of a base that speaks for its read when duplicates are told apart

// An item is a record: the sum of its trusted qualities, as samtools fixmate -m counts it.
KERNEL void sum_qualities(i64 begin, i64 end, READ_TEXT_ARGUMENTS, const i32* slot_of, const i32* lengths,
                          i32* quality_sums) {
    FOR_EACH(record, begin, end) {
        i64 start = quality_starts[record];
        i32 sum = 0, length = start < 0 ? 0 : lengths[slot_of[record]];
        for (i32 i = 0; i < length; ++i) {
            i32 phred = bytes[start + i] - '!';
            sum += phred >= TRUSTED ? phred : 0;
        }
        quality_sums[record] = sum;
    }
}

#define RECORD_ARGUMENTS                                                                                              \
    READ_TEXT_ARGUMENTS, const i32 *order, QUERY_ARGUMENTS, REFERENCE_ARGUMENTS, const u8 *barrier_letters,           \
        CONTIG_NAME_ARGUMENTS, LINE_ARGUMENTS, const i64 *operation_ends, const i64 *rooms, const u32 *operations,    \
        const i32 *operation_counts, const i64 *reference_starts, const i64 *reference_ends, const i32 *contigs,      \
        const i32 *scores, const i32 *seconds, const i32 *edit_distances, const u8 *reversed, const u8 *mapqs,        \
        const u16 *flags, const i32 *quality_sums, const u8 *common_tags, i64 common_tags_length, i32 has_read_group, \
        i32 comments, i32 soft_clipped, i32 form

struct Records {
    ReadTexts texts;
    const i32* order;
    Queries queries;
    Reference reference;
    const u8* barrier_letters;
    ContigNames names;
    Lines lines;
    const i64* operation_ends;
    const i64* rooms;
    const u32* operations;
    const i32* operation_counts;
    const i64* reference_starts;
    const i64* reference_ends;
    const i32* contigs;
    const i32* scores;
    const i32* seconds;
    const i32* edit_distances;
    const u8* reversed;
    const u8* mapqs;
    const u16* flags;
    const i32* quality_sums;
    const u8* common_tags;
    i64 common_tags_length;
    i32 has_read_group;  // whether RG is one of them
    i32 comments;        // whether the reads' comments are tags
    i32 soft_clipped;    // whether the lines of a read's further parts hold all of it
    i32 form;

    HOST_DEVICE bool mapped(i64 line) const { return contigs[line] >= 0; }
    HOST_DEVICE i64 record_of(i64 line) const { return order[lines.slots[line]]; }
    HOST_DEVICE i64 position(i64 line) const { return reference_starts[line] - reference.contig_starts[contigs[line]]; }
    HOST_DEVICE const u32* cigar(i64 line) const { return operations + operation_ends[line] - rooms[line]; }
    // The primary line of the read's mate.
    HOST_DEVICE i64 mate_of(i64 record) const { return lines.offsets[record ^ 1]; }
    HOST_DEVICE i64 fragment_end(i64 line) const {
        return reversed[line] ? reference_ends[line] : reference_starts[line];
    }
    HOST_DEVICE Fields fields(i64 line) const {
        i64 record = record_of(line), slot = lines.slots[line];
        Fields fields = no_place(record, flags[line], queries.lengths[slot]);
        if (mapped(line)) {
            fields.mapq = mapqs[line];
            fields.contig = contigs[line];
            fields.position = position(line);
            fields.end = fields.position + reference_ends[line] - reference_starts[line];
            fields.operations = cigar(line);
            fields.operation_count = operation_counts[line];
            if (lines.roles[line] == PLACE) fields.length = 0;
            if (lines.roles[line] != PRIMARY && !soft_clipped) fields.cut_off();
        }
        if (!(flags[line] & PAIRED)) return fields;
        i64 mate = mate_of(record);
        if (mapped(mate)) {
            fields.mate_contig = contigs[mate];
            fields.mate_position = position(mate);
            if (!mapped(line)) {  // with its mate, so that sorting keeps the two together
                fields.contig = fields.mate_contig;
                fields.position = fields.mate_position;
                fields.end = fields.position + 1;
            } else if (fields.contig == fields.mate_contig) {
                fields.template_length = fragment_end(mate) - fragment_end(line);
            }
        } else if (mapped(line)) {  // an unmapped mate is at the primary line's place
            i64 primary = lines.offsets[record];
            fields.mate_contig = contigs[primary];
            fields.mate_position = position(primary);
        }
        return fields;
    }
    template <class Sink> HOST_DEVICE void put_cigar_text(Sink& sink, i64 line) const {
        put_cigar(sink, cigar(line), operation_counts[line], false);
    }
    // The other parts of a split read: name,position,strand,CIGAR,mapping quality,edit distance;
    template <class Sink> HOST_DEVICE void put_pieces(Sink& sink, i64 line, i64 record) const {
        bool begun = false;
        for (i64 other = lines.offsets[record]; other < lines.offsets[record + 1]; ++other) {
            if (other == line || lines.roles[other] > PIECE) continue;
            if (!begun) put_tag_name(sink, form, 'S', 'A', 'Z');
            begun = true;
            names.put(sink, contigs[other]);
            sink.put(',');
            put_number(sink, position(other) + 1);
            sink.put(',');
            sink.put(reversed[other] ? '-' : '+');
            sink.put(',');
            put_cigar_text(sink, other);
            sink.put(',');
            put_number(sink, mapqs[other]);
            sink.put(',');
            put_number(sink, edit_distances[other]);
            sink.put(';');
        }
        if (begun) end_text_tag(sink, form);
    }
    // Other places of a line's part: name,strand and position,CIGAR,edit distance;
    template <class Sink> HOST_DEVICE void put_mentions(Sink& sink, i64 line, i64 record) const {
        bool begun = false;
        for (i64 other = lines.offsets[record]; other < lines.offsets[record + 1]; ++other) {
            if (lines.roles[other] != MENTION || lines.owners[other] != line) continue;
            if (!begun) put_tag_name(sink, form, 'X', 'A', 'Z');
            begun = true;
            names.put(sink, contigs[other]);
            sink.put(',');
            sink.put(reversed[other] ? '-' : '+');
            put_number(sink, position(other) + 1);
            sink.put(',');
            put_cigar_text(sink, other);
            sink.put(',');
            put_number(sink, edit_distances[other]);
            sink.put(';');
        }
        if (begun) end_text_tag(sink, form);
    }
    template <class Sink> HOST_DEVICE void put_alignment_tags(Sink& sink, i64 line) const {
        i64 slot = lines.slots[line];
        i32 orientation = reversed[line] != (queries.flags[slot] & READ_FLIPPED);
        Aligned aligned = {&reference,
                           barrier_letters,
                           queries.bases(slot, orientation),
                           queries.mask(slot, orientation),
                           reference_starts[line],
                           cigar(line),
                           operation_counts[line]};
        put_number_tag(sink, form, 'N', 'M', edit_distances[line]);
        put_tag_name(sink, form, 'M', 'D', 'Z');
        put_differences(sink, aligned);
        end_text_tag(sink, form);
        put_number_tag(sink, form, 'A', 'S', scores[line]);
        put_number_tag(sink, form, 'X', 'S', seconds[line]);
    }
    template <class Sink> HOST_DEVICE void put_mate_tags(Sink& sink, i64 record) const {
        i64 mate = mate_of(record);
        if (mapped(mate)) {
            put_tag_name(sink, form, 'M', 'C', 'Z');
            put_cigar_text(sink, mate);
            end_text_tag(sink, form);
            put_number_tag(sink, form, 'M', 'Q', mapqs[mate]);
        }
        put_number_tag(sink, form, 'm', 's', quality_sums[record ^ 1]);
    }
    template <class Sink> HOST_DEVICE void put(Sink& sink, i64 line, i64 size) const {
        if (lines.roles[line] >= MENTION) return;
        i64 record = record_of(line);
        put_fields(sink, form, texts, names, fields(line), size);
        if (mapped(line)) put_alignment_tags(sink, line);
        if (flags[line] & PAIRED) put_mate_tags(sink, record);
        if (lines.roles[line] <= PIECE) {
            put_pieces(sink, line, record);
            put_mentions(sink, line, record);
        }
        sink.copy(common_tags, common_tags_length);
        if (comments) {
            Characters comment = comment_of(texts.bytes + texts.name_starts[record]);
            put_comment_tags(sink, form, comment.begin, comment.end, has_read_group);
        }
        end_record(sink, form);
    }
};

#define RECORDS                                                                                                       \
    Records {                                                                                                         \
        READ_TEXTS, order, QUERIES, REFERENCE, barrier_letters, CONTIG_NAMES, LINES, operation_ends, rooms,           \
            operations, operation_counts, reference_starts, reference_ends, contigs, scores, seconds, edit_distances, \
            reversed, mapqs, flags, quality_sums, common_tags, common_tags_length, has_read_group, comments,          \
            soft_clipped, form                                                                                        \
    }

// An item is a line.
KERNEL void measure_records(i64 begin, i64 end, RECORD_ARGUMENTS, i64* lengths_out) {
    Records records = RECORDS;
    FOR_EACH(line, begin, end) {
        CountingSink sink = {0};
        records.put(sink, line, 0);
        lengths_out[line] = sink.count;
    }
}

// record_ends: the inclusive prefix sum of what measure_records gave.
KERNEL void write_records(i64 begin, i64 end, RECORD_ARGUMENTS, const i64* record_ends, u8* out) {
    Records records = RECORDS;
    FOR_EACH(line, begin, end) {
        i64 place = line ? record_ends[line - 1] : 0;
        ByteSink sink = {out + place};
        records.put(sink, line, record_ends[line] - place);
    }
}
