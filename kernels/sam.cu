// SAM and BAM records from arrays: what each alignment measures, how long each record is, and its bytes.
#include "queries.cuh"
#include "records.cuh"
#include "reference.cuh"
#include "scoring.cuh"
#include "traceback.cuh"

struct Aligned {
    const Reference* reference;
    const u8* barrier_letters;
    Words bases, mask;
    i64 start;
    const u32* operations;
    i32 count;

    HOST_DEVICE u8 text_letter(i64 position) const {
        if (reference->reach(position, 1)) return code_letter(reference->packed().base(position));
        return barrier_letters[reference->barrier_behind(position)];
    }
    // Marks of the differing columns among `length` (at most 32) matched ones.
    HOST_DEVICE u64 differing(i64 query, i64 place, i64 length, u64& unclear) const {
        unclear = (mask.at(query) | reference->barriers_at(place)) & first_bases(length);
        return (differences(bases.at(query), reference->packed().at(place)) | unclear) & first_bases(length);
    }
};

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

// An item is a slot. A read whose alignment scores below min_score loses it (chosen becomes -1).
KERNEL void measure_alignments(i64 begin, i64 end, QUERY_ARGUMENTS, REFERENCE_ARGUMENTS, const Window* windows, i32* chosen,
                               const i64* operation_offsets, const u32* operations, const i32* operation_counts,
                               const i64* reference_starts, i64* reference_ends, i32* contigs, i32* scores,
                               i32* edit_distances, u8* reversed, u8* mapqs, i32* seconds, i64 most_windows, i32 min_score,
                               SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    Scoring scoring = SCORING;
    FOR_EACH(slot, begin, end) {
        contigs[slot] = -1;
        scores[slot] = edit_distances[slot] = 0;
        reversed[slot] = 0;
        reference_ends[slot] = 0;
        if (chosen[slot] < 0) continue;
        const Window& window = windows[slot * most_windows + chosen[slot]];
        Aligned aligned = {&reference, nullptr, queries.bases(slot, window.orientation),
                           queries.mask(slot, window.orientation), reference_starts[slot],
                           operations + operation_offsets[slot], operation_counts[slot]};
        i64 query = 0, place = aligned.start;
        i32 score = 0, edits = 0;
        for (i32 i = 0; i < aligned.count; ++i) {
            i64 length = aligned.operations[i] >> 4, operation = aligned.operations[i] & 15;
            if (operation == MATCHED) {
                for (i64 at = 0; at < length; at += 32) {
                    u64 unclear, marks = aligned.differing(query + at, place + at, length - at, unclear);
                    i32 columns = (i32)minimum(length - at, (i64)32), different = count_ones(marks), open = count_ones(unclear);
                    score += (columns - different) * scoring.match - (different - open) * scoring.mismatch - open * AMBIGUOUS_PENALTY;
                    edits += different;
                }
            } else if (operation != CLIPPED) {
                score -= scoring.gap_open + (i32)length * scoring.gap_extend;
                edits += (i32)length;
            }
            if (operation != INSERTED && operation != CLIPPED) place += length;
            if (operation != DELETED) query += length;
        }
        if (score < min_score) {
            chosen[slot] = -1;
            mapqs[slot] = 0;
            continue;
        }
        contigs[slot] = (i32)reference.contig_of(aligned.start);
        // The rival's score counted bonuses for ends that it reached; it is told without those that this place earned.
        seconds[slot] = maximum(seconds[slot] - (window.score - score), 0);
        scores[slot] = score;
        edit_distances[slot] = edits;
        reference_ends[slot] = place;
        reversed[slot] = window.orientation != (queries.flags[slot] & READ_FLIPPED);
    }
}

#define RECORD_ARGUMENTS                                                                                               \
    READ_TEXT_ARGUMENTS, const i32 *slot_of, QUERY_ARGUMENTS, REFERENCE_ARGUMENTS, const u8 *barrier_letters,         \
        CONTIG_NAME_ARGUMENTS, const i64 *operation_offsets, const u32 *operations, const i32 *operation_counts,      \
        const i64 *reference_starts, const i64 *reference_ends, const i32 *contigs, const i32 *scores,                \
        const i32 *seconds, const i32 *edit_distances, const u8 *reversed, const u8 *mapqs, const u8 *read_group,     \
        i64 read_group_length, i32 form

struct Records {
    ReadTexts texts;
    const i32* slot_of;
    Queries queries;
    Reference reference;
    const u8* barrier_letters;
    ContigNames names;
    const i64* operation_offsets;
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
    const u8* read_group;
    i64 read_group_length;
    i32 form;

    template <class Sink> HOST_DEVICE void put_tags(Sink& sink, i64 slot) const {
        Words bases = queries.bases(slot, 0), mask = queries.mask(slot, 0);
        if (reversed[slot] != (queries.flags[slot] & READ_FLIPPED)) bases = queries.bases(slot, 1), mask = queries.mask(slot, 1);
        Aligned aligned = {&reference, barrier_letters, bases, mask, reference_starts[slot],
                           operations + operation_offsets[slot], operation_counts[slot]};
        put_number_tag(sink, form, 'N', 'M', edit_distances[slot]);
        put_tag_name(sink, form, 'M', 'D', 'Z');
        put_differences(sink, aligned);
        end_text_tag(sink, form);
        put_number_tag(sink, form, 'A', 'S', scores[slot]);
        put_number_tag(sink, form, 'X', 'S', seconds[slot]);
    }
    HOST_DEVICE Fields fields(i64 record) const {
        i64 slot = slot_of[record], contig = contigs[slot];
        i32 length = queries.lengths[slot];
        if (contig < 0) return Fields{record, UNMAPPED, 0, -1, -1, 0, nullptr, 0, length};
        i64 origin = reference.contig_starts[contig];
        return Fields{record, reversed[slot] ? REVERSED : 0, mapqs[slot], contig, reference_starts[slot] - origin,
                      reference_ends[slot] - origin, operations + operation_offsets[slot], operation_counts[slot], length};
    }
    template <class Sink> HOST_DEVICE void put(Sink& sink, i64 record, i64 size) const {
        put_fields(sink, form, texts, names, fields(record), size);
        if (contigs[slot_of[record]] >= 0) put_tags(sink, slot_of[record]);
        sink.copy(read_group, read_group_length);
        end_record(sink, form);
    }
};

#define RECORDS                                                                                                          \
    Records {                                                                                                            \
        READ_TEXTS, slot_of, QUERIES, REFERENCE, barrier_letters, CONTIG_NAMES, operation_offsets, operations,           \
            operation_counts, reference_starts, reference_ends, contigs, scores, seconds, edit_distances, reversed,      \
            mapqs, read_group, read_group_length, form                                                                   \
    }

// An item is a record, in the order of the input.
KERNEL void measure_records(i64 begin, i64 end, RECORD_ARGUMENTS, i64* lengths_out) {
    Records records = RECORDS;
    FOR_EACH(record, begin, end) {
        CountingSink sink = {0};
        records.put(sink, record, 0);
        lengths_out[record] = sink.count;
    }
}

// record_ends: the inclusive prefix sum of what measure_records gave.
KERNEL void write_records(i64 begin, i64 end, RECORD_ARGUMENTS, const i64* record_ends, u8* out) {
    Records records = RECORDS;
    FOR_EACH(record, begin, end) {
        i64 place = record ? record_ends[record - 1] : 0;
        ByteSink sink = {out + place};
        records.put(sink, record, record_ends[record] - place);
    }
}
