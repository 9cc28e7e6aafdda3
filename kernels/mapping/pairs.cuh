// Fragments: the relative direction of two mates, and how likely their insert size is.
//
// A fragment end is where the read's 5' end lies: its leftmost position if the read is forward, the position after its
// rightmost base if it is reversed. The insert size is the distance between the two ends.
#pragma once
#include "common/portable.cuh"

// The strands of the two reads, as seen from the first read: FF is ->1 ->2, RR is ->2 ->1, FR is -> <-, RF is <- ->.
enum Direction { FF = 0, FR = 1, RF = 2, RR = 3, DIRECTIONS = 4 };

// Instead of a direction: a mate is not placed confidently, or the mates make no fragment.
enum NoDirection { UNCERTAIN = 4, FAR_APART = 5 };

const i32 MAX_INSERT_SIZE = 10000;  // longer fragments are not measured
const i32 IMPROPER = -1;

struct FragmentEnd {
    i64 position;
    bool reversed;
};

struct Distance {
    i32 direction;
    i64 bases;
};

// Return the direction and the distance in bases of the fragment ends of two mates.
HOST_DEVICE Distance distance_of(FragmentEnd first, FragmentEnd second) {
    i64 offset = second.position - first.position;
    if (first.reversed) offset = -offset;
    i64 bases = maximum(offset, -offset);
    if (first.reversed != second.reversed) return Distance{offset >= 0 ? FR : RF, bases};
    return Distance{offset >= 0 ? FF : RR, bases};
}

// Return the phred that two reads lose together. A difference between sample and reference in the overlap of the reads
// appears in both, so the shared part of the losses counts once.
HOST_DEVICE i32 joint_loss(i32 first_loss, i32 second_loss, Distance distance, i32 first_length, i32 second_length) {
    i64 first = minimum((i64)first_length, distance.bases), second = minimum((i64)second_length, distance.bases);
    i64 shared = distance.direction == FR ? first + second - distance.bases : 0, loss = first_loss + second_loss;
    return (i32)(shared > 0 ? loss - minimum(first_loss, second_loss) * shared / minimum(first, second) : loss);
}

// The insert sizes of a library, one distribution per direction.
struct InsertSizeTable {
    const i64* lows OF(DIRECTIONS);     // above high if the library has no such pairs
    const i64* highs OF(DIRECTIONS);    // inclusive
    const i64* offsets OF(DIRECTIONS);  // where the penalties of a direction start
    const u8* penalties OF(any);  // phred by which size low, low + 1, ... is less likely than the most likely size
    // Return the penalty of a distance, or IMPROPER if no direction of the library has such a pair.
    HOST_DEVICE i32 penalty(Distance distance) const {
        i64 low = lows[distance.direction];
        if (distance.bases < low || distance.bases > highs[distance.direction]) return IMPROPER;
        return penalties[offsets[distance.direction] + distance.bases - low];
    }
    // Return the sign of mate - anchor in a direction. anchor_first: the anchor is the first read of the pair.
    HOST_DEVICE static i64 sign(i32 direction, FragmentEnd anchor, bool anchor_first) {
        bool ahead = direction == FR || (direction != RF && (direction == FF) == anchor_first);
        return ahead != anchor.reversed ? 1 : -1;
    }
};
