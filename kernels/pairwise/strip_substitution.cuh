// Letters and scores of a substitution matrix in strips.
#pragma once
#include "pairwise/substitution.cuh"
#include "pairwise/strips.cuh"

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
        Lane places = query + target, scores = offset;
        for (i32 lane = 0; lane < Lane::width; ++lane) scores.set(lane, matrix[places.get(lane)]);
        return scores + offset;
    }
};
