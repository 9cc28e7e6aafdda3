// The reference as kernels read it. Ambiguous bases, the positions between contigs and everything after the end are
// barriers: packed words have A there, and no common prefix crosses them. barrier_blocks has a bit for each 64 bases,
// set if a barrier overlaps them, so that the sorted barrier intervals are searched only if necessary.
#pragma once
#include "common/binary_search.cuh"
#include "common/packed.cuh"

struct Reference {
    const u64* words OF(any);
    const u64* barrier_blocks OF(any);
    const i64* barrier_starts OF(barriers);  // sorted, disjoint; the last interval starts at the reference's end
    const i64* barrier_ends OF(barriers);
    const i64* contig_starts OF(contigs + 1);  // contig c is [contig_starts[c], contig_starts[c + 1] - 1)
    const u8* alternates OF(contigs);          // 1 for ALT contigs
    i64 barriers, contigs;
    i64 first_alternate;  // start of the first ALT contig, or the reference's end
    HOST_DEVICE PackedWords packed() const { return PackedWords{words, 1}; }
    // Return true only if no block that overlaps [start, end) contains a barrier.
    HOST_DEVICE bool has_no_barrier(i64 start, i64 end) const {
        i64 first = start >> 6, last = (end - 1) >> 6;
        u64 wanted = ~0ull << (first & 63);
        for (i64 word = first >> 6; word < last >> 6; ++word, wanted = ~0ull)
            if (barrier_blocks[word] & wanted) return false;
        return last < first || !(barrier_blocks[last >> 6] & wanted & ~0ull >> (63 - (last & 63)));
    }
    // Return the index of the first barrier that ends after `position`.
    HOST_DEVICE i64 next_barrier(i64 position) const { return upper_bound(barrier_ends, barriers, position); }
    // Return the number of bases before the first barrier among the `count` bases starting at `position`.
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
    // Return a mask with the low bit of each pair set for the barriers among the 32 bases starting at `position`.
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
