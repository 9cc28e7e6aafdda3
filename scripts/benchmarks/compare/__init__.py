"""scripts/benchmark compare and compare-pairs: two long sequences, as in Table 4 and Figure 10 of Sandes and de Melo,
"CUDAlign: Using GPU to Accelerate the Comparison of Megabase Genomic Sequences", and batches of short pairs."""
