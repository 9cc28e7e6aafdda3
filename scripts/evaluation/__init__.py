"""What scripts/evaluate measures, one module a kind of set: single ends, pairs, variants, split reads, real pairs."""
