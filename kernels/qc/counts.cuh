// Counters of quality control per read group, most of them per unit: the first or the second mates of a read group.
#pragma once
#include "bam/cigar_and_tags.cuh"
#include "common/sam_flags.cuh"

const i64 MATES = 2;
// Counters of a unit, in the order of enum UnitCounter.
const i64 FLAGS = 4096;     // records, by flags
const i64 MAPQS = 256;      // primary mapped records that count
const i64 GC_SHARES = 101;  // reads, by percentage of G and C among their known bases
const i64 QUALITIES = 94;   // reads, by mean base quality

enum UnitCounter {
    FLAG,
    FLAG_LETTERS = 4096,  // bases of the records, by flags
    MAPQ = 8192,
    GC_SHARE = 8448,
    MEAN_QUALITY = 8549,
    ALIGNED_BASES = 8643,  // matches, mismatches and insertions of mapped, not secondary records
    DIFFERENCES,           // sum of their NM tags
    MAPQ_ZERO,             // mapped reads with MAPQ 0
    OTHER_CONTIG,          // mapped reads whose mates are on another contig
    OTHER_CONTIG_MAPQ5,    // mapped reads with MAPQ 5 or more whose mates are on another contig
    FAILED_OTHER_CONTIG,   // as OTHER_CONTIG and OTHER_CONTIG_MAPQ5, of reads that failed the sequencer's checks
    FAILED_OTHER_CONTIG_MAPQ5,
    EMPTY_OTHER_CONTIG,  // as OTHER_CONTIG and FAILED_OTHER_CONTIG, of records without letters
    ALIGNED_START,       // mapped reads with MD, by the cycle of their first base that is not clipped
    ALIGNED_END = 9163,  // the same reads, by the cycle after their last unclipped base; without the first cycle
    UNIT_COUNTERS = 9675,
};

const i64 CYCLES = 512;                      // the last stands for all later cycles
const i64 BASES = 5;                         // of a cycle: A, C, G, T, others
const i64 ADAPTERS = 3, ADAPTER_BASES = 12;  // Illumina universal, Nextera, small RNA 3'
const i64 INSERTS = 8001;                    // insert sizes; the last stands for all larger sizes
enum Orientation { INWARD, OUTWARD, OTHER_ORIENTATION, ORIENTATIONS };  // as in samtools stats

struct Counts {
    u64* records OF(units* UNIT_COUNTERS);
    u64* empty OF(units* FLAGS);                       // records without letters, by their flags
    u64* inserts OF(groups * ORIENTATIONS * INSERTS);  // records of pairs: each mate counts
    u64* qualities OF(units * CYCLES * QUALITIES);
    u64* bases OF(units * CYCLES * BASES);
    u64* mismatches OF(units* CYCLES);
    u64* adapters OF(units * ADAPTERS * CYCLES);  // reads, by the cycle at which an adapter begins
    i64 units, groups;
};

HOST_DEVICE bool is_primary(i64 flag) { return !(flag & (SECONDARY | SUPPLEMENTARY)); }
// Return base i of a packed BAM sequence as its code of four bits.
HOST_DEVICE i64 letter_at(const u8* letters, i64 i) { return letters[i >> 1] >> (i & 1 ? 0 : 4) & 15; }
HOST_DEVICE i64 complement_of(i64 letter) { return (i64)(0xF7B3D591E6A2C480ull >> 4 * letter & 15); }  // of a BAM code
// Return 0 to 3 for the BAM code of A, C, G or T, and 4 for any other code.
HOST_DEVICE i64 base_of(i64 letter) { return (i64)(0x4444444344424104ull >> 4 * letter & 15); }
