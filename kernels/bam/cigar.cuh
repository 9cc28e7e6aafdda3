// CIGAR operations (SAM specification, sections 1.4.6 and 4.2).
#pragma once
#include "common/bam_fields.cuh"

enum CigarOperation { MATCH, INSERTION, DELETION, SKIP, SOFT_CLIP, HARD_CLIP, PADDING, EQUAL, DIFFERENT };

// Return true if the operation aligns read bases to reference bases.
HOST_DEVICE bool is_aligned(i64 kind) { return kind == MATCH || kind == EQUAL || kind == DIFFERENT; }
HOST_DEVICE bool covers_reference(i64 kind) { return is_aligned(kind) || kind == DELETION || kind == SKIP; }
