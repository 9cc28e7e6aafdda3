// Everything that NVRTC and the host's C++ compiler disagree on. Another file asks which of the two reads it only where
// threads of the GPU do together what one of the CPU does alone, or with vectors.
//
// A kernel is `KERNEL void name(i64 begin, i64 end, ...)` with one FOR_EACH over the items [begin, end), and nothing else
// asks for `end`: how many items there are, the GPU may know alone. On the GPU a thread takes an item; on the CPU a call
// takes a slice of them, and the calls of several slices run on threads. Where an item is worth more than a thread,
// FOR_EACH_GROUP gives it to GROUP_WIDTH of them: a warp there, and one here; and FOR_EACH_BLOCK to BLOCK_WIDTH of them:
// several groups there, and one thread here. Where an item waits for memory more than it computes, FOR_EACH_BUNCH gives a
// thread `size` of them from `first` on, to take in turns: one there, where other warps fill the wait, and up to BUNCH here.
// UNROLL stands before a loop of few rounds whose arrays are to be registers.
//
// OF says how many elements a parameter has, which is checked at every launch: readmap/backend/compilation/declarations.py
// has the grammar.
//
// An item may wait for what another one publishes, if it took its number from a counter (`take_next`) and waits for smaller
// numbers only: those are under way.
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
// Between a kernel's void and its name: so many blocks of it are to fit on a multiprocessor.
#define RESIDENT(blocks) __launch_bounds__(128, blocks)
#define HOST_DEVICE __device__ __forceinline__
#define SELDOM __device__ __noinline__
// What `end` stands for: where it is negative, the address of the number that it is, which the host did not know.
__device__ __forceinline__ i64 items_told(i64 end) { return end < 0 ? *(const i64*)-end : end; }
#define FOR_EACH(item, begin, end)                                                                      \
    for (i64 item = (begin) + (i64)blockIdx.x * blockDim.x + threadIdx.x, item##_end = items_told(end); \
         item < item##_end; item += (i64)gridDim.x * blockDim.x)
#define GROUP_WIDTH 32
#define FOR_EACH_GROUP(item, begin, end)                                                  \
    for (i64 item = (begin) + ((i64)blockIdx.x * blockDim.x + threadIdx.x) / GROUP_WIDTH, \
             item##_end = items_told(end);                                                \
         item < item##_end; item += (i64)gridDim.x * blockDim.x / GROUP_WIDTH)
#define BUNCH 1
#define FOR_EACH_BUNCH(first, size, begin, end) \
    FOR_EACH(first, begin, end)                 \
        if (constexpr i32 size = 1; true)
#define PREFETCH(address) ((void)0)
#define UNROLL _Pragma("unroll")

HOST_DEVICE i32 group_lane() { return threadIdx.x % GROUP_WIDTH; }
HOST_DEVICE bool group_any(bool mine) { return __any_sync(~0u, mine); }
HOST_DEVICE i32 group_max(i32 mine) { return __reduce_max_sync(~0u, mine); }
HOST_DEVICE u32 group_ballot(bool mine) { return __ballot_sync(~0u, mine); }
// What a lane of the group holds.
template <class T> HOST_DEVICE T group_take(const T& held, i32 lane) {
    T result;
    const u32* in = (const u32*)&held;
    u32* out = (u32*)&result;
    for (u32 i = 0; i < sizeof(T) / 4; ++i) out[i] = __shfl_sync(~0u, in[i], lane);
    return result;
}
// The sum of what this lane and those below it hold.
HOST_DEVICE i32 group_sum_to(i32 mine) {
    for (i32 step = 1; step < GROUP_WIDTH; step *= 2) {
        i32 other = __shfl_up_sync(~0u, mine, step);
        if (group_lane() >= step) mine += other;
    }
    return mine;
}
// The first lane that holds more than a number, where what they hold ascends; the last one if none does.
HOST_DEVICE i32 group_owner(i32 mine, i32 number) {
    i32 owner = 0;
    for (i32 step = GROUP_WIDTH / 2; step; step /= 2)
        if (__shfl_sync(~0u, mine, owner + step - 1) <= number) owner += step;
    return owner;
}
HOST_DEVICE u32 lanes_below() { return (1u << group_lane()) - 1; }
HOST_DEVICE i32 from_first(i32 mine) { return __shfl_sync(~0u, mine, 0); }
HOST_DEVICE void group_sync() { __syncwarp(); }
// An array that the threads of a group share. Blocks have four groups.
#define GROUP_ARRAY(type, name, count)         \
    __shared__ type name##_of_block[4][count]; \
    type* name = name##_of_block[threadIdx.x / GROUP_WIDTH]

#define BLOCK_WIDTH 128
#define FOR_EACH_BLOCK(item, begin, end) \
    for (i64 item = (begin) + blockIdx.x, item##_end = items_told(end); item < item##_end; item += gridDim.x)
#define BLOCK_ARRAY(type, name, count) __shared__ type name[count]
HOST_DEVICE i32 block_thread() { return threadIdx.x; }
HOST_DEVICE void block_sync() { __syncthreads(); }
// To an element of a BLOCK_ARRAY.
HOST_DEVICE void block_add(u32* address, u32 value) { atomicAdd(address, value); }
HOST_DEVICE void block_add(u64* address, u64 value) { atomicAdd(address, value); }

HOST_DEVICE i32 count_ones(u64 x) { return __popcll((i64)x); }
HOST_DEVICE i32 leading_zeros(u64 x) { return __clzll((i64)x); }
HOST_DEVICE u64 reversed_bits(u64 x) { return __brevll(x); }
// Eight bytes from any address, the first one lowest.
HOST_DEVICE u64 eight_bytes(const u8* bytes) {
    const u64* aligned = (const u64*)((u64)bytes & ~7ull);
    i32 shift = 8 * (i32)((u64)bytes & 7);
    return shift ? aligned[0] >> shift | aligned[1] << (64 - shift) : aligned[0];
}
// The first place from `begin` on that holds the byte; `end` where none does.
HOST_DEVICE i64 find_byte(const u8* bytes, i64 begin, i64 end, u8 byte) {
    while (begin < end && bytes[begin] != byte) ++begin;
    return begin;
}
// No file is open there.
HOST_DEVICE i64 read_file(i32, u8*, i64, i64) { return 0; }
HOST_DEVICE void atomic_min(u32* address, u32 value) { atomicMin(address, value); }
HOST_DEVICE void atomic_min(u64* address, u64 value) { atomicMin(address, value); }
HOST_DEVICE void atomic_add(u64* address, u64 value) { atomicAdd(address, value); }
HOST_DEVICE void atomic_max(i32* address, i32 value) { atomicMax(address, value); }
HOST_DEVICE void atomic_or(u32* address, u32 value) { atomicOr(address, value); }
HOST_DEVICE i32 take_next(i32* counter) { return atomicAdd(counter, 1); }
// What was there; where that was expected, it is the other number now.
HOST_DEVICE i32 compare_and_swap(i32* address, i32 expected, i32 number) {
    return atomicCAS(address, expected, number);
}
// What other groups may have written meanwhile, and what they are to find: a word, whole.
HOST_DEVICE i32 fresh(const i32* address) { return *(volatile const i32*)address; }
HOST_DEVICE u64 fresh(const u64* address) { return *(volatile const u64*)address; }
HOST_DEVICE void publish(u64* address, u64 value) { *(volatile u64*)address = value; }
// Before what has not come yet is looked for again.
HOST_DEVICE void pause() { __nanosleep(20); }

#else

#include <sched.h>

#include <utility>

#define KERNEL static
#define RESIDENT(blocks)
#define HOST_DEVICE inline __attribute__((always_inline))
#define SELDOM inline __attribute__((noinline))
// The entry point by which the host launches a kernel, for which all of them look the same: its arguments come by address.
#define PACKED(name) \
    extern "C" void packed_##name(i64 begin, i64 end, void* const* arguments) { call(name, begin, end, arguments); }
template <class... A, std::size_t... I> HOST_DEVICE void call(void (*kernel)(i64, i64, A...), i64 begin, i64 end,
                                                              void* const* arguments, std::index_sequence<I...>) {
    kernel(begin, end, *(A*)arguments[I]...);
}
template <class... A>
HOST_DEVICE void call(void (*kernel)(i64, i64, A...), i64 begin, i64 end, void* const* arguments) {
    call(kernel, begin, end, arguments, std::index_sequence_for<A...>());
}
#define FOR_EACH(item, begin, end) for (i64 item = (begin); item < (end); ++item)
#define GROUP_WIDTH 1
#define FOR_EACH_GROUP FOR_EACH
#define BUNCH 32
#define FOR_EACH_BUNCH(first, size, begin, end)              \
    for (i64 first = (begin); first < (end); first += BUNCH) \
        if (i32 size = (i32)minimum((i64)BUNCH, (end) - first); true)
#define PREFETCH(address) __builtin_prefetch(address)
#define UNROLL _Pragma("GCC unroll 16")

HOST_DEVICE i32 group_lane() { return 0; }
HOST_DEVICE bool group_any(bool mine) { return mine; }
HOST_DEVICE i32 group_max(i32 mine) { return mine; }
HOST_DEVICE u32 group_ballot(bool mine) { return mine; }
template <class T> HOST_DEVICE T group_take(const T& held, i32) { return held; }
HOST_DEVICE i32 group_sum_to(i32 mine) { return mine; }
HOST_DEVICE i32 group_owner(i32, i32) { return 0; }
HOST_DEVICE u32 lanes_below() { return 0; }
HOST_DEVICE i32 from_first(i32 mine) { return mine; }
HOST_DEVICE void group_sync() {}
#define GROUP_ARRAY(type, name, count) type name[count]

#define BLOCK_WIDTH 1
#define FOR_EACH_BLOCK FOR_EACH
#define BLOCK_ARRAY(type, name, count) type name[count]
HOST_DEVICE i32 block_thread() { return 0; }
HOST_DEVICE void block_sync() {}
HOST_DEVICE void block_add(u32* address, u32 value) { *address += value; }
HOST_DEVICE void block_add(u64* address, u64 value) { *address += value; }

HOST_DEVICE i32 count_ones(u64 x) { return __builtin_popcountll(x); }
HOST_DEVICE i32 leading_zeros(u64 x) { return x ? __builtin_clzll(x) : 64; }
HOST_DEVICE u64 reversed_bits(u64 x) {
    x = __builtin_bswap64(x);
    x = (x >> 4 & 0x0F0F0F0F0F0F0F0Full) | (x & 0x0F0F0F0F0F0F0F0Full) << 4;
    x = (x >> 2 & 0x3333333333333333ull) | (x & 0x3333333333333333ull) << 2;
    return (x >> 1 & 0x5555555555555555ull) | (x & 0x5555555555555555ull) << 1;
}
HOST_DEVICE u64 eight_bytes(const u8* bytes) {
    u64 x;
    __builtin_memcpy(&x, bytes, 8);
    return x;
}
HOST_DEVICE i64 find_byte(const u8* bytes, i64 begin, i64 end, u8 byte) {
    const void* found = __builtin_memchr(bytes + begin, byte, (u64)(end - begin));
    return found ? (const u8*)found - bytes : end;
}
extern "C" long pread(int file, void* bytes, unsigned long wanted, long offset);
// How many bytes of an open file come from its offset; fewer than wanted, or none, at its end or where reading fails.
HOST_DEVICE i64 read_file(i32 file, u8* bytes, i64 wanted, i64 offset) { return pread(file, bytes, wanted, offset); }
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
HOST_DEVICE i32 take_next(i32* counter) { return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }
HOST_DEVICE i32 compare_and_swap(i32* address, i32 expected, i32 number) {
    __atomic_compare_exchange_n(address, &expected, number, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
HOST_DEVICE i32 fresh(const i32* address) { return __atomic_load_n(address, __ATOMIC_RELAXED); }
HOST_DEVICE u64 fresh(const u64* address) { return __atomic_load_n(address, __ATOMIC_RELAXED); }
HOST_DEVICE void publish(u64* address, u64 value) { __atomic_store_n(address, value, __ATOMIC_RELAXED); }
HOST_DEVICE void pause() { sched_yield(); }

#endif

template <class T> HOST_DEVICE T minimum(T a, T b) { return b < a ? b : a; }
template <class T> HOST_DEVICE T maximum(T a, T b) { return a < b ? b : a; }
template <class T> HOST_DEVICE T clamp(T x, T low, T high) { return minimum(maximum(x, low), high); }

// The lowest and the highest of the lanes of a ballot that are set; one is.
HOST_DEVICE i32 last_lane(u32 ballot) { return 63 - leading_zeros(ballot); }
HOST_DEVICE i32 first_lane(u32 ballot) { return last_lane(ballot & (~ballot + 1)); }

// The finaliser of splitmix64: decides ties by a number that depends on nothing but its argument.
HOST_DEVICE u64 mix(u64 x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}
