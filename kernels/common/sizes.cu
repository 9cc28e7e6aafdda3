// Sizes: what prefix sums add up to, where kernels that are launched before the host knows find how many items they have.
#include "common/portable.cuh"

// One item. told: how many there are, none where there is no room for all, and then of `owners` neither; needed: how many.
KERNEL void tell_size(Items items, const i64* ends OF(size), i64* told OF(1), i64* needed OF(1), i64* owners OF(1),
                      i64 size, i64 room) {
    FOR_EACH(item, items) {
        i64 count = size ? ends[size - 1] : 0;
        needed[0] = count;
        told[0] = count <= room ? count : 0;
        if (count > room) owners[0] = 0;
    }
}
