// What is counted of records: for each read group, and of each for first and second mates.
#pragma once
#include "bam/cigar.cuh"
#include "bam/tags.cuh"
#include "common/sam_flags.cuh"

const i64 MATES = 2;

// Of a unit, which is a read group's first or second mates: numbers that lie one behind the other, as enum UnitCounter has them.
const i64 FLAGS = 4096;     // records, by their flags
const i64 MAPQS = 256;      // primary mapped records that count
const i64 GC_SHARES = 101;  // reads, by the per cent of G and C among their bases that are known
const i64 QUALITIES = 94;   // reads, by the mean of their qualities

enum UnitCounter {
    FLAG,
    FLAG_LETTERS = 4096,  // the same: letters of the records
    MAPQ = 8192,
    GC_SHARE = 8448,
    MEAN_QUALITY = 8549,
    ALIGNED_BASES = 8643,  // of mapped records but secondary ones: matches, mismatches and insertions
    DIFFERENCES,           // of these, as NM tells
    MAPQ_ZERO,             // mapped reads of MAPQ 0
    OTHER_CONTIG,          // mapped reads whose mates lie on another contig
    OTHER_CONTIG_MAPQ5,    // of these, of MAPQ 5 and more
    FAILED_OTHER_CONTIG,   // as OTHER_CONTIG and OTHER_CONTIG_MAPQ5, of reads that failed the sequencer's checks
    FAILED_OTHER_CONTIG_MAPQ5,
    EMPTY_OTHER_CONTIG,  // as OTHER_CONTIG and FAILED_OTHER_CONTIG, of records without letters
    ALIGNED_START,       // mapped reads with MD, by the cycle of their first base that is not clipped
    ALIGNED_END = 9163,  // the same, by the cycle behind their last one; the first cycle is not needed
    UNIT_COUNTERS = 9675,
};

// Cycles; the last one stands for all behind it.
const i64 CYCLES = 512;
// Bases of a cycle: A, C, G, T, others.
const i64 BASES = 5;
// Adapters that are looked for: Illumina's universal one, that of Nextera, and the 3' one of small RNA.
const i64 ADAPTERS = 3;
const i64 ADAPTER_BASES = 12;

// Insert sizes; the last one stands for all above it. Orientations as samtools stats has them.
const i64 INSERTS = 8001;
enum Orientation { INWARD, OUTWARD, OTHER_ORIENTATION, ORIENTATIONS };

struct Counts {
    u64* records OF(units* UNIT_COUNTERS);
    u64* empty OF(units* FLAGS);                       // records without letters, by their flags
    u64* inserts OF(groups * ORIENTATIONS * INSERTS);  // records of pairs: each mate counts
    u64* qualities OF(units * CYCLES * QUALITIES);
    u64* bases OF(units * CYCLES * BASES);
    u64* mismatches OF(units* CYCLES);
    u64* adapters OF(units * ADAPTERS * CYCLES);  // reads, by the cycle at which an adapter begins
    i64 units;
    i64 groups;
};

HOST_DEVICE bool is_primary(i64 flag) { return !(flag & (SECONDARY | SUPPLEMENTARY)); }

// A letter of BAM, of four bits, and its complement: the same bits the other way round.
HOST_DEVICE i64 letter_at(const u8* letters, i64 i) { return letters[i >> 1] >> (i & 1 ? 0 : 4) & 15; }
HOST_DEVICE i64 complement_of(i64 letter) { return (i64)(0xF7B3D591E6A2C480ull >> 4 * letter & 15); }
// A, C, G, T as 0 to 3, others as 4.
HOST_DEVICE i64 base_of(i64 letter) { return (i64)(0x4444444344424104ull >> 4 * letter & 15); }
