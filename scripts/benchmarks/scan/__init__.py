"""scripts/benchmark scan: a protein database, and contigs, scanned with queries of many lengths, as in the papers by
Manavski and Valle and by Ligowski and Rudnicki."""
