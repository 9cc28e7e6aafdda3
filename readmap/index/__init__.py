"""The index: a packed reference, its suffix array and prefix table, and the folder that keeps them."""
