// What NVRTC and the host's C++ compiler disagree on. Other files test __CUDACC__ only for vectors, or if
// GPU threads share work that one CPU thread does alone.
//
// A kernel is `KERNEL void name(Items items, ...)` with one `FOR_EACH(item, items)`. The type of `items` says what
// takes an item, and readmap/backend launches the kernel accordingly:
//
//     type               on the GPU                                     on the CPU
//     Items              a thread                                       a call on a slice of the items, by a thread
//     WarpItems          a warp                                         one thread, WARP_WIDTH is 1
//     OrderedWarpItems   a warp; an item may wait for those before it   one thread, items are taken one by one
//     BlockItems         a block of 128 threads                         one thread, BLOCK_WIDTH is 1
//
// Only FOR_EACH reads the number of items, which may be known only to the GPU. UNROLL precedes a short loop whose
// arrays belong in registers. FOR_EACH_BUNCH gives a thread `size` consecutive items from `first` on, whose
// memory loads overlap: a bunch of up to BUNCH on the CPU, of one on the GPU, where other warps hide the latency.
//
// OF gives an array's number of elements, checked at every launch; readmap/backend/compilation/declarations.py has the
// grammar. An item may wait for data of another item if it got its index from a counter (`atomic_increment`) and waits
// only for smaller indices, whose items have started.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#define OF(...)

#ifdef __CUDACC__
#define KERNEL extern "C" __global__
// Stands between a kernel's `void` and its name: the minimum number of resident blocks per multiprocessor.
#define MIN_BLOCKS(blocks) __launch_bounds__(128, blocks)
#define HOST_DEVICE __device__ __forceinline__
#define NOINLINE __device__ __noinline__
// The items of a launch: `count` of them, or the number at `device_count` (null if the host knows the count).
struct Items {
    i64 count;
    const i64* device_count;

    HOST_DEVICE static i64 first() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
    HOST_DEVICE static i64 stride() { return (i64)gridDim.x * blockDim.x; }
    HOST_DEVICE i64 end() const { return device_count ? *device_count : count; }
};
#define WARP_WIDTH 32
struct WarpItems : Items {
    HOST_DEVICE static i64 first() { return Items::first() / WARP_WIDTH; }
    HOST_DEVICE static i64 stride() { return Items::stride() / WARP_WIDTH; }
};
struct OrderedWarpItems : WarpItems {};
struct BlockItems : Items {
    HOST_DEVICE static i64 first() { return blockIdx.x; }
    HOST_DEVICE static i64 stride() { return gridDim.x; }
};
#define BUNCH 1
#define FOR_EACH_BUNCH(first, size, items) \
    FOR_EACH(first, items)                 \
        if (constexpr i32 size = 1; true)
#define PREFETCH(address) ((void)0)
#define UNROLL _Pragma("unroll")

HOST_DEVICE i32 warp_lane() { return threadIdx.x % WARP_WIDTH; }
HOST_DEVICE bool warp_any(bool value) { return __any_sync(~0u, value); }
HOST_DEVICE i32 warp_max(i32 value) { return __reduce_max_sync(~0u, value); }
HOST_DEVICE u32 warp_ballot(bool value) { return __ballot_sync(~0u, value); }
// Return the value that lane `lane` of the warp has passed.
template <class T> HOST_DEVICE T warp_shuffle(const T& value, i32 lane) {
    T result;
    const u32* in = (const u32*)&value;
    u32* out = (u32*)&result;
    for (u32 i = 0; i < sizeof(T) / 4; ++i) out[i] = __shfl_sync(~0u, in[i], lane);
    return result;
}
// Return the sum of the values of this lane and all lower lanes.
HOST_DEVICE i32 warp_inclusive_sum(i32 value) {
    for (i32 step = 1; step < WARP_WIDTH; step *= 2) {
        i32 other = __shfl_up_sync(~0u, value, step);
        if (warp_lane() >= step) value += other;
    }
    return value;
}
// Return the first lane whose value exceeds the bound, if the values ascend; else the last lane.
HOST_DEVICE i32 warp_upper_bound(i32 value, i32 bound) {
    i32 lane = 0;
    for (i32 step = WARP_WIDTH / 2; step; step /= 2)
        if (__shfl_sync(~0u, value, lane + step - 1) <= bound) lane += step;
    return lane;
}
HOST_DEVICE u32 lower_lanes_mask() { return (1u << warp_lane()) - 1; }            // bits of the lanes below this lane
HOST_DEVICE i32 warp_broadcast(i32 value) { return __shfl_sync(~0u, value, 0); }  // of lane 0
HOST_DEVICE void warp_sync() { __syncwarp(); }
// An array shared by the threads of a warp. A block has four warps.
#define WARP_ARRAY(type, name, count)          \
    __shared__ type name##_of_block[4][count]; \
    type* name = name##_of_block[threadIdx.x / WARP_WIDTH]

#define BLOCK_WIDTH 128
#define BLOCK_ARRAY(type, name, count) __shared__ type name[count]
HOST_DEVICE i32 block_thread() { return threadIdx.x; }
HOST_DEVICE void block_sync() { __syncthreads(); }
// Add to an element of a BLOCK_ARRAY.
HOST_DEVICE void block_atomic_add(u32* address, u32 value) { atomicAdd(address, value); }
HOST_DEVICE void block_atomic_add(u64* address, u64 value) { atomicAdd(address, value); }

HOST_DEVICE i32 popcount(u64 x) { return __popcll((i64)x); }
HOST_DEVICE i32 leading_zeros(u64 x) { return __clzll((i64)x); }
HOST_DEVICE u64 reverse_bits(u64 x) { return __brevll(x); }
// Load eight bytes from any address, little-endian.
HOST_DEVICE u64 load_u64(const u8* bytes) {
    const u64* aligned = (const u64*)((u64)bytes & ~7ull);
    i32 shift = 8 * (i32)((u64)bytes & 7);
    return shift ? aligned[0] >> shift | aligned[1] << (64 - shift) : aligned[0];
}
// Return the index of the first byte equal to `byte` in [start, end), else `end`.
HOST_DEVICE i64 find_byte(const u8* bytes, i64 start, i64 end, u8 byte) {
    while (start < end && bytes[start] != byte) ++start;
    return start;
}
// Return 0: a GPU cannot read files.
HOST_DEVICE i64 read_file(i32, u8*, i64, i64) { return 0; }
HOST_DEVICE void atomic_min(u32* address, u32 value) { atomicMin(address, value); }
HOST_DEVICE void atomic_min(u64* address, u64 value) { atomicMin(address, value); }
HOST_DEVICE void atomic_add(u64* address, u64 value) { atomicAdd(address, value); }
HOST_DEVICE void atomic_max(i32* address, i32 value) { atomicMax(address, value); }
HOST_DEVICE void atomic_or(u32* address, u32 value) { atomicOr(address, value); }
HOST_DEVICE i32 atomic_increment(i32* counter) { return atomicAdd(counter, 1); }  // returns the old value
// Replace the value if it is the expected one; return the old value.
HOST_DEVICE i32 compare_and_swap(i32* address, i32 expected, i32 desired) {
    return atomicCAS(address, expected, desired);
}
// Load what other warps may have written, and store for other warps; words are not torn.
HOST_DEVICE i32 load_relaxed(const i32* address) { return *(volatile const i32*)address; }
HOST_DEVICE u64 load_relaxed(const u64* address) { return *(volatile const u64*)address; }
HOST_DEVICE void store_relaxed(u64* address, u64 value) { *(volatile u64*)address = value; }
// Called between two polls of a value that has not been written yet.
HOST_DEVICE void pause() { __nanosleep(20); }
#else
#include <sched.h>

#include <utility>

#define KERNEL static
#define MIN_BLOCKS(blocks)
#define HOST_DEVICE inline __attribute__((always_inline))
#define NOINLINE inline __attribute__((noinline))
// The slice of the items that a call takes.
struct Items {
    i64 start, stop;

    HOST_DEVICE i64 first() const { return start; }
    HOST_DEVICE i64 end() const { return stop; }
    HOST_DEVICE static i64 stride() { return 1; }
};
#define WARP_WIDTH 1
typedef Items WarpItems, OrderedWarpItems, BlockItems;
// The entry point by which the host launches a kernel. All have the same type: arguments are passed by address.
#define HOST_ENTRY(name) \
    extern "C" void launch_##name(i64 start, i64 stop, void* const* arguments) { call(name, start, stop, arguments); }
// Call a kernel on the items [start, stop). arguments: the addresses of its arguments after `items`.
template <class... A, std::size_t... I> HOST_DEVICE void call(
        void (*kernel)(Items, A...), i64 start, i64 stop, void* const* arguments, std::index_sequence<I...>) {
    kernel(Items{start, stop}, *(A*)arguments[I]...);
}
template <class... A> HOST_DEVICE void call(void (*kernel)(Items, A...), i64 start, i64 stop, void* const* arguments) {
    call(kernel, start, stop, arguments, std::index_sequence_for<A...>());
}
#define BUNCH 32
#define FOR_EACH_BUNCH(first, size, items)                            \
    for (i64 first = items.start; first < items.stop; first += BUNCH) \
        if (i32 size = (i32)minimum((i64)BUNCH, items.stop - first); true)
#define PREFETCH(address) __builtin_prefetch(address)
#define UNROLL _Pragma("GCC unroll 16")

HOST_DEVICE i32 warp_lane() { return 0; }
HOST_DEVICE bool warp_any(bool value) { return value; }
HOST_DEVICE i32 warp_max(i32 value) { return value; }  // of the only lane
HOST_DEVICE u32 warp_ballot(bool value) { return value; }
template <class T> HOST_DEVICE T warp_shuffle(const T& value, i32) { return value; }
HOST_DEVICE i32 warp_inclusive_sum(i32 value) { return value; }  // of the only lane
HOST_DEVICE i32 warp_upper_bound(i32, i32) { return 0; }         // the only lane
HOST_DEVICE u32 lower_lanes_mask() { return 0; }                 // there are no lower lanes
HOST_DEVICE i32 warp_broadcast(i32 value) { return value; }
HOST_DEVICE void warp_sync() {}
#define WARP_ARRAY(type, name, count) type name[count]

#define BLOCK_WIDTH 1
#define BLOCK_ARRAY(type, name, count) type name[count]
HOST_DEVICE i32 block_thread() { return 0; }
HOST_DEVICE void block_sync() {}
HOST_DEVICE void block_atomic_add(u32* address, u32 value) { *address += value; }
HOST_DEVICE void block_atomic_add(u64* address, u64 value) { *address += value; }

HOST_DEVICE i32 popcount(u64 x) { return __builtin_popcountll(x); }
HOST_DEVICE i32 leading_zeros(u64 x) { return x ? __builtin_clzll(x) : 64; }
HOST_DEVICE u64 reverse_bits(u64 x) {
    x = __builtin_bswap64(x);
    x = (x >> 4 & 0x0F0F0F0F0F0F0F0Full) | (x & 0x0F0F0F0F0F0F0F0Full) << 4;
    x = (x >> 2 & 0x3333333333333333ull) | (x & 0x3333333333333333ull) << 2;
    return (x >> 1 & 0x5555555555555555ull) | (x & 0x5555555555555555ull) << 1;
}
HOST_DEVICE u64 load_u64(const u8* bytes) {  // from any address, little-endian
    u64 x;
    __builtin_memcpy(&x, bytes, 8);
    return x;
}
HOST_DEVICE i64 find_byte(const u8* bytes, i64 start, i64 end, u8 byte) {  // its first index, else `end`
    const void* found = __builtin_memchr(bytes + start, byte, (u64)(end - start));
    return found ? (const u8*)found - bytes : end;
}
extern "C" long pread(int file, void* bytes, unsigned long count, long offset);
// Read bytes of an open file at an offset; return their number, which is smaller at the file's end or after an error.
HOST_DEVICE i64 read_file(i32 file, u8* bytes, i64 count, i64 offset) { return pread(file, bytes, count, offset); }
template <class T> HOST_DEVICE void atomic_min(T* address, T value) {
    T seen = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (value < seen &&
            !__atomic_compare_exchange_n(address, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
HOST_DEVICE void atomic_add(u64* address, u64 value) { __atomic_fetch_add(address, value, __ATOMIC_RELAXED); }
HOST_DEVICE void atomic_max(i32* address, i32 value) {
    i32 seen = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (value > seen &&
            !__atomic_compare_exchange_n(address, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
HOST_DEVICE void atomic_or(u32* address, u32 value) { __atomic_fetch_or(address, value, __ATOMIC_RELAXED); }
HOST_DEVICE i32 atomic_increment(i32* counter) { return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }
HOST_DEVICE i32 compare_and_swap(i32* address, i32 expected, i32 desired) {  // returns the old value
    __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
HOST_DEVICE i32 load_relaxed(const i32* address) { return __atomic_load_n(address, __ATOMIC_RELAXED); }
HOST_DEVICE u64 load_relaxed(const u64* address) { return __atomic_load_n(address, __ATOMIC_RELAXED); }
HOST_DEVICE void store_relaxed(u64* address, u64 value) { __atomic_store_n(address, value, __ATOMIC_RELAXED); }
HOST_DEVICE void pause() { sched_yield(); }
#endif

#define FOR_EACH(item, items) \
    for (i64 item = items.first(), item##_end = items.end(); item < item##_end; item += items.stride())

template <class T> HOST_DEVICE T minimum(T a, T b) { return b < a ? b : a; }
template <class T> HOST_DEVICE T maximum(T a, T b) { return a < b ? b : a; }
template <class T> HOST_DEVICE T clamp(T x, T low, T high) { return minimum(maximum(x, low), high); }
// Return the highest set lane of a ballot, which is not 0 (first_lane: the lowest).
HOST_DEVICE i32 last_lane(u32 ballot) { return 63 - leading_zeros(ballot); }
HOST_DEVICE i32 first_lane(u32 ballot) { return last_lane(ballot & (~ballot + 1)); }  // the lowest
// Return splitmix64's finalizer of x: a pseudorandom number to break ties, which depends only on its argument.
HOST_DEVICE u64 splitmix64(u64 x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

// Copy `length` bytes with all threads of the warp.
HOST_DEVICE void warp_copy(const u8* __restrict__ source, i64 length, u8* __restrict__ target) {
    for (i64 i = warp_lane(); i < length; i += WARP_WIDTH) target[i] = source[i];
}
