"""The kernels, from their sources to machine code that is kept."""
