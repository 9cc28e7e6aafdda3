// The reference as kernels see it. Ambiguous bases, the places between contigs and the end are barriers: packed words
// hold A there, no common prefix crosses them, and barrier_blocks has a bit for each 64 bases that hold one, so that
// the list of barrier intervals is searched only where it must be.
#pragma once
#include "common/item_record.cuh"
#include "common/packed.cuh"

struct Reference {
    const u64* words OF(any);
    const u64* barrier_blocks OF(any);
    const i64* barrier_starts OF(barriers);  // sorted, disjoint intervals; the last one begins at the end
    const i64* barrier_ends OF(barriers);
    const i64* contig_starts OF(contigs + 1);  // contig c is [contig_starts[c], contig_starts[c + 1] - 1)
    const u8* alternates OF(contigs);          // 1 for those that are ALT contigs: other versions of parts of others
    i64 barriers, contigs;
    i64 first_alternate;  // where the first ALT contig begins, the end where there is none

    HOST_DEVICE PackedWords packed() const { return PackedWords{words, 1}; }

    HOST_DEVICE bool has_no_barrier(i64 begin, i64 end) const {
        i64 first = begin >> 6, last = (end - 1) >> 6;
        u64 wanted = ~0ull << (first & 63);
        for (i64 word = first >> 6; word < last >> 6; ++word, wanted = ~0ull)
            if (barrier_blocks[word] & wanted) return false;
        return last < first || !(barrier_blocks[last >> 6] & wanted & ~0ull >> (63 - (last & 63)));
    }
    // The first barrier interval that ends behind position.
    HOST_DEVICE i64 next_barrier(i64 position) const { return upper_bound(barrier_ends, barriers, position); }
    // How many of the count bases from position on stand before the first barrier.
    HOST_DEVICE i64 reach(i64 position, i64 count) const {
        if (has_no_barrier(position, position + count)) return count;
        return clamp(barrier_starts[next_barrier(position)] - position, (i64)0, count);
    }
    HOST_DEVICE i64 contig_of(i64 position) const { return upper_bound(contig_starts + 1, contigs - 1, position); }
    HOST_DEVICE bool has_alternates() const { return first_alternate < contig_starts[contigs]; }
    HOST_DEVICE bool on_alternate(i64 contig) const { return alternates[contig]; }
    HOST_DEVICE bool is_alternate(i64 position) const {
        return position >= first_alternate && alternates[contig_of(position)];
    }
    // Marks (low bit of a pair) the barriers among the 32 bases from position on.
    HOST_DEVICE u64 barriers_at(i64 position) const {
        if (has_no_barrier(position, position + 32)) return 0;
        u64 marks = 0;
        for (i64 i = next_barrier(position); i < barriers && barrier_starts[i] < position + 32; ++i) {
            i64 from = maximum(barrier_starts[i] - position, (i64)0), to = minimum(barrier_ends[i] - position, (i64)32);
            marks |= leading_mask(to) & ~leading_mask(from);
        }
        return marks & LOW_BITS;
    }
};
