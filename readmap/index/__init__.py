"""The index: packed reference, suffix array, prefix table and suffix tree, and the folder that stores them."""
