// The score and the end of every pair's alignment.
#pragma once
#include "pairwise/pair_blocks.cuh"

struct End {
    i32 score, query, target;
};

// Replace `ends`, by lane, by cells of strip `number` with a better score, or with the same score that come first.
template <class Lane>
HOST_DEVICE void merge_best(const Strip<Lane, BEST_CELL>& strip, i32 number, i32 first_gap, End* ends) {
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i32 step = strip.best_step.get(lane), best = strip.best.get(lane), row = ROWS;
        if (step < 0) continue;
        UNROLL for (i32 i = ROWS - 1; i >= 0; --i)
            row = strip.best_rows[i].get(lane) == best ? i : row;
        End found = {best + first_gap, number * ROWS + row + 1, step - row};
        End& end = ends[lane];
        if (found.score > end.score || ends_before(found.query, found.target, end.query, end.target)) end = found;
    }
}

// Find the best cell of every pair of a group, for local alignments. columns: target letters and top border;
// lane_scheme: `scheme` in all lanes; ends: output, by lane.
template <class Scheme, class Lane> HOST_DEVICE void find_best_cells(const Group<Lane>& group, const BlockBand& band,
        StripColumns<Lane> columns, const Scheme& scheme, const LaneScheme<Scheme, Lane>& lane_scheme, End* ends) {
    Strip<Lane, BEST_CELL> strip;
    for (i32 lane = 0; lane < Lane::width; ++lane) ends[lane] = End{0, 0, 0};
    for (i32 number = 0; number < band.strips(); ++number) {
        strip.start(columns, 0, lane_scheme);
        group.load_query(lane_scheme.letters, strip.query, number);
        for (i32 lane = 0; lane < Lane::width; ++lane)
            strip.best.set(lane, maximum(ends[lane].score - 1, 0) - scheme.first_gap());
        for (i32 step = 0, steps = band.steps(number); step < steps; step += ROWS)
            strip.advance(columns, step, step, {}, lane_scheme);
        merge_best(strip, number, scheme.first_gap(), ends);
    }
}

// Sweep strip `number`, and store the row of every query's last letter in the border of `columns`.
template <Purpose PURPOSE, class Scheme, class Lane> HOST_DEVICE void sweep_to_last_row(const Group<Lane>& group,
        const BlockBand& band, i32 number, StripColumns<Lane> columns, const LaneScheme<Scheme, Lane>& lane_scheme) {
    Strip<Lane, PURPOSE> strip;
    strip.start(columns, 0, lane_scheme);
    group.load_query(lane_scheme.letters, strip.query, number);
    for (i32 row = 0; row < ROWS; ++row) {
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            i32 remaining = group.query_ends[lane] - number * ROWS - row;
            strip.ends[row].set(lane, remaining == 1 || (row == ROWS - 1 && remaining > 1) ? -1 : 0);
        }
    }
    for (i32 step = 0, steps = band.steps(number); step < steps; step += ROWS)
        strip.advance(columns, step, step, {}, lane_scheme);
}

// Find the best column of every pair's last row, in a global alignment the last. Parameters as in find_best_cells.
template <class Scheme, class Lane> HOST_DEVICE void find_best_columns(const Group<Lane>& group, const BlockBand& band,
        StripColumns<Lane> columns, Mode mode, const Scheme& scheme, const LaneScheme<Scheme, Lane>& lane_scheme,
        End* ends) {
    i32 shortest = group.query_ends[0];
    for (i32 lane = 1; lane < Lane::width; ++lane) shortest = minimum(shortest, group.query_ends[lane]);
    for (i32 number = 0; number < band.strips(); ++number) {
        if ((number + 1) * ROWS <= shortest) sweep_to_last_row<LAST_ROW>(group, band, number, columns, lane_scheme);
        else sweep_to_last_row<LAST_ROW_ENDING>(group, band, number, columns, lane_scheme);
    }
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i32 last = group.target_ends[lane], best = mode == GLOBAL ? last : 0;
        for (i32 column = best + 1; column <= last; ++column)
            if (columns.score(column).get(lane) > columns.score(best).get(lane)) best = column;
        ends[lane] = End{columns.score(best).get(lane) + scheme.first_gap(), group.query_ends[lane], best};
    }
}

// Compute score and end of each pair of a group to `ends`, by lane. memory: scratch; unreachable: unreachable_score.
template <class Scheme, class Lane> HOST_DEVICE void score_group(const Group<Lane>& group, const BlockBand& band,
        Lane* memory, Mode mode, const Scheme& scheme, i32 unreachable, End* ends) {
    StripColumns<Lane> columns = {memory};
    auto lane_scheme = LaneScheme<Scheme, Lane>::of(scheme, mode, unreachable);
    group.store_letters(lane_scheme.letters, columns, band.columns);
    store_top_border(group, columns, band.columns + 2 * ROWS, band.columns, mode, scheme, unreachable);
    if constexpr (Scheme::is_local_only()) find_best_cells(group, band, columns, scheme, lane_scheme, ends);
    else if (mode == LOCAL) find_best_cells(group, band, columns, scheme, lane_scheme, ends);
    else find_best_columns(group, band, columns, mode, scheme, lane_scheme, ends);
}
