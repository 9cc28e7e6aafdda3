// The score of every pair and where its alignment ends.
#pragma once
#include "pairwise/pairwise.cuh"

struct End {
    i32 score, query, target;
};

// Into `ends` what the strip found that is better, or as good and before.
template <class Lane>
HOST_DEVICE void take_best(const Strip<Lane, BEST_CELL>& strip, i32 number, i32 first_gap, End* ends) {
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i32 step = strip.best_step.get(lane), kept = strip.best.get(lane), row = ROWS;
        if (step < 0) continue;
        UNROLL for (i32 i = ROWS - 1; i >= 0; --i)
            row = strip.best_rows[i].get(lane) == kept ? i : row;
        End found = {kept + first_gap, number * ROWS + row + 1, step - row};
        End& end = ends[lane];
        if (found.score > end.score || ends_before(found.query, found.target, end.query, end.target)) end = found;
    }
}

template <class Scheme, class Lane> HOST_DEVICE void find_best_cells(const Group<Lane>& group, const Frame& frame,
                                                                     StripColumns<Lane> columns, const Scheme& scheme,
                                                                     const Prices<Scheme, Lane>& prices, End* ends) {
    Strip<Lane, BEST_CELL> strip;
    for (i32 lane = 0; lane < Lane::width; ++lane) ends[lane] = End{0, 0, 0};
    for (i32 number = 0; number < frame.strips(); ++number) {
        strip.begin(columns, 0, prices);
        group.load_query(prices.letters, strip.query, number);
        for (i32 lane = 0; lane < Lane::width; ++lane)
            strip.best.set(lane, maximum(ends[lane].score - 1, 0) - scheme.first_gap());
        for (i32 step = 0, steps = frame.steps(number); step < steps; step += ROWS)
            strip.advance(columns, step, step, {}, prices);
        take_best(strip, number, scheme.first_gap(), ends);
    }
}

// Leaves in the columns' border the row of the last letter of every query.
template <Purpose PURPOSE, class Scheme, class Lane>
HOST_DEVICE void sweep_to_last_row(const Group<Lane>& group, const Frame& frame, i32 number, StripColumns<Lane> columns,
                                   const Prices<Scheme, Lane>& prices) {
    Strip<Lane, PURPOSE> strip;
    strip.begin(columns, 0, prices);
    group.load_query(prices.letters, strip.query, number);
    for (i32 row = 0; row < ROWS; ++row) {
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            i32 behind = group.query_ends[lane] - number * ROWS - row;
            strip.ends[row].set(lane, behind == 1 || (row == ROWS - 1 && behind > 1) ? -1 : 0);
        }
    }
    for (i32 step = 0, steps = frame.steps(number); step < steps; step += ROWS)
        strip.advance(columns, step, step, {}, prices);
}

template <class Scheme, class Lane>
HOST_DEVICE void find_best_columns(const Group<Lane>& group, const Frame& frame, StripColumns<Lane> columns, Mode mode,
                                   const Scheme& scheme, const Prices<Scheme, Lane>& prices, End* ends) {
    i32 shortest = group.query_ends[0];
    for (i32 lane = 1; lane < Lane::width; ++lane) shortest = minimum(shortest, group.query_ends[lane]);
    for (i32 number = 0; number < frame.strips(); ++number) {
        if ((number + 1) * ROWS <= shortest) sweep_to_last_row<LAST_ROW>(group, frame, number, columns, prices);
        else sweep_to_last_row<LAST_ROW_ENDING>(group, frame, number, columns, prices);
    }
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i32 last = group.target_ends[lane], best = mode == GLOBAL ? last : 0;
        for (i32 column = best + 1; column <= last; ++column)
            if (columns.score(column).get(lane) > columns.score(best).get(lane)) best = column;
        ends[lane] = End{columns.score(best).get(lane) + scheme.first_gap(), group.query_ends[lane], best};
    }
}

// ends: Lane::width of them.
template <class Scheme, class Lane> HOST_DEVICE void score_group(const Group<Lane>& group, const Frame& frame,
                                                                 Lane* memory, Mode mode, const Scheme& scheme,
                                                                 i32 never, End* ends) {
    StripColumns<Lane> columns = {memory};
    auto prices = Prices<Scheme, Lane>::of(scheme, mode, never);
    group.lay_letters(prices.letters, columns, frame.columns);
    lay_border(group, columns, frame.columns + 2 * ROWS, frame.columns, mode, scheme, never);
    if constexpr (Scheme::only_local()) find_best_cells(group, frame, columns, scheme, prices, ends);
    else if (mode == LOCAL) find_best_cells(group, frame, columns, scheme, prices, ends);
    else find_best_columns(group, frame, columns, mode, scheme, prices, ends);
}
