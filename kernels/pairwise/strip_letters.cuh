// Letters and scores of the schemes in strips.
#pragma once
#include "pairwise/schemes.cuh"
#include "pairwise/strips.cuh"

template <class Lane> struct StripLetters<Identity, Lane> {
    // Different from all letters and from each other.
    static const i32 NO_QUERY = 4, NO_TARGET = 5;
    Lane matching, differing;
    // offset: added to all scores.
    HOST_DEVICE static StripLetters of(const Identity& scheme, i32 offset) {
        return StripLetters{Lane::all(offset + scheme.highest), Lane::all(offset + scheme.lowest)};
    }
    HOST_DEVICE static i32 of_query(i32 code) { return code * CODE_SPACING; }
    HOST_DEVICE static i32 of_target(i32 code) { return Lane::match_code(code * CODE_SPACING); }
    HOST_DEVICE Lane score(Lane query, Lane target) const { return select_match(query, target, matching, differing); }
};

template <class Lane> struct StripLetters<Substitution, Lane> {
    static const i32 NO_QUERY = NO_CODE, NO_TARGET = NO_CODE;
    const i32* matrix;
    Lane offset;
    HOST_DEVICE static StripLetters of(const Substitution& scheme, i32 offset) {
        return StripLetters{scheme.matrix, Lane::all(offset)};
    }
    HOST_DEVICE static i32 of_query(i32 code) { return code * CODES; }
    HOST_DEVICE static i32 of_target(i32 code) { return code; }
    HOST_DEVICE Lane score(Lane query, Lane target) const {
        Lane cells = query + target, scores = offset;
        for (i32 lane = 0; lane < Lane::width; ++lane) scores.set(lane, matrix[cells.get(lane)]);
        return scores + offset;
    }
};
