"""The reference allocator, measured: what a free costs, what random calls break, what the CUDA build waits for."""
