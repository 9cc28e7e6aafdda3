"""Records of BAM in their order, and what finds them in a file."""
