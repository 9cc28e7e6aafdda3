// Alignments: what each line's CIGAR measures, and which lines prove true.
#include "search/alignments.cuh"
#include "search/flags.cuh"
#include "search/record_plan.cuh"
#include "search/pairs.cuh"
#include "search/scoring.cuh"

// An item is a line. One that scores below what it has to has no place (contig -1).
KERNEL void measure_alignments(i64 begin, i64 end, QUERY_ARGUMENTS, REFERENCE_ARGUMENTS, const Window* windows,
                               LINE_ARGUMENTS, const i32* least_scores, const i64* operation_ends, const i64* rooms,
                               const u32* operations, const i32* operation_counts, const i64* reference_starts,
                               i64* reference_ends, i32* contigs, i32* scores, i32* edit_distances, u8* reversed,
                               u8* mapqs, i32* seconds, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    Scoring scoring = SCORING;
    FOR_EACH(line, begin, end) {
        contigs[line] = -1;
        scores[line] = edit_distances[line] = 0;
        reversed[line] = 0;
        reference_ends[line] = 0;
        if (line_windows[line] < 0) continue;
        i64 slot = line_slots[line];
        const Window& window = windows[line_windows[line]];
        Aligned aligned = {&reference,
                           nullptr,
                           queries.bases(slot, window.orientation),
                           queries.mask(slot, window.orientation),
                           reference_starts[line],
                           operations + operation_ends[line] - rooms[line],
                           operation_counts[line]};
        Measure measured = measure(aligned, scoring);
        if (measured.score < least_scores[line]) {
            mapqs[line] = 0;
            continue;
        }
        contigs[line] = (i32)reference.contig_of(aligned.start);
        // The rival's score counted bonuses for ends that it reached; it is told without those that this place earned.
        Clips clips = clips_of(aligned.operations, aligned.count);
        seconds[line] = maximum(seconds[line] - ((clips.left == 0) + (clips.right == 0)) * scoring.clip_penalty, 0);
        scores[line] = measured.score;
        edit_distances[line] = measured.edits;
        reference_ends[line] = measured.reference_end;
        reversed[line] = window.orientation != (queries.flags[slot] & READ_FLIPPED);
    }
}

// The part of a read, as it was sequenced, that a line aligns.
HOST_DEVICE Span aligned_span(const u32* operations, i32 count, bool reversed, i32 length) {
    Clips clips = clips_of(operations, count);
    return reversed ? Span{clips.right, length - clips.left} : Span{clips.left, length - clips.right};
}

// An item is a record. Its lines but for places come to nothing where its primary one has no place, where they have none, and
// where their CIGARs show that they are one place twice, or a part that is no part of its own.
KERNEL void settle_lines(i64 begin, i64 end, const i32* lengths, const i64* line_offsets, const i32* line_slots,
                         u8* roles, const i32* owners, const i64* operation_ends, const i64* rooms,
                         const u32* operations, const i32* operation_counts, const i64* reference_starts,
                         const i64* reference_ends, const i32* contigs, const u8* reversed) {
    FOR_EACH(record, begin, end) {
        i64 first = line_offsets[record];
        for (i64 line = first + 1; line < line_offsets[record + 1] && roles[line] != PLACE; ++line) {
            bool holds = contigs[first] >= 0 && contigs[line] >= 0 && roles[owners[line]] != NOTHING;
            Span span = {0, 0};
            i32 length = lengths[line_slots[line]];
            if (holds && roles[line] == PIECE)
                span = aligned_span(operations + operation_ends[line] - rooms[line], operation_counts[line],
                                    reversed[line], length);
            for (i64 told = first; holds && told < line; ++told) {
                if (roles[told] == NOTHING) continue;
                holds =
                    contigs[told] != contigs[line] || reversed[told] != reversed[line] ||
                    (reference_starts[told] != reference_starts[line] && reference_ends[told] != reference_ends[line]);
                if (holds && roles[line] == PIECE && roles[told] <= PIECE)
                    holds = !span.rivals(aligned_span(operations + operation_ends[told] - rooms[told],
                                                      operation_counts[told], reversed[told], length));
            }
            if (!holds) roles[line] = NOTHING;
        }
        // A part may stand behind its other places, where the leftmost one became primary.
        for (i64 line = first + 1; line < line_offsets[record + 1] && roles[line] != PLACE; ++line)
            if (roles[owners[line]] == NOTHING) roles[line] = NOTHING;
    }
}

const i64 TWIN_REACH = 512;  // diagonals between windows of which the bands may hold the same alignment

struct Twins {
    const Window* windows;
    const i64* line_windows;
    const i64* reference_starts;
    const i64* reference_ends;
    const i32* contigs;
    const u8* reversed;
    const i32* scores;

    // Whether the alignments begin or end at the same place.
    HOST_DEVICE bool are(i64 line, i64 other) const {
        return contigs[other] == contigs[line] && reversed[other] == reversed[line] &&
               (reference_starts[other] == reference_starts[line] || reference_ends[other] == reference_ends[line]);
    }
    HOST_DEVICE bool near(i64 line, i64 other) const {
        const Window &a = windows[line_windows[line]], &b = windows[line_windows[other]];
        i64 offset = a.diagonal - b.diagonal;
        return a.orientation == b.orientation && offset <= TWIN_REACH && -offset <= TWIN_REACH;
    }
    HOST_DEVICE bool ahead(i64 other, i64 line) const {
        return scores[other] != scores[line] ? scores[other] > scores[line] : other < line;
    }
};

// An item is a line. Places come to nothing where they have none, or the read has none, and where a part or a better place
// is their twin; they are ordered by their windows' diagonals. settled: the roles then, apart from those that neighbours see.
KERNEL void settle_places(i64 begin, i64 end, const i32* order, const Window* windows, LINE_ARGUMENTS,
                          const i64* reference_starts, const i64* reference_ends, const i32* contigs,
                          const u8* reversed, const i32* scores, u8* settled) {
    Twins twins = {windows, line_windows, reference_starts, reference_ends, contigs, reversed, scores};
    FOR_EACH(line, begin, end) {
        settled[line] = roles[line];
        if (roles[line] != PLACE) continue;
        i64 record = order[line_slots[line]], first = line_offsets[record], last = line_offsets[record + 1];
        bool holds = contigs[first] >= 0 && contigs[line] >= 0;
        for (i64 part = first; holds && roles[part] != PLACE; ++part)
            holds = roles[part] > PIECE || !twins.are(line, part);
        for (i64 step = -1; step <= 1; step += 2)
            for (i64 other = line + step; holds && other >= first && other < last && roles[other] == PLACE;
                 other += step) {
                if (!twins.near(line, other)) break;
                holds = !twins.are(line, other) || twins.ahead(line, other);
            }
        if (!holds) settled[line] = NOTHING;
    }
}

// The lines of reads and, where they are paired, of their mates.
struct Flags {
    Lines lines;
    Inserts inserts;
    const i32* contigs;
    const i64* reference_starts;
    const i64* reference_ends;
    const u8* reversed;
    bool paired, pieces_secondary;

    HOST_DEVICE FragmentEnd fragment_end(i64 line) const {
        return FragmentEnd{reversed[line] ? reference_ends[line] : reference_starts[line], reversed[line] != 0};
    }
    HOST_DEVICE bool is_proper(i64 first, i64 second) const {
        return contigs[first] >= 0 && contigs[first] == contigs[second] &&
               inserts.penalty(distance_of(fragment_end(first), fragment_end(second))) != FAR;
    }
    HOST_DEVICE i32 of(i64 line, i64 record) const {
        i32 flag = contigs[line] < 0 ? UNMAPPED : reversed[line] ? REVERSED : 0;
        if (lines.roles[line] == PLACE) flag |= SECONDARY;
        if (lines.roles[line] == PIECE) flag |= pieces_secondary ? SECONDARY : SUPPLEMENTARY;
        if (!paired) return flag;
        i64 mate = lines.offsets[record ^ 1];
        flag |= PAIRED | (record & 1 ? SECOND_MATE : FIRST_MATE);
        if (is_proper(lines.offsets[record & ~1ll], lines.offsets[record | 1])) flag |= PROPER_PAIR;
        return flag | (contigs[mate] < 0 ? MATE_UNMAPPED : reversed[mate] ? MATE_REVERSED : 0);
    }
};

// What a summary counts a line as: a primary one with a place as its MAPQ, and this more in a proper pair; others as these.
const i32 PROPER_TALLY = 64;
enum Tally { NO_TALLY = 128, SUPPLEMENTARY_TALLY = 129, SECONDARY_TALLY = 130 };

HOST_DEVICE i32 tally_of(i32 flag, i32 role, i32 mapq) {
    if (role == PRIMARY && !(flag & UNMAPPED)) return mapq + (flag & PROPER_PAIR ? PROPER_TALLY : 0);
    return flag & SUPPLEMENTARY ? SUPPLEMENTARY_TALLY : flag & SECONDARY ? SECONDARY_TALLY : NO_TALLY;
}

// An item is a line.
KERNEL void flag_lines(i64 begin, i64 end, const i32* order, LINE_ARGUMENTS, INSERT_ARGUMENTS, const i32* contigs,
                       const i64* reference_starts, const i64* reference_ends, const u8* reversed, const u8* mapqs,
                       u16* flags, u8* tallies, i32 paired, i32 pieces_secondary) {
    Flags all = {LINES,          INSERTS,  contigs,     reference_starts,
                 reference_ends, reversed, paired != 0, pieces_secondary != 0};
    FOR_EACH(line, begin, end) {
        i32 flag = all.of(line, order[line_slots[line]]);
        flags[line] = (u16)flag;
        tallies[line] = (u8)tally_of(flag, roles[line], mapqs[line]);
    }
}
