// The row above a region is put on its horizontal bus, as if a strip before the first had written it.
#include "pairwise/bus.cuh"

// An item is a column. row_h: of the row above; row_f: of the row below that one.
KERNEL void board(i64 begin, i64 end, const i32* row_h, const i32* row_f, u64* bus) {
    FOR_EACH(column, begin, end) bus[column] = bus_word(Border{row_h[column], row_f[column]}, -1);
}
