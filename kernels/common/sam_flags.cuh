// The flags of a SAM record (SAM specification, section 1.4).
#pragma once

enum Flag {
    PAIRED = 1,
    PROPER_PAIR = 2,
    UNMAPPED = 4,
    MATE_UNMAPPED = 8,
    REVERSED = 16,
    MATE_REVERSED = 32,
    FIRST_MATE = 64,
    SECOND_MATE = 128,
    SECONDARY = 256,
    QC_FAILED = 512,
    DUPLICATE_RECORD = 1024,
    SUPPLEMENTARY = 2048,
};
