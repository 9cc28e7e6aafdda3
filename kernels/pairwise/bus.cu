// Initialize the horizontal bus with the row above a region, as if strip -1 had written it.
#include "pairwise/bus.cuh"

// bus[column] = the bus word of the row above the region, with the mark of strip -1.
KERNEL void fill_bus(Items items, Borders borders, u64* bus OF(columns)) {
    FOR_EACH(column, items) bus[column] = bus_word(Border{borders.row_h[column], borders.row_f[column]}, -1);
}
