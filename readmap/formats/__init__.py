"""Bytes to arrays and back: FASTA, FASTQ, gzip, and the files that results are written to."""
