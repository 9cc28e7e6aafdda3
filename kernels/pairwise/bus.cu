// Initialize the horizontal bus with the row above a region, as if strip -1 had written it.
#include "pairwise/bus.cuh"

// An item is a column.
KERNEL void fill_bus(Items items, Borders borders, u64* bus OF(columns)) {
    FOR_EACH(column, items) bus[column] = bus_word(Border{borders.row_h[column], borders.row_f[column]}, -1);
}
