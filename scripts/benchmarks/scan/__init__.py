"""scripts/benchmark scan: scan a protein database and contigs with queries of many lengths.

Like the papers by Manavski and Valle and by Ligowski and Rudnicki.
"""
