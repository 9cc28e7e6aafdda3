// The lanes of a wavefront: on the GPU a warp, whose threads hold two 16-bit lanes each, on the CPU one vector.
#pragma once
#include "common/simd_lanes.cuh"

// The scores that a row passes to the row below: H (inside a wavefront less the cost of a gap's first letter) and F.
struct Border {
    i32 h, f;
};

template <class Lane> HOST_DEVICE constexpr i32 wavefront_width() { return WARP_WIDTH * Lane::width; }  // in lanes
// Return the index of this thread's first lane in its wavefront.
template <class Lane> HOST_DEVICE i32 first_lane() { return warp_lane() * Lane::width; }
// Return the maximum of a thread's lanes.
template <class Lane> HOST_DEVICE i32 max_lane(Lane x) {
    i32 result = x.get(0);
    for (i32 lane = 1; lane < Lane::width; ++lane) result = maximum(result, x.get(lane));
    return result;
}

// For each lane: differ is 1 if a > b, else 0, given a >= b; and_lanes is a & b; shifted is a * 2^bits.
HOST_DEVICE Lane32 differ(Lane32 a, Lane32 b) { return Lane32{a.value != b.value}; }
template <class Lane> HOST_DEVICE Lane and_lanes(Lane a, Lane b) { return Lane{a.value & b.value}; }
template <class Lane> HOST_DEVICE Lane shifted(Lane a, i32 bits) { return Lane{a.value << bits}; }
// Return the lanes of a before `lane`, 0 to Lane::width, and the lanes of b from `lane` on.
HOST_DEVICE Lane32 merge_lanes(Lane32 a, Lane32 b, i32 lane) { return lane ? a : b; }
// The scores that a thread's last lane passes to the lane below, relative to the base of the wavefront.
template <class Lane> struct LaneOutput {
    Border border;
    HOST_DEVICE static LaneOutput of(Border border) { return LaneOutput{border}; }
    HOST_DEVICE static LaneOutput of(Lane h, Lane f) {
        return LaneOutput{{h.get(Lane::width - 1), f.get(Lane::width - 1)}};
    }
};
template <class Lane> HOST_DEVICE Border border_of(LaneOutput<Lane> crossing) { return crossing.border; }  // H and F

#ifdef __CUDACC__
template <> struct LaneOutput<Lanes16> {
    u32 both;
    HOST_DEVICE static LaneOutput of(Border border) {
        return LaneOutput{__byte_perm((u32)border.h, (u32)border.f, 0x5410)};
    }
    HOST_DEVICE static LaneOutput of(Lanes16 h, Lanes16 f) { return LaneOutput{__byte_perm(h.value, f.value, 0x7632)}; }
};
HOST_DEVICE Border border_of(LaneOutput<Lanes16> crossing) {  // its H and F
    return Border{(i16)crossing.both, (i32)crossing.both >> 16};
}

// Return, for each lane, 1 if a and b differ, else 0, given a >= b.
HOST_DEVICE Lanes16 differ(Lanes16 a, Lanes16 b) { return Lanes16{__vminu2(__vsub2(a.value, b.value), 0x10001u)}; }
HOST_DEVICE Lanes16 merge_lanes(Lanes16 a, Lanes16 b, i32 lane) {  // lanes of a before `lane`, then lanes of b
    return Lanes16{__byte_perm(a.value, b.value, lane == 0 ? 0x7654 : lane == 1 ? 0x7610 : 0x3210)};
}
// Pass h and f of every lane to the lane below, across threads too; the first lane receives `above`.
HOST_DEVICE void pass_down(Lanes16& h, Lanes16& f, LaneOutput<Lanes16> crossing, LaneOutput<Lanes16> above) {
    u32 both = __shfl_up_sync(~0u, crossing.both, 1);
    if (warp_lane() == 0) both = above.both;
    h.value = __byte_perm(both, h.value, 0x5410);
    f.value = __byte_perm(both, f.value, 0x5432);
}
HOST_DEVICE void pass_down(Lane32& h, Lane32& f, LaneOutput<Lane32> crossing, LaneOutput<Lane32> above) {
    h.value = __shfl_up_sync(~0u, crossing.border.h, 1);
    f.value = __shfl_up_sync(~0u, crossing.border.f, 1);
    if (warp_lane() == 0) h.value = above.border.h, f.value = above.border.f;
}
#else
HOST_DEVICE Lanes16 differ(Lanes16 a, Lanes16 b) { return Lanes16{(a.value != b.value) & (i16)1}; }
HOST_DEVICE Lanes16 merge_lanes(Lanes16 a, Lanes16 b, i32 lane) {  // lanes of a before `lane`, then lanes of b
    const Lanes16::vector lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return Lanes16{lanes < (i16)lane ? a.value : b.value};
}

// Shift the lanes down by one and insert `first` as the first lane: two instructions.
HOST_DEVICE Lanes16 shift_down(Lanes16 x, i32 first) {
    Lanes16 above = Lanes16::all(first);
#ifdef __clang__
    return Lanes16{__builtin_shufflevector(x.value, above.value, 31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)};
#else
    return Lanes16{__builtin_shuffle(
            x.value, above.value, Lanes16::vector{31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})};
#endif
}
HOST_DEVICE void pass_down(Lanes16& h, Lanes16& f, LaneOutput<Lanes16>, LaneOutput<Lanes16> above) {
    h = shift_down(h, above.border.h), f = shift_down(f, above.border.f);
}
HOST_DEVICE void pass_down(Lane32& h, Lane32& f, LaneOutput<Lane32>, LaneOutput<Lane32> above) {  // as on the GPU
    h.value = above.border.h, f.value = above.border.f;
}
#endif
