// Fragments: how the two reads of one lie to each other, and how likely its length is.
//
// An end is where a read's first base lies, the fragment's end that the read begins at: its leftmost place if the read is
// forward, the place behind its rightmost base if it is reversed. The insert size is the distance of the two.
#pragma once
#include "common/portable.cuh"

// Which strands the reads are of, the first read's place taken as what follows: FF is ->1 ->2, RR ->2 ->1, FR -> <-, RF <- ->.
enum Direction { FF = 0, FR = 1, RF = 2, RR = 3, DIRECTIONS = 4 };

// What is seen of a pair instead: that a mate is not placed for sure, or that the two make no fragment.
enum NoDirection { UNCERTAIN = 4, FAR_APART = 5 };

const i32 MAX_INSERT_SIZE = 10000;  // of the fragments from which a library's sizes are learnt

const i32 IMPROPER = -1;

struct FragmentEnd {
    i64 place;
    bool reversed;
};

struct Distance {
    i32 direction;
    i64 bases;
};

HOST_DEVICE Distance distance_of(FragmentEnd first, FragmentEnd second) {
    i64 apart = second.place - first.place;
    if (first.reversed) apart = -apart;
    i64 bases = maximum(apart, -apart);
    if (first.reversed != second.reversed) return Distance{apart >= 0 ? FR : RF, bases};
    return Distance{apart >= 0 ? FF : RR, bases};
}

// Phred that two reads lose at the ends of a fragment. Where they overlap both show one difference of the sample, so of what
// both lose that share counts once.
HOST_DEVICE i32 joint_loss(i32 first_loss, i32 second_loss, Distance distance, i32 first_length, i32 second_length) {
    i64 first = minimum((i64)first_length, distance.bases), second = minimum((i64)second_length, distance.bases);
    i64 shared = distance.direction == FR ? first + second - distance.bases : 0, loss = first_loss + second_loss;
    return (i32)(shared > 0 ? loss - minimum(first_loss, second_loss) * shared / minimum(first, second) : loss);
}

// The insert sizes of a library, one distribution a direction.
struct InsertSizeTable {
    const i64* lows OF(DIRECTIONS);     // above high where the library has no such pairs
    const i64* highs OF(DIRECTIONS);    // inclusive
    const i64* offsets OF(DIRECTIONS);  // where a direction's penalties begin
    const u8* penalties OF(any);        // phred by which a size low, low + 1, ... is less likely than the likeliest one

    // IMPROPER where no direction of the library has such a pair.
    HOST_DEVICE i32 penalty(Distance distance) const {
        i64 low = lows[distance.direction];
        if (distance.bases < low || distance.bases > highs[distance.direction]) return IMPROPER;
        return penalties[offsets[distance.direction] + distance.bases - low];
    }
    // The sign of mate - anchor that a direction asks for; anchor_first: whether the anchor is the first read.
    HOST_DEVICE static i64 sign(i32 direction, FragmentEnd anchor, bool anchor_first) {
        bool ahead = direction == FR || (direction != RF && (direction == FF) == anchor_first);
        return ahead != anchor.reversed ? 1 : -1;
    }
};
