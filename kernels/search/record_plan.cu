// Lines: which of a read's windows are told, and as what.
#include "search/record_plan.cuh"
#include "search/placement.cuh"

const i32 MOST_WINDOWS = 64;

struct Line {
    i32 rank, role, owner, mapq, second;  // owner: a line of the same read
};

// What a user wants told.
struct Reporting {
    i32 most_mentions;  // a part with more other places mentions none
    i32 mention_share;  // percent of the part's score that a mentioned place has
    i32 min_score;
    i32 joint_score;       // what a read needs where its mate vouches for its place
    i32 leftmost_primary;  // of a split read the part that begins first in the read is the primary one
};

#define REPORTING_ARGUMENTS i32 most_mentions, i32 mention_share, i32 min_score, i32 joint_score, i32 leftmost_primary
#define REPORTING \
    Reporting { most_mentions, mention_share, min_score, joint_score, leftmost_primary }

struct Selection {
    const Window* windows;
    i32 count, length, missed, clean_bases;
    u64 hash;
    bool flipped;
    Line lines[MOST_WINDOWS];
    i32 line_count;

    HOST_DEVICE bool ahead(i32 i, i32 j) const {
        const Window &a = windows[i], &b = windows[j];
        if (a.score != b.score) return a.score > b.score;
        u64 tie_a = tie_of(hash, a.diagonal), tie_b = tie_of(hash, b.diagonal);
        return tie_a != tie_b ? tie_a < tie_b : a.orientation < b.orientation;
    }
    HOST_DEVICE Line piece(i32 rank, const Scoring& scoring) const {
        const Window& window = windows[rank];
        i32 bases = span_of(window, length).length(), second = 0;
        i32 variant = variant_of(bases, scoring.perfect(bases) - window.score, clean_bases, scoring);
        Rivals rivals = {0};
        for (i32 i = 0; i < count; ++i) {
            if (i == rank || !is_rival(windows[i], window, length)) continue;
            second = maximum(second, windows[i].score);
            rivals.add(maximum(in_phred(window.score - windows[i].score, variant, scoring), 0));
        }
        rivals.add(missed_loss(missed, window.score, variant, scoring));
        return Line{rank, PIECE, line_count, minimum(rivals.mapping_quality(), lines[0].mapq), second};
    }
    // The line of another part, or of a place to be mentioned; its role is NOTHING where it is neither.
    HOST_DEVICE Line other(i32 rank, const Reporting& reporting, const Scoring& scoring) const {
        const Window& window = windows[rank];
        Span span = span_of(window, length);
        i32 owner = 0;
        while (owner < line_count &&
               !(lines[owner].role <= PIECE && span.rivals(span_of(windows[lines[owner].rank], length))))
            ++owner;
        if (owner == line_count) return piece(rank, scoring);
        Line line = {rank, NOTHING, owner, 0, 0};
        for (i32 i = 0; i < line_count; ++i) {
            const Window& told = windows[lines[i].rank];
            if (beside(window, told) || same_alignment(window, told)) return line;
        }
        if (window.score * 100 >= windows[lines[owner].rank].score * reporting.mention_share) line.role = MENTION;
        return line;
    }
    // Drops the mentions of those parts that have more than `most`.
    HOST_DEVICE void limit_mentions(i32 most) {
        for (i32 part = 0; part < line_count; ++part) {
            i32 found = 0;
            for (i32 i = 0; i < line_count; ++i) found += lines[i].role == MENTION && lines[i].owner == part;
            for (i32 i = 0; found > most && i < line_count; ++i)
                if (lines[i].role == MENTION && lines[i].owner == part) lines[i].role = NOTHING;
        }
    }
    HOST_DEVICE i32 read_begin(const Line& line) const {
        Span span = span_of(windows[line.rank], length);
        return flipped ? length - span.end : span.begin;
    }
    // A part that may prove to be none never is it, as without a primary alignment the whole read has no place.
    HOST_DEVICE void make_leftmost_primary(const Reporting& reporting, const Scoring& scoring) {
        i32 first = 0;
        for (i32 i = 1; i < line_count; ++i) {
            if (lines[i].role != PIECE || least_score(windows[lines[i].rank], length, scoring) < reporting.min_score)
                continue;
            if (read_begin(lines[i]) < read_begin(lines[first])) first = i;
        }
        if (first == 0) return;
        Line held = lines[0];
        lines[0] = Line{lines[first].rank, PRIMARY, 0, lines[first].mapq, lines[first].second};
        lines[first] = Line{held.rank, PIECE, first, held.mapq, held.second};
        for (i32 i = 1; i < line_count; ++i) {
            i32 owner = lines[i].owner;
            if (lines[i].role > PIECE) lines[i].owner = owner == 0 ? first : owner == first ? 0 : owner;
        }
    }
    HOST_DEVICE void select(Line primary, const Reporting& reporting, const Scoring& scoring) {
        lines[0] = primary;
        line_count = 1;
        i32 last = -1;  // the windows are taken by falling score
        for (i32 taken = 0; primary.rank >= 0 && taken < count; ++taken) {
            i32 next = -1;
            for (i32 i = 0; i < count; ++i)
                if ((last < 0 || (i != last && ahead(last, i))) && (next < 0 || ahead(i, next))) next = i;
            if (next < 0 || windows[next].score < reporting.min_score) break;
            last = next;
            if (next == primary.rank) continue;
            Line line = other(next, reporting, scoring);
            if (line.role != NOTHING) lines[line_count++] = line;
        }
        limit_mentions(reporting.most_mentions);
        if (reporting.leftmost_primary) make_leftmost_primary(reporting, scoring);
    }
};

#define SELECTION_ARGUMENTS                                                                                            \
    const i32 *slot_of, const i32 *lengths, const u8 *read_flags, const u64 *hashes, const Window *windows,            \
        const i32 *counts, const i32 *missed, const i32 *chosen, const i32 *seconds, const u8 *mapqs, const u8 *joint, \
        i32 clean_bases

#define SELECT(record)                                                                                 \
    i64 slot = slot_of[record];                                                                        \
    Selection selection;                                                                               \
    selection.windows = windows + slot * most_windows;                                                 \
    selection.count = counts[slot], selection.length = lengths[slot], selection.missed = missed[slot]; \
    selection.clean_bases = clean_bases;                                                               \
    selection.hash = hashes[slot], selection.flipped = read_flags[slot] & READ_FLIPPED;                \
    selection.select(Line{chosen[slot], PRIMARY, 0, mapqs[slot], seconds[slot]}, REPORTING, SCORING);

// An item is a record: how many lines it has.
KERNEL void count_lines(i64 begin, i64 end, SELECTION_ARGUMENTS, i64* line_counts, i64 most_windows,
                        REPORTING_ARGUMENTS, SCORING_ARGUMENTS) {
    FOR_EACH(record, begin, end) {
        SELECT(record)
        i64 told = 0;
        for (i32 i = 0; i < selection.line_count; ++i) told += selection.lines[i].role != NOTHING;
        line_counts[record] = told;
    }
}

// The most operations of a CIGAR: clips and a match, or as many gaps as matches can pay for.
HOST_DEVICE i64 room_of(i32 length, bool traced, const Scoring& scoring) {
    return traced ? 2 * (scoring.perfect(length) / maximum(scoring.gap(1), 1) + 1) + 4 : 3;
}

// Lines to be filled. bands: of the line's window if its alignment is traced, else NO_BAND. least_scores: what it has to
// score. rooms: for its operations.
struct LineResults {
    i32* slots;
    i64* windows;
    u8* roles;
    i32* owners;
    u8* mapqs;
    i32* seconds;
    u8* bands;
    i32* least_scores;
    i64* rooms;

    // window: null for none.
    HOST_DEVICE void put(i64 line, i64 slot, i32 length, const Window* window, i64 row, i32 role, i64 owner, i32 mapq,
                         i32 second, i32 least, const Scoring& scoring) {
        // A segment that scores enough by bonuses alone may hold an alignment that does without.
        bool traced = window && (window->gapped() || least_score(*window, length, scoring) < least);
        slots[line] = (i32)slot;
        windows[line] = window ? row : -1;
        roles[line] = (u8)role;
        owners[line] = (i32)owner;
        mapqs[line] = (u8)mapq;
        seconds[line] = second;
        bands[line] = traced ? (u8)maximum<i32>(maximum<i32>(window->band, -window->band), NARROW_BAND) : (u8)NO_BAND;
        least_scores[line] = least;
        rooms[line] = room_of(length, traced, scoring);
    }
};

#define LINE_RESULT_ARGUMENTS                                                                                 \
    i32 *line_slots, i64 *line_windows, u8 *roles, i32 *owners, u8 *line_mapqs, i32 *line_seconds, u8 *bands, \
        i32 *least_scores, i64 *rooms
#define LINE_RESULTS \
    LineResults { line_slots, line_windows, roles, owners, line_mapqs, line_seconds, bands, least_scores, rooms }

// line_offsets: where each record's lines begin; what count_lines counted is the least that it has.
KERNEL void list_lines(i64 begin, i64 end, SELECTION_ARGUMENTS, const i64* line_offsets, LINE_RESULT_ARGUMENTS,
                       i64 most_windows, REPORTING_ARGUMENTS, SCORING_ARGUMENTS) {
    LineResults results = LINE_RESULTS;
    FOR_EACH(record, begin, end) {
        SELECT(record)
        i64 next = line_offsets[record], places[MOST_WINDOWS], place = next;
        for (i32 i = 0; i < selection.line_count; ++i) places[i] = selection.lines[i].role == NOTHING ? -1 : place++;
        for (i32 i = 0; i < selection.line_count; ++i) {
            const Line& line = selection.lines[i];
            if (line.role == NOTHING) continue;
            const Window* window = line.rank < 0 ? nullptr : selection.windows + line.rank;
            i64 owner = line.role > PIECE ? places[line.owner] : next;
            i32 least = line.role == PRIMARY && joint[slot] ? joint_score : min_score;
            results.put(next++, slot, selection.length, window, slot * most_windows + line.rank, line.role, owner,
                        line.mapq, line.second, least, SCORING);
        }
    }
}

// An item is a place; place_lines: the line that it gets.
KERNEL void add_places(i64 begin, i64 end, const i32* lengths, const Window* windows, const Place* places,
                       const i64* place_lines, LINE_RESULT_ARGUMENTS, i32 min_score, SCORING_ARGUMENTS) {
    LineResults results = LINE_RESULTS;
    FOR_EACH(item, begin, end) {
        const Place& place = places[item];
        results.put(place_lines[item], place.slot, lengths[place.slot], windows + place.row, place.row, PLACE,
                    place.owner, 0, 0, min_score, SCORING);
    }
}
